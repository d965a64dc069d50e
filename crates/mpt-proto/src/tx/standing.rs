//! What the choice of paths rests on at one moment, for people: see [`paced`](super::paced) and
//! [`rates`](super::rates).

use std::collections::VecDeque;
use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use super::rates::slower_than_fastest;
use super::stages::Committed;
use crate::id::PathId;
use crate::path::rate::{Found, RateStage};
use crate::queue::FlowQueues;
use crate::scheduler::earliest::MOST_SKEW;
use crate::time::Instant;

/// What is known of a path by the sender, where paths are chosen by earliest arrival. Bytes are those of IP packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStanding {
    /// Whether it can carry at all: it is up, wanted and present.
    pub usable: bool,
    /// Whether it is so much slower than the fastest that it carries nothing.
    pub too_slow: bool,
    /// What the estimate of the rate is at.
    pub stage: RateStage,
    /// Whether the rate is configured rather than measured.
    pub fixed: bool,
    /// What the path is believed to carry, in bytes per second; `None` if nothing is known.
    pub rate: Option<u64>,
    /// The rate at which it is sent on at the most, in bytes per second; `None` without a limit.
    pub pace: Option<u64>,
    /// What stands in queues on the way.
    pub queue: Duration,
    /// What that is held near; `None` if the path is not paced.
    pub queue_target: Option<Duration>,
    /// How much longer datagrams take than by the fastest path; `None` if it is not known.
    pub skew: Option<Duration>,
    /// The mean deviation of the delay.
    pub deviation: Option<Duration>,
    /// The shortest round trip.
    pub round_trip: Option<Duration>,
    /// The share of datagrams lost in the last ten seconds or so, 0 to 1.
    pub loss: Option<f64>,
    /// How often the path was stopped in this session because it went on to lose too much.
    pub stops: u64,
    /// Until when it is stopped at least; `None` if it is not.
    pub stopped_until: Option<Instant>,
    /// Packets that wait for it and have their number.
    pub committed: usize,
    /// Their bytes.
    pub committed_bytes: u64,
    /// How often it was measured what the path carried; modulo 2^32.
    pub samples: u32,
    /// How often of these it had been kept busy all the time; modulo 2^32.
    pub busy_samples: u32,
    /// What was found out last, oldest first.
    pub found: Vec<Found>,
}

/// What waits in front of all paths of a connection, where they are chosen by earliest arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStanding {
    /// Packets that have no number yet.
    pub waiting: usize,
    /// Their bytes.
    pub waiting_bytes: usize,
    /// Packets of all paths that have their number and wait for the pace of their path.
    pub committed: usize,
    /// TCP acknowledgements that are held back.
    pub acks: usize,
    /// How much longer than by the fastest path the peer lets packets of bulk flows take, so that their senders keep
    /// enough in flight for the slower paths; zero if it does not.
    pub equal_delay: Duration,
    /// Packets that were marked in place of being dropped, in all.
    pub marked: u64,
}

impl TransmitHalf {
    /// What the choice of a path rests on; `None` if it is made in another way, or there is no such path.
    pub fn standing(&self, now: Instant, path: PathId) -> Option<PathStanding> {
        let paced = self.paced.as_ref()?;
        let own = self.paths.get(path.index())?;
        let TransmitPath { rate, feedback, .. } = own;
        let skew = slower_than_fastest(&self.paths, own);
        let lane = paced.committed.get(path.index());
        let bytes = lane.into_iter().flatten().map(|committed| committed.wire_len as u64);
        let [samples, busy_samples] = rate.findings().samples();
        Some(PathStanding {
            usable: own.usable(),
            too_slow: skew.is_some_and(|skew| skew > MOST_SKEW),
            stage: if self.finds_out(now, own) { RateStage::Trains } else { rate.stage() },
            fixed: own.fixed_rate.is_some(),
            rate: own.fixed_rate.or_else(|| rate.rate()),
            pace: own.fixed_rate.or_else(|| rate.pace()),
            queue: rate.queue(),
            queue_target: rate.queue_target(own.round_trip()),
            skew,
            deviation: feedback.delay().map(|delay| delay.deviation),
            round_trip: feedback.round_trip().map(|trip| trip.min),
            loss: feedback.loss_lately(now),
            stops: own.breaker.stops(),
            stopped_until: own.breaker.stopped_until(),
            committed: lane.map_or(0, VecDeque::len),
            committed_bytes: bytes.sum(),
            samples,
            busy_samples,
            found: rate.findings().iter().copied().collect(),
        })
    }

    /// Inner packets that wait because the paths are full; copies of what is sent once more do not count.
    pub fn waiting(&self) -> usize {
        self.paced.as_ref().map_or(0, |paced| {
            let once = |lane: &VecDeque<Committed>| lane.iter().filter(|it| !it.is_copy).count();
            let committed = paced.committed.iter().map(|(_, lane)| once(lane));
            let first: usize = paced.first_stage().map(FlowQueues::len).sum();
            first + committed.sum::<usize>() + paced.acks.len()
        })
    }

    /// What waits in front of the paths; `None` if nothing ever does.
    pub fn queue_standing(&self) -> Option<QueueStanding> {
        let paced = self.paced.as_ref()?;
        Some(QueueStanding {
            waiting: paced.first_stage().map(FlowQueues::len).sum(),
            waiting_bytes: paced.first_stage().map(FlowQueues::bytes).sum(),
            committed: paced.committed.iter().map(|(_, lane)| lane.len()).sum(),
            acks: paced.acks.len(),
            equal_delay: paced.equalise.delay(),
            marked: self.marked,
        })
    }
}
