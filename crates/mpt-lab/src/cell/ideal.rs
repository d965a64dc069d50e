//! What could be reached at best: link rates, less loss, less headers.
//!
//! A link's rate counts outer IP bytes. Of those, an inner TCP segment of full size leaves the share
//! payload ÷ outer bytes to the application:
//!
//! ```text
//! | outer IP 20/40 | UDP 8 | GRE 4..24 | inner IP 20/40 | TCP 20 + timestamps 12 | payload |
//!                                      |<------------------ inner MTU ------------------>|
//! ```
//!
//! Of extended framing the header takes 24 bytes, which measure the path; sealed framing adds a tag of 16 bytes. Acknowledgements travel the other
//! way and cost this direction nothing. The *ideal* of a tunnel is the sum over its links; a tunnel that
//! shares packets by weights w cannot exceed its *bound* min(C/w) · Σw, because the link that is the most
//! overloaded for its weight stops the others. One that measures the links has no such bound.

use std::time::Duration;

use mpt_proto::wire::extended::DATA_LEN;
use mpt_proto::wire::extended::sealed::TAG_LEN;

use super::{Cell, Change, Direction, Event, Framing as Wire, Kind, Scheduler, Tunnel};
use crate::topology::{IpVersion, LinkSpec, Topology};

/// TCP header with the timestamps option (RFC 7323), which Linux always negotiates.
const TCP: u32 = 20 + 12;

/// Around the payload of a full QUIC packet in UDP: UDP 8, a short header with a connection id of 8
/// bytes and a packet number of 2, the tag of its encryption 16, and the head of a stream frame 10
/// (RFC 9000 sections 17.3.1 and 19.8, RFC 9001 section 5.3).
const QUIC: u32 = UDP + 1 + 8 + 2 + 16 + 10;

/// The option with which Multipath TCP maps a segment's bytes, with 64-bit numbers and without
/// checksum (RFC 8684 section 3.3).
const DSS: u32 = 20;

/// UDP header (RFC 768).
const UDP: u32 = 8;

/// Mandatory GRE header, and each of its optional fields (RFC 2784, RFC 2890).
const GRE: u32 = 4;

/// The best that experiment's tunnel could do, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ideal {
    /// Σ link rates, in outer IP bits.
    pub link_rates: f64,
    /// Σ rate × (1 − loss) × payload share: what a perfect tunnel delivers.
    pub goodput: f64,
    /// The same under the bound of the weights.
    pub bound: f64,
}

/// What is around a flow's payload on a link.
#[derive(Clone, Copy, Debug)]
pub enum Framing<'a> {
    /// The flow's own headers alone.
    Bare,
    /// Those of Multipath TCP.
    Mptcp,
    /// Those of a tunnel with this inner MTU.
    Tunnel(&'a Tunnel, u32),
}

impl Ideal {
    /// The ideal of a cell for a system with this framing, from the end of the start-up on. `None` if a link has no
    /// limit, or if the traffic is not greedy.
    pub fn of(cell: &Cell, framing: Framing<'_>) -> Option<Self> {
        Self::between(cell, framing, cell.traffic.omit, cell.traffic.seconds)
    }

    /// The same between two times of the run, in seconds.
    pub fn between(cell: &Cell, framing: Framing<'_>, from: f64, until: f64) -> Option<Self> {
        let share = |link| share_of_rate(&cell.events, link, from, until);
        let all: Vec<_> = (0..cell.topology.links.len()).map(|link| (link, share(link))).collect();
        Self::over(cell, &all, framing)
    }

    /// The ideal of one link alone.
    pub fn alone(cell: &Cell, link: usize) -> Option<Self> {
        Self::over(cell, &[(link, 1.0)], Framing::Bare)
    }

