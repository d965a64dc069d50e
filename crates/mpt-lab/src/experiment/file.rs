//! Experiment files: TOML, the links as in [`crate::topology`], everything else optional.
//!
//! ```toml
//! title = "Two uneven links"
//! question = "How much of both does one TCP flow get?"
//! seed = 1                      # every random choice of every link follows from it
//! repetitions = 1               # each in a fresh lab, with the next seed
//!
//! [[link]]
//! name = "fibre"
//! rate_mbps = 40
//! delay_ms = 5
//!
//! [[link]]
//! name = "lte"
//! rate_mbps = 20
//! delay_ms = 15
//!
//! [tunnel]
//! weights = [40, 20]            # one per link; all 1 if absent
//! profile = "classic"           # or "auto"
//! reorder = { window = 4096, max_delay = 0.1, early_release = true, late = "deliver" }
//! keepalive = 0.5               # seconds
//! dead_time = 1.75              # seconds
//! inner = 4                     # IP version of the inner packets
//!
//! [traffic]
//! kind = "tcp"                  # "udp" with rate_mbps and size; "ping" with interval
//! seconds = 12
//! omit = 2                      # seconds of start-up that are measured apart
//! congestion = "cubic"
//! flows = 1
//! direction = "forward"         # left to right; or "backward"
//!
//! [outage]                      # one more TCP flow, during which links are silent black holes
//! seconds = 20
//! cut = [{ link = "lte", at = 6, until = 12, direction = "both" }]
//! ```
//!
//! Each mistake is told with line and caret, whether it is one of spelling or of meaning.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Deserialize;
use toml::Spanned;

use super::plan::{Cut, Experiment, Kind, Outage, Traffic, Tunnel};
use super::value;
use crate::emulator::Direction;
use crate::topology::{Addressing, LinkSpec, Topology};
use crate::traffic::{ping, udp};

/// The shortest time over which a goodput is worth the name, in seconds.
const LEAST_MEASURED: f64 = 8.0;

/// Weights as the scheduler takes them.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;

/// Why a file is no experiment.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read at all.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file's name.
        path: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// It says something that cannot be meant; line and caret included.
    #[error("{0}")]
    Meaning(Report),
}

/// A mistake, its place, and the line it stands in, ready to be printed.
#[derive(Debug)]
pub struct Report(String);

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first mistake in it.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|source| FileError::Read { path: name.clone(), source })?;
        Self::parse(&name, &text)
    }

    /// Reads the text of a file called `name`.
    ///
    /// # Errors
    ///
    /// The first mistake in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        let form: Result<Form, _> = toml::from_str(text);
        let checked = form.map_err(|error| Mistake {
            // A mistake without a place is one of the whole: something is missing.
            span: error.span().unwrap_or(0..0),
            message: error.message().to_owned(),
        });
        checked.and_then(check).map_err(|mistake| FileError::Meaning(mistake.report(name, text)))
    }
}

