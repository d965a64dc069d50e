//! The two messages by which two hosts agree on keys (section 9.2 of `docs/protocol.md`).

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

use super::cipher::{KeyBytes, OpeningKey};
use super::cookie::{Admission, Load};
use super::hash::{Generator, MacBytes, is_equal, labelled, mac};
use super::noise::{Noise, Split, StaticKey};
use crate::framing::extended::identity::At;
use crate::keys::ciphers::{Cipher, Ciphers};
use crate::keys::invitation::{InvitationHash, InvitationSecret};
use crate::keys::{HostKeys, KEY_LEN, PeerKeys, PresharedKey, PublicKey};
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::Kind;
use crate::wire::extended::hello::{self, Hello};
use crate::wire::extended::sealed::{
    COOKIE_REPLY_LEN, INITIATION_LEN, INVITED_LEN, LONGEST_LEN, MAC_LEN, RESPONSE_LEN, SECOND_LEN,
    SECRET_LEN, TIMESTAMP_LEN,
};

/// The most bytes of a payload: 64 lanes, and padding to that length.
const MOST_PAYLOAD: usize = 512;

const MAC1_LABEL: &[u8] = b"MPT mac1";
/// How much of a message MAC1 is of: one block of the hash, so that a long message costs no more to refuse than a short one. It holds
/// the index and the ephemeral key, or the ephemeral key and the beginning of the payload; Noise authenticates the rest.
const MAC1_COVERS: usize = 64;

/// When an initiation was made: TAI64N, which compares as its bytes do.
pub(crate) type Timestamp = [u8; TIMESTAMP_LEN];

/// What a host has for all of its handshakes.
pub(crate) struct Host {
    own: StaticKey,
    ciphers: Ciphers,
    /// The key of MAC1 in messages to this host.
    mac1_key: [u8; KEY_LEN],
    random: Generator,
    load: Load,
    /// The time since 1970 at which the core's clock was zero.
    clock_zero: Duration,
}

/// An own initiation that waits for its response.
pub(crate) struct Initiation {
    noise: Noise,
    /// What it says.
    pub(crate) hello: Hello,
    /// When it was made.
    pub(crate) at: Instant,
    pub(crate) message: Box<[u8]>,
}

/// An authentic initiation of a peer.
pub(crate) struct Received {
    noise: Noise,
    /// Whose it is.
    pub(crate) peer: PublicKey,
    pub(crate) hello: Hello,
    pub(crate) timestamp: Timestamp,
    /// What the secret hashes to that came with it, if one did.
    pub(crate) invitation: Option<InvitationHash>,
    ciphers: Ciphers,
}

/// What becomes of an initiation that is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Drop(Drop),
    /// It is dropped, and a cookie reply is sent to the index in it.
    Ask(u32, [u8; COOKIE_REPLY_LEN]),
}

/// What two hosts have agreed on.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) seal: KeyBytes,
    pub(crate) open: OpeningKey,
    pub(crate) cipher: Cipher,
}

impl Host {
    /// The same seed gives the same handshakes.
    pub(crate) fn new(keys: &HostKeys) -> Self {
        let (own, mut random) = (StaticKey::new(&keys.private), Generator::new(&keys.seed));
        let public = *own.public();
        Self {
            own,
            ciphers: keys.ciphers,
            mac1_key: labelled(MAC1_LABEL, &public),
            load: Load::new(&public, &mut random),
            random,
            clock_zero: keys.clock_zero,
        }
    }

    /// The static key by which this host is known.
    pub(crate) fn public(&self) -> &PublicKey {
        self.own.public()
    }

    /// The time since 1970.
    pub(crate) fn wall_clock(&self, now: Instant) -> Duration {
        self.clock_zero + now.since(Instant::ZERO)
    }

