//! Predictions for the cells of the published tables.

use super::*;
use crate::cell::{Late, Reorder};

/// What the papers' tunnel was set to.
fn classic(weights: &[u32]) -> Tunnel {
    let reorder =
        Reorder { window: 10_000, max_delay: 0.3, early_release: false, late: Late::Drop };
    Tunnel { weights: weights.to_vec(), reorder: Some(reorder), ..Tunnel::default() }
}

fn ours(weights: &[u32]) -> Tunnel {
    Tunnel { weights: weights.to_vec(), ..Tunnel::default() }
}

fn links(rows: &[&str]) -> Topology {
    let tables = rows.iter().enumerate();
    let text: Vec<String> =
        tables.map(|(number, row)| format!("[[link]]\nname = 'l{number}'\n{row}\n")).collect();
    Topology::parse(&text.join("")).unwrap()
}

fn goodput(topology: &Topology, tunnel: &Tunnel) -> Prediction {
    predict(topology, tunnel, &Traffic::default(), 1464)
}

#[test]
fn right_weights_give_the_sum_and_wrong_ones_the_bound() {
    for (rates, weights, expected, binding) in [
        ([10, 100], [10, 100], 110.0, Binding::Links),
        ([100, 100], [1, 1], 200.0, Binding::Links),
        ([10, 100], [1, 1], 20.0, Binding::Weights),
        ([10, 100], [100, 10], 11.0, Binding::Weights),
        ([100, 100], [10, 100], 110.0, Binding::Weights),
    ] {
        let rows = rates.map(|rate| format!("rate_mbps = {rate}"));
        let topology = links(&[&rows[0], &rows[1]]);
        let prediction = goodput(&topology, &ours(&weights));
        let got = prediction.goodput_mbps.unwrap();
        assert!((got / (expected * 1412.0 / 1500.0) - 1.0).abs() < 1e-6, "{prediction:?}");
        assert_eq!((prediction.method, prediction.binding), (Method::ClosedForm, binding));
    }
}

#[test]
fn skew_times_rate_is_the_window_and_skew_the_hold_time() {
    let topology = links(&["rate_mbps = 100\ndelay_ms = 5", "rate_mbps = 20\ndelay_ms = 45"]);
    let prediction = goodput(&topology, &ours(&[100, 20]));
    // Queues of 50 ms; that of 20 Mbit/s is 125 kB = 50 ms, too.
    assert!((prediction.hold_seconds - 0.040).abs() < 1e-9, "{prediction:?}");
    // 120 Mbit/s are 10 000 packets of 1500 bytes per second.
    assert_eq!(prediction.window_packets, 400 + 44 + 1);
}

#[test]
fn wrong_weights_fill_one_queue_and_make_skew_of_it() {
    let topology = links(&["rate_mbps = 10", "rate_mbps = 100"]);
    let prediction = goodput(&topology, &ours(&[1, 1]));
    // 64 kB at 10 Mbit/s.
    assert!((prediction.hold_seconds - 0.0512).abs() < 1e-9, "{prediction:?}");
    let right = goodput(&topology, &ours(&[10, 100]));
    assert!(right.hold_seconds < 0.002, "{right:?}");
}

#[test]
fn jitter_is_waited_for() {
    let topology = links(&[
        "rate_mbps = 100\ndelay_ms = 20\njitter_ms = 3",
        "rate_mbps = 100\ndelay_ms = 20\njitter_ms = 4",
    ]);
    let prediction = goodput(&topology, &ours(&[1, 1]));
    assert!((prediction.hold_seconds - 3.719 * 0.005).abs() < 1e-9, "{prediction:?}");
}

#[test]
fn without_a_limit_the_machine_decides() {
    let prediction = goodput(&links(&["delay_ms = 5"]), &ours(&[1]));
    assert_eq!((prediction.goodput_mbps, prediction.binding), (None, Binding::Machine));
}

#[test]
fn datagrams_pass_as_far_as_their_shares_fit() {
    let topology = links(&["rate_mbps = 10", "rate_mbps = 100"]);
    let traffic = Traffic { kind: Kind::Udp, rate_mbps: 50.0, size: 1000, ..Traffic::default() };
    let prediction = predict(&topology, &ours(&[1, 1]), &traffic, 1464);
    // 25 over the second link; of 10 Mbit/s, 1000 of 1064 bytes.
    let expected = 25.0 + 10.0 * 1000.0 / 1064.0;
    assert!((prediction.goodput_mbps.unwrap() - expected).abs() < 1e-9, "{prediction:?}");
    assert_eq!(prediction.binding, Binding::Weights);
}

