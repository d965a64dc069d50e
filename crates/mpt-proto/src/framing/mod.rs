//! What the bytes between two peers look like, and what must be inferred because they do not say it.
//!
//! A framing has two halves. [`Tx`] stamps what is sent: it allocates sequence numbers and writes headers.
//! What it decided about one datagram is a [`Stamp`], so that the bytes can be written later and once more
//! for a retransmission. [`Rx`] reads what arrives: an [`Opened`] datagram names connection and path, its [`Body`]
//! is validated. Nothing is believed before that. [`plain`] framing serves every peer, [`extended`] framing
//! those that have agreed on a session.

pub(crate) mod datagram;
pub(crate) mod extended;
pub(crate) mod plain;
pub(crate) mod sealed;
mod stamp;

use std::net::IpAddr;

use datagram::{Body, Framed, Item, Opened};
use extended::session::Peer;
use extended::tx::WirePath;
use sealed::tx::{Keys, Sealing};
pub(crate) use stamp::Stamp;

use crate::config::{ConnectionConfig, FramingConfig};
use crate::sequence::Seq;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::sealed::TAG_LEN;
use crate::wire::extended::status::Status;
use crate::wire::extended::{DATA_LEN, Header, Kind, Message};
use crate::wire::gre::Protocol;
use crate::wire::inner;
use crate::wire::keepalive::{Arrivals, Keepalive, Trailer};

/// The sending half of a connection's framing.
#[derive(Debug)]
pub(crate) struct Tx {
    plain: plain::tx::Tx,
    config: FramingConfig,
    mode: Mode,
    /// What datagrams are sealed with, in sealed framing.
    keys: Option<Box<Keys>>,
}

/// How a connection's datagrams are sent at present.
#[derive(Debug)]
enum Mode {
    Plain,
    Extended(extended::tx::Tx),
    /// Nothing is sent before there is a session.
    Waiting,
}

/// The receiving half of a connection's framing.
#[derive(Debug)]
pub(crate) struct Rx {
    pub(crate) plain: plain::rx::Rx,
    pub(crate) config: FramingConfig,
}

impl Rx {
    pub(crate) fn new(config: &ConnectionConfig, own: &[IpAddr]) -> Self {
        Self { plain: plain::rx::Rx::new(config, own), config: config.framing }
    }

    /// Validates a payload.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    #[inline(always)]
    pub(crate) fn read(&self, opened: &Opened, payload: &[u8]) -> Result<Body, Drop> {
        match &opened.framed {
            Framed::Plain(protocol) => self.plain.read(*protocol, payload),
            Framed::Extended(header) if header.kind == Kind::Data => {
                inner::parse(payload).map(Body::Inner).ok_or(Drop::InnerMalformed)
            }
            Framed::Extended(header) => self.read_message(header, payload),
        }
    }

    #[cold]
    fn read_message(&self, header: &Header, payload: &[u8]) -> Result<Body, Drop> {
        if let Message::Status(status) = Message::parse(header.kind, payload)? {
            let keepalive = self.keepalive(header, &status)?;
            return Ok(Body::Status(keepalive, status.equalise, status.interval));
        }
        Ok(Body::Message)
    }

    /// A path status as the keepalive whose place it takes.
    fn keepalive(&self, header: &Header, status: &Status) -> Result<Keepalive, Drop> {
        let (sender, receiver) = self.plain.addresses().ok_or(Drop::ControlAddress)?;
        let Status { report, activation, count, longest, weight, lost, sent, echo, .. } = *status;
        let arrivals = longest.map(|longest| Arrivals { longest, keepalives: count });
        let trailer = Some(Trailer { sent, time: header.sent, echo });
        let path = Some(header.path);
        Ok(Keepalive {
            report,
            activation,
            arrivals,
            weight,
            path,
            lost,
            sender,
            receiver,
            trailer,
        })
    }

    /// Whether the peer is told at once of what changes on a path.
    pub(crate) fn announces(&self) -> bool {
        self.plain.announces()
    }

    /// The peer's tunnel addresses.
    pub(crate) fn peer(&self) -> &[IpAddr] {
        self.plain.peer()
    }
}

