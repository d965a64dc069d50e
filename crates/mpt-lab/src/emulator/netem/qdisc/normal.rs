//! The table from which netem draws normally distributed delays.
//!
//! netem adds to the delay a randomly chosen entry times the jitter, an entry of 8192 being one
//! standard deviation (`NETEM_DIST_SCALE` in `linux/pkt_sched.h`). With the quantiles of the normal
//! distribution as entries, evenly spaced in probability, every draw is a normal one.

/// Entries, each equally likely. The outermost are 3.6 standard deviations away.
const ENTRIES: u32 = 4096;
/// One standard deviation.
const SCALE: f64 = 8192.0;

/// The table: 16-bit numbers in the machine's order of bytes.
pub(super) fn table() -> Vec<u8> {
    let mut x = -4.0;
    let mut table = Vec::with_capacity(2 * ENTRIES as usize);
    for entry in 0..ENTRIES {
        x = quantile((f64::from(entry) + 0.5) / f64::from(ENTRIES), x);
        // Casts saturate; 3.6 standard deviations fit.
        table.extend(((x * SCALE).round() as i16).to_ne_bytes());
    }
    table
}

/// Where the distribution function reaches `p`, by Newton's method from somewhere to the left.
fn quantile(p: f64, from: f64) -> f64 {
    let mut x = from;
    loop {
        // Left of the middle the function is convex and Newton would overshoot: half a step at most.
        let step = ((p - distribution(x)) / density(x)).clamp(-0.5, 0.5);
        x += step;
        if step.abs() < 1e-9 {
            return x;
        }
    }
}

fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The normal distribution function: 1/2 + density(x) (x + x^3/3 + x^5/15 + ...), which converges
/// everywhere (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.11).
fn distribution(x: f64) -> f64 {
    let (mut sum, mut term, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + density(x) * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_matches_published_tables() {
        for (x, p) in
            [(0.0, 0.5), (1.0, 0.841_344_746), (-1.96, 0.024_997_895), (3.0, 0.998_650_102)]
        {
            assert!((distribution(x) - p).abs() < 1e-9, "{x}");
            assert!((quantile(p, -4.0) - x).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn the_table_has_mean_zero_and_standard_deviation_one() {
        let entries: Vec<f64> = table()
            .chunks_exact(2)
            .map(|pair| f64::from(i16::from_ne_bytes(pair.try_into().unwrap())) / SCALE)
            .collect();
        assert_eq!(entries.len(), 4096);
        assert!(entries.is_sorted() && entries[0] < -3.6 && entries[4095] > 3.6);
        let mean = entries.iter().sum::<f64>() / 4096.0;
        let variance = entries.iter().map(|x| x * x).sum::<f64>() / 4096.0;
        assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 2e-3, "{mean} {variance}");
        // 68 and 95 of 100 lie within one and two.
        for (within, share) in [(1.0, 0.6827), (2.0, 0.9545)] {
            let count = entries.iter().filter(|x| x.abs() < within).count();
            assert!((count as f64 / 4096.0 - share).abs() < 1e-3, "{count} within {within}");
        }
    }
}
