//! Names in a request: which tunnel, connection and path are meant.

use mpt_control::{ErrorKind, Reply};

use crate::config::{Connection, Settings};

/// Most names given for choice in an answer.
const MAX_LISTED: usize = 10;

/// The connection of that name, or the only one.
///
/// # Errors
///
/// A refusal that names what there is.
pub(super) fn connection<'s>(
    settings: &'s Settings,
    name: Option<&str>,
) -> Result<&'s Connection, Reply> {
    let all = || settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let refuse = |message| Err(Reply::error(ErrorKind::NoSuchConnection, message));
    let there = || list(all().map(|connection| connection.name.as_str()));
    match (name, all().count()) {
        (None, 1) => all().next().map_or_else(|| refuse("no connection".into()), Ok),
        (None, _) => refuse(format!("name one with --connection: {}", there())),
        (Some(name), _) => match all().find(|connection| connection.name == name) {
            Some(connection) => Ok(connection),
            None => refuse(format!("no connection `{name}`: {}", there())),
        },
    }
}

/// The name of the tunnel, or of the only one.
///
/// # Errors
///
/// A refusal that names what there is.
pub(super) fn tunnel<'s>(settings: &'s Settings, name: Option<&str>) -> Result<&'s str, Reply> {
    let names = || settings.tunnels.iter().map(|tunnel| tunnel.name.as_str());
    let refuse = |message| Err(Reply::error(ErrorKind::NoSuchConnection, message));
    match (name, settings.tunnels.as_slice()) {
        (None, [only]) => Ok(&only.name),
        (None, _) => refuse(format!("name one with --tunnel: {}", list(names()))),
        (Some(name), _) => match names().find(|other| *other == name) {
            Some(name) => Ok(name),
            None => refuse(format!("no tunnel `{name}`: {}", list(names()))),
        },
    }
}

/// The names of the connection and the path that are meant, if that is one. `unlisted` are paths beside those
/// of the settings, each after the name of its connection.
///
/// # Errors
///
/// A refusal that names what there is.
pub(super) fn path(
    settings: &Settings,
    unlisted: &[(String, String)],
    connection: Option<&str>,
    path: &str,
) -> Result<(String, String), Reply> {
    let all = || {
        let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
        let listed = connections.flat_map(|owner| {
            owner.paths.iter().map(move |path| (owner.name.as_str(), path.name.as_str()))
        });
        listed.chain(unlisted.iter().map(|(owner, path)| (owner.as_str(), path.as_str())))
    };
    let wanted = |&(owner, other): &(&str, &str)| {
        other == path && connection.is_none_or(|connection| owner == connection)
    };
    let found: Vec<_> = all().filter(wanted).collect();
    match found.as_slice() {
        [(owner, path)] => Ok(((*owner).to_owned(), (*path).to_owned())),
        [] => {
            let refuse = |kind, message| Err(Reply::error(kind, message));
            // A connection whose peer has not come yet has no path.
            let connections = || settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
            let owners = || {
                let configured = connections().map(|connection| connection.name.as_str());
                configured.chain(all().map(|(owner, _)| owner))
            };
            match connection {
                Some(connection) if !owners().any(|owner| owner == connection) => {
                    let there = list(owners());
                    let message = format!("no connection `{connection}`: {there}");
                    refuse(ErrorKind::NoSuchConnection, message)
                }
                connection => {
                    let of = |(owner, _): &(&str, &str)| {
                        connection.is_none_or(|connection| *owner == connection)
                    };
                    let there = list(all().filter(of).map(|(_, path)| path));
                    let message = format!("no path `{path}`: {there}");
                    refuse(ErrorKind::NoSuchPath, message)
                }
            }
        }
        several => {
            let connections = each(several.iter().map(|(owner, _)| *owner)).join(", ");
            let message = format!(
                "several connections have a path `{path}`: name the connection too ({connections})"
            );
            Err(Reply::error(ErrorKind::AmbiguousPath, message))
        }
    }
}

/// Which ones there are, or that there is none.
pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    match each(names)[..] {
        [] => "there is none".to_owned(),
        [only] => format!("there is {only}"),
        ref several => format!("there are {}", several.join(", ")),
    }
}

/// The names, each once, in their order.
fn each<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut listed: Vec<&str> = Vec::new();
    for name in names {
        if !listed.contains(&name) {
            if listed.len() == MAX_LISTED {
                listed.push("...");
                break;
            }
            listed.push(name);
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_whose_peer_has_not_come_is_there_and_has_no_path() {
        let text = "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24']\n[[tunnel.connection]]\n\
                    name = 'van'\npeer = ['10.9.0.1']\n";
        let settings = crate::config::parse_running(text).expect("settings");
        for (connection, kind, words) in [
            (Some("van"), ErrorKind::NoSuchPath, "no path `eth0`: there is none"),
            (None, ErrorKind::NoSuchPath, "no path `eth0`: there is none"),
            (Some("home"), ErrorKind::NoSuchConnection, "no connection `home`: there is van"),
        ] {
            let refusal = path(&settings, &[], connection, "eth0").expect_err("no such path");
            assert_eq!(refusal, Reply::error(kind, words));
        }
    }
}
