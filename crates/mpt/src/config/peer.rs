//! What the peer of a connection is, and which tunnel addresses it has.

use std::net::IpAddr;

use mpt_proto::PeerKind;
use toml::Spanned;
use toml::de::DeValue;

use super::distinct::Distinct;
use super::report::{Problem, Problems};
use super::table::Table;
use super::value::{Kind as _, Value, one_of};
use super::{Match, Prefix, address, value};

/// The kinds by the words that the file has for them.
const KINDS: [(&str, PeerKind); 3] = [
    (PeerKind::Mpt.name(), PeerKind::Mpt),
    (PeerKind::Original.name(), PeerKind::Original),
    (PeerKind::Gre.name(), PeerKind::Gre),
];

/// What could stand in the file as tunnel addresses.
const EXAMPLE: &str = "[\"10.9.0.2\"]";

/// What `peer` says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) kind: PeerKind,
    /// The key under which its tunnel addresses stand.
    key: &'static str,
}

/// The kind of the peer in the connection of `table`, or `None` with what is wrong noted.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems) -> Option<Peer> {
    let peer = table.required("peer", EXAMPLE, "", problems, peer)?;
    if peer.key == "peer" && table.has("peer_addresses") {
        problems.push(
            Problem::new("two lists of the peer's tunnel addresses", table.span_of("peer_addresses"))
                .label("one too many")
                .other(table.span_of("peer"), "the other one")
                .help("`peer` is either the list, or the kind of the peer: \"mpt\", \"mpt-original\" or \"gre\""),
        );
        return None;
    }
    Some(peer)
}

fn peer(value: &Value<'_>, problems: &mut Problems) -> Option<Peer> {
    if let DeValue::Array(_) = value.get() {
        return Some(Peer { kind: PeerKind::Mpt, key: "peer" });
    }
    if value.get().as_str().is_none_or(|text| text.parse::<IpAddr>().is_ok()) {
        problems.push(
            value
                .wrong_type("an array, or the kind of the peer")
                .help("put square brackets around the peer's tunnel addresses"),
        );
        return None;
    }
    let kind = one_of(&KINDS).read(value, problems)?;
    Some(Peer { kind, key: "peer_addresses" })
}

impl Peer {
    /// The peer's tunnel addresses, or `None` with what is wrong noted. `own` are the tunnel's own, if
    /// they are sound, and `selector` is the connection's.
    pub(super) fn addresses(
        self,
        table: &Table<'_>,
        own: Option<&[Prefix]>,
        selector: &Option<Option<Match>>,
        distinct: &mut Distinct,
        problems: &mut Problems,
    ) -> Option<Vec<IpAddr>> {
        let list = value::list(address::address);
        let addresses = table.required(self.key, EXAMPLE, "", problems, list)?;
        let addresses = table.with_places(self.key, &addresses);
        if addresses.is_empty() {
            problems.push(
                Problem::new("the peer has no tunnel address", table.span_of(self.key))
                    .label("empty")
                    .help(format!("name at least one: `{} = {EXAMPLE}`", self.key)),
            );
            return None;
        }
        self.check_versions(&addresses, problems);
        distinct.peer(&addresses, selector, table.span_of("match"), problems);
        let addresses: Vec<IpAddr> = addresses.into_iter().map(Spanned::into_inner).collect();
        if let Some(own) = own {
            let meets =
                |own: &Prefix| addresses.iter().any(|peer| peer.is_ipv4() == own.addr.is_ipv4());
            if !own.iter().any(meets) {
                problems.push(
                    Problem::new(
                        "peer and tunnel have no IP version in common",
                        table.span_of(self.key),
                    )
                    .label("none of these is of the version of the tunnel's `addresses`")
                    .help("give both a tunnel address of the same IP version"),
                );
            }
        }
        Some(addresses)
    }

    /// PathUpdates a `match` that such a peer cannot have the other end of.
    pub(super) fn check_match(self, table: &Table<'_>, problems: &mut Problems) {
        if self.kind == PeerKind::Original && table.has("match") {
            problems.push(
                Problem::new("`match` towards an original MPT", table.span_of("match"))
                    .label("it has one connection for all packets")
                    .help(
                        "remove `match`: the original identifies a connection by its tunnel \
                        addresses, so there is one per peer",
                    ),
            );
        }
    }

    fn check_versions(self, addresses: &[Spanned<IpAddr>], problems: &mut Problems) {
        if self.kind == PeerKind::Original {
            if let [first, second, ..] = addresses {
                problems.push(
                    Problem::new("two tunnel addresses of an original MPT", second.span())
                        .label("one too many")
                        .other(first.span(), "the first one")
                        .help(
                            "its connections carry one IP version each: configure a connection \
                            for each address",
                        ),
                );
            }
            return;
        }
        for (place, address) in addresses.iter().enumerate() {
            let addr = *address.get_ref();
            let same = |other: &&Spanned<IpAddr>| {
                other.get_ref().is_ipv4() == addr.is_ipv4() && *other.get_ref() != addr
            };
            if let Some(other) = addresses[..place].iter().find(same) {
                problems.push(
                    Problem::new("two peer addresses of one IP version", address.span())
                        .label("one too many")
                        .other(other.span(), "the first one")
                        .help("a peer has at most one IPv4 and one IPv6 tunnel address; list what is behind it in `networks`"),
                );
            }
        }
    }

    /// PathUpdates the networks that such a peer cannot carry, beside its tunnel address.
    pub(super) fn check_networks(
        self,
        networks: &[Spanned<Prefix>],
        addresses: &[IpAddr],
        table: &Table<'_>,
        problems: &mut Problems,
    ) {
        let [peer] = addresses else { return };
        if self.kind != PeerKind::Original {
            return;
        }
        for network in networks {
            if network.get_ref().addr.is_ipv4() != peer.is_ipv4() {
                problems.push(
                    Problem::new("a network of another IP version than the peer", network.span())
                        .label("never carried")
                        .other(table.span_of(self.key), "the connection is of this version")
                        .help("a connection of the original MPT carries one IP version: give the network to a connection of its own"),
                );
            }
        }
    }
}
