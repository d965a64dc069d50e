//! From settings to a tunnel that is ready to run.
//!
//! The interface comes last to life: sockets are open and the core is ready before the kernel can
//! hand over the first packet.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use mpt_io::netlink::Netlink;
use mpt_io::tun::{self, Burst, Device};
use mpt_io::udp::{self, Receive, ReceiveOptions, Socket, Train};
use mpt_proto::{
    ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Instant, Late, PathConfig, PathId,
    PathStatus, Pins, Prefix, ReorderConfig, SchedulerConfig, SocketId, Traffic,
};

use super::incoming::Incoming;
use super::mtu::{MIN_MTU, Mtu, inner_mtu, path_mtu};
use super::narrowed::Narrowed;
use super::outgoing::{Lane, Outgoing};
use super::receive::ReceiveLoop;
use super::transmit::TransmitLoop;
use crate::config;

/// Wanted for each socket buffer, in bytes: what arrives at 1 Gbit/s while the machine stalls for
/// 30 ms. For sending it is as much that may wait for a slow interface before datagrams are dropped.
const SOCKET_BUFFER: usize = 4 << 20;

/// How long the kernel may take until an address of ours is deliverable. It takes a millisecond.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// Packets that the interface may keep for us while others have the processor: the 8 ms of two ticks of a
/// common scheduler at 600,000 small packets per second. With 2000 a sixth less of them arrive before a
/// hundredth is lost, with the default of 500 a tenth of a burst is. A super-packet of 64 KiB counts as
/// one, so bulk data is bounded by what its senders keep in flight, and stands here only if the
/// processor is the bottleneck: datagrams are sent or dropped, and never waited for.
const QUEUE_LEN: u32 = 5000;

/// Slots to receive into, of which up to half are left to packets that wait for others: 32 MiB where
/// datagrams are coalesced, of which only what is used ever becomes real.
const RECEIVE_SLOTS: usize = 512;

/// A datagram slot holds at least this many bytes, so that a peer with a larger MTU than ours is
/// not cut short.
const MIN_SLOT: usize = 2048;

/// Bytes around an inner packet in a datagram, and some to spare.
const SLOT_MARGIN: usize = 64;

/// One path, as the settings and the kernel know it.
pub(super) struct PathInfo {
    pub(super) settings: config::Path,
    pub(super) remote: SocketAddr,
    /// The largest inner packet that fits a datagram on it.
    pub(super) mtu: u32,
    /// The largest that it has been.
    pub(super) best_mtu: u32,
    /// The largest that was found to arrive, where that is less than the kernel knows.
    pub(super) narrowed: Narrowed,
}

impl PathInfo {
    /// Whether it carries less than it did, so that it may carry more again.
    pub(super) fn is_limited(&self) -> bool {
        self.mtu < self.best_mtu || self.narrowed.is_set()
    }
}

/// One connection, as the settings know it.
pub(super) struct ConnectionInfo {
    pub(super) settings: config::Connection,
    pub(super) paths: Vec<PathInfo>,
}

