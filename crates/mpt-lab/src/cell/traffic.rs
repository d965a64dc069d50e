//! What is sent through the tunnel.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value;
use crate::traffic::tcp;

/// What is sent through the tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Traffic {
    /// What it is.
    pub kind: Kind,
    /// Length of the run in seconds, up to 600.
    #[serde(deserialize_with = "value::run_seconds")]
    pub seconds: f64,
    /// Seconds at its start that goodput leaves out.
    #[serde(deserialize_with = "value::seconds")]
    pub omit: f64,
    /// TCP with CUBIC over links whose delays differ: the run goes on until so many seconds, up to 600, for figures
    /// of its later part. Goodput, start-up and gaps are those of `seconds`. After reading a file absent in any other cell.
    #[serde(deserialize_with = "value::long_seconds")]
    pub long_seconds: Option<f64>,
    /// Which way it flows.
    pub direction: Direction,
    /// TCP: congestion control by the kernel's name; QUIC: `cubic`, `bbr` or `newreno`.
    pub congestion: String,
    /// TCP and QUIC: flows at once, 1 to 16; calls at once, 1 to 200.
    #[serde(deserialize_with = "value::flows")]
    pub flows: u32,
    /// TCP: the most that a socket may hold to send or to receive, in MB (10⁶ bytes), in place of what the machine has set for
    /// `net.ipv4.tcp_wmem` and `tcp_rmem`.
    #[serde(deserialize_with = "value::buffer", skip_serializing_if = "Option::is_none")]
    pub buffer_mb: Option<u64>,
    /// FTP: size of the file in MB (10⁶ bytes).
    #[serde(deserialize_with = "value::file_size")]
    pub file_mb: u64,
    /// UDP: payload rate in Mbit/s.
    #[serde(deserialize_with = "value::positive")]
    pub rate_mbps: f64,
    /// UDP: payload of a packet in bytes.
    #[serde(deserialize_with = "value::payload")]
    pub size: usize,
    /// Ping: seconds between two requests.
    #[serde(deserialize_with = "value::positive")]
    pub interval: f64,
    /// TCP and QUIC: a thin stream that goes the same way, whose delay is measured.
    pub beside: Option<Beside>,
    /// TCP and QUIC: who else sends over the links.
    pub rival: Option<Rival>,
}

/// Somebody else who sends over the same links: one TCP flow with CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rival {
    /// Over the first link, without a tunnel.
    Plain,
    /// Through a second tunnel over the same links, configured as the first.
    Tunnel,
}

/// UDP packets at a steady interval beside greedy flows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Beside {
    /// Seconds between two packets.
    #[serde(deserialize_with = "value::positive")]
    pub interval: f64,
    /// Payload of a packet in bytes.
    #[serde(deserialize_with = "value::payload")]
    pub size: usize,
}

impl Default for Beside {
    /// Fifty packets of 172 bytes a second: a call with G.711 (RFC 3551), as RTP carries it.
    fn default() -> Self {
        Self { interval: 0.02, size: 172 }
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            kind: Kind::Tcp,
            seconds: 12.0,
            omit: 2.0,
            long_seconds: None,
            direction: Direction::Forward,
            congestion: tcp::CUBIC.into(),
            flows: 1,
            buffer_mb: None,
            file_mb: 1000,
            rate_mbps: 10.0,
            size: 1200,
            interval: 0.05,
            beside: None,
            rival: None,
        }
    }
}

impl Traffic {
    /// Length of the run.
    pub fn length(&self) -> Duration {
        Duration::from_secs_f64(self.long_seconds.unwrap_or(self.seconds))
    }

    /// The part of the run that all figures are about but those of a long run.
    pub fn measured(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The start-up that goodput leaves out.
    pub fn omitted(&self) -> Duration {
        Duration::from_secs_f64(self.omit)
    }
}

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Telephone calls, each of which is a voice stream either way.
    Calls,
    /// A file downloaded from an FTP server on the sending host.
    Ftp,
    /// A voice and a video-like stream beside TCP flows.
    Media,
    /// Requests and replies, nothing else.
    Ping,
    /// QUIC flows that want all the room there is.
    Quic,
    /// Flows that want all the room there is.
    Tcp,
    /// Numbered packets at a fixed rate.
    Udp,
}

/// A direction between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Right to left.
    Backward,
    /// Left to right.
    Forward,
}
