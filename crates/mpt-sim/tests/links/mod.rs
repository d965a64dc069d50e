//! Hosts whose paths are chosen by what is measured of them, and what can be seen of that.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use mpt_proto::{Drop, FramingConfig, Instant, PathId, ReorderConfig, SchedulerConfig};
use mpt_sim::link::Link;
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{BulkId, Direction, StreamId, WireId};

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// What is made of each of these values, in their order, at the same time: simulations have nothing in common.
pub(crate) fn of_each<T: Sync, R: Send, const N: usize>(
    values: [T; N],
    make: impl Fn(&T) -> R + Sync,
) -> [R; N] {
    thread::scope(|scope| {
        let running = values.each_ref().map(|value| scope.spawn(|| make(value)));
        running.map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// A link of so many Mbit/s with a delay in milliseconds, and a queue of 50 ms.
pub(crate) fn wire(mbps: u64, delay: u64) -> Profile {
    let rate = mbps * 1_000_000;
    Profile {
        rate: Some(rate),
        delay: Duration::from_millis(delay),
        queue: Some((rate / 8 / 20).max(64_000)),
        ..Profile::default()
    }
}

/// A link that cannot be the cause of anything: no rate.
pub(crate) fn clear(delay: u64) -> Profile {
    Profile { delay: Duration::from_millis(delay), ..Profile::default() }
}

/// A link that loses this share of datagrams, at random.
pub(crate) fn lossy(profile: Profile, loss: f64) -> Profile {
    Profile { loss: Loss::Random(loss), ..profile }
}

/// Links as `20/25/0.02/10,15/30/0.02/12.5/300`: Mbit/s, delay in milliseconds, share that is lost, standard deviation of the delay
/// in milliseconds, and how long the queue is in milliseconds.
pub(crate) fn links_of(what: &str) -> Vec<Profile> {
    let link = |link: &str| {
        let part: Vec<f64> =
            link.split('/').map(|number| number.parse().expect("a number")).collect();
        let jitter = Duration::from_secs_f64(part.get(3).unwrap_or(&0.0) / 1e3);
        let wire = lossy(wire(part[0] as u64, part[1] as u64), part[2]);
        let queue = part.get(4).map(|queue| (part[0] * 125.0 * queue) as u64).or(wire.queue);
        Profile { jitter, queue, ..wire }
    };
    what.split(',').map(link).collect()
}

/// When a transfer begins, in milliseconds: a path of a long round trip takes longer to be found out. `LATER` adds to that.
pub(crate) fn begins(seed: u64, wires: &[Profile]) -> u64 {
    let is_long = wires.iter().any(|wire| wire.delay > Duration::from_millis(100));
    let later = std::env::var("LATER").map_or(0, |ms| ms.parse().expect("LATER in milliseconds"));
    later + 37 * seed + if is_long { 3000 } else { 1000 }
}

pub(crate) fn plan(wires: &[Profile]) -> PairPlan {
    let mut plan = PairPlan::new(wires.iter().cloned().map(PathPlan::symmetric).collect());
    plan.connection.framing = FramingConfig::Extended;
    plan.connection.scheduler = SchedulerConfig::Earliest;
    plan.connection.reorder = ReorderConfig::by_evidence();
    plan
}

pub(crate) fn pair(wires: &[Profile]) -> Pair {
    let mut pair = Pair::new(1, &plan(wires)).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    pair
}

/// A transfer without end from the second second on.
pub(crate) fn sender() -> Sender {
    sender_by(5001)
}

/// The same by another port.
pub(crate) fn sender_by(port: u16) -> Sender {
    Sender::new(Pair::flow(false, port), 1380, at(1000), at(1_000_000))
}

pub(crate) fn bulk(pair: &mut Pair) -> BulkId {
    pair.world.add_bulk(pair.left, pair.right, sender())
}

/// A stream of so many Mbit/s that yields to nothing.
pub(crate) fn stream(pair: &mut Pair, mbps: u64) -> StreamId {
    stream_between(pair, mbps * 1000, 7001, [1000, 1_000_000])
}

/// A stream of so many kbit/s to a port from one time to another, in milliseconds.
pub(crate) fn stream_between(pair: &mut Pair, kbps: u64, port: u16, times: [u64; 2]) -> StreamId {
    let interval = Source::interval_for(1400, kbps * 1000);
    let [from, to] = times.map(at);
    let source = Source::new(Pair::flow(false, port), 1400, interval, from, to);
    pair.world.add_stream(pair.left, pair.right, source)
}

/// Mbit/s that the links carried in these seconds together.
pub(crate) fn carried(pair: &mut Pair, wires: &[WireId], from: u64, to: u64) -> f64 {
    pair.world.run_until(at(from * 1000));
    let before = bytes(pair, wires);
    pair.world.run_until(at(to * 1000));
    (bytes(pair, wires) - before) as f64 * 8.0 / 1e6 / (to - from) as f64
}

/// Bytes that the links have carried together.
pub(crate) fn bytes(pair: &Pair, wires: &[WireId]) -> u64 {
    let link = |&wire| -> &Link { pair.world.link(wire, Direction::There) };
    wires.iter().map(|wire| link(wire).stats().delivered.bytes).sum()
}

/// What is believed of each path: Mbit/s, pace, and milliseconds in queues.
pub(crate) fn believed(pair: &Pair, paths: usize) -> Vec<(f64, f64, f64)> {
    let connection = pair.connection(pair.left);
    let quality = |path| connection.transmit_quality(pair.world.now(), PathId(path as u8));
    (0..paths)
        .filter_map(quality)
        .map(|quality| {
            let mbps = |rate: Option<u64>| rate.map_or(0.0, |rate| rate as f64 * 8.0 / 1e6);
            (mbps(quality.capacity), mbps(quality.pace), quality.queue.as_secs_f64() * 1e3)
        })
        .collect()
}

/// In a line what a transfer got in the last `step` milliseconds, after `before` bytes, and what is believed of the paths.
pub(crate) fn line_of_step(
    pair: &Pair,
    transfer: BulkId,
    paths: usize,
    step: u64,
    before: &mut u64,
) -> String {
    let (sender, receiver) = pair.world.bulk(transfer);
    let bytes = receiver.stats().bytes;
    let mbps = (bytes - *before) as f64 * 8e-3 / step as f64;
    *before = bytes;
    let (left, right) = (pair.connection(pair.left), pair.connection(pair.right));
    let paths: Vec<String> = believed(pair, paths)
        .iter()
        .map(|(rate, pace, queue)| format!("rate {rate:.1} pace {pace:.1} q {queue:.1}"))
        .collect();
    let (queue, order) = (left.queue_standing().unwrap_or_default(), right.stats().reorder);
    let (drops, repairs) = (left.stats().drops, left.repair_stats());
    format!(
        "{} {mbps:.1} events {} window {:.0} again {} rtt {} {paths:?} waiting {} committed {} equal {:?} lost {} leaves {} returns {} given up {} late {} dropped {} {} held {} marked {} tried {} in vain {} refused {} too late {} early {} needless {}",
        pair.world.now().since(Instant::ZERO).as_millis(),
        sender.stats().congestion_events,
        sender.window(),
        sender.stats().retransmissions,
        sender.round_trip().unwrap_or_default().as_millis(),
        queue.waiting,
        queue.committed,
        queue.equal_delay,
        repairs.lost,
        repairs.leaves,
        repairs.returns,
        order.lost_early_release + order.lost_max_delay,
        order.late,
        drops.count(Drop::QueueDelay),
        drops.count(Drop::QueueFull),
        order.held,
        queue.marked,
        repairs.repaired.tried,
        repairs.repaired.in_vain,
        repairs.repaired.refused,
        repairs.too_late,
        repairs.early,
        repairs.needless,
    )
}
