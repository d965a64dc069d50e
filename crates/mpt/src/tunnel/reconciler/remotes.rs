//! Where the peer of a path may be: one address, or those that a name stands for, in turn.

use std::net::IpAddr;
use std::time::Instant;

use crate::config::{self, Found, Remote};
use crate::netmon::{NetMonitor, Resolved};

/// Where the peer may be on a path, best first: see [`in_turn`].
///
/// # Errors
///
/// Why that is not known.
pub(super) fn remotes(
    path: &config::Path,
    netmon: &mut NetMonitor,
    now: Instant,
    current: Option<IpAddr>,
    doubted: bool,
) -> Result<Vec<IpAddr>, String> {
    let name = match &path.remote {
        Remote::Address(address) => return Ok(vec![*address]),
        Remote::Name(name) => name,
    };
    let addresses = match netmon.names.resolve(name, now) {
        Resolved::Addresses(addresses) => addresses,
        Resolved::Failed(reason) => return Err(format!("{name} cannot be resolved: {reason}")),
        Resolved::Asking => return Err(format!("{name} is being resolved")),
    };
    let fits = |address: IpAddr| {
        path.local.is_none_or(|local| local.is_ipv4() == address.is_ipv4())
            && path.found.is_none_or(|found| found.leads_to(address))
    };
    let mut remotes = in_turn(addresses, fits, current, doubted);
    // Some name servers leave out one IP version at times.
    remotes.extend(current.filter(|_| remotes.is_empty() && path.found.is_some() && !doubted));
    if remotes.is_empty() { Err(no_address(path)) } else { Ok(remotes) }
}

/// Those addresses of a name that fit: first where the peer is now, as long as the
/// name stands for that and unless that is `doubted`; then the others in their order, and round again.
fn in_turn(
    mut addresses: Vec<IpAddr>,
    fits: impl Fn(IpAddr) -> bool,
    current: Option<IpAddr>,
    doubted: bool,
) -> Vec<IpAddr> {
    addresses.retain(|address| fits(*address));
    let place = addresses.iter().position(|address| Some(*address) == current);
    if let Some(place) = place {
        let first = (place + usize::from(doubted)) % addresses.len();
        addresses.rotate_left(first);
    }
    addresses
}

/// That a name stands for nothing that fits.
pub(super) fn no_address(path: &config::Path) -> String {
    match path.found {
        Some(Found::V4) => format!("{} has no IPv4 address", path.remote),
        Some(Found::V6) => format!("{} has no IPv6 address", path.remote),
        None => format!("{} has no address of the IP version of `local`", path.remote),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn turn(local: Option<&str>, current: Option<&str>, doubted: bool) -> String {
        let addresses = NAME.split(' ').map(ip).collect();
        let fits =
            |address: IpAddr| local.is_none_or(|local| ip(local).is_ipv4() == address.is_ipv4());
        let turn = in_turn(addresses, fits, current.map(ip), doubted);
        turn.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_current_address_stays_first_until_the_peer_is_silent() {
        assert_eq!(turn(None, None, false), NAME, "in the order of the name");
        let second = "192.0.2.1 192.0.2.2 192.0.2.3 2001:db8::1";
        assert_eq!(turn(None, Some("192.0.2.1"), false), second);
        assert_eq!(turn(None, Some("2001:db8::1"), true), second, "the next one's turn");
        assert_eq!(turn(None, Some("192.0.2.3"), true), NAME, "and round again");
        assert_eq!(turn(None, Some("192.0.2.9"), true), NAME, "it stands for others by now");
    }

    #[test]
    fn only_addresses_of_the_local_version_are_tried() {
        let local = Some("192.0.2.77");
        assert_eq!(turn(local, None, false), "192.0.2.1 192.0.2.2 192.0.2.3");
        assert_eq!(turn(local, Some("192.0.2.3"), true), "192.0.2.1 192.0.2.2 192.0.2.3");
        assert_eq!(turn(Some("2001:db8::77"), Some("2001:db8::1"), true), "2001:db8::1");
        assert!(in_turn(vec![ip("192.0.2.1")], |_| false, None, true).is_empty());
    }

    #[test]
    fn every_address_is_tried_while_nothing_is_heard() {
        let addresses: Vec<IpAddr> = NAME.split(' ').map(ip).collect();
        let mut current = None;
        let tried = (0..8).map(|_| {
            current =
                in_turn(addresses.clone(), |_| true, current, current.is_some()).first().copied();
            current.unwrap()
        });
        assert_eq!(tried.collect::<Vec<_>>(), [addresses.clone(), addresses.clone()].concat());
    }
}
