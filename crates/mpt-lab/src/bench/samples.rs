//! Everything that was measured, each value with its place in the run.

use serde::{Serialize, Serializer};

use super::subject::{Subject, Wire};
use crate::traffic::spread;

/// What is measured of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// The same as [`Self::DaemonTime`] of one flow, in a round in which each host has its own processors.
    BoundDaemonTime,
    /// The same as [`Self::Goodput`] of one flow, in such a round.
    BoundGoodput,
    /// Processor time of both daemons, in seconds per gigabit delivered by this many TCP flows.
    DaemonTime(usize),
    /// Bits per second / 10^9 that this many TCP flows delivered to the application.
    Goodput(usize),
    /// Bytes carried by the link that carried least, relative to an equal share: 1 is perfect.
    LeastShare(usize),
    /// Processor time of the whole machine, in seconds per gigabit delivered by this many TCP
    /// flows.
    MachineTime(usize),
    /// Largest resident memory of a daemon after all that, in MiB.
    Memory,
    /// Goodput of this many TCP flows divided by the ideal.
    OfIdeal(usize),
    /// Median round-trip time on an idle network, in milliseconds.
    PingIdleP50,
    /// The 99th percentile of the same.
    PingIdleP99,
    /// Median round-trip time beside one TCP flow, in milliseconds.
    PingLoadedP50,
    /// The 99th percentile of the same.
    PingLoadedP99,
    /// Packets per second / 1000 with this many bytes of UDP payload that arrived, at the highest
    /// rate with less than 1 % loss.
    UdpRate(usize),
}

impl Quantity {
    /// Whether it is measured in rounds.
    pub(super) fn is_of_rounds(self) -> bool {
        matches!(self, Self::BoundDaemonTime | Self::BoundGoodput)
    }

    /// A name for programs.
    pub(super) fn id(self) -> String {
        match self {
            Self::BoundDaemonTime => "bound_daemons_s_per_gbit".into(),
            Self::BoundGoodput => "bound_goodput_gbps".into(),
            Self::DaemonTime(flows) => format!("daemons_s_per_gbit_{flows}_flows"),
            Self::Goodput(flows) => format!("goodput_gbps_{flows}_flows"),
            Self::LeastShare(flows) => format!("least_share_{flows}_flows"),
            Self::MachineTime(flows) => format!("machine_s_per_gbit_{flows}_flows"),
            Self::Memory => "daemon_memory_mib".into(),
            Self::OfIdeal(flows) => format!("of_ideal_{flows}_flows"),
            Self::PingIdleP50 => "ping_idle_p50_ms".into(),
            Self::PingIdleP99 => "ping_idle_p99_ms".into(),
            Self::PingLoadedP50 => "ping_loaded_p50_ms".into(),
            Self::PingLoadedP99 => "ping_loaded_p99_ms".into(),
            Self::UdpRate(size) => format!("udp_{size}_bytes_kpps"),
        }
    }
}

/// What was measured, over what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) wire: Wire,
    pub(super) subject: Subject,
    pub(super) quantity: Quantity,
}

/// One value.
#[derive(Clone, Copy, Debug)]
struct Sample {
    repetition: usize,
    key: Key,
    value: f64,
}

/// All values of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    /// Adds a value. Each key has at most one per repetition, or per round where there are several in each.
    pub(super) fn push(&mut self, repetition: usize, key: Key, value: f64) {
        self.0.push(Sample { repetition, key, value });
    }

    /// The figure of a key; `None` if it was never measured.
    pub(super) fn figure(&self, key: Key) -> Option<Figure> {
        Figure::of(self.of(key).map(|sample| sample.value).collect())
    }

    /// What `combine` makes of two values of one repetition, over all repetitions that have both.
    ///
    /// The machine's speed wanders over a run; between two values of one repetition it has little
    /// time to.
    pub(super) fn paired(
        &self,
        first: Key,
        second: Key,
        combine: impl Fn(f64, f64) -> f64,
    ) -> Option<Figure> {
        let pairs = self.of(first).filter_map(|one| {
            let other = self.of(second).find(|other| other.repetition == one.repetition)?;
            Some(combine(one.value, other.value)).filter(|value| value.is_finite())
        });
        Figure::of(pairs.collect())
    }

    /// All that was measured of a subject over a wire, in the order of its first measurement.
    pub(super) fn quantities(&self, wire: Wire, subject: Subject) -> Vec<Quantity> {
        let mut found = Vec::new();
        for Sample { key, .. } in &self.0 {
            if (key.wire, key.subject) == (wire, subject) && !found.contains(&key.quantity) {
                found.push(key.quantity);
            }
        }
        found
    }

    fn of(&self, key: Key) -> impl Iterator<Item = &Sample> {
        self.0.iter().filter(move |sample| sample.key == key)
    }
}

