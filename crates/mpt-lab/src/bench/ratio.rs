//! The figures that a run is about, each by name: quotients and differences of what was measured
//! within one repetition.

use super::options::Options;
use super::samples::{Figure, Key, Quantity, Samples};
use super::subject::{Subject, Wire};

/// Bytes of UDP payload whose rates are measured: about the shortest and the longest packet.
pub(super) const UDP_SIZES: [usize; 2] = [64, 1400];

/// A figure by name; `None` if one of its parts was not measured.
pub(super) type Named = (String, Option<Figure>);

/// Quotients. Above 1 the first part is better, but for processor time.
pub(super) fn ratios(samples: &Samples, options: &Options) -> Vec<Named> {
    let [one, many] = options.flows;
    let mut found = Vec::new();
    let mut add = |name: String, wire, numerator, denominator, quantity: Quantity| {
        let [numerator, denominator] =
            [numerator, denominator].map(|subject| Key { wire, subject, quantity });
        let ratio = samples.paired(numerator, denominator, |a, b| a / b);
        found.push((
            name,
            ratio.map(|it| if quantity.is_of_rounds() { it.of_rounds() } else { it }),
        ));
    };
    for wire in [Wire::PassThrough, Wire::WireLike] {
        let prefix = wire.id();
        for (flows, suffix) in [(one, String::new()), (many, format!("_{many}_flows"))] {
            for (name, numerator, denominator) in TCP {
                let name = format!("{prefix}_{name}{suffix}");
                add(name, wire, numerator, denominator, Quantity::Goodput(flows));
            }
        }
        for size in UDP_SIZES {
            for (name, numerator, denominator) in UDP {
                let name = format!("{prefix}_udp{size}_{name}");
                add(name, wire, numerator, denominator, Quantity::UdpRate(size));
            }
        }
    }
    let goodput = Quantity::Goodput(one);
    for (name, on, off) in MODES {
        add(name.into(), Wire::PassThrough, on, off, goodput);
        add(format!("wire_{name}"), Wire::WireLike, on, off, goodput);
    }
    for wire in [Wire::PassThrough, Wire::WireLike] {
        for (name, first, second) in ROUNDS {
            add(format!("{}_{name}", wire.id()), wire, first, second, Quantity::BoundGoodput);
        }
        for (name, first, second) in PROCESSOR {
            let name = format!("{}_{name}_processor_time", wire.id());
            add(name, wire, first, second, Quantity::BoundDaemonTime);
        }
    }
    for (name, subject) in SHAPED {
        let of_ideal = Key { wire: Wire::Shaped, subject, quantity: Quantity::OfIdeal(one) };
        found.push((format!("shaped_{name}_over_ideal"), samples.figure(of_ideal)));
    }
    found
}

const TCP: [(&str, Subject, Subject); 6] = [
    ("1path_over_raw", Subject::MPT1, Subject::Raw),
    ("1path_over_vxlan", Subject::MPT1, Subject::Vxlan),
    ("1path_over_mptcp", Subject::MPT1, Subject::Mptcp),
    ("2path_over_1path", Subject::MPT2, Subject::MPT1),
    ("4path_over_1path", Subject::MPT4, Subject::MPT1),
    ("12path_over_1path", Subject::MPT12, Subject::MPT1),
];

const MODES: [(&str, Subject, Subject); 3] = [
    ("offloads_on_over_off", Subject::MPT1, Subject::MPT1_PLAIN),
    ("elision_on_over_off", Subject::MPT1_PARTIAL, Subject::MPT1),
    ("two_threads_over_one", Subject::MPT1_TWO_THREADS, Subject::MPT1),
];

/// These differ by so little that they are measured in many short rounds, in each of which each host has its own processors.
const ROUNDS: [(&str, Subject, Subject); 10] = [
    ("extended_over_plain", Subject::MPT1_EXTENDED, Subject::MPT1),
    ("extended_over_plain_2path", Subject::MPT2_EXTENDED, Subject::MPT2),
    ("adaptive_over_extended", Subject::MPT1_ADAPTIVE, Subject::MPT1_EXTENDED),
    ("adaptive_over_extended_2path", Subject::MPT2_ADAPTIVE, Subject::MPT2_EXTENDED),
    ("sealed_over_extended", Subject::MPT1_SEALED, Subject::MPT1_EXTENDED),
    ("sealed_over_extended_2path", Subject::MPT2_SEALED, Subject::MPT2_EXTENDED),
    ("sealed_over_wireguard_go", Subject::MPT1_SEALED, Subject::WireguardGo),
    ("sealed_over_wireguard_go_2path", Subject::MPT2_SEALED, Subject::WireguardGo),
    ("sealed_over_wireguard", Subject::MPT1_SEALED, Subject::Wireguard),
    ("sealed_over_wireguard_2path", Subject::MPT2_SEALED, Subject::Wireguard),
];

