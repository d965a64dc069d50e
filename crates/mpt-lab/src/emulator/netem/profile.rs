//! A profile as netem can be it.

use std::time::Duration;

use mpt_sim::loss::{GilbertElliott, Loss};
use mpt_sim::profile::Profile;

use super::ETHERNET_HEADER;
use super::qdisc::{Netem, NetemLoss};

/// A key of a profile of which netem cannot do what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netem does not support this `{key}`: {why}; change it or use the emulator")]
pub struct Unsupported {
    /// As written in the file.
    pub key: &'static str,
    /// What netem does instead.
    pub why: &'static str,
}

/// Packets that may be on the way at most where the rate sets no limit: a second at a million per
/// second.
const UNLIMITED: u32 = 1_000_000;
/// Deviations of the delay that are reckoned with: one packet in 30,000 is later.
const DEVIATIONS: u32 = 4;

/// The netem settings for a profile, of packets up to `mtu` bytes.
///
/// # Errors
///
/// The first key of which it cannot do what it says.
pub(super) fn netem(profile: &Profile, mtu: u32, seed: Option<u64>) -> Result<Netem, Unsupported> {
    let no = |key, why| Err(Unsupported { key, why });
    if !profile.blackouts.is_empty() {
        return no("blackouts", "netem has no schedule");
    }
    if profile.largest.is_some() {
        return no("largest_bytes", "netem has no length limit");
    }
    if profile.policed {
        return no("policed", "netem has no policer");
    }
    match (profile.jitter.is_zero(), profile.rate, profile.keep_order) {
        (false, None, true) => {
            return no("keep_order", "with jitter but without a rate, packets overtake each other");
        }
        (false, Some(_), false) => {
            return no("jitter_ms", "with a rate, packets stay in order: add `keep_order = true`");
        }
        (true, _, _) | (false, None, false) | (false, Some(_), true) => {}
    }
    if profile.reorder > 0.0 && profile.rate.is_some() {
        return no("reorder", "with a rate, a packet sent ahead skips its serialization delay");
    }
    Ok(Netem {
        limit: limit(profile, mtu),
        delay: profile.delay,
        jitter: profile.jitter,
        loss: match profile.loss {
            Loss::None => NetemLoss::Random(0.0),
            Loss::Random(p) => NetemLoss::Random(p),
            Loss::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                NetemLoss::GilbertElliott { p, r, h, k }
            }
        },
        duplicate: profile.duplicate,
        corrupt: profile.corrupt,
        reorder: profile.reorder,
        rate: profile.rate.map(|bits| (bits / 8).max(1)),
        // Rates are those of IP packets, as the emulator's are.
        overhead: -(ETHERNET_HEADER as i32),
        seed,
    })
}

/// Packets of full length that fit into the queue, and those that are on the way meanwhile: netem
/// counts packets, not bytes, and both as one.
fn limit(profile: &Profile, mtu: u32) -> u32 {
    let (Some(rate), Some(queue)) = (profile.rate, profile.queue_limit()) else {
        return UNLIMITED;
    };
    let longest: Duration = profile.delay + profile.jitter * DEVIATIONS;
    let on_the_way = u128::from(rate) * longest.as_nanos() / 8_000_000_000;
    let bytes = u128::from(queue) + on_the_way;
    u32::try_from(bytes.div_ceil(mtu.into()))
        .map_or(UNLIMITED, |packets| packets.clamp(1, UNLIMITED))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u32 = 1500;
    const MS: Duration = Duration::from_millis(1);

    fn perfect() -> Profile {
        Profile::default()
    }

    #[test]
    fn every_setting_has_its_counterpart() {
        let profile = Profile {
            rate: Some(10_000_000),
            queue: Some(150_000),
            delay: 30 * MS,
            jitter: MS,
            keep_order: true,
            loss: Loss::GilbertElliott(GilbertElliott { p: 0.1, r: 0.2, h: 0.3, k: 0.4 }),
            duplicate: 0.5,
            corrupt: 0.6,
            ..perfect()
        };
        let netem = netem(&profile, MTU, Some(9)).unwrap();
        let expected = Netem {
            // 100 in the queue and 34 ms at 10 Mbit/s, which is 28.3 packets.
            limit: 129,
            delay: 30 * MS,
            jitter: MS,
            loss: NetemLoss::GilbertElliott { p: 0.1, r: 0.2, h: 0.3, k: 0.4 },
            duplicate: 0.5,
            corrupt: 0.6,
            reorder: 0.0,
            rate: Some(1_250_000),
            overhead: -14,
            seed: Some(9),
        };
        assert_eq!(netem, expected);
    }

    #[test]
    fn without_a_rate_there_is_no_queue() {
        let profile = Profile { delay: 30 * MS, jitter: MS, reorder: 0.1, ..perfect() };
        let netem = netem(&profile, MTU, None).unwrap();
        assert_eq!((netem.limit, netem.rate, netem.reorder), (UNLIMITED, None, 0.1));
        let tiny = Profile { rate: Some(1), queue: Some(0), ..perfect() };
        assert_eq!(super::netem(&tiny, MTU, None).unwrap().limit, 1);
    }

    #[test]
    fn impossible_settings_are_named_in_the_error() {
        let rate = Some(1_000_000);
        for (profile, key) in [
            (Profile { blackouts: vec![(MS, 2 * MS)], ..perfect() }, "blackouts"),
            (Profile { largest: Some(1400), ..perfect() }, "largest_bytes"),
            (Profile { policed: true, rate, ..perfect() }, "policed"),
            (Profile { jitter: MS, keep_order: true, ..perfect() }, "keep_order"),
            (Profile { jitter: MS, rate, ..perfect() }, "jitter_ms"),
            (Profile { reorder: 0.1, rate, ..perfect() }, "reorder"),
        ] {
            let error = netem(&profile, MTU, None).unwrap_err();
            assert_eq!(error.key, key);
            assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
        }
        assert!(netem(&Profile { keep_order: true, rate, ..perfect() }, MTU, None).is_ok());
    }
}
