//! What a daemon traced (`mpt trace`), as series that can be drawn.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use mpt_control::{Finding, PathExplanation, TraceLine, Traced};

/// Samples of what was sent are taken together over this time in seconds: at 20 samples per second single ones show
/// little but the grouping of datagrams.
const TOGETHER: f64 = 0.2;

/// Values over time: seconds since the begin of the trace, and the value.
pub type Points = Vec<(f64, f64)>;

/// What a trace says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The paths, each named after its connection too if there are several.
    pub paths: Vec<PathTrace>,
    /// What waited in front of the paths of all connections, in kB.
    pub waiting_kb: Points,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// How long it is, in seconds.
    pub seconds: f64,
    /// Lines that are missing.
    pub missed: u64,
    /// Whether its end is there; it is not if its writer was killed.
    pub is_whole: bool,
}

/// What a trace says of a path. What is not known at a time has no point there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathTrace {
    /// Its name.
    pub name: String,
    /// What was sent on it, in Mbit/s of UDP payload.
    pub sent_mbps: Points,
    /// What it was believed to carry, in Mbit/s of IP packets.
    pub rate_mbps: Points,
    /// What stood in its queue, in ms.
    pub queue_ms: Points,
    /// How much longer it takes than the fastest, in ms.
    pub skew_ms: Points,
    /// What waited for it and had its number, in kB.
    pub committed_kb: Points,
    /// Its share of the bytes, in percent.
    pub share_percent: Points,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the begin of the trace.
    pub at: f64,
    /// The index of the path, if it happened to one that has samples.
    pub path: Option<usize>,
    /// Its kind; `None` for what `mpt status` shows too.
    pub kind: Option<Kind>,
    /// What, in words.
    pub text: String,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The path was full for the first time.
    Full,
    /// Its rate changed.
    Rate,
    /// Its rate was cut because of loss.
    Cut,
    /// Its queue was emptied to see its delay.
    Drained,
    /// Its route is longer.
    Longer,
    /// Others keep a queue on its way.
    Rival,
    /// They do not any more.
    Alone,
    /// It was stopped because it lost too much.
    Stopped,
    /// It is used again.
    Resumed,
}

impl Kind {
    /// All of them, in the order of their marks.
    pub const ALL: [Self; 9] = [
        Self::Full,
        Self::Rate,
        Self::Cut,
        Self::Drained,
        Self::Longer,
        Self::Rival,
        Self::Alone,
        Self::Stopped,
        Self::Resumed,
    ];

    /// In a legend.
    pub fn words(self) -> &'static str {
        match self {
            Self::Full => "full for the first time",
            Self::Rate => "rate changed",
            Self::Cut => "rate cut because of loss",
            Self::Drained => "queue emptied to see the delay",
            Self::Longer => "route longer",
            Self::Rival => "others keep a queue",
            Self::Alone => "no queue of others",
            Self::Stopped => "stopped because of loss",
            Self::Resumed => "used again",
        }
    }
}

impl Trace {
    /// Reads a file that `mpt trace` has written.
    ///
    /// # Errors
    ///
    /// It cannot be read, or no line of it is one of a trace.
    pub fn read(file: &Path) -> Result<Self> {
        let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut lines: Vec<TraceLine> = Vec::new();
        for line in BufReader::new(open).lines() {
            let line = line.with_context(|| format!("cannot read {}", file.display()))?;
            // The last one may be torn.
            lines.extend(serde_json::from_str::<TraceLine>(&line));
        }
        let known = lines.iter().any(|line| line.what != Traced::Other);
        ensure!(known, "{} is no trace: `mpt trace --output FILE` writes one", file.display());
        Ok(Self::of(lines))
    }

