//! From a folder of results to pages and comparisons, by the program itself; and the page as a browser
//! shows it.
//!
//! The browser is a headless Chromium. Without one, its tests say so and are skipped; with
//! `MPT_NO_SKIP=1` they fail instead.

mod browser;
mod commands;
mod page;
mod synthetic;
