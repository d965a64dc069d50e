//! What a link did, and whether to believe what was measured across it.

use std::collections::BTreeMap;
use std::time::Duration;

use mpt_sim::link::{Count, DropReason, Stats};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::lateness::Lateness;

/// Later than this in one packet of a hundred, a link is not what its profile says.
const LATE: Duration = Duration::from_millis(1);
/// What a stall is: the scheduler took the processor away, beyond what other threads' turns cost.
pub(super) const STALL: Duration = Duration::from_millis(10);
/// A single stall that empties a queue of twice the default depth and is felt by every timer.
const LONG_STALL: Duration = Duration::from_millis(100);
/// The share of the time that may be lost to stalls.
const STALLED_SHARE: f64 = 0.01;

/// What a link did, and whether to believe it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The link's name.
    pub link: String,
    /// Seconds since the record began.
    pub seconds: f64,
    /// From left to right.
    pub forward: DirectionReport,
    /// From right to left.
    pub backward: DirectionReport,
    /// Whether measurements across the link are doubtful.
    pub doubtful: bool,
    /// Why, for people; empty unless `doubtful`.
    pub reasons: Vec<String>,
}

/// What one direction of a link did.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionReport {
    /// What the link's model did with the packets, since the link was started.
    #[serde(serialize_with = "flat")]
    pub stats: Stats,
    /// How late packets left.
    pub lateness: Lateness,
    /// How often packets waited at least 10 ms beyond their time because the thread did not run.
    pub stalls: u64,
    /// The sum of these times, in seconds.
    pub stalled_seconds: f64,
    /// Packets that never entered the link: the sending host's device queue was full.
    pub unread: u64,
    /// Packets that the translator on the link did not let pass.
    pub untranslated: u64,
    /// Packets that left the link but not the device: the receiving host had no room.
    pub unwritten: u64,
    /// Packets that the receiving device refused to take for an IP packet; corruption does that.
    pub refused: u64,
}

impl Report {
    /// Puts the directions together and judges them. `failure` is why the emulator ended early.
    pub(super) fn new(
        link: &str,
        time: Duration,
        [forward, backward]: [DirectionReport; 2],
        failure: Option<&str>,
    ) -> Self {
        let mut reasons: Vec<_> = failure.map(|why| format!("{link}: {why}")).into_iter().collect();
        for (name, direction) in [("forward", &forward), ("backward", &backward)] {
            let doubts = direction.doubts(time);
            reasons.extend(doubts.into_iter().map(|why| format!("{link}, {name}: {why}")));
        }
        Self {
            link: link.to_owned(),
            seconds: time.as_secs_f64(),
            forward,
            backward,
            doubtful: !reasons.is_empty(),
            reasons,
        }
    }
}

impl DirectionReport {
    fn doubts(&self, time: Duration) -> Vec<String> {
        let mut doubts = Vec::new();
        let Lateness { p99, max, .. } = self.lateness;
        if p99 > LATE {
            doubts.push(format!(
                "1 packet in 100 left {:.1} ms or more after its time",
                p99.as_secs_f64() * 1e3
            ));
        }
        if max >= LONG_STALL || self.stalled_seconds > STALLED_SHARE * time.as_secs_f64() {
            doubts.push(format!(
                "the machine stalled {} times, {:.0} ms together, {:.0} ms at the longest",
                self.stalls,
                self.stalled_seconds * 1e3,
                max.as_secs_f64() * 1e3,
            ));
        }
        if self.unread > 0 {
            doubts.push(format!("{} packets were lost before the link", self.unread));
        }
        if self.unwritten > 0 {
            doubts.push(format!("{} packets were lost after the link", self.unwritten));
        }
        doubts
    }
}

/// The model's counters as a flat object: every station a number of packets and bytes.
fn flat<S: Serializer>(stats: &Stats, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Form {
        packets: u64,
        bytes: u64,
    }
    let form = |count: Count| Form { packets: count.packets, bytes: count.bytes };
    let drops: BTreeMap<_, _> =
        DropReason::ALL.iter().map(|&reason| (reason.name(), form(stats.drops(reason)))).collect();
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("offered", &form(stats.offered))?;
    map.serialize_entry("duplicated", &form(stats.duplicated))?;
    map.serialize_entry("delivered", &form(stats.delivered))?;
    map.serialize_entry("in_flight", &form(stats.in_flight))?;
    map.serialize_entry("corrupted", &form(stats.corrupted))?;
    map.serialize_entry("reordered", &form(stats.reordered))?;
    map.serialize_entry("drops", &drops)?;
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    fn quiet() -> DirectionReport {
        DirectionReport {
            stats: Stats::default(),
            lateness: Lateness::default(),
            stalls: 0,
            stalled_seconds: 0.0,
            unread: 0,
            unwritten: 0,
            untranslated: 0,
            refused: 3,
        }
    }

    #[test]
    fn an_idle_link_is_accepted() {
        let report = Report::new("a", TIME, [quiet(), quiet()], None);
        assert!(!report.doubtful && report.reasons.is_empty());
    }

    #[test]
    fn every_doubt_is_named_with_its_direction() {
        let late = Lateness { p99: Duration::from_micros(1500), ..Lateness::default() };
        let long = Lateness { max: Duration::from_millis(120), ..Lateness::default() };
        for (direction, part) in [
            (DirectionReport { lateness: late, ..quiet() }, "1 packet in 100 left 1.5 ms"),
            (DirectionReport { lateness: long, ..quiet() }, "120 ms at the longest"),
            (DirectionReport { stalled_seconds: 0.2, stalls: 9, ..quiet() }, "9 times, 200 ms"),
            (DirectionReport { unread: 4, ..quiet() }, "4 packets were lost before"),
            (DirectionReport { unwritten: 5, ..quiet() }, "5 packets were lost after"),
        ] {
            let report = Report::new("a", TIME, [quiet(), direction], None);
            assert!(report.doubtful);
            let [reason] = report.reasons.as_slice() else { panic!("{:?}", report.reasons) };
            assert!(reason.starts_with("a, backward: ") && reason.contains(part), "{reason}");
        }
        let report = Report::new("a", TIME, [quiet(), quiet()], Some("the device is gone"));
        assert_eq!(report.reasons, ["a: the device is gone"]);
    }

    #[test]
    fn the_counters_of_the_model_are_data() {
        let text = serde_json::to_string(&Report::new("a", TIME, [quiet(), quiet()], None));
        let value: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(value["forward"]["stats"]["drops"]["queue"]["packets"], 0);
        assert_eq!(value["forward"]["lateness"]["p99_seconds"], 0.0);
    }
}
