//! The control socket: its owner and root ask the running daemon.
//!
//! [`Listener`] is the file in the file system and checks who connects, its [`lock`] lets one daemon at a
//! time take it; [`Server`] reads requests from a bounded [`server`](crate::server) and sends replies; the
//! [`Daemon`](crate::daemon::Daemon) answers them. All of it runs in the main thread on readiness, the
//! tunnels in theirs.

mod listener;
mod lock;
mod server;

#[cfg(test)]
mod tests;

pub(crate) use listener::Listener;
pub(crate) use server::Server;
