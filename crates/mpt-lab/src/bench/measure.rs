//! What is measured of one subject that stands.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::hosts::Sent;
use super::options::Options;
use super::processors::Processors;
use super::ready::Ready;
use super::samples::Quantity;
use super::subject::Wire;
use super::tcp::Streams;
use super::{search, udp};
use crate::processor;
use crate::stop::Stop;
use crate::traffic::ping::{self, Ping};
use crate::traffic::spread::Spread;

/// Between two looks at the flag that ends the run.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Between two requests whose round-trip time is measured.
const PING_EVERY: Duration = Duration::from_millis(2);
/// Each link of a subject must take at least this share of the bytes it would get if all were
/// equal. Weights are equal, but the kernel's MPTCP prefers whichever subflow is faster.
const LEAST_SHARE: f64 = 0.01;
/// Bytes of the longest packet of a wire, with its Ethernet header.
const LONGEST_FRAME: u64 = 1500 + 14;

/// How something is measured.
pub(super) struct Measure<'a> {
    pub(super) options: &'a Options,
    pub(super) processors: Processors,
    pub(super) stop: &'a Stop,
}

impl Measure<'_> {
    /// Goodput and processor time of one TCP flow in a short round, where each host has its own processors.
    pub(super) fn round(&self, ready: &Ready) -> Result<Vec<(Quantity, f64)>> {
        ready.pin(&self.processors)?;
        let Options { round_warm_up, round, .. } = *self.options;
        let found = self.flows(ready, 1, (round_warm_up, round), Some(&self.processors));
        ready.release(&self.processors)?;
        let found = found?.into_iter().filter_map(|(quantity, value)| {
            let bound = if matches!(quantity, Quantity::Goodput(_)) {
                Quantity::BoundGoodput
            } else if matches!(quantity, Quantity::DaemonTime(_)) {
                Quantity::BoundDaemonTime
            } else {
                return None;
            };
            Some((bound, value))
        });
        Ok(found.collect())
    }

    /// Goodput and processor time of TCP flows.
    pub(super) fn tcp(&self, ready: &Ready, flows: usize) -> Result<Vec<(Quantity, f64)>> {
        let Options { warm_up, tcp, .. } = *self.options;
        self.flows(ready, flows, (warm_up, tcp), None)
    }

    fn flows(
        &self,
        ready: &Ready,
        flows: usize,
        (warm_up, length): (Duration, Duration),
        processors: Option<&Processors>,
    ) -> Result<Vec<(Quantity, f64)>> {
        let streams = self.load(ready, flows, warm_up, processors)?;
        let links = ready.hosts.sent()?;
        let before = Snapshot::take(ready, &streams)?;
        self.wait(length)?;
        let after = Snapshot::take(ready, &streams)?;
        let carried = carried(&links, &ready.hosts.sent()?);
        drop(streams);

        let gigabits = (after.received - before.received) as f64 * 8.0 / 1e9;
        ensure!(gigabits > 0.0, "{flows} TCP flows: nothing arrived");
        if ready.wire == Wire::WireLike {
            check_cut(&carried)?;
        }
        let share = if ready.chooses { 1.0 } else { least_share(&carried)? };
        let per_gigabit = |time: Duration| time.as_secs_f64() / gigabits;
        let seconds = (after.at - before.at).as_secs_f64();
        let mut found = vec![
            (Quantity::Goodput(flows), gigabits / seconds),
            (Quantity::LeastShare(flows), share),
            (Quantity::MachineTime(flows), per_gigabit(after.machine - before.machine)),
        ];
        if let Some(ideal) = ready.ideal()? {
            found.push((Quantity::OfIdeal(flows), gigabits * 1e9 / seconds / ideal));
        }
        if let (Some(after), Some(before)) = (after.daemons, before.daemons) {
            found.push((Quantity::DaemonTime(flows), per_gigabit(after - before)));
        }
        Ok(found)
    }

    /// Round-trip times, idle and beside one TCP flow.
    pub(super) fn pings(&self, ready: &Ready) -> Result<[(Quantity, f64); 4]> {
        let idle = self.ping(ready).context("idle")?;
        let streams = self.load(ready, 1, self.options.warm_up, None)?;
        let loaded = self.ping(ready).context("beside a TCP flow")?;
        drop(streams);
        Ok([
            (Quantity::PingIdleP50, idle.median),
            (Quantity::PingIdleP99, idle.p99),
            (Quantity::PingLoadedP50, loaded.median),
            (Quantity::PingLoadedP99, loaded.p99),
        ])
    }

    fn ping(&self, ready: &Ready) -> Result<Spread> {
        self.stop.check()?;
        let count = self.options.ping.as_secs_f64() / PING_EVERY.as_secs_f64();
        let count = (count as u32).clamp(1, ping::MOST_REQUESTS);
        let source = ready.hosts.left.run(|| ping::Source::connect(ready.remote));
        let source = source.context("cannot make a socket for ping")?;
        let options = ping::Options { count, interval: PING_EVERY };
        let report = Ping::start(source, options).and_then(Ping::finish).context("ping failed")?;
        report.rtt_ms.context("no ping was answered")
    }

    /// The highest rate of UDP packets that arrive.
    pub(super) fn udp(&self, ready: &Ready, size: usize) -> Result<f64> {
        let hosts = [&ready.hosts.left, &ready.hosts.right];
        search::best_rate(self.options.udp_halvings, |rate| {
            self.stop.check()?;
            udp::trial(hosts, ready.remote, size, rate, self.options.udp)
        })
    }

    /// TCP flows that have found their rate.
    fn load(
        &self,
        ready: &Ready,
        flows: usize,
        warm_up: Duration,
        processors: Option<&Processors>,
    ) -> Result<Streams> {
        let hosts = [&ready.hosts.left, &ready.hosts.right];
        let streams = Streams::start(hosts, ready.remote, ready.transport, flows, processors)?;
        self.wait(warm_up)?;
        Ok(streams)
    }

    /// Waits, unless the run is ended from outside.
    fn wait(&self, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        loop {
            self.stop.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }
}

