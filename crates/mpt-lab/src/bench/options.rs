//! How long and how often is measured.

use std::time::Duration;

use serde::Serialize;

use super::subject::{Subject, Wire};

/// How long and how often is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// How often everything is measured; what is reported are medians.
    pub repetitions: usize,
    /// How many short rounds each repetition begins with, over wires without a rate, for what differs by little.
    pub rounds: usize,
    /// Over what is measured, in the order of the report.
    pub wires: Vec<Wire>,
    /// What is measured, in the order of the report.
    pub subjects: Vec<Subject>,
    /// The two numbers of TCP flows at once: one, and many.
    pub flows: [usize; 2],
    /// How long TCP flows run before they are measured: CUBIC has found its rate within a tenth of
    /// a second where a round trip takes a tenth of a millisecond.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// How long one TCP flow runs before it is measured in a round.
    #[serde(serialize_with = "seconds")]
    pub round_warm_up: Duration,
    /// How long it is measured then.
    #[serde(serialize_with = "seconds")]
    pub round: Duration,
    /// How long TCP flows are measured in a repetition.
    #[serde(serialize_with = "seconds")]
    pub tcp: Duration,
    /// How long round-trip times are measured, once idle and once under load.
    #[serde(serialize_with = "seconds")]
    pub ping: Duration,
    /// How long UDP packets are sent at one rate.
    #[serde(serialize_with = "seconds")]
    pub udp: Duration,
    /// How often the range of UDP rates is halved; 0 leaves UDP out.
    pub udp_halvings: u32,
}

impl Options {
    /// What is measured over what, in the order of the report.
    pub(super) fn combinations(&self) -> impl Iterator<Item = (Wire, Subject)> {
        self.wires.iter().flat_map(|&wire| {
            let measured = self.subjects.iter().filter(move |&&subject| wire.measures(subject));
            measured.map(move |&subject| (wire, subject))
        })
    }

    /// Whether there is anything of that.
    pub fn measures_anything(&self) -> bool {
        self.combinations().next().is_some()
    }

    /// For figures to publish: about twenty minutes.
    pub fn thorough() -> Self {
        Self {
            repetitions: 5,
            rounds: 16,
            wires: Wire::ALL.to_vec(),
            subjects: Subject::ALL.to_vec(),
            flows: [1, 16],
            warm_up: Duration::from_millis(300),
            round_warm_up: Duration::from_millis(100),
            round: Duration::from_millis(200),
            tcp: Duration::from_millis(1500),
            ping: Duration::from_millis(600),
            udp: Duration::from_millis(300),
            udp_halvings: 6,
        }
    }

    /// For a first impression: about seven minutes.
    pub fn quick() -> Self {
        Self {
            repetitions: 3,
            warm_up: Duration::from_millis(100),
            round: Duration::from_millis(150),
            tcp: Duration::from_millis(400),
            ping: Duration::from_millis(200),
            udp: Duration::from_millis(120),
            udp_halvings: 4,
            ..Self::thorough()
        }
    }
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}
