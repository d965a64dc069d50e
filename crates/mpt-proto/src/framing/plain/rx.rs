//! Plain framing, receiving: which payloads are valid, by the kind of the peer.

use std::net::IpAddr;

use crate::config::ConnectionConfig;
use crate::framing::datagram::Body;
use crate::peer_kind::PeerKind;
use crate::stats::Drop;
use crate::wire::gre::Protocol;
use crate::wire::inner;
use crate::wire::keepalive::{BARE_LEN, FIRST_CONTROL, Keepalive, is_probe};

/// What the payloads of one connection must agree with.
#[derive(Debug)]
pub(crate) struct Rx {
    kind: PeerKind,
    /// The tunnel addresses of this end and of the peer, which keepalives name.
    own: Vec<IpAddr>,
    peer: Vec<IpAddr>,
}

impl Rx {
    pub(crate) fn new(config: &ConnectionConfig, own: &[IpAddr]) -> Self {
        Self { kind: config.peer_kind, own: own.to_vec(), peer: config.peer.clone() }
    }

    pub(crate) fn peer(&self) -> &[IpAddr] {
        &self.peer
    }

    /// The peer's first tunnel address and the own one of the same IP version.
    pub(crate) fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let own = |peer: &IpAddr| self.own.iter().find(|own| own.is_ipv4() == peer.is_ipv4());
        self.peer.iter().find_map(|peer| Some((*peer, *own(peer)?)))
    }

    /// Whether these are a tunnel address of the peer and an own one.
    pub(crate) fn knows(&self, peer: IpAddr, own: IpAddr) -> bool {
        self.peer.contains(&peer) && self.own.contains(&own)
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        (self.own.capacity() + self.peer.capacity()) * size_of::<IpAddr>()
    }

    /// Whether the peer is an implementation of this protocol, as far as is configured.
    pub(crate) fn is_mpt(&self) -> bool {
        self.kind == PeerKind::Mpt
    }

    /// Whether the peer is told at once of what changes on a path.
    pub(crate) fn announces(&self) -> bool {
        self.kind.tells()
    }

    /// Whether the peer sends keepalives even where none are sent to it and none are missed: the original MPT
    /// sends them by its own settings.
    pub(crate) fn always_sends_keepalives(&self) -> bool {
        self.kind == PeerKind::Original
    }

    /// Whether each keepalive may be the first after a restart: those of the original MPT are all
    /// equal.
    pub(crate) fn may_restart_silently(&self) -> bool {
        self.kind == PeerKind::Original
    }

    #[inline(always)]
    pub(crate) fn read(&self, protocol: Protocol, payload: &[u8]) -> Result<Body, Drop> {
        if payload.first().is_some_and(|&first| first >= FIRST_CONTROL) {
            return self.read_control(payload);
        }
        let inner = inner::parse(payload).filter(|inner| inner.protocol == protocol);
        inner.map(Body::Inner).ok_or(Drop::InnerMalformed)
    }

    #[cold]
    fn read_control(&self, message: &[u8]) -> Result<Body, Drop> {
        if self.kind.tells() && is_probe(message) {
            return self.read_keepalive(&message[..BARE_LEN]).map(|_| Body::Probe);
        }
        self.read_keepalive(message).map(Body::Keepalive)
    }

    fn read_keepalive(&self, message: &[u8]) -> Result<Keepalive, Drop> {
        if self.kind == PeerKind::Gre {
            return Err(Drop::ControlUnknown);
        }
        let keepalive = Keepalive::parse(message)?;
        let Keepalive { sender, receiver, .. } = keepalive;
        let original = self.kind == PeerKind::Original;
        // The original leaves its own address out where it should have taken it from its interface.
        let from_peer = self.peer.contains(&sender) || original && sender.is_unspecified();
        if !from_peer || !self.own.contains(&receiver) {
            return Err(Drop::ControlAddress);
        }
        // The original sends these fields without a meaning.
        Ok(if original { Keepalive::bare(sender, receiver) } else { keepalive })
    }
}