impl Tx {
    pub(crate) fn new(config: &ConnectionConfig) -> Self {
        let (plain, config) = (plain::tx::Tx::new(config), config.framing);
        let keys = (config == FramingConfig::Sealed).then(Box::default);
        Self { plain, config, mode: Mode::without_session(config), keys }
    }

    /// Takes over what can change at run time. Returns whether anything did.
    pub(crate) fn set(&mut self, config: &ConnectionConfig) -> bool {
        self.plain.set(config)
    }

    /// A session begins, in which the peer receives under this index.
    pub(crate) fn begin(&mut self, peer: &Peer) {
        self.mode =
            Mode::Extended(extended::tx::Tx::new(peer.index, peer.partial, self.keys.is_some()));
    }

    /// There is no session any more.
    pub(crate) fn end(&mut self) {
        self.mode = Mode::without_session(self.config);
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
    }

    /// An epoch begins; unless a session begins with it the present one continues.
    pub(crate) fn begin_epoch(&mut self, sealing: &Sealing) {
        if let Some(keys) = &mut self.keys {
            keys.begin(sealing);
        }
        if let Mode::Extended(session) = &mut self.mode {
            session.set_index(sealing.index);
        }
    }

    /// Seals a datagram in place that was written by this stamp, if it is to be sealed.
    ///
    /// # Errors
    ///
    /// Why it cannot be; then it is filled with zeros.
    #[inline]
    pub(crate) fn seal(&mut self, stamp: &Stamp, datagram: &mut [u8]) -> Result<(), Drop> {
        match (&mut self.keys, stamp) {
            (Some(keys), Stamp::Extended(stamp)) => keys.seal(stamp.header(), datagram),
            _ => Ok(()),
        }
    }

    /// The index of the session in use, if there is one.
    pub(crate) fn index(&self) -> Option<u32> {
        match &self.mode {
            Mode::Extended(session) => Some(session.index()),
            Mode::Plain | Mode::Waiting => None,
        }
    }

    /// The number of the last packet of the session, if there is one.
    pub(crate) fn last_sequence(&self) -> Option<Seq> {
        match &self.mode {
            Mode::Extended(session) => Some(session.last()),
            Mode::Plain | Mode::Waiting => None,
        }
    }

    /// Whether anything but a hello can be sent.
    pub(crate) fn is_ready(&self) -> bool {
        !matches!(self.mode, Mode::Waiting)
    }

    /// How many bytes of header stand before each inner packet at the most.
    pub(crate) fn largest_overhead(&self) -> usize {
        match self.config {
            FramingConfig::Plain => self.plain.overhead(),
            FramingConfig::Auto => self.plain.overhead().max(DATA_LEN),
            FramingConfig::Extended => DATA_LEN,
            FramingConfig::Sealed => DATA_LEN + TAG_LEN,
        }
    }

    /// How many bytes of header stand before each inner packet at present.
    pub(crate) fn overhead(&self) -> usize {
        match &self.mode {
            Mode::Plain => self.plain.overhead(),
            Mode::Extended(_) | Mode::Waiting if self.keys.is_some() => DATA_LEN + TAG_LEN,
            Mode::Extended(_) | Mode::Waiting => DATA_LEN,
        }
    }

    /// Whether the peer is told at once of what changes on a path.
    pub(crate) fn announces(&self) -> bool {
        self.plain.announces()
    }

    /// Whether the peer may be sent the same datagram twice.
    pub(crate) fn recognises_copies(&self) -> bool {
        match &self.mode {
            Mode::Extended(_) => true,
            Mode::Plain | Mode::Waiting => self.plain.recognises_copies(),
        }
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let session = match &self.mode {
            Mode::Extended(session) => session.memory(),
            Mode::Plain | Mode::Waiting => 0,
        };
        session + self.keys.as_ref().map_or(0, |keys| size_of_val(&**keys) + keys.memory())
    }

    /// Gives back what is not needed while no packet is sent, and none waits.
    pub(crate) fn rest(&mut self) {
        if let Some(keys) = &mut self.keys {
            keys.rest();
        }
        if let Mode::Extended(session) = &mut self.mode {
            session.rest();
        }
    }