/// One quantity over all repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    values: Vec<f64>,
    middle: f64,
}

impl Figure {
    /// The figure of these values, in the order of the repetitions; `None` if there are none.
    pub(super) fn of(values: Vec<f64>) -> Option<Self> {
        let middle = spread::median(&values)?;
        Some(Self { values, middle })
    }

    /// The same, of many rounds: the [mean of the middle half](spread::middle_half) stands for them.
    pub(super) fn of_rounds(self) -> Self {
        let middle = spread::middle_half(&self.values).unwrap_or(self.middle);
        Self { middle, ..self }
    }

    /// What stands for all values: their median, or of the ratios of rounds the mean of the middle half.
    pub fn middle(&self) -> f64 {
        self.middle
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            middle: f64,
            median: f64,
            min: f64,
            max: f64,
            values: &'a [f64],
        }
        let form = Form {
            middle: self.middle,
            median: spread::median(&self.values).unwrap_or(self.middle),
            min: self.min(),
            max: self.max(),
            values: &self.values,
        };
        form.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: Key = key(Subject::Raw);
    const MPT: Key = key(Subject::MPT1);

    const fn key(subject: Subject) -> Key {
        Key { wire: Wire::PassThrough, subject, quantity: Quantity::Goodput(1) }
    }

    fn samples(values: &[(usize, Key, f64)]) -> Samples {
        let mut samples = Samples::default();
        for &(repetition, key, value) in values {
            samples.push(repetition, key, value);
        }
        samples
    }

    #[test]
    fn a_figure_is_the_median_with_its_spread() {
        let samples = samples(&[(0, RAW, 9.0), (1, RAW, 2.0), (2, RAW, 4.0), (0, MPT, 100.0)]);
        let figure = samples.figure(RAW).unwrap();
        assert_eq!((figure.middle(), figure.min(), figure.max()), (4.0, 2.0, 9.0));
        assert_eq!(samples.figure(Key { wire: Wire::WireLike, ..RAW }), None);
    }

    #[test]
    fn the_mean_of_the_middle_half_stands_for_rounds() {
        let rounds: Vec<_> = (0..8).map(|round| (round, RAW, [1.0, 5.0][round / 5])).collect();
        let figure = samples(&rounds).figure(RAW).unwrap();
        assert_eq!((figure.middle(), figure.clone().of_rounds().middle()), (1.0, 2.0));
        let json = serde_json::to_value(figure.of_rounds()).unwrap();
        assert_eq!((json["middle"].as_f64(), json["median"].as_f64()), (Some(2.0), Some(1.0)));
    }

    #[test]
    fn a_ratio_is_taken_within_each_repetition() {
        // A machine that gets slower: the ratio of the medians would be 0.5 as well, but for the
        // repetition that is missing.
        let samples = samples(&[
            (0, RAW, 40.0),
            (0, MPT, 20.0),
            (1, MPT, 1.0),
            (2, RAW, 4.0),
            (2, MPT, 2.0),
            (3, RAW, 0.0),
            (3, MPT, 2.0),
        ]);
        let ratio = samples.paired(MPT, RAW, |one, other| one / other).unwrap();
        assert_eq!(ratio.values, [0.5, 0.5], "what was measured once or divided by 0 is left out");
        assert_eq!(samples.paired(MPT, key(Subject::Vxlan), |one, _| one), None);
    }

    #[test]
    fn quantities_are_named_once() {
        let loaded = Key { quantity: Quantity::PingLoadedP99, ..RAW };
        let samples = samples(&[(0, RAW, 1.0), (0, MPT, 1.0), (0, loaded, 1.0), (1, RAW, 1.0)]);
        let found = samples.quantities(Wire::PassThrough, Subject::Raw);
        assert_eq!(found, [Quantity::Goodput(1), Quantity::PingLoadedP99]);
    }
}
