//! Splitting and merging against a plain reference: packets that another library built one by one.

#![allow(clippy::unwrap_used, reason = "in tests that is the assertion")]

mod checksum_partial;
mod coalesce;
mod flow;
mod hostile;
mod rules;
mod split;
mod wire;
