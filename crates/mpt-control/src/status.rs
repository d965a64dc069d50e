//! The daemon's status: a tree of plain values.
//!
//! Counters count from the start of the daemon and never go back. Times are seconds unless the name
//! ends in `_ms`, sizes are bytes, addresses are text. Every field has a default, so that a reader
//! can parse the status of an older daemon. `docs/status.md` describes the same for readers of the
//! JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::repair::{ClassCounters, RepairStatus, StoreStatus};

/// The daemon as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The daemon's version, such as `0.1.0`.
    pub version: String,
    /// The daemon's process id.
    pub pid: u32,
    /// Seconds since the daemon was ready.
    pub uptime_seconds: f64,
    /// The tunnels in the order of the configuration. One that did not answer in time is left out
    /// and named in [`Status::silent_tunnels`].
    pub tunnels: Vec<TunnelStatus>,
    /// Names of the tunnels whose thread did not answer in time, or that do not run.
    pub silent_tunnels: Vec<String>,
    /// Why tunnels that should run do not, by name. They are started again every few seconds.
    pub failed_tunnels: BTreeMap<String, String>,
    /// The control socket itself.
    pub control: ControlStatus,
    /// The daemon's log.
    pub log: LogStatus,
}

impl Status {
    /// Names of the tunnels that run and did not answer in time.
    pub fn stalled_tunnels(&self) -> impl Iterator<Item = &str> {
        let runs = |name: &&String| !self.failed_tunnels.contains_key(*name);
        self.silent_tunnels.iter().filter(runs).map(String::as_str)
    }
}

/// The control socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlStatus {
    /// Where it listens.
    pub socket: String,
    /// Clients connected, the one that asks included.
    pub clients: u64,
    /// Requests carried out.
    pub requests: u64,
    /// Lines that were no request, by fault, and clients that were refused or disconnected, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// The daemon's log: what is missing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogStatus {
    /// Lines lost, by reason: `queue_full`, the log was not read in time; `write_failed`, it could not
    /// be written.
    pub lost: BTreeMap<String, u64>,
    /// Why the last line that could not be written could not be.
    pub error: Option<String>,
}

/// One tunnel: a TUN device, its connections and its sockets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TunnelStatus {
    /// The name of the tunnel and of its TUN device.
    pub name: String,
    /// Largest inner packet in bytes that the device takes.
    pub mtu: u64,
    /// How many threads carry its packets: 1, or 2, one each way.
    pub threads: u64,
    /// The tunnel's own addresses with prefix length, such as `10.9.0.1/24`.
    pub addresses: Vec<String>,
    /// What went through the TUN device.
    pub device: DeviceCounters,
    /// The connections in the order of the configuration.
    pub connections: Vec<ConnectionState>,
    /// Datagrams and inner packets dropped before a connection could be found for them, by name of
    /// the reason. Those of a connection are counted there.
    pub drops: BTreeMap<String, u64>,
    /// The UDP sockets that the paths share.
    pub sockets: Vec<SocketStatus>,
    /// Copies of packets that are kept until it is known what became of them.
    pub store: StoreStatus,
    /// The commands of the original MPT; none if no peer is one.
    pub commands: Option<CommandStatus>,
    /// How many connections are traced at this moment.
    pub traced: u64,
    /// Lines of traces that nobody has read in time.
    pub trace_missed: u64,
    /// What does not work as configured, and what to do about it. Bounded by the daemon.
    pub problems: Vec<Problem>,
    /// The latest events, oldest first. Bounded by the daemon.
    pub events: Vec<Event>,
    /// Bytes of memory that the tunnel takes, its buffers and connections included, as far as the
    /// daemon accounts for them. 0 = not known.
    pub memory_bytes: u64,
}

/// The commands that are exchanged with peers that are an original MPT.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandStatus {
    /// Where they are received, such as `192.0.2.10:65050`.
    pub local: Vec<String>,
    /// Where they should be received and are not, and why. It is tried again every few seconds.
    pub absent: BTreeMap<String, String>,
    /// Messages received.
    pub messages_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages that were not followed, or could not be sent, by name of the reason.
    pub refused: BTreeMap<String, u64>,
}