/// All counters at one moment.
struct Snapshot {
    at: Instant,
    received: u64,
    machine: Duration,
    daemons: Option<Duration>,
}

impl Snapshot {
    fn take(ready: &Ready, streams: &Streams) -> Result<Self> {
        let (machine, daemons) = (processor::machine()?, ready.daemon_time()?);
        Ok(Self { at: Instant::now(), received: streams.received(), machine, daemons })
    }
}

/// What went over each link between two moments.
fn carried(before: &[Sent], after: &[Sent]) -> Vec<Sent> {
    let difference = |(before, after): (&Sent, &Sent)| Sent {
        packets: after.packets - before.packets,
        bytes: after.bytes - before.bytes,
    };
    before.iter().zip(after).map(difference).collect()
}

/// Bytes of the link that carried least, relative to an equal share. Fails if it carried (nearly)
/// nothing: then something else was measured than is claimed.
fn least_share(carried: &[Sent]) -> Result<f64> {
    let bytes: Vec<u64> = carried.iter().map(|sent| sent.bytes).collect();
    let fair = bytes.iter().sum::<u64>() as f64 / bytes.len() as f64;
    let least = bytes.iter().copied().min().unwrap_or(0) as f64;
    ensure!(least > fair * LEAST_SHARE, "a link was hardly used; bytes: {bytes:?}");
    Ok(least / fair)
}

/// Fails if packets crossed that are longer than a wire's.
fn check_cut(carried: &[Sent]) -> Result<()> {
    let cut = |sent: &Sent| sent.bytes <= sent.packets * LONGEST_FRAME;
    ensure!(carried.iter().all(cut), "super-packets were not segmented: {carried:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(figures: &[(u64, u64)]) -> Vec<Sent> {
        figures.iter().map(|&(packets, bytes)| Sent { packets, bytes }).collect()
    }

    #[test]
    fn a_link_that_carries_nothing_is_noticed() {
        let (before, after) = (sent(&[(0, 100), (0, 200)]), sent(&[(5, 1100), (5, 3200)]));
        assert_eq!(least_share(&carried(&before, &after)).unwrap(), 0.5);
        assert_eq!(least_share(&sent(&[(1, 5)])).unwrap(), 1.0);
        let error = least_share(&sent(&[(9, 1_000_000), (1, 100)])).unwrap_err();
        assert!(error.to_string().contains("[1000000, 100]"), "{error}");
        assert!(least_share(&sent(&[(0, 0)])).is_err());
    }

    #[test]
    fn a_wire_that_passes_super_packets_is_noticed() {
        check_cut(&sent(&[(10, 15_140), (1, 60)])).unwrap();
        assert!(check_cut(&sent(&[(10, 15_140), (10, 15_141)])).is_err());
    }
}
