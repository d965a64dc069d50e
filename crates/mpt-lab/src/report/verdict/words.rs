//! Targets and what became of them, in words.

use super::value::PUBLISHED;
use super::{Answer, Judgement, Verdict};
use crate::plot::figure;
use crate::results::{Bound, Of, OfRuns, Quantity, Target};

/// A target in words: its own, or made from what it demands.
pub(super) fn text(answer: &Answer, target: &Target) -> String {
    if !target.text.is_empty() {
        return target.text.clone();
    }
    let title = |system: &str| {
        let known = answer.entry.systems.iter().find(|entry| entry.name == system);
        match known {
            Some(entry) if !entry.title.is_empty() => entry.title.clone(),
            _ => system.to_owned(),
        }
    };
    let quantity = Quantity::of(&target.figure);
    let mut words = format!("{}: {}", title(&target.system), quantity.title);
    let of = match target.of.as_str() {
        "" => String::new(),
        PUBLISHED => " ÷ published".into(),
        other => match other.rsplit_once('/') {
            Some((PUBLISHED, system)) => format!(" ÷ published of {}", title(system)),
            Some((system, name)) => {
                format!(" ÷ {} of {}", Quantity::of(name).title, title(system))
            }
            None => format!(" ÷ {}", Quantity::of(other).title),
        },
    };
    words.push_str(&of);
    let unit = if of.is_empty() { quantity.unit } else { "" };
    let value = target.value;
    words.push_str(&match target.bound {
        Bound::AtLeast => format!(" at least {value} {unit}"),
        Bound::AtMost => format!(" at most {value} {unit}"),
        Bound::Within => format!(" within {} of 1", percent(value)),
    });
    let mut words = words.trim_end().to_owned();
    if target.round_trips > 0.0 {
        words.push_str(&format!(" and {} round trips", target.round_trips));
    }
    if target.of_runs == OfRuns::Worst {
        words.push_str(" in every repetition");
    }
    if !target.only.is_empty() {
        let places =
            target.only.iter().map(|(axis, labels)| format!("{axis} {}", labels.join(", ")));
        words.push_str(&format!(", for {}", places.collect::<Vec<_>>().join(" and ")));
    }
    words.push_str(&match (target.cells, target.share) {
        (Of::Median, _) => ", at the median of the cells".to_owned(),
        (Of::AtLeast(count), _) => format!(", in at least {count} cells"),
        (Of::Each, share) if share < 1.0 => {
            format!(", in at least {} of the cells", percent(share))
        }
        (Of::Each, _) => String::new(),
    });
    words
}

/// A share in per cent, without needless digits.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).round() / 10.0)
}

impl Judgement {
    /// What became of it, with the numbers: `missed in 2 of 10 cells, most by 0.04 (delay 50: 0.93)`, or `in 10 of 10
    /// cells, closest 0.98 (delay 50)`.
    pub fn outcome(&self) -> String {
        let Self { reached, cells, .. } = self;
        let unknown = self.unknown();
        let doubtful = match self.doubtful {
            0 => String::new(),
            count => format!(", {count} of them doubtful"),
        };
        let closest = match &self.closest {
            Some((place, got)) if place.is_empty() => format!(", {}", figure(*got)),
            Some((place, got)) => format!(", closest {} ({place})", figure(*got)),
            None => String::new(),
        };
        match (self.verdict, self.median, self.misses.first()) {
            (Verdict::NotClaimed, ..) => "a quick run does not measure it".into(),
            (Verdict::NotMeasured, ..) if *cells == 0 => "none of its cells was measured".into(),
            (_, Some(median), _) => {
                let measured = cells - self.unknown.len();
                format!("median {} of {measured} cells{unknown}", figure(median))
            }
            (Verdict::Met, ..) => {
                format!("in {reached} of {cells} cells{doubtful}{closest}{unknown}")
            }
            (Verdict::NotMeasured | Verdict::Missed, _, None) => {
                format!("in {reached} of {cells} cells{closest}{unknown}")
            }
            (Verdict::NotMeasured | Verdict::Missed, _, Some(worst)) => format!(
                "missed in {} of {cells} cells, most by {} ({}{}{}{}){unknown}",
                self.misses.len(),
                figure(worst.by),
                before(&worst.place),
                figure(worst.got),
                if worst.doubtful { ", doubtful" } else { "" },
                if worst.host_limited { ", host-limited" } else { "" },
            ),
        }
    }

    /// What could not be judged, if anything.
    fn unknown(&self) -> String {
        match (self.unknown.len(), self.unknown.first()) {
            (0, _) | (_, None) => String::new(),
            (count, Some(first)) => {
                let more = if count > 1 { ", ..." } else { "" };
                format!("; {count} not measured ({}{}{more})", before(&first.place), first.why)
            }
        }
    }
}

/// A place in front of what is said of it.
fn before(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}: ") }
}
