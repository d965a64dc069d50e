//! The lab of MPT.
//!
//! Two hosts, each a network namespace; between them links, each a pair of TUN devices joined by an
//! emulator in this process; in them the shipped `mpt` daemon as a separate process, and real TCP,
//! UDP and ping traffic. The lab never links the daemon, so what it measures is what ships.
//!
//! Reading order:
//!
//! - [`privilege`]: the right to do all this, as root or without.
//! - [`topology`]: which links there are, as data.
//! - [`netns`]: a host's namespace, and [`guard`], which lets no program outlive it.
//! - [`lab`]: hosts and links as they run; [`emulator`]: what a link does with a packet.
//! - [`daemon`]: `mpt` processes and their state.
//! - [`traffic`]: what is sent, and what of it arrives.
//! - [`system`]: what is measured, the daemons and what stands beside them.
//! - [`cell`]: one point of an experiment, as data.
//! - [`experiment`]: a question in a file, and the run that answers it with a [`record`].
//! - [`model`]: what a tunnel will do, without running it.
//! - [`results`]: what stays of runs on disk.
//! - [`mod@trace`]: what a daemon traced meanwhile.
//! - [`plot`] and [`report`]: what is made of them: drawings, pages, comparisons.
//! - [`output`]: what a person sees of it.
//! - [`running`]: labs that other terminals may enter.
//! - [`bench`](mod@bench): how fast the daemon is beside what the kernel itself does, without emulation.
//! - [`selftest`]: what the emulator is worth on this machine.
//! - [`digest`]: what tells builds of a program apart.
//! - [`doctor`]: what the machine lacks for all this.

pub mod bench;
pub mod capture;
pub mod cell;
pub mod daemon;
pub mod digest;
pub mod doctor;
pub mod emulator;
pub mod experiment;
pub mod guard;
pub mod lab;
mod machine;
pub mod model;
pub mod netns;
pub mod output;
pub mod plot;
pub mod privilege;
mod processor;
pub mod record;
pub mod report;
pub mod results;
pub mod running;
pub mod selftest;
pub mod stop;
pub mod system;
pub mod topology;
pub mod trace;
pub mod traffic;
