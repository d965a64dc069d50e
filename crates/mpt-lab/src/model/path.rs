//! What each path can carry, and how late it is.

use crate::cell::{Direction, Tunnel, ideal};
use crate::topology::{IpVersion, Topology};

/// What two daemons, two hosts and the emulator add to the delay of a link each way, in seconds:
/// measured, see docs/model.md.
pub(super) const HOST_DELAY: f64 = 0.000_15;

/// The standard deviation of that, in seconds: measured, too.
pub(super) const HOST_JITTER: f64 = 0.000_1;

/// TCP header with time stamps (RFC 7323).
pub(super) const TCP: usize = 20 + 12;
/// UDP header (RFC 768).
const UDP: usize = 8;

/// Links whose load relative to their capacity differs by less fill their queues together.
const ALIKE: f64 = 0.02;

/// Sizes of packets in a tunnel, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Payload of a full TCP segment.
    pub(super) segment: usize,
    /// Inner IP header.
    pub(super) inner_header: usize,
    /// UDP and the tunnel's own header around an inner packet.
    pub(super) encapsulation: usize,
}

impl Sizes {
    pub(super) fn new(tunnel: &Tunnel, inner_mtu: u32) -> Self {
        let inner_header = ip_header(tunnel.inner);
        Self {
            segment: (inner_mtu as usize).saturating_sub(inner_header + TCP).max(1),
            inner_header,
            encapsulation: UDP + ideal::header(tunnel) as usize,
        }
    }
}

/// A path and what is known of its link.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) name: String,
    pub(super) weight: u32,
    /// Outer IP bit/s in the direction of the traffic; `None` without a limit.
    pub(super) rate: Option<f64>,
    /// Bytes that may wait before the link.
    pub(super) queue: f64,
    /// One-way delay in seconds, and its standard deviation.
    pub(super) delay: f64,
    pub(super) jitter: f64,
    pub(super) keep_order: bool,
    /// One-way delay of the other direction.
    pub(super) delay_back: f64,
    /// Shares of packets lost.
    pub(super) loss: f64,
    pub(super) loss_back: f64,
    /// Headers around a segment's payload, and around a UDP packet's, down to the outer IP header.
    pub(super) headers_of_tcp: usize,
    pub(super) headers_of_udp: usize,
    /// Payload bytes of a full segment.
    pub(super) segment: usize,
    /// It is as loaded for its capacity as any.
    pub(super) bottleneck: bool,
}

/// The paths of a tunnel, in the order of the links.
pub(super) fn paths(
    topology: &Topology,
    tunnel: &Tunnel,
    direction: Direction,
    sizes: &Sizes,
) -> Vec<Path> {
    let links = topology.links.iter().enumerate();
    let mut paths: Vec<Path> = links
        .map(|(number, link)| {
            let (there, back) = match direction {
                Direction::Forward => (&link.forward, &link.backward),
                Direction::Backward => (&link.backward, &link.forward),
            };
            let headers = sizes.inner_header + sizes.encapsulation + ip_header(link.version);
            Path {
                name: link.name.clone(),
                weight: tunnel.weights.get(number).copied().unwrap_or(1).max(1),
                rate: there.rate.map(|rate| rate as f64),
                queue: there.queue_limit().map_or(0.0, |bytes| bytes as f64),
                delay: there.delay.as_secs_f64() + HOST_DELAY,
                jitter: there.jitter.as_secs_f64(),
                keep_order: there.keep_order,
                delay_back: back.delay.as_secs_f64() + HOST_DELAY,
                loss: there.loss.long_run(),
                loss_back: back.loss.long_run(),
                headers_of_tcp: headers + TCP,
                headers_of_udp: headers + UDP,
                segment: sizes.segment,
                bottleneck: false,
            }
        })
        .collect();
    let least = paths.iter().map(Path::room).fold(f64::INFINITY, f64::min);
    for path in &mut paths {
        path.bottleneck = path.rate.is_some() && path.room() <= least * (1.0 + ALIKE);
    }
    paths
}

impl Path {
    /// Bit/s of TCP payload that fit through at the most; `None` without a limit. What is lost is lost
    /// before the link's queue and takes no room on it.
    pub(super) fn capacity(&self) -> Option<f64> {
        let payload = self.segment as f64;
        let share = payload / (payload + self.headers_of_tcp as f64);
        Some(self.rate? * share)
    }

    /// Bit/s of payload per unit of weight at which the link is full; infinite without a limit.
    fn room(&self) -> f64 {
        let passing = f64::from(self.weight) * (1.0 - self.loss);
        self.capacity().map_or(f64::INFINITY, |capacity| capacity / passing)
    }

    /// How long a packet waits at the most before the link, in seconds.
    pub(super) fn queue_seconds(&self) -> f64 {
        self.rate.map_or(0.0, |rate| self.queue * 8.0 / rate)
    }

    /// Whether packets overtake each other on the link itself.
    pub(super) fn reorders(&self) -> bool {
        self.jitter > 0.0 && !self.keep_order
    }
}

/// What the tunnel passes at the most, in bit/s of payload: the sending vector gives each path its share
/// of the packets whatever its link can carry, so that the link that is full first stops all:
/// min(C / (w (1 - p))) · Σ w (1 - p).
pub(super) fn bound(paths: &[Path]) -> f64 {
    let least = paths.iter().map(Path::room).fold(f64::INFINITY, f64::min);
    least * paths.iter().map(|path| f64::from(path.weight) * (1.0 - path.loss)).sum::<f64>()
}

/// The round-trip time of an ordered tunnel whose queues are empty: the slowest path's, each way.
pub(super) fn round_trip(paths: &[Path]) -> f64 {
    let slowest = |delay: fn(&Path) -> f64| paths.iter().map(delay).fold(0.0, f64::max);
    slowest(|path| path.delay) + slowest(|path| path.delay_back)
}

/// How long the queues that fill take to drain: of the bottlenecks' the shortest, which overflows first.
pub(super) fn queue_seconds(paths: &[Path]) -> f64 {
    let filling = paths.iter().filter(|path| path.bottleneck).map(Path::queue_seconds);
    filling.min_by(f64::total_cmp).unwrap_or(0.0)
}

/// A share of each path's packets as a share of all.
pub(super) fn share_of_packets(paths: &[Path], share: fn(&Path) -> f64) -> f64 {
    let weights: f64 = paths.iter().map(|path| f64::from(path.weight)).sum();
    paths.iter().map(|path| f64::from(path.weight) * share(path)).sum::<f64>() / weights
}

pub(super) fn ip_header(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    }
}
