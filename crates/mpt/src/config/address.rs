//! Reading addresses and prefixes: those that a host or a network can have.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Prefix;
use super::report::Problems;
use super::value::{Value, text};

/// An IP address of one host.
pub(super) fn address(value: &Value<'_>, problems: &mut Problems) -> Option<IpAddr> {
    let text = text(value, problems)?;
    let (fault, help) = match text.parse::<IpAddr>() {
        Err(_) => not_an_address(text),
        Ok(address) => match unusable(address) {
            Some(fault) => fault,
            None => return Some(address),
        },
    };
    problems.push(value.impossible(fault).help(help));
    None
}

fn not_an_address(text: &str) -> (&'static str, String) {
    if let Some((address, _)) = text.split_once('/')
        && address.parse::<IpAddr>().is_ok()
    {
        return ("a prefix, not an address", format!("write \"{address}\""));
    }
    if let Ok(socket) = text.parse::<SocketAddr>() {
        let help = format!("write \"{}\"; the port belongs to the connection", socket.ip());
        return ("an address with a port", help);
    }
    ("not an IP address", "write an address such as \"203.0.113.5\" or \"2001:db8::5\"".into())
}

/// Why no single host can have that address.
fn unusable(address: IpAddr) -> Option<(&'static str, String)> {
    let mapped = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => address.to_ipv4_mapped(),
    };
    if let Some(mapped) = mapped {
        Some(("an IPv4 address in IPv6 form", format!("write \"{mapped}\"")))
    } else if address.is_unspecified() {
        Some(("is the unspecified address", "name the address of one host".into()))
    } else if address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        Some(("is a multicast or broadcast address", "name the address of one host".into()))
    } else {
        None
    }
}

/// An own address with the length of its subnet: `10.9.0.1/24`.
pub(super) fn prefix(value: &Value<'_>, problems: &mut Problems) -> Option<Prefix> {
    let text = text(value, problems)?;
    let prefix = match parse_prefix(text) {
        Ok(prefix) => prefix,
        Err((fault, help)) => {
            problems.push(value.impossible(fault).help(help));
            return None;
        }
    };
    if let Some((fault, help)) = unusable(prefix.addr).or_else(|| not_an_own_one(prefix)) {
        problems.push(value.impossible(fault).help(help));
        return None;
    }
    Some(prefix)
}

/// Why no tunnel can have that address in a subnet of that length.
fn not_an_own_one(Prefix { addr, len }: Prefix) -> Option<(&'static str, String)> {
    if addr.is_loopback() {
        let help =
            "choose an address from a network that is used nowhere else, such as \"10.9.0.1/24\"";
        return Some(("is a loopback address", help.into()));
    }
    let usual = if addr.is_ipv4() { 24 } else { 64 };
    if len == 0 {
        let help = format!("write the length of the tunnel's subnet, such as \"{addr}/{usual}\"");
        return Some(("its subnet would be all addresses", help));
    }
    let IpAddr::V4(addr) = addr else { return None };
    // A subnet of two addresses has no others (RFC 3021).
    let host = u32::MAX.checked_shr(u32::from(len)).filter(|_| len < 31)?;
    let (bits, first) = (u32::from(addr) & host, u32::from(addr) & !host | 1);
    let fault = match bits {
        0 => "is the subnet, not an address in it",
        _ if bits == host => "is the broadcast address of its subnet",
        _ => return None,
    };
    Some((
        fault,
        format!("name the address of this host, such as \"{}/{len}\"", Ipv4Addr::from(first)),
    ))
}

/// A network: a prefix with no bit set beyond its length.
pub(super) fn network(value: &Value<'_>, problems: &mut Problems) -> Option<Prefix> {
    let text = text(value, problems)?;
    let (fault, help) = match parse_prefix(text) {
        Err((fault, help)) => (fault, help),
        Ok(prefix) if prefix.network() != prefix => (
            "the address has bits beyond the prefix length".into(),
            format!("write \"{}\", or \"{}\" for the host alone", prefix.network(), {
                Prefix { len: Prefix::max_len(prefix.addr), ..prefix }
            }),
        ),
        Ok(prefix) if prefix.addr.is_loopback() => (
            "is the loopback network of this host".into(),
            "name a network behind the peer, such as \"192.168.7.0/24\"".into(),
        ),
        Ok(prefix) => return Some(prefix),
    };
    problems.push(value.impossible(fault).help(help));
    None
}

fn parse_prefix(text: &str) -> Result<Prefix, (String, String)> {
    let example = || "write a prefix such as \"10.9.0.1/24\" or \"fd00:9::1/64\"".to_owned();
    let (addr, len) = match text.split_once('/') {
        Some((addr, len)) => (addr, Some(len)),
        None => (text, None),
    };
    let Ok(addr) = addr.parse::<IpAddr>() else {
        return Err(("not an IP address with prefix length".into(), example()));
    };
    let max = Prefix::max_len(addr);
    let usual = if addr.is_ipv4() { 24 } else { 64 };
    let Some(len) = len else {
        let help = format!("write \"{addr}/{usual}\", or \"{addr}/{max}\" for the host alone");
        return Err(("has no prefix length".into(), help));
    };
    // `parse` would take a sign.
    let digits = !len.is_empty() && len.bytes().all(|byte| byte.is_ascii_digit());
    match len.parse::<u8>() {
        Ok(len) if digits && len <= max => Ok(Prefix { addr, len }),
        _ if digits => {
            let fault = format!("the prefix length is more than {max}");
            Err((fault, format!("allowed: /0 to /{max}")))
        }
        _ => Err(("the prefix length is not a number".into(), example())),
    }
}
