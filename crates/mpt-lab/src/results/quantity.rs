//! What the name of a figure says: what it is, its unit, and whether more of it is better.

/// A figure's meaning, from its name in [`SystemRecord::figures`](super::SystemRecord::figures).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// For people, such as `longest gap`.
    pub title: String,
    /// Its unit, such as `ms`; empty if it has none.
    pub unit: &'static str,
    /// Whether more of it is better.
    pub better: Better,
}

/// Which way a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It describes and does not praise.
    Neither,
}

/// Suffixes of names for the unit; the longest match is used.
const UNITS: [(&str, &str); 6] = [
    ("_seconds_per_gigabit", "s/Gbit"),
    ("_mbps", "Mbit/s"),
    ("_seconds", "s"),
    ("_percent", "%"),
    ("_ms", "ms"),
    ("_share", "share"),
];

/// Words that are not written as they stand in names.
const WORDS: [(&str, &str); 24] = [
    ("extra", "extra bytes,"),
    ("beside", "stream beside:"),
    ("jain", "Jain's index"),
    ("settling", "settling time"),
    ("long", "long-run"),
    ("to", "time to"),
    ("behind", "time behind the"),
    ("1mb", "1 MB"),
    ("4mb", "4 MB"),
    ("16mb", "16 MB"),
    ("cpu", "CPU time"),
    ("mos", "MOS"),
    ("rtt", "RTT"),
    ("p50", "median"),
    ("p95", "95th percentile"),
    ("p99", "99th percentile"),
    ("avg", "mean"),
    ("max", "largest"),
    ("min", "smallest"),
    ("stddev", "standard deviation"),
    ("late", "out of order"),
    ("startup", "start-up"),
    ("leave", "time to leave a path"),
    ("return", "time to use it again"),
];

/// Figures of which more is better.
const HIGHER: [&str; 17] = [
    "event_second_mos",
    "worst_second_mos",
    "jain",
    "least_fair_share",
    "settled_efficiency",
    "goodput_mbps",
    "download_mbps",
    "efficiency",
    "yield",
    "over_best_alone",
    "gain",
    "long_goodput_mbps",
    "long_efficiency",
    "long_over_best_alone",
    "long_gain",
    "mos",
    "voice_mos",
];

/// Figures that describe what was asked for, not what was reached.
const NEITHER: [&str; 4] = ["ideal_mbps", "bound_mbps", "predicted_mbps", "own_fair_share"];

impl Quantity {
    /// What a name means. A name that is not known is taken at its word.
    pub fn of(name: &str) -> Self {
        let found = UNITS.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
        let (stem, unit) = found.unwrap_or((name, ""));
        let word = |word: &str| {
            let known = WORDS.iter().find(|(written, _)| *written == word);
            known.map_or(word, |(_, shown)| shown).to_owned()
        };
        let better = if HIGHER.contains(&name) {
            Better::Higher
        } else if NEITHER.contains(&name) || unit == "Mbit/s" {
            Better::Neither
        } else {
            Better::Lower
        };
        let words: Vec<_> = stem.split('_').map(word).collect();
        Self { title: words.join(" "), unit, better }
    }

    /// Title and unit, such as `Longest gap, ms`.
    pub fn heading(&self) -> String {
        let mut letters = self.title.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        let title = first + letters.as_str();
        if self.unit.is_empty() { title } else { format!("{title}, {}", self.unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_their_meaning() {
        for (name, heading, better) in [
            ("goodput_mbps", "Goodput, Mbit/s", Better::Higher),
            ("ideal_mbps", "Ideal, Mbit/s", Better::Neither),
            ("efficiency", "Efficiency", Better::Higher),
            ("longest_gap_ms", "Longest gap, ms", Better::Lower),
            ("sender_rtt_ms", "Sender RTT, ms", Better::Lower),
            ("cpu_left_seconds_per_gigabit", "CPU time left, s/Gbit", Better::Lower),
            ("voice_delay_p99_ms", "Voice delay 99th percentile, ms", Better::Lower),
            ("voice_mos", "Voice MOS", Better::Higher),
            ("gain", "Gain", Better::Higher),
            ("to_4mb_seconds", "Time to 4 MB, s", Better::Lower),
            ("behind_best_16mb_ms", "Time behind the best 16 MB, ms", Better::Lower),
            ("lost_share", "Lost, share", Better::Lower),
            ("download_seconds", "Download, s", Better::Lower),
            ("retransmits", "Retransmits", Better::Lower),
            ("leave_seconds", "Time to leave a path, s", Better::Lower),
        ] {
            let quantity = Quantity::of(name);
            assert_eq!((quantity.heading().as_str(), quantity.better), (heading, better), "{name}");
        }
        assert_eq!(Quantity::of("").heading(), "");
    }
}
