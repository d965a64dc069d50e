//! Which hosts and links a lab consists of: plain data, read from a file.
//!
//! There are always two hosts, *left* and *right*, and between them as many links as listed. What
//! runs *forward* on a link goes from left to right. A link is written as one `[[link]]` table: its
//! name, the version of the IP packets that cross it, and the keys of [`mpt_sim::profile`], which
//! apply to both directions unless `forward` or `backward` overrides them:
//!
//! ```toml
//! seed = 7                      # every random choice of every link follows from it; 1 if absent
//! addressing = "per-link"       # or "one-server": right has one address, reached over every link
//!
//! [[link]]
//! name = "fibre"                # also that of the TUN device in both hosts: 1 to 15 characters
//! rate_mbps = 40
//! delay_ms = 5
//!
//! [[link]]
//! name = "lte"
//! version = 6                   # IP version of the outer packets, 4 if absent
//! mtu = 1400                    # bytes, 1280 to 9000; 1500 if absent
//! rate_mbps = 20
//! delay_ms = 30
//! backward = { rate_mbps = 5 }  # right to left: the rest as above
//! ```
//!
//! An error names the line and points at the value; it comes from `toml` ready to be printed.

mod link;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

pub use link::{IpVersion, LinkSpec};

/// Most links of a lab; as many as a connection has paths.
pub const MAX_LINKS: usize = 64;

/// Hosts and links of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Form")]
pub struct Topology {
    /// Every random choice of every link follows from it.
    pub seed: u64,
    /// How the right host is addressed.
    pub addressing: Addressing,
    /// The links, 1 to [`MAX_LINKS`], with different names.
    #[serde(rename = "link")]
    pub links: Vec<LinkSpec>,
}

/// How the right host is addressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addressing {
    /// Each link has a separate address at either end.
    #[default]
    PerLink,
    /// A server with one address per IP version, reached over every link: the commonest deployment.
    /// All its paths then share one socket, and the left host must bind each path to its link's
    /// interface.
    OneServer,
}

/// The hosts, as seen by links: forward is from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The host where forward traffic begins; the client where the roles differ.
    Left,
    /// The host where forward traffic ends; the server where the roles differ.
    Right,
}

impl Side {
    /// The host's name: `left` or `right`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

impl Topology {
    /// A topology of these links, each with its own address at either end.
    ///
    /// # Errors
    ///
    /// No link, too many, or two of one name.
    pub fn new(seed: u64, links: Vec<LinkSpec>) -> Result<Self, TopologyError> {
        Form { seed, addressing: Addressing::default(), link: links }.try_into()
    }

    /// Reads a topology from TOML.
    ///
    /// # Errors
    ///
    /// What is wrong, with line and caret: not TOML, an unknown key, or a value that cannot be
    /// meant.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The address of one host on link number `link`, counted from 0.
    ///
    /// Links get consecutive networks out of 198.18.0.0/16 (RFC 2544: for tests of interconnected
    /// devices) or of a unique local prefix (RFC 4193), so they collide with no tunnel's addresses
    /// that people usually choose.
    pub fn address(&self, side: Side, link: usize) -> IpAddr {
        let version = self.links[link].version;
        match (side, self.addressing) {
            (Side::Right, Addressing::OneServer) => server_address(version),
            (Side::Left, _) => link_address(version, link, 1),
            (Side::Right, Addressing::PerLink) => link_address(version, link, 2),
        }
    }

