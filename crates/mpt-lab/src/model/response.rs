//! What TCP makes of a link: the response functions of Reno and CUBIC, and what CUBIC needs to fill one.

/// RFC 9438 section 4.6, and as Linux rounds it.
const BETA: f64 = 717.0 / 1024.0;
/// RFC 9438 section 5.1.
const C: f64 = 0.4;

/// The average window of Reno in segments under random loss `p` (Mathis et al. 1997 with every segment
/// counted, as Linux does, whether or not its acknowledgement is delayed): sqrt(3 / 2p).
pub(super) fn reno_window(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

/// The average window of CUBIC in segments under random loss `p` at a round-trip time in seconds
/// (RFC 9438 sections 5.1 and 4.3): the larger of the cubic and the Reno-friendly one, which is Reno's.
pub(super) fn cubic_window(p: f64, round_trip: f64) -> f64 {
    let factor = C * (3.0 + BETA) / (4.0 * (1.0 - BETA));
    (factor * (round_trip / p).powi(3)).powf(0.25).max(reno_window(p))
}

/// How long a queue must take to drain, in seconds, so that a link stays busy when CUBIC's window falls
/// from C·(round trip + queue) by the factor β: round trip · (1 - β) / β.
pub(super) fn least_queue(round_trip: f64) -> f64 {
    round_trip * (1.0 - BETA) / BETA
}

/// How long a flow takes to find the rate of a link, in seconds: slow start doubles the window from ten
/// segments in every round trip until HyStart ends it at about half of what the round trip holds; then
/// the window grows by 5 % per round trip, which is what Linux's CUBIC does before the first loss.
pub(super) fn startup(packets_per_second: f64, round_trip: f64) -> f64 {
    let window = packets_per_second * round_trip;
    let doublings = (window / 2.0 / 10.0).log2().max(0.0);
    let creeping = if window > 32.0 { 2.0_f64.ln() / 1.05_f64.ln() } else { 0.0 };
    (doublings + creeping + 1.0) * round_trip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_rfc() {
        // RFC 9438 tables 1 and 2: at 0.1 s: 1e-2 -> 12, 1e-3 -> 38, 1e-4 -> 187, 1e-5 -> 1054; at 0.01 s
        // Reno's until 1e-5: 389.
        for (round_trip, p, window) in [
            (0.1, 1e-2, 12.0),
            (0.1, 1e-3, 38.0),
            (0.1, 1e-4, 187.0),
            (0.1, 1e-5, 1054.0),
            (0.01, 1e-5, 389.0),
        ] {
            let ratio = cubic_window(p, round_trip) / window;
            assert!((0.97..1.03).contains(&ratio), "{round_trip} {p}: {ratio}");
        }
    }

    #[test]
    fn a_queue_of_three_sevenths_of_the_round_trip_is_enough() {
        assert!((least_queue(0.070) - 0.030).abs() < 0.0002);
    }
}
