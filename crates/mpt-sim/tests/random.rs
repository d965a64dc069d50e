//! Random worlds: any wires, any cuts, and what must hold in all of them.
//!
//! Wires are cut and change, and so do the settings of either host while it runs; hosts get no processor for a while.
//!
//! No packet is delivered twice, altered or invented; the order is kept unless late packets are to
//! be delivered; held memory stays within its limit and is given back; every packet is accounted
//! for under one name; and the same seed gives the same run.
//!
//! Where losses are repaired, by whatever is configured for classes, each packet arrives once or is counted as lost, and
//! nothing exceeds its bound. `PROPTEST_CASES=100000` makes 10,000 of each.

use std::sync::Arc;
use std::time::Duration;

use mpt_proto::{
    Change, ClassConfig, ConnectionConfig, Drop, Event, FramingConfig, Instant, Late, PathConfig,
    PathId, PathStatus, PortRanges, ReorderConfig, RepairMode, SchedulerConfig, Selector, Timer,
};
use mpt_sim::link::Stats;
use mpt_sim::loss::{GilbertElliott, Loss};
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{Direction, HostConfig, HostId, StreamId};
use proptest::prelude::*;

/// When the last packet is offered, in milliseconds.
const END: u64 = 2500;

/// A tenth of what proptest would run: one case is two whole runs. `PROPTEST_CASES` scales it.
fn cases() -> u32 {
    ProptestConfig::default().cases.div_ceil(10)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn any_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        2 => Just(Loss::None),
        1 => (0.0..0.1).prop_map(Loss::Random),
        1 => (0.0..0.05, 0.1..1.0).prop_map(|(p, r)| {
            Loss::GilbertElliott(GilbertElliott { p, r, h: 0.0, k: 1.0 })
        }),
    ]
}

prop_compose! {
    fn any_profile()(
        mbps in prop::option::of(1_u64..30),
        delay in 0_u64..60,
        jitter in prop_oneof![Just(0), 0_u64..10],
        keep_order: bool,
        loss in any_loss(),
        (duplicate, corrupt) in (0.0..0.1, 0.0..0.1),
    ) -> Profile {
        Profile {
            rate: mbps.map(|mbps| mbps * 1_000_000),
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            keep_order,
            loss,
            duplicate,
            corrupt,
            ..Profile::default()
        }
    }
}

prop_compose! {
    fn any_path()(there in any_profile(), back in any_profile(), weight in 1_u16..20, ipv6: bool)
        -> PathPlan
    {
        PathPlan { weight, ipv6, back, ..PathPlan::symmetric(there) }
    }
}

prop_compose! {
    fn any_plan()(
        paths in prop::collection::vec(any_path(), 1..4),
        one_server_address: bool,
        held_limit in prop_oneof![Just(10_000_usize), 0_usize..50],
        (checksum, key) in (any::<bool>(), any::<Option<u32>>()),
        window in 1_u32..200,
        max_delay_ms in 0_u64..150,
        early_release: bool,
        late in prop_oneof![Just(Late::Deliver), Just(Late::Drop)],
    ) -> PairPlan {
        let mut plan = PairPlan::new(paths);
        plan.one_server_address = one_server_address;
        plan.host = HostConfig { held_limit, ..HostConfig::default() };
        plan.connection.checksum = checksum;
        plan.connection.key = key;
        let max_delay = Duration::from_millis(max_delay_ms);
        plan.connection.reorder =
            ReorderConfig { evidence: false, window, max_delay, early_release, late };
        plan
    }
}

prop_compose! {
    /// A session of extended framing, which each host or only one of them can begin.
    fn any_session_plan()(
        plan in any_plan(),
        framing in prop_oneof![Just(FramingConfig::Extended), Just(FramingConfig::Auto)],
        server_learns: bool,
        classic in prop::bool::weighted(0.2),
        earliest: bool,
    ) -> PairPlan {
        let mut plan = PairPlan { server_learns, ..plan };
        plan.connection.framing = framing;
        plan.connection.reorder.evidence = !classic;
        if earliest {
            plan.connection.scheduler = SchedulerConfig::Earliest;
        }
        plan
    }
}

fn any_class() -> impl Strategy<Value = ClassConfig> {
    let repair = prop_oneof![
        2 => Just(RepairMode::Auto),
        1 => Just(RepairMode::None),
        1 => Just(RepairMode::Retransmit),
        1 => Just(RepairMode::Duplicate),
        3 => Just(RepairMode::Parity),
    ];
    let ports = prop_oneof![Just(3478..=3478), Just(5000..=8000), Just(7001..=7001)];
    (repair, ports, prop::option::of(1_u64..200)).prop_map(|(repair, ports, deadline)| {
        ClassConfig {
            name: "class".into(),
            selector: Selector {
                protocol: None,
                ports: PortRanges::new([ports]).expect("a range"),
            },
            dscp: 0,
            networks: Vec::new(),
            deadline: deadline.map(Duration::from_millis),
            repair,
        }
    })
}

