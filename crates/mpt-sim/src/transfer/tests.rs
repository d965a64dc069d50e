//! Transfers over plain links and through tunnels: do they come out as TCP's theory says?

use super::*;
use crate::loss::Loss;
use crate::profile::Profile;
use crate::tcp::cubic::Growth;

const SEGMENT: usize = 1412;

fn link(mbps: u64, delay_ms: u64) -> Profile {
    let delay = Duration::from_millis(delay_ms);
    Profile { rate: Some(mbps * 1_000_000), delay, ..Profile::default() }
}

fn path(profile: Profile, weight: u16) -> Path {
    Path { there: profile.clone(), back: profile, weight, overhead: 36 }
}

fn plan(paths: Vec<Path>, window: u64, seconds: u64) -> Plan {
    let max_delay = Duration::from_millis(300);
    Plan {
        paths,
        order: Order { window, max_delay, early_release: true, deliver_late: true },
        flows: 1,
        growth: Growth::Cubic,
        segment: SEGMENT,
        inner_header: 20,
        send_buffer: 4 << 20,
        length: Duration::from_secs(seconds),
        seed: 1,
    }
}

/// Megabits per second from second `from` on.
fn goodput(outcome: &Outcome, from: usize) -> f64 {
    let samples = &outcome.samples[from * 10..];
    samples.iter().sum::<u64>() as f64 * 8.0 / 1e6 / (samples.len() as f64 / 10.0)
}

#[test]
fn one_link_is_filled() {
    let outcome = run(&plan(vec![path(link(40, 10), 1)], 4096, 10));
    let share = goodput(&outcome, 2) / (40.0 * 1412.0 / 1500.0);
    assert!((0.98..1.001).contains(&share), "{share} {outcome:?}");
    assert_eq!(outcome.senders.timeouts, 0, "{:?}", outcome.senders);
}

#[test]
fn two_links_with_right_weights_give_their_sum_in_order() {
    let paths = vec![path(link(10, 1), 10), path(link(100, 5), 100)];
    let outcome = run(&plan(paths, 4096, 10));
    let share = goodput(&outcome, 2) / (110.0 * 1412.0 / 1500.0);
    assert!((0.96..1.001).contains(&share), "{share} {:?}", outcome.senders);
    assert_eq!(outcome.there.late, 0);
}

#[test]
fn random_loss_costs_what_the_response_function_says() {
    let lossy = Profile { loss: Loss::Random(0.01), ..link(1000, 10) };
    let paths = vec![Path { there: lossy, ..path(link(1000, 10), 1) }];
    let outcome = run(&plan(paths, 0, 60));
    // RFC 9438 section 5: at 20 ms and 1 % the Reno-friendly region, of which the average window is
    // sqrt(3/2 / p) = 12.2 segments.
    let expected = 12.2 * SEGMENT as f64 * 8.0 / 0.020 / 1e6;
    let ratio = goodput(&outcome, 2) / expected;
    assert!((0.75..1.25).contains(&ratio), "{ratio} {:?}", outcome.senders);
}

#[test]
fn a_lost_packet_costs_the_hold_time_where_nothing_is_released_early() {
    let lossy = Profile { loss: Loss::Random(0.01), ..link(100, 1) };
    let early = plan(vec![path(lossy, 1)], 10_000, 30);
    let mut late = early.clone();
    late.order.early_release = false;
    let [early, late] = [run(&early), run(&late)].map(|outcome| goodput(&outcome, 2));
    assert!(late < 4.0 && early > 4.0 * late, "{early} {late}");
}

#[test]
fn skew_without_order_is_taken_for_loss() {
    let paths = || vec![path(link(100, 0), 1), path(link(100, 5), 1)];
    let ordered = run(&plan(paths(), 4096, 10));
    let unordered = run(&plan(paths(), 0, 10));
    assert!(goodput(&ordered, 2) > 180.0, "{:?}", ordered.senders);
    assert!(goodput(&unordered, 2) < 0.7 * goodput(&ordered, 2), "{:?}", unordered.senders);
    assert!(unordered.senders.recoveries > 0);
}

#[test]
fn the_same_plan_gives_the_same_outcome() {
    let lossy = Profile { loss: Loss::Random(0.005), ..link(20, 5) };
    let plan = plan(vec![path(lossy, 1), path(link(10, 15), 1)], 100, 5);
    assert_eq!(run(&plan).samples, run(&plan).samples);
    let other = Plan { seed: 2, ..plan.clone() };
    assert_ne!(run(&plan).samples, run(&other).samples);
}