    /// Begins a handshake with a peer, in which this host says `hello`. With a cookie of the peer it has a MAC2.
    pub(crate) fn initiate(
        &mut self,
        now: Instant,
        peer: &PeerKeys,
        hello: Hello,
        cookie: Option<&MacBytes>,
    ) -> Option<Initiation> {
        let ephemeral = self.random.draw();
        let preshared = peer.preshared.as_ref();
        let mut noise = Noise::initiator(&self.own, ephemeral, &peer.public, preshared)?;
        let mut payload = Zeroizing::new([0; hello::LEN + TIMESTAMP_LEN + SECRET_LEN]);
        let hello = Hello { cookie: u64::from(self.ciphers.word()) << 32, ..hello };
        let (place, rest) = payload.split_at_mut(hello::LEN);
        hello.emit(place);
        let (time, secret) = rest.split_at_mut(TIMESTAMP_LEN);
        time.copy_from_slice(&timestamp(self.wall_clock(now)));
        let (payload, len) = match &peer.invitation {
            Some(invitation) => {
                secret.copy_from_slice(invitation.bytes());
                (&payload[..], INVITED_LEN)
            }
            None => (&payload[..hello::LEN + TIMESTAMP_LEN], INITIATION_LEN),
        };
        let mut message = vec![0; len].into_boxed_slice();
        let (index, rest) = message.split_at_mut(4);
        index.copy_from_slice(&hello.index.to_be_bytes());
        noise.write(payload, rest)?;
        let (before, mac1) = message.split_at_mut(len - 2 * MAC_LEN);
        let key = labelled(MAC1_LABEL, &peer.public);
        mac1[..MAC_LEN].copy_from_slice(&mac1_of(&key, before));
        if let Some(cookie) = cookie {
            let (before, mac2) = message.split_at_mut(len - MAC_LEN);
            mac2.copy_from_slice(&mac(cookie, &[before]));
        }
        Some(Initiation { noise, hello, at: now, message })
    }

    /// Reads an initiation that came from an origin.
    ///
    /// # Errors
    ///
    /// Why it is dropped, and with what it is answered all the same.
    pub(crate) fn read_initiation(
        &mut self,
        now: Instant,
        at: At,
        message: &[u8],
    ) -> Result<Received, Refusal> {
        let drop = |reason| Refusal::Drop(reason);
        if !(INITIATION_LEN..=LONGEST_LEN).contains(&message.len()) {
            return Err(drop(Drop::ControlLength));
        }
        let (before, mac2) = message.split_last_chunk().ok_or(drop(Drop::ControlLength))?;
        let (first, mac1) =
            before.split_last_chunk::<MAC_LEN>().ok_or(drop(Drop::ControlLength))?;
        if !is_equal(&mac1_of(&self.mac1_key, first), mac1) {
            return Err(drop(Drop::HandshakeMac));
        }
        let (index, noise) = first.split_first_chunk().ok_or(drop(Drop::ControlLength))?;
        let index = u32::from_be_bytes(*index);
        match self.load.admit(now, at, (before, mac1, mac2), &mut self.random) {
            Admission::Compute => {}
            Admission::Drop => return Err(drop(Drop::HandshakeLoad)),
            Admission::Ask(reply) => return Err(Refusal::Ask(index, reply)),
        }
        self.read_first(index, noise).map_err(drop)
    }

    fn read_first(&mut self, index: u32, message: &[u8]) -> Result<Received, Drop> {
        let ephemeral = self.random.draw();
        let noise = Noise::responder(&self.own, ephemeral);
        let mut noise = noise.ok_or(Drop::HandshakeForged)?;
        let mut payload = Zeroizing::new([0; MOST_PAYLOAD]);
        let len = noise.read(message, &mut *payload).ok_or(Drop::HandshakeForged)?;
        let peer = noise.peer().ok_or(Drop::HandshakeForged)?;
        let payload = &payload[..len];
        // Of the kinds with this layout the one that need not be padded.
        let hello = Hello::parse(Kind::HelloAnswer, payload)?;
        let rest = payload.get(hello::len_of(payload)..).and_then(<[u8]>::split_first_chunk);
        let (&timestamp, rest) = rest.ok_or(Drop::ControlLength)?;
        let secret = rest.first_chunk().filter(|secret| **secret != [0; SECRET_LEN]);
        let invitation = secret.map(|secret| InvitationSecret::new(*secret).hash());
        if hello.index != index || hello.version != hello::VERSION {
            return Err(Drop::HandshakeRefused);
        }
        let ciphers = Ciphers::from_word((hello.cookie >> 32) as u32);
        Ok(Received { noise, peer, hello, timestamp, invitation, ciphers })
    }

