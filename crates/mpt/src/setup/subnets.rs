//! The tunnel's addresses: which networks are free, and who gets which address.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result, bail};
use mpt_io::netlink::Netlink;

use crate::config::Prefix;
use crate::keys;

/// How often another network is drawn before giving up.
const DRAWS: usize = 1000;

/// Prefix lengths of networks that are drawn: room for 253 clients. A larger network would sooner be one that some
/// client has already.
const LEN_V4: u8 = 24;
const LEN_V6: u8 = 64;

/// The server's tunnel addresses with the prefix lengths of their subnets: at most one of each version of IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subnets(Vec<Prefix>);

impl Subnets {
    /// Addresses that a person chose.
    ///
    /// # Errors
    ///
    /// Two of one version, a network without room for clients, or one that is in use on this host.
    pub(crate) fn chosen(addresses: &[Prefix], used: &[Prefix]) -> Result<Self> {
        for (place, address) in addresses.iter().enumerate() {
            let twin = |other: &Prefix| other.addr.is_ipv4() == address.addr.is_ipv4();
            if addresses[..place].iter().any(twin) {
                bail!("two addresses of one IP version: give at most one of each");
            }
            if Prefix::max_len(address.addr) - address.len < 2 {
                bail!(
                    "{address} has no room for clients: write a shorter prefix, such as 10.66.0.1/24"
                );
            }
            if *address == address.network() {
                bail!(
                    "{address} is a network: write this host's address in it, such as 10.66.0.1/24"
                );
            }
            if let Some(other) = used.iter().find(|other| other.overlaps(*address)) {
                bail!(
                    "{address} overlaps {other}, which this host has a route to: choose another network"
                );
            }
        }
        Ok(Self(addresses.to_vec()))
    }

    /// The first addresses of networks drawn at random from those for private use (RFC 1918, RFC 4193) that overlap none of `used`.
    ///
    /// # Errors
    ///
    /// No random numbers, or no network is free.
    pub(crate) fn drawn(used: &[Prefix]) -> Result<Self> {
        let draw = |network: fn(&[u8; 32]) -> Prefix| -> Result<Prefix> {
            for _ in 0..DRAWS {
                let network = network(&*keys::random()?);
                if !used.iter().any(|other| other.overlaps(network)) {
                    return Ok(Prefix { addr: nth(network, 1), ..network });
                }
            }
            bail!("found no free private network: choose one with --address")
        };
        Ok(Self(vec![draw(private_v4)?, draw(private_v6)?]))
    }

    /// This host's address in each.
    pub(crate) fn addresses(&self) -> &[Prefix] {
        &self.0
    }

    /// The first addresses that neither the server nor one of these has: of both versions the same one in order, if
    /// that is free in both.
    ///
    /// # Errors
    ///
    /// None is left.
    pub(crate) fn next(&self, taken: &BTreeSet<IpAddr>) -> Result<Vec<Prefix>> {
        let room = self.0.iter().map(|own| room(*own)).min().unwrap_or(0);
        let free = |address: &Prefix| {
            !taken.contains(&address.addr) && self.0.iter().all(|own| own.addr != address.addr)
        };
        let candidate = |place| -> Vec<Prefix> {
            let of = |own: &Prefix| Prefix { addr: nth(own.network(), place), len: own.len };
            self.0.iter().map(of).collect()
        };
        (1..=room).map(candidate).find(|all| all.iter().all(free)).with_context(|| {
            let networks: Vec<_> = self.0.iter().map(|own| own.network().to_string()).collect();
            format!(
                "no address is left in {}: remove a client (`mpt peer remove NAME`), or set up a larger network (`mpt leave`, then `mpt init --address`)",
                networks.join(" and ")
            )
        })
    }
}

/// How many addresses for hosts a network has, at most 2³²: the last one of IPv4 is for broadcast.
fn room(own: Prefix) -> u64 {
    let bits = Prefix::max_len(own.addr) - own.len;
    (1_u64 << bits.min(32)) - if own.addr.is_ipv4() { 2 } else { 1 }
}

/// The address at a place in a network.
fn nth(network: Prefix, place: u64) -> IpAddr {
    match network.addr {
        IpAddr::V4(addr) => Ipv4Addr::from_bits(addr.to_bits() | place as u32).into(),
        IpAddr::V6(addr) => Ipv6Addr::from_bits(addr.to_bits() | u128::from(place)).into(),
    }
}

/// 10.0.0.0/8 or 172.16.0.0/12. Not 192.168.0.0/16, which is in use at most homes.
fn private_v4(random: &[u8; 32]) -> Prefix {
    let [pick, one, two, ..] = *random;
    let addr = match pick {
        0..16 => Ipv4Addr::new(172, 16 | one & 15, two, 0),
        16.. => Ipv4Addr::new(10, one, two, 0),
    };
    Prefix { addr: addr.into(), len: LEN_V4 }
}

