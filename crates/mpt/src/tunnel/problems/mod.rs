//! Why a connection does not work as configured: causes that are recognised from what arrives, what is answered and
//! what ICMP says.
//!
//! Nothing here is believed on one datagram's word, because most of it can be forged: a cause counts when it was
//! seen again a second later, and as long as it is seen; one about a path only while that path does not work. Then
//! it is a [`Problem`] of the status, under a [code](cause::Cause::code), and one warning in the log.

mod cause;
mod words;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_control::Problem;
use mpt_io::udp::IcmpError;
use mpt_proto::{
    ConnectionId, DownCause, FramingFound, Instant, Mismatch, MismatchKind, PathId, PathState,
    ReceiveHalf, ReceiveSide, SocketId,
};

use super::names::Names;
use cause::{Cause, Place, Reported};

/// How often is looked while anything does not work.
const LOOK: Duration = Duration::from_millis(500);

/// So long something is seen, more than once, before it counts.
const CONFIRMED: Duration = Duration::from_secs(1);

/// A peer that sends plain keepalives as nobody has answered its hellos asks again within this time.
const ASKED: Duration = Duration::from_secs(9);

/// So long nothing arrives before that counts: ICMP may say why until then, and a peer that starts has its time.
const SILENT: Duration = Duration::from_secs(3);

/// So long it counts after it was last seen. Keepalives are sent more often, unless configured.
const EXPIRES: Duration = Duration::from_secs(10);

/// What works was heard as lately as this.
const FRESH: Duration = Duration::from_secs(5);

/// A warning that was given is not given again for so long, and what goes on is warned of again so often.
const AGAIN: Duration = Duration::from_secs(60);
const REPEAT: Duration = Duration::from_secs(600);

/// The most that is kept of what was seen, of paths in trouble, and of what was warned of.
const SIGHTINGS: usize = 128;
const WARNED: usize = 1024;

/// The most problems that a status shows.
const SHOWN: usize = 64;

/// What does not work in a tunnel.
#[derive(Debug, Default)]
pub(super) struct Problems {
    sightings: Vec<Sighting>,
    /// Paths on which nothing is heard, or the peer hears nothing, and since when.
    silent: HashMap<(ConnectionId, PathId), Instant>,
    deaf: HashMap<(ConnectionId, PathId), Instant>,
    warned: HashMap<Warned, (Instant, bool)>,
    /// Connections whose paths come and go with their peer.
    learning: HashSet<ConnectionId>,
    look_at: Option<Instant>,
}

/// What one warning is about; of strangers, each host.
type Warned = (Option<ConnectionId>, Option<PathId>, Option<IpAddr>, &'static str);

/// Something that was seen, perhaps again and again.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    place: Place,
    cause: Cause,
    first: Instant,
    last: Instant,
    again: bool,
}

/// A problem, and what it is called in the log.
pub(super) struct Found {
    pub(super) problem: Problem,
    key: Warned,
}

impl Problems {
    /// A datagram arrived that does not fit.
    pub(super) fn see(&mut self, now: Instant, mismatch: &Mismatch) {
        let Mismatch { remote, connection, path, kind, .. } = *mismatch;
        let learns = connection.is_some_and(|id| self.learning.contains(&id));
        if kind == MismatchKind::Source && learns {
            return;
        }
        self.note(now, Place { connection, path, remote }, Cause::Arrived(kind));
    }

    /// An ICMP message came about a datagram that left by a socket.
    pub(super) fn see_icmp(
        &mut self,
        now: Instant,
        endpoint: &ReceiveSide,
        socket: SocketId,
        error: &IcmpError,
    ) {
        let IcmpError { remote, reporter, kind } = *error;
        let of = |(id, half): (ConnectionId, &ReceiveHalf)| {
            let path = half.paths().find(|path| half.remote(*path) == (socket, remote))?;
            Some((id, path))
        };
        let owners: Vec<_> = endpoint.connections().filter_map(of).take(SHOWN).collect();
        for (connection, path) in owners {
            let place = Place { connection: Some(connection), path: Some(path), remote };
            self.note(now, place, Cause::Icmp(Reported { kind, reporter }));
        }
    }

    fn note(&mut self, now: Instant, place: Place, cause: Cause) {
        self.sightings.retain(|sighting| now < sighting.last + EXPIRES);
        let same =
            |sighting: &&mut Sighting| sighting.place.is(&place) && sighting.cause.is(&cause);
        if let Some(sighting) = self.sightings.iter_mut().find(same) {
            (sighting.last, sighting.again, sighting.place) = (now, true, place);
        } else if self.sightings.len() < SIGHTINGS {
            self.sightings.push(Sighting { place, cause, first: now, last: now, again: false });
        }
        self.wake(now);
    }

    /// Something has changed: is to be looked at soon.
    pub(super) fn wake(&mut self, now: Instant) {
        let soon = now + LOOK;
        self.look_at = Some(self.look_at.map_or(soon, |at| at.min(soon)));
    }

