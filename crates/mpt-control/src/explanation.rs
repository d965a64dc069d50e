//! Why packets went where they went: what the choice of paths rests on, and what came of it in the last seconds.
//!
//! Rates are bits of IP packets per second, headers of the tunnel included, and `sent` counts UDP payload. Every field
//! has a default, so that a reader can parse the answer of an older daemon.

use serde::{Deserialize, Serialize};

use crate::{CopyCounters, QuotaState, Traffic};

/// A connection, in the direction towards the peer; [`Explanation::order`] is about what came from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    /// The tunnel's name.
    pub tunnel: String,
    /// The connection's name.
    pub connection: String,
    /// How paths are chosen: `earliest`, `weighted` or `flow`.
    pub scheduler: String,
    /// What its datagrams look like: `plain`, `extended`, `sealed`, or `none` without a session.
    pub framing: String,
    /// The time that all counts are about, in seconds; less after the start.
    pub seconds: f64,
    /// Inner packets sent in that time.
    pub sent: Traffic,
    /// Inner packets dropped in that time because there was no path.
    pub no_path: u64,
    /// The paths in the order of the configuration.
    pub paths: Vec<PathExplanation>,
    /// What waits in front of the paths; none where nothing ever does.
    pub queue: Option<QueueExplanation>,
    /// The flows of which most was sent in that time, at most eight, largest first; empty where nothing is known of them.
    pub flows: Vec<FlowExplanation>,
    /// What became of packets that paths lost; none where nothing is repaired.
    pub repair: Option<RepairExplanation>,
    /// The order of what came from the peer.
    pub order: OrderExplanation,
}

/// A path of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathExplanation {
    /// The path's name.
    pub name: String,
    /// The number the daemon knows it by.
    pub id: u64,
    /// What it is, as in the status: `up`, `down`, `off` and so on.
    pub state: String,
    /// What brought it into that state, if anything did.
    pub cause: Option<String>,
    /// Its share of the packets where weights decide.
    pub weight: u64,
    /// Datagrams with inner packets sent in that time.
    pub sent: Traffic,
    /// Its share of the bytes of all paths in that time, 0 to 1; 0 if none were sent.
    pub share: f64,
    /// How many of them had been sent before, on a path that was lost.
    pub resent: u64,
    /// Datagrams that were found to be lost in that time.
    pub lost: u64,
    /// What kept it from carrying more.
    pub limit: Limit,
    /// How much of its quota is used; none if it has none.
    pub quota: Option<QuotaState>,
    /// What its estimate is at and rests on; none where paths are not chosen by earliest arrival.
    pub estimate: Option<Estimate>,
}

/// What keeps a path from carrying more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// It is down, or is not what it takes to carry packets.
    Down,
    /// Packets take so much longer by it that it carries nothing.
    Delay,
    /// There was no more to send: no packet had to wait for it.
    #[default]
    Load,
    /// It loses more than usual when more is sent, so its rate was cut.
    Loss,
    /// It is switched off.
    Off,
    /// It is full: it sends at its rate.
    Rate,
    /// It is stopped because it went on to lose too much.
    Stopped,
    /// It stands by for paths of a lesser priority number.
    Standby,
    /// It has only begun: its rate is being found out.
    Start,
    /// Weights, flows or pins decide what it gets.
    Weight,
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// What is known of a path in the direction to the peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Estimate {
    /// What the estimate is at: `open`, `trains`, `start`, `servo`, `draining`, `competing` or `stopped`.
    pub stage: String,
    /// Whether the rate is configured rather than measured.
    pub fixed: bool,
    /// What the path is believed to carry; none if nothing is known.
    pub rate: Option<u64>,
    /// The rate at which it is sent on at the most; none without a limit.
    pub pace: Option<u64>,
    /// What stands in queues on the way, in milliseconds.
    pub queueing_ms: f64,
    /// What that is held near; none if the path is not paced.
    pub queueing_target_ms: Option<f64>,
    /// How much longer datagrams take than by the fastest path, in milliseconds; none if it is not known.
    pub skew_ms: Option<f64>,
    /// The mean deviation of the delay, in milliseconds.
    pub deviation_ms: Option<f64>,
    /// The shortest round trip, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// The share of datagrams lost in the last 10 seconds or so, 0 to 1.
    pub loss: Option<f64>,
    /// Packets that wait for the path and have their number.
    pub committed: u64,
    /// Their bytes, as IP packets.
    pub committed_bytes: u64,
    /// The share of the time in which the path was kept busy, 0 to 1; none if that was not measured.
    pub busy: Option<f64>,
    /// What was found out last, oldest first.
    pub found: Vec<Found>,
}

/// Something that was found out of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// How long ago, in seconds.
    pub ago_seconds: f64,
    /// What it is.
    #[serde(flatten)]
    pub what: Finding,
}

