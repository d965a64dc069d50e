//! Results of experiments that never ran: every kind of plot, and everything that can go wrong.

use std::path::Path;

use mpt_lab::results::{
    Axis, Bound, CellRecord, Check, Coordinate, ExperimentEntry, Figure, Folder, LinkRecord,
    Manifest, Plot, PlotKind, Published, SelfTest, SystemEntry, SystemRecord, Target,
};

/// Text that must stay text, with a request in it that must never be made.
pub(crate) const WEIRD: &str =
    "<script src=\"http://outside.test/x.js\"></script> & \"quotes\" 'n' <b>|pipes|</b>";

/// Writes the folder. With a factor other than 1, classic MPT gets so much more.
pub(crate) fn write(place: &Path, factor: f64) {
    let folder = Folder::create(place).unwrap();
    let experiments: Vec<(ExperimentEntry, bool)> = vec![
        (delays(), false),
        (weights(), false),
        (windows(), true),
        (profiles(), true),
        (failover(), false),
        (plain(), true),
    ];
    for quick in [false, true] {
        let id = if quick { "20261121T020000Z-2" } else { "20261121T010000Z-1" };
        let mine = || experiments.iter().filter(|(_, form)| *form == quick).map(|(entry, _)| entry);
        folder.add_run(&manifest(id, quick, mine().cloned().collect())).unwrap();
        for entry in mine() {
            for cell in cells(entry, id, quick, factor) {
                folder.add_cell(&cell).unwrap();
            }
        }
    }
}

fn manifest(id: &str, quick: bool, experiments: Vec<ExperimentEntry>) -> Manifest {
    let check = |name: &str, set, got, tolerance, unit: &str, passed| Check {
        name: name.into(),
        set,
        got,
        tolerance,
        unit: unit.into(),
        passed,
    };
    Manifest {
        id: id.into(),
        started: "2026-11-21T01:00:00Z".into(),
        command: "mpt-lab run --all --out results".into(),
        commit: "0123abc-dirty".into(),
        version: "0.1.0".into(),
        kernel: "6.18.0".into(),
        cpu: "A processor & more".into(),
        processors: 2,
        lab_sha256: String::new(),
        daemon_sha256: String::new(),
        continues: Vec::new(),
        quick,
        backend: "emulator".into(),
        selftest: Some(SelfTest {
            ceiling_mbps: 1480.0,
            checks: vec![
                check("delay 10 ms, median", 10.0, 10.06, 0.3, "ms", true),
                check("rate 100 Mbit/s", 100.0, 99.7, 1.0, "Mbit/s", true),
                check("loss 2 %", 0.02, 0.0213, 0.003, "share", true),
                check("jitter 2 ms, standard deviation", 2.0, 2.31, 0.1, "ms", false),
            ],
        }),
        experiments,
    }
}

fn axis(name: &str, title: &str, unit: &str, labels: &[&str]) -> Axis {
    Axis {
        kept: Vec::new(),
        name: name.into(),
        title: title.into(),
        unit: unit.into(),
        labels: labels.iter().map(|&label| label.into()).collect(),
    }
}

fn systems(names: &[(&str, &str)]) -> Vec<SystemEntry> {
    let entry =
        |(name, title): &(&str, &str)| SystemEntry { name: (*name).into(), title: (*title).into() };
    names.iter().map(entry).collect()
}

const THREE: [(&str, &str); 3] =
    [("classic", "MPT classic"), ("mpt", "MPT"), ("mptcp", "MPTCP of the kernel")];

fn plot(kind: PlotKind, x: &str, by: &str) -> Plot {
    Plot { kind, x: x.into(), by: by.into(), figure: "goodput_mbps".into(), ..Plot::default() }
}

fn target(bound: Bound, value: f64, of: &str) -> Target {
    Target {
        system: "classic".into(),
        figure: "goodput_mbps".into(),
        bound,
        value,
        of: of.into(),
        share: 1.0,
        ..Target::default()
    }
}

/// Lines over numbers, published values, whiskers, a doubtful cell.
fn delays() -> ExperimentEntry {
    let mut share = target(Bound::Within, 0.03, "ideal_mbps");
    share.share = 0.5;
    share.text = "Half of the cells are within 3 % of the ideal.".into();
    ExperimentEntry {
        name: "journal-2023-table-1".into(),
        title: "Delay on both links".into(),
        question: "How does the throughput of the tunnel depend on the delay of its links?".into(),
        source: "Somebody & Else, A Journal 15(2), 2023, Table I".into(),
        notes: vec![
            "The paper's machines had a queue of unknown length; ours holds 50 ms. Likely cause of the \
             difference at long delays."
                .into(),
            "The kernel is another one.".into(),
        ],
        command: "mpt-lab run crates/mpt-lab/experiments/journal-2023-table-1.toml --out results".into(),
        axes: vec![axis("delay", "one-way delay of both links", "ms", &["0", "10", "20", "30", "40", "50", "100"])],
        systems: systems(&THREE),
        columns: vec!["goodput_mbps".into(), "efficiency".into(), "retransmits".into(), "longest_gap_ms".into()],
        plots: vec![plot(PlotKind::Lines, "delay", ""), Plot { figure: "efficiency".into(), ..plot(PlotKind::Lines, "delay", "") }],
        targets: vec![
            target(Bound::AtLeast, 0.9, "published"),
            share,
            Target { full: true, ..target(Bound::AtLeast, 1.0, "mptcp/goodput_mbps") },
        ],
        ..ExperimentEntry::default()
    }
}