    /// Of these links, each with so much of its rate.
    fn over(cell: &Cell, links: &[(usize, f64)], framing: Framing<'_>) -> Option<Self> {
        let all = rates(cell);
        let rates = links.iter().map(|&(link, share)| Some(all[link]? * share));
        let rates = rates.collect::<Option<Vec<_>>>()?;
        let capacities = rates.iter().zip(links).map(|(rate, &(number, _))| {
            let link = &cell.topology.links[number];
            let lost = match cell.traffic.direction {
                Direction::Backward => link.backward.loss.long_run(),
                Direction::Forward => link.forward.loss.long_run(),
            };
            Some(rate * (1.0 - lost) * payload_share(framing, cell.traffic.kind, link)?)
        });
        let capacities = capacities.collect::<Option<Vec<f64>>>()?;
        let goodput = capacities.iter().sum();
        let bound = match framing {
            Framing::Bare | Framing::Mptcp => goodput,
            Framing::Tunnel(tunnel, _) => match tunnel.scheduler {
                Scheduler::Earliest => goodput,
                Scheduler::Weighted => bound(&capacities, &tunnel.weights),
            },
        };
        Some(Self { link_rates: rates.iter().sum(), goodput, bound })
    }
}

/// The mean share of its rate that a link has between two times, as events change it: a share of it, or nothing while
/// it is cut or without carrier.
fn share_of_rate(events: &[Event], link: usize, from: f64, until: f64) -> f64 {
    let (mut share, mut cut, mut carrier) = (1.0, false, true);
    let (mut since, mut sum) = (from, 0.0);
    let end = Event { at: f64::INFINITY, link, change: Change::Mend };
    for event in events.iter().filter(|event| event.link == link).chain([&end]) {
        let at = event.at.clamp(since, until.max(since));
        sum += if cut || !carrier { 0.0 } else { share * (at - since) };
        since = at;
        match event.change {
            Change::CarrierDown => carrier = false,
            Change::CarrierUp => carrier = true,
            // One direction alone carries no more: nothing is acknowledged over the other one.
            Change::Cut(_) => cut = true,
            Change::Mend => cut = false,
            Change::Rate(new) => share = new,
            Change::Roam => {}
        }
    }
    if until > from { sum / (until - from) } else { share }
}

/// The shortest delay of any link, in the direction of the traffic.
pub(crate) fn least_delay(cell: &Cell) -> Duration {
    let delay = |link: &LinkSpec| match cell.traffic.direction {
        Direction::Backward => link.backward.delay,
        Direction::Forward => link.forward.delay,
    };
    cell.topology.links.iter().map(delay).min().unwrap_or_default()
}

/// Rates of the links in bit/s, in the direction of the traffic; `None` for one without a limit.
pub fn rates(cell: &Cell) -> Vec<Option<f64>> {
    let rate = |link: &LinkSpec| match cell.traffic.direction {
        Direction::Backward => link.backward.rate,
        Direction::Forward => link.forward.rate,
    };
    cell.topology.links.iter().map(|link| rate(link).map(|rate| rate as f64)).collect()
}

/// min(C/w) · Σw over links of capacity C and weight w; zero without links.
pub fn bound(capacities: &[f64], weights: &[u32]) -> f64 {
    let shares = capacities.iter().zip(weights).map(|(c, &w)| c / f64::from(w));
    let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    shares.min_by(f64::total_cmp).map_or(0.0, |share| share * sum)
}

/// Share of the outer bytes of a full packet that is the application's; `None` for traffic that does
/// not ask for all there is.
pub(crate) fn payload_share(framing: Framing<'_>, kind: Kind, link: &LinkSpec) -> Option<f64> {
    let transport = match kind {
        Kind::Ftp | Kind::Media | Kind::Tcp => TCP,
        Kind::Quic => QUIC,
        Kind::Calls | Kind::Ping | Kind::Udp => return None,
    };
    let (payload, outer) = match framing {
        Framing::Bare => (link.mtu.saturating_sub(ip_header(link.version) + transport), link.mtu),
        Framing::Mptcp => {
            (link.mtu.saturating_sub(ip_header(link.version) + transport + DSS), link.mtu)
        }
        Framing::Tunnel(tunnel, inner_mtu) => {
            let payload = inner_mtu.saturating_sub(ip_header(tunnel.inner) + transport);
            (payload, inner_mtu + header(tunnel) + UDP + ip_header(link.version))
        }
    };
    Some(f64::from(payload) / f64::from(outer))
}

