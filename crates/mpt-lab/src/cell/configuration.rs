//! The configuration files of the two daemons, as an experiment wants them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::Serialize;

use super::keys::{self, KeyFiles};
use super::{Framing, Profile, Reorder, Scheduler};
use crate::topology::{Addressing, IpVersion, Side, Topology};

/// The name of the tunnel and its device, in either host.
pub const TUNNEL: &str = "mpt0";

/// The name of the rival's tunnel.
const RIVAL: &str = "mpt1";

/// The UDP port of both daemons: that of RFC 8086. The rival's tunnel has the next one.
const PORT: u16 = 4754;

/// The address of a host inside the tunnel.
pub fn inner_address(side: Side, version: IpVersion) -> IpAddr {
    numbered_address(0, side, version)
}

/// The address of a host inside the rival's tunnel.
pub fn rival_address(side: Side, version: IpVersion) -> IpAddr {
    numbered_address(1, side, version)
}

/// The address of a host inside the tunnel of that number.
fn numbered_address(number: u8, side: Side, version: IpVersion) -> IpAddr {
    let host = match side {
        Side::Left => 1,
        Side::Right => 2,
    };
    match version {
        IpVersion::V4 => Ipv4Addr::new(10, 9, number, host).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd00, 9, number.into(), 0, 0, 0, 0, host.into()).into(),
    }
}

/// The configuration of the daemon on one side, with these keys if it is sealed. The caller that starts it says where it
/// listens for control, and keeps the files.
pub fn configuration(
    topology: &Topology,
    tunnel: &super::Tunnel,
    side: Side,
    keys: &KeyFiles,
) -> String {
    let other = match side {
        Side::Left => Side::Right,
        Side::Right => Side::Left,
    };
    // Behind a translator, a host has no address that the other could name: it learns the paths.
    let translated = topology.links.iter().any(|link| link.nat);
    let learns = tunnel.has_session() && side == Side::Right && translated;
    let told = !tunnel.shipped;
    let sealed = tunnel.framing == Framing::Sealed;
    let numbered = |number: u8| {
        let address = |side, version| numbered_address(number, side, version);
        let port = PORT + u16::from(number);
        Tunnel {
            name: if number == 0 { TUNNEL } else { RIVAL },
            addresses: [
                format!("{}/24", address(side, IpVersion::V4)),
                format!("{}/64", address(side, IpVersion::V6)),
            ],
            mtu: tunnel.mtu.map_or(Mtu::Auto("auto"), Mtu::Bytes),
            private_key_file: sealed.then(|| keys.path(side)),
            connection: [Connection {
                name: if number == 0 {
                    other.name().into()
                } else {
                    format!("{}-rival", other.name())
                },
                peer: [IpVersion::V4, IpVersion::V6].map(|version| address(other, version)),
                public_key: sealed.then(|| keys::public(other).to_string()),
                local_port: port,
                remote_port: port,
                profile: told.then_some(tunnel.profile),
                framing: told.then_some(tunnel.framing),
                scheduler: told.then_some(tunnel.scheduler),
                key: tunnel.key.filter(|_| told),
                checksum: told.then_some(tunnel.checksum),
                sequence: told.then_some(tunnel.sequence),
                reorder: tunnel.reorder.as_ref().filter(|_| told),
                keepalive: (told && learns).then_some(tunnel.keepalive),
                dead_time: (told && learns).then_some(tunnel.dead_time),
                path: if learns { Vec::new() } else { paths(topology, tunnel, side, other) },
            }],
        }
    };
    let file = File { tunnel: (0..=u8::from(tunnel.rival)).map(numbered).collect() };
    toml::to_string(&file).expect("the file consists of tables with string keys")
}

fn paths<'a>(
    topology: &'a Topology,
    tunnel: &super::Tunnel,
    side: Side,
    other: Side,
) -> Vec<Path<'a>> {
    // The client of a one-address server has one route to it, so each path is bound to its link.
    let bound = topology.addressing == Addressing::OneServer && side == Side::Left;
    let told = !tunnel.shipped;
    let links = topology.links.iter().zip(&tunnel.weights).enumerate();
    links
        .map(|(index, (link, &weight))| Path {
            name: &link.name,
            interface: bound.then_some(link.name.as_str()),
            local: topology.address(side, index),
            remote: topology.known_address(other, index),
            weight: told.then_some(weight),
            rate: tunnel.rates.and_then(|share| {
                let out = match side {
                    Side::Left => &link.forward,
                    Side::Right => &link.backward,
                };
                Some((out.rate? as f64 * share / 1000.0) as u32)
            }),
            keepalive: told.then_some(tunnel.keepalive),
            dead_time: told.then_some(tunnel.dead_time),
        })
        .collect()
}

