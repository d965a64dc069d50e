//! The real core against the reference models, step by step.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::wire::gre::{Header, Protocol};
use mpt_proto::{
    ConnectionId, Drop, Endpoint, Held, Instant, Late, Origin, PathId, PathStatus, ReorderConfig,
    Seq, Sink,
};
use mpt_sim::model::reorder::{Outcome, ReorderModel, Settings};
use mpt_sim::model::weighted::sending_vector;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::packet::{Kind, Packet};
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use proptest::prelude::*;

const CONNECTION: ConnectionId = ConnectionId(0);

/// Enough for every jump of the tests to stay above zero.
const FIRST: u64 = 100_000;

/// More numbers from behind in a row may be a restarted peer to the core.
const MOST_BEHIND: u32 = 30;

/// Remembers the numbers of what is delivered, and keeps everything.
#[derive(Default)]
struct Numbers {
    delivered: Vec<u64>,
    kept: Vec<Option<u64>>,
}

impl Sink for Numbers {
    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.push(Packet::parse(packet).expect("unaltered").number);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.kept.push(Some(Packet::parse(packet).expect("unaltered").number));
        Some(Held(self.kept.len() as u32 - 1))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let number = self.kept[held.0 as usize].take().expect("given back once");
        self.delivered.push(number);
        Pair::flow(false, 1).least_len()
    }
}

/// A plan of paths that are up from the start and stay so.
fn plan(weights: &[u16]) -> PairPlan {
    let path = |&weight| PathPlan::symmetric(Profile::default()).with_weight(weight);
    let mut plan = PairPlan::new(weights.iter().map(path).collect());
    plan.path.keepalive = None;
    plan.path.dead_time = None;
    plan
}

fn remote(path: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 0, path as u8 + 1, 1]), 4754)
}

/// A first number below this belongs to a sender that has just begun: those before it may come.
const OVERTAKEN: u32 = 64;

/// Something that happens to a receiver.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A number so far from the one expected next comes by a path.
    Arrive { path: usize, offset: i64 },
    /// Time passes, in microseconds.
    Wait(u64),
    /// A path is switched.
    Switch { path: usize, on: bool },
}

fn any_step(window: i64) -> impl Strategy<Value = Step> {
    let arrive =
        |offsets| (0..3_usize, offsets).prop_map(|(path, offset)| Step::Arrive { path, offset });
    prop_oneof![
        6 => arrive((0..2_i64).boxed()),
        6 => arrive((0..8_i64).boxed()),
        3 => arrive((-12..0_i64).boxed()),
        1 => arrive((0..window * 2 + 4).boxed()),
        2 => (0..4_000_u64).prop_map(Step::Wait),
        1 => (0..3_usize, any::<bool>()).prop_map(|(path, on)| Step::Switch { path, on }),
    ]
}

/// The real core beside the model of it.
struct Both {
    now: u64,
    start: u32,
    core: Endpoint,
    sink: Numbers,
    model: ReorderModel,
    max_delay: u64,
    on: [bool; 3],
    /// Until when a path that was switched off may still bring what was in flight.
    lingers: [Option<u64>; 3],
    behind: u32,
    /// As the model says: duplicates and late packets.
    drops: (u64, u64),
}

impl Both {
    fn new(settings: Settings, start: u32) -> Self {
        let mut plan = plan(&[1, 1, 1]);
        plan.connection.reorder = ReorderConfig {
            evidence: false,
            window: settings.window as u32,
            max_delay: settings.max_delay,
            early_release: settings.early_release,
            late: if settings.deliver_late { Late::Deliver } else { Late::Drop },
        };
        let config = plan.right();
        let max_delay = settings.max_delay.as_nanos() as u64;
        let mut model = ReorderModel::new(settings);
        model.set_live(0..3);
        Self {
            now: 0,
            start,
            core: Endpoint::new(&config.endpoint, Instant::ZERO).expect("a valid plan"),
            sink: Numbers::default(),
            model,
            max_delay,
            on: [true; 3],
            lingers: [None; 3],
            behind: 0,
            drops: (0, 0),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Arrive { path, offset } => {
                let next = self.model.next().unwrap_or(FIRST);
                self.arrive(path, next.saturating_add_signed(offset));
            }
            Step::Wait(micros) => {
                self.now += micros * 1000;
                self.core.handle_timeout(Instant::from_nanos(self.now), &mut self.sink);
                self.refresh_live();
                self.model.on_time(self.now);
            }
            Step::Switch { path, on } => {
                if !on && self.on[path] {
                    self.lingers[path] = Some(self.now + self.max_delay);
                } else if on {
                    self.lingers[path] = None;
                }
                self.on[path] = on;
                let status = if on { PathStatus::Available } else { PathStatus::Off };
                let (now, id) = (Instant::from_nanos(self.now), PathId(path as u8));
                self.core.set_path_status(now, CONNECTION, id, status, &mut self.sink);
                self.refresh_live();
            }
        }
    }

    /// Tells the model which paths may deliver packets: those that are on, and those that were on
    /// recently.
    fn refresh_live(&mut self) {
        for until in &mut self.lingers {
            *until = until.filter(|&until| self.now < until);
        }
        self.model.set_live((0..3).filter(|&path| self.on[path] || self.lingers[path].is_some()));
    }

