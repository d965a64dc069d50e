//! What the daemon knows about itself: a tree of plain values.
//!
//! Counters count from the start of the daemon and never go back. Times are seconds, sizes are
//! bytes, addresses are text. Every field has a default, so that a reader can take the status of an
//! older daemon, and whoever makes one names only what it has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// Names of the tunnels whose thread did not answer in time.
    pub silent_tunnels: Vec<String>,
    /// The control socket itself.
    pub control: ControlStatus,
}

/// The control socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlStatus {
    /// Where it listens.
    pub socket: String,
    /// Visitors connected, the one that asks included.
    pub clients: u64,
    /// Requests carried out.
    pub requests: u64,
    /// Lines that were no request, by name of the fault, and visitors turned away, by reason.
    pub refused: BTreeMap<String, u64>,
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
    /// The latest events, oldest first. Bounded by the daemon.
    pub events: Vec<Event>,
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
    /// The profile as configured and, in brackets, what it came to: `auto (classic)`.
    pub profile: String,
    /// The policy that chooses a path per packet: `weighted`.
    pub scheduler: String,
    /// The receive-side ordering.
    pub reorder: ReorderStatus,
    /// What the connection carried.
    pub counters: ConnectionCounters,
    /// Inner packets and datagrams of this connection that were dropped, by name of the reason.
    pub drops: BTreeMap<String, u64>,
    /// The paths in the order of the configuration.
    pub paths: Vec<PathState>,
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
    /// What becomes of a packet that comes after its place was given up: `deliver` or `drop`.
    pub late: String,
    /// Packets held at this moment.
    pub held: u64,
    /// The sequence number that is waited for; none before the first packet.
    pub next: Option<u64>,
    /// What the buffer did with the packets, by name.
    pub counters: BTreeMap<String, u64>,
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
    /// Its share of the packets relative to the other paths', 1 to 10000.
    pub weight: u64,
    /// Largest inner packet in bytes that fits through it.
    pub mtu: u64,
    /// Seconds between keepalives; 0 = none are sent.
    pub keepalive: f64,
    /// Seconds of silence after which the path is down; 0 = never.
    pub dead_time: f64,
    /// Datagrams sent.
    pub sent: Traffic,
    /// Datagrams received.
    pub received: Traffic,
    /// Bits of UDP payload per second at which this host lets datagrams of the path's socket out, as far
    /// as its queue has shown; none where nothing holds them back.
    pub rate: Option<u64>,
    /// Most bytes of UDP payload that are sent as one super-datagram, given that rate.
    pub train_limit: u64,
    /// Seconds since the peer was last heard on it; none if never.
    pub last_heard_seconds: Option<f64>,
    /// Datagrams of this path that could not be sent or were not accepted, by name of the reason.
    pub drops: BTreeMap<String, u64>,
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
    fn a_status_survives_the_line() {
        let path = PathState {
            name: "fibre".into(),
            rate: Some(940_000_000),
            train_limit: 23_500,
            last_heard_seconds: Some(0.25),
            drops: BTreeMap::from([("too_big".into(), 3)]),
            ..PathState::default()
        };
        let connection = ConnectionState { paths: vec![path], ..ConnectionState::default() };
        let tunnel = TunnelStatus { connections: vec![connection], ..TunnelStatus::default() };
        let status = Status { pid: 7, tunnels: vec![tunnel], ..Status::default() };
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
