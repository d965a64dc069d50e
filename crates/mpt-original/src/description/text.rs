//! The text of a description: its keys and their bounds.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use mpt_proto::{MAX_WEIGHT, MAX_WINDOW, Prefix};

use super::ini::{Section, sections};
use super::{
    DescribedNetwork, DescribedPath, Description, DescriptionError, MAX_NAME, MAX_NETWORKS,
    MAX_PATHS,
};
use crate::auth::AuthKind;
use crate::message::MAX_DESCRIPTION;

/// The first line. The original drops the first four characters of a description that it receives, so five
/// marks begin the comment.
const FIRST_LINE: &str = ";;;;;;;### MPT connection ###;;;;;;;";

/// How many marks of a comment a description begins with, at least.
const MARKS: usize = 5;

/// The maximum delay where the text has zero.
const DEFAULT_DELAY_MILLIS: u16 = 100;

/// The longest name of an interface.
const MAX_INTERFACE: usize = 15;

impl Description {
    /// Reads a description. Unknown keys are ignored, and so is a zero byte at the end.
    ///
    /// # Errors
    ///
    /// The first error.
    pub fn parse(text: &[u8]) -> Result<Self, DescriptionError> {
        if text.len() > MAX_DESCRIPTION {
            return Err(DescriptionError::Long);
        }
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        let is_mark = |byte: &u8| matches!(byte, b';' | b'#');
        if text.len() < MARKS || !text[..MARKS].iter().all(is_mark) {
            return Err(DescriptionError::Begin);
        }
        let text = str::from_utf8(text).map_err(|error| {
            let lines = text[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n');
            DescriptionError::Line(1 + lines.count())
        })?;
        let sections = sections(text)?;
        let connection = find(&sections, "connection")?;
        let count = |key, max: usize| {
            let count: usize = connection.number(key, 0..=max)?.unwrap_or(0);
            Ok::<usize, DescriptionError>(count)
        };
        let (paths, networks) =
            (count("path_count", MAX_PATHS)?, count("network_count", MAX_NETWORKS)?);
        if paths == 0 {
            return Err(DescriptionError::Value("path_count"));
        }
        if sections.len() != 1 + paths + networks {
            return Err(DescriptionError::Sections);
        }
        let local = connection.address("ip_local")?.ok_or(DescriptionError::Missing("ip_local"))?;
        let remote =
            connection.address("ip_remote")?.ok_or(DescriptionError::Missing("ip_remote"))?;
        connection.check_version(6, [local, remote])?;
        let name = connection.value("name").unwrap_or("connection");
        if !is_name(name) {
            return Err(DescriptionError::Value("name"));
        }
        let delay = connection.number("max_buffdelay_msec", 0..=u16::MAX)?.unwrap_or(0);
        let delay = if delay == 0 { DEFAULT_DELAY_MILLIS } else { delay };
        let port = |key, default| {
            let port: Option<u16> = connection.number(key, 0..=u16::MAX)?;
            Ok::<u16, DescriptionError>(port.unwrap_or(default))
        };
        let auth = connection.number("auth_type", 0..=u8::MAX)?.unwrap_or(0);
        Ok(Self {
            name: name.to_owned(),
            local,
            local_port: port("local_port", 0)?,
            local_command_port: port("local_cmd_port", 65001)?,
            remote,
            remote_port: port("remote_port", 65000)?,
            remote_command_port: port("remote_cmd_port", 65050)?,
            reorder_window: connection.number("reorder_window", 0..=MAX_WINDOW)?.unwrap_or(0),
            max_delay: Duration::from_millis(delay.into()),
            auth: AuthKind::new(auth).ok_or(DescriptionError::Value("auth_type"))?,
            paths: (0..paths)
                .map(|number| DescribedPath::read(find(&sections, &format!("path_{number}"))?))
                .collect::<Result<_, _>>()?,
            networks: (0..networks)
                .map(|number| DescribedNetwork::read(find(&sections, &format!("net_{number}"))?))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The text. [`Self::parse`] reads the same description from it, if all values are in their bounds.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        let mut section = |name: String, entries: &[(&str, &dyn std::fmt::Display)]| {
            let _ = writeln!(text, "[{name}]");
            for (key, value) in entries {
                let _ = writeln!(text, "{key:<16} = {value}");
            }
        };
        section(
            "connection".to_owned(),
            &[
                ("name", &self.name),
                // Permission to send and receive reports. The original enforces neither this nor `status`.
                ("permission", &3),
                ("ip_ver", &version(self.local)),
                ("ip_local", &self.local),
                ("local_port", &self.local_port),
                ("local_cmd_port", &self.local_command_port),
                ("ip_remote", &self.remote),
                ("remote_port", &self.remote_port),
                ("remote_cmd_port", &self.remote_command_port),
                ("path_count", &self.paths.len()),
                ("network_count", &self.networks.len()),
                ("status", &0),
                ("reorder_window", &self.reorder_window),
                ("max_buffdelay_msec", &self.max_delay.as_millis()),
                ("auth_type", &(self.auth as u8)),
            ],
        );
        for (number, path) in self.paths.iter().enumerate() {
            section(
                format!("path_{number}"),
                &[
                    ("interface_name", &path.interface),
                    ("ip_ver", &version(path.public)),
                    ("public_ipaddr", &path.public),
                    ("private_ipaddr", &path.private),
                    ("gw_ipaddr", &path.gateway),
                    ("remote_ipaddr", &path.remote),
                    ("keepalive_time", &path.keepalive.as_secs()),
                    ("dead_time", &path.dead_time.as_secs()),
                    ("weight_in", &path.weight_in),
                    ("weight_out", &path.weight_out),
                    // Down or not; the original has several values for down.
                    ("status", if path.down { &128 } else { &0 }),
                ],
            );
        }
        for (number, network) in self.networks.iter().enumerate() {
            let DescribedNetwork { source, destination } = network;
            section(
                format!("net_{number}"),
                &[
                    ("ip_ver", &version(source.address())),
                    ("src_addr", source),
                    ("dst_addr", destination),
                ],
            );
        }
        text
    }
}

impl DescribedPath {
    fn read(section: &Section<'_>) -> Result<Self, DescriptionError> {
        let public =
            section.address("public_ipaddr")?.ok_or(DescriptionError::Missing("public_ipaddr"))?;
        let unknown: IpAddr = if public.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let other = |key| Ok::<_, DescriptionError>(section.address(key)?.unwrap_or(unknown));
        let (private, gateway, remote) =
            (other("private_ipaddr")?, other("gw_ipaddr")?, other("remote_ipaddr")?);
        section.check_version(4, [public, private, gateway, remote])?;
        let interface = section.value("interface_name").unwrap_or("unnamed_path");
        if !is_interface(interface) {
            return Err(DescriptionError::Value("interface_name"));
        }
        let keepalive: u8 = section.number("keepalive_time", 0..=u8::MAX)?.unwrap_or(0);
        let dead_time: Option<u16> = section.number("dead_time", 0..=u16::MAX)?;
        let dead_time = dead_time.unwrap_or(3 * u16::from(keepalive));
        let weight = |key| {
            let weight = section.number(key, 1..=MAX_WEIGHT)?;
            Ok::<u16, DescriptionError>(weight.unwrap_or(1))
        };
        Ok(Self {
            interface: interface.to_owned(),
            public,
            private,
            gateway,
            remote,
            keepalive: Duration::from_secs(keepalive.into()),
            dead_time: Duration::from_secs(dead_time.into()),
            weight_out: weight("weight_out")?,
            weight_in: weight("weight_in")?,
            down: section.number("status", 0..=u8::MAX)?.unwrap_or(0) != 0,
        })
    }
}

impl DescribedNetwork {
    fn read(section: &Section<'_>) -> Result<Self, DescriptionError> {
        let prefix = |key| section.prefix(key)?.ok_or(DescriptionError::Missing(key));
        let (source, destination) = (prefix("src_addr")?, prefix("dst_addr")?);
        section.check_version(4, [source.address(), destination.address()])?;
        Ok(Self { source, destination })
    }
}

impl Section<'_> {
    /// A decimal number, if the key is there.
    fn number<N: FromStr + PartialOrd>(
        &self,
        key: &'static str,
        range: std::ops::RangeInclusive<N>,
    ) -> Result<Option<N>, DescriptionError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| value.parse().ok()).flatten();
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(DescriptionError::Value(key)),
        }
    }

    /// An address in its canonical form, if the key is there.
    fn address(&self, key: &'static str) -> Result<Option<IpAddr>, DescriptionError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.parse::<IpAddr>() {
            Ok(address) => Ok(Some(address.to_canonical())),
            Err(_) => Err(DescriptionError::Value(key)),
        }
    }

    /// An address and a number of bits, none if that is missing.
    fn prefix(&self, key: &'static str) -> Result<Option<Prefix>, DescriptionError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let (address, bits) = value.split_once('/').unwrap_or((value, "0"));
        let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = address.parse().ok().zip(bits.parse().ok().filter(|_| digits));
        match prefix.and_then(|(address, bits)| Prefix::new(address, bits)) {
            Some(prefix) => Ok(Some(prefix)),
            None => Err(DescriptionError::Value(key)),
        }
    }

    /// Checks that these addresses are of the section's IP version.
    fn check_version<const N: usize>(
        &self,
        default: u8,
        addresses: [IpAddr; N],
    ) -> Result<(), DescriptionError> {
        let version = self.number("ip_ver", 4..=6)?.unwrap_or(default);
        if addresses.into_iter().all(|address| self::version(address) == version) {
            Ok(())
        } else {
            Err(DescriptionError::Value("ip_ver"))
        }
    }
}

fn find<'s, 't>(
    sections: &'s [Section<'t>],
    name: &str,
) -> Result<&'s Section<'t>, DescriptionError> {
    let is_it = |section: &&Section<'_>| section.name.eq_ignore_ascii_case(name);
    sections.iter().find(is_it).ok_or(DescriptionError::Sections)
}

const fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

/// Whether a name reads back as it is written: it has no mark of a comment and no quote.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| {
        (byte == b' ' || byte.is_ascii_graphic()) && !matches!(byte, b';' | b'#' | b'"' | b'\\')
    };
    !text.is_empty()
        && text.len() <= MAX_NAME
        && text.trim_ascii() == text
        && text.bytes().all(is_plain)
}

/// Whether a text can be the name of an interface, without characters that a shell or a file interprets.
fn is_interface(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:@_-".contains(&byte);
    (1..=MAX_INTERFACE).contains(&text.len()) && text.bytes().all(is_plain)
}
