//! Cookies: what a responder under load asks for before it computes (section 9.2 of `docs/protocol.md`).
//!
//! A peer that repeats the cookie in MAC2 receives what is sent to its origin. Nothing is kept for a cookie.

use std::time::Duration;

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::hash::{Generator, MacBytes, is_equal, labelled, mac};
use crate::framing::extended::identity::At;
use crate::keys::{KEY_LEN, PublicKey};
use crate::time::Instant;
use crate::token_bucket::TokenBucket;
use crate::wire::extended::sealed::{COOKIE_REPLY_LEN, MAC_LEN};

/// A secret makes cookies for so long, and they are valid as long again.
pub(crate) const PERIOD: Duration = Duration::from_secs(120);

const NONCE_LEN: usize = 12;
const LABEL: &[u8] = b"MPT cookie";

/// Handshakes that are computed at once, and how often another one is: 64, and then 500 per second, a tenth of one
/// processor's time.
const AT_ONCE: u32 = 64;
const EVERY: Duration = Duration::from_millis(2);

/// What one address may ask for under load: 20 at once, and then 20 per second. Clients behind one translator share it.
const AT_ONCE_OF_SOURCE: u32 = 20;
const EVERY_OF_SOURCE: Duration = Duration::from_millis(50);

/// Sources are counted in so many places, by their hash. Those in one place share its allowance.
const PLACES: usize = 1024;

/// What a responder needs to bound its work.
pub(crate) struct Load {
    /// The handshakes of anybody.
    open: TokenBucket,
    /// The handshakes of those who have a cookie. They have an allowance of their own.
    proven: TokenBucket,
    replies: TokenBucket,
    /// What each source has left; empty until there is load.
    sources: Vec<TokenBucket>,
    /// The secrets of this period and the one before.
    secrets: [Zeroizing<[u8; KEY_LEN]>; 2],
    /// Which period it is.
    period: u64,
    key: LessSafeKey,
}

/// What becomes of an initiation whose MAC1 is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Compute,
    Drop,
    /// It is answered by this cookie reply.
    Ask([u8; COOKIE_REPLY_LEN]),
}

impl Load {
    /// Of the host with this public key.
    pub(crate) fn new(own: &PublicKey, random: &mut Generator) -> Self {
        Self {
            open: TokenBucket::new(AT_ONCE, EVERY),
            proven: TokenBucket::new(AT_ONCE, EVERY),
            replies: TokenBucket::new(AT_ONCE, EVERY),
            sources: Vec::new(),
            secrets: [random.draw(), random.draw()],
            period: 0,
            key: key(own),
        }
    }

    /// Decides about an initiation from an origin: `message` is all of it before MAC2, which ends with `mac1`.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        at: At,
        (message, mac1, mac2): (&[u8], &MacBytes, &MacBytes),
        random: &mut Generator,
    ) -> Admission {
        if self.open.take(now) {
            return Admission::Compute;
        }
        self.change_secrets(now, random);
        if !self.source(at).take(now) {
            return Admission::Drop;
        }
        let is_proven = |secret: &Zeroizing<[u8; KEY_LEN]>| {
            let cookie = Zeroizing::new(cookie(secret, at));
            is_equal(&mac(&*cookie, &[message]), mac2)
        };
        if self.secrets.iter().any(is_proven) {
            return if self.proven.take(now) { Admission::Compute } else { Admission::Drop };
        }
        if !self.replies.take(now) {
            return Admission::Drop;
        }
        let mut reply = [0; COOKIE_REPLY_LEN];
        let (nonce, rest) = reply.split_at_mut(NONCE_LEN);
        nonce.copy_from_slice(&random.draw()[..NONCE_LEN]);
        let (place, tag) = rest.split_at_mut(MAC_LEN);
        place.copy_from_slice(&cookie(&self.secrets[0], at));
        let nonce = Nonce::try_assume_unique_for_key(nonce).expect("12 bytes");
        let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::from(mac1), place);
        tag.copy_from_slice(sealed.expect("a text of allowed length").as_ref());
        Admission::Ask(reply)
    }

    /// What a source has left. An IPv6 network of 64 bits is one source.
    fn source(&mut self, at: At) -> &mut TokenBucket {
        if self.sources.is_empty() {
            self.sources = vec![TokenBucket::new(AT_ONCE_OF_SOURCE, EVERY_OF_SOURCE); PLACES];
        }
        let hash = match at.remote.ip() {
            std::net::IpAddr::V4(address) => mac(&*self.secrets[0], &[&address.octets()]),
            std::net::IpAddr::V6(address) => mac(&*self.secrets[0], &[&address.octets()[..8]]),
        };
        &mut self.sources[usize::from(u16::from_be_bytes([hash[0], hash[1]])) % PLACES]
    }

    fn change_secrets(&mut self, now: Instant, random: &mut Generator) {
        let period = now.since(Instant::ZERO).as_secs() / PERIOD.as_secs();
        if period != self.period {
            let last = std::mem::replace(&mut self.secrets[0], random.draw());
            let is_next = period == self.period + 1;
            self.secrets[1] = if is_next { last } else { random.draw() };
            self.period = period;
        }
    }
}

