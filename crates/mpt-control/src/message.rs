//! The questions and the answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Explanation, PeerStatus, Status, TraceLine, TraceMark};

/// A request of a client to the daemon; one line of JSON, identified by the field `request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// `{"request":"config"}`: the settings that run, as a configuration file. Answered by
    /// [`Reply::Config`].
    Config {},
    /// `{"request":"connection_add",...}`: a further connection. Answered by [`Reply::Changed`].
    ConnectionAdd {
        /// The tunnel that gets it, or `None` if there is only one.
        #[serde(default)]
        tunnel: Option<String>,
        /// What would stand below `[[tunnel.connection]]` in the configuration file.
        settings: String,
    },
    /// `{"request":"connection_remove",...}`: a connection goes, and its paths with it. Answered by
    /// [`Reply::Changed`].
    ConnectionRemove {
        /// Its name.
        connection: String,
    },
    /// `{"request":"explain",...}`: why packets went where they went. Answered by [`Reply::Explanation`].
    Explain {
        /// The connection, or `None` for all.
        #[serde(default)]
        connection: Option<String>,
    },
    /// `{"request":"path",...}`: set what we want of a path; what is not named stays as it is. Answered
    /// by [`Reply::Done`].
    Path {
        /// The connection that has the path, or `None` to look in all: then the path's name must
        /// occur once only.
        #[serde(default)]
        connection: Option<String>,
        /// The path's name in the configuration.
        path: String,
        /// Its administrative status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<PathStatus>,
        /// Its share of the packets, 1 to 10000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<u16>,
        /// Its priority: of the paths that are up, those with the lowest number carry packets, the
        /// others are on standby.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<u8>,
    },
    /// `{"request":"path_add",...}`: a further path. Answered by [`Reply::Changed`].
    PathAdd {
        /// The connection that gets it, or `None` if there is only one.
        #[serde(default)]
        connection: Option<String>,
        /// What would stand below `[[tunnel.connection.path]]` in the configuration file.
        settings: String,
    },
    /// `{"request":"path_remove",...}`: a path goes. Answered by [`Reply::Changed`].
    PathRemove {
        /// The connection that has it, or `None` to search all.
        #[serde(default)]
        connection: Option<String>,
        /// Its name.
        path: String,
    },
    /// `{"request":"peer_add",...}`: a further client that is known by its key. Answered by [`Reply::Changed`].
    PeerAdd {
        /// The template that gets it, or `None` if only one has a folder of clients.
        #[serde(default)]
        template: Option<String>,
        /// Its name.
        peer: String,
        /// What its file is to say.
        settings: String,
    },
    /// `{"request":"peer_remove",...}`: a client goes, and its connection with it. Answered by [`Reply::Changed`].
    PeerRemove {
        /// The template that has it, or `None` if only one has a folder of clients.
        #[serde(default)]
        template: Option<String>,
        /// Its name.
        peer: String,
    },
    /// `{"request":"peers"}`: the clients that are known by their keys. Answered by [`Reply::Peers`].
    Peers {},
    /// `{"request":"peers_reload"}`: read the folders of clients again. Answered by [`Reply::Changed`].
    PeersReload {},
    /// `{"request":"reload"}`: read the configuration file again and carry out what changed in it.
    /// Answered by [`Reply::Changed`].
    Reload {},
    /// `{"request":"status"}`: the complete status. Answered by [`Reply::Status`].
    Status {},
    /// `{"request":"trace",...}`: what has been traced. The first one switches tracing on; it ends by itself some
    /// seconds after the last. Answered by [`Reply::Trace`].
    Trace {
        /// The connection, or `None` for all.
        #[serde(default)]
        connection: Option<String>,
        /// Up to where the client has what there was, by tunnel, as the last answer said; empty at first.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        after: BTreeMap<String, TraceMark>,
    },
    /// `{"request":"version"}`: the daemon's version. Answered by [`Reply::Version`].
    Version {},
    /// `{"request":"web_token"}`: what allows changes by the web page. Answered by [`Reply::WebToken`].
    WebToken {
        /// Whether the one before ends.
        #[serde(default)]
        renew: bool,
    },
}