    /// What these lines say.
    pub fn of(mut lines: Vec<TraceLine>) -> Self {
        lines.sort_by(|one, other| one.at_seconds.total_cmp(&other.at_seconds));
        let mut trace = Self::default();
        let begin = lines.first().map_or(0.0, |line| line.at_seconds);
        let several = {
            let mut names = lines.iter().filter_map(|line| line.connection.as_ref());
            let first = names.next();
            names.any(|name| Some(name) != first)
        };
        let mut places: BTreeMap<String, Place> = BTreeMap::new();
        for line in lines {
            let at = line.at_seconds - begin;
            trace.seconds = trace.seconds.max(at);
            let named = |path: &str| match &line.connection {
                Some(connection) if several => format!("{connection}/{path}"),
                _ => path.to_owned(),
            };
            match line.what {
                Traced::Path(sample) => {
                    let name = named(&sample.name);
                    let number = places.len();
                    let place = places.entry(name.clone()).or_insert_with(|| {
                        trace.paths.push(PathTrace { name, ..PathTrace::default() });
                        Place { number, since: at, ..Place::default() }
                    });
                    place.add(at, &sample, &mut trace.paths[place.number]);
                }
                Traced::Queue(queue) => {
                    trace.waiting_kb.push((at, queue.waiting_bytes as f64 / 1e3));
                }
                Traced::Event { path, what } => {
                    let path = places.get(&named(&path)).map(|place| place.number);
                    if let Some((kind, text)) = words(&what) {
                        trace.events.push(Event { at, path, kind: Some(kind), text });
                    }
                }
                Traced::Status { path, text } => {
                    let path = path.and_then(|path| places.get(&named(&path)));
                    let path = path.map(|place| place.number);
                    trace.events.push(Event { at, path, kind: None, text });
                }
                Traced::Missed { lines } => trace.missed += lines,
                Traced::End { .. } => trace.is_whole = true,
                Traced::Begin { .. } | Traced::Sequence(_) | Traced::Other => {}
            }
        }
        trace
    }
}

/// Where the samples of a path go, and those that are taken together.
#[derive(Debug, Default)]
struct Place {
    number: usize,
    since: f64,
    bytes: u64,
    share: f64,
    samples: u32,
}

impl Place {
    fn add(&mut self, at: f64, sample: &PathExplanation, path: &mut PathTrace) {
        self.bytes += sample.sent.bytes;
        self.share += sample.share;
        self.samples += 1;
        let seconds = at - self.since;
        if seconds >= TOGETHER {
            let middle = self.since + seconds / 2.0;
            path.sent_mbps.push((middle, self.bytes as f64 * 8.0 / 1e6 / seconds));
            path.share_percent.push((middle, self.share * 100.0 / f64::from(self.samples)));
            *self = Self { number: self.number, since: at, ..Self::default() };
        }
        let Some(estimate) = &sample.estimate else { return };
        path.rate_mbps.extend(estimate.rate.map(|rate| (at, rate as f64 / 1e6)));
        path.queue_ms.push((at, estimate.queueing_ms));
        path.skew_ms.extend(estimate.skew_ms.map(|skew| (at, skew)));
        path.committed_kb.push((at, estimate.committed_bytes as f64 / 1e3));
    }
}

