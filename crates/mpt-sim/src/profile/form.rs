//! A profile as people write it: units in the names of the keys, fractions, seconds.

use std::fmt;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{Profile, ProfileError};
use crate::loss::{GilbertElliott, Loss};

/// The keys of a profile in a file. Unknown ones are errors.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Form {
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_mbps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_bytes: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    policed: bool,
    delay_ms: f64,
    jitter_ms: f64,
    keep_order: bool,
    loss: Loss,
    duplicate: f64,
    corrupt: f64,
    reorder: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_bytes: Option<u64>,
    blackouts: Vec<(f64, f64)>,
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Form::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<Form> for Profile {
    type Error = ProfileError;

    fn try_from(form: Form) -> Result<Self, ProfileError> {
        let blackouts = form
            .blackouts
            .into_iter()
            .map(|(start, end)| Ok((time("blackouts", start, 1.0)?, time("blackouts", end, 1.0)?)));
        let profile = Self {
            rate: form.rate_mbps.map(rate).transpose()?,
            queue: form.queue_bytes,
            policed: form.policed,
            delay: time("delay_ms", form.delay_ms, 1e3)?,
            jitter: time("jitter_ms", form.jitter_ms, 1e3)?,
            keep_order: form.keep_order,
            loss: form.loss,
            duplicate: form.duplicate,
            corrupt: form.corrupt,
            reorder: form.reorder,
            largest: form.largest_bytes,
            blackouts: blackouts.collect::<Result<_, _>>()?,
        };
        profile.validate()?;
        Ok(profile)
    }
}

impl From<Profile> for Form {
    fn from(profile: Profile) -> Self {
        let seconds = |(start, end): (Duration, Duration)| (start.as_secs_f64(), end.as_secs_f64());
        Self {
            rate_mbps: profile.rate.map(|bits| bits as f64 / 1e6),
            queue_bytes: profile.queue,
            policed: profile.policed,
            delay_ms: profile.delay.as_secs_f64() * 1e3,
            jitter_ms: profile.jitter.as_secs_f64() * 1e3,
            keep_order: profile.keep_order,
            loss: profile.loss,
            duplicate: profile.duplicate,
            corrupt: profile.corrupt,
            reorder: profile.reorder,
            largest_bytes: profile.largest,
            blackouts: profile.blackouts.into_iter().map(seconds).collect(),
        }
    }
}

/// Bits per second from Mbit/s. Less than half a bit per second is zero, which validation names.
fn rate(mbps: f64) -> Result<u64, ProfileError> {
    let bits = (mbps * 1e6).round();
    // 2^64 as a float: casts from there on would saturate silently.
    if mbps >= 0.0 && bits < u64::MAX as f64 {
        Ok(bits as u64)
    } else {
        Err(ProfileError::Amount { field: "rate_mbps", value: mbps })
    }
}

/// A duration from a number of which `per_second` make one second.
fn time(field: &'static str, value: f64, per_second: f64) -> Result<Duration, ProfileError> {
    Duration::try_from_secs_f64(value / per_second)
        .map_err(|_| ProfileError::Amount { field, value })
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_f64(0.0),
            Self::Random(p) => serializer.serialize_f64(*p),
            Self::GilbertElliott(parameters) => parameters.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LossVisitor)
    }
}

/// Accepts a number or a table. An untagged enum would, too, but could not say what is wrong.
struct LossVisitor;

impl<'de> Visitor<'de> for LossVisitor {
    type Value = Loss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fraction such as 0.01, or a table { p, r, h, k }")
    }

    fn visit_f64<E>(self, p: f64) -> Result<Loss, E> {
        Ok(if p == 0.0 { Loss::None } else { Loss::Random(p) })
    }

    fn visit_i64<E: serde::de::Error>(self, p: i64) -> Result<Loss, E> {
        self.visit_f64(p as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, p: u64) -> Result<Loss, E> {
        self.visit_f64(p as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
        GilbertElliott::deserialize(MapAccessDeserializer::new(map)).map(Loss::GilbertElliott)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        toml::from_str::<Profile>(text).unwrap_err().to_string()
    }

    #[test]
    fn every_key_is_read_in_its_unit() {
        let profile: Profile = toml::from_str(
            "rate_mbps = 40\nqueue_bytes = 250000\npoliced = true\ndelay_ms = 10\njitter_ms = 0.5\n\
             loss = { p = 0.01, r = 0.3 }\nduplicate = 0.1\ncorrupt = 0.2\nreorder = 1\n\
             largest_bytes = 1400\n\
             blackouts = [[2, 3.5], [7.25, 8]]",
        )
        .unwrap();
        let expected = Profile {
            rate: Some(40_000_000),
            queue: Some(250_000),
            policed: true,
            delay: Duration::from_millis(10),
            jitter: Duration::from_micros(500),
            keep_order: false,
            loss: Loss::GilbertElliott(GilbertElliott { p: 0.01, r: 0.3, h: 0.0, k: 1.0 }),
            duplicate: 0.1,
            corrupt: 0.2,
            reorder: 1.0,
            largest: Some(1400),
            blackouts: vec![
                (Duration::from_secs(2), Duration::from_millis(3500)),
                (Duration::from_millis(7250), Duration::from_secs(8)),
            ],
        };
        assert_eq!(profile, expected);
        let written = toml::to_string(&profile).unwrap();
        assert_eq!(toml::from_str::<Profile>(&written).unwrap(), expected);
    }

    #[test]
    fn nothing_is_required_and_loss_may_be_a_plain_fraction() {
        assert_eq!(toml::from_str::<Profile>("").unwrap(), Profile::default());
        let loss = |text: &str| toml::from_str::<Profile>(text).unwrap().loss;
        assert_eq!(loss("loss = 0.01"), Loss::Random(0.01));
        assert_eq!(loss("loss = 1"), Loss::Random(1.0));
        assert_eq!(loss("loss = 0"), Loss::None);
        let slow: Profile = toml::from_str("rate_mbps = 0.128\nkeep_order = true").unwrap();
        assert_eq!((slow.rate, slow.keep_order), (Some(128_000), true));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("rate_mpbs = 1", "unknown field `rate_mpbs`"),
            ("rate_mbps = 0", "`rate_mbps` is zero"),
            ("rate_mbps = -1", "`rate_mbps` is -1"),
            ("rate_mbps = 1e300", "`rate_mbps` is 1"),
            ("delay_ms = -5", "`delay_ms` is -5"),
            ("jitter_ms = nan", "`jitter_ms` is NaN"),
            ("delay_ms = inf", "`delay_ms` is inf"),
            ("queue_bytes = -1", "-1"),
            ("loss = 5", "`loss` is 5"),
            ("loss = { p = 2, r = 0.3 }", "`loss.p` is 2"),
            ("loss = { p = 0.1 }", "missing field `r`"),
            ("loss = { p = 0.1, r = 0.1, x = 1 }", "unknown field `x`"),
            ("loss = \"much\"", "a fraction such as 0.01"),
            ("blackouts = [[3, 2]]", "black-out 1 ends"),
            ("blackouts = [[-1, 2]]", "`blackouts` is -1"),
        ] {
            assert!(error(text).contains(part), "{text}: {:?} lacks {part:?}", error(text));
        }
    }
}
