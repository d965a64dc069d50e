//! The sender against acknowledgements made by hand.

use super::*;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A sender whose first ten segments left at 10 ms, with a round-trip time of 10 ms.
fn begun() -> Sender {
    let mut sender = Sender::new(Growth::Cubic, Duration::from_millis(10), 10_000);
    assert_eq!(send(&mut sender, 10), (0..10).collect::<Vec<_>>());
    sender
}

fn send(sender: &mut Sender, at: u64) -> Vec<u64> {
    std::iter::from_fn(|| sender.poll(ms(at))).map(|segment| segment.number).collect()
}

/// An acknowledgement at `at` of what was sent ten milliseconds before.
fn acknowledge(sender: &mut Sender, at: u64, next: u64, range: Option<(u64, u64)>) {
    let ranges = [range, None, None];
    let acknowledgement =
        Acknowledgement { next, stamp: at, echo: at - 10, duplicate: None, ranges };
    sender.on_acknowledgement(ms(at), &acknowledgement);
}

#[test]
fn three_segments_beyond_a_gap_mean_loss() {
    let mut sender = begun();
    acknowledge(&mut sender, 20, 0, Some((1, 2)));
    acknowledge(&mut sender, 20, 0, Some((1, 3)));
    assert_eq!(sender.stats().recoveries, 0);
    acknowledge(&mut sender, 20, 0, Some((1, 4)));
    assert_eq!(sender.stats().recoveries, 1);
    assert_eq!(send(&mut sender, 20)[0], 0, "it is sent again first");
    // Recovery ends at 70 % of the window.
    let next = sender.board.next();
    acknowledge(&mut sender, 31, next, None);
    assert!((7.0..7.6).contains(&sender.window()), "{}", sender.window());
}

#[test]
fn a_late_segment_undoes_the_reduction_and_adapts_the_reordering_window() {
    let mut sender = begun();
    acknowledge(&mut sender, 20, 0, Some((1, 4)));
    assert_eq!(send(&mut sender, 20)[0], 0);
    // The first transmission comes: the echoed stamp is older than the repetition.
    acknowledge(&mut sender, 22, 4, None);
    assert_eq!((sender.stats().undone, sender.state), (1, State::Open));
    assert!(sender.window() >= 10.0 && sender.reordering_seen);
    // The repetition comes, too: the receiver had it.
    let duplicate =
        Acknowledgement { next: 10, stamp: 31, echo: 21, duplicate: Some(0), ..Default::default() };
    sender.on_acknowledgement(ms(31), &duplicate);
    assert_eq!(sender.rack.steps, 2);
    assert_eq!(sender.reordering_window(), Duration::from_millis(5));
}

#[test]
fn silence_ends_in_a_probe_and_then_in_a_timeout() {
    let mut sender = begun();
    let probe = sender.next_due().unwrap();
    assert_eq!(probe, ms(34), "two round trips and a tick");
    sender.on_time(probe);
    assert_eq!(send(&mut sender, 34), [10], "the probe is a segment beyond the window");
    let timeout = sender.next_due().unwrap();
    assert_eq!(timeout, ms(34 + 210));
    sender.on_time(timeout);
    assert_eq!((sender.stats().timeouts, send(&mut sender, 244)), (1, vec![0]));
    // Everything had arrived and was held somewhere: the timeout was wrong.
    let acknowledgement =
        Acknowledgement { next: 5, stamp: 300, echo: 10, ..Acknowledgement::default() };
    sender.on_acknowledgement(ms(300), &acknowledgement);
    assert_eq!(sender.stats().undone, 1);
    assert!(sender.window() >= 10.0);
}

#[test]
fn an_overtaken_acknowledgement_is_ignored() {
    let mut sender = begun();
    acknowledge(&mut sender, 22, 2, None);
    let old = Acknowledgement {
        next: 1,
        stamp: 20,
        echo: 10,
        ranges: [Some((5, 6)), None, None],
        ..Acknowledgement::default()
    };
    sender.on_acknowledgement(ms(23), &old);
    assert_eq!(sender.board.arrived(), 0);
    sender.on_acknowledgement(ms(23), &Acknowledgement { stamp: 21, ..old });
    assert_eq!(sender.board.arrived(), 1, "a millisecond is no age");
}

#[test]
fn the_send_buffer_bounds_what_is_outstanding() {
    let mut sender = Sender::new(Growth::Cubic, Duration::from_millis(10), 4);
    assert_eq!(send(&mut sender, 10), [0, 1, 2, 3]);
    acknowledge(&mut sender, 20, 2, None);
    assert_eq!(send(&mut sender, 20), [4, 5]);
}
