//! What was found out of a path, in words.

use mpt_control::{Finding, Found};

use super::quantity::{duration, ms, percent, rate};

/// What was found and when, as a sentence; `None` for what this version does not know.
pub(super) fn found(found: &Found) -> Option<String> {
    Some(format!("{} ago {}.", duration(found.ago_seconds), finding(&found.what)?))
}

/// What was found, as a clause.
fn finding(what: &Finding) -> Option<String> {
    Some(match *what {
        Finding::Full { rate: bits, queueing_ms } => format!(
            "it was full for the first time: {} arrived, and {} ms stood in its queue",
            rate(bits as f64),
            ms(queueing_ms)
        ),
        Finding::Rate { from: 0, to } => {
            format!("its rate was measured: {}", rate(to as f64))
        }
        Finding::Rate { from, to } => format!(
            "its rate was found to be {}, {} than the {} before",
            rate(to as f64),
            if to < from { "less" } else { "more" },
            rate(from as f64)
        ),
        Finding::Cut { from, to, loss } => format!(
            "its rate was cut from {} to {}, because {} % were lost",
            rate(from as f64),
            rate(to as f64),
            percent(loss)
        ),
        Finding::Drained { before_ms, after_ms } => format!(
            "less was sent for a moment to see its delay without a queue: {} ms stood in the queue before, {} ms after",
            ms(before_ms),
            ms(after_ms)
        ),
        Finding::Longer { by_ms } => format!(
            "its delay stayed {} ms higher although less was sent, so its route is taken to be that much longer",
            ms(by_ms)
        ),
        Finding::Rival { queueing_ms } => format!(
            "others kept a queue on its way: it did not become shorter when less was sent, and something was lost, so the path \
             competes for its share of it; {} ms stood in it",
            ms(queueing_ms)
        ),
        Finding::Alone { queueing_ms } => format!(
            "nobody else kept its queue long any more, so its pace holds that short again; {} ms stood in it",
            ms(queueing_ms)
        ),
        Finding::Stopped { loss } => format!(
            "it was stopped, because {} % were lost although next to nothing was sent on it",
            percent(loss)
        ),
        Finding::Resumed => {
            "it began to be used again after it had been stopped, as its probes arrived".to_owned()
        }
        Finding::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_sentence() {
        let expected = [
            (
                Finding::Full { rate: 48_000_000, queueing_ms: 7.0 },
                "it was full for the first time: 48.0 Mbit/s arrived, and 7.0 ms stood in its queue",
            ),
            (
                Finding::Rate { from: 50_000_000, to: 20_000_000 },
                "its rate was found to be 20.0 Mbit/s, less than the 50.0 Mbit/s before",
            ),
            (Finding::Rate { from: 0, to: 1_000_000 }, "its rate was measured: 1.00 Mbit/s"),
            (
                Finding::Cut { from: 50_000_000, to: 20_000_000, loss: 0.071 },
                "its rate was cut from 50.0 Mbit/s to 20.0 Mbit/s, because 7.10 % were lost",
            ),
            (
                Finding::Drained { before_ms: 3.0, after_ms: 0.2 },
                "less was sent for a moment to see its delay without a queue: 3.0 ms stood in the queue before, \
                 0.2 ms after",
            ),
            (
                Finding::Longer { by_ms: 30.0 },
                "its delay stayed 30 ms higher although less was sent, so its route is taken to be that much longer",
            ),
            (
                Finding::Rival { queueing_ms: 120.0 },
                "others kept a queue on its way: it did not become shorter when less was sent, and something was lost, so the path \
                 competes for its share of it; 120 ms stood in it",
            ),
            (
                Finding::Alone { queueing_ms: 2.0 },
                "nobody else kept its queue long any more, so its pace holds that short again; 2.0 ms stood in it",
            ),
            (
                Finding::Stopped { loss: 0.3 },
                "it was stopped, because 30.0 % were lost although next to nothing was sent on it",
            ),
            (
                Finding::Resumed,
                "it began to be used again after it had been stopped, as its probes arrived",
            ),
        ];
        for (what, clause) in expected {
            let text = found(&Found { ago_seconds: 2.5, what });
            assert_eq!(text, Some(format!("2.5 s ago {clause}.")));
        }
        assert_eq!(found(&Found { ago_seconds: 1.0, what: Finding::Other }), None);
    }
}