    fn arrive(&mut self, path: usize, number: u64) {
        let from_behind = self.model.next().is_some_and(|next| number < next);
        self.behind = if from_behind { self.behind + 1 } else { 0 };
        if self.behind > MOST_BEHIND {
            return;
        }
        let inner = Packet {
            flow: Pair::flow(false, 1),
            kind: Kind::Datagram,
            number,
            stamp: 0,
            range: None,
        };
        let inner = inner.emit(0);
        // The sender's count wraps around; the model's does not.
        let sequence = Seq::new(self.start.wrapping_add(number as u32));
        if self.model.next().is_none() && sequence.value() < OVERTAKEN {
            self.model.begin(number - u64::from(sequence.value()));
        }
        let header = Header {
            protocol: Protocol::Ipv4,
            checksum: false,
            key: None,
            sequence: Some(sequence),
        };
        let mut datagram = vec![0; 8 + inner.len()];
        datagram[8..].copy_from_slice(&inner);
        header.emit(&mut datagram);
        let now = Instant::from_nanos(self.now);
        let socket = mpt_proto::SocketId(path as u16);
        let origin = Origin { socket, remote: remote(path), tos: 0 };
        self.core.handle_datagram(now, origin, &mut datagram, &mut self.sink);
        match self.model.insert(self.now, path, number) {
            Outcome::Taken => {}
            Outcome::Duplicate => self.drops.0 += 1,
            Outcome::Late => self.drops.1 += 1,
        }
    }

    fn assert_same(&self, step: Step) {
        assert_eq!(self.sink.delivered, self.model.delivered(), "after {step:?}");
        let mut kept: Vec<u64> = self.sink.kept.iter().copied().flatten().collect();
        kept.sort_unstable();
        assert_eq!(kept, self.model.held().collect::<Vec<_>>(), "held after {step:?}");
        let deadline = self.core.poll_timeout().map(|deadline| deadline.at.as_nanos());
        let lingers = self.lingers.iter().flatten().copied();
        let expected = lingers.chain(self.model.deadline()).min();
        assert_eq!(deadline, expected, "deadline after {step:?}");
        let drops = self.core.connection(CONNECTION).stats().drops;
        let found = (drops.count(Drop::Duplicate), drops.count(Drop::Late));
        assert_eq!(found, self.drops, "duplicates and late packets after {step:?}");
        assert_eq!(drops.total(), found.0 + found.1, "nothing else is dropped");
        assert_eq!(self.core.drops().total(), 0);
    }
}

proptest! {
    #[test]
    fn the_reorder_buffer_does_what_the_model_does(
        (window, steps) in (0..24_i64).prop_flat_map(|window| {
            (Just(window as u64), prop::collection::vec(any_step(window), 1..300))
        }),
        start: u32,
        near_wrap: bool,
        max_delay in 0..3_000_u64,
        early_release: bool,
        deliver_late: bool,
    ) {
        let max_delay = Duration::from_micros(max_delay);
        let settings = Settings { window, max_delay, early_release, deliver_late };
        // Half the runs cross the end of the number space.
        let start = if near_wrap { 0_u32.wrapping_sub(FIRST as u32 + start % 200) } else { start };
        let mut both = Both::new(settings, start);
        for step in steps {
            both.step(step);
            both.assert_same(step);
        }
    }

    #[test]
    fn the_weighted_scheduler_follows_the_sending_vector(
        weights in prop::collection::vec(1_u16..=24, 1..6),
        off: prop::sample::Index,
    ) {
        let config = plan(&weights).left();
        let mut core = Endpoint::new(&config.endpoint, Instant::ZERO).unwrap();
        let inner = Packet { flow: Pair::flow(false, 1), kind: Kind::Datagram, number: 0, stamp: 0, range: None };
        let inner = inner.emit(0);
        let follows = |core: &mut Endpoint, paths: &[usize]| {
            let weights: Vec<u16> = paths.iter().map(|&path| weights[path]).collect();
            let vector = sending_vector(&weights);
            for turn in 0..2 * vector.len() {
                let chosen = core.handle_inner(Instant::ZERO, &inner).map(|transmit| usize::from(transmit.path.0));
                assert_eq!(chosen, Some(paths[vector[turn % vector.len()]]), "turn {turn}");
            }
        };
        let all: Vec<usize> = (0..weights.len()).collect();
        follows(&mut core, &all);
        // The vector of the remaining paths begins afresh.
        let off = off.index(weights.len());
        let mut sink = Numbers::default();
        let id = PathId(off as u8);
        core.set_path_status(Instant::ZERO, CONNECTION, id, PathStatus::Off, &mut sink);
        let others: Vec<usize> = all.into_iter().filter(|&path| path != off).collect();
        if others.is_empty() {
            prop_assert!(core.handle_inner(Instant::ZERO, &inner).is_none());
        } else {
            follows(&mut core, &others);
        }
    }
}

#[test]
fn the_weights_of_the_published_measurements_give_their_vectors() {
    for weights in [&[10, 100][..], &[1, 10_000], &[10_000, 9_999], &[7, 5, 3, 2, 1]] {
        let config = plan(weights).left();
        let mut core = Endpoint::new(&config.endpoint, Instant::ZERO).unwrap();
        let inner = Packet {
            flow: Pair::flow(true, 1),
            kind: Kind::Datagram,
            number: 0,
            stamp: 0,
            range: None,
        };
        let inner = inner.emit(0);
        for expected in sending_vector(weights) {
            let chosen = core
                .handle_inner(Instant::ZERO, &inner)
                .map(|transmit| usize::from(transmit.path.0));
            assert_eq!(chosen, Some(expected));
        }
    }
}
