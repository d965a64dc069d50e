//! Somebody else at the same bottleneck, and who gets what of it.
//!
//! The rival is one TCP flow with CUBIC, begun together with the measured traffic: a plain one over the first link,
//! without any tunnel, or one through a second tunnel of the same kind over the same links.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::load::{Load, Route};
use crate::cell::configuration::rival_address;
use crate::cell::{Cell, Rival, Traffic};
use crate::lab::Lab;
use crate::record::{RivalRecord, megabits};
use crate::system::{Running, sides};
use crate::traffic::tcp::{self, CUBIC, Transport};

/// The rival's flow under way.
pub(super) struct Flow(tcp::Flow);

impl Flow {
    /// Starts it, if the traffic has a rival. One with a second tunnel has none beside a system that is no tunnel.
    pub(super) fn start(
        lab: &Lab,
        cell: &Cell,
        running: Option<&Running>,
        traffic: &Traffic,
    ) -> Result<Option<Self>> {
        let Some(rival) = traffic.rival else { return Ok(None) };
        let (from, to) = sides(traffic.direction);
        let [from, to] = [from, to].map(|side| lab.host(side));
        let (address, device) = match rival {
            Rival::Plain => (to.address(0), Some(lab.link(0).name())),
            Rival::Tunnel if running.is_some_and(|running| running.inner_mtu().is_some()) => {
                (rival_address(to.side(), cell.tunnel.inner), None)
            }
            Rival::Tunnel => return Ok(None),
        };
        let route = Route {
            from,
            to,
            address,
            device,
            transport: Transport::Tcp,
            sender: from.address(0),
            receivers: Vec::new(),
            mptcp: None,
        };
        let cubic = Traffic { congestion: CUBIC.into(), ..traffic.clone() };
        let (sink, source) = Load::tcp_ends(&route, &cubic)?;
        Ok(Some(Self(tcp::Flow::start_at(Instant::now(), sink, source, traffic.length())?)))
    }

    /// Waits for its end, which is that of the measured traffic, with this goodput in Mbit/s.
    pub(super) fn finish(self, omit: Duration, goodput: Option<f64>) -> Option<RivalRecord> {
        Some(record(goodput?, megabits(self.0.finish().series.goodput(omit))))
    }
}

/// What two got of what they shared, in Mbit/s.
fn record(ours: f64, theirs: f64) -> RivalRecord {
    let (sum, squares) = (ours + theirs, ours * ours + theirs * theirs);
    RivalRecord {
        goodput_mbps: theirs,
        jain: sum * sum / (2.0 * squares),
        least_fair_share: ours.min(theirs) / (sum / 2.0),
        own_fair_share: ours / (sum / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_halves_and_a_half_for_all_or_nothing() {
        let halves = record(20.0, 20.0);
        assert_eq!((halves.jain, halves.least_fair_share, halves.own_fair_share), (1.0, 1.0, 1.0));
        let nothing = record(40.0, 0.0);
        assert_eq!((nothing.jain, nothing.least_fair_share), (0.5, 0.0));
        let quarter = record(10.0, 30.0);
        assert_eq!((quarter.jain, quarter.least_fair_share), (0.8, 0.5));
        assert_eq!((quarter.own_fair_share, quarter.goodput_mbps), (0.5, 30.0));
        assert_eq!(record(30.0, 10.0).own_fair_share, 1.5);
    }
}