/// Opens everything and brings the interface up.
pub(super) fn open(settings: &config::Tunnel) -> anyhow::Result<(TransmitLoop, ReceiveLoop)> {
    let device = Device::open(&tun::Options {
        name: settings.name.clone(),
        queue_len: Some(QUEUE_LEN),
        offloads: tun::Offloads {
            vnet_header: settings.offloads.vnet,
            tso: settings.offloads.tso,
            uso: settings.offloads.uso,
        },
    })?;
    let Opened { sockets, connections, lanes } = open_paths(settings)?;
    let config = endpoint_config(settings, &connections, &lanes);
    let mut endpoint = Endpoint::new(&config, Instant::ZERO)?;

    let mtu = inner_mtu(settings, &connections);
    let paths = || connections.iter().flat_map(|connection| &connection.paths);
    if let Some(path) = paths().find(|path| path.mtu < mtu && path.mtu >= MIN_MTU) {
        let name = &path.settings.name;
        tracing::warn!(path = name, "carries {} bytes, less than the MTU of {mtu}", path.mtu);
    }
    let largest = paths().map(|path| path.mtu).chain([mtu]).max().unwrap_or(mtu);
    let slot = MIN_SLOT.max(largest as usize + SLOT_MARGIN);
    let windows = config.connections.iter().map(|connection| connection.reorder.window as usize);
    let receive = Receive::new(&ReceiveOptions {
        spare: RECEIVE_SLOTS - ReceiveOptions::default().slots,
        slot_size: slot,
        coalescing: sockets.iter().any(|socket| socket.offloads().coalescing),
        ..ReceiveOptions::default()
    });
    let mut incoming = Incoming::new(windows.sum(), slot, settings.elided);
    for (connection, info) in (0..).map(ConnectionId).zip(&connections) {
        for (path, info) in (0..).map(PathId).zip(&info.paths) {
            let (fits, mut sink) = (info.mtu >= MIN_MTU, incoming.to(&receive, &device));
            endpoint.set_path_fits(Instant::ZERO, connection, path, fits, &mut sink);
        }
    }
    bring_up(&device, settings, mtu)?;

    let (settings, device) = (Arc::new(settings.clone()), Arc::new(device));
    let sockets: Arc<[Socket]> = sockets.into();
    let (tx_side, rx_side) = endpoint.split();
    let rx = ReceiveLoop {
        settings: Arc::clone(&settings),
        device: Arc::clone(&device),
        receive_errors: vec![0; sockets.len()],
        sockets: Arc::clone(&sockets),
        endpoint: rx_side,
        incoming,
        receive,
        recent: VecDeque::new(),
    };
    let max_mtu = (slot - SLOT_MARGIN) as u32;
    let tx = TransmitLoop {
        settings,
        device,
        sockets,
        connections,
        endpoint: tx_side,
        outgoing: Outgoing::new(lanes),
        burst: Burst::new(),
        read: Traffic::default(),
        mtu: Mtu { bytes: mtu, max: max_mtu, next_check: Instant::ZERO },
    };
    Ok((tx, rx))
}

/// What [`open_paths`] opens.
struct Opened {
    sockets: Vec<Socket>,
    /// With their paths; `lanes` has the same shape.
    connections: Vec<ConnectionInfo>,
    lanes: Vec<Vec<Lane>>,
}

/// Opens the sockets, one for all paths with the same local address, port and interface.
fn open_paths(settings: &config::Tunnel) -> anyhow::Result<Opened> {
    let mut sockets: Vec<Socket> = Vec::new();
    let mut opened: Vec<(SocketAddr, Option<String>)> = Vec::new();
    let mut connections = Vec::new();
    let mut lanes = Vec::new();
    for connection in &settings.connections {
        let mut paths = Vec::new();
        let mut path_lanes = Vec::new();
        for path in &connection.paths {
            let local = SocketAddr::new(local_address(path), connection.local_port);
            let key = (local, path.interface.clone());
            let socket = match opened.iter().position(|other| *other == key) {
                Some(socket) => socket,
                None => {
                    let device = path.interface.clone();
                    let buffer_bytes = SOCKET_BUFFER;
                    let options = udp::Options {
                        device,
                        buffer_bytes,
                        segmentation: settings.offloads.gso,
                        coalescing: settings.offloads.gro,
                        ..udp::Options::new(local)
                    };
                    let socket = Socket::open(&options);
                    sockets.push(socket.with_context(|| format!("path {}", path.name))?);
                    opened.push(key);
                    opened.len() - 1
                }
            };
            let remote = path.remote.address().context("host names are not resolved")?;
            let remote = SocketAddr::new(remote, connection.remote_port);
            path_lanes.push(Lane::new(socket, Train::new(remote, path.local)));
            let mtu = path_mtu(path, remote, connection);
            let (settings, narrowed) = (path.clone(), Narrowed::default());
            paths.push(PathInfo { settings, remote, mtu, best_mtu: mtu, narrowed });
        }
        connections.push(ConnectionInfo { settings: connection.clone(), paths });
        lanes.push(path_lanes);
    }
    Ok(Opened { sockets, connections, lanes })
}

