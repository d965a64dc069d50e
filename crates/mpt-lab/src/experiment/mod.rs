//! One question about a tunnel, as a file, and the run that answers it.
//!
//! An [`Experiment`] ([`plan`], written as in [`file`](mod@file)) names the links, the tunnel over
//! them and the traffic. The [`runner`] builds the lab, measures every link alone with plain TCP,
//! starts a daemon on either host with the configuration of
//! [`cell::configuration`](crate::cell::configuration), measures the tunnel over all links, and, if
//! the experiment has an outage, measures once more while links are cut and restored. Each
//! repetition has its own lab, seeded from the experiment's seed. What it costs to carry a byte,
//! and so what could be reached at best, is the arithmetic of [`cell::ideal`](crate::cell::ideal).
//!
//! The runner reports its progress to a [`watch::Watch`], and prints nothing itself.

mod axis;
mod beside;
mod cell;
mod closest;
pub mod file;
mod follow;
pub mod library;
mod load;
mod meter;
mod mistake;
mod outcome;
pub mod plan;
mod prediction;
mod quick;
pub mod repetition;
mod rival;
pub mod runner;
mod scale;
mod setup;
mod step;
mod trace;
pub mod watch;

pub use closest::meant;
pub use file::FileError;
pub use plan::Experiment;
pub use repetition::Repetition;
pub use setup::setup;
