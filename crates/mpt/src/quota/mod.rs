//! Quotas: how much a path may carry in a month, and what it costs the more of that is used.
//!
//! [`Meters`] counts what paths with a quota carry, and keeps that in a [`file`](mod@file) while the daemon
//! does not run. [`month`] is the calendar, [`rule`] what follows from a count. The core, which has no calendar,
//! is told that as a surcharge; the [`reconciler`](crate::tunnel) does so.

mod file;
mod meters;
mod month;
mod rule;
mod state_dir;

pub(crate) use meters::{Key, Meters};
pub(crate) use month::now;
pub(crate) use rule::Use;
pub(crate) use state_dir::prepare;