impl Request {
    /// Sets the administrative status of a path.
    pub fn path_status(
        connection: Option<impl Into<String>>,
        path: impl Into<String>,
        status: PathStatus,
    ) -> Self {
        let (connection, path) = (connection.map(Into::into), path.into());
        Self::Path { connection, path, status: Some(status), weight: None, priority: None }
    }
}

/// What we want of a path, as opposed to what it is ([`crate::PathState::state`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathStatus {
    /// Carry inner packets whenever the path is up.
    Available,
    /// Carry nothing: no inner packets and no keepalives.
    Off,
}

impl PathStatus {
    /// The word used in the configuration, in JSON and in print.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for PathStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reply of the daemon; one line of JSON, identified by the field `reply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The request has been carried out, and this is what it came to.
    Changed {
        /// What changed, in the order in which it did, for people; empty if nothing had to.
        changes: Vec<String>,
    },
    /// The answer to [`Request::Config`].
    Config {
        /// A configuration file.
        text: String,
    },
    /// The request has been carried out.
    Done,
    /// The answer to [`Request::Explain`].
    Explanation {
        /// The connections.
        connections: Vec<Explanation>,
    },
    /// The request has not been carried out.
    Error {
        /// What kind of refusal it is, for programs.
        #[serde(default)]
        kind: ErrorKind,
        /// What is wrong and what to do about it, for people. One line.
        message: String,
        /// The whole of it where settings are wrong, with their places, on several lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<String>,
    },
    /// The answer to [`Request::Peers`].
    Peers {
        /// The clients by tunnel, template and name.
        peers: Vec<PeerStatus>,
    },
    /// The answer to [`Request::Status`].
    Status {
        /// The complete status.
        status: Box<Status>,
    },
    /// The answer to [`Request::Trace`].
    Trace {
        /// What came since, oldest first within each tunnel.
        lines: Vec<TraceLine>,
        /// What is to be sent as `after` in the next request.
        next: BTreeMap<String, TraceMark>,
    },
    /// The answer to [`Request::Version`].
    Version {
        /// The daemon's version, such as `0.1.0`.
        version: String,
    },
    /// The answer to [`Request::WebToken`].
    WebToken {
        /// Hexadecimal digits.
        token: String,
        /// Where the page is served: an address and port, or the path of a Unix socket.
        listen: String,
    },
}

impl Reply {
    /// A refusal.
    pub fn error(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Error { kind, message: message.into(), report: None }
    }

    /// Why a reply is not the one that was asked for: the daemon's refusal, or that the reply is another one.
    /// For the `else` of `let Reply::Status { status } = reply else`.
    pub fn into_refusal(self) -> Refusal {
        let other = match self {
            Self::Error { kind, message, report } => return Refusal { kind, message, report },
            other @ (Self::Changed { .. }
            | Self::Config { .. }
            | Self::Done
            | Self::Explanation { .. }
            | Self::Peers { .. }
            | Self::Status { .. }
            | Self::Trace { .. }
            | Self::Version { .. }
            | Self::WebToken { .. }) => other,
        };
        let message = format!("unexpected reply from the daemon: {other:?}");
        Refusal { kind: ErrorKind::Other, message, report: None }
    }

    /// A refusal because settings are wrong.
    pub fn bad_config(message: impl Into<String>, report: impl Into<String>) -> Self {
        let (message, report) = (message.into(), Some(report.into()));
        Self::Error { kind: ErrorKind::BadConfig, message, report }
    }
}

