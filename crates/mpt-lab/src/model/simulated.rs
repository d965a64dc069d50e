//! The flow in virtual time, where no formula holds.

use std::time::Duration;

use mpt_sim::profile::Profile;
use mpt_sim::tcp::cubic::Growth;
use mpt_sim::transfer::{self, Order, Outcome, Plan, SAMPLE};

use super::path::{HOST_DELAY, HOST_JITTER, Sizes, ip_header};
use crate::cell::{Direction, Late, Traffic, Tunnel};
use crate::topology::Topology;
use crate::traffic::series::Series;
use crate::traffic::spread::median;

/// The most runs with different seeds; the median counts. Even without loss chance matters: how prompt
/// the hosts are decides when a slow start ends.
const MOST_RUNS: u64 = 15;

/// The least.
const LEAST_RUNS: u64 = 3;

/// The most packets that are worth another run: bounds the processor time to about a second.
const ENOUGH_PACKETS: f64 = 5e5;

/// The most packets of one run, to the same end.
const MOST_PACKETS: f64 = 2e6;

/// What a Linux socket lets be outstanding: net.ipv4.tcp_wmem's 4 MiB less what the kernel needs beside
/// the payload.
const SEND_BUFFER: usize = 3_800_000;

/// The same of a buffer that an experiment asks for, for each MB.
const OF_EACH_MB: usize = 900_000;

/// What came out.
#[derive(Clone, Debug)]
pub(super) struct Result {
    /// Bit/s of payload.
    pub(super) goodput: f64,
    /// The lowest and the highest of the runs.
    pub(super) range: Option<(f64, f64)>,
    /// Seconds.
    pub(super) startup: Option<f64>,
    pub(super) terms: Vec<String>,
}

/// The growth of a congestion control, by the kernel's name; `None` if there is no model of it.
pub(super) fn growth(congestion: &str) -> Option<Growth> {
    match congestion {
        "cubic" => Some(Growth::Cubic),
        "reno" => Some(Growth::Reno),
        _ => None,
    }
}

/// Runs the traffic of an experiment.
pub(super) fn run(
    topology: &Topology,
    tunnel: &Tunnel,
    traffic: &Traffic,
    sizes: &Sizes,
    growth: Growth,
) -> Result {
    let mut plan = plan(topology, tunnel, traffic, sizes, growth);
    let mut terms = Vec::new();
    if plan.length < traffic.length() {
        terms.push(format!("simulated only for {:.1} s", plan.length.as_secs_f64()));
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut packets = 0.0;
    for number in 0..MOST_RUNS {
        plan.seed = topology.seed.wrapping_add(number);
        outcomes.push(transfer::run(&plan));
        let bytes: u64 = outcomes.iter().flat_map(|outcome| &outcome.samples).sum();
        packets = bytes as f64 / sizes.segment as f64;
        if packets > ENOUGH_PACKETS && number + 1 >= LEAST_RUNS {
            break;
        }
    }
    let series: Vec<Series> = outcomes.iter().map(series).collect();
    let mut goodputs: Vec<f64> = series.iter().map(|run| run.goodput(traffic.omitted())).collect();
    let startups: Vec<f64> =
        series.iter().filter_map(|run| Some(run.startup()?.as_secs_f64())).collect();
    let goodput = median(&goodputs).unwrap_or(0.0);
    // The reported run is the median one.
    let typical = goodputs.iter().position(|&own| own >= goodput).unwrap_or(0);
    terms.push(format!("{} runs of {packets:.0} segments together", outcomes.len()));
    terms.extend(outcomes.get(typical).map(|outcome| told(outcome, goodputs[typical])));
    goodputs.sort_by(f64::total_cmp);
    let range = goodputs.first().copied().zip(goodputs.last().copied());
    Result { goodput, range, startup: median(&startups), terms }
}

fn plan(
    topology: &Topology,
    tunnel: &Tunnel,
    traffic: &Traffic,
    sizes: &Sizes,
    growth: Growth,
) -> Plan {
    let host_delay = Duration::from_secs_f64(HOST_DELAY);
    let farther = |profile: &Profile| {
        let mut profile = Profile { delay: profile.delay + host_delay, ..profile.clone() };
        if profile.jitter.is_zero() && profile.reorder == 0.0 {
            // Hosts are not always prompt, but keep the order of packets.
            profile.jitter = Duration::from_secs_f64(HOST_JITTER);
            profile.keep_order = true;
        }
        profile
    };
    let path = |(number, link): (usize, &crate::topology::LinkSpec)| {
        let (there, back) = match traffic.direction {
            Direction::Forward => (&link.forward, &link.backward),
            Direction::Backward => (&link.backward, &link.forward),
        };
        let weight = tunnel.weights.get(number).copied().unwrap_or(1);
        transfer::Path {
            there: farther(there),
            back: farther(back),
            weight: u16::try_from(weight.max(1)).unwrap_or(u16::MAX),
            overhead: sizes.encapsulation + ip_header(link.version),
        }
    };
    let paths: Vec<transfer::Path> = topology.links.iter().enumerate().map(path).collect();
    let rate: f64 = paths.iter().filter_map(|path| path.there.rate).map(|rate| rate as f64).sum();
    let longest = MOST_PACKETS * sizes.segment as f64 * 8.0 / rate.max(1.0);
    let seconds = traffic.seconds.min(longest.max(traffic.omit + 1.0));
    let reorder = tunnel.classic_order();
    let window = if tunnel.sequence { reorder.window.into() } else { 0 };
    Plan {
        paths,
        order: Order {
            window,
            max_delay: Duration::from_secs_f64(reorder.max_delay),
            early_release: reorder.early_release,
            deliver_late: reorder.late == Late::Deliver,
        },
        flows: traffic.flows as usize,
        growth,
        segment: sizes.segment,
        inner_header: sizes.inner_header,
        send_buffer: traffic.buffer_mb.map_or(SEND_BUFFER, |mb| mb as usize * OF_EACH_MB),
        length: Duration::from_secs_f64(seconds),
        seed: topology.seed,
    }
}

/// The samples in the format of a real run.
fn series(outcome: &Outcome) -> Series {
    let samples = u32::try_from(outcome.samples.len()).unwrap_or(u32::MAX);
    let mut series = Series::new(SAMPLE * samples);
    for (number, &bytes) in (0..samples).zip(&outcome.samples) {
        series.on_delivery(SAMPLE * number + SAMPLE / 2, usize::try_from(bytes).unwrap_or(0));
    }
    series.finish();
    series
}

fn told(outcome: &Outcome, goodput: f64) -> String {
    let (senders, there) = (&outcome.senders, &outcome.there);
    format!(
        "one of {:.2} Mbit/s had {} recoveries and {} timeouts, {} of them undone, {} repetitions; at most {} \
         packets held, for {:.1} ms at the longest in time; {} given up, {} late",
        goodput / 1e6,
        senders.recoveries,
        senders.timeouts,
        senders.undone,
        senders.repetitions,
        there.most_held,
        there.longest_useful.as_secs_f64() * 1e3,
        there.given_up,
        there.late,
    )
}
