//! How both daemons are configured.

use serde::{Deserialize, Serialize};

use super::value;
use crate::topology::IpVersion;

/// How both daemons are configured. Field by field as in the configuration file of `mpt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tunnel {
    /// One weight per link, 1 to 10000; after reading a file, as many as there are links.
    pub weights: Vec<u32>,
    /// Whether the daemons are told only addresses, and [`rates`](Self::rates) if there are any: all else is as they
    /// ship. No file says this; it is what the systems `adaptive` and `oracle` are.
    #[serde(skip_deserializing)]
    pub shipped: bool,
    /// Whether there is a second tunnel like this one over the same links, for a rival.
    #[serde(skip_deserializing)]
    pub rival: bool,
    /// The share of the links' rates that the daemons are told as the paths', in place of what they would measure;
    /// for the scheduler `earliest`.
    pub rates: Option<f64>,
    /// The profile.
    pub profile: Profile,
    /// The framing.
    pub framing: Framing,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Receive-side ordering; what the framing needs if absent: extended framing has order by evidence,
    /// plain framing the defaults of [`Reorder`].
    pub reorder: Option<Reorder>,
    /// Seconds between keepalives, 0 = off.
    #[serde(deserialize_with = "value::seconds")]
    pub keepalive: f64,
    /// Seconds of silence after which a path is down, 0 = never.
    #[serde(deserialize_with = "value::seconds")]
    pub dead_time: f64,
    /// IP version of the inner packets.
    pub inner: IpVersion,
    /// Inner MTU in bytes; what fits the smallest path if absent.
    #[serde(deserialize_with = "value::mtu")]
    pub mtu: Option<u32>,
    /// GRE key.
    pub key: Option<u32>,
    /// Whether datagrams carry a GRE checksum.
    pub checksum: bool,
    /// Whether datagrams carry a GRE sequence number.
    pub sequence: bool,
}

impl Default for Tunnel {
    /// The daemon's own defaults.
    fn default() -> Self {
        Self {
            weights: Vec::new(),
            shipped: false,
            rival: false,
            rates: None,
            profile: Profile::Auto,
            framing: Framing::Plain,
            scheduler: Scheduler::Weighted,
            reorder: None,
            keepalive: 0.5,
            dead_time: 1.75,
            inner: IpVersion::V4,
            mtu: None,
            key: None,
            checksum: false,
            sequence: true,
        }
    }
}

impl Tunnel {
    /// Ordering as plain framing does it, with what the file says or the defaults; the model knows no other.
    pub fn classic_order(&self) -> Reorder {
        self.reorder.clone().unwrap_or_default()
    }

    /// Whether there is a session, in which a host may learn the other's paths.
    pub fn has_session(&self) -> bool {
        match self.framing {
            Framing::Extended | Framing::Sealed => true,
            Framing::Plain => false,
        }
    }
}

/// What the bytes between the daemons look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// GRE-in-UDP as the original sends it.
    Plain,
    /// Sessions, with order by evidence.
    Extended,
    /// The same, authenticated and encrypted with the [keys](super::keys) of the lab's hosts.
    Sealed,
}

/// A named set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The daemon's default.
    Auto,
    /// What the original MPT does.
    Classic,
}

/// The policy that chooses a path per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// Where a packet arrives first, by measured rates and delays.
    Earliest,
    /// In proportion to the weights.
    Weighted,
}

/// Receive-side ordering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reorder {
    /// Most packets held, 0 to 10000; 0 = none.
    #[serde(deserialize_with = "value::window")]
    pub window: u32,
    /// Longest hold time in seconds.
    #[serde(deserialize_with = "value::seconds")]
    pub max_delay: f64,
    /// Whether a gap is given up once every live path has delivered a higher number.
    pub early_release: bool,
    /// What happens to a packet after its gap was given up.
    pub late: Late,
}

impl Default for Reorder {
    fn default() -> Self {
        Self { window: 4096, max_delay: 0.1, early_release: true, late: Late::Deliver }
    }
}

/// What happens to a packet after its gap was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Late {
    /// It is delivered, late.
    Deliver,
    /// It is dropped, as the original MPT does.
    Drop,
}