/// A unique local prefix: 40 random bits after fd00::/8 (RFC 4193 section 3.2).
fn private_v6(random: &[u8; 32]) -> Prefix {
    let mut octets = [0; 16];
    octets[0] = 0xfd;
    octets[1..6].copy_from_slice(&random[..5]);
    Prefix { addr: octets.into(), len: LEN_V6 }
}

/// All networks that this host has a route to or an address in; default routes are none.
///
/// # Errors
///
/// The kernel does not say.
pub(crate) fn host_networks() -> Result<Vec<Prefix>> {
    let mut netlink = Netlink::open().context("cannot ask the kernel")?;
    let addresses = netlink.addresses().context("cannot ask the kernel")?;
    let addresses = addresses.iter().map(|own| (own.address, own.prefix));
    let routes = netlink.networks().context("cannot ask the kernel")?;
    let all = addresses.chain(routes).map(|(addr, len)| Prefix { addr, len }.network());
    let all: BTreeSet<_> = all.filter(|network| !network.is_default()).collect();
    Ok(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        let (addr, len) = text.split_once('/').unwrap();
        Prefix { addr: addr.parse().unwrap(), len: len.parse().unwrap() }
    }

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        texts.iter().map(|text| prefix(text)).collect()
    }

    #[test]
    fn drawn_networks_are_private_and_free() {
        // All but one of 172.16.0.0/12 and the upper half of 10.0.0.0/8 are in use.
        let used = prefixes(&["172.16.0.0/12", "10.0.0.0/9", "fd00::/9", "192.168.0.0/16"]);
        let mut seen = BTreeSet::new();
        for _ in 0..50 {
            let drawn = Subnets::drawn(&used).unwrap();
            let [v4, v6] = drawn.addresses() else { panic!("{drawn:?}") };
            assert!(v4.overlaps(prefix("10.128.0.0/9")) && v4.len == 24, "{v4}");
            assert!(v6.overlaps(prefix("fd80::/9")) && v6.len == 64, "{v6}");
            assert!(v4.addr.to_string().ends_with(".1") && v6.addr.to_string().ends_with("::1"));
            seen.insert(*v4);
        }
        assert!(seen.len() > 40, "they are random: {seen:?}");
        assert!(Subnets::drawn(&prefixes(&["10.0.0.0/8", "172.16.0.0/12"])).is_err());
    }

    #[test]
    fn a_chosen_network_must_be_free_and_have_room() {
        let used = prefixes(&["192.168.1.0/24"]);
        let good = prefixes(&["10.66.0.1/16", "fd00:9::1/64"]);
        assert_eq!(Subnets::chosen(&good, &used).unwrap().addresses(), good);
        for (bad, words) in [
            (&["10.66.0.1/16", "10.67.0.1/16"][..], "at most one"),
            (&["10.66.0.1/31"], "no room"),
            (&["10.66.0.0/16"], "is a network"),
            (&["192.168.0.1/16"], "192.168.1.0/24"),
        ] {
            let error = Subnets::chosen(&prefixes(bad), &used).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn clients_get_addresses_in_turn_until_none_is_left() {
        let subnets = Subnets(prefixes(&["10.66.0.1/29", "fd00:9::1/64"]));
        let mut taken = BTreeSet::new();
        for number in 2..=6 {
            let next = subnets.next(&taken).unwrap();
            let expected =
                prefixes(&[&format!("10.66.0.{number}/29"), &format!("fd00:9::{number}/64")]);
            assert_eq!(next, expected);
            taken.extend(next.iter().map(|prefix| prefix.addr));
        }
        let error = subnets.next(&taken).unwrap_err().to_string();
        assert!(error.contains("10.66.0.0/29") && error.contains("mpt peer remove"), "{error}");
        taken.remove(&"10.66.0.3".parse().unwrap());
        assert!(subnets.next(&taken).is_err(), "its IPv6 address is still taken");
        taken.remove(&"fd00:9::3".parse().unwrap());
        assert_eq!(subnets.next(&taken).unwrap(), prefixes(&["10.66.0.3/29", "fd00:9::3/64"]));
    }

    #[test]
    fn the_server_may_have_any_address() {
        let subnets = Subnets(prefixes(&["10.66.0.2/24"]));
        let first = subnets.next(&BTreeSet::new()).unwrap();
        assert_eq!(first, prefixes(&["10.66.0.1/24"]));
        let taken = first.iter().map(|prefix| prefix.addr).collect();
        assert_eq!(subnets.next(&taken).unwrap(), prefixes(&["10.66.0.3/24"]));
    }
}