#[derive(Serialize)]
struct File<'a> {
    tunnel: Vec<Tunnel<'a>>,
}

#[derive(Serialize)]
struct Tunnel<'a> {
    name: &'a str,
    addresses: [String; 2],
    mtu: Mtu,
    private_key_file: Option<PathBuf>,
    connection: [Connection<'a>; 1],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Mtu {
    Auto(&'static str),
    Bytes(u32),
}

#[derive(Serialize)]
struct Connection<'a> {
    name: String,
    peer: [IpAddr; 2],
    public_key: Option<String>,
    local_port: u16,
    remote_port: u16,
    profile: Option<Profile>,
    framing: Option<Framing>,
    scheduler: Option<Scheduler>,
    key: Option<u32>,
    checksum: Option<bool>,
    sequence: Option<bool>,
    reorder: Option<&'a Reorder>,
    keepalive: Option<f64>,
    dead_time: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<Path<'a>>,
}

#[derive(Serialize)]
struct Path<'a> {
    name: &'a str,
    interface: Option<&'a str>,
    local: IpAddr,
    remote: IpAddr,
    weight: Option<u32>,
    rate: Option<u32>,
    keepalive: Option<f64>,
    dead_time: Option<f64>,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use mpt_proto::PrivateKey;

    use super::*;
    use crate::experiment::Experiment;
    use crate::system::System;

    const LINKS: &str =
        "title = 't'\n[[link]]\nname = 'a'\n[[link]]\nname = 'b'\n[tunnel]\nweights = [4, 2]";

    fn of(cell: &crate::cell::Cell, tunnel: &crate::cell::Tunnel, side: Side) -> toml::Table {
        let keys = KeyFiles::write().unwrap();
        configuration(&cell.topology, tunnel, side, &keys).parse().unwrap()
    }

    fn written(text: &str, side: Side) -> toml::Table {
        let cell = Experiment::parse("x", text).unwrap().cells.remove(0);
        of(&cell, &cell.tunnel, side)
    }

    #[test]
    fn both_sides_name_each_other() {
        let left = written(LINKS, Side::Left);
        let right = written(LINKS, Side::Right);
        for (one, other) in [(&left, &right), (&right, &left)] {
            let [one, other] = [one, other].map(|file| &file["tunnel"][0]);
            let peer = one["connection"][0]["peer"][0].as_str().unwrap();
            assert_eq!(other["addresses"][0].as_str().unwrap(), format!("{peer}/24"));
            for path in 0..2 {
                let [one, other] = [one, other].map(|file| &file["connection"][0]["path"][path]);
                assert_eq!(one["local"], other["remote"]);
                assert_eq!(one["weight"], other["weight"]);
                assert!(one.get("interface").is_none());
            }
        }
        assert_eq!(left["tunnel"][0]["connection"][0]["path"][0]["weight"].as_integer(), Some(4));
    }

    #[test]
    fn a_tunnel_as_shipped_is_told_addresses_alone() {
        let text = LINKS.replace("'b'", "'b'\nrate_mbps = 20");
        let cell = Experiment::parse("x", &text).unwrap().cells.remove(0);
        let paths = |system: System| {
            let tunnel = system.tunnel(&cell).unwrap();
            let file = of(&cell, &tunnel, Side::Left);
            let connection = file["tunnel"][0]["connection"][0].as_table().unwrap().clone();
            let keys = |table: &toml::Table| table.keys().cloned().collect::<Vec<_>>().join(" ");
            let path = connection["path"][1].as_table().unwrap().clone();
            (keys(&connection), keys(&path), path)
        };
        let (connection, path, _) = paths(System::AdaptiveExtended);
        assert_eq!(connection, "local_port name path peer remote_port");
        assert_eq!(path, "local name remote");
        let (connection, path, _) = paths(System::Adaptive);
        assert_eq!(connection, "local_port name path peer public_key remote_port");
        assert_eq!(path, "local name remote");
        let (_, path, values) = paths(System::Oracle);
        assert_eq!(path, "local name rate remote");
        assert_eq!(values["rate"].as_integer(), Some(19_800));
        let (connection, _, values) = paths(System::Mpt);
        assert!(connection.contains("scheduler"), "{connection}");
        assert_eq!(values["weight"].as_integer(), Some(2));
    }

    #[test]
    fn a_rival_has_a_tunnel_with_names_addresses_and_ports_that_differ() {
        let cell = Experiment::parse("x", LINKS).unwrap().cells.remove(0);
        let tunnel = crate::cell::Tunnel { rival: true, ..cell.tunnel.clone() };
        let file = of(&cell, &tunnel, Side::Left);
        let tunnels = file["tunnel"].as_array().unwrap();
        assert_eq!(tunnels.len(), 2);
        for (tunnel, [name, address, peer]) in tunnels
            .iter()
            .zip([["mpt0", "10.9.0.1/24", "10.9.0.2"], ["mpt1", "10.9.1.1/24", "10.9.1.2"]])
        {
            assert_eq!(tunnel["name"].as_str(), Some(name));
            assert_eq!(tunnel["addresses"][0].as_str(), Some(address));
            assert_eq!(tunnel["connection"][0]["peer"][0].as_str(), Some(peer));
        }
        let connection = |tunnel: &toml::Value| tunnel["connection"][0]["name"].clone();
        assert_ne!(connection(&tunnels[0]), connection(&tunnels[1]), "names are unique in a file");
        let port = |tunnel: &toml::Value| tunnel["connection"][0]["local_port"].as_integer();
        assert_ne!(port(&tunnels[0]), port(&tunnels[1]));
        let path = |tunnel: &toml::Value| tunnel["connection"][0]["path"].clone();
        assert_eq!(path(&tunnels[0]), path(&tunnels[1]));
    }

    #[test]
    fn a_sealed_host_has_its_key_in_a_file_and_names_that_of_the_other() {
        let text = format!("{LINKS}\nframing = 'sealed'");
        let cell = Experiment::parse("x", &text).unwrap().cells.remove(0);
        let keys = KeyFiles::write().unwrap();
        for (side, other) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
            let text = configuration(&cell.topology, &cell.tunnel, side, &keys);
            let file: toml::Table = text.parse().unwrap();
            let tunnel = &file["tunnel"][0];
            let path = tunnel["private_key_file"].as_str().unwrap();
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            let private = PrivateKey::from_base64(&fs::read_to_string(path).unwrap()).unwrap();
            assert_eq!(private.public(), keys::public(side));
            let connection = &tunnel["connection"][0];
            assert_eq!(connection["framing"].as_str(), Some("sealed"));
            let peer = connection["public_key"].as_str().unwrap();
            assert_eq!(peer.parse(), Ok(keys::public(other)));
        }
        let plain = written(LINKS, Side::Left);
        assert!(plain["tunnel"][0].get("private_key_file").is_none());
        assert!(plain["tunnel"][0]["connection"][0].get("public_key").is_none());
    }

    #[test]
    fn behind_a_translator_the_right_host_learns_the_paths_of_a_session() {
        let text = LINKS.replace("name = 'b'", "name = 'b'\nnat = true");
        let extended = format!("{text}\nframing = 'extended'");
        let sealed = format!("{text}\nframing = 'sealed'");
        let connection =
            |text: &str, side| written(text, side)["tunnel"][0]["connection"][0].clone();
        assert!(connection(&extended, Side::Right).get("path").is_none());
        assert!(connection(&sealed, Side::Right).get("path").is_none());
        for (text, side) in [(&extended, Side::Left), (&text, Side::Right)] {
            assert_eq!(connection(text, side)["path"].as_array().unwrap().len(), 2);
        }
    }

    #[test]
    fn the_client_of_a_server_with_one_address_binds_each_path_to_its_link() {
        let text = format!("addressing = 'one-server'\n{LINKS}");
        let left = written(&text, Side::Left);
        assert_eq!(left["tunnel"][0]["connection"][0]["path"][1]["interface"].as_str(), Some("b"));
        let right = written(&text, Side::Right);
        assert!(right["tunnel"][0]["connection"][0]["path"][1].get("interface").is_none());
    }
}
