//! Traffic of known shape, and what became of it.
//!
//! Each kind is a file: one greedy [`tcp`] or [`quic`] flow, a [`udp`] stream of numbered packets
//! by a timetable, [`media`] streams of voice and video, many [`calls`] at once, a [`ping`] that
//! measures delay only, and a file fetched over [`ftp`], which alone needs an external program. All of them work the same way:
//! the sockets are made first, each inside the namespace of its host (a socket stays in the
//! namespace it was made in), then the flow runs on separate threads, ends by itself at its
//! deadline even if the network fails, and returns a report.
//!
//! ```text
//! right.run(|| tcp::Sink::listen(address))     ─┐
//! left.run(|| tcp::Source::connect(...))       ─┴─▶ tcp::Flow::start(..) ─▶ Flow::finish() ─▶ Report
//! ```
//!
//! Every time in a report was read by the receiving side. Sender and receiver are threads of one
//! process and so read one clock, which is what makes one-way delays of the emulated network
//! measurable without any synchronisation.
//!
//! The arithmetic is apart from the sockets, and pure: [`series`] (goodput, start-up, gaps),
//! [`order`] (RFC 4737), [`jitter`] (two definitions), [`spread`] (median and company) and [`emodel`]
//! (what a call is worth).

pub mod calls;
pub mod emodel;
pub mod ftp;
pub mod jitter;
pub mod media;
pub mod order;
pub mod ping;
mod processor;
pub mod quic;
pub mod series;
pub mod spread;
pub mod tcp;
pub mod udp;

use std::time::Duration;

/// How long a blocked read or write waits before it looks at the clock and the stop flag again.
///
/// It bounds how far a flow overruns its deadline when nothing arrives any more; it is no
/// granularity of measurement, since whatever arrives ends the wait.
const PATIENCE: Duration = Duration::from_millis(50);