/// A grid of ten by ten, four published cells.
fn weights() -> ExperimentEntry {
    let tens: Vec<String> = (1..=10).map(|n| (n * 10).to_string()).collect();
    let tens: Vec<&str> = tens.iter().map(String::as_str).collect();
    ExperimentEntry {
        name: "journal-2023-figure-3".into(),
        title: "Weights against speeds".into(),
        question: "What do wrong weights cost?".into(),
        command: "mpt-lab run journal-2023-figure-3.toml".into(),
        axes: vec![
            axis("speed", "speed of link 1", "Mbit/s", &tens),
            axis("weight1", "weight of link 1", "", &tens),
        ],
        systems: systems(&THREE[..2]),
        plots: vec![plot(PlotKind::Grid, "speed", "weight1")],
        targets: vec![target(Bound::Within, 0.1, "bound_mbps")],
        ..ExperimentEntry::default()
    }
}

/// Lines over a logarithm, one for each delay, enough that each system has its own panel.
fn windows() -> ExperimentEntry {
    let windows = ["25", "50", "100", "200", "400", "800", "1600", "3200", "6400", "10000"];
    ExperimentEntry {
        name: "electronics-2025-figure-10".into(),
        title: "How large a window does reordering need?".into(),
        question: "From which window on is the throughput whole?".into(),
        source: "A & L, Electronics 14(11), 2025, Figure 10".into(),
        command: "mpt-lab run electronics-2025-figure-10.toml --quick".into(),
        axes: vec![
            axis("window", "reorder window", "packets", &windows),
            axis("delay", "delay of link 2", "ms", &["0", "1", "2", "5"]),
        ],
        systems: systems(&THREE[..2]),
        plots: vec![Plot { log_x: true, ..plot(PlotKind::Lines, "window", "delay") }],
        targets: vec![Target { full: true, ..target(Bound::AtLeast, 0.97, "ideal_mbps") }],
        ..ExperimentEntry::default()
    }
}

/// Bars over names that are too long to stand upright, a further axis, a skipped system.
fn profiles() -> ExperimentEntry {
    let profiles = [
        "fiber_lte",
        "bw_10to1",
        "rtt_120",
        "lossy_wifi",
        "two_equal",
        "satellite",
        "train",
        "office_and_lte",
        "dsl_dsl",
        "skew_50",
        "jitter_10",
        "asymmetric",
    ];
    ExperimentEntry {
        name: "scoreboard".into(),
        title: format!("Profiles {WEIRD}"),
        question: format!("Which is best? {WEIRD}"),
        source: WEIRD.into(),
        notes: vec![WEIRD.into()],
        command: format!("mpt-lab run scoreboard.toml --quick # {WEIRD}"),
        axes: vec![
            axis("profile", "profile of the links", "", &profiles),
            axis("flow", "", "", &["cubic", "bbr", "quic"]),
        ],
        systems: systems(&THREE),
        plots: vec![
            plot(PlotKind::Bars, "profile", "flow"),
            Plot { systems: vec!["classic".into()], ..plot(PlotKind::Bars, "profile", "flow") },
            plot(PlotKind::Bars, "profile", ""),
        ],
        targets: vec![target(Bound::AtLeast, 1.0, "mptcp/goodput_mbps")],
        ..ExperimentEntry::default()
    }
}

/// Goodput over time as a separate plot; few cells and many figures.
fn failover() -> ExperimentEntry {
    ExperimentEntry {
        name: "failover".into(),
        title: "A link dies".into(),
        question: "How long is the silence?".into(),
        command: "mpt-lab run failover.toml".into(),
        axes: vec![axis("event", "what happens", "", &["cut with carrier", WEIRD])],
        systems: systems(&THREE[..2]),
        columns: [
            "goodput_mbps",
            "longest_gap_ms",
            "lost_packets",
            "leave_seconds",
            "return_seconds",
        ]
        .map(String::from)
        .into(),
        plots: vec![plot(PlotKind::Time, "", "")],
        ..ExperimentEntry::default()
    }
}

/// One cell and no axis.
fn plain() -> ExperimentEntry {
    ExperimentEntry {
        name: "plain".into(),
        systems: systems(&THREE[..1]),
        plots: vec![
            plot(PlotKind::Bars, "", ""),
            plot(PlotKind::Lines, "", ""),
            plot(PlotKind::Grid, "", ""),
            plot(PlotKind::Time, "", ""),
        ],
        ..ExperimentEntry::default()
    }
}

