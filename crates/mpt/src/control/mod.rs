//! The control socket: whoever may, asks the running daemon.
//!
//! [`Listener`] is the file in the file system and decides who gets in, its [`lock`]
//! lets one daemon at a time take it; [`Server`] keeps the
//! clients, none of whom can hold up another or make the daemon grow; the
//! [`Daemon`](crate::daemon::Daemon) knows the answers. All of it runs in the main thread on readiness, and the tunnels in theirs.

mod client;
mod listener;
mod lock;
mod server;

#[cfg(test)]
mod tests;

pub(crate) use listener::Listener;
pub(crate) use server::Server;