/// What went through a TUN device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCounters {
    /// Inner packets read from the device, on their way to the network.
    pub read: Traffic,
    /// Reads that returned more than one packet.
    pub read_super_packets: u64,
    /// Inner packets written to the device, having come from the network.
    pub written: Traffic,
    /// Writes that handed over more than one packet.
    pub written_super_packets: u64,
    /// Packets too big for the tunnel that were answered by ICMP; all of them are counted as the
    /// tunnel's drop `inner_too_big`.
    pub too_big_answers: u64,
    /// TCP SYNs, of both directions, that were made to announce no larger segments than fit the
    /// tunnel.
    pub clamped_mss: u64,
    /// The kernel's ways to move many packets at once that are in use, by their names in the
    /// configuration.
    pub offloads: Vec<String>,
    /// Inner packets that the device did not take, or that could not be read from it, by name of
    /// the reason.
    pub drops: BTreeMap<String, u64>,
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// How many packets or datagrams.
    pub packets: u64,
    /// The sum of their sizes in bytes. An inner packet counts from its IP header, a datagram
    /// counts its UDP payload.
    pub bytes: u64,
}

/// One connection: the association with one peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionState {
    /// The connection's name in the configuration.
    pub name: String,
    /// The number the daemon knows it by; not its place in the file.
    pub id: u64,
    /// What the peer is: `mpt`, `mpt-original`, or `gre` for any endpoint of RFC 8086.
    pub peer_kind: String,
    /// The profile as configured and, in brackets, what it came to: `auto (classic)`.
    pub profile: String,
    /// What its datagrams look like at present: `plain`, `extended` or `sealed`; `none` if there is no session yet and plain
    /// framing is not used.
    pub framing: String,
    /// Why that is not what is configured, if it is not: that the peer answers no hello.
    pub framing_reason: Option<String>,
    /// What seals its datagrams, in sealed framing: `aes-256-gcm` or `chacha20-poly1305`.
    pub cipher: Option<String>,
    /// How many times both hosts have agreed on keys since the daemon knows the connection, in sealed framing.
    pub epoch: Option<u64>,
    /// The policy that chooses a path: `weighted` per packet, or `flow` per flow.
    pub scheduler: String,
    /// The peer's tunnel addresses, such as `10.9.0.2`.
    pub peer: Vec<String>,
    /// The further inner prefixes behind the peer, such as `10.20.0.0/16`.
    pub networks: Vec<String>,
    /// Which inner packets it carries, such as `udp 5060 10000-20000`; none = any.
    pub r#match: Option<String>,
    /// The name of the template that it was accepted from; none if it is configured.
    pub accepted_by: Option<String>,
    /// The receive-side ordering.
    pub reorder: ReorderStatus,
    /// In what order the connection's packets came, all paths together, before the receive-side
    /// ordering.
    pub reordering: Reordering,
    /// What the connection carried.
    pub counters: ConnectionCounters,
    /// Packets towards the peer that were sent more than once, and why; none where the framing is plain.
    pub repair: Option<RepairStatus>,
    /// The classes of which packets were lost or took two paths, by name.
    pub classes: Vec<ClassCounters>,
    /// Inner packets and datagrams of this connection that were dropped, by name of the reason.
    pub drops: BTreeMap<String, u64>,
    /// The paths in the order of the configuration.
    pub paths: Vec<PathState>,
    /// Bytes of memory that the connection takes, its share of the buffers included, as far as the
    /// daemon accounts for them. 0 = not known.
    pub memory_bytes: u64,
}

/// What a connection carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionCounters {
    /// Inner packets handed to a path, towards the peer.
    pub transmitted: Traffic,
    /// Inner packets delivered to the TUN device, from the peer.
    pub received: Traffic,
}

/// The reorder buffer of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReorderStatus {
    /// Most packets held at once; 0 = packets are delivered as they come.
    pub window: u64,
    /// Longest time in seconds that a packet is held.
    pub max_delay: f64,
    /// Whether a gap is given up as soon as every live path has delivered a higher number.
    pub early_release: bool,
    /// What happens to a packet that arrives after its gap was given up: `deliver` or `drop`.
    pub late: String,
    /// Packets held at this moment.
    pub held: u64,
    /// The sequence number that is waited for; none before the first packet.
    pub next: Option<u64>,
    /// What the buffer did with the packets, by name.
    pub counters: BTreeMap<String, u64>,
    /// The share of numbers that did not come at all, 0 to 1; none if nothing came.
    pub residual_loss: Option<f64>,
    /// How many packets were held for how long: up to 1 ms, 2, 5, 10, 20, 50, 100, 200 and 500 ms, and longer. Empty if
    /// that is not counted, as in plain framing, or none was held.
    pub hold_times: Vec<u64>,
    /// The time that all of them were held together, in seconds.
    pub hold_seconds: f64,
}

