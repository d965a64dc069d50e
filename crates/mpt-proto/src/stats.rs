//! Counters. A packet is never an error, it is a counter; and the sums balance.
//!
//! - Every inner packet offered to [`Endpoint::handle_inner`](crate::Endpoint::handle_inner) was
//!   sent on a path or counted under one [`Drop`].
//! - Every datagram offered to [`Endpoint::handle_datagram`](crate::Endpoint::handle_datagram) was a
//!   keepalive or a connect request, was delivered, is held in the reorder buffer, or was counted under one [`Drop`].

mod few;

use std::ops::{Add, AddAssign};

use crate::hold_times::HoldTimes;
pub(crate) use few::FewDrops;

/// Why a packet or datagram was dropped. The names are those of `docs/protocol.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Drop {
    /// A connect request, but the template has its maximum of connections, or the connection its
    /// maximum of paths.
    AcceptFull,
    /// A connect request, but too many arrived recently.
    AcceptRate,
    /// A TCP acknowledgement waited, and a later one took its place.
    AckObsolete,
    /// None of the paths that the packet's class may take is up.
    ClassPath,
    /// The tunnel addresses in a keepalive are not those of its connection.
    ControlAddress,
    /// A control message of the wrong length.
    ControlLength,
    /// A control message unknown to plain framing.
    ControlUnknown,
    /// A sequence number that was delivered before, or is held already.
    Duplicate,
    /// The outer header says that congestion was experienced, but the inner packet's ends would not
    /// understand (RFC 6040 section 4.2).
    EcnIllegal,
    /// The datagram ends inside the header of extended framing.
    ExtendedTruncated,
    /// A datagram of a framing that the connection does not use, or no longer.
    Framing,
    /// The GRE checksum is wrong.
    GreChecksum,
    /// A GRE header flag that must be zero is set (RFC 2784 section 2.3).
    GreFlags,
    /// The GRE key is absent, or not the connection's, or present although it has none.
    GreKey,
    /// A GRE protocol type that is neither IPv4 nor IPv6.
    GreProtocol,
    /// The datagram ends inside the GRE header.
    GreTruncated,
    /// A GRE version other than 0.
    GreVersion,
    /// A handshake message of sealed framing that is not authentic.
    HandshakeForged,
    /// A handshake initiation with the secret of an invitation that is used up, expired, or was never given.
    HandshakeInvitation,
    /// A handshake initiation beyond what this host computes, without the cookie that it asked for.
    HandshakeLoad,
    /// A handshake message whose sender does not know the public key of this host.
    HandshakeMac,
    /// An authentic handshake message that does not fit the connection, or without a common cipher.
    HandshakeRefused,
    /// A handshake initiation that is not later than the last one of its sender.
    HandshakeReplay,
    /// A handshake initiation of a key that belongs to no connection and no client, or a response or cookie reply to nothing.
    HandshakeUnknown,
    /// A handshake initiation while one of this host, whose key is greater, waits for its response.
    HandshakeYield,
    /// The cookie in a hello confirm is not one that this host gave to its origin lately.
    HelloCookie,
    /// No connection that uses extended framing has the tunnel addresses and the key in a hello.
    HelloUnknown,
    /// A hello answer or confirm of an unknown version.
    HelloVersion,
    /// Not a whole IP packet of the version its carrier claims.
    InnerMalformed,
    /// The inner source address does not belong to the connection the packet came by.
    InnerSource,
    /// The inner packet is bigger than what the tunnel carries.
    InnerTooBig,
    /// The packet came after it had been given up, and late packets are to be dropped.
    Late,
    /// A multicast or broadcast destination that no connection's networks contain.
    Multicast,
    /// No path of the connection is up.
    NoPath,
    /// No connection leads to the inner destination.
    NoRoute,
    /// A datagram of a session from an origin that no path has, and whose path id no path has either.
    PathUnknown,
    /// It waited too long for a path: the queue was to become shorter (CoDel, RFC 8289).
    QueueDelay,
    /// More waited for a path than may.
    QueueFull,
    /// To be sent, but the key must not be used any more.
    SealExpired,
    /// A sealed datagram that is not authentic.
    SealForged,
    /// A sealed datagram that came before, or is behind the replay window.
    SealReplay,
    /// A sequence number too far away to be believed before others confirm it.
    Stray,
    /// A connection index that belongs to no session.
    UnknownIndex,
    /// No connection has a path to the address this datagram came from.
    UnknownSource,
}

