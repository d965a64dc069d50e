//! The result of a run as data.

use std::fs;
use std::thread;

use anyhow::Result;
use serde::{Serialize, Serializer};

use super::options::Options;
use super::ratio::{self, Named};
use super::samples::{Figure, Key, Quantity, Samples};
use super::subject::{Subject, Wire};
use crate::traffic::spread;

/// Everything a run has found.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The machine it ran on.
    pub machine: Machine,
    /// How long and how often was measured.
    pub options: Options,
    /// What this machine lacks: the kernel's support, or a program.
    pub skipped: Vec<Skipped>,
    /// The medians of ratios taken within each repetition, and the means of the middle half of those of rounds; `null` for what was not measured.
    #[serde(serialize_with = "middles")]
    pub ratios: Vec<Named>,
    /// The same with spread and single values.
    #[serde(serialize_with = "figures")]
    pub ratios_in_full: Vec<Named>,
    /// Seconds of processor time per gigabit of one TCP flow: of both daemons, of the machine.
    #[serde(serialize_with = "middles")]
    pub cpu_per_gigabit: Vec<Named>,
    /// Milliseconds that a tunnel adds to the round trip without one.
    #[serde(serialize_with = "middles")]
    pub ping: Vec<Named>,
    /// What was measured of each subject over each wire.
    pub results: Vec<SubjectResult>,
}

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The kernel's release, such as `6.18.4`.
    pub kernel: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Load of other processes in processors at the beginning of the repetitions, as the median.
    /// Above about 0.05 all figures are doubtful.
    pub background: f64,
}

/// A subject that was left out.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// Over which wire.
    pub wire: Wire,
    /// Which.
    pub subject: Subject,
    /// What is missing.
    pub why: String,
}

/// What was measured of one subject over one kind of wire.
#[derive(Clone, Debug, Serialize)]
pub struct SubjectResult {
    /// The kind of wire.
    pub wire: Wire,
    /// The subject.
    pub subject: Subject,
    /// The figures by the name of the quantity, which ends in its unit.
    #[serde(serialize_with = "figures")]
    pub figures: Vec<Named>,
}

impl Record {
    pub(super) fn new(
        options: &Options,
        samples: &Samples,
        skipped: Vec<Skipped>,
        background: &[f64],
    ) -> Result<Self> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let machine = Machine {
            kernel: kernel.trim().to_owned(),
            processors: thread::available_parallelism()?.get(),
            background: spread::median(background).unwrap_or(0.0),
        };
        let ratios = ratio::ratios(samples, options);
        let result = |(wire, subject)| SubjectResult {
            wire,
            subject,
            figures: samples
                .quantities(wire, subject)
                .into_iter()
                .map(|quantity| (quantity.id(), samples.figure(Key { wire, subject, quantity })))
                .collect(),
        };
        Ok(Self {
            machine,
            options: options.clone(),
            skipped,
            ratios_in_full: ratios.clone(),
            ratios,
            cpu_per_gigabit: ratio::times(samples, options),
            ping: ratio::pings(samples),
            results: options.combinations().map(result).collect(),
        })
    }

    /// One figure; `None` if it was not measured.
    pub(super) fn figure(
        &self,
        wire: Wire,
        subject: Subject,
        quantity: Quantity,
    ) -> Option<&Figure> {
        let result =
            self.results.iter().find(|result| (result.wire, result.subject) == (wire, subject))?;
        let id = quantity.id();
        let (_, figure) = result.figures.iter().find(|(name, _)| *name == id)?;
        figure.as_ref()
    }

    /// One ratio by its name; `None` if it was not measured.
    pub fn ratio(&self, name: &str) -> Option<&Figure> {
        self.ratios.iter().find(|(candidate, _)| candidate == name)?.1.as_ref()
    }
}

/// An object of numbers.
fn middles<S: Serializer>(named: &[Named], serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_map(named.iter().map(|(name, figure)| (name, figure.as_ref().map(Figure::middle))))
}

/// An object of figures.
fn figures<S: Serializer>(named: &[Named], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(named.iter().map(|(name, figure)| (name, figure)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_null() {
        let options = Options::quick();
        let key = |subject| Key { wire: Wire::WireLike, subject, quantity: Quantity::Goodput(1) };
        let mut samples = Samples::default();
        samples.push(0, key(Subject::MPT1), 3.0);
        samples.push(0, key(Subject::Raw), 4.0);
        let skipped = vec![Skipped {
            wire: Wire::WireLike,
            subject: Subject::Vxlan,
            why: "it is absent".into(),
        }];
        let record = Record::new(&options, &samples, skipped, &[0.5, 0.0, 0.1]).unwrap();
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["ratios"]["wire_1path_over_raw"], 0.75);
        assert!(json["ratios"].as_object().unwrap().contains_key("wire_1path_over_vxlan"));
        assert!(json["ratios"]["wire_1path_over_vxlan"].is_null());
        assert_eq!(json["ratios_in_full"]["wire_1path_over_raw"]["values"][0], 0.75);
        assert_eq!(json["skipped"][0]["subject"], "vxlan");
        assert_eq!(json["machine"]["background"], 0.1);
        assert_eq!(json["options"]["tcp"], 0.4);
        let results = json["results"].as_array().unwrap();
        assert_eq!(results.len(), 2 * Subject::ALL.len() + 3);
        let found =
            results.iter().find(|result| result["wire"] == "wire" && result["subject"] == "mpt-1");
        assert_eq!(found.unwrap()["figures"]["goodput_gbps_1_flows"]["median"], 3.0);
    }
}