/// In what order numbered packets came, measured by the book: the metrics of RFC 4737 and RFC 5236.
///
/// A packet is *reordered* if one with a higher number came before it (RFC 4737 section 3.3). Copies
/// are counted apart and take no part in the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reordering {
    /// Numbered packets that came, without copies: the whole of which `reordered` is a part.
    pub packets: u64,
    /// Packets that came after one with a higher number (RFC 4737 section 3.3).
    pub reordered: u64,
    /// `reordered` as a share of `packets`, 0 to 1 (RFC 4737 section 4.1); 0 if none came.
    pub ratio: f64,
    /// Mean reordering extent of the reordered packets, in packets: how many places back the
    /// earliest packet with a higher number came (RFC 4737 section 4.2); 0 if none was reordered.
    pub extent_mean: f64,
    /// The largest reordering extent, in packets.
    pub extent_max: u64,
    /// Mean late time offset of the reordered packets, in milliseconds: how long after the earliest
    /// packet with a higher number each came (RFC 4737 section 4.3); 0 if none was reordered.
    pub late_ms_mean: f64,
    /// The largest late time offset, in milliseconds.
    pub late_ms_max: f64,
    /// Packets that are n-reordered, which means that at least the n packets right before them had
    /// higher numbers (RFC 4737 section 5). Index 0 counts n = 1; n = 3 is how often TCP would take
    /// a packet for lost. Bounded; no zeros at the end.
    pub n_reordering: Vec<u64>,
    /// Packets by displacement, which is the place in which a packet came less the place that its
    /// number gives it: early ones are negative, late ones positive (reorder density, RD, of
    /// RFC 5236). Bounded at both ends; displacements that did not occur are left out.
    pub density: BTreeMap<String, u64>,
    /// How many packets a buffer that restores the order would hold, counted at each arrival: index
    /// n is the number of arrivals that left n packets in it (reorder buffer-occupancy density, RBD,
    /// of RFC 5236). Bounded; no zeros at the end.
    pub buffer_occupancy: Vec<u64>,
    /// Packets that came a second time.
    pub duplicates: u64,
}

impl ConnectionState {
    /// Whether weights say how much each path carries. They mean nothing to schedulers that measure.
    pub fn goes_by_weights(&self) -> bool {
        !matches!(&self.scheduler[..], "earliest" | "lowest-rtt" | "redundant")
    }
}

/// How much of the quota of a path is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuotaState {
    /// The quota of a month in bytes of IP packets.
    pub bytes: u64,
    /// What was carried in both directions since the month began, in the same bytes.
    pub used: u64,
    /// The interface whose paths have the quota together; none if the path has it alone.
    pub interface: Option<String>,
    /// When the month ends, in seconds since 1970; none if the host's clock is not set.
    pub ends: Option<u64>,
    /// Seconds until then.
    pub seconds_left: Option<u64>,
    /// How many milliseconds it adds to the path's price.
    pub surcharge_ms: u64,
    /// Whether it is used up: then the path carries packets only while no other one is up.
    pub used_up: bool,
}