    /// The address of one host on a link as seen by the other: that of the NAT, if there is one.
    pub fn known_address(&self, side: Side, link: usize) -> IpAddr {
        match side {
            Side::Left if self.links[link].nat => {
                link_address(self.links[link].version, link, TRANSLATOR)
            }
            Side::Left | Side::Right => self.address(side, link),
        }
    }
}

/// The one address that a server has for this version of IP.
fn server_address(version: IpVersion) -> IpAddr {
    match version {
        IpVersion::V4 => Ipv4Addr::new(198, 19, 0, 1).into(),
        IpVersion::V6 => Ipv6Addr::new(ULA[0], ULA[1], 1, 0, 0, 0, 0, 1).into(),
    }
}

/// The address of host number `host`, 1 to 3, on a link.
fn link_address(version: IpVersion, link: usize, host: u8) -> IpAddr {
    let number = u8::try_from(link + 1).expect("a lab has at most 64 links");
    match version {
        IpVersion::V4 => Ipv4Addr::new(198, 18, number, host).into(),
        IpVersion::V6 => {
            Ipv6Addr::new(ULA[0], ULA[1], 0, number.into(), 0, 0, 0, host.into()).into()
        }
    }
}

/// The number of a translator's outside, among the hosts of a link.
const TRANSLATOR: u8 = 3;

/// The first 32 bits of the lab's unique local prefix: fd, then the letters M, P and T.
const ULA: [u16; 2] = [0xfd4d, 0x5054];

/// Why links do not make a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// There is nothing to carry a packet.
    #[error("no link: add at least one [[link]] table")]
    NoLink,
    /// More links than a connection has paths.
    #[error("{0} links, but at most {MAX_LINKS} are possible")]
    TooManyLinks(usize),
    /// Names are those of devices, so they must differ.
    #[error("two links are called `{0}`: give each its own name")]
    DuplicateName(String),
}

/// A topology as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default = "default_seed")]
    seed: u64,
    #[serde(default)]
    addressing: Addressing,
    #[serde(default)]
    link: Vec<LinkSpec>,
}

fn default_seed() -> u64 {
    1
}

impl TryFrom<Form> for Topology {
    type Error = TopologyError;

    fn try_from(form: Form) -> Result<Self, TopologyError> {
        if form.link.is_empty() {
            return Err(TopologyError::NoLink);
        }
        if form.link.len() > MAX_LINKS {
            return Err(TopologyError::TooManyLinks(form.link.len()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = form.link.iter().find(|link| !names.insert(&link.name)) {
            return Err(TopologyError::DuplicateName(twice.name.clone()));
        }
        Ok(Self { seed: form.seed, addressing: form.addressing, links: form.link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Topology {
        Topology::parse(text).unwrap()
    }

    #[test]
    fn addresses_are_distinct_and_of_the_version_asked_for() {
        let topology =
            parse("[[link]]\nname='a'\n[[link]]\nname='b'\nversion=6\n[[link]]\nname='c'");
        let mut seen = BTreeSet::new();
        for link in 0..3 {
            for side in [Side::Left, Side::Right] {
                let address = topology.address(side, link);
                assert_eq!(address.is_ipv6(), link == 1);
                assert!(seen.insert(address), "{address} twice");
            }
        }
    }

    #[test]
    fn a_server_has_one_address_per_version() {
        let topology = parse(
            "addressing = 'one-server'\n[[link]]\nname='a'\n[[link]]\nname='b'\n\
             [[link]]\nname='c'\nversion=6",
        );
        let right = |link| topology.address(Side::Right, link);
        assert_eq!(right(0), right(1));
        assert_ne!(right(0), right(2));
        assert_ne!(topology.address(Side::Left, 0), topology.address(Side::Left, 1));
    }

    #[test]
    fn an_invalid_topology_is_an_error() {
        for (text, part) in [
            ("", "no link"),
            ("[[link]]\nname = 'a'\n[[link]]\nname = 'a'", "two links are called `a`"),
            ("[[link]]\nname = 'a'\n[[lnik]]", "unknown field `lnik`"),
            ("addressing = 'odd'\n[[link]]\nname = 'a'", "unknown variant `odd`"),
        ] {
            let error = Topology::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let many: String = (0..65).map(|i| format!("[[link]]\nname = 'l{i}'\n")).collect();
        assert!(Topology::parse(&many).unwrap_err().to_string().contains("65 links"));
    }
}