#[test]
fn a_prediction_can_be_written_and_read() {
    let topology = links(&["rate_mbps = 10", "rate_mbps = 100"]);
    let prediction = goodput(&topology, &ours(&[10, 100]));
    // A number that survives being written in decimal.
    let prediction = Prediction { goodput_mbps: Some(103.5), ..prediction };
    let text = serde_json::to_string(&prediction).unwrap();
    assert!(text.contains(r#""method":"closed-form","binding":"links""#), "{text}");
    assert_eq!(serde_json::from_str::<Prediction>(&text).unwrap(), prediction);
    assert!(report(&prediction).starts_with("goodput   103.50 Mbit/s (closed form)"));
}

/// Infocommunications Journal 15(2), 2023, Table IV: 10 + 100 Mbit/s, loss in both directions of the
/// first, and what was measured.
#[test]
fn the_published_goodput_under_loss_is_that_of_a_buffer_without_early_release() {
    for (loss, published) in [(0.01, 24.5), (0.02, 13.9), (0.03, 9.02), (0.04, 6.1), (0.05, 4.1)] {
        let lossy = format!("rate_mbps = 10\nloss = {loss}");
        let prediction = goodput(&links(&[&lossy, "rate_mbps = 100"]), &classic(&[10, 100]));
        let ratio = prediction.goodput_mbps.unwrap() / published;
        assert!((0.5..2.2).contains(&ratio), "{loss}: {ratio} {prediction:#?}");
        assert_eq!(prediction.binding, Binding::Hold);
    }
}

#[test]
fn skew_without_order_is_bound_by_reordering() {
    let topology = links(&["rate_mbps = 50", "rate_mbps = 50\ndelay_ms = 20"]);
    let mut tunnel = ours(&[1, 1]);
    let ordered = goodput(&topology, &tunnel);
    tunnel.reorder = Some(Reorder { window: 0, ..tunnel.classic_order() });
    let unordered = goodput(&topology, &tunnel);
    assert!(ordered.goodput_mbps.unwrap() > 90.0, "{ordered:?}");
    assert!(unordered.goodput_mbps.unwrap() < 10.0, "{unordered:?}");
    assert_eq!(unordered.binding, Binding::Reordering);
    let [low, high] = unordered.goodput_range_mbps.unwrap();
    assert!(low <= unordered.goodput_mbps.unwrap() && unordered.goodput_mbps.unwrap() <= high);
}

#[test]
fn a_short_run_over_a_long_way_is_bound_by_its_start() {
    let topology = links(&["rate_mbps = 10\ndelay_ms = 50", "rate_mbps = 100"]);
    let short = Traffic { seconds: 4.0, omit: 1.0, ..Traffic::default() };
    let prediction = predict(&topology, &ours(&[10, 100]), &short, 1464);
    assert!(prediction.goodput_mbps.unwrap() < 60.0, "{prediction:?}");
    assert_eq!(prediction.binding, Binding::Convergence);
    let long = Traffic { seconds: 20.0, omit: 12.0, ..Traffic::default() };
    let prediction = predict(&topology, &ours(&[10, 100]), &long, 1464);
    assert!(prediction.goodput_mbps.unwrap() > 90.0, "{prediction:?}");
}

/// What BBR reaches was called the bound, which is off by any factor where packets are lost.
#[test]
fn without_a_model_of_the_congestion_control_no_goodput_is_predicted() {
    let topology = links(&["rate_mbps = 10", "rate_mbps = 20"]);
    let traffic =
        |congestion: &str| Traffic { congestion: congestion.into(), ..Traffic::default() };
    let tunnel = ours(&[1, 2]);
    let bbr = predict(&topology, &tunnel, &traffic("bbr"), 1464);
    assert_eq!((bbr.goodput_mbps, bbr.goodput_range_mbps), (None, None));
    assert!(bbr.terms.iter().any(|term| term.contains("no model of `bbr`")), "{bbr:?}");
    assert!(bbr.window_packets > 0, "what the order needs does not depend on it");
    assert!(predict(&topology, &tunnel, &traffic("cubic"), 1464).goodput_mbps.is_some());
}
