//! Single values of an experiment file, checked where they are read so that an error points at them.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::traffic::udp;

/// The longest run, in seconds: bounds what its samples take.
const LONGEST_RUN: f64 = 600.0;

/// Seconds, zero allowed.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.0..=LONGEST_RUN, "seconds")
}

/// Length of a run in seconds.
pub(crate) fn run_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 1.0..=LONGEST_RUN, "seconds")
}

/// Length of a long run in seconds.
pub(crate) fn long_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    // So that what is left after the first ten seconds is worth the name of a goodput.
    within(deserializer, 20.0..=LONGEST_RUN, "seconds").map(Some)
}

/// A rate or an interval.
pub(crate) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    within(deserializer, 0.001..=100_000.0, "a number")
}

/// Packets in a reorder window.
pub(crate) fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 0..=10_000, "packets")
}

/// Flows or calls at once.
pub(crate) fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=200, "flows")
}

/// Buffers of a socket in MB.
pub(crate) fn buffer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    within(deserializer, 1..=1000, "MB").map(Some)
}

/// Size of a file in MB.
pub(crate) fn file_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(deserializer, 1..=10_000, "MB")
}

/// Payload of a UDP packet.
pub(crate) fn payload<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    within(deserializer, udp::HEADER..=udp::LARGEST, "bytes")
}

/// Inner MTU. IPv6 asks for 1280 at least (RFC 8200 section 5).
pub(crate) fn mtu<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1280..=9000, "bytes").map(Some)
}

/// Runs of an experiment.
pub(crate) fn repetitions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, 1..=100, "repetitions")
}

fn within<'de, D, T>(deserializer: D, range: RangeInclusive<T>, unit: &str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + PartialOrd + Display,
{
    let value = T::deserialize(deserializer)?;
    if range.contains(&value) {
        Ok(value)
    } else {
        let (least, most) = range.into_inner();
        Err(D::Error::custom(format!("{value} is out of range: {least} to {most} {unit}")))
    }
}