    /// Whether the paths of a connection come and go with its peer.
    pub(super) fn set_learns(&mut self, connection: ConnectionId, learns: bool) {
        match learns {
            true => self.learning.insert(connection),
            false => self.learning.remove(&connection),
        };
    }

    /// When to [look](Self::look) next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Looks at the paths if that is due, and returns what is to be warned of.
    pub(super) fn look(
        &mut self,
        now: Instant,
        endpoint: &ReceiveSide,
        names: &Names,
    ) -> Vec<Problem> {
        if self.look_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.sightings.retain(|sighting| now < sighting.last + EXPIRES);
        let unwell = self.look_at_paths(now, endpoint);
        let found = self.current(now, endpoint, names);
        let goes_on = unwell || !self.sightings.is_empty() || !found.is_empty();
        self.look_at = goes_on.then(|| now + LOOK);
        // What is over may be warned of again, but not at once.
        self.warned.retain(|key, (at, lasts)| {
            *lasts = found.iter().any(|found| found.key == *key);
            *lasts || now < *at + AGAIN
        });
        let mut warnings = Vec::new();
        for Found { problem, key } in found {
            let known = self.warned.get(&key).is_some_and(|(at, _)| now < *at + REPEAT);
            if !known && self.warned.len() < WARNED {
                self.warned.insert(key, (now, true));
                warnings.push(problem);
            }
        }
        warnings
    }

    /// Notes since when paths are not heard, or not heard by the peer. Returns whether any path does not work.
    fn look_at_paths(&mut self, now: Instant, endpoint: &ReceiveSide) -> bool {
        let (before, was_deaf) = (std::mem::take(&mut self.silent), std::mem::take(&mut self.deaf));
        let mut unwell = false;
        for (id, half) in endpoint.connections() {
            for path in half.paths() {
                let (at, state) = ((id, path), half.state(path));
                unwell |= matches!(state, PathState::Down(_) | PathState::Probing);
                if half.is_peer_deaf(path) && state != PathState::Up {
                    self.deaf.insert(at, was_deaf.get(&at).copied().unwrap_or(now));
                } else if is_silent(state) {
                    self.silent.insert(at, before.get(&at).copied().unwrap_or(now));
                }
            }
        }
        unwell
    }

    /// Whether the peer was heard on a path after its host was first said to be unreachable there.
    fn is_heard_after(&self, sighting: &Sighting, half: Option<&ReceiveHalf>) -> bool {
        let Place { path: Some(path), .. } = sighting.place else { return false };
        // From another port than the one that does not answer, it says nothing of that.
        let heard = half.filter(|half| half.has(path) && half.is_heard_from_its_port(path));
        let heard = heard.and_then(|half| half.last_heard(path));
        // A peer whose hellos are not answered is heard, too.
        let asks = |other: &&Sighting| {
            matches!(other.cause, Cause::Arrived(MismatchKind::Unconfirmed))
                && other.place.is(&sighting.place)
                && other.place.remote == sighting.place.remote
        };
        let asked = self.sightings.iter().find(asks).map(|other| other.last);
        heard.into_iter().chain(asked).any(|at| at > sighting.first)
    }