prop_compose! {
    /// A session in which losses are repaired.
    fn any_repair_plan()(
        plan in any_plan(),
        framing in prop_oneof![Just(FramingConfig::Extended), Just(FramingConfig::Sealed)],
        scheduler in prop_oneof![
            4 => Just(SchedulerConfig::Earliest),
            1 => Just(SchedulerConfig::LowestRtt),
            1 => Just(SchedulerConfig::Redundant),
        ],
        classes in prop::collection::vec(any_class(), 0..3),
        refuses in prop::collection::vec(prop_oneof![2 => Just(0), 1 => 0_u32..4], 4),
        failover in prop::collection::vec(prop::option::of(100_u64..3000), 8),
        server_learns: bool,
    ) -> PairPlan {
        let mut plan = PairPlan { server_learns, ..plan };
        plan.connection.framing = framing;
        plan.connection.key = None;
        plan.connection.checksum = false;
        plan.connection.scheduler = scheduler;
        plan.connection.classes = classes;
        let window = 64 + 20 * plan.connection.reorder.window;
        plan.connection.reorder =
            ReorderConfig { evidence: true, window, late: Late::Deliver, ..ReorderConfig::default() };
        for ((path, refuses), failover) in
            plan.paths.iter_mut().zip(refuses).zip(failover.chunks_exact(2))
        {
            path.refuses = refuses;
            path.failover = [failover[0], failover[1]].map(|it| it.map(Duration::from_millis));
        }
        plan
    }
}

/// Something that is done to a world at some millisecond.
#[derive(Clone, Debug)]
enum Action {
    Cut { wire: prop::sample::Index, direction: Direction, cut: bool },
    Change { wire: prop::sample::Index, direction: Direction, profile: Box<Profile> },
    Alter { left: bool, path: prop::sample::Index, alteration: Alteration },
    Restart { left: bool },
    Pause { left: bool, millis: u64 },
}

/// What a host's operator does to a path, or the world to what it needs.
#[derive(Clone, Debug)]
enum Alteration {
    Status(PathStatus),
    Present(bool),
    Fits(bool),
    Settings { weight: u16, priority: u8, keepalive: u64 },
    Order { window: u32, max_delay: u64 },
    Remove,
    Add,
}

fn any_alteration() -> impl Strategy<Value = Alteration> {
    let status = prop_oneof![Just(PathStatus::Available), Just(PathStatus::Off)];
    prop_oneof![
        status.prop_map(Alteration::Status),
        any::<bool>().prop_map(Alteration::Present),
        any::<bool>().prop_map(Alteration::Fits),
        (1_u16..20, 0_u8..2, 100_u64..900).prop_map(|(weight, priority, keepalive)| {
            Alteration::Settings { weight, priority, keepalive }
        }),
        (1_u32..200, 0_u64..150)
            .prop_map(|(window, max_delay)| Alteration::Order { window, max_delay }),
        Just(Alteration::Remove),
        Just(Alteration::Add),
    ]
}

fn any_session_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => any_action(),
        1 => any::<bool>().prop_map(|left| Action::Restart { left }),
    ]
}

fn any_action() -> impl Strategy<Value = Action> {
    let direction = || prop_oneof![Just(Direction::There), Just(Direction::Back)];
    prop_oneof![
        1 => (any::<prop::sample::Index>(), direction(), any::<bool>())
            .prop_map(|(wire, direction, cut)| Action::Cut { wire, direction, cut }),
        1 => (any::<prop::sample::Index>(), direction(), any_profile().prop_map(Box::new))
            .prop_map(|(wire, direction, profile)| Action::Change { wire, direction, profile }),
        3 => (any::<bool>(), any::<prop::sample::Index>(), any_alteration())
            .prop_map(|(left, path, alteration)| Action::Alter { left, path, alteration }),
        1 => any_pause(),
    ]
}

fn any_pause() -> impl Strategy<Value = Action> {
    (any::<bool>(), 1_u64..200).prop_map(|(left, millis)| Action::Pause { left, millis })
}

