//! How fast the daemon is, beside what the kernel itself does on the same machine.
//!
//! Two hosts are joined by bare pairs of virtual interfaces; nothing emulates anything. Over them
//! goes the same traffic by different [`Subject`]s: TCP as it is, the kernel's MPTCP over two pairs,
//! the kernel's VXLAN tunnel and its WireGuard, wireguard-go, and the shipped daemon over one to twelve. A machine's speed wanders
//! by the minute, so no figure is worth much alone: all subjects stand at once and are measured in turn, in many short
//! rounds, and what counts is the ratios of figures measured within moments of each other.
//!
//! A virtual pair passes super-packets of 64 KiB whole, which no wire does. Everything is therefore
//! measured over two kinds of [`Wire`]: such as the kernel makes them, and such as a network card
//! would be. A third kind has a rate, and shows whether the daemon fills it (`ideal`).
//!
//! In the order in which things happen: `runner` has `ready` bring up each `subject` between two `hosts` of its own, takes
//! them in `turns`, and has `measure` find goodput of `tcp` on the `processors` of each host, processor time,
//! round-trip times, and the rate of `udp` packets that still arrive, which `search` narrows down.
//! All goes into `samples`, from which `ratio`s are taken, a [`record`] is made and a [`report`]
//! drawn.

mod hosts;
mod ideal;
mod kernel_wireguard;
mod measure;
mod options;
pub mod peers;
mod processors;
mod ratio;
mod ready;
pub mod record;
pub mod report;
mod runner;
mod samples;
mod search;
mod subject;
mod tcp;
mod turns;
mod udp;
mod wireguard;

pub use options::Options;
pub use record::Record;
pub use runner::run;
pub use samples::Figure;
pub use subject::{Mode, Subject, Wire};