impl Drop {
    /// All reasons, in the order of their names.
    pub const ALL: [Self; 44] = [
        Self::AcceptFull,
        Self::AcceptRate,
        Self::AckObsolete,
        Self::ClassPath,
        Self::ControlAddress,
        Self::ControlLength,
        Self::ControlUnknown,
        Self::Duplicate,
        Self::EcnIllegal,
        Self::ExtendedTruncated,
        Self::Framing,
        Self::GreChecksum,
        Self::GreFlags,
        Self::GreKey,
        Self::GreProtocol,
        Self::GreTruncated,
        Self::GreVersion,
        Self::HandshakeForged,
        Self::HandshakeInvitation,
        Self::HandshakeLoad,
        Self::HandshakeMac,
        Self::HandshakeRefused,
        Self::HandshakeReplay,
        Self::HandshakeUnknown,
        Self::HandshakeYield,
        Self::HelloCookie,
        Self::HelloUnknown,
        Self::HelloVersion,
        Self::InnerMalformed,
        Self::InnerSource,
        Self::InnerTooBig,
        Self::Late,
        Self::Multicast,
        Self::NoPath,
        Self::NoRoute,
        Self::PathUnknown,
        Self::QueueDelay,
        Self::QueueFull,
        Self::SealExpired,
        Self::SealForged,
        Self::SealReplay,
        Self::Stray,
        Self::UnknownIndex,
        Self::UnknownSource,
    ];

    /// The name under which the reason is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AcceptFull => "accept_full",
            Self::AcceptRate => "accept_rate",
            Self::AckObsolete => "ack_obsolete",
            Self::ClassPath => "class_path",
            Self::ControlAddress => "control_address",
            Self::ControlLength => "control_length",
            Self::ControlUnknown => "control_unknown",
            Self::Duplicate => "duplicate",
            Self::EcnIllegal => "ecn_illegal",
            Self::ExtendedTruncated => "extended_truncated",
            Self::Framing => "framing",
            Self::GreChecksum => "gre_checksum",
            Self::GreFlags => "gre_flags",
            Self::GreKey => "gre_key",
            Self::GreProtocol => "gre_protocol",
            Self::GreTruncated => "gre_truncated",
            Self::GreVersion => "gre_version",
            Self::HandshakeForged => "handshake_forged",
            Self::HandshakeInvitation => "handshake_invitation",
            Self::HandshakeLoad => "handshake_load",
            Self::HandshakeMac => "handshake_mac",
            Self::HandshakeRefused => "handshake_refused",
            Self::HandshakeReplay => "handshake_replay",
            Self::HandshakeUnknown => "handshake_unknown",
            Self::HandshakeYield => "handshake_yield",
            Self::HelloCookie => "hello_cookie",
            Self::HelloUnknown => "hello_unknown",
            Self::HelloVersion => "hello_version",
            Self::InnerMalformed => "inner_malformed",
            Self::InnerSource => "inner_source",
            Self::InnerTooBig => "inner_too_big",
            Self::Late => "late",
            Self::Multicast => "multicast",
            Self::NoPath => "no_path",
            Self::NoRoute => "no_route",
            Self::PathUnknown => "path_unknown",
            Self::QueueDelay => "queue_delay",
            Self::QueueFull => "queue_full",
            Self::SealExpired => "seal_expired",
            Self::SealForged => "seal_forged",
            Self::SealReplay => "seal_replay",
            Self::Stray => "stray",
            Self::UnknownIndex => "unknown_index",
            Self::UnknownSource => "unknown_source",
        }
    }
}