/// One path: a local and remote UDP address pair used by a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathState {
    /// The path's name in the configuration.
    pub name: String,
    /// The number the daemon knows it by; not its place in the file.
    pub id: u64,
    /// What the path is: `up`, `probing`, `down`, `off` or `unusable: mtu`.
    pub state: String,
    /// What brought it into that state, if anything did.
    pub cause: Option<String>,
    /// What we want of it: `available` or `off`.
    pub status: String,
    /// The local address and port, such as `192.0.2.1:4754`; the unspecified address where the
    /// kernel chooses.
    pub local: String,
    /// The peer's address and port.
    pub remote: String,
    /// The network interface it is bound to, if any.
    pub interface: Option<String>,
    /// Whether this host has the path's interface with carrier, its address, a route, and an
    /// address of its host name. If not, `cause` says what is missing. True by default.
    #[serde(default = "presumed")]
    pub carrier: bool,
    /// Its share of the packets relative to the other paths', 1 to 10000.
    pub weight: u64,
    /// Its tier, 0 to 255: the paths of the least number that are up carry the packets.
    pub priority: u64,
    /// Whether it is ready but leaves the packets to paths of a lesser priority number.
    pub standby: bool,
    /// Whether its traffic is paid for by volume, as the file says of its interface.
    pub metered: bool,
    /// How much of its quota is used; none if it has none.
    pub quota: Option<QuotaState>,
    /// What is pinned to it, such as `tcp_dst 22`, where the scheduler is `flow`.
    pub pins: Vec<String>,
    /// Largest inner packet in bytes that fits through it.
    pub mtu: u64,
    /// Seconds between keepalives; 0 = none are sent.
    pub keepalive: f64,
    /// Seconds of silence after which the path is down; 0 = never.
    pub dead_time: f64,
    /// Bytes of IP packets that keepalives take in 30 days in both directions if the peer sends as many; 0 = none are sent.
    pub keepalive_bytes_per_month: u64,
    /// Datagrams sent.
    pub sent: Traffic,
    /// How many of them had been sent before, on a path that was lost.
    pub resent: u64,
    /// Datagrams without inner packets that were sent: keepalives, probes, and what they are replaced by.
    pub control_sent: Traffic,
    /// Datagrams received.
    pub received: Traffic,
    /// Bits of UDP payload per second at which this host lets datagrams of the path's socket out, as far
    /// as its queue has shown; none where nothing holds them back.
    pub rate: Option<u64>,
    /// Most bytes of UDP payload that are sent as one super-datagram, given that rate.
    pub send_batch_limit: u64,
    /// Seconds since the peer was last heard on it; none if never.
    pub last_heard_seconds: Option<f64>,
    /// Smoothed round-trip time in milliseconds (RFC 6298 section 2), from keepalives; none if the
    /// peer does not measure.
    pub rtt_ms: Option<f64>,
    /// One-way jitter from the peer to here in milliseconds (RFC 3550 section 6.4.1), from
    /// keepalives; none if the peer does not measure.
    pub jitter_ms: Option<f64>,
    /// Datagrams with inner packets that the peer sent on this path and that did not arrive, as far
    /// as it has reported; none if the peer does not support the measurement.
    pub lost: Option<u64>,
    /// The share of such datagrams lost in the last 10 seconds or so, 0 to 1; none if the peer does
    /// not measure or sent nothing.
    pub loss: Option<f64>,
    /// What is measured in extended framing from the peer to here; none in plain framing.
    pub from_peer: Option<Direction>,
    /// The same from here to the peer, by its feedback.
    pub to_peer: Option<Direction>,
    /// In what order this path delivered its packets, whatever the others did.
    pub reordering: Reordering,
    /// How the peer is set, as it says on this path in a session; none if it does not, as in plain framing.
    pub peer: Option<PeerSettings>,
    /// Datagrams of this path that could not be sent or were not accepted, by name of the reason.
    pub drops: BTreeMap<String, u64>,
}

/// How a peer is set, as it says on a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerSettings {
    /// The policy by which it chooses a path, by its name in the configuration; none if that is not known here.
    pub scheduler: Option<String>,
    /// Its priority of the path.
    pub priority: u64,
    /// The weight by which it sends on the path, rounded by up to 3 %; none if it does not say.
    pub weight: Option<u64>,
    /// The MTU of its tunnel; none if it does not say.
    pub mtu: Option<u64>,
    /// Whether that is configured. Otherwise it follows from the paths.
    pub mtu_is_set: bool,
    /// Seconds from one path status to the next if its peer is no slower; none if it does not say.
    pub keepalive: Option<f64>,
    /// Seconds of silence after which the path is down for it, at the most 65.535; 0 = never.
    pub dead_time: f64,
    /// Whether it puts packets in order by measured delays. Otherwise the four settings below say how.
    pub order_by_evidence: bool,
    /// Most packets that it holds.
    pub window: u64,
    /// Longest time in seconds that it holds one, at the most 65.535.
    pub max_delay: f64,
    /// Whether it gives a gap up as soon as every live path has delivered a higher number.
    pub early_release: bool,
    /// What it does with a packet that arrives after its gap was given up: `deliver` or `drop`.
    pub late: String,
}