/// A finding in words, without its path.
fn words(what: &Finding) -> Option<(Kind, String)> {
    let mbps = |bits: u64| format!("{:.1}", bits as f64 / 1e6);
    Some(match *what {
        Finding::Full { rate, queueing_ms } => {
            (Kind::Full, format!("full: {} Mbit/s, {queueing_ms:.1} ms in its queue", mbps(rate)))
        }
        Finding::Rate { from, to } => {
            (Kind::Rate, format!("rate {} to {} Mbit/s", mbps(from), mbps(to)))
        }
        Finding::Cut { from, to, loss } => {
            let loss = loss * 100.0;
            (Kind::Cut, format!("rate cut {} to {} Mbit/s, {loss:.1} % lost", mbps(from), mbps(to)))
        }
        Finding::Drained { before_ms, after_ms } => {
            (Kind::Drained, format!("queue emptied: {before_ms:.1} to {after_ms:.1} ms"))
        }
        Finding::Longer { by_ms } => (Kind::Longer, format!("route longer by {by_ms:.1} ms")),
        Finding::Rival { queueing_ms } => {
            (Kind::Rival, format!("others keep a queue: {queueing_ms:.1} ms"))
        }
        Finding::Alone { queueing_ms } => {
            (Kind::Alone, format!("no queue of others any more: {queueing_ms:.1} ms"))
        }
        Finding::Stopped { loss } => {
            (Kind::Stopped, format!("stopped, {:.1} % lost", loss * 100.0))
        }
        Finding::Resumed => (Kind::Resumed, "used again".to_owned()),
        Finding::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use mpt_control::{Estimate, QueueExplanation, Traffic};

    use super::*;

    fn line(at_seconds: f64, connection: &str, what: Traced) -> TraceLine {
        let connection = Some(connection.to_owned());
        TraceLine { at_seconds, connection, what, ..TraceLine::default() }
    }

    fn sample(name: &str, bytes: u64) -> Traced {
        Traced::Path(Box::new(PathExplanation {
            name: name.into(),
            sent: Traffic { packets: 1, bytes },
            share: 0.5,
            estimate: Some(Estimate {
                rate: Some(50_000_000),
                queueing_ms: 2.0,
                committed_bytes: 3000,
                ..Estimate::default()
            }),
            ..PathExplanation::default()
        }))
    }

    #[test]
    fn samples_become_series_from_the_begin_of_the_trace() {
        let mut lines = vec![];
        for number in 0..=20 {
            let at = 100.0 + f64::from(number) * 0.05;
            lines.push(line(at, "a", sample("fibre", 62_500)));
            let queue = QueueExplanation { waiting_bytes: 5000, ..QueueExplanation::default() };
            lines.push(line(at, "a", Traced::Queue(queue)));
        }
        lines.push(line(
            100.5,
            "a",
            Traced::Event {
                path: "fibre".into(),
                what: Finding::Rate { from: 50_000_000, to: 20_000_000 },
            },
        ));
        lines.push(line(100.7, "a", Traced::Status { path: None, text: "a session began".into() }));
        let trace = Trace::of(lines);
        assert!((trace.seconds - 1.0).abs() < 1e-9 && !trace.is_whole);
        let [path] = trace.paths.as_slice() else { panic!("{trace:?}") };
        assert_eq!(path.name, "fibre");
        for (at, mbps) in &path.sent_mbps[1..] {
            assert!((mbps - 10.0).abs() < 1e-6, "{at}: {mbps}");
        }
        assert_eq!(
            (path.rate_mbps[0], path.queue_ms[0].1, path.committed_kb[0].1),
            ((0.0, 50.0), 2.0, 3.0)
        );
        assert_eq!(trace.waiting_kb.len(), 21);
        let events: Vec<_> =
            trace.events.iter().map(|it| (it.path, it.kind, it.text.as_str())).collect();
        let expected = [
            (Some(0), Some(Kind::Rate), "rate 50.0 to 20.0 Mbit/s"),
            (None, None, "a session began"),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn paths_of_several_connections_are_told_apart() {
        let lines = vec![
            line(1.0, "a", sample("fibre", 1)),
            line(1.0, "b", sample("fibre", 1)),
            TraceLine {
                at_seconds: 2.0,
                what: Traced::End { reason: "time".into(), missed: 0 },
                ..TraceLine::default()
            },
        ];
        let trace = Trace::of(lines);
        let names: Vec<_> = trace.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(names, ["a/fibre", "b/fibre"]);
        assert!(trace.is_whole);
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.jsonl");
        std::fs::write(&file, "{\"a\":1}\nhello\n").unwrap();
        let error = Trace::read(&file).unwrap_err().to_string();
        assert!(error.contains("is no trace"), "{error}");
        std::fs::write(&file, "{\"kind\":\"missed\",\"lines\":2}\n{\"kind\":\"pa").unwrap();
        assert_eq!(Trace::read(&file).unwrap().missed, 2);
    }
}
