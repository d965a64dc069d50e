//! One link as written in a file: its own keys, and those of a profile for both directions or for
//! one.

use std::fmt;

use mpt_sim::profile::Profile;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Bytes of an IP packet on an Ethernet.
const DEFAULT_MTU: u32 = 1500;
/// IPv6 asks for 1280 at least (RFC 8200 section 5); beyond jumbo frames nothing was tried.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 1280..=9000;
/// Longest name of a Linux network device: IFNAMSIZ less the closing zero.
const MAX_NAME: usize = 15;

/// A link between the two hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSpec {
    /// The link's name and that of its TUN device in both hosts.
    pub name: String,
    /// IP version of the outer packets.
    pub version: IpVersion,
    /// Largest outer packet in bytes.
    pub mtu: u32,
    /// Whether the left host reaches the link through an address translator.
    pub nat: bool,
    /// What packets from left to right meet.
    pub forward: Profile,
    /// What packets from right to left meet.
    pub backward: Profile,
}

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum IpVersion {
    /// RFC 791.
    #[default]
    V4,
    /// RFC 8200.
    V6,
}

impl LinkSpec {
    /// A link that is equal in both directions, carries IPv4 and has an MTU of 1500 bytes.
    pub fn new(name: impl Into<String>, profile: Profile) -> Self {
        Self {
            name: name.into(),
            version: IpVersion::V4,
            mtu: DEFAULT_MTU,
            nat: false,
            forward: profile.clone(),
            backward: profile,
        }
    }
}

impl TryFrom<u8> for IpVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            other => Err(format!("there is no IP version {other}: write 4 or 6")),
        }
    }
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

impl<'de> Deserialize<'de> for LinkSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LinkVisitor)
    }
}

/// A key of a `[[link]]` table: the link's own, or a profile's by its name.
enum Key {
    Name,
    Version,
    Mtu,
    Nat,
    Forward,
    Backward,
    Setting(&'static str),
}

/// All keys, the link's own first.
const KEYS: [&str; 18] = [
    "name",
    "version",
    "mtu",
    "nat",
    "forward",
    "backward",
    "rate_mbps",
    "queue_bytes",
    "policed",
    "delay_ms",
    "jitter_ms",
    "keep_order",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "largest_bytes",
    "blackouts",
];

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "name" => Ok(Self::Name),
            "version" => Ok(Self::Version),
            "mtu" => Ok(Self::Mtu),
            "nat" => Ok(Self::Nat),
            "forward" => Ok(Self::Forward),
            "backward" => Ok(Self::Backward),
            other => match KEYS.iter().find(|key| **key == other) {
                Some(key) => Ok(Self::Setting(key)),
                None => Err(D::Error::unknown_field(other, &KEYS)),
            },
        }
    }
}

/// Reads a link key by key, because only the reader of a single value can point at it when it is
/// wrong.
struct LinkVisitor;

impl<'de> Visitor<'de> for LinkVisitor {
    type Value = LinkSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link: a table with a name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkSpec, A::Error> {
        let mut name = None;
        let mut version = IpVersion::default();
        let mut mtu = DEFAULT_MTU;
        let mut nat = false;
        let mut both = Table::new();
        let mut forward = Settings::default();
        let mut backward = Settings::default();
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Name => name = Some(map.next_value::<Name>()?.0),
                Key::Version => version = map.next_value()?,
                Key::Mtu => mtu = map.next_value::<Mtu>()?.0,
                Key::Nat => nat = map.next_value()?,
                Key::Forward => forward = map.next_value()?,
                Key::Backward => backward = map.next_value()?,
                Key::Setting(key) => {
                    both.insert(key.into(), map.next_value_seed(Setting(key))?);
                }
            }
        }
        let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
        let profile = |direction: &str, settings: Settings| {
            let mut table = both.clone();
            table.extend(settings.0);
            Profile::deserialize(Value::Table(table)).map_err(|error| {
                A::Error::custom(format!("link `{name}`, {direction}: {}", bare(&error)))
            })
        };
        let forward = profile("forward", forward)?;
        let backward = profile("backward", backward)?;
        Ok(LinkSpec { name, version, mtu, nat, forward, backward })
    }
}

/// Profile keys for one direction.
#[derive(Default)]
struct Settings(Table);

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsVisitor)
    }
}

