//! The keys that one handshake has agreed on, at the receiving half, and how they follow each other (section 9.3 of
//! `docs/protocol.md`).

use std::time::Duration;

use super::cipher::{KeyBytes, OpeningKey, Usage, space};
use super::replay::Replay;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::session::Peer;
use crate::keys::ciphers::Cipher;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::Header;

/// How long the epoch before is still accepted: longer than any reordering.
const OVERLAP: Duration = Duration::from_secs(10);

/// When an epoch's initiator begins the next one, and when its responder does if the initiator has not.
const REKEY_AFTER: Duration = Duration::from_secs(120);
const REKEY_AFTER_RESPONDING: Duration = Duration::from_secs(150);

/// When an epoch's keys are not used any more.
const EXPIRES_AFTER: Duration = Duration::from_secs(240);

/// After so many datagrams in one direction the next epoch is begun early.
const REKEY_COUNT: u64 = 1 << 27;

/// What one handshake has agreed on.
#[derive(Debug)]
pub(crate) struct Epoch {
    /// By what this host is known in it.
    pub(crate) own: Identity,
    pub(crate) peer: Peer,
    pub(crate) cipher: Cipher,
    /// Whether this host has begun the handshake.
    pub(crate) is_initiator: bool,
    open: OpeningKey,
    replay: Replay,
    /// How much the transmit half has sealed.
    usage: Usage,
    opened: u64,
    began: Instant,
}

/// The epochs of one connection.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    current: Option<Box<Epoch>>,
    /// The one before, and until when it is accepted.
    previous: Option<(Box<Epoch>, Instant)>,
    /// One that the peer has not used yet, and the key to seal with from then on.
    pending: Option<(Box<Epoch>, KeyBytes)>,
    /// How many have begun.
    count: u64,
    /// Indices under which nothing is accepted any more.
    gone: Vec<u32>,
}

impl Epoch {
    pub(crate) fn new(
        now: Instant,
        (own, peer): (Identity, Peer),
        (cipher, open): (Cipher, OpeningKey),
        usage: Usage,
        is_initiator: bool,
    ) -> Self {
        let (replay, opened) = (Replay::new(), 0);
        Self { own, peer, cipher, is_initiator, open, replay, usage, opened, began: now }
    }

    /// Opens a datagram in place.
    #[inline]
    fn open(&mut self, header: &Header, datagram: &mut [u8]) -> Result<(), Drop> {
        self.open.open(header, datagram)?;
        let (slot, _) = space(header);
        if !self.replay.accept(slot, header.path_sequence) {
            return Err(Drop::SealReplay);
        }
        self.opened += 1;
        Ok(())
    }
}

impl Epochs {
    /// Opens a datagram in place, under the epoch of its index. Returns what to seal with if a pending epoch begins by it.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    #[inline]
    pub(crate) fn open(
        &mut self,
        now: Instant,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Option<KeyBytes>, Drop> {
        match &mut self.current {
            Some(epoch) if epoch.own.index == header.key => {
                epoch.open(header, datagram).map(|()| None)
            }
            _ => self.open_other(now, header, datagram),
        }
    }

    #[cold]
    fn open_other(
        &mut self,
        now: Instant,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Option<KeyBytes>, Drop> {
        if let Some((epoch, until)) = &mut self.previous
            && epoch.own.index == header.key
            && now < *until
        {
            return epoch.open(header, datagram).map(|()| None);
        }
        let pending = self.pending.as_mut().filter(|(epoch, _)| epoch.own.index == header.key);
        pending.ok_or(Drop::UnknownIndex)?.0.open(header, datagram)?;
        let Some((mut epoch, key)) = self.pending.take() else { return Ok(None) };
        epoch.began = now;
        self.begin(now, epoch);
        Ok(Some(key))
    }

    /// The response to an own initiation has come. What was pending is not used any more.
    pub(crate) fn begin_as_initiator(&mut self, now: Instant, epoch: Epoch) {
        self.drop_pending();
        self.begin(now, Box::new(epoch));
    }

    /// A response was sent: the peer may use this epoch.
    pub(crate) fn offer(&mut self, epoch: Epoch, key: KeyBytes) {
        self.drop_pending();
        self.pending = Some((Box::new(epoch), key));
    }

    fn begin(&mut self, now: Instant, epoch: Box<Epoch>) {
        self.count += 1;
        let last = self.current.replace(epoch).map(|epoch| (epoch, now + OVERLAP));
        let before = std::mem::replace(&mut self.previous, last);
        self.gone.extend(before.map(|(epoch, _)| epoch.own.index));
    }

    fn drop_pending(&mut self) {
        self.gone.extend(self.pending.take().map(|(epoch, _)| epoch.own.index));
    }

    /// Nothing of a session is accepted any more.
    pub(crate) fn clear(&mut self) {
        self.drop_pending();
        self.gone.extend(self.current.take().map(|epoch| epoch.own.index));
        self.gone.extend(self.previous.take().map(|(epoch, _)| epoch.own.index));
    }

    /// Drops the epoch before when its time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.previous.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.gone.extend(self.previous.take().map(|(epoch, _)| epoch.own.index));
        }
    }

    /// Indices under which nothing is accepted any more, each once.
    pub(crate) fn take_gone(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.gone)
    }

    /// The epoch that is in use.
    pub(crate) fn current(&self) -> Option<&Epoch> {
        self.current.as_deref()
    }

    /// All indices under which something is accepted.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let previous = self.previous.as_ref().map(|(epoch, _)| epoch);
        let pending = self.pending.as_ref().map(|(epoch, _)| epoch);
        let epochs = self.current.iter().chain(previous).chain(pending);
        epochs.map(|epoch| epoch.own.index)
    }

    /// How many epochs have begun.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// When the next epoch is to be begun by this host.
    pub(crate) fn rekey_at(&self) -> Option<Instant> {
        let epoch = self.current.as_ref()?;
        let after = if epoch.is_initiator { REKEY_AFTER } else { REKEY_AFTER_RESPONDING };
        Some(epoch.began + after)
    }

    /// Whether so much was sealed or opened that the next epoch is to be begun at once.
    pub(crate) fn is_used_up(&self) -> bool {
        let most = |epoch: &Epoch| epoch.usage.count().max(epoch.opened);
        self.current().is_some_and(|epoch| most(epoch) >= REKEY_COUNT)
    }

    /// When nothing may be sealed any more.
    pub(crate) fn expires_at(&self) -> Option<Instant> {
        self.current().map(|epoch| epoch.began + EXPIRES_AFTER)
    }

    /// When to call [`expire`](Self::expire).
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.previous.as_ref().map(|(_, until)| *until)
    }

    /// Gives back what is not needed while only control comes, and little of that.
    pub(crate) fn rest(&mut self) {
        self.current.iter_mut().for_each(|epoch| epoch.replay.rest());
        self.gone.shrink_to(0);
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let previous = self.previous.as_ref().map(|(epoch, _)| epoch);
        let pending = self.pending.as_ref().map(|(epoch, _)| epoch);
        let epochs = self.current.iter().chain(previous).chain(pending);
        let memory = |epoch: &Epoch| {
            size_of::<Epoch>() + epoch.replay.memory() + OpeningKey::MEMORY + Usage::MEMORY
        };
        let gone = self.gone.capacity() * size_of::<u32>();
        epochs.map(|epoch| memory(epoch)).sum::<usize>() + gone
    }
}
