//! The control socket: its owner and root ask the running daemon.
//!
//! [`Listener`] is the file in the file system and checks who connects; [`Server`] reads requests from a bounded [`server`](crate::server) and sends replies; the
//! [`Daemon`](crate::daemon::Daemon) answers them. All of it runs in the main thread on readiness, the
//! tunnels in theirs.

mod listener;
mod server;

#[cfg(test)]
mod tests;

/// The file that guards a control socket, which a daemon that was killed leaves beside it.
pub(crate) fn lock_file(socket: &std::path::Path) -> std::path::PathBuf {
    crate::server::Lock::path_of(socket)
}

pub(crate) use listener::Listener;
pub(crate) use server::Server;
