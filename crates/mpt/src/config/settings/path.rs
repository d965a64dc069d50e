//! The settings of a path: `[[tunnel.connection.path]]`.

use std::net::IpAddr;
use std::time::Duration;

use mpt_control::PathStatus;
use mpt_proto::PeerKind;

use crate::config::keys::Rows;
use crate::config::pins::{self, Pins};
use crate::config::quota::{self, Quota};
use crate::config::remote::{self, Remote};
use crate::config::report::Problems;
use crate::config::schema::settings;
use crate::config::uplinks::Found;
use crate::config::value::{self, Value};
use crate::config::writer::Writer;
use crate::config::{address, timers};

/// The words for what an operator wants of a path.
const STATUS: [(&str, PathStatus); 2] =
    [("available", PathStatus::Available), ("off", PathStatus::Off)];

settings! {
    /// One path of a connection, to a peer of a kind.
    Path "[[tunnel.connection.path]]", read as PathRead, with peer_kind: PeerKind {
        /// Name for commands, 1 to 64 bytes; unique within the connection.
        name: String = required(value::name, "\"fibre\""), Apart;
        /// Bind to this interface.
        interface: Option<String> = optional(value::interface, "\"eth0\""), PathReplaced;
        /// Local address, of the IP version of `remote`; none: the kernel selects one.
        local: Option<IpAddr> = optional(local, "\"192.0.2.10\""), PathReplaced;
        /// The peer's address on this path, or a host name, which is resolved again while the path
        /// is silent.
        remote: Remote = required(
            remote::remote,
            "\"203.0.113.5\"",
            "for a peer that comes from anywhere, write a template, `[[tunnel.accept]]`, in place of the connection"
        ), PathReplaced;
        /// Share of the packets or flows.
        weight: u16 = default(value::integer(1..=Path::MAX_WEIGHT), 1), InPlace;
        /// Rate in kbit/s of IP packets, in place of the measured one; for `scheduler = "earliest"`.
        rate: Option<u32> = optional(value::integer(8..=100_000_000), "50000"), InPlace;
        /// Whether the weight that the peer announces takes the place of `weight`: on paths that a
        /// template without a weight made, until a command sets one.
        weight_from_peer: bool = unsaid(false), Apart;
        /// The IP version by which it was found by itself; then it needs a route from its interface to the
        /// peer. `None` = it was not.
        found: Option<Found> = unsaid(None), Apart;
        /// Whether its traffic is paid for by volume, by the settings of its interface.
        metered: bool = unsaid(false), InPlace;
        /// Milliseconds that a packet waits for the other paths before it takes this one; for the schedulers that measure.
        /// With 100 or less, a transfer that fills the other paths takes this one, too; with more, it does not.
        price: Option<u16> = optional(value::integer(0..=10_000), "50"), InPlace;
        /// How much the path may carry in a month in both directions, in bytes of IP packets: `"50 GB"`. The faster it is used,
        /// the more it costs; when it is used up, it stands by as long as another one is up.
        quota: Option<Quota> = optional(quota::quota, "\"50 GB\""), InPlace;
        /// The day of the month on which that of `quota` begins, at 0:00 UTC.
        quota_day: u8 = default(value::integer(1..=28), 1), InPlace;
        /// Priority tier: of the paths that are up, those with the lowest number carry packets.
        priority: u8 = default(value::integer(0..=u8::MAX), 0), InPlace;
        /// Time between keepalives; 5 s to an original MPT.
        keepalive: Duration = default(timers::keepalive(), Path::default_keepalive(peer_kind), "0.5"),
            InPlace;
        /// Silence after which the path is down, longer than `keepalive`.
        dead_time: Duration = default(
            timers::dead_time(),
            Path::default_dead_time(keepalive.unwrap_or_default()),
            "3.5 × `keepalive`: 1.75"
        ), InPlace;
        /// In a session: how many milliseconds the path may be silently dead while nothing is sent on it. Then path statuses go
        /// at 2/7 of that. Without it `keepalive` and `dead_time` hold if one of them is said.
        failover: Option<u16> = optional(
            timers::failover(),
            "1000",
            "1000; 10000 if metered; none with `keepalive` or `dead_time`"
        ), InPlace;
        /// `"available"` or `"off"`.
        status: PathStatus = default(value::one_of(&STATUS), PathStatus::Available), InPlace;
        /// The flows that take this path while it is up; none unless the scheduler is `Flow`.
        pins: Pins = own(Rows::Here(&pins::ROWS), |of: &Self, out: &mut Writer, _| of.pins.write(out)), InPlace;
    }
}

impl Path {
    /// The price of a path that is paid for by volume, unless configured, in milliseconds.
    const METERED: u16 = 200;

    /// How many milliseconds a packet waits for the other paths before it takes this one.
    pub(crate) fn price(&self) -> u16 {
        self.price.unwrap_or(if self.metered { Self::METERED } else { 0 })
    }

    /// How long a path may be silently dead unless configured, and one that is paid for by volume.
    const FAILOVER: Duration = Duration::from_secs(1);
    const METERED_FAILOVER: Duration = Duration::from_secs(10);

    /// How long it may be silently dead in a session while nothing is sent on it; `None`: what keepalive and dead time make it.
    pub(crate) fn failover(&self) -> Option<Duration> {
        let usual = Self::default_keepalive(PeerKind::Mpt);
        let is_usual = (self.keepalive, self.dead_time) == (usual, Self::default_dead_time(usual));
        let default = if self.metered { Self::METERED_FAILOVER } else { Self::FAILOVER };
        let said = self.failover.map(|millis| Duration::from_millis(millis.into()));
        said.or(is_usual.then_some(default)).filter(|_| !self.keepalive.is_zero())
    }

    /// Largest weight.
    pub(crate) const MAX_WEIGHT: u16 = mpt_proto::MAX_WEIGHT;

    /// Time between keepalives unless configured, to a peer of this kind. The original counts in whole
    /// seconds; 5 s is what its samples have, and what a dead time must allow for.
    pub(crate) const fn default_keepalive(peer_kind: PeerKind) -> Duration {
        match peer_kind {
            PeerKind::Mpt => Duration::from_millis(500),
            PeerKind::Original => Duration::from_secs(5),
            PeerKind::Gre => Duration::ZERO,
        }
    }

    /// Silence after which a path is down unless configured: three keepalives and a half, so never
    /// where none are sent. 1.75 s with the usual keepalive.
    pub(crate) fn default_dead_time(keepalive: Duration) -> Duration {
        keepalive * 7 / 2
    }
}

/// An own address, the kernel's choice being no address.
pub(super) fn local(value: &Value<'_>, problems: &mut Problems) -> Option<IpAddr> {
    if let Some(Ok(address)) = value.get().as_str().map(str::parse::<IpAddr>)
        && address.is_unspecified()
    {
        problems.push(
            value
                .impossible("is the unspecified address")
                .help("remove `local`: then the kernel chooses the address"),
        );
        return None;
    }
    address::address(value, problems)
}