/// What happens to links, for as long as a fail-over takes and longer.
fn any_repair_action() -> impl Strategy<Value = Action> {
    let direction = || prop_oneof![Just(Direction::There), Just(Direction::Back)];
    prop_oneof![
        3 => (any::<prop::sample::Index>(), direction(), any::<bool>())
            .prop_map(|(wire, direction, cut)| Action::Cut { wire, direction, cut }),
        1 => (any::<prop::sample::Index>(), direction(), any_profile().prop_map(Box::new))
            .prop_map(|(wire, direction, profile)| Action::Change { wire, direction, profile }),
        2 => (any::<bool>(), any::<prop::sample::Index>(), any_alteration())
            .prop_filter("numbers begin anew", |(_, _, alteration)| {
                !matches!(alteration, Alteration::Order { .. })
            })
            .prop_map(|(left, path, alteration)| Action::Alter { left, path, alteration }),
        2 => any_pause(),
    ]
}

/// The most that may be sent again of what a path carries, as a share, and saved up beside that, in bytes.
const SPARE_SHARE: f64 = 0.15;
const SPARE_SAVED: f64 = (512 << 10) as f64;

/// The most memory of a connection at either half, in bytes: none of its stores has more.
const MOST_MEMORY: usize = 8 << 20;

/// When nothing is on its way any more, also where the last path that is left brings ten packets per second.
const QUIET: Instant = Instant::from_nanos(30_000_000_000);

/// A world in which everything has happened.
struct Run {
    pair: Pair,
    /// Left to right, right to left.
    streams: [StreamId; 2],
}

fn run(seed: u64, plan: &PairPlan, actions: &[(u64, Action)]) -> Run {
    run_with(seed, plan, actions, [7000, 7000], at(END + 2000))
}

/// The same with these ports of the two streams, until this time.
fn run_with(
    seed: u64,
    plan: &PairPlan,
    actions: &[(u64, Action)],
    ports: [u16; 2],
    until: Instant,
) -> Run {
    let mut pair = Pair::new(seed, plan).expect("a plan the core accepts");
    let [flow, reversed] = ports.map(|port| Pair::flow(false, port));
    let source = |flow, len, mbps: u64| {
        Source::new(flow, len, Source::interval_for(len, mbps * 1_000_000), at(300), at(END))
    };
    let there = pair.world.add_stream(pair.left, pair.right, source(flow, 900, 4));
    let back = pair.world.add_stream(pair.right, pair.left, source(reversed.reversed(), 300, 1));
    let hosts = [pair.right, pair.left];
    let host = |left: bool| hosts[usize::from(left)];
    for (ms, action) in actions {
        pair.world.run_until(at(*ms));
        match action {
            Action::Cut { wire, direction, cut } => {
                pair.world.cut(*wire.get(&pair.wires), *direction, *cut);
            }
            Action::Change { wire, direction, profile } => {
                let wire = *wire.get(&pair.wires);
                pair.world.set_profile(wire, *direction, (**profile).clone());
            }
            Action::Pause { left, millis } => {
                pair.world.pause(host(*left), at(ms + millis));
            }
            Action::Restart { left } => {
                pair.world.restart(host(*left));
            }
            // A host that learns its paths has none to be changed by number.
            Action::Alter { left: false, .. } if plan.server_learns => {}
            Action::Alter { left, path, alteration } => {
                let config = if *left { plan.left() } else { plan.right() };
                let path = PathId(path.index(pair.wires.len()) as u8);
                let change = change(&config.endpoint.connections[0], path, alteration);
                pair.world.change(host(*left), &change);
            }
        }
    }
    // The last packet, the longest queue, delay and hold time are over by then.
    pair.world.run_until(until);
    Run { pair, streams: [there, back] }
}

/// A change at a host whose connection began with these settings.
fn change(config: &ConnectionConfig, path: PathId, alteration: &Alteration) -> Change {
    let connection = Pair::CONNECTION;
    let path_config = config.paths[usize::from(path.0)].clone();
    match *alteration {
        Alteration::Status(status) => Change::SetStatus { connection, path, status },
        Alteration::Present(present) => {
            Change::SetPresent { connection, path, present, unnoticed: Duration::ZERO }
        }
        Alteration::Fits(fits) => Change::SetFits { connection, path, fits },
        Alteration::Settings { weight, priority, keepalive } => {
            let keepalive = Some(Duration::from_millis(keepalive));
            let config = PathConfig { weight, priority, keepalive, ..path_config };
            Change::SetPath { connection, path, config }
        }
        Alteration::Order { window, max_delay } => {
            let mut config = config.clone();
            config.reorder.window = window;
            config.reorder.max_delay = Duration::from_millis(max_delay);
            Change::SetConnection { connection, config: Arc::new(config) }
        }
        Alteration::Remove => Change::RemovePath { connection, path },
        Alteration::Add => Change::AddPath { connection, path, config: path_config },
    }
}