/// What was found out. Rates are in bits per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Finding {
    /// The path was filled for the first time.
    Full {
        /// What it carried then.
        rate: u64,
        /// What stood in its queue, in milliseconds.
        queueing_ms: f64,
    },
    /// Its rate changed.
    Rate {
        /// What it was.
        from: u64,
        /// What it is.
        to: u64,
    },
    /// Its rate was cut because more was lost than usual.
    Cut {
        /// What it was.
        from: u64,
        /// What it is.
        to: u64,
        /// The share that was lost, 0 to 1.
        loss: f64,
    },
    /// Less was sent for a round trip so that the least delay shows.
    Drained {
        /// What stood in the queue before, in milliseconds.
        before_ms: f64,
        /// What stood in it at the end, in milliseconds.
        after_ms: f64,
    },
    /// The least delay rose: the route is longer.
    Longer {
        /// By how much, in milliseconds.
        by_ms: f64,
    },
    /// Others keep a queue on the way: the path competes for its share of it.
    Rival {
        /// What stands in it, in milliseconds.
        queueing_ms: f64,
    },
    /// Nobody else keeps a queue there any more.
    Alone {
        /// What stands in it, in milliseconds.
        queueing_ms: f64,
    },
    /// The path was stopped, because it went on to lose much although next to nothing was sent.
    Stopped {
        /// The share that was lost, 0 to 1.
        loss: f64,
    },
    /// It is used again after it was stopped.
    Resumed,
    /// Something that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// What waits in front of the paths of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueExplanation {
    /// Packets that no path could take yet.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// How long it takes to send them at the present rates, in milliseconds; none if a path has no limit.
    pub drains_ms: Option<f64>,
    /// Packets dropped in that time because they had waited too long.
    pub dropped_delay: u64,
    /// Packets dropped in that time because too much waited.
    pub dropped_full: u64,
    /// Packets marked in that time in place of being dropped.
    pub marked: u64,
    /// How much longer than by the fastest path the peer lets packets of bulk flows take, in milliseconds, so that their
    /// senders keep enough in flight for the slower paths; 0 if it does not.
    pub equal_delay_ms: f64,
    /// TCP acknowledgements that are held back.
    pub acks_held: u64,
    /// TCP acknowledgements not sent in that time because a later one says the same.
    pub acks_thinned: u64,
}

/// A flow of inner packets towards the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowExplanation {
    /// Protocol, source and destination, such as `udp 10.9.0.1:4000 -> 10.9.0.2:5004`.
    pub flow: String,
    /// Its class: `realtime`, `interactive` or `bulk`, or the name of a configured one.
    pub class: String,
    /// Why: `configured`, `dscp`, `port`, `steady`, `little` or `much`.
    pub why: String,
    /// The DSCP or port that decides, if one does.
    pub value: Option<u64>,
    /// The bytes that it has sent since its last pause of a second, about.
    pub bytes: u64,
}

/// What became of packets that were lost on their way to the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairExplanation {
    /// Packets that were found to be lost in that time, those included that had been sent again.
    pub lost: u64,
    /// Lost packets that were not sent again in that time because it would have been too late.
    pub too_late: u64,
    /// Packets that were sent again in that time because they were lost, or seemed to be.
    pub repaired: CopyCounters,
    /// Packets that were found in that time to have been only late, when they had been sent again.
    pub needless: u64,
    /// Packets that were sent again in that time because their path was left.
    pub moved: CopyCounters,
    /// Packets that took two paths at once in that time because they are small and critical.
    pub duplicated: CopyCounters,
    /// Parities that were sent in that time, and the packets that the peer has brought back by them.
    pub parity: CopyCounters,
    /// How often a path was left in that time because it was silent.
    pub leaves: u64,
    /// Bytes of copies and of the tunnel's own messages as a share of the bytes of inner packets in that time; none if no
    /// inner packet was sent.
    pub beyond: Option<f64>,
}

/// In what order packets came from the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderExplanation {
    /// Inner packets delivered in that time.
    pub delivered: u64,
    /// Packets that are held until those before them arrive.
    pub held: u64,
    /// The most that were held at once since the start.
    pub held_max: u64,
    /// Packets in that time that had to wait for others.
    pub reordered: u64,
    /// Packets in that time that filled a gap out of turn: most of them had been lost, and were sent again.
    pub repaired: u64,
    /// Packets in that time that came after they had been given up.
    pub late: u64,
    /// Packets given up in that time.
    pub lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_the_documented_form() {
        let found = Found { ago_seconds: 1.5, what: Finding::Rate { from: 8, to: 16 } };
        let text = r#"{"ago_seconds":1.5,"found":"rate","from":8,"to":16}"#;
        assert_eq!(serde_json::to_string(&found).unwrap(), text);
        assert_eq!(serde_json::from_str::<Found>(text).unwrap(), found);
    }

    #[test]
    fn what_a_later_version_says_can_be_read() {
        let text = r#"{"connection":"a","mood":1,"paths":[{"name":"b","limit":"weather",
            "estimate":{"found":[{"ago_seconds":2,"found":"gold","weight":3}]}}]}"#;
        let read: Explanation = serde_json::from_str(text).unwrap();
        assert_eq!(read.paths[0].limit, Limit::Other);
        let found = &read.paths[0].estimate.as_ref().unwrap().found;
        assert_eq!(found[0], Found { ago_seconds: 2.0, what: Finding::Other });
    }
}
