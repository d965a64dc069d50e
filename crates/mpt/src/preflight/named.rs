//! Looking at what the settings name besides interfaces and addresses of paths: files of keys, clients, sockets and
//! addresses at which the daemon serves. The judges are those of the daemon.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use anyhow::Error;
use mpt_proto::AcceptId;
use nix::unistd::User;

use super::facts::{Fault, Of};
use super::holder;
use crate::clients::Clients;
use crate::config::{Accept, Connection, Listen, Prefix, Settings, Tunnel};
use crate::keys;

/// What is wrong with it. Where a daemon runs, what it serves is there.
pub(super) fn faults(settings: &Settings, daemon: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !daemon {
        faults.extend(services(settings));
    }
    for tunnel in &settings.tunnels {
        faults.extend(private_key(tunnel, settings.daemon.user.as_deref()));
        let own = keys::public_key(tunnel).ok().flatten();
        for connection in &tunnel.connections {
            faults.extend(peer_keys(connection));
            if own.is_some() && connection.public_key == own {
                faults.push(Fault {
                    of: Of::Connection(connection.name.clone()),
                    what: format!("`public_key` of {} is that of this host", connection.name),
                    fix: "write what `mpt pubkey` prints at the peer".to_owned(),
                });
            }
        }
        for accept in &tunnel.accepts {
            faults.extend(clients(tunnel, accept));
        }
    }
    faults.extend(state_dir(settings));
    faults
}

/// The sockets at which it would serve.
fn services(settings: &Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(socket(&settings.control.socket, "`socket` in [control]"));
    faults.extend(settings.metrics.listen.and_then(|at| address(at, "`listen` in [metrics]")));
    faults.extend(match &settings.web.listen {
        Some(Listen::Address(at)) => address(*at, "`listen` in [web]"),
        Some(Listen::Socket(path)) => socket(path, "`listen` in [web]"),
        None => None,
    });
    faults
}

fn socket(path: &Path, setting: &str) -> Option<Fault> {
    let fault = |what, fix| Some(Fault { of: Of::Start, what, fix });
    let folder = path.parent().unwrap_or(Path::new("/"));
    // One that is missing is made, if only that is missing.
    let above = folder.parent().unwrap_or(folder);
    let (folder, above) = (folder.display(), [folder, above].map(fs::metadata));
    match &above {
        [Ok(of), _] if !of.is_dir() => {
            return fault(format!("{folder} is not a folder"), format!("set another {setting}"));
        }
        [Err(first), Err(second)]
            if [first, second].map(io::Error::kind) == [ErrorKind::NotFound; 2] =>
        {
            return fault(format!("there is no folder {folder}"), format!("mkdir -p {folder}"));
        }
        _ => {}
    }
    let of = fs::symlink_metadata(path).ok()?;
    let path = path.display();
    match of.file_type().is_socket() {
        true => None,
        false => fault(
            format!("{path} exists and is not a socket"),
            format!("remove it, or set another {setting}"),
        ),
    }
}

fn address(at: SocketAddr, setting: &str) -> Option<Fault> {
    let error = TcpListener::bind(at).err()?;
    let (what, fix) = if error.kind() == ErrorKind::AddrInUse {
        let by = holder::of_tcp(at).map(|holder| format!(" by {holder}")).unwrap_or_default();
        let port = at.port();
        let fix =
            format!("ss -ltnp 'sport = :{port}'  (end that program, or set another {setting})");
        (format!("TCP {at} is in use{by}"), fix)
    } else {
        (format!("cannot listen at {at}: {error}"), format!("set another {setting}"))
    };
    Some(Fault { of: Of::Start, what, fix })
}

fn private_key(tunnel: &Tunnel, user: Option<&str>) -> Option<Fault> {
    let path = tunnel.private_key_file.as_deref()?;
    let shown = path.display();
    if let Err(error) = keys::private_key(path) {
        let make = format!("(umask 077; mpt genkey > {shown})");
        return file(Of::Start, &error, &make);
    }
    // Only its owner can read it.
    let user = User::from_name(user?).ok()??;
    let owner = fs::metadata(path).ok()?.uid();
    (!user.uid.is_root() && owner != user.uid.as_raw()).then(|| Fault {
        of: Of::Start,
        what: format!("user {}, to which the daemon switches, cannot read {shown}", user.name),
        fix: format!("chown {} {shown}", user.name),
    })
}

