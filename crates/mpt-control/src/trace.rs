//! What a connection does over time: samples and events, each of which becomes a line of JSON.

use serde::{Deserialize, Serialize};

use crate::{Finding, OrderExplanation, PathExplanation, QueueExplanation};

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceLine {
    /// When, in seconds since the daemon was ready.
    pub at_seconds: f64,
    /// The tunnel's name.
    pub tunnel: String,
    /// The connection that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// What it says.
    #[serde(flatten)]
    pub what: Traced,
}

/// Up to where a client has what was traced of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMark {
    /// The number of the last line.
    pub line: u64,
    /// When that was, in microseconds since the daemon was ready.
    pub at_micros: u64,
}

/// What a line says. Counts of samples are about the time since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Traced {
    /// The first line of a trace.
    Begin {
        /// The version of the daemon.
        version: String,
        /// Seconds since 1970-01-01 UTC at which `at_seconds` is that of this line.
        unix_seconds: f64,
    },
    /// The last line of a trace, if its writer could say so.
    End {
        /// Why it ends: `limit`, `time`, `signal` or `daemon`.
        reason: String,
        /// Lines that are missing in all.
        missed: u64,
    },
    /// Something was found out of a path.
    Event {
        /// The path.
        path: String,
        /// What.
        #[serde(flatten)]
        what: Finding,
    },
    /// Lines are missing here, because they were not read in time.
    Missed {
        /// How many.
        lines: u64,
    },
    /// A sample of the order of what comes from the peer.
    #[serde(rename = "order")]
    Sequence(OrderExplanation),
    /// A sample of a path.
    Path(Box<PathExplanation>),
    /// A sample of what waits in front of the paths.
    Queue(QueueExplanation),
    /// Something happened that `mpt status` shows too, such as a path that goes down.
    Status {
        /// The path, if it happened to one.
        path: Option<String>,
        /// What, for people.
        text: String,
    },
    /// Something that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_documented_form() {
        let path = PathExplanation { name: "fibre".into(), ..PathExplanation::default() };
        let event = Traced::Event { path: "fibre".into(), what: Finding::Rate { from: 8, to: 16 } };
        for (what, part) in [
            (Traced::Path(Box::new(path)), r#""kind":"path","name":"fibre""#),
            (event, r#""kind":"event","path":"fibre","found":"rate","from":8,"to":16}"#),
            (Traced::Queue(QueueExplanation::default()), r#""kind":"queue","waiting":0"#),
            (Traced::Missed { lines: 3 }, r#""kind":"missed","lines":3}"#),
        ] {
            let connection = Some("server".to_owned());
            let line = TraceLine { at_seconds: 1.5, tunnel: "mpt0".into(), connection, what };
            let text = serde_json::to_string(&line).unwrap();
            let head = r#"{"at_seconds":1.5,"tunnel":"mpt0","connection":"server","#;
            assert!(text.starts_with(head) && text.contains(part), "{text}");
            assert_eq!(serde_json::from_str::<TraceLine>(&text).unwrap(), line);
        }
        let later: TraceLine = serde_json::from_str(r#"{"kind":"moon","phase":2}"#).unwrap();
        assert_eq!(later.what, Traced::Other);
    }
}
