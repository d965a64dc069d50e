//! What everything that reads foreign bytes must withstand, as plain functions.
//!
//! A [`Target`] takes any bytes and panics if something is not as it has to be: not only if the code
//! under test does, but also if it breaks a promise. So the same function serves two ways of looking
//! for trouble. `cargo test` gives it every file of `fuzz/corpus/<target>` and random variations of
//! them, on stable Rust and in seconds; `cargo fuzz` gives it what a coverage-guided fuzzer thinks of,
//! for as long as one likes. `CONTRIBUTING.md` says how to do either, and what to do with a finding.
//!
//! - [`wire`]: the parsers of `mpt-proto`, and what it writes into other people's packets;
//! - [`extended`]: the datagrams of extended framing;
//! - [`parity`]: packets of a group, of which some are lost;
//! - [`sealed`]: datagrams of sealed framing that are not authentic;
//! - [`endpoint`]: two endpoints and whatever can happen to and between them;
//! - [`command`]: the commands of the original MPT, and two hosts that exchange them;
//! - [`super_packet`]: what a TUN device hands over, to `mpt-io`;
//! - [`control`]: lines on the control socket;
//! - [`configuration`]: the configuration file, what is added to it by command, and what is imported.

pub mod command;
pub mod configuration;
pub mod control;
pub mod endpoint;
pub mod extended;
mod input;
pub mod parity;
pub mod sealed;
pub mod super_packet;
pub mod wire;

/// Something that takes any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its corpus and of its program for `cargo fuzz`.
    pub name: &'static str,
    /// Panics if `bytes` bring about what must not be.
    pub run: fn(bytes: &[u8]),
}

/// All of them, by name.
pub const TARGETS: [Target; 18] = [
    Target { name: "command", run: command::command },
    Target { name: "command_port", run: command::command_port },
    Target { name: "config", run: configuration::config },
    Target { name: "control_request", run: control::control_request },
    Target { name: "endpoint", run: endpoint::endpoint },
    Target { name: "extended", run: extended::extended },
    Target { name: "flow", run: wire::flow },
    Target { name: "fragment", run: configuration::fragment },
    Target { name: "gre", run: wire::gre },
    Target { name: "icmp", run: wire::icmp },
    Target { name: "import", run: configuration::import },
    Target { name: "inner", run: wire::inner },
    Target { name: "keepalive", run: wire::keepalive },
    Target { name: "mss", run: wire::mss },
    Target { name: "parity", run: parity::parity },
    Target { name: "sealed", run: sealed::sealed },
    Target { name: "status_reply", run: control::status_reply },
    Target { name: "super_packet", run: super_packet::super_packet },
];
