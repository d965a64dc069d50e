//! What a telephone call is worth to those who talk: the E-model of ITU-T G.107.
//!
//! The model (G.107, June 2015) takes a perfect connection and subtracts what disturbs it. The rating
//! R = Ro − Is − Id − Ie,eff starts from the ratio of speech to noise, less what comes with the speech
//! itself (loudness, sidetone, quantisation), less delay and the echoes that it makes audible, less
//! what the codec and lost packets take. R maps to the mean opinion score, from 1 to 4.5.
//!
//! Everything about rooms, telephones and lines has the recommendation's default (its Table 3). What
//! varies is [`Call`]: the delay from mouth to ear, the share of speech that is missing, and whether it
//! is missing in bursts. The codec is G.711 with packet loss concealment, as of G.113 Appendix I.
//! Formulae bear their numbers in G.107; quantities are named as they are there.

use std::time::Duration;

use serde::Serialize;

/// The defaults of G.107 Table 3: levels and losses in dB or dBm, at the 0 dBr point.
mod default {
    /// Send loudness rating.
    pub(super) const SLR: f64 = 8.0;
    /// Receive loudness rating.
    pub(super) const RLR: f64 = 2.0;
    /// Overall loudness rating, the sum of both.
    pub(super) const OLR: f64 = SLR + RLR;
    /// Sidetone masking rating.
    pub(super) const STMR: f64 = 15.0;
    /// Listener sidetone rating.
    pub(super) const LSTR: f64 = 18.0;
    /// D-value of the telephone at the send side.
    pub(super) const DS: f64 = 3.0;
    /// Talker echo loudness rating.
    pub(super) const TELR: f64 = 65.0;
    /// Weighted echo path loss.
    pub(super) const WEPL: f64 = 110.0;
    /// Quantisation distortion units.
    pub(super) const QDU: f64 = 1.0;
    /// Circuit noise, in dBm0p.
    pub(super) const NC: f64 = -70.0;
    /// Noise floor at the receive side, in dBmp.
    pub(super) const NFOR: f64 = -64.0;
    /// Room noise at the send side, in dB(A).
    pub(super) const PS: f64 = 35.0;
    /// Room noise at the receive side, in dB(A).
    pub(super) const PR: f64 = 35.0;
    /// Mean delay that goes unnoticed, in milliseconds (delay sensitivity "default" of Table 1).
    pub(super) const MT: f64 = 100.0;
    /// Sensitivity to delay (the same class).
    pub(super) const ST: f64 = 1.0;
}

/// Equipment impairment factor of G.711: none (G.113 Appendix I, Table I.1).
const IE: f64 = 0.0;

/// Packet-loss robustness factor of G.711 with packet loss concealment (G.113 Appendix I, Table I.2;
/// it is 4.3 without).
const BPL: f64 = 25.1;

/// What the network did to a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Absolute delay from mouth to ear, one way; the way back is taken to be as long.
    pub delay: Duration,
    /// Share of packets whose speech was not heard, 0 to 1.
    pub unheard: f64,
    /// BurstR, see [`burst_ratio`]: 1 if packets went missing independently of each other.
    pub burst_ratio: f64,
}

impl Call {
    /// The transmission rating factor R: 93.2 for an undisturbed call, less for every other, and
    /// below 0 for an unusable connection. Users are satisfied above 80; below 50 it is not
    /// recommended (G.109).
    pub fn rating(&self) -> f64 {
        let t = self.delay.as_secs_f64() * 1e3;
        // T and Ta are the delay, Tr is the delay of the whole loop.
        let delay = talker_echo(t) + listener_echo(2.0 * t) + absolute_delay(t);
        signal_to_noise() - simultaneous(t) - delay - self.equipment()
    }

    /// The mean opinion score of a conversation, 1 (bad) to 4.5.
    pub fn mos(&self) -> f64 {
        mos(self.rating())
    }

    /// Ie,eff, formula 7-29.
    fn equipment(&self) -> f64 {
        let ppl = 100.0 * self.unheard.clamp(0.0, 1.0);
        if ppl == 0.0 {
            return IE;
        }
        // No ratio means no packet was heard, and then none went missing independently of another.
        let burst = if self.burst_ratio > 0.0 { self.burst_ratio } else { 1.0 };
        IE + (95.0 - IE) * ppl / (ppl / burst + BPL)
    }
}