    /// The problems that there are, the most telling of each path first.
    pub(super) fn current(
        &self,
        now: Instant,
        endpoint: &ReceiveSide,
        names: &Names,
    ) -> Vec<Found> {
        let mut found: Vec<(Place, Cause, Instant)> = Vec::new();
        let any_down = || {
            let mut halves = endpoint.connections();
            // One without a path waits for its peer.
            let is_well = |half: &ReceiveHalf| {
                half.paths().next().is_some() && half.paths().all(|path| is_well(now, half, path))
            };
            !halves.all(|(_, half)| is_well(half)) || endpoint.connections().next().is_none()
        };
        for sighting in &self.sightings {
            let sighting = *sighting;
            let Sighting { place, cause, first, last, again } = sighting;
            let is_plain = matches!(
                cause,
                Cause::Arrived(MismatchKind::Framing { found: FramingFound::Plain })
            );
            let confirmed = if is_plain && place.path.is_none() { ASKED } else { CONFIRMED };
            let counts = again && last.since(first) >= confirmed && now < last + EXPIRES;
            let half = place.connection.map(|id| endpoint.find(id));
            let cause = match cause {
                Cause::Icmp(reported) if self.is_heard_after(&sighting, half.flatten()) => {
                    Cause::Icmp(reported.by_firewall())
                }
                Cause::Icmp(_) | Cause::Arrived(_) | Cause::Deaf | Cause::Silent => cause,
            };
            let applies = match (half, place.path, cause) {
                // The connection has gone since.
                (Some(None), ..) => false,
                (Some(Some(half)), Some(path), _) => half.has(path) && !is_well(now, half, path),
                // Both ends agree where a path is up.
                (
                    Some(Some(half)),
                    None,
                    Cause::Arrived(MismatchKind::Addresses { .. } | MismatchKind::Key { .. }),
                ) => !half.paths().any(|path| half.state(path) == PathState::Up),
                // It may have become a path since.
                (Some(Some(half)), None, _) => {
                    !half.paths().any(|path| half.remote(path).1 == place.remote)
                }
                (None, _, Cause::Arrived(MismatchKind::Source)) => any_down(),
                (None, ..) => true,
            };
            let is_new = |(other, known, _): &(Place, Cause, Instant)| {
                !(other.is(&place) && known.code() == cause.code())
            };
            if counts && applies && found.iter().all(is_new) {
                found.push((place, cause, first));
            }
        }
        // ICMP says why a peer does not hear, and has some time to say it again: kernels limit how often they do.
        let says_why = |sighting: &&Sighting| {
            matches!(sighting.cause, Cause::Icmp(_))
                && (sighting.again || now < sighting.first + SILENT)
        };
        let unreachable: Vec<Place> =
            self.sightings.iter().filter(says_why).map(|sighting| sighting.place).collect();
        let is_explained = |place: &Place| unreachable.iter().any(|other| other.is(place));
        found.retain(|(place, cause, _)| {
            !matches!(cause, Cause::Arrived(MismatchKind::Unconfirmed)) || !is_explained(place)
        });
        // Nothing more is said of a path, or of a connection whose peer is elsewhere, than what is known for sure.
        let is_told = |found: &[(Place, Cause, Instant)], id: ConnectionId, path: PathId| {
            found.iter().any(|(place, ..)| {
                place.connection == Some(id) && place.path.is_none_or(|other| other == path)
            })
        };
        for (derived, cause, after) in
            [(&self.deaf, Cause::Deaf, CONFIRMED), (&self.silent, Cause::Silent, SILENT)]
        {
            let mut derived: Vec<_> = derived.iter().collect();
            derived.sort_unstable_by_key(|((id, path), _)| (id.0, path.0));
            for (&(id, path), &since) in derived {
                let half = endpoint.find(id).filter(|half| half.has(path));
                let patience = half.and_then(|half| half.may_be_silent(path));
                let after = patience.filter(|_| matches!(cause, Cause::Silent)).max(Some(after));
                let is_due = after.is_some_and(|after| now.since(since) >= after);
                let Some(half) = half.filter(|_| is_due) else { continue };
                let roams = half.accepted_by().is_some() || self.learning.contains(&id);
                let still = match cause {
                    Cause::Silent => is_silent(half.state(path)) && !roams,
                    Cause::Arrived(_) | Cause::Deaf | Cause::Icmp(_) => {
                        half.is_peer_deaf(path) && half.state(path) != PathState::Up
                    }
                };
                let remote = half.remote(path).1;
                let place = Place { connection: Some(id), path: Some(path), remote };
                if still && !is_told(&found, id, path) && !is_explained(&place) {
                    // Where a handshake comes to nothing, the keys and settings of both hosts are why, whatever the path.
                    let handshake = found.iter().find(|(place, cause, _)| {
                        let is_one = matches!(cause, Cause::Arrived(MismatchKind::Handshake(_)));
                        is_one && place.connection == Some(id)
                    });
                    let known = handshake.filter(|_| matches!(cause, Cause::Silent));
                    let known = known.map(|&(place, cause, _)| {
                        (Place { path: Some(path), ..place }, cause, since)
                    });
                    found.push(known.unwrap_or((place, cause, since)));
                }
            }
        }
        found.sort_by_key(|(place, ..)| {
            (place.connection.map(|id| id.0), place.path.map(|path| path.0))
        });
        found.truncate(SHOWN);
        let named = |(place, cause, since): (Place, Cause, Instant)| {
            let half = place.connection.and_then(|id| endpoint.find(id));
            let (text, remedy) = words::words(&cause, &place, half, names);
            let Place { connection, path, .. } = place;
            let of_path = |id| path.and_then(|path| names.path(id, path));
            let problem = Problem {
                code: cause.code().to_owned(),
                connection: connection.and_then(|id| names.connection(id)).map(str::to_owned),
                path: connection.and_then(of_path).map(str::to_owned),
                text,
                remedy,
                since_seconds: now.since(since).as_secs_f64(),
            };
            let stranger = connection.is_none().then(|| place.remote.ip());
            Found { problem, key: (connection, path, stranger, cause.code()) }
        };
        found.into_iter().map(named).collect()
    }
}

/// Whether a path is up and heard, or is not meant to be.
fn is_well(now: Instant, half: &ReceiveHalf, path: PathId) -> bool {
    match half.state(path) {
        PathState::Up => half.last_heard(path).is_some_and(|at| now < at + FRESH),
        PathState::Off
        | PathState::UnusableMtu
        | PathState::Down(
            DownCause::Absent | DownCause::PeerDown | DownCause::PeerOff | DownCause::PeerStopped,
        ) => true,
        PathState::Probing
        | PathState::Down(DownCause::Silent | DownCause::PeerDeaf | DownCause::PeerLost) => false,
    }
}

/// Whether nothing is heard of the peer although it should be.
fn is_silent(state: PathState) -> bool {
    matches!(state, PathState::Probing | PathState::Down(DownCause::Silent))
}

/// Where somebody sends from, without the port where the port may be any.
fn same_host(one: SocketAddr, other: SocketAddr) -> bool {
    one.ip() == other.ip()
}
