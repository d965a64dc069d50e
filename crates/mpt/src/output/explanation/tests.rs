use mpt_control::{
    CopyCounters, Finding, FlowExplanation, Found, OrderExplanation, QueueExplanation, QuotaState,
    RepairExplanation, Traffic,
};

use super::*;

fn estimate(stage: &str, mbps: u64, skew: f64, busy: f64) -> Estimate {
    Estimate {
        stage: stage.into(),
        rate: Some(mbps * 1_000_000),
        pace: (stage != "open").then_some(mbps * 1_000_000),
        queueing_ms: 3.0,
        queueing_target_ms: (stage != "open").then_some(2.5),
        skew_ms: Some(skew),
        deviation_ms: Some(0.4),
        rtt_ms: Some(20.5),
        loss: Some(0.0),
        busy: Some(busy),
        ..Estimate::default()
    }
}

fn path(name: &str, limit: Limit, bytes: u64, share: f64) -> PathExplanation {
    PathExplanation {
        name: name.into(),
        state: "up".into(),
        weight: 1,
        sent: Traffic { packets: bytes / 1400, bytes },
        share,
        limit,
        ..PathExplanation::default()
    }
}

/// Two full paths of unequal delay, and what is wrong with four others.
fn full() -> Explanation {
    let first = Estimate {
        committed: 4,
        committed_bytes: 5872,
        found: vec![
            Found { ago_seconds: 90.0, what: Finding::Full { rate: 1, queueing_ms: 1.0 } },
            Found { ago_seconds: 3.2, what: Finding::Drained { before_ms: 3.1, after_ms: 0.4 } },
        ],
        ..estimate("servo", 48, 0.0, 0.98)
    };
    let second = Estimate { deviation_ms: Some(5.0), ..estimate("draining", 30, 25.0, 0.5) };
    let paths = vec![
        PathExplanation { estimate: Some(first), ..path("wan0", Limit::Rate, 30_000_000, 0.61) },
        PathExplanation {
            estimate: Some(second),
            lost: 12,
            ..path("wan1", Limit::Rate, 19_000_000, 0.39)
        },
        PathExplanation {
            estimate: Some(estimate("open", 1, 384.0, 0.0)),
            ..path("geo", Limit::Delay, 0, 0.0)
        },
        PathExplanation {
            state: "down".into(),
            cause: Some("the interface wwan0 has no carrier".into()),
            ..path("lte", Limit::Down, 0, 0.0)
        },
        path("spare", Limit::Standby, 0, 0.0),
        path("old", Limit::Off, 0, 0.0),
    ];
    Explanation {
        tunnel: "mpt0".into(),
        connection: "server".into(),
        scheduler: "earliest".into(),
        framing: "extended".into(),
        seconds: 5.0,
        sent: Traffic { packets: 35_000, bytes: 48_000_000 },
        paths,
        queue: Some(QueueExplanation {
            waiting: 25,
            waiting_bytes: 35_000,
            drains_ms: Some(3.6),
            dropped_delay: 2,
            marked: 10,
            acks_thinned: 120,
            equal_delay_ms: 23.4,
            ..QueueExplanation::default()
        }),
        flows: vec![FlowExplanation {
            flow: "udp 10.9.0.1:4000 -> 10.9.0.2:5004".into(),
            class: "realtime".into(),
            why: "port".into(),
            value: Some(5004),
            bytes: 81_000,
        }],
        repair: Some(RepairExplanation {
            lost: 12,
            repaired: CopyCounters { tried: 12, saved: 11, in_vain: 1, ..CopyCounters::default() },
            beyond: Some(0.012),
            ..RepairExplanation::default()
        }),
        order: OrderExplanation {
            delivered: 17_000,
            held: 3,
            held_max: 60,
            reordered: 950,
            repaired: 40,
            late: 1,
            lost: 12,
        },
        ..Explanation::default()
    }
}

