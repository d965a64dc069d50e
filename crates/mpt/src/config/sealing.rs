//! Keys: what a connection needs so that it can be sealed, and what contradicts that.

use mpt_proto::{PeerKind, PublicKey};

use super::report::{Problem, Problems};
use super::table::Table;
use super::{ConnectionRead, Framing, PoliciesRead};

/// Which framing follows from the keys of the connection in `table`.
pub(super) fn read(
    table: &Table<'_>,
    peer_kind: PeerKind,
    read: &ConnectionRead,
    policies: &mut PoliciesRead,
    problems: &mut Problems,
) {
    let has_key = table.has("public_key");
    let Some(framing) = policies.framing else { return };
    if has_key && peer_kind != PeerKind::Mpt {
        let what = format!("`public_key` of a peer of kind `{}`", peer_kind.name());
        let problem = Problem::new(what, table.span_of("public_key"));
        problems
            .push(problem.label("it understands plain framing only").help("remove `public_key`"));
    } else if has_key {
        let is_written = table.has("framing");
        if is_written && matches!(framing, Framing::Plain | Framing::Extended) {
            let problem =
                Problem::new("keys of a connection that is not sealed", table.span_of("framing"));
            let label = "with keys nothing but sealed datagrams are sent";
            problems.push(problem.label(label).help("remove `framing`, or `public_key`"));
        }
        policies.framing = Some(Framing::Sealed);
    } else if framing == Framing::Sealed {
        let problem = Problem::new("a sealed connection without a key", table.span_of("framing"));
        let help = "add `public_key`, what `mpt pubkey` prints at the peer, and to the tunnel `private_key_file`";
        problems.push(problem.label("needs the public key of the peer").help(help));
    }
    if read.invitation_file.as_ref().is_some_and(Option::is_some) && !has_key {
        let problem =
            Problem::new("an invitation without a host", table.span_of("invitation_file"));
        let help =
            "add `public_key`, what `mpt pubkey` prints at the host that has invited this one";
        problems.push(problem.label("it is used together with `public_key`").help(help));
    }
    if read.preshared_key_file.as_ref().is_some_and(Option::is_some) && !has_key {
        let problem = Problem::new("a pre-shared key alone", table.span_of("preshared_key_file"));
        let help = "add `public_key`, what `mpt pubkey` prints at the peer";
        problems.push(problem.label("it is used together with `public_key`").help(help));
    }
}

/// Which framing the connections of the template in `table` have; `has_folder` if their peers are known by keys.
pub(super) fn template(
    table: &Table<'_>,
    has_folder: bool,
    policies: &mut PoliciesRead,
    problems: &mut Problems,
) {
    let Some(framing) = policies.framing else { return };
    if !has_folder {
        if framing == Framing::Sealed {
            let problem = Problem::new("sealed connections without keys", table.span_of("framing"));
            let label = "needs the public keys of the peers";
            let help =
                "name a folder of clients, `peers = \"/etc/mpt/peers.d\"`, or remove `framing`";
            problems.push(problem.label(label).help(help));
        }
        return;
    }
    if table.has("framing") && framing != Framing::Sealed {
        let problem =
            Problem::new("keys of connections that are not sealed", table.span_of("framing"));
        let label = "with keys nothing but sealed datagrams are sent";
        problems.push(problem.label(label).help("remove `framing`, or list prefixes in `peers`"));
    }
    policies.framing = Some(Framing::Sealed);
    for key in ["max_connections", "max_rate"] {
        if table.has(key) {
            let problem = Problem::new(format!("`{key}` of clients with keys"), table.span_of(key));
            let label = "bounds templates without keys";
            let help = format!(
                "remove `{key}`: each file in the folder is one client, and what handshakes cost is bounded"
            );
            problems.push(problem.label(label).help(help));
        }
    }
}

/// Whether the connections of a tunnel can be sealed that are to be.
pub(super) fn check(
    table: &Table<'_>,
    keys: &[Option<PublicKey>],
    has_folder: bool,
    has_private_key: bool,
    problems: &mut Problems,
) {
    let named: Vec<_> = keys.iter().flatten().collect();
    if (!named.is_empty() || has_folder) && !has_private_key && !table.has("private_key_file") {
        let problem = Problem::new("a tunnel without a private key", table.span());
        let help =
            "make a key with `mpt genkey`, and add `private_key_file = \"/etc/mpt/private.key\"`";
        let label = if has_folder {
            "a template has a folder of clients with keys"
        } else {
            "a connection has a `public_key`"
        };
        problems.push(problem.label(label).help(help));
    }
    let repeated = (1..named.len()).find(|&at| named[..at].contains(&named[at]));
    if repeated.is_some() {
        let problem = Problem::new("two connections with the same `public_key`", table.span());
        problems.push(
            problem.label("peers are known by their keys").help("give each peer a key of its own"),
        );
    }
}
