//! The highest rate at which (nearly) everything arrives.
//!
//! Loss grows with the rate, so the border can be found by halving. Measurements are noisy and the
//! rate offered is not always the rate sent; what counts is what arrived in the best trial that
//! lost little.

/// Most of the packets that may be lost, RFC 2544 being stricter than a shared machine can be.
pub(super) const TOLERABLE_LOSS: f64 = 0.01;

/// What became of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    /// Packets sent per second.
    pub(super) sent: f64,
    /// Packets that arrived per second.
    pub(super) received: f64,
}

impl Trial {
    fn is_good(self) -> bool {
        self.received > self.sent * (1.0 - TOLERABLE_LOSS)
    }
}

/// Packets per second that arrive in the best trial with tolerable loss; 0 if there is none.
///
/// The first trial is asked to send as fast as it can (`None`); where that loses too much, its rate is the
/// upper end of a range that is halved `halvings` times.
///
/// # Errors
///
/// Those of `trial`.
pub(super) fn best_rate<E>(
    halvings: u32,
    mut trial: impl FnMut(Option<f64>) -> Result<Trial, E>,
) -> Result<f64, E> {
    let flat_out = trial(None)?;
    if flat_out.is_good() {
        return Ok(flat_out.received);
    }
    let (mut low, mut high, mut best) = (0.0, flat_out.sent, 0.0_f64);
    for _ in 0..halvings {
        let middle = (low + high) / 2.0;
        let outcome = trial(Some(middle))?;
        if outcome.is_good() {
            best = best.max(outcome.received);
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A network that carries `capacity` packets per second and a sender that reaches `top`.
    fn network(capacity: f64, top: f64) -> impl FnMut(Option<f64>) -> Result<Trial, Infallible> {
        move |rate| {
            let sent = rate.unwrap_or(top).min(top);
            Ok(Trial { sent, received: sent.min(capacity) })
        }
    }

    #[test]
    fn the_border_is_found_to_within_the_last_half() {
        for capacity in [10e3, 123e3, 299e3] {
            let best = best_rate(8, network(capacity, 300e3)).unwrap();
            let error = 300e3 / 256.0;
            assert!(best <= capacity && best > capacity - error, "{best} of {capacity}");
        }
    }

    #[test]
    fn a_sender_that_is_the_limit_needs_one_trial() {
        let mut trials = 0;
        let mut network = network(500e3, 300e3);
        let best = best_rate(8, |rate| {
            trials += 1;
            network(rate)
        });
        assert_eq!((best, trials), (Ok(300e3), 1));
    }

    #[test]
    fn where_nothing_arrives_the_rate_is_zero() {
        assert_eq!(best_rate(5, network(0.0, 300e3)), Ok(0.0));
        let silent = |_| Ok::<_, Infallible>(Trial { sent: 0.0, received: 0.0 });
        assert_eq!(best_rate(5, silent), Ok(0.0));
    }

    #[test]
    fn a_little_loss_is_tolerated_and_more_is_not() {
        let lossy = |share: f64| {
            move |_| Ok::<_, Infallible>(Trial { sent: 1000.0, received: 1000.0 * (1.0 - share) })
        };
        assert_eq!(best_rate(3, lossy(0.009)), Ok(991.0));
        assert_eq!(best_rate(3, lossy(0.011)), Ok(0.0));
    }

    #[test]
    fn an_error_ends_the_search() {
        let mut trials = 0;
        let failed = best_rate(5, |_| {
            trials += 1;
            if trials < 3 { Ok(Trial { sent: 9.0, received: 1.0 }) } else { Err("gone") }
        });
        assert_eq!((failed, trials), (Err("gone"), 3));
    }
}