    /// Answers an initiation, in which this host says `answer`. Returns the response and the keys.
    ///
    /// # Errors
    ///
    /// [`Drop::HandshakeRefused`] if there is no cipher that both hosts have.
    pub(crate) fn respond(
        &mut self,
        received: Received,
        preshared: Option<&PresharedKey>,
        answer: Hello,
    ) -> Result<([u8; RESPONSE_LEN], Agreed), Drop> {
        let Received { mut noise, peer, ciphers, .. } = received;
        let cipher = self.ciphers.common(ciphers).ok_or(Drop::HandshakeRefused)?;
        let mut payload = [0; hello::LEN];
        Hello { cookie: u64::from(cipher.word()) << 32, ..answer }.emit(&mut payload);
        let mut message = [0; RESPONSE_LEN];
        let (first, mac1) = message.split_at_mut(RESPONSE_LEN - MAC_LEN);
        let split = noise
            .set_preshared(preshared)
            .and_then(|()| noise.write(&payload, first))
            .and_then(|_| noise.split())
            .ok_or(Drop::HandshakeRefused)?;
        mac1.copy_from_slice(&mac1_of(&labelled(MAC1_LABEL, &peer), first));
        let Split { first, second } = split;
        Ok((message, Agreed::new(cipher, second, &first)))
    }

    /// Reads the response to an own initiation.
    ///
    /// # Errors
    ///
    /// Why it is dropped; the initiation still waits then.
    pub(crate) fn read_response(
        &self,
        initiation: &mut Option<Box<Initiation>>,
        message: &[u8],
    ) -> Result<(Hello, Hello, Agreed), Drop> {
        let waiting = initiation.as_mut().ok_or(Drop::HandshakeUnknown)?;
        let (first, mac1) = message.split_last_chunk::<MAC_LEN>().ok_or(Drop::ControlLength)?;
        if first.len() < RESPONSE_LEN - MAC_LEN || first.len() > SECOND_LEN + MOST_PAYLOAD {
            return Err(Drop::ControlLength);
        }
        if !is_equal(&mac1_of(&self.mac1_key, first), mac1) {
            return Err(Drop::HandshakeMac);
        }
        let mut payload = [0; MOST_PAYLOAD];
        let len = waiting.noise.read(first, &mut payload).ok_or(Drop::HandshakeForged)?;
        // It was authentic, so there is no other.
        let Some(waiting) = initiation.take() else { return Err(Drop::HandshakeUnknown) };
        let answer = Hello::parse(Kind::HelloAnswer, &payload[..len])?;
        let selected = Cipher::selected((answer.cookie >> 32) as u32);
        let cipher = selected.ok_or(Drop::HandshakeRefused)?;
        if answer.echo != waiting.hello.session || answer.version != hello::VERSION {
            return Err(Drop::HandshakeRefused);
        }
        let Initiation { noise, hello, .. } = *waiting;
        let Split { first, second } = noise.split().ok_or(Drop::HandshakeForged)?;
        Ok((hello, answer, Agreed::new(cipher, first, &second)))
    }
}

/// MAC1 of a message that begins with `before`.
fn mac1_of(key: &[u8; KEY_LEN], before: &[u8]) -> MacBytes {
    mac(key, &[&before[..before.len().min(MAC1_COVERS)]])
}

impl Initiation {
    /// Its MAC1, which a cookie reply to it is bound to.
    pub(crate) fn mac1(&self) -> MacBytes {
        let at = self.message.len() - 2 * MAC_LEN;
        let mut mac1 = [0; MAC_LEN];
        mac1.copy_from_slice(&self.message[at..at + MAC_LEN]);
        mac1
    }
}

impl Agreed {
    fn new(
        cipher: Cipher,
        seal: Zeroizing<[u8; KEY_LEN]>,
        open: &Zeroizing<[u8; KEY_LEN]>,
    ) -> Self {
        let (seal, open) = (KeyBytes::new(cipher, seal), OpeningKey::new(cipher, open));
        Self { seal, open, cipher }
    }
}

/// TAI64N without leap seconds.
fn timestamp(since_1970: Duration) -> Timestamp {
    let mut timestamp = [0; TIMESTAMP_LEN];
    let (seconds, nanos) = timestamp.split_at_mut(8);
    seconds.copy_from_slice(&((1 << 62) + since_1970.as_secs()).to_be_bytes());
    nanos.copy_from_slice(&since_1970.subsec_nanos().to_be_bytes());
    timestamp
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Host").field("public", self.own.public()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Initiation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Initiation").field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Received").field("peer", &self.peer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