/// A counter for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops([u64; Drop::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; Drop::ALL.len()])
    }
}

impl Drops {
    /// How often `reason` was counted.
    pub fn count(&self, reason: Drop) -> u64 {
        self.0[reason as usize]
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that were counted at least once, with their counts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (Drop, u64)> + '_ {
        Drop::ALL.into_iter().map(|reason| (reason, self.count(reason))).filter(|(_, n)| *n > 0)
    }

    pub(crate) fn add(&mut self, reason: Drop) {
        self.0[reason as usize] += 1;
    }
}

impl AddAssign for Drops {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many.
    pub packets: u64,
    /// Their lengths added up. Each user says which bytes of a packet count.
    pub bytes: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, len: usize) {
        self.packets += 1;
        self.bytes += len as u64;
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What one path has carried. Bytes are those of the UDP payload, GRE header included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Datagrams with an inner packet that left this host on this path.
    pub sent: Traffic,
    /// How many of them were copies: the packet is sent on another path too, or was before.
    pub resent: u64,
    /// Datagrams with an inner packet, received on this path.
    pub received: Traffic,
    /// Other datagrams received on this path: keepalives, feedback, probes and other messages.
    pub control_received: Traffic,
    /// Keepalives handed out to be sent.
    pub keepalives_sent: u64,
    /// Keepalives received.
    pub keepalives_received: u64,
}

/// What became of the parities that the peer has sent, since the connection was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityStats {
    /// Parities that came.
    pub received: u64,
    /// Packets that were brought back by them, and had not come before.
    pub recovered: u64,
    /// Parities that were not needed, and packets that came twice because of one.
    pub in_vain: u64,
    /// Groups of which too little came, and packets that were none.
    pub failed: u64,
}

impl Add for ParityStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            recovered: self.recovered + other.recovered,
            in_vain: self.in_vain + other.in_vain,
            failed: self.failed + other.failed,
        }
    }
}

/// How the reorder buffer came by what it delivered, and how gaps ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorderStats {
    /// Delivered without having been held.
    pub in_order: u64,
    /// Delivered after having been held.
    pub reordered: u64,
    /// Delivered after having been given up.
    pub late: u64,
    /// Delivered out of turn where a number was missing: most of these had been lost, and were sent again in time.
    pub repaired: u64,
    /// Delivered without a sequence number, so without a place in the order.
    pub unsequenced: u64,
    /// Numbers given up because every live path had delivered a higher one.
    pub lost_early_release: u64,
    /// Numbers given up because a packet behind them had been held for the maximum delay.
    pub lost_max_delay: u64,
    /// Numbers given up because the window had to move on, or nothing more could be held.
    pub lost_window: u64,
    /// How many restarts of the sender's numbers were detected.
    pub restarts: u64,
    /// Packets held at this moment.
    pub held: u64,
    /// The most packets ever held at once.
    pub held_max: u64,
    /// For how long those were held that are not any more. Only the order by evidence counts it.
    pub hold_times: HoldTimes,
}

/// What one connection has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Inner packets sent on some path, in inner bytes, without copies.
    pub sent: Traffic,
    /// Inner packets delivered, in inner bytes.
    pub delivered: Traffic,
    /// Packets that parity brought back, which are among those that were delivered.
    pub recovered: u64,
    /// The reorder buffer.
    pub reorder: ReorderStats,
    /// Drops of both directions.
    pub drops: Drops,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_listed_once_in_order_of_their_names() {
        for (place, reason) in Drop::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
        assert!(Drop::ALL.windows(2).all(|pair| pair[0].name() < pair[1].name()));
    }

    #[test]
    fn drops_show_what_was_counted() {
        let mut drops = Drops::default();
        drops.add(Drop::Stray);
        drops.add(Drop::Late);
        drops.add(Drop::Stray);
        assert_eq!(drops.total(), 3);
        assert_eq!(drops.iter().collect::<Vec<_>>(), [(Drop::Late, 1), (Drop::Stray, 2)]);
    }
}