/// A request that has not been answered as asked ([`Reply::into_refusal`]).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind it is, for programs.
    pub kind: ErrorKind,
    /// What is wrong and what to do about it, for people. One line.
    pub message: String,
    /// The whole of it where settings are wrong, with their places, on several lines.
    pub report: Option<String>,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The settings in the request or in the configuration file are wrong. Nothing has changed.
    BadConfig,
    /// The line is not a request: too long, no JSON, an unknown request or field. The connection
    /// stays open after it.
    BadRequest,
    /// The limit of connected clients is reached. The connection is closed.
    Busy,
    /// The path's name occurs in several connections and the request names none.
    AmbiguousPath,
    /// No tunnel has a connection of that name, or none is named and there are several.
    NoSuchConnection,
    /// No connection has a path of that name.
    NoSuchPath,
    /// There is no client of that name, or no template that could have it.
    NoSuchPeer,
    /// The client is neither root nor the daemon's user. The connection is closed.
    NotAllowed,
    /// The daemon cannot do it at the moment, such as a tunnel that did not answer in time.
    Unavailable,
    /// A kind unknown to this version.
    #[default]
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_documented_form() {
        let path = Request::path_status(Some("server"), "fibre", PathStatus::Off);
        let text = r#"{"request":"path","connection":"server","path":"fibre","status":"off"}"#;
        assert_eq!(serde_json::to_string(&path).unwrap(), text);
        assert_eq!(serde_json::from_str::<Request>(text).unwrap(), path);
        for (request, text) in [
            (Request::Status {}, r#"{"request":"status"}"#),
            (Request::Reload {}, r#"{"request":"reload"}"#),
            (Request::Config {}, r#"{"request":"config"}"#),
            (
                Request::Trace {
                    connection: None,
                    after: [("mpt0".to_owned(), TraceMark { line: 7, at_micros: 9 })].into(),
                },
                r#"{"request":"trace","connection":null,"after":{"mpt0":{"line":7,"at_micros":9}}}"#,
            ),
            (
                Request::Explain { connection: Some("server".into()) },
                r#"{"request":"explain","connection":"server"}"#,
            ),
            (
                Request::PathAdd { connection: None, settings: "name = 'a'".into() },
                r#"{"request":"path_add","connection":null,"settings":"name = 'a'"}"#,
            ),
            (
                Request::Path {
                    connection: None,
                    path: "a".into(),
                    status: None,
                    weight: Some(3),
                    priority: Some(1),
                },
                r#"{"request":"path","connection":null,"path":"a","weight":3,"priority":1}"#,
            ),
            (Request::PeersReload {}, r#"{"request":"peers_reload"}"#),
            (
                Request::PeerRemove { template: None, peer: "van".into() },
                r#"{"request":"peer_remove","template":null,"peer":"van"}"#,
            ),
            (Request::Version {}, r#"{"request":"version"}"#),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
        }
        for connection in ["", r#""connection":null,"#] {
            let text =
                format!(r#"{{"request":"path",{connection}"path":"a","status":"available"}}"#);
            let request: Request = serde_json::from_str(&text).unwrap();
            assert!(matches!(request, Request::Path { connection: None, .. }));
        }
    }

    #[test]
    fn a_reply_to_something_else_says_that_it_is_unexpected() {
        let refusal = Reply::bad_config("line 3", "the whole").into_refusal();
        assert_eq!((refusal.kind, refusal.to_string()), (ErrorKind::BadConfig, "line 3".into()));
        assert_eq!(refusal.report.as_deref(), Some("the whole"));
        let refusal = Reply::Version { version: "0.1.0".into() }.into_refusal();
        assert_eq!(refusal.kind, ErrorKind::Other);
        let words = r#"unexpected reply from the daemon: Version { version: "0.1.0" }"#;
        assert_eq!(refusal.to_string(), words);
    }

    #[test]
    fn a_request_is_parsed_completely_or_refused() {
        for text in [
            r#"{"request":"status","verbose":true}"#,
            r#"{"request":"path","path":"a","status":"off","when":"tomorrow"}"#,
            r#"{"request":"path","path":"a","status":"backup"}"#,
            r#"{"request":"path","path":"a","path":"b","status":"off"}"#,
            r#"{"request":"reboot"}"#,
            r#"{}"#,
            r#"[]"#,
        ] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn replies_have_the_documented_form() {
        assert_eq!(serde_json::to_string(&Reply::Done).unwrap(), r#"{"reply":"done"}"#);
        let error = Reply::error(ErrorKind::NoSuchPath, "no path `x`");
        let text = r#"{"reply":"error","kind":"no_such_path","message":"no path `x`"}"#;
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
        assert_eq!(serde_json::from_str::<Reply>(text).unwrap(), error);
    }

    #[test]
    fn replies_of_a_later_version_are_understood() {
        for text in [
            r#"{"reply":"error","kind":"on_fire","message":"m","since":3}"#,
            r#"{"reply":"error","message":"m"}"#,
        ] {
            assert_eq!(
                serde_json::from_str::<Reply>(text).unwrap(),
                Reply::error(ErrorKind::Other, "m")
            );
        }
        assert_eq!(
            serde_json::from_str::<Reply>(r#"{"reply":"done","took":1}"#).unwrap(),
            Reply::Done
        );
    }
}