/// What the links that end at a host have delivered.
fn arrived(pair: &Pair, direction: Direction) -> u64 {
    let stats = |&wire| *pair.world.link(wire, direction).stats();
    pair.wires.iter().map(stats).map(|stats: Stats| stats.delivered.packets).sum()
}

/// Every datagram that reached a host, and every inner packet given to it, has one fate.
fn assert_accounted(pair: &Pair, host: HostId, incoming: Direction, offered: u64, all_paths: bool) {
    let endpoint = pair.world.endpoint(host).expect("nobody stops a host here");
    let connection = endpoint.connection(Pair::CONNECTION);
    let stats = connection.stats();
    let outside = pair.world.host_stats(host);
    assert_eq!((outside.no_socket, outside.no_wire, outside.stopped), (0, 0, 0));

    let no_path = stats.drops.count(Drop::NoPath);
    assert_eq!(stats.sent.packets + no_path, offered, "every inner packet has a fate");

    let paths = connection.paths().map(|path| connection.path(path).stats);
    let keepalives: u64 = paths.map(|path| path.keepalives_received).sum();
    let received_drops = endpoint.drops().total() + stats.drops.total() - no_path;
    let fates = outside.unreadable + keepalives + received_drops + stats.delivered.packets;
    let arrived = arrived(pair, incoming);
    // A path that is gone has taken its count of keepalives with it.
    let complete = if all_paths { fates == arrived } else { fates <= arrived };
    assert!(complete, "every datagram has a fate: {fates} of {arrived}, {outside:?}, {stats:?}");
    assert_eq!((stats.reorder.held, pair.world.held(host)), (0, 0), "nothing is held for ever");
    let next = endpoint.poll_timeout().map(|deadline| deadline.timer);
    assert_ne!(next, Some(Timer::MaxDelay), "the only timers are those of the paths");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn in_every_world_each_packet_arrives_once_unaltered_or_is_counted(
        seed: u64,
        plan in any_plan(),
        mut actions in prop::collection::vec((0..END, any_action()), 0..12),
    ) {
        actions.sort_by_key(|(ms, _)| *ms);
        let Run { pair, streams } = run(seed, &plan, &actions);
        let world = &pair.world;
        let restarted = |(_, _, event): &(_, _, Event)| matches!(event, Event::Restart { .. });
        let trusted = !world.events().iter().any(restarted);
        let in_order = plan.connection.reorder.late == Late::Drop;
        let sent = streams.map(|stream| world.stream(stream).0.sent());
        for (stream, sent) in streams.into_iter().zip(sent) {
            let verdict = world.stream(stream).1.verdict();
            prop_assert!(verdict.received <= sent);
            prop_assert_eq!(verdict.invalid, 0);
            // A sender suspected of a restart is believed: what it sent before may come again.
            if trusted {
                prop_assert_eq!(verdict.duplicates, 0, "{:?}", verdict);
                prop_assert!(verdict.out_of_order == 0 || !in_order, "{:?}", verdict);
            }
        }
        for host in [pair.left, pair.right] {
            prop_assert_eq!(world.host_stats(host).unclaimed, 0, "nothing is invented");
        }
        let removes = |(_, action): &(u64, Action)| {
            matches!(action, Action::Alter { alteration: Alteration::Remove, .. })
        };
        let all_paths = !actions.iter().any(removes);
        assert_accounted(&pair, pair.left, Direction::Back, sent[0], all_paths);
        assert_accounted(&pair, pair.right, Direction::There, sent[1], all_paths);
        for &wire in &pair.wires {
            for direction in Direction::BOTH {
                prop_assert!(world.link(wire, direction).stats().is_balanced());
            }
        }

        let again = run(seed, &plan, &actions);
        prop_assert_eq!(world.digest(), again.pair.world.digest());
    }

    #[test]
    fn in_every_world_a_session_delivers_each_packet_once_and_unaltered(
        seed: u64,
        plan in any_session_plan(),
        mut actions in prop::collection::vec((0..END, any_session_action()), 0..12),
    ) {
        actions.sort_by_key(|(ms, _)| *ms);
        let Run { pair, streams } = run_with(seed, &plan, &actions, [7000, 7000], QUIET);
        let world = &pair.world;
        for stream in streams {
            let (source, checker) = world.stream(stream);
            let verdict = checker.verdict();
            prop_assert!(verdict.received <= source.sent());
            prop_assert_eq!(verdict.invalid, 0);
            // Plain data that comes while a session begins is delivered whatever its number is.
            if plan.connection.framing == FramingConfig::Extended {
                prop_assert_eq!(verdict.duplicates, 0, "{:?}", verdict);
            }
        }
        let restarts = actions.iter().any(|(_, action)| matches!(action, Action::Restart { .. }));
        for (host, stream) in [pair.left, pair.right].into_iter().zip(streams) {
            prop_assert_eq!(world.host_stats(host).unclaimed, 0, "nothing is invented");
            prop_assert_eq!(world.held(host), 0, "nothing is held for ever");
            let connection = pair.connection(host);
            let (stats, waiting) = (connection.stats(), connection.waiting());
            let drops = [Drop::NoPath, Drop::QueueDelay, Drop::QueueFull];
            let drops: u64 = drops.iter().map(|&reason| stats.drops.count(reason)).sum();
            let fates = stats.sent.packets + drops + waiting as u64;
            let offered = world.stream(stream).0.sent();
            prop_assert!(restarts || fates == offered, "{fates} of {offered}: {stats:?}, {waiting}");
        }
        let again = run_with(seed, &plan, &actions, [7000, 7000], QUIET);
        prop_assert_eq!(world.digest(), again.pair.world.digest());
    }

    #[test]
    fn in_every_world_what_is_lost_is_repaired_once_or_counted(
        seed: u64,
        plan in any_repair_plan(),
        mut actions in prop::collection::vec((0..END, any_repair_action()), 0..12),
        ports in prop_oneof![Just([7000, 3478]), Just([3478, 7001]), Just([7001, 7000])],
    ) {
        actions.sort_by_key(|(ms, _)| *ms);
        let Run { pair, streams } = run_with(seed, &plan, &actions, ports, QUIET);
        let world = &pair.world;
        let began = |(_, host, event): &(_, HostId, Event), of: HostId| {
            *host == of && matches!(event, Event::Session { .. })
        };
        let hosts = [pair.left, pair.right];
        let is_one = hosts.iter().all(|host| {
            world.events().iter().filter(|event| began(event, *host)).count() <= 1
        });
        for (host, stream) in hosts.into_iter().zip(streams) {
            let (source, checker) = world.stream(stream);
            let verdict = checker.verdict();
            prop_assert!(verdict.received <= source.sent());
            prop_assert_eq!((verdict.invalid, verdict.duplicates), (0, 0), "{:?}", verdict);
            prop_assert_eq!(world.host_stats(host).unclaimed, 0, "nothing is invented");
            prop_assert_eq!(world.held(host), 0, "nothing is held for ever");
            // Each packet that was offered has a number or a name.
            let connection = pair.connection(host);
            let (stats, waiting) = (connection.stats(), connection.waiting() as u64);
            let drops =
                [Drop::NoPath, Drop::QueueDelay, Drop::QueueFull, Drop::ClassPath, Drop::AckObsolete];
            let drops: u64 = drops.iter().map(|&reason| stats.drops.count(reason)).sum();
            let fates = stats.sent.packets + drops + waiting;
            prop_assert_eq!(fates, source.sent(), "{:?}, {} wait", stats, waiting);
            // Each number came once or is counted as lost.
            let order = stats.reorder;
            let given_up = order.lost_early_release + order.lost_max_delay + order.lost_window;
            let resolved = stats.delivered.packets + given_up - order.late;
            let expected = connection.expected().map_or(0, |next| u64::from(next.value()));
            if is_one {
                prop_assert_eq!(resolved, expected, "{:?}", stats);
            }
            // What it takes is bounded.
            let repair = connection.repair_stats();
            let spent = (repair.repaired.bytes) as f64;
            let paths = plan.paths.len() as f64;
            let sent = connection.paths().map(|path| connection.path(path).stats.sent.bytes);
            let sent = sent.sum::<u64>() as f64 * 1.2;
            let removed = actions.iter().any(|(_, action)| {
                matches!(action, Action::Alter { alteration: Alteration::Remove, .. })
            });
            prop_assert!(
                removed || spent <= sent * SPARE_SHARE + SPARE_SAVED * paths,
                "{} of {}: {:?}", spent, sent, repair
            );
            prop_assert!(connection.memory() <= MOST_MEMORY, "{}", connection.memory());
            prop_assert!(repair.parity.tried <= stats.sent.packets * 2, "{:?}", repair);
        }
        let again = run_with(seed, &plan, &actions, ports, QUIET);
        prop_assert_eq!(world.digest(), again.pair.world.digest());
    }
}