/// The mean opinion score of a rating (Annex B, formula B-4).
///
/// The cubic dips below 1 for ratings between 0 and 6.5, where the scale has nothing to say; there
/// it is 1.
pub fn mos(rating: f64) -> f64 {
    if rating <= 0.0 {
        1.0
    } else if rating >= 100.0 {
        4.5
    } else {
        let cubic = rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
        (1.0 + 0.035 * rating + cubic).max(1.0)
    }
}

/// BurstR (at formula 7-29): how long packets go missing in a row, over how long they would if each
/// went missing independently of the others with the same probability. 1 if none is missing, or all
/// are.
///
/// `heard` says of each packet, in the order of sending, whether its speech was heard.
pub fn burst_ratio(heard: &[bool]) -> f64 {
    let missing = heard.iter().filter(|heard| !**heard).count();
    if missing == 0 || missing == heard.len() {
        return 1.0;
    }
    let bursts = heard.chunk_by(|a, b| a == b).filter(|run| !run[0]).count();
    let length = missing as f64 / bursts as f64;
    // Independent losses with probability p come in bursts of 1 / (1 - p) on average.
    length * (1.0 - missing as f64 / heard.len() as f64)
}

/// No, the power of all noises together (7-3 to 7-7), in dBm0p.
fn noise() -> f64 {
    use default::{DS, LSTR, NC, NFOR, OLR, PR, PS, RLR, SLR};
    let send_side = PS - SLR - DS - 100.0 + 0.004 * (PS - OLR - DS - 14.0).powi(2);
    let room = PR + 10.0 * (1.0 + power((10.0 - LSTR) / 10.0)).log10();
    let receive_side = RLR - 121.0 + room + 0.008 * (room - 35.0).powi(2);
    let floor = NFOR + RLR;
    let sum: f64 =
        [NC, send_side, receive_side, floor].map(|level| power(level / 10.0)).iter().sum();
    10.0 * sum.log10()
}

/// Ro, the basic signal-to-noise ratio (7-2).
fn signal_to_noise() -> f64 {
    15.0 - 1.5 * (default::SLR + noise())
}

/// Is, what comes with the speech itself (7-8 to 7-17), for an echo path of `t` milliseconds.
fn simultaneous(t: f64) -> f64 {
    use default::{OLR, QDU, RLR, STMR, TELR};
    let loudness = OLR + 0.2 * (64.0 + noise() - RLR);
    let too_loud = 20.0 * (root(8.0, loudness / 8.0) - loudness / 8.0);

    let sidetone = -10.0 * (power(-STMR / 10.0) + (-t / 4.0).exp() * power(-TELR / 10.0)).log10();
    let sidetone = 12.0 * root(8.0, (sidetone - 13.0) / 6.0)
        - 28.0 * root(35.0, (sidetone + 1.0) / 19.4)
        - 13.0 * root(13.0, (sidetone - 3.0) / 33.0)
        + 29.0;

    let q = 37.0 - 15.0 * QDU.log10();
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (signal_to_noise() - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantisation = 15.0 * (1.0 + power(y) + power(z)).log10();

    too_loud + sidetone + quantisation
}

/// Idte, the talker's own echo after `t` milliseconds (7-19 to 7-22).
fn talker_echo(t: f64) -> f64 {
    let terv = default::TELR - 40.0 * ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10()
        + 6.0 * (-0.3 * t * t).exp();
    let re = 80.0 + 2.5 * (terv - 14.0);
    let roe = -1.5 * (noise() - default::RLR);
    let half = (roe - re) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp())
}