#[test]
fn full_paths_and_those_that_carry_nothing() {
    let text = explanations(&[full()]);
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn light_traffic_and_paths_that_begin() {
    let fast = estimate("open", 12, 0.0, 0.0);
    let start = Estimate { pace: Some(3_000_000), ..estimate("start", 3, 0.3, 0.4) };
    let idle = Estimate { rate: None, ..estimate("open", 0, 0.2, 0.0) };
    let fixed = Estimate { fixed: true, ..estimate("servo", 20, 0.4, 0.0) };
    let slow = Estimate { loss: Some(0.08), ..estimate("servo", 5, 8.0, 0.9) };
    let calm = Explanation {
        paths: vec![
            PathExplanation { estimate: Some(fast), ..path("a", Limit::Load, 700_000, 0.998) },
            PathExplanation { estimate: Some(start), ..path("b", Limit::Start, 1400, 0.002) },
            PathExplanation { estimate: Some(idle), ..path("c", Limit::Load, 0, 0.0) },
            PathExplanation { estimate: Some(fixed), ..path("d", Limit::Load, 0, 0.0) },
            PathExplanation {
                estimate: Some(slow),
                lost: 1,
                resent: 1,
                ..path("e", Limit::Loss, 1400, 0.0)
            },
        ],
        sent: Traffic { packets: 500, bytes: 690_000 },
        queue: Some(QueueExplanation::default()),
        order: OrderExplanation { delivered: 1, ..OrderExplanation::default() },
        ..full()
    };
    insta::assert_snapshot!(explanations(&[calm]));
}

#[test]
fn what_trains_show_is_not_what_a_path_can_carry() {
    for stage in ["trains", "open"] {
        let idle = PathExplanation {
            estimate: Some(estimate(stage, 1, 0.0, 1.0)),
            ..path("a", Limit::Load, 0, 0.0)
        };
        let text = explanations(&[Explanation { paths: vec![idle], ..full() }]);
        assert!(text.contains("It has never been full"), "{text}");
    }
}

#[test]
fn what_quotas_cost() {
    let quota = |used: u64, surcharge_ms, used_up| QuotaState {
        bytes: 50_000_000_000,
        used: used * 1_000_000_000,
        ends: Some(1_780_272_000),
        seconds_left: Some(1_100_000),
        surcharge_ms,
        used_up,
        ..QuotaState::default()
    };
    let with = |name: &str, limit, quota| PathExplanation {
        quota: Some(quota),
        ..path(name, limit, 0, 0.0)
    };
    let shared = QuotaState { interface: Some("wwan0".into()), ..quota(40, 120, false) };
    let unset = QuotaState { ends: None, seconds_left: None, ..quota(51, 1000, true) };
    let it = Explanation {
        scheduler: "earliest".into(),
        framing: "extended".into(),
        paths: vec![
            with("a", Limit::Load, quota(3, 0, false)),
            with("b", Limit::Load, shared),
            with("c", Limit::Standby, quota(50, 1000, true)),
            with("d", Limit::Load, unset),
        ],
        ..Explanation::default()
    };
    insta::assert_snapshot!(explanations(&[it]));
}

#[test]
fn weights_flows_and_no_session() {
    let paths = vec![
        PathExplanation { weight: 2, ..path("fibre", Limit::Weight, 66_000, 0.66) },
        path("radio", Limit::Weight, 34_000, 0.34),
    ];
    let weighted = Explanation {
        scheduler: "weighted".into(),
        framing: "plain".into(),
        paths,
        queue: None,
        repair: None,
        flows: Vec::new(),
        order: OrderExplanation::default(),
        no_path: 1,
        ..full()
    };
    let flow = Explanation { scheduler: "flow".into(), no_path: 0, ..weighted.clone() };
    let none = Explanation {
        framing: "none".into(),
        seconds: 0.0,
        sent: Traffic::default(),
        paths: Vec::new(),
        ..flow.clone()
    };
    insta::assert_snapshot!(explanations(&[weighted, flow, none]));
}

#[test]
fn what_a_later_daemon_says_is_left_out() {
    let text = r#"{"connection":"a","tunnel":"t","scheduler":"dice","paths":[{"name":"b","limit":"weather"}]}"#;
    let text = explanations(&[serde_json::from_str(text).unwrap()]);
    assert!(text.contains("b carried nothing.\n"), "{text}");
    assert!(text.contains("Paths are chosen by the scheduler dice."), "{text}");
    assert_eq!(explanations(&[]), "there are no connections\n");
}
