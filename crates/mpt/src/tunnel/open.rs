//! From settings to a tunnel that is ready to run, without connections yet.
//!
//! Sockets, connections and paths come as [steps](super::op) while it runs, those of the start like
//! those of later. The interface gets its addresses and routes last, so that the kernel hands over no
//! packet before there is a way for it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use mpt_io::memory;
use mpt_io::poll::Poll;
use mpt_io::tun::{self, Burst, Device, OpenError};
use mpt_io::udp::{Receive, ReceiveOptions};
use mpt_proto::{Endpoint, EndpointConfig, Instant, Secret, TokenBucket, Traffic};

use super::clamp::Clamp;
use super::core::core_prefix;
use super::dark::Dark;
use super::incoming::Incoming;
use super::interface_mtu::Mtu;
use super::main_event::MainEvents;
use super::names::Names;
use super::outgoing::Outgoing;
use super::problems::Problems;
use super::receive::ReceiveLoop;
use super::sockets::Sockets;
use super::strangers::Strangers;
use super::table::Table;
use super::too_big::TooBig;
use super::trace_buffer::TraceBuffer;
use super::transmit::TransmitLoop;
use crate::{config, keys, random};

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

/// The largest MTU of a tunnel that was opened for inner packets of `largest` bytes.
pub(super) fn largest_mtu(largest: u32) -> u32 {
    (slot_size(largest) - SLOT_MARGIN) as u32
}

/// The bytes of a slot into which such packets are received.
fn slot_size(largest: u32) -> usize {
    MIN_SLOT.max(largest as usize + SLOT_MARGIN)
}

/// Opens the interface, which is down and has no addresses.
pub(super) fn open_device(settings: &config::Tunnel) -> Result<Device, OpenError> {
    Device::open(&tun::Options {
        name: settings.name.clone(),
        queue_len: Some(QUEUE_LEN),
        offloads: tun::Offloads {
            vnet_header: settings.offloads.vnet,
            tso: settings.offloads.tso,
            uso: settings.offloads.uso,
        },
    })
}

/// Random bytes for what others must not be able to guess.
fn random_secret() -> anyhow::Result<Secret> {
    let bytes = random::bytes().context("cannot read random numbers from /dev/urandom")?;
    Ok(Secret::new(bytes))
}

/// Opens the interface and makes both sides. Inner packets of more than `largest` bytes, or of some
/// 2000, will never be received, whatever paths come later.
pub(super) fn open(
    settings: &config::Tunnel,
    largest: u32,
    epoch: std::time::Instant,
    main_events: MainEvents,
) -> anyhow::Result<(TransmitLoop, ReceiveLoop)> {
    let slot = slot_size(largest);
    let receive_options = ReceiveOptions {
        spare: RECEIVE_SLOTS - ReceiveOptions::default().slots,
        slot_size: slot,
        coalescing: settings.offloads.gro,
        ..ReceiveOptions::default()
    };
    if let Some(open) = keys::unsealed(settings) {
        tracing::info!(tunnel = settings.name, "{open}");
    }
    check_memory(Incoming::reserved(slot) + receive_options.memory())?;
    let device = open_device(settings)?;
    let addresses = settings.addresses.iter().filter_map(core_prefix).collect();
    let config = EndpointConfig {
        addresses,
        connections: Vec::new(),
        secret: random_secret()?,
        keys: keys::host_keys(settings, epoch.elapsed())?,
    };
    let (tx_side, rx_side) = Endpoint::new(&config, Instant::ZERO)?.split();

    let receive = Receive::new(&receive_options);
    let (settings, device) = (Arc::new(settings.clone()), Arc::new(device));
    let poll = Arc::new(Poll::new().context("cannot wait for packets")?);
    let rx = ReceiveLoop {
        settings: Arc::clone(&settings),
        device: Arc::clone(&device),
        sockets: Sockets::default(),
        poll: Arc::clone(&poll),
        endpoint: rx_side,
        incoming: Incoming::new(slot, settings.checksum_partial),
        receive,
        epoch,
        receive_errors: Vec::new(),
        strangers: Strangers::default(),
        names: Names::default(),
        problems: Problems::default(),
        lines: TokenBucket::new(200, Duration::from_millis(100)),
        recent: VecDeque::new(),
        main_events: main_events.clone(),
        requests: Vec::new(),
        ask_drops_at: Instant::ZERO,
        note_at: Instant::ZERO,
        histories: BTreeMap::new(),
    };
    let mtu = Mtu::new(largest_mtu(largest));
    let tx = TransmitLoop {
        settings,
        device,
        poll,
        main_events,
        sockets: Sockets::default(),
        table: Table::default(),
        endpoint: tx_side,
        outgoing: Outgoing::default(),
        burst: Burst::new(),
        read: Traffic::default(),
        mtu,
        too_big: TooBig::new(),
        dark: Dark::default(),
        control_sent: HashMap::new(),
        clamp: Clamp::default(),
        note_at: Instant::ZERO,
        trace: TraceBuffer::default(),
    };
    Ok((tx, rx))
}

/// Checks that the buffers can be allocated. Without this a refusal would end the process, and not only
/// this tunnel.
fn check_memory(bytes: usize) -> anyhow::Result<()> {
    memory::try_reserve(bytes).with_context(|| {
        format!(
            "no memory for its buffers, which reserve {} MiB and use what packets need of it; raise the \
             limit of the process (`ulimit -v`, or `LimitAS=` of its unit), or see vm.overcommit_memory in \
             sysctl(8)",
            bytes >> 20
        )
    })
}
