//! A file fetched over FTP (RFC 959), as people fetch files: by a server program that many machines run,
//! and a client that asks for nothing but speed.
//!
//! A [`Server`] is one of two well-known programs, started in the host where the file lies, with a
//! configuration made for it. It serves one file of zeroes, read-only, to any user. The file has
//! holes instead of blocks (it is sparse), so even a large one costs no disk. A [`Client`] logs in
//! from the other host, and [`Download::start`] fetches: passive mode for both IP versions (EPSV,
//! RFC 2428), on a separate thread, until the last byte or the deadline.
//!
//! ```text
//! Program::find(..) ─▶ Server::start(right, ..) ─┐
//!              left.run(|| Client::connect(..)) ─┴─▶ Download::start(..) ─▶ Download::finish() ─▶ Report
//! ```
//!
//! The server is an ordinary program, so its transport is configured from outside: the congestion
//! control by a route ([`send_with`]), Multipath TCP by what wraps the program. All systems that an
//! experiment compares should be served by the same [`Program`].

mod client;
mod congestion;
mod download;
mod program;
mod server;

pub use client::{Client, ConnectError};
pub use congestion::send_with;
pub use download::{Download, Report};
pub use program::{Program, Unavailable};
pub use server::{Options, Server, StartError};

/// The name of the file that is served.
const FILE: &str = "download";