struct SettingsVisitor;

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the differences in this direction, such as { rate_mbps = 5 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
        let mut settings = Table::new();
        while let Some(key) = map.next_key::<Key>()? {
            if let Key::Setting(key) = key {
                settings.insert(key.into(), map.next_value_seed(Setting(key))?);
            } else {
                map.next_value::<IgnoredAny>()?;
                return Err(A::Error::custom(
                    "a name, version or MTU belongs to the link, not to one direction",
                ));
            }
        }
        Ok(Settings(settings))
    }
}

/// One value of a profile, tried alone as soon as it is read, so that an error points at it.
struct Setting(&'static str);

impl<'de> DeserializeSeed<'de> for Setting {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let mut alone = Table::from_iter([(self.0.to_owned(), value.clone())]);
        // A queue alone is refused, because it means nothing without a rate.
        alone.entry("rate_mbps").or_insert(Value::Integer(1));
        Profile::deserialize(Value::Table(alone))
            .map_err(|error| D::Error::custom(bare(&error)))?;
        Ok(value)
    }
}

/// The message alone: a value that was parsed before has no line.
fn bare(error: &toml::de::Error) -> &str {
    error.message()
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    /// As the kernel wants it (dev_valid_name in net/core/dev.c), less what hurts in file names and
    /// messages.
    fn try_from(name: String) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            return Err(format!(
                "`{name}` is not a valid name of a network device: use 1 to {MAX_NAME} letters, \
                 digits, `-`, \
                 `_` or `.`"
            ));
        }
        if matches!(name.as_str(), "." | ".." | "lo" | "all" | "default") {
            return Err(format!("`{name}` is reserved by the kernel: choose another name"));
        }
        Ok(Self(name))
    }
}

#[derive(Deserialize)]
#[serde(try_from = "u32")]
struct Mtu(u32);

impl TryFrom<u32> for Mtu {
    type Error = String;

    fn try_from(mtu: u32) -> Result<Self, String> {
        if MTU_RANGE.contains(&mtu) {
            return Ok(Self(mtu));
        }
        Err(format!("an MTU is {} to {} bytes", MTU_RANGE.start(), MTU_RANGE.end()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::topology::Topology;

    fn link(text: &str) -> LinkSpec {
        Topology::parse(text).unwrap().links.remove(0)
    }

    #[test]
    fn directions_differ_only_in_overridden_keys() {
        let link = link(
            "[[link]]\nname = 'lte'\nversion = 6\nmtu = 1400\nrate_mbps = 20\ndelay_ms = 30\n\
             backward = { rate_mbps = 5, loss = 0.01 }",
        );
        assert_eq!((link.name.as_str(), link.version, link.mtu), ("lte", IpVersion::V6, 1400));
        assert_eq!((link.forward.rate, link.backward.rate), (Some(20_000_000), Some(5_000_000)));
        assert_eq!(link.forward.delay, Duration::from_millis(30));
        assert_eq!(link.backward.delay, Duration::from_millis(30));
        assert_eq!(link.forward.loss.long_run(), 0.0);
        assert_eq!(link.backward.loss.long_run(), 0.01);
    }

    #[test]
    fn a_link_needs_only_a_name() {
        assert_eq!(link("[[link]]\nname = 'a'"), LinkSpec::new("a", Profile::default()));
    }

    #[test]
    fn an_error_points_at_the_value() {
        for (wrong, line, part) in [
            ("delay_ms = -5", "delay_ms = -5", "`delay_ms` is -5"),
            ("rate_mbps = 'fast'", "rate_mbps = 'fast'", "invalid type"),
            ("rate_mpbs = 5", "rate_mpbs = 5", "unknown field `rate_mpbs`"),
            ("backward = { loss = 7 }", "backward = { loss = 7 }", "`loss` is 7"),
            ("backward = { mtu = 1400 }", "backward = { mtu = 1400 }", "belongs to the link"),
            ("mtu = 576", "mtu = 576", "1280 to 9000"),
            ("version = 5", "version = 5", "write 4 or 6"),
            ("queue_bytes = 9", "[[link]]", "link `a`, forward: `queue_bytes` means nothing"),
        ] {
            let error = Topology::parse(&format!("[[link]]\nname = 'a'\n{wrong}\n")).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(part), "{text}");
            assert!(text.contains(&format!("| {line}\n")), "points elsewhere:\n{text}");
        }
        for name in ["", "a b", "lo", "a-name-that-is-too-long", "a/b"] {
            let error = Topology::parse(&format!("[[link]]\nname = '{name}'")).unwrap_err();
            assert!(error.to_string().contains("| name = "), "{error}");
        }
    }
}