/// Idle, the listener's echo after a loop of `tr` milliseconds (7-25 and 7-26).
fn listener_echo(tr: f64) -> f64 {
    let rle = 10.5 * (default::WEPL + 7.0) * (tr + 1.0).powf(-0.25);
    let half = (signal_to_noise() - rle) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// Idd, waiting for the other's answer for `ta` milliseconds each way, without any echo (7-27, 7-28).
fn absolute_delay(ta: f64) -> f64 {
    use default::{MT, ST};
    if ta <= MT {
        return 0.0;
    }
    let x = (ta / MT).log2();
    25.0 * (root(6.0 * ST, x) - 3.0 * root(6.0 * ST, x / 3.0) + 2.0)
}

/// 10 to that exponent.
fn power(exponent: f64) -> f64 {
    10_f64.powf(exponent)
}

/// The bend that the model uses everywhere: 1 for small values, the value itself for large ones.
fn root(sharpness: f64, value: f64) -> f64 {
    (1.0 + value.powf(sharpness)).powf(1.0 / sharpness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undisturbed_call_has_the_rating_that_the_recommendation_states() {
        let call = call(0, 0.0);
        assert!((call.rating() - 93.2).abs() < 0.01, "{}", call.rating());
        assert!((call.mos() - 4.41).abs() < 0.005, "{}", call.mos());
        assert!(
            (signal_to_noise() - 94.77).abs() < 0.005 && (simultaneous(0.0) - 1.41).abs() < 0.005
        );
    }

    #[test]
    fn ratings_map_to_the_scores_of_annex_b() {
        // The lower limits of G.107 Table B.1, which are rounded to two digits there.
        for (rating, score) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            assert!((mos(rating) - score).abs() < 0.01, "{rating}: {}", mos(rating));
        }
        assert_eq!(
            (mos(-5.0), mos(0.0), mos(3.0), mos(100.0), mos(120.0)),
            (1.0, 1.0, 1.0, 4.5, 4.5)
        );
    }

    #[test]
    fn delay_costs_what_the_formula_says() {
        assert_eq!(absolute_delay(100.0), 0.0);
        // X is 1 at 200 ms and 2 at 400 ms: 25 (2^(1/6) − 3 (1 + 3^−6)^(1/6) + 2), and so on.
        assert!((absolute_delay(200.0) - 3.0444).abs() < 0.001, "{}", absolute_delay(200.0));
        assert!((absolute_delay(400.0) - 24.0701).abs() < 0.001, "{}", absolute_delay(400.0));
        // Worked out by hand with the formulae and another program.
        let known = [(50, 91.76), (150, 89.54), (200, 85.80), (300, 72.67), (400, 62.25)];
        for (delay, rating) in known {
            let call = call(delay, 0.0);
            assert!((call.rating() - rating).abs() < 0.01, "{delay} ms: {}", call.rating());
        }
    }

    #[test]
    fn lost_packets_cost_what_concealment_leaves() {
        for (unheard, impairment) in [(0.01, 3.640), (0.05, 15.781), (0.2, 42.129)] {
            let cost = call(0, 0.0).rating() - call(0, unheard).rating();
            assert!((cost - impairment).abs() < 0.01, "{unheard}: {cost}");
        }
        let bursts = Call { burst_ratio: 2.0, ..call(0, 0.05) };
        assert!(bursts.rating() < call(0, 0.05).rating(), "bursts are worse than single losses");
    }

    #[test]
    fn more_delay_and_more_loss_are_never_better() {
        let delays = (0..1000).step_by(7).map(|delay| call(delay, 0.01));
        let losses = (0..=100).map(|percent| call(80, f64::from(percent) / 100.0));
        for calls in [delays.collect::<Vec<_>>(), losses.collect()] {
            for pair in calls.windows(2) {
                assert!(pair[1].rating() < pair[0].rating(), "{pair:?}");
                assert!(pair[1].mos() <= pair[0].mos(), "{pair:?}");
            }
        }
    }

    #[test]
    fn a_burst_ratio_is_one_where_chance_alone_decides() {
        assert_eq!(burst_ratio(&[true; 9]), 1.0);
        assert_eq!(burst_ratio(&[false; 9]), 1.0);
        assert_eq!(burst_ratio(&[]), 1.0);
        // One burst of four in eight, where chance would have made bursts of two.
        let burst = [true, true, false, false, false, false, true, true];
        assert_eq!(burst_ratio(&burst), 2.0);
        let even: Vec<bool> = (0..100).map(|number| number % 10 != 0).collect();
        assert_eq!(burst_ratio(&even), 0.9, "spread evenly is better than by chance");
    }

    fn call(millis: u64, unheard: f64) -> Call {
        Call { delay: Duration::from_millis(millis), unheard, burst_ratio: 1.0 }
    }
}
