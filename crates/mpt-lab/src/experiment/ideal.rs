//! What could be reached at best: link rates, less loss, less headers.
//!
//! A link's rate counts outer IP bytes. Of those, an inner TCP segment of full size leaves the share
//! payload ÷ outer bytes to the application:
//!
//! ```text
//! | outer IP 20/40 | UDP 8 | GRE 4..16 | inner IP 20/40 | TCP 20 + timestamps 12 | payload |
//!                                      |<------------------ inner MTU ------------------>|
//! ```
//!
//! Acknowledgements travel the other way and cost this direction nothing. The *ideal* of a tunnel is the
//! sum over its links; a tunnel that shares packets by weights w cannot exceed its *bound*
//! min(C/w) · Σw, because the link that is the most overloaded for its weight stops the others.

use super::plan::{Direction, Experiment, Kind, Tunnel};
use crate::topology::{IpVersion, LinkSpec};

/// TCP header with the timestamps option (RFC 7323), which Linux always negotiates.
const TCP: u32 = 20 + 12;

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

impl Ideal {
    /// The ideal of an experiment whose tunnel has this inner MTU. `None` if a link has no limit, for
    /// then there is none here, or if the traffic does not ask for all there is.
    pub fn of(experiment: &Experiment, inner_mtu: u32) -> Option<Self> {
        if experiment.traffic.kind != Kind::Tcp {
            return None;
        }
        let rates = rates(experiment).into_iter().collect::<Option<Vec<_>>>()?;
        let links = &experiment.topology.links;
        let capacities = rates.iter().zip(links).map(|(rate, link)| {
            let lost = match experiment.traffic.direction {
                Direction::Backward => link.backward.loss.long_run(),
                Direction::Forward => link.forward.loss.long_run(),
            };
            rate * (1.0 - lost) * payload_share(&experiment.tunnel, inner_mtu, link.version)
        });
        let capacities: Vec<f64> = capacities.collect();
        Some(Self {
            link_rates: rates.iter().sum(),
            goodput: capacities.iter().sum(),
            bound: bound(&capacities, &experiment.tunnel.weights),
        })
    }
}

/// Rates of the links in bit/s, in the direction of the traffic; `None` for one without a limit.
pub fn rates(experiment: &Experiment) -> Vec<Option<f64>> {
    let rate = |link: &LinkSpec| match experiment.traffic.direction {
        Direction::Backward => link.backward.rate,
        Direction::Forward => link.forward.rate,
    };
    experiment.topology.links.iter().map(|link| rate(link).map(|rate| rate as f64)).collect()
}

/// min(C/w) · Σw over links of capacity C and weight w; zero without links.
pub fn bound(capacities: &[f64], weights: &[u32]) -> f64 {
    let shares = capacities.iter().zip(weights).map(|(c, &w)| c / f64::from(w));
    let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    shares.min_by(f64::total_cmp).map_or(0.0, |share| share * sum)
}

/// Share of the outer bytes of a full datagram that is inner TCP payload.
fn payload_share(tunnel: &Tunnel, inner_mtu: u32, outer: IpVersion) -> f64 {
    let payload = inner_mtu.saturating_sub(ip_header(tunnel.inner) + TCP);
    let fields = [tunnel.checksum, tunnel.key.is_some(), tunnel.sequence];
    let optional = fields.iter().map(|&present| u32::from(present) * GRE).sum::<u32>();
    f64::from(payload) / f64::from(inner_mtu + GRE + optional + UDP + ip_header(outer))
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
        let tunnel = Tunnel::default();
        // 1500 outer = 20 IP + 8 UDP + 8 GRE + 1464 inner; 1464 = 20 IP + 32 TCP + 1412 payload.
        assert_eq!(payload_share(&tunnel, 1464, IpVersion::V4), 1412.0 / 1500.0);
        // IPv6 in IPv4: 1464 = 40 + 32 + 1392. IPv4 in IPv6: 1500 = 40 + 8 + 8 + 1444.
        let inner = Tunnel { inner: IpVersion::V6, ..Tunnel::default() };
        assert_eq!(payload_share(&inner, 1464, IpVersion::V4), 1392.0 / 1500.0);
        assert_eq!(payload_share(&tunnel, 1444, IpVersion::V6), 1392.0 / 1500.0);
        let full = Tunnel { key: Some(7), checksum: true, ..Tunnel::default() };
        assert_eq!(payload_share(&full, 1456, IpVersion::V4), 1404.0 / 1500.0);
    }

    #[test]
    fn rate_and_loss_are_those_of_the_traffic_s_direction() {
        let text = "title = 't'
            [[link]]
            name = 'a'
            rate_mbps = 100
            loss = 0.1
            backward = { rate_mbps = 10, loss = 0 }
            [tunnel]
            weights = [3]";
        let mut experiment = Experiment::parse("x", text).unwrap();
        let forward = Ideal::of(&experiment, 1464).unwrap();
        assert_eq!(forward.link_rates, 100e6);
        assert!((forward.goodput - 90e6 * 1412.0 / 1500.0).abs() < 1.0);
        assert!((forward.bound - forward.goodput).abs() < 1e-3, "one link is bound by nothing");
        experiment.traffic.direction = Direction::Backward;
        let backward = Ideal::of(&experiment, 1464).unwrap();
        assert!((backward.goodput - 10e6 * 1412.0 / 1500.0).abs() < 1.0);
    }

    #[test]
    fn without_a_limit_or_a_flow_that_seeks_it_there_is_no_ideal() {
        let experiment = Experiment::parse("x", "title = 't'\n[[link]]\nname = 'a'").unwrap();
        assert_eq!(Ideal::of(&experiment, 1464), None);
        let pings = "title = 't'\n[[link]]\nname = 'a'\nrate_mbps = 1\n[traffic]\nkind = 'ping'";
        assert_eq!(Ideal::of(&Experiment::parse("x", pings).unwrap(), 1464), None);
    }
}