/// An experiment as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    title: String,
    #[serde(default)]
    question: String,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default = "once", deserialize_with = "value::repetitions")]
    repetitions: u32,
    #[serde(default)]
    addressing: Addressing,
    #[serde(default = "absent")]
    link: Spanned<Vec<LinkSpec>>,
    #[serde(default = "absent")]
    tunnel: Spanned<Tunnel>,
    #[serde(default = "absent")]
    traffic: Spanned<Traffic>,
    outage: Option<OutageForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutageForm {
    #[serde(deserialize_with = "value::run_seconds")]
    seconds: f64,
    cut: Vec<Spanned<CutForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutForm {
    link: Spanned<String>,
    #[serde(deserialize_with = "value::seconds")]
    at: f64,
    #[serde(deserialize_with = "value::seconds")]
    until: f64,
    #[serde(default = "both")]
    direction: Direction,
}

fn one() -> u64 {
    1
}

fn once() -> u32 {
    1
}

/// The default of a table that is not there; a mistake in it points at the file's beginning.
fn absent<T: Default>() -> Spanned<T> {
    Spanned::new(0..0, T::default())
}

fn both() -> Direction {
    Direction::Both
}

/// What cannot be meant, and the bytes of the file that say it.
struct Mistake {
    span: Range<usize>,
    message: String,
}

impl Mistake {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    fn report(&self, name: &str, text: &str) -> Report {
        let marked = AnnotationKind::Primary.span(self.span.clone());
        let snippet = Snippet::source(text).path(name).annotation(marked);
        let group = Level::ERROR.primary_title(self.message.trim_end()).element(snippet);
        Report(Renderer::plain().render(&[group]))
    }
}

/// Looks at what only makes sense together.
fn check(form: Form) -> Result<Experiment, Mistake> {
    let links = form.link.span();
    let mut topology = Topology::new(form.seed, form.link.into_inner())
        .map_err(|error| Mistake::new(links, error.to_string()))?;
    topology.addressing = form.addressing;
    let tunnel = check_tunnel(form.tunnel, topology.links.len())?;
    let traffic = check_traffic(form.traffic)?;
    let outage = form.outage.map(|outage| check_outage(outage, &topology)).transpose()?;
    Ok(Experiment {
        title: form.title,
        question: form.question,
        repetitions: form.repetitions,
        topology,
        tunnel,
        traffic,
        outage,
    })
}

fn check_tunnel(form: Spanned<Tunnel>, links: usize) -> Result<Tunnel, Mistake> {
    let span = form.span();
    let mut tunnel = form.into_inner();
    if tunnel.weights.is_empty() {
        tunnel.weights = vec![1; links];
    }
    if tunnel.weights.len() != links {
        let given = tunnel.weights.len();
        let message =
            format!("{given} weights, but {links} in [[link]]: give one per link, in their order");
        return Err(Mistake::new(span, message));
    }
    if let Some(weight) = tunnel.weights.iter().find(|weight| !WEIGHTS.contains(weight)) {
        let message =
            format!("a weight of {weight}: weights are {} to {}", WEIGHTS.start(), WEIGHTS.end());
        return Err(Mistake::new(span, message));
    }
    Ok(tunnel)
}

fn check_traffic(form: Spanned<Traffic>) -> Result<Traffic, Mistake> {
    let span = form.span();
    let traffic = form.into_inner();
    let Traffic { seconds, omit, .. } = traffic;
    let message = match traffic.kind {
        Kind::Tcp | Kind::Udp if seconds - omit < LEAST_MEASURED => format!(
            "{seconds} s less {omit} s of start-up leave under {LEAST_MEASURED} s to measure: \
             lengthen `seconds`"
        ),
        Kind::Udp
            if traffic.rate_mbps * 1e6 / 8.0 / traffic.size as f64 * seconds
                > udp::MOST_PACKETS as f64 =>
        {
            format!("more than {} packets: lower `rate_mbps` or `seconds`", udp::MOST_PACKETS)
        }
        Kind::Ping if seconds / traffic.interval > f64::from(ping::MOST_REQUESTS) => {
            format!("more than {} requests: lengthen `interval`", ping::MOST_REQUESTS)
        }
        Kind::Ping | Kind::Tcp | Kind::Udp => return Ok(traffic),
    };
    Err(Mistake::new(span, message))
}

fn check_outage(form: OutageForm, topology: &Topology) -> Result<Outage, Mistake> {
    let seconds = form.seconds;
    let cuts = form.cut.into_iter().map(|cut| {
        let span = cut.span();
        let CutForm { link, at, until, direction } = cut.into_inner();
        if until <= at || until > seconds {
            let message = format!(
                "a cut from {at} s until {until} s does not fit: it must end after it began, within \
                 the outage's {seconds} s"
            );
            return Err(Mistake::new(span, message));
        }
        let name = link.as_ref();
        let Some(link) = topology.links.iter().position(|candidate| candidate.name == *name) else {
            return Err(Mistake::new(link.span(), format!("no link is called `{name}`")));
        };
        Ok(Cut { link, at, until, direction })
    });
    Ok(Outage { seconds, cuts: cuts.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: &str = "title = 't'\n[[link]]\nname = 'a'\n[[link]]\nname = 'b'\n";

    #[test]
    fn what_is_left_out_has_the_values_of_the_documentation() {
        let experiment = Experiment::parse("x", LINKS).unwrap();
        assert_eq!(experiment.tunnel.weights, [1, 1]);
        assert_eq!((experiment.traffic.seconds, experiment.traffic.omit), (12.0, 2.0));
        assert_eq!((experiment.topology.seed, experiment.repetitions), (1, 1));
        assert!(experiment.outage.is_none());
    }

    #[test]
    fn the_example_of_the_documentation_can_be_read() {
        let documentation = include_str!("file.rs");
        let lines = documentation.lines().map_while(|line| line.strip_prefix("//!"));
        let example: String = lines
            .skip_while(|line| line.trim() != "```toml")
            .skip(1)
            .take_while(|line| line.trim() != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        let experiment = Experiment::parse("example", &example).unwrap();
        assert_eq!(experiment.tunnel.weights, [40, 20]);
        assert_eq!(experiment.outage.unwrap().cuts[0].link, 1);
    }

    #[test]
    fn every_mistake_is_told_with_its_line_and_a_caret() {
        for (text, message, marked) in [
            ("[tunnel]\nwieghts = [1, 1]", "unknown field `wieghts`", "wieghts"),
            ("[tunnel]\nweights = [1, 1, 1]", "3 weights, but 2 in [[link]]", "[tunnel]"),
            ("[tunnel]\nweights = [1, 0]", "a weight of 0: weights are 1 to 10000", "[tunnel]"),
            ("[tunnel]\nkeepalive = -1", "-1 is out of range: 0 to 600 seconds", "-1"),
            ("[tunnel]\nprofile = 'fast'", "unknown variant `fast`", "'fast'"),
            ("[tunnel]\nreorder = { window = 10001 }", "10001 is out of range", "10001"),
            ("[tunnel]\ninner = 5", "there is no IP version 5", "5"),
            ("[traffic]\nseconds = 9", "leave under 8 s", "[traffic]"),
            ("[traffic]\nflows = 0", "0 is out of range: 1 to 16 flows", "0"),
            (
                "[traffic]\nkind = 'udp'\nrate_mbps = 90000",
                "more than 10000000 packets",
                "[traffic]",
            ),
            ("[traffic]\nkind = 'ping'\ninterval = 0.001\nseconds = 600", "requests", "[traffic]"),
            ("[outage]\nseconds = 9\ncut = [{ link = 'c', at = 1, until = 2 }]", "no link", "'c'"),
            (
                "[outage]\nseconds = 9\ncut = [{ link = 'a', at = 1, until = 10 }]",
                "does not fit",
                "{ link = 'a', at = 1, until = 10 }",
            ),
        ] {
            let text = format!("{LINKS}{text}\n");
            let error = Experiment::parse("some.toml", &text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            let place = text.rfind(marked).unwrap();
            let line = text[..place].matches('\n').count() + 1;
            assert!(error.contains(&format!("some.toml:{line}:")), "{line} in\n{error}");
            assert!(error.contains(&"^".repeat(marked.len())), "{marked} in\n{error}");
        }
    }

    #[test]
    fn the_experiments_that_come_with_the_lab_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            Experiment::read(&entry.unwrap().path()).unwrap_or_else(|error| panic!("{error}"));
            count += 1;
        }
        assert!(count >= 4, "{count}");
    }
}