/// Of these, processor time per gigabit: below 1 the first part is better.
const PROCESSOR: [(&str, Subject, Subject); 3] = [
    ("adaptive_over_classic", Subject::MPT1_ADAPTIVE, Subject::MPT1),
    ("sealed_over_extended", Subject::MPT1_SEALED, Subject::MPT1_EXTENDED),
    ("sealed_over_wireguard_go", Subject::MPT1_SEALED, Subject::WireguardGo),
];

const SHAPED: [(&str, Subject); 3] =
    [("raw", Subject::Raw), ("1path", Subject::MPT1), ("2path", Subject::MPT2)];

const UDP: [(&str, Subject, Subject); 2] = [
    ("1path_over_raw", Subject::MPT1, Subject::Raw),
    ("2path_over_1path", Subject::MPT2, Subject::MPT1),
];

/// Whether a subject takes part in rounds: one of the ratios is about them.
pub(super) fn has_rounds(subject: Subject) -> bool {
    let mut pairs = ROUNDS.iter().chain(&PROCESSOR);
    pairs.any(|&(_, first, second)| [first, second].contains(&subject))
}

/// Milliseconds that a tunnel adds to a round trip, and what a round trip takes under load.
pub(super) fn pings(samples: &Samples) -> Vec<Named> {
    let mut found = Vec::new();
    for wire in Wire::ALL {
        for (name, subject) in
            [("vxlan", Subject::Vxlan), ("1path", Subject::MPT1), ("2path", Subject::MPT2)]
        {
            if !wire.measures(subject) {
                continue;
            }
            for (suffix, quantity) in [
                ("idle_p50_ms", Quantity::PingIdleP50),
                ("idle_p99_ms", Quantity::PingIdleP99),
                ("loaded_p50_ms", Quantity::PingLoadedP50),
                ("loaded_p99_ms", Quantity::PingLoadedP99),
            ] {
                let tunnel = Key { wire, subject, quantity };
                let raw = Key { subject: Subject::Raw, ..tunnel };
                let added = samples.paired(tunnel, raw, |tunnel, raw| tunnel - raw);
                found.push((format!("{}_{name}_added_{suffix}", wire.id()), added));
            }
        }
    }
    found
}