fn peer_keys(connection: &Connection) -> Option<Fault> {
    let error = keys::peer_keys(connection).err()?;
    file(Of::Connection(connection.name.clone()), &error, "copy the peer's file there")
}

/// What is wrong with a file; nothing that concerns only the user who looks. `missing` is what to do if it is missing.
fn file(of: Of, error: &Error, missing: &str) -> Option<Fault> {
    let kind = error.root_cause().downcast_ref().map(io::Error::kind);
    let text = format!("{error:#}");
    match kind {
        Some(ErrorKind::PermissionDenied) => None,
        Some(ErrorKind::NotFound) => {
            Some(Fault { of, what: text.replace(": ", ", "), fix: missing.to_owned() })
        }
        _ => {
            let (what, fix) = text.split_once(": ").unwrap_or((&text, "correct it"));
            Some(Fault { of, what: what.to_owned(), fix: fix.to_owned() })
        }
    }
}

/// The clients that a template knows by their keys.
fn clients(tunnel: &Tunnel, accept: &Accept) -> Vec<Fault> {
    let Some(folder) = &accept.folder else { return Vec::new() };
    let mut clients = Clients::new(folder, AcceptId(0));
    let changes = match clients.reload(&mut 0, &claimed(tunnel)) {
        Ok(changes) => changes,
        Err(error) => {
            let make = format!("mkdir {}", folder.display());
            return file(Of::Start, &error, &make).into_iter().collect();
        }
    };
    let of = || Of::Client(accept.name.clone());
    let faults = changes.faults.iter().map(|fault| match fault.trim_end().split_once('\n') {
        Some((what, report)) => {
            let fix = format!("correct it\n    {}", report.replace('\n', "\n    "));
            Fault { of: of(), what: what.to_owned(), fix }
        }
        None => {
            // The place, what is wrong there, and what to do.
            let (what, fix) = fault.rsplit_once(": ").unwrap_or((fault, "correct it"));
            Fault { of: of(), what: what.to_owned(), fix: fix.to_owned() }
        }
    });
    let faults: Vec<Fault> = faults.collect();
    let secrets = clients.iter().filter_map(|(_, client)| client.preshared_key_file.as_deref());
    let secrets = secrets.filter_map(|path| {
        file(of(), &keys::preshared_key(path).err()?, "copy the client's file there")
    });
    faults.into_iter().chain(secrets).collect()
}

/// The inner addresses that no client can have, and whose they are.
fn claimed(tunnel: &Tunnel) -> Vec<(Prefix, String)> {
    let host = |addr: IpAddr| Prefix { addr, len: Prefix::max_len(addr) };
    let own = tunnel.addresses.iter().map(|own| (host(own.addr), "this host".to_owned()));
    let connections = tunnel.connections.iter().flat_map(|connection| {
        let networks = connection.networks.iter().filter(|network| !network.is_default());
        let claims = connection.peer.iter().map(|peer| host(*peer)).chain(networks.copied());
        claims.map(|claim| (claim, format!("connection {}", connection.name)))
    });
    own.chain(connections).collect()
}

fn state_dir(settings: &Settings) -> Option<Fault> {
    let connections = || settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let of_paths = connections().flat_map(|connection| &connection.paths).map(|it| it.quota);
    let of_uplinks = connections().flat_map(|connection| &connection.uplinks).map(|it| it.quota);
    of_paths.chain(of_uplinks).flatten().next()?;
    let folder = &settings.daemon.state_dir;
    (!fs::metadata(folder).ok()?.is_dir()).then(|| Fault {
        of: Of::Quotas,
        what: format!("{} is not a folder", folder.display()),
        fix: "remove it, or set another `state_dir` in [daemon]".to_owned(),
    })
}
