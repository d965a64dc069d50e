//! The settings of a tunnel: `[[tunnel]]`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use toml::de::DeValue;

use super::{Accept, Connection};
use crate::config::address;
use crate::config::keys::{Row, Rows};
use crate::config::offloads::Offloads;
use crate::config::prefix::Prefix;
use crate::config::report::Problems;
use crate::config::schema::{Tabled as _, settings};
use crate::config::value::{self, Kind as _, Value};
use crate::config::writer::Writer;
use crate::config::written::Written;

settings! {
    /// One tunnel.
    Tunnel "[[tunnel]]", read as TunnelRead, with none: () {
        /// Name of the interface, 1 to 15 bytes.
        name: String = required(value::interface, "\"mpt0\""), Apart;
        /// Own tunnel addresses, each with the prefix length of its subnet.
        addresses: Vec<Prefix> = required(value::list(address::prefix), "[\"10.9.0.1/24\"]"),
            TunnelRestarted;
        /// File of this host's private key, as `mpt genkey` writes it; nobody else may be able to read it. Connections with
        /// a `public_key` need it.
        private_key_file: Option<PathBuf> =
            optional(value::file, "\"/etc/mpt/private.key\""), TunnelRestarted;
        /// Largest inner packet in bytes: 576 .. 65491, with IPv6 from 1280; `"auto"` = what the
        /// narrowest usable path carries.
        mtu: Mtu = default(mtu, Mtu::Auto), InPlace;
        /// Clamp the TCP MSS announced through the tunnel, in both directions, to the tunnel's MTU;
        /// for networks that filter ICMP.
        clamp_mss: bool = default(value::flag, false), InPlace;
        /// The kernel's batching.
        offloads: Offloads = own(
            Rows::Here(&[Row::own(
                "offloads",
                "all",
                "{ vnet = true, tso = true, uso = true, gso = true, gro = true }",
                "Kernel offloads, below. Each is used if the kernel supports it.",
            )]),
            |of: &Tunnel, out: &mut Writer, ()| out.inline("offloads", |out| of.offloads.write(out, ()))
        ), TunnelRestarted;
        /// Whether inner checksums are left out across the tunnel: both ends must have agreed, which
        /// plain framing has no way to do.
        checksum_partial: bool = unsaid(false), TunnelRestarted;
        /// Threads that carry the tunnel's packets: 1, or 2, one for each direction;
        /// `MPT_THREADS=1` or `2` overrides it for all tunnels of a daemon.
        threads: Threads = default(threads, Threads::default()), TunnelRestarted;
        /// Its connections, at least one unless there is a template.
        connections: Vec<Connection> = own(
            Rows::Here(&[Row::table("connection")]),
            |of: &Tunnel, out: &mut Writer, ()| out.tables(&Connection::KEYS, &of.connections, |connection, out| {
                connection.write(out, ());
            })
        ), Apart;
        /// The templates by which further connections are made when a peer asks to connect.
        accepts: Vec<Accept> = own(
            Rows::Here(&[Row::table("accept")]),
            |of: &Tunnel, out: &mut Writer, ()| out.tables(&Accept::KEYS, &of.accepts, |accept, out| accept.write(out, ()))
        ), Apart;
    }
}

/// How many threads carry the packets of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One for both directions.
    #[default]
    One,
    /// One for each direction.
    Two,
}

impl Threads {
    /// The environment variable that says it for all tunnels of a daemon.
    pub(crate) const VARIABLE: &str = "MPT_THREADS";

    /// All numbers there are.
    pub(crate) const NUMBERS: RangeInclusive<u8> = 1..=2;

    /// So many threads, if that is possible.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }

    /// How many threads.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// The largest inner packet of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mtu {
    /// As large as the smallest usable path allows.
    Auto,
    /// That many bytes: at least 576, at least 1280 where IPv6 is carried, at most
    /// [`Mtu::MAX`].
    Fixed(u16),
}

impl Mtu {
    /// Every IPv4 host accepts a packet of that many bytes (RFC 791 section 3.1).
    pub(crate) const MIN: u16 = 576;

    /// Every IPv6 link carries a packet of that many bytes (RFC 8200 section 5).
    pub(crate) const MIN_IPV6: u16 = 1280;

    /// What is left of the largest IPv4 packet, 65535 bytes, after 20 of IP header, 8 of UDP and 16
    /// of GRE with checksum, key and sequence number.
    pub(crate) const MAX: u16 = 65535 - 20 - 8 - 16;
}

impl Written for Mtu {
    fn written(&self) -> String {
        match self {
            Self::Auto => "auto".written(),
            Self::Fixed(bytes) => bytes.written(),
        }
    }
}

impl Written for Threads {
    fn written(&self) -> String {
        self.number().to_string()
    }
}

/// How many threads.
fn threads(value: &Value<'_>, problems: &mut Problems) -> Option<Threads> {
    value::integer(Threads::NUMBERS).read(value, problems).and_then(Threads::from_number)
}

/// `"auto"`, or a number of bytes that does not depend on what the tunnel carries yet.
fn mtu(value: &Value<'_>, problems: &mut Problems) -> Option<Mtu> {
    let help = format!("allowed: \"auto\", or a number from {} to {}", Mtu::MIN, Mtu::MAX);
    let problem = if let DeValue::Integer(bytes) = value.get() {
        let bytes = value::number(bytes).and_then(|bytes| u16::try_from(bytes).ok());
        match bytes.filter(|bytes| (Mtu::MIN..=Mtu::MAX).contains(bytes)) {
            Some(bytes) => return Some(Mtu::Fixed(bytes)),
            None => value.impossible("out of range"),
        }
    } else {
        match value.get().as_str() {
            Some("auto") => return Some(Mtu::Auto),
            Some(_) => value.impossible("neither \"auto\" nor a number"),
            None => value.wrong_type("\"auto\" or an integer"),
        }
    };
    problems.push(problem.help(help));
    None
}