/// Seconds of processor time per gigabit of one TCP flow.
pub(super) fn times(samples: &Samples, options: &Options) -> Vec<Named> {
    let [one, _] = options.flows;
    let mut found = Vec::new();
    for (wire, subject) in options.combinations() {
        let name = subject.id().replace('-', "_");
        let mut add = |who: &str, quantity| {
            let figure = samples.figure(Key { wire, subject, quantity });
            found.push((format!("{}_{name}_{who}", wire.id()), figure));
        };
        if subject.has_programs() {
            add("daemons", Quantity::DaemonTime(one));
        }
        add("machine", Quantity::MachineTime(one));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(named: &'a [Named], name: &str) -> Option<&'a Figure> {
        let (_, figure) = named.iter().find(|(candidate, _)| candidate == name).expect(name);
        figure.as_ref()
    }

    #[test]
    fn every_ratio_that_is_gated_has_its_name_and_its_parts() {
        let parts = [
            ("wire_1path_over_raw", Wire::WireLike, Subject::MPT1, Subject::Raw),
            ("wire_1path_over_vxlan", Wire::WireLike, Subject::MPT1, Subject::Vxlan),
            ("wire_1path_over_mptcp", Wire::WireLike, Subject::MPT1, Subject::Mptcp),
            ("pass_1path_over_raw", Wire::PassThrough, Subject::MPT1, Subject::Raw),
            ("pass_1path_over_mptcp", Wire::PassThrough, Subject::MPT1, Subject::Mptcp),
            ("pass_2path_over_1path", Wire::PassThrough, Subject::MPT2, Subject::MPT1),
            ("wire_2path_over_1path", Wire::WireLike, Subject::MPT2, Subject::MPT1),
            ("pass_extended_over_plain", Wire::PassThrough, Subject::MPT1_EXTENDED, Subject::MPT1),
            ("wire_extended_over_plain", Wire::WireLike, Subject::MPT1_EXTENDED, Subject::MPT1),
            (
                "wire_extended_over_plain_2path",
                Wire::WireLike,
                Subject::MPT2_EXTENDED,
                Subject::MPT2,
            ),
            (
                "pass_sealed_over_extended",
                Wire::PassThrough,
                Subject::MPT1_SEALED,
                Subject::MPT1_EXTENDED,
            ),
            (
                "wire_sealed_over_extended",
                Wire::WireLike,
                Subject::MPT1_SEALED,
                Subject::MPT1_EXTENDED,
            ),
            (
                "pass_sealed_over_wireguard_go",
                Wire::PassThrough,
                Subject::MPT1_SEALED,
                Subject::WireguardGo,
            ),
            (
                "wire_sealed_over_wireguard_go",
                Wire::WireLike,
                Subject::MPT1_SEALED,
                Subject::WireguardGo,
            ),
            (
                "wire_sealed_over_wireguard",
                Wire::WireLike,
                Subject::MPT1_SEALED,
                Subject::Wireguard,
            ),
            ("pass_12path_over_1path", Wire::PassThrough, Subject::MPT12, Subject::MPT1),
            ("offloads_on_over_off", Wire::PassThrough, Subject::MPT1, Subject::MPT1_PLAIN),
        ];
        for (name, wire, numerator, denominator) in parts {
            let bound = has_rounds(numerator)
                && has_rounds(denominator)
                && !name.contains("path_over_1path");
            let quantity = if bound { Quantity::BoundGoodput } else { Quantity::Goodput(1) };
            let key = |subject| Key { wire, subject, quantity };
            let mut samples = Samples::default();
            samples.push(0, key(numerator), 6.0);
            assert_eq!(value(&ratios(&samples, &Options::quick()), name), None, "{name}");
            samples.push(0, key(denominator), 8.0);
            let ratios = ratios(&samples, &Options::quick());
            assert_eq!(value(&ratios, name).map(Figure::middle), Some(0.75), "{name}");
        }
    }

    #[test]
    fn processor_time_is_that_of_both_daemons_for_a_gigabit() {
        let key = |subject| {
            let quantity = Quantity::BoundDaemonTime;
            Key { wire: Wire::WireLike, subject, quantity }
        };
        let mut samples = Samples::default();
        samples.push(0, key(Subject::MPT1_ADAPTIVE), 0.5);
        samples.push(0, key(Subject::MPT1), 0.25);
        let ratios = ratios(&samples, &Options::quick());
        let found = value(&ratios, "wire_adaptive_over_classic_processor_time");
        assert_eq!(found.map(Figure::middle), Some(2.0));
    }

    #[test]
    fn what_a_ratio_of_rounds_is_about_has_rounds() {
        for subject in
            [Subject::MPT2_ADAPTIVE, Subject::WireguardGo, Subject::Wireguard, Subject::MPT1]
        {
            assert!(has_rounds(subject), "{subject:?}");
        }
        for subject in [Subject::Raw, Subject::Vxlan, Subject::MPT12, Subject::MPT1_TWO_THREADS] {
            assert!(!has_rounds(subject), "{subject:?}");
        }
    }

    #[test]
    fn goodput_is_reported_as_a_share_of_the_ideal() {
        let parts = [
            ("shaped_raw_over_ideal", Subject::Raw),
            ("shaped_1path_over_ideal", Subject::MPT1),
            ("shaped_2path_over_ideal", Subject::MPT2),
        ];
        for (name, subject) in parts {
            let mut samples = Samples::default();
            assert_eq!(value(&ratios(&samples, &Options::quick()), name), None, "{name}");
            let key = Key { wire: Wire::Shaped, subject, quantity: Quantity::OfIdeal(1) };
            samples.push(0, key, 0.97);
            let ratios = ratios(&samples, &Options::quick());
            assert_eq!(value(&ratios, name).map(Figure::middle), Some(0.97), "{name}");
        }
    }

    #[test]
    fn no_two_figures_share_a_name() {
        let (samples, options) = (Samples::default(), Options::thorough());
        let all = [ratios(&samples, &options), pings(&samples), times(&samples, &options)];
        for named in all {
            let names: std::collections::BTreeSet<_> = named.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), named.len());
        }
    }

    #[test]
    fn added_time_is_a_difference() {
        let key =
            |subject| Key { wire: Wire::PassThrough, subject, quantity: Quantity::PingIdleP50 };
        let mut samples = Samples::default();
        samples.push(0, key(Subject::Raw), 0.25);
        samples.push(0, key(Subject::MPT1), 1.0);
        let pings = pings(&samples);
        let added = value(&pings, "pass_1path_added_idle_p50_ms");
        assert_eq!(added.map(Figure::middle), Some(0.75));
    }
}