    /// Allocates what the next datagram with an inner packet is numbered by. There is a session, or none is needed:
    /// nothing else is [ready](Self::is_ready).
    #[inline(always)]
    pub(crate) fn stamp(&mut self, now: Instant, item: &Item<'_>, path: &mut WirePath) -> Stamp {
        match &mut self.mode {
            Mode::Extended(session) => Stamp::Extended(session.stamp(now, item, path)),
            Mode::Plain | Mode::Waiting => Stamp::Plain(self.plain.stamp(item.inner.protocol)),
        }
    }

    /// Numbers a packet that does not leave yet; `None` without a session, which alone tells both apart.
    #[inline]
    pub(crate) fn number(&mut self, item: &Item<'_>) -> Option<Stamp> {
        match &mut self.mode {
            Mode::Extended(session) => Some(Stamp::Extended(session.number(item))),
            Mode::Plain | Mode::Waiting => None,
        }
    }

    /// Whether the peer accepts inner packets with a partial checksum.
    pub(crate) fn is_partial(&self) -> bool {
        match &self.mode {
            Mode::Extended(session) => session.is_partial(),
            Mode::Plain | Mode::Waiting => false,
        }
    }

    /// The stamp of a datagram that is sent again: it keeps its place in the order. `None` if the receiver
    /// may no longer recognise the number as a copy.
    pub(crate) fn restamp(
        &self,
        now: Instant,
        stamp: &Stamp,
        path: &mut WirePath,
    ) -> Option<Stamp> {
        match (&self.mode, stamp) {
            (Mode::Plain, Stamp::Plain(stamp)) => self.plain.restamp(*stamp).map(Stamp::Plain),
            _ => Some(self.again(stamp)?.leaving(now, path)),
        }
    }

    /// The stamp of a packet of the session that is sent again, but does not leave yet. `None` as
    /// [above](Self::restamp).
    pub(crate) fn again(&self, stamp: &Stamp) -> Option<Stamp> {
        let (Mode::Extended(session), Stamp::Extended(stamp)) = (&self.mode, stamp) else {
            return None;
        };
        let was_index = |index| self.keys.as_ref().is_some_and(|keys| keys.was_index(index));
        session.again(*stamp, was_index).map(Stamp::Extended)
    }

    /// The stamp of a keepalive or of the path status in its place, which have no place in the order.
    pub(crate) fn stamp_status(
        &self,
        now: Instant,
        protocol: Protocol,
        path: &mut WirePath,
    ) -> Stamp {
        self.stamp_control(now, Kind::PathStatus, path)
            .unwrap_or_else(|| Stamp::Plain(self.plain.stamp_control(protocol)))
    }

    /// The stamp of a control message in a session; `None` without one.
    pub(crate) fn stamp_control(
        &self,
        now: Instant,
        kind: Kind,
        path: &mut WirePath,
    ) -> Option<Stamp> {
        match &self.mode {
            Mode::Extended(session) => {
                Some(Stamp::Extended(session.stamp_control(now, kind, path)))
            }
            Mode::Plain | Mode::Waiting => None,
        }
    }

    /// The stamp of a parity, which does not leave yet; `None` without a session.
    pub(crate) fn parity(&self) -> Option<Stamp> {
        match &self.mode {
            Mode::Extended(session) => Some(Stamp::Extended(session.parity())),
            Mode::Plain | Mode::Waiting => None,
        }
    }

    /// The stamp of a message of the session that counts by no path; `None` without one.
    pub(crate) fn stamp_uncounted(&mut self, now: Instant, kind: Kind, path: u8) -> Option<Stamp> {
        match &mut self.mode {
            Mode::Extended(session) => {
                Some(Stamp::Extended(session.stamp_uncounted(now, kind, path)))
            }
            Mode::Plain | Mode::Waiting => None,
        }
    }
}

impl Mode {
    fn without_session(config: FramingConfig) -> Self {
        match config {
            FramingConfig::Plain | FramingConfig::Auto => Self::Plain,
            FramingConfig::Extended | FramingConfig::Sealed => Self::Waiting,
        }
    }
}