fn local_address(path: &config::Path) -> IpAddr {
    path.local.unwrap_or(match path.remote.address() {
        Some(IpAddr::V4(_)) | None => Ipv4Addr::UNSPECIFIED.into(),
        Some(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    })
}

fn endpoint_config(
    settings: &config::Tunnel,
    connections: &[ConnectionInfo],
    lanes: &[Vec<Lane>],
) -> EndpointConfig {
    let connections = connections.iter().zip(lanes).map(|(connection, lanes)| {
        let paths = connection.paths.iter().zip(lanes);
        connection_config(&connection.settings, paths.map(|(path, lane)| path_config(path, lane)))
    });
    EndpointConfig {
        addresses: settings.addresses.iter().filter_map(core_prefix).collect(),
        connections: connections.collect(),
    }
}

fn connection_config(
    settings: &config::Connection,
    paths: impl Iterator<Item = PathConfig>,
) -> ConnectionConfig {
    let (config::Scheduler::Weighted | config::Scheduler::Flow) = settings.scheduler;
    ConnectionConfig {
        peer: settings.peer.clone(),
        networks: settings.networks.iter().filter_map(core_prefix).collect(),
        selector: None,
        key: settings.key,
        checksum: settings.checksum,
        sequence: settings.sequence,
        scheduler: SchedulerConfig::Weighted,
        reorder: ReorderConfig {
            window: settings.reorder.window,
            max_delay: settings.reorder.max_delay,
            early_release: settings.reorder.early_release,
            late: match settings.reorder.late {
                config::Late::Deliver => Late::Deliver,
                config::Late::Drop => Late::Drop,
            },
        },
        paths: paths.collect(),
    }
}

fn path_config(path: &PathInfo, lane: &Lane) -> PathConfig {
    PathConfig {
        socket: SocketId(lane.socket as u16),
        remote: path.remote,
        weight: path.settings.weight,
        priority: 0,
        pins: Pins::default(),
        keepalive: Some(path.settings.keepalive).filter(|time| !time.is_zero()),
        dead_time: Some(path.settings.dead_time).filter(|time| !time.is_zero()),
        status: core_status(path.settings.status),
    }
}

/// A prefix in the core's words; lengths have been checked.
fn core_prefix(prefix: &config::Prefix) -> Option<Prefix> {
    Prefix::new(prefix.addr, prefix.len)
}

/// A wish in the core's words.
pub(super) fn core_status(status: config::PathStatus) -> PathStatus {
    match status {
        config::PathStatus::Available => PathStatus::Available,
        config::PathStatus::Off => PathStatus::Off,
    }
}

/// Gives the interface its MTU, addresses and routes. All of that disappears with the interface,
/// and that with its descriptor.
fn bring_up(device: &Device, settings: &config::Tunnel, mtu: u32) -> anyhow::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = device.index();
    netlink.disable_address_generation(index)?;
    netlink.set_mtu(index, mtu)?;
    for prefix in &settings.addresses {
        netlink.add_address(index, prefix.addr, prefix.len)?;
    }
    netlink.set_up(index, true)?;
    for prefix in &settings.addresses {
        // The kernel makes an IPv6 address deliverable a moment later; until then the first
        // packets to it would be lost.
        netlink.wait_for_address(prefix.addr, ADDRESS_PATIENCE)?;
    }
    let on_link = |address: IpAddr| {
        let host = config::Prefix { addr: address, len: config::Prefix::max_len(address) };
        settings.addresses.iter().any(|own| own.overlaps(host))
    };
    for connection in &settings.connections {
        for &peer in connection.peer.iter().filter(|&&peer| !on_link(peer)) {
            netlink.add_route((peer, config::Prefix::max_len(peer)), index, None)?;
        }
        for network in &connection.networks {
            netlink.add_route((network.addr, network.len), index, None)?;
        }
    }
    Ok(())
}
