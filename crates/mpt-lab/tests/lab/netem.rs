//! Links of the kernel's netem: what they do, where there is netem, and what is said where not.

use std::time::{Duration, Instant};

use mpt_lab::capture::Capture;
use mpt_lab::emulator::Direction;
use mpt_lab::emulator::netem::NetemError;
use mpt_lab::lab::{Backend, Lab};
use mpt_lab::topology::Topology;
use mpt_lab::traffic::tcp;
use mpt_sim::link::DropReason;
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use socket2::SockRef;

use crate::world::{Test, eventually, lacks_module, pair, receive, send};

pub(crate) const TESTS: &[Test] = &[
    ("netem_is_used_or_its_absence_told", absence),
    ("what_netem_cannot_do_is_told_by_its_key", unsupported),
    ("netem_delays_each_way_and_counts_nothing_else_ipv4", || delay(4)),
    ("netem_delays_each_way_and_counts_nothing_else_ipv6", || delay(6)),
    ("netem_carries_no_more_than_the_rate_and_all_of_it", rate),
    ("netem_loses_packets_and_not_super_packets", loss),
    ("netem_cuts_and_mends_a_direction", blackout),
    ("netem_changes_its_profile_on_the_way", replace),
    ("netem_spreads_delays_normally", jitter),
];

fn start(topology: &str) -> Result<Lab, NetemError> {
    let topology = Topology::parse(topology).unwrap();
    Lab::start_on(&topology, Backend::Netem).map_err(|error| {
        let text = format!("{error:#}");
        error.downcast().unwrap_or_else(|_| panic!("{text}"))
    })
}

/// A lab on netem, or the end of the test.
fn lab(topology: &str) -> Lab {
    start(topology).unwrap_or_else(|error| match error {
        NetemError::Missing | NetemError::NoCutter => lacks_module(&error.to_string()),
        NetemError::Profile { .. } | NetemError::Nat { .. } => panic!("{error}"),
    })
}

fn absence() {
    match start("[[link]]\nname = 'wire'") {
        Ok(lab) => assert_eq!(lab.backend(), Backend::Netem),
        Err(error) => {
            assert_eq!(error, NetemError::Missing);
            assert_eq!(error.to_string(), "netem is not available: modprobe sch_netem");
        }
    }
}

