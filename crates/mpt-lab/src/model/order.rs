//! Skew, and what it asks of the reorder buffer.
//!
//! A packet on the fastest path is held until the packets sent before it have arrived on the
//! slowest one: the required *hold time* is the largest difference of the paths' delays. In the
//! meantime packets arrive at the tunnel's whole rate, and the *window* must span that many
//! numbers.

use super::path::{self, Path};

/// The number of standard deviations that cover all but one in ten thousand differences of two
/// delays.
const DEVIATIONS: f64 = 3.719;

/// Segments that the kernel sends at once: 64 kB. This many packets may be early.
const BURST: f64 = 44.0;

/// What a reorder buffer needs.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub(super) window: u32,
    pub(super) hold: f64,
    pub(super) terms: Vec<String>,
}

/// What is needed at `packets` per second, with full queues before the links that are bottlenecks or
/// without any.
pub(super) fn need(paths: &[Path], packets: f64, saturated: bool) -> Need {
    // Bottlenecks fill together, each by the same time, until the first one overflows and TCP gives way.
    let full = path::queue_seconds(paths);
    let latest = |path: &Path| path.delay + if queues(path, saturated) { full } else { 0.0 };
    let earliest = latest;
    let slowest = paths.iter().max_by(|a, b| latest(a).total_cmp(&latest(b)));
    let fastest = paths.iter().min_by(|a, b| earliest(a).total_cmp(&earliest(b)));
    let (Some(slowest), Some(fastest)) = (slowest, fastest) else {
        return Need { window: 0, hold: 0.0, terms: Vec::new() };
    };
    let skew = latest(slowest) - earliest(fastest);
    let mut terms = Vec::new();
    if paths.len() > 1 {
        terms.push(format!(
            "path `{}` is {:.2} ms later than `{}`: {:.2} ms by propagation, {:.2} ms by its queue",
            slowest.name,
            skew * 1e3,
            fastest.name,
            (slowest.delay - fastest.delay) * 1e3,
            (skew - slowest.delay + fastest.delay) * 1e3,
        ));
    }
    let jitter = jitter(paths);
    if jitter > 0.0 {
        terms.push(format!("jitter adds {:.2} ms for all but one packet in 10,000", jitter * 1e3));
    }
    let hold = skew + jitter;
    let reordered = paths.len() > 1 || jitter > 0.0;
    let burst = if reordered { BURST } else { 0.0 };
    let window = if reordered { (packets * hold).ceil() + burst + 1.0 } else { 1.0 };
    terms.push(format!(
        "hold time {:.2} ms; window {packets:.0} packets/s × hold time + a burst of {burst} + 1 = {window:.0}",
        hold * 1e3
    ));
    // Beyond what 32 bits hold no window helps.
    Need { window: window.min(f64::from(u32::MAX)) as u32, hold, terms }
}

fn queues(path: &Path, saturated: bool) -> bool {
    saturated && path.bottleneck
}

/// What normally distributed delays add: the largest difference of two packets' delays, of one link or
/// of two.
fn jitter(paths: &[Path]) -> f64 {
    let own = paths.iter().filter(|path| path.reorders()).map(|path| path.jitter);
    let mut deviations: Vec<f64> = own.collect();
    deviations.sort_by(f64::total_cmp);
    let mut largest = deviations.iter().rev();
    let Some(&first) = largest.next() else { return 0.0 };
    let second = if paths.len() > 1 { largest.next().copied().unwrap_or(0.0) } else { first };
    DEVIATIONS * first.hypot(second)
}
