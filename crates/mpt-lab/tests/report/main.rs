//! From a folder of results to pages and comparisons, by the program itself; and the page as a browser
//! shows it.
//!
//! The browser is a headless Chromium. Without one, its tests are skipped with a message; with
//! `MPT_NO_SKIP=1` they fail instead.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may end at any fault, and says what it skips"
)]

mod browser;
mod commands;
mod page;
mod synthetic;
