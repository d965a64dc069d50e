//! Values that others must not be able to guess, all derived from the host's [`Secret`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::id::SocketId;
use crate::secret::Secret;
use crate::time::Instant;

/// A cookie or challenge is valid in the period of this length in which it was made, and in the next one.
const PERIOD: Duration = Duration::from_secs(16);

/// By what this host is known in the sessions of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The session id.
    pub session: u64,
    /// The connection index under which the peer sends; not 0.
    pub index: u32,
}

impl Identity {
    /// The identity of the connection that was added as number `count`, after it has forgotten so many sessions:
    /// both halves derive the same one.
    pub(crate) fn derive(secret: &Secret, count: u64, forgotten: u64) -> Self {
        let session = secret.about("session").number(count).number(forgotten).output();
        let index = secret.about("index").number(count).number(forgotten).output() as u32;
        Self { session, index: index.max(1) }
    }
}

/// Where a datagram came from, for what is to be sent back there before a path exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct At {
    pub(crate) socket: SocketId,
    pub(crate) remote: SocketAddr,
}

/// What a cookie is about: the two hosts of a session to be, and the origin of the hello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) at: At,
    pub(crate) initiator: (IpAddr, u64, u32),
    pub(crate) responder: (IpAddr, u64),
}

impl Meeting {
    /// The cookie of the present period.
    pub(crate) fn cookie(&self, secret: &Secret, now: Instant) -> u64 {
        self.in_period(secret, period(now))
    }

    /// Whether this host has given out the cookie lately.
    pub(crate) fn is_valid(&self, secret: &Secret, now: Instant, cookie: u64) -> bool {
        let period = period(now);
        [period, period.wrapping_sub(1)].iter().any(|it| self.in_period(secret, *it) == cookie)
    }

    fn in_period(&self, secret: &Secret, period: u64) -> u64 {
        let ((initiator, theirs, index), (responder, ours)) = (self.initiator, self.responder);
        let about = secret.about("cookie").number(period).number(u64::from(self.at.socket.0));
        let about = about.socket_address(self.at.remote).address(initiator).number(theirs);
        about.number(u64::from(index)).address(responder).number(ours).output()
    }
}

/// The challenge for an origin in a session, in the present period.
pub(crate) fn challenge(secret: &Secret, now: Instant, own: Identity, at: At) -> u64 {
    challenge_in(secret, period(now), own, at)
}

/// Whether this host has challenged the origin so lately.
pub(crate) fn is_challenge(
    secret: &Secret,
    now: Instant,
    own: Identity,
    at: At,
    answer: u64,
) -> bool {
    let period = period(now);
    [period, period.wrapping_sub(1)].iter().any(|it| challenge_in(secret, *it, own, at) == answer)
}

fn challenge_in(secret: &Secret, period: u64, own: Identity, at: At) -> u64 {
    let about = secret.about("challenge").number(period).number(own.session);
    about.number(u64::from(at.socket.0)).socket_address(at.remote).output()
}

fn period(now: Instant) -> u64 {
    now.since(Instant::ZERO).as_secs() / PERIOD.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> At {
        At { socket: SocketId(3), remote: SocketAddr::from(([192, 0, 2, 1], port)) }
    }

    fn seconds(count: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(count)
    }

    #[test]
    fn a_cookie_is_valid_for_its_origin_and_for_two_periods() {
        let secret = Secret::new([7; 16]);
        let host = |last: u8| IpAddr::from([10, 0, 0, last]);
        let meeting = Meeting { at: at(1), initiator: (host(2), 5, 6), responder: (host(1), 8) };
        let cookie = meeting.cookie(&secret, seconds(15));
        assert!(meeting.is_valid(&secret, seconds(15), cookie));
        assert!(meeting.is_valid(&secret, seconds(31), cookie));
        assert!(!meeting.is_valid(&secret, seconds(32), cookie), "too old");
        assert!(!meeting.is_valid(&Secret::new([8; 16]), seconds(15), cookie));
        for other in [
            Meeting { at: at(2), ..meeting },
            Meeting { initiator: (host(3), 5, 6), ..meeting },
            Meeting { initiator: (host(2), 4, 6), ..meeting },
            Meeting { initiator: (host(2), 5, 7), ..meeting },
            Meeting { responder: (host(1), 9), ..meeting },
        ] {
            assert!(!other.is_valid(&secret, seconds(15), cookie), "{other:?}");
        }
    }

    #[test]
    fn a_challenge_is_of_one_session_and_origin() {
        let secret = Secret::new([7; 16]);
        let own = Identity::derive(&secret, 1, 0);
        let other = Identity::derive(&secret, 1, 1);
        assert_ne!((own.session, own.index), (other.session, other.index));
        let bytes = challenge(&secret, seconds(3), own, at(1));
        assert!(is_challenge(&secret, seconds(20), own, at(1), bytes));
        assert!(!is_challenge(&secret, seconds(40), own, at(1), bytes), "too old");
        assert!(!is_challenge(&secret, seconds(3), own, at(2), bytes));
        assert!(!is_challenge(&secret, seconds(3), other, at(1), bytes));
    }
}
