//! Paths: what the operator wants of one, what state it is in, and what is measured on it.
//!
//! A path is one pair of local and remote UDP address used by a connection. The operator sets its
//! [`PathStatus`]; its [`PathState`] follows from that and from what was heard ([`liveness`]). Round trip,
//! jitter and loss are in [`estimator`] by keepalives. In extended framing [`delay`] measures every datagram that
//! arrives, and [`feedback`] is what the peer says of those that it received.

pub(crate) mod breaker;
pub(crate) mod clock;
pub(crate) mod delay;
pub(crate) mod estimator;
pub(crate) mod feedback;
mod jitter;
pub(crate) mod liveness;
mod loss;
pub(crate) mod metrics;
pub(crate) mod mtu;
pub(crate) mod patience;
pub(crate) mod rate;
pub(crate) mod rtt;
pub(crate) mod silence;

use std::fmt;
use std::time::Duration;

/// While data arrives, feedback is told again on a second path so often: what is told nowhere for longer has not arrived.
pub(crate) const MAX_FEEDBACK_GAP: Duration = Duration::from_millis(20);

/// The administrative status of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// It carries packets whenever it can.
    #[default]
    Available,
    /// Administratively off: it carries nothing, not even keepalives.
    Off,
}

/// Why a path that was up is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownCause {
    /// This host lacks what the path needs: its interface, its address, or a way to the peer.
    Absent,
    /// The peer says that it does not hear us on it.
    PeerDeaf,
    /// The peer says, by a command beside the tunnel, that it is down.
    PeerDown,
    /// The peer has said on another path that it has lost this one.
    PeerLost,
    /// The peer has switched it off.
    PeerOff,
    /// The peer has said that it stops.
    PeerStopped,
    /// Nothing was heard on it for its dead time.
    Silent,
}

/// What a path is. Only an up path carries inner packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Not up, for a reason.
    Down(DownCause),
    /// Administratively off at this side.
    Off,
    /// Not heard of yet in both directions.
    Probing,
    /// It cannot carry the least inner packet, 1280 bytes.
    UnusableMtu,
    /// Both sides hear each other on it.
    Up,
}

impl PathState {
    /// The word for the state in status and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down(_) => "down",
            Self::Off => "off",
            Self::Probing => "probing",
            Self::UnusableMtu => "unusable: mtu",
            Self::Up => "up",
        }
    }

    /// Why the path is down, in words; `None` where the state's name says all.
    pub const fn cause(self) -> Option<&'static str> {
        match self {
            Self::Down(DownCause::Absent) => Some("its interface or address is not there"),
            Self::Down(DownCause::PeerDeaf) => Some("the peer does not hear us on it"),
            Self::Down(DownCause::PeerDown) => Some("the peer says that it is down"),
            Self::Down(DownCause::PeerLost) => Some("the peer has lost it"),
            Self::Down(DownCause::PeerOff) => Some("switched off by the peer"),
            Self::Down(DownCause::PeerStopped) => Some("the peer has stopped"),
            Self::Down(DownCause::Silent) => Some("silent for its dead time"),
            Self::Off | Self::Probing | Self::UnusableMtu | Self::Up => None,
        }
    }
}

impl fmt::Display for PathState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        match self.cause() {
            Some(cause) => write!(formatter, " ({cause})"),
            None => Ok(()),
        }
    }
}