fn cells(entry: &ExperimentEntry, run: &str, quick: bool, factor: f64) -> Vec<CellRecord> {
    let mut places: Vec<Vec<Coordinate>> = vec![Vec::new()];
    for axis in &entry.axes {
        places = places
            .iter()
            .flat_map(|place| {
                axis.labels.iter().map(|label| {
                    let at = Coordinate {
                        axis: axis.name.clone(),
                        label: label.clone(),
                        value: label.parse().ok(),
                    };
                    [place.clone(), vec![at]].concat()
                })
            })
            .collect();
    }
    let count = places.len();
    let number = |(n, place)| cell(entry, run, quick, factor, n + 1, count, place);
    places.into_iter().enumerate().map(number).collect()
}

fn cell(
    entry: &ExperimentEntry,
    run: &str,
    quick: bool,
    factor: f64,
    number: usize,
    count: usize,
    place: Vec<Coordinate>,
) -> CellRecord {
    let sum: f64 = place.iter().filter_map(|at| at.value).sum();
    let level = 105.0 * 120.0 / (120.0 + sum) + (number * 7 % 5) as f64;
    let doubtful = number % 9 == 4;
    let skipped = entry.name == "scoreboard" && number.is_multiple_of(6);
    let system = |(n, system): (usize, &SystemEntry)| {
        let mut goodput = level * [1.0, 1.04, 0.9][n];
        if n == 0 {
            goodput *= factor;
        }
        let skip = skipped && system.name == "mptcp";
        SystemRecord {
            system: system.name.clone(),
            skipped: skip.then(|| format!("this kernel has none {WEIRD}")),
            figures: if skip { [].into() } else { figures(goodput, level, quick) },
            samples_mbps: if skip || (quick && entry.name != "plain") {
                Vec::new()
            } else {
                samples(goodput, number + n)
            },
            ..SystemRecord::default()
        }
    };
    let published =
        entry.source.contains("Journal") || (entry.name.ends_with("figure-3") && number % 9 == 1);
    let scale = if entry.name.contains("2025") { 4.0 } else { 1.0 };
    CellRecord {
        host_limited: None,
        run: run.into(),
        experiment: entry.name.clone(),
        title: entry.title.clone(),
        number,
        count,
        cell: place,
        repetition: 0,
        parts: Vec::new(),
        quick,
        scale,
        scale_reason: if scale > 1.0 {
            "1500 Mbit/s is above half of the ceiling of 1480".into()
        } else {
            String::new()
        },
        seconds: if quick { 4.0 } else { 30.0 },
        omit: if quick { 1.0 } else { 2.0 },
        seed: 7,
        links: links(entry),
        systems: entry.systems.iter().enumerate().map(system).collect(),
        published: if published {
            vec![Published {
                system: "classic".into(),
                figure: "goodput_mbps".into(),
                value: (level * 10.7).round() / 10.0,
            }]
        } else {
            Vec::new()
        },
        sample_seconds: 0.1,
        doubtful,
        reasons: if doubtful {
            vec!["the emulator stood still for 41 ms".into(), WEIRD.into()]
        } else {
            Vec::new()
        },
    }
}

fn links(entry: &ExperimentEntry) -> Vec<LinkRecord> {
    if !entry.name.contains("table-1") {
        return Vec::new();
    }
    let alone = |goodput: f64| SystemRecord {
        system: "alone".into(),
        shared: Some("journal-2023-table-1/1".into()),
        figures: [("goodput_mbps".to_owned(), Figure::of(&[goodput]).unwrap())].into(),
        ..SystemRecord::default()
    };
    [("slow", 9.6), ("fast", 95.2)]
        .map(|(name, goodput)| LinkRecord {
            name: name.into(),
            alone: Some(alone(goodput)),
            ..LinkRecord::default()
        })
        .into()
}

fn figures(goodput: f64, level: f64, quick: bool) -> std::collections::BTreeMap<String, Figure> {
    let spread = |value: f64| {
        let values = if quick { vec![value] } else { vec![value * 0.95, value, value * 1.03] };
        Figure::of(&values).unwrap()
    };
    [
        ("goodput_mbps", goodput),
        ("ideal_mbps", 106.0),
        ("bound_mbps", level),
        ("predicted_mbps", level * 1.06),
        ("efficiency", goodput / 106.0),
        ("retransmits", 17.0),
        ("longest_gap_ms", 3.0 + level),
        ("lost_packets", 0.0),
        ("leave_seconds", 0.412),
        ("return_seconds", 1.03),
    ]
    .map(|(name, value)| (name.to_owned(), spread(value)))
    .into()
}

/// Ten samples a second that start slowly and wobble.
fn samples(goodput: f64, seed: usize) -> Vec<f64> {
    let mut state = seed as u64 * 2_654_435_761 + 1;
    let mut sample = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wobble = (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
        let start = (n as f64 / 12.0).min(1.0);
        (goodput * start * (1.0 + 0.12 * wobble)).max(0.0)
    };
    (0..300).map(&mut sample).collect()
}