/// What extended framing measures of a path in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// Datagrams that arrived, control included, copies not.
    pub received: u64,
    /// Datagrams that were lost for certain.
    pub lost: u64,
    /// The share of datagrams lost in the last 10 seconds or so, 0 to 1; none if none were sent, or it is not known.
    pub loss: Option<f64>,
    /// The highest rate of the last 10 seconds or so at which the receiver got datagrams, in bits of UDP payload per
    /// second; no more than was sent. None if it is not known.
    pub rate: Option<u64>,
    /// What the path is believed to carry, in bits of IP packets per second; with the scheduler `earliest`. None if
    /// it is not known.
    pub capacity: Option<u64>,
    /// The rate at which it is sent on at the most, in bits of IP packets per second. None without a limit.
    pub pace: Option<u64>,
    /// What the estimate of the capacity is at: `open`, `trains`, `start`, `servo`, `draining`, `competing` or `stopped`. None
    /// where there is none.
    pub stage: Option<String>,
    /// How much longer datagrams take than by the fastest path of the connection, in milliseconds.
    pub delay_ms: Option<f64>,
    /// The time in queues, on average, in milliseconds: how much longer datagrams take than they do at best.
    pub queueing_ms: Option<f64>,
    /// The mean deviation of the delay, in milliseconds.
    pub deviation_ms: Option<f64>,
    /// Interarrival jitter (RFC 3550 section 6.4.1), in milliseconds.
    pub jitter_ms: Option<f64>,
}

/// Carrier where nothing is said about it.
fn presumed() -> bool {
    true
}

/// One UDP socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketStatus {
    /// The local address and port it is bound to.
    pub local: String,
    /// The network interface it is bound to, if any.
    pub device: Option<String>,
    /// Receive buffer in bytes that the kernel granted, in the unit of `wanted`.
    pub receive_buffer: u64,
    /// Send buffer in bytes that the kernel granted, in the unit of `wanted`.
    pub send_buffer: u64,
    /// Bytes asked for, for either buffer.
    pub wanted: u64,
    /// The kernel's ways to move many datagrams at once that are in use, by their names in the
    /// configuration.
    pub offloads: Vec<String>,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams longer than the largest that is read, and so dropped.
    pub truncated: u64,
    /// Datagrams whose control messages did not fit.
    pub control_truncated: u64,
    /// Failures of sending and receiving, by name.
    pub errors: BTreeMap<String, u64>,
}

/// Something that does not work as configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The name of the cause, for programs.
    pub code: String,
    /// The connection that it is about, if it is about one.
    pub connection: Option<String>,
    /// The path that it is about, if it is about one.
    pub path: Option<String>,
    /// What is seen, for people.
    pub text: String,
    /// What to do about it, for people.
    pub remedy: String,
    /// Seconds since it was first seen.
    pub since_seconds: f64,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// When, in seconds since the daemon was ready.
    pub at_seconds: f64,
    /// The connection it happened to, if to one.
    pub connection: Option<String>,
    /// The path it happened to, if to one.
    pub path: Option<String>,
    /// What happened, for people.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_another_version_can_be_read() {
        let text = r#"{"version":"9.0.0","mood":"good","tunnels":[{"name":"mpt0","colour":3}]}"#;
        let status: Status = serde_json::from_str(text).unwrap();
        assert_eq!(status.version, "9.0.0");
        assert_eq!(status.tunnels[0].name, "mpt0");
        assert_eq!(status.tunnels[0].device.read, Traffic::default());
    }

    #[test]
    fn a_status_without_carrier_means_carrier_is_present() {
        let path: PathState = serde_json::from_str(r#"{"name":"fibre"}"#).unwrap();
        assert!(path.carrier);
        let path: PathState = serde_json::from_str(r#"{"carrier":false}"#).unwrap();
        assert!(!path.carrier);
    }

    #[test]
    fn a_status_survives_the_line() {
        let path = PathState {
            name: "fibre".into(),
            rate: Some(940_000_000),
            send_batch_limit: 23_500,
            last_heard_seconds: Some(0.25),
            rtt_ms: Some(12.5),
            reordering: Reordering {
                packets: 3,
                density: BTreeMap::from([("-1".into(), 1), ("0".into(), 1), ("1".into(), 1)]),
                ..Reordering::default()
            },
            drops: BTreeMap::from([("too_big".into(), 3)]),
            ..PathState::default()
        };
        let connection = ConnectionState {
            r#match: Some("udp 5060".into()),
            paths: vec![path],
            ..ConnectionState::default()
        };
        let tunnel = TunnelStatus { connections: vec![connection], ..TunnelStatus::default() };
        let status = Status { pid: 7, tunnels: vec![tunnel], ..Status::default() };
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
