//! The command line as its users meet it: the real binary, its output and its exit codes.
//!
//! What needs a daemon meets one that is only [`pretended`] and says what the test wants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends where it stands")]

mod configuration;
mod help;
mod invitations;
mod output;
mod pretended;
mod program;
mod requests;
