//! Causes in the operator's words: what is seen, and what to do.

use std::net::IpAddr;

use mpt_io::udp::Unreachable;
use mpt_proto::{Drop, FramingFound, Misfit, MismatchKind, ReceiveHalf};

use super::cause::{Cause, Place, Reported};
use crate::tunnel::names::Names;

/// What is seen, and what to do about it.
pub(super) fn words(
    cause: &Cause,
    place: &Place,
    half: Option<&ReceiveHalf>,
    names: &Names,
) -> (String, String) {
    let (remote, host, port) = (place.remote, place.remote.ip(), place.remote.port());
    match *cause {
        Cause::Arrived(kind) => arrived(kind, place, half, names),
        Cause::Icmp(Reported { kind: Unreachable::Port, .. }) => (
            format!("nothing listens on UDP {port} at {host}"),
            "start mpt there, or correct `remote` and `remote_port` here, or `local_port` there"
                .to_owned(),
        ),
        Cause::Icmp(Reported { kind: Unreachable::Prohibited, reporter }) => (
            format!("{} rejects UDP {port} to {host}", reported_by(reporter, "a firewall")),
            format!("let UDP {port} through to {host} in the firewall there"),
        ),
        Cause::Icmp(Reported { kind: Unreachable::Host, reporter }) => (
            format!("{} says that {host} cannot be reached", reported_by(reporter, "a router")),
            "is `remote` right, is that host on, and does a route lead there?".to_owned(),
        ),
        Cause::Deaf => (
            "the peer is heard but does not hear us".to_owned(),
            format!(
                "is UDP {port} blocked towards {host}? Let it through, or correct `remote` and \
                 `remote_port`"
            ),
        ),
        // Who shows an invitation that is none gets no answer, so that the server cannot be found by strangers.
        Cause::Silent if half.is_some_and(ReceiveHalf::waits_for_invitation) => (
            format!("nothing arrives from {remote}, to which this host shows an invitation"),
            format!(
                "is that used or expired? Then the log there says so: make another one by `mpt invite` there, and join with it. If \
                 it does not, is mpt running there, and do firewalls let UDP {port} through both ways?"
            ),
        ),
        Cause::Silent => (
            format!("nothing arrives from {remote}"),
            format!(
                "is mpt running there, is `remote` right at both ends, and do firewalls let UDP \
                 {port} through both ways?{}",
                // A host that does not fit gets no answer.
                match half.is_some_and(ReceiveHalf::is_sealed) {
                    true => {
                        " Does it know the key or invitation of this host, and is the clock right here? Its log says if not"
                    }
                    false => {
                        " Do `peer`, `addresses`, `key` and `framing` fit those there? Its log, and `mpt doctor` there, say if not"
                    }
                }
            ),
        ),
    }
}

/// What arrives.
fn arrived(
    kind: MismatchKind,
    place: &Place,
    half: Option<&ReceiveHalf>,
    names: &Names,
) -> (String, String) {
    let (remote, host, port) = (place.remote, place.remote.ip(), place.remote.port());
    match kind {
        MismatchKind::Key { found } => (
            format!(
                "{host} answers with {}, this connection has {}",
                key(found),
                half.and_then(ReceiveHalf::key).map_or("none".into(), |key| key.to_string())
            ),
            "set the same `key` at both ends, or none".to_owned(),
        ),
        MismatchKind::Addresses { sender, receiver } => (
            format!(
                "{host} says that its tunnel address is {sender} and ours {receiver}, which this \
                 connection does not have"
            ),
            "`peer` at each end names the other end's `addresses`: correct them".to_owned(),
        ),
        MismatchKind::Framing { found: FramingFound::Sealed } if place.connection.is_none() => (
            format!("{host} asks for sealed framing, which no connection here uses with it"),
            "set `public_key` and `private_key_file` here, or remove them there".to_owned(),
        ),
        MismatchKind::Framing { found: FramingFound::Sealed } => (
            format!("{host} asks for sealed framing, which this connection does not use"),
            "set `public_key` and `private_key_file` here, or remove them there".to_owned(),
        ),
        MismatchKind::Handshake(reason) => handshake(host, reason),
        MismatchKind::Framing { found } if half.is_some_and(ReceiveHalf::is_sealed) => (
            format!(
                "{host} sends {} framing without keys, and this connection is sealed",
                match found {
                    FramingFound::Plain => "plain",
                    FramingFound::Extended | FramingFound::Sealed => "extended",
                }
            ),
            "set `public_key` and `private_key_file` there, or remove them here".to_owned(),
        ),
        MismatchKind::Framing { found: FramingFound::Extended } => (
            format!("{host} asks for extended framing, which this connection does not use"),
            "set `framing = \"auto\"` here, or `framing = \"plain\"` there".to_owned(),
        ),
        MismatchKind::Framing { found: FramingFound::Plain } => (
            format!("{host} sends plain framing, which this connection does not accept"),
            "set the same `framing` at both ends".to_owned(),
        ),
        MismatchKind::Version { found } => (
            format!("{host} speaks version {found} of extended framing, which is not known here"),
            "install the same version of mpt at both ends, or set `framing = \"plain\"`".to_owned(),
        ),
        MismatchKind::PeerKind => (
            format!("{host} runs this program, and `peer` here names another kind of peer"),
            "name its tunnel addresses instead: `peer = [...]`".to_owned(),
        ),
        MismatchKind::Foreign(reason) => (
            format!("{host} sends what is no datagram of MPT ({})", reason.name()),
            format!(
                "does a newer mpt, or another program, use UDP {port} at {host}? Set the same `framing` \
                 and ports at both ends"
            ),
        ),
        MismatchKind::Source if half.is_some_and(|half| has_path_to(half, host)) => (
            format!("datagrams of the peer come from {remote}, which matches no path"),
            format!(
                "is `remote_port` wrong? It would be {port}; behind a NAT that changes it, leave `remote` out or use a \
                 template (`[[tunnel.accept]]`)"
            ),
        ),
        MismatchKind::Source if place.connection.is_some() => (
            format!("datagrams of the peer come from {remote}, which matches no path"),
            format!(
                "is `remote` wrong? It would be \"{host}\"; behind a NAT that changes it, leave `remote` \
                 out or use a template (`[[tunnel.accept]]`)"
            ),
        ),
        MismatchKind::Source => (
            format!("datagrams from {remote} match no path"),
            "is `remote` or `peer` of a connection wrong, here or there?".to_owned(),
        ),
        MismatchKind::Unconfirmed => (
            "the peer is heard but does not hear us".to_owned(),
            format!(
                "is UDP {port} blocked towards {host}? Let it through, or correct `remote` and \
                 `remote_port`"
            ),
        ),
        MismatchKind::Template { accept, why: Misfit::Source } if place.connection.is_some() => (
            format!(
                "datagrams of the peer come from {remote}, which is not among the `sources` of template {}",
                names.accept(accept)
            ),
            "add it to `sources` of the template; until then the peer has no path from there"
                .to_owned(),
        ),
        MismatchKind::Template { accept, why } => {
            let name = names.accept(accept);
            let (why, remedy) = misfit(why, remote.ip());
            (format!("{remote} asks to connect and does not fit template {name}: {why}"), remedy)
        }
    }
}