fn unsupported() {
    for (keys, message) in [
        ("blackouts = [[1, 2]]", "link `wire`, forward: netem does not support this `blackouts`"),
        (
            "backward = { largest_bytes = 9 }",
            "link `wire`, backward: netem does not support this `largest",
        ),
        ("jitter_ms = 1\nkeep_order = true", "`keep_order`"),
        ("jitter_ms = 1\nrate_mbps = 9", "add `keep_order = true`"),
        ("nat = true", "link `wire`: `nat` is not possible with netem"),
    ] {
        let error = start(&format!("[[link]]\nname = 'wire'\n{keys}")).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

fn delay(version: u8) {
    let lab = lab(&format!(
        "[[link]]\nname = 'wire'\nversion = {version}\ndelay_ms = 30\nbackward = {{ delay_ms = 5 }}"
    ));
    let (left, right) = pair(&lab, 0);
    let folder = tempfile::tempdir().unwrap();
    let capture = Capture::start(&lab, &folder.path().join("a"), &[]).unwrap();
    for number in 0..20 {
        let start = Instant::now();
        send(&left, number);
        assert_eq!(receive(&right), number);
        let there = start.elapsed();
        assert!(there >= Duration::from_millis(30), "there after {there:?}");
        let turn = Instant::now();
        send(&right, number);
        assert_eq!(receive(&left), number);
        assert!(turn.elapsed() >= Duration::from_millis(5));
    }
    let summary = capture.finish().unwrap();
    assert_eq!((summary.packets(), summary.dropped()), (80, 0), "{summary:?}");
    let report = lab.link(0).report();
    assert!(!report.doubtful, "{report:?}");
    let header = if version == 4 { 28 } else { 48 };
    for direction in [&report.forward, &report.backward] {
        assert_eq!(direction.stats.delivered.packets, 20, "packets nobody sent");
        assert_eq!(direction.stats.delivered.bytes, 20 * (4 + header));
        assert!(direction.stats.is_balanced());
    }
}

/// Bytes of payload that make IPv4 packets of 1250 bytes: 1 ms each at 10 Mbit/s.
const PAYLOAD: usize = 1250 - 28;

fn rate() {
    const PACKETS: u32 = 1000;
    let lab = lab("[[link]]\nname = 'wire'\nrate_mbps = 10\nqueue_bytes = 5000000");
    let (left, right) = pair(&lab, 0);
    // What netem holds counts as the sender's.
    SockRef::from(&left).set_send_buffer_size(8 << 20).unwrap();
    let mut payload = [0; PAYLOAD];
    let start = Instant::now();
    let all = std::thread::scope(|scope| {
        // They come while others are still being sent, and more than a socket holds.
        let receiver = scope.spawn(move || {
            (0..PACKETS).for_each(|number| assert_eq!(receive(&right), number));
            start.elapsed()
        });
        for number in 0..PACKETS {
            payload[..4].copy_from_slice(&number.to_be_bytes());
            left.send(&payload).unwrap();
        }
        receiver.join().unwrap()
    });
    let exact = Duration::from_millis(PACKETS.into());
    assert!(all >= exact.mul_f64(0.99) && all < 2 * exact, "all after {all:?}");
}

/// A TCP flow from left to right for a second; the link's report and what the sink got, in bit/s.
fn flow(lab: &Lab) -> f64 {
    let address = lab.right().address(0);
    let sink = lab.right().run(|| tcp::Sink::listen(tcp::Transport::Tcp, address, None)).unwrap();
    let remote = sink.address();
    let source = lab
        .left()
        .run(|| tcp::Source::connect(tcp::Transport::Tcp, remote, None, "cubic"))
        .unwrap();
    let report = tcp::Flow::start(sink, source, Duration::from_secs(1)).unwrap().finish();
    assert_eq!(report.failure, None);
    report.series.goodput(Duration::ZERO)
}

fn loss() {
    let lab = lab("[[link]]\nname = 'wire'\nmtu = 1400\nforward = { loss = 0.01 }");
    let goodput = flow(&lab);
    assert!(goodput > 1e6, "{goodput}");
    let stats = lab.link(0).report().forward.stats;
    // A super-packet would be one packet of up to 64 KiB.
    let average = stats.delivered.bytes / stats.delivered.packets;
    assert!((1000..=1400).contains(&average), "{average} bytes per packet");
    let (lost, offered) = (stats.drops(DropReason::Loss).packets, stats.offered.packets);
    let expected = offered as f64 * 0.01;
    let deviation = (expected * 0.99).sqrt();
    let off = (lost as f64 - expected).abs();
    assert!(off < 6.0 * deviation, "{lost} of {offered}");
}

fn blackout() {
    let lab = lab("[[link]]\nname = 'wire'\ndelay_ms = 1");
    let (left, right) = pair(&lab, 0);
    lab.link(0).set_blackout(Direction::Forward, true);
    send(&left, 1);
    send(&right, 2);
    assert_eq!(receive(&left), 2, "the other direction goes on");
    let stats = || lab.link(0).report().forward.stats;
    eventually("the packet is lost", || stats().drops(DropReason::Blackout).packets == 1);
    lab.link(0).set_blackout(Direction::Forward, false);
    send(&left, 3);
    assert_eq!(receive(&right), 3, "the first was lost, this one is not");
    assert_eq!(stats().drops(DropReason::Blackout).packets, 1);
    assert!(!lab.link(0).report().doubtful);
}

fn replace() {
    let lab = lab("[[link]]\nname = 'wire'\nforward = { corrupt = 1, rate_mbps = 0.1 }");
    let (left, right) = pair(&lab, 0);
    let slow = Profile { delay: Duration::from_millis(40), ..Profile::default() };
    lab.link(0).set_profile(Direction::Forward, slow);
    for number in 0..50 {
        let start = Instant::now();
        send(&left, number);
        assert_eq!(receive(&right), number, "corruption has ended");
        assert!(start.elapsed() >= Duration::from_millis(40));
    }
    // 50 packets of 32 bytes would take 128 ms alone at the old rate, but here they were one by one.
    lab.link(0)
        .set_profile(Direction::Forward, Profile { loss: Loss::Random(1.0), ..Profile::default() });
    send(&left, 99);
    let drops = || lab.link(0).report().forward.stats.drops(DropReason::Loss).packets;
    eventually("the packet is lost", || drops() == 1);
    let narrow = Profile { largest: Some(100), ..Profile::default() };
    lab.link(0).set_profile(Direction::Forward, narrow);
    let report = lab.link(0).report();
    assert!(report.doubtful && report.reasons[0].contains("`largest_bytes`"), "{report:?}");
}

fn jitter() {
    let lab = lab("[[link]]\nname = 'wire'\nforward = { delay_ms = 40, jitter_ms = 5 }");
    // A machine that stands still makes packets later, never earlier: so look at the early half, and
    // believe a quiet one of several rounds.
    let normal = |delays: &[f64]| {
        let quantile = |share: f64| delays[(delays.len() as f64 * share) as usize];
        let [far, near, middle] = [0.0228, 0.1587, 0.5].map(quantile);
        let (one, two) = (middle - near, middle - far);
        println!("median {middle:.2} ms, one deviation {one:.2}, two {two:.2}");
        // Evenly spread delays would have a ratio of 1.4, normally spread ones have 2.
        (39.5..43.0).contains(&middle)
            && (4.0..6.0).contains(&one)
            && (1.7..2.3).contains(&(two / one))
    };
    let rounds = (0..8).map(|_| delays(&lab)).any(|delays| normal(&delays));
    assert!(rounds, "40 ms with a deviation of 5 were set");
}

/// The delays in milliseconds, sorted, of packets sent one by one.
fn delays(lab: &Lab) -> Vec<f64> {
    const PACKETS: u32 = 1000;
    let (left, right) = pair(lab, 0);
    SockRef::from(&right).set_recv_buffer_size(1 << 20).unwrap();
    let origin = Instant::now();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let arrivals = (0..PACKETS).map(|_| (receive(&right), origin.elapsed()));
            arrivals.collect::<Vec<_>>()
        });
        let mut sent = Vec::new();
        for number in 0..PACKETS {
            sent.push(origin.elapsed());
            send(&left, number);
            std::thread::sleep(Duration::from_millis(1));
        }
        let delay =
            |(number, at): (u32, Duration)| (at - sent[number as usize]).as_secs_f64() * 1e3;
        let arrivals = receiver.join().unwrap().into_iter();
        let mut delays: Vec<_> = arrivals.map(delay).collect();
        delays.sort_by(f64::total_cmp);
        delays
    })
}