/// The cookie in a reply of a peer to an initiation with this MAC1; `None` if it is not authentic.
pub(crate) fn read(peer: &PublicKey, mac1: &MacBytes, reply: &[u8]) -> Option<MacBytes> {
    let reply = reply.first_chunk::<COOKIE_REPLY_LEN>()?;
    let (nonce, rest) = reply.split_at(NONCE_LEN);
    let (text, tag) = rest.split_at(MAC_LEN);
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut cookie = [0; MAC_LEN];
    let aad = Aad::from(mac1);
    key(peer).open_separate_gather(nonce, aad, text, tag, &mut cookie).ok()?;
    Some(cookie)
}

fn key(owner: &PublicKey) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, &labelled(LABEL, owner));
    LessSafeKey::new(key.expect("a hash has 32 bytes"))
}

/// The cookie of an origin.
fn cookie(secret: &[u8; KEY_LEN], at: At) -> MacBytes {
    let address = match at.remote.ip() {
        std::net::IpAddr::V4(address) => address.to_ipv6_mapped(),
        std::net::IpAddr::V6(address) => address,
    };
    let port = at.remote.port().to_be_bytes();
    mac(secret, &[&address.octets(), &port, &at.socket.0.to_be_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SocketId;
    use std::net::SocketAddr;

    fn at(port: u16) -> At {
        // Each port at another address, or they would share what one may ask for.
        let [high, low] = port.to_be_bytes();
        At { socket: SocketId(0), remote: SocketAddr::from(([192, 0, high, low], port)) }
    }

    struct Responder(Load, Generator);

    impl Responder {
        fn new() -> Self {
            let mut random = Generator::new(&[1; 32]);
            Self(Load::new(&PublicKey::new([9; 32]), &mut random), random)
        }

        fn admit(&mut self, now: Instant, port: u16, mac2: &MacBytes) -> Admission {
            self.0.admit(now, at(port), (b"message", &[4; 16], mac2), &mut self.1)
        }

        /// The cookie that a host gets which is asked for it.
        fn ask(&mut self, now: Instant, port: u16) -> MacBytes {
            loop {
                if let Admission::Ask(reply) = self.admit(now, port, &[0; 16]) {
                    let peer = PublicKey::new([9; 32]);
                    assert_eq!(read(&peer, &[5; 16], &reply), None, "to another message");
                    assert_eq!(read(&PublicKey::new([8; 32]), &[4; 16], &reply), None);
                    return read(&peer, &[4; 16], &reply).expect("a cookie");
                }
            }
        }
    }

    #[test]
    fn a_host_under_load_computes_for_those_who_have_a_cookie() {
        let mut responder = Responder::new();
        let now = Instant::ZERO + Duration::from_secs(5);
        let computed =
            (0..1000).filter(|_| matches!(responder.admit(now, 1, &[0; 16]), Admission::Compute));
        assert_eq!(computed.count(), AT_ONCE as usize);
        let mut responder = Responder::new();
        let mac2 = mac(&responder.ask(now, 1), &[b"message"]);
        assert_eq!(responder.admit(now, 1, &mac2), Admission::Compute);
        assert_ne!(responder.admit(now, 2, &mac2), Admission::Compute, "from elsewhere");
    }

    #[test]
    fn cookies_are_valid_for_two_periods() {
        let mut responder = Responder::new();
        let start = Instant::ZERO + PERIOD;
        let mac2 = mac(&responder.ask(start, 1), &[b"message"]);
        let mut admits = |now: Instant| {
            while responder.0.open.take(now) {}
            responder.admit(now, 1, &mac2) == Admission::Compute
        };
        assert!(admits(start + Duration::from_secs(1)));
        assert!(admits(start + PERIOD + Duration::from_secs(1)));
        assert!(!admits(start + 2 * PERIOD + Duration::from_secs(1)));
    }

    #[test]
    fn not_more_replies_are_sent_than_handshakes_are_computed() {
        let mut responder = Responder::new();
        let asks = (0..1000).filter(|port| {
            matches!(responder.admit(Instant::ZERO, *port, &[0; 16]), Admission::Ask(_))
        });
        assert_eq!(asks.count(), AT_ONCE as usize);
    }

    #[test]
    fn one_source_does_not_get_what_there_is_for_all() {
        let mut responder = Responder::new();
        let asks = |admission| matches!(admission, Admission::Ask(_));
        let of_one = (0..1000).filter(|_| asks(responder.admit(Instant::ZERO, 1, &[0; 16])));
        assert_eq!(of_one.count(), AT_ONCE_OF_SOURCE as usize);
        assert!(asks(responder.admit(Instant::ZERO, 2, &[0; 16])), "another one");
        let later = Instant::ZERO + EVERY_OF_SOURCE;
        while responder.0.open.take(later) {}
        assert!(asks(responder.admit(later, 1, &[0; 16])));
    }
}