/// Whether a connection has a path to this host, so that only the port is another one.
fn has_path_to(half: &ReceiveHalf, host: IpAddr) -> bool {
    half.paths().any(|path| half.remote(path).1.ip() == host)
}

/// Why a handshake of sealed framing comes to nothing.
#[expect(clippy::wildcard_enum_match_arm, reason = "only drops of handshakes come here")]
fn handshake(host: IpAddr, reason: Drop) -> (String, String) {
    match reason {
        Drop::HandshakeMac => (
            format!("{host} takes this host for one with another public key"),
            "set `public_key` there to what `mpt pubkey` prints for `private_key_file` here, or join here with a new \
             invitation of it"
                .into(),
        ),
        Drop::HandshakeUnknown => (
            format!("{host} has a public key that no connection here has"),
            "set `public_key` here to what `mpt pubkey` prints for `private_key_file` there, or add the client by \
             `mpt peer add`, or by a new invitation (`mpt invite`)"
                .into(),
        ),
        Drop::HandshakeInvitation => (
            format!("the invitation that {host} has is used, expired, or not of this host"),
            "make another one with `mpt invite`, and join with it there".into(),
        ),
        Drop::HandshakeForged => (
            format!("handshakes of {host} are not authentic"),
            "set the same preshared key at both ends, or none".into(),
        ),
        Drop::HandshakeReplay => (
            format!("handshakes of {host} are older than its last one"),
            "is the clock there right? It has gone back; wait, or restart mpt here".into(),
        ),
        _ => (
            format!("{host} and this host do not agree about versions, keys, ciphers or tunnel addresses"),
            "install the same version of mpt at both ends, and set `key`, `peer`, `addresses` and the ciphers to \
             fit"
            .into(),
        ),
    }
}

/// Why somebody does not fit a template.
fn misfit(why: Misfit, host: IpAddr) -> (String, String) {
    match why {
        Misfit::Key(found) => (
            format!("it has {}", key(found)),
            "set the same `key` in the template and at the peer, or none".to_owned(),
        ),
        Misfit::Peer(peer) => (
            format!("its tunnel address {peer} is not among the `peers`"),
            "correct `peers` of the template, or `addresses` at the peer".to_owned(),
        ),
        Misfit::Own(own) => (
            format!("it takes {own} for the tunnel address of this host"),
            "correct `peer` at the peer, or `addresses` of this tunnel".to_owned(),
        ),
        Misfit::Source => (
            format!("{host} is not among the `sources`"),
            "correct `sources` of the template".to_owned(),
        ),
        Misfit::Framing => (
            "the template does not use its framing".to_owned(),
            "set `framing = \"auto\"` in the template or at the peer".to_owned(),
        ),
        Misfit::Taken(peer) => (
            format!("its tunnel address {peer} belongs to another connection"),
            "give the peer an address of its own".to_owned(),
        ),
    }
}

fn key(found: Option<u32>) -> String {
    found.map_or("no GRE key".to_owned(), |key| format!("GRE key {key}"))
}

/// Who says so.
fn reported_by(reporter: Option<IpAddr>, otherwise: &str) -> String {
    reporter.map_or(otherwise.to_owned(), |reporter| reporter.to_string())
}