/// The largest inner packet that fits into a datagram on every link.
pub(crate) fn inner_mtu(topology: &Topology, tunnel: &Tunnel) -> u32 {
    if let Some(mtu) = tunnel.mtu {
        return mtu;
    }
    let around = UDP + header(tunnel);
    let room = |link: &LinkSpec| link.mtu.saturating_sub(ip_header(link.version) + around);
    topology.links.iter().map(room).min().unwrap_or_default()
}

/// What the tunnel adds in the datagram: GRE with the fields asked for, or the header of a session's data, and the tag
/// if it is sealed.
pub(crate) fn header(tunnel: &Tunnel) -> u32 {
    let fields = [tunnel.checksum, tunnel.key.is_some(), tunnel.sequence];
    match tunnel.framing {
        Wire::Extended => DATA_LEN as u32,
        Wire::Sealed => (DATA_LEN + TAG_LEN) as u32,
        Wire::Plain => GRE + fields.iter().map(|&present| u32::from(present) * GRE).sum::<u32>(),
    }
}

fn ip_header(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn cell(text: &str) -> Cell {
        let text = format!("title = 't'\n{text}");
        Experiment::parse("x", &text).unwrap_or_else(|error| panic!("{error}")).cells.remove(0)
    }

    /// 10 + 100 Mbit/s with equal weights, the case the published measurements puzzled over.
    #[test]
    fn equal_weights_bind_the_fast_link_to_the_slow_one() {
        assert_eq!(bound(&[10e6, 100e6], &[1, 1]), 20e6);
        assert_eq!(bound(&[10e6, 100e6], &[10, 100]), 110e6);
        assert_eq!(bound(&[9.95e6, 94.4e6], &[7, 7]), 19.9e6);
        assert_eq!(bound(&[], &[]), 0.0);
    }

    #[test]
    fn headers_are_counted_from_the_outer_ip_byte_to_the_payload() {
        let four = &cell("[[link]]\nname = 'a'").topology.links[0];
        let six = &cell("[[link]]\nname = 'a'\nversion = 6").topology.links[0];
        let share = |framing, link| payload_share(framing, Kind::Tcp, link).unwrap();
        let tunnel = Tunnel::default();
        // 1500 outer = 20 IP + 8 UDP + 8 GRE + 1464 inner; 1464 = 20 IP + 32 TCP + 1412 payload.
        assert_eq!(share(Framing::Tunnel(&tunnel, 1464), four), 1412.0 / 1500.0);
        // IPv6 in IPv4: 1464 = 40 + 32 + 1392. IPv4 in IPv6: 1500 = 40 + 8 + 8 + 1444.
        let inner = Tunnel { inner: IpVersion::V6, ..Tunnel::default() };
        assert_eq!(share(Framing::Tunnel(&inner, 1464), four), 1392.0 / 1500.0);
        assert_eq!(share(Framing::Tunnel(&tunnel, 1444), six), 1392.0 / 1500.0);
        let full = Tunnel { key: Some(7), checksum: true, ..Tunnel::default() };
        assert_eq!(share(Framing::Tunnel(&full, 1456), four), 1404.0 / 1500.0);
        // 1500 outer = 20 IP + 8 UDP + 24 of the session + 1448 inner.
        let session = Tunnel { framing: Wire::Extended, ..Tunnel::default() };
        assert_eq!(share(Framing::Tunnel(&session, 1448), four), 1396.0 / 1500.0);
        // A tag of 16 more.
        let sealed = Tunnel { framing: Wire::Sealed, ..Tunnel::default() };
        assert_eq!(share(Framing::Tunnel(&sealed, 1432), four), 1380.0 / 1500.0);
        assert_eq!(inner_mtu(&cell("[[link]]\nname = 'a'").topology, &sealed), 1432);
        assert_eq!(share(Framing::Bare, four), 1448.0 / 1500.0);
        assert_eq!(share(Framing::Mptcp, six), 1408.0 / 1500.0);
        assert_eq!(payload_share(Framing::Bare, Kind::Quic, four).unwrap(), 1435.0 / 1500.0);
        assert_eq!(payload_share(Framing::Bare, Kind::Ping, four), None);
        let both = cell("[[link]]\nname = 'a'\n[[link]]\nname = 'b'\nversion = 6").topology;
        assert_eq!(inner_mtu(&both, &tunnel), 1444, "of the narrower one");
    }

    #[test]
    fn rate_and_loss_are_those_of_the_traffic_s_direction() {
        let text = "[[link]]
            name = 'a'
            rate_mbps = 100
            loss = 0.1
            backward = { rate_mbps = 10, loss = 0 }
            [tunnel]
            weights = [3]";
        let mut cell = cell(text);
        let tunnel = cell.tunnel.clone();
        let forward = Ideal::of(&cell, Framing::Tunnel(&tunnel, 1464)).unwrap();
        assert_eq!(forward.link_rates, 100e6);
        assert!((forward.goodput - 90e6 * 1412.0 / 1500.0).abs() < 1.0);
        assert!((forward.bound - forward.goodput).abs() < 1e-3, "one link is bound by nothing");
        cell.traffic.direction = Direction::Backward;
        let backward = Ideal::alone(&cell, 0).unwrap();
        assert!((backward.goodput - 10e6 * 1448.0 / 1500.0).abs() < 1.0);
    }

    #[test]
    fn a_link_counts_as_far_as_its_rate_goes_at_each_time() {
        let event = |at, link, change| Event { at, link, change };
        let events = [
            event(2.0, 0, Change::Rate(0.5)),
            event(3.0, 1, Change::Rate(0.1)),
            event(4.0, 0, Change::Cut(crate::emulator::Direction::Both)),
            event(6.0, 0, Change::Mend),
            event(8.0, 0, Change::Rate(2.0)),
        ];
        let share = |from, until| share_of_rate(&events, 0, from, until);
        assert_eq!((share(0.0, 2.0), share(2.0, 4.0), share(4.0, 6.0)), (1.0, 0.5, 0.0));
        assert_eq!(share(0.0, 10.0), (2.0 + 1.0 + 0.0 + 1.0 + 4.0) / 10.0);
        assert_eq!(share(9.0, 12.0), 2.0, "the last one stays");
        assert_eq!(share_of_rate(&[], 0, 3.0, 5.0), 1.0);
    }

    #[test]
    fn a_swinging_rate_has_the_ideal_of_its_mean() {
        let text = "[[link]]\nname = 'a'\nrate_mbps = 80\n\
            [[event]]\nat = 0\nlink = 'a'\nchange = 'rate'\nshares = [0.25, 1]\nevery = 1.5\n\
            [traffic]\nseconds = 14\nomit = 2\n";
        let cell = cell(text);
        assert_eq!(cell.events.len(), 10);
        let tunnel = cell.tunnel.clone();
        let ideal = Ideal::of(&cell, Framing::Tunnel(&tunnel, 1464)).unwrap();
        // Of 2 to 14 s the link has 80 Mbit/s in 2-3, 4.5-6, 7.5-9, 10.5-12 and 13.5-14.
        assert!((ideal.link_rates - (6.0 * 80e6 + 6.0 * 20e6) / 12.0).abs() < 1.0, "{ideal:?}");
        let low = Ideal::between(&cell, Framing::Tunnel(&tunnel, 1464), 3.0, 4.5).unwrap();
        assert!((low.link_rates - 20e6).abs() < 1.0);
    }

    #[test]
    fn what_measures_the_links_is_bound_by_no_weights() {
        let links = "[[link]]\nname = 'a'\nrate_mbps = 10\n[[link]]\nname = 'b'\nrate_mbps = 100\n";
        let cell = cell(links);
        let weighted = Tunnel { weights: vec![1, 1], ..Tunnel::default() };
        let earliest = Tunnel { scheduler: Scheduler::Earliest, ..weighted.clone() };
        let of = |tunnel| Ideal::of(&cell, Framing::Tunnel(tunnel, 1448)).unwrap();
        assert!(of(&weighted).bound < of(&weighted).goodput / 5.0);
        assert_eq!(of(&earliest).bound, of(&earliest).goodput);
    }

    #[test]
    fn without_a_limit_or_a_flow_that_seeks_it_there_is_no_ideal() {
        assert_eq!(Ideal::of(&cell("[[link]]\nname = 'a'"), Framing::Bare), None);
        let pings = cell("[[link]]\nname = 'a'\nrate_mbps = 1\n[traffic]\nkind = 'ping'");
        assert_eq!(Ideal::of(&pings, Framing::Bare), None);
    }
}
