//! The responder of connection creates.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::{Instant, TokenBucket};

use crate::auth::{Auth, Key};
use crate::description::Description;
use crate::event::{Create, CreateId};
use crate::exchanges::{Exchanges, Opening, Third};
use crate::message::Message;
use crate::refusal::Refusal;
use crate::step::{Code, Command, Round, Step};

/// Most answers in a burst: an exchange takes two, and with retransmissions at most twelve.
const BURST: u32 = 24;

/// The time for one more answer: two connections per second.
const INTERVAL: Duration = Duration::from_millis(250);

/// Most messages with a wrong key or cookie in a burst.
const FAILURES: u32 = 128;

/// The time for one more of them. At 16 KiB to hash for each, that is 1 MiB per second.
const FAILURE_INTERVAL: Duration = Duration::from_micros(15_625);

/// How peers may create connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateCommands {
    /// The keys that are accepted. Without any, no connection is created.
    pub keys: Vec<Key>,
    /// Whether a cookie of zero is valid in every exchange, as in the original, which sends no other in
    /// this command. It permits replay of a recorded exchange.
    pub zero_cookie: bool,
}

/// Answers connection creates, and passes valid ones on to the owner.
#[derive(Debug)]
pub(super) struct Creator {
    /// The keys that are accepted. Without any, all is refused.
    keys: Vec<Auth>,
    /// Whether a cookie of zero is valid in every exchange.
    zero_cookie: bool,
    exchanges: Exchanges<Verdict>,
    bucket: TokenBucket,
    /// For messages that fail authentication, so that they do not use up the answers to others.
    failures: TokenBucket,
    /// How many requests were passed on to the owner.
    asked: u64,
}

/// The answer to round 3.
#[derive(Debug)]
enum Verdict {
    /// The owner has not answered yet.
    Asked { id: CreateId, from: SocketAddr, ends: (IpAddr, IpAddr), cookie: u32, key: usize },
    /// It was created: the description of the connection.
    Done(Vec<u8>),
    /// It was not created.
    Refused(Code),
}

/// The reaction to a message.
#[derive(Debug)]
pub(super) struct Answer {
    /// The answer; none until the owner has decided.
    pub(super) message: Option<Vec<u8>>,
    /// The request for the owner.
    pub(super) create: Option<Box<Create>>,
    /// The reason under which it is counted although it is answered.
    pub(super) refusal: Option<Refusal>,
}

impl Default for Creator {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            zero_cookie: false,
            exchanges: Exchanges::default(),
            bucket: TokenBucket::new(BURST, INTERVAL),
            failures: TokenBucket::new(FAILURES, FAILURE_INTERVAL),
            asked: 0,
        }
    }
}

impl Creator {
    /// Sets the keys that are accepted; `None` refuses all.
    pub(super) fn set(&mut self, settings: Option<CreateCommands>) {
        let (keys, zero_cookie) =
            settings.map(|settings| (settings.keys, settings.zero_cookie)).unwrap_or_default();
        let keys: Vec<Auth> = keys.into_iter().map(Auth::Sha256).collect();
        if (&keys, zero_cookie) != (&self.keys, self.zero_cookie) {
            (self.keys, self.zero_cookie) = (keys, zero_cookie);
            self.exchanges = Exchanges::default();
        }
    }

    /// Handles round 1 or 3; `bytes` is the whole message. `known` is the authentication of the connection
    /// with these tunnel addresses, if there is one.
    ///
    /// Only an authenticated message is answered with a hash: with a hash, an attacker could search for the
    /// key offline.
    ///
    /// # Errors
    ///
    /// The reason if it is not answered.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        (message, bytes): (&Message<'_>, &[u8]),
        known: Option<&Auth>,
        chance: impl FnOnce() -> u32,
    ) -> Result<Answer, Refusal> {
        match message.step {
            Step::Create(text) if !self.keys.is_empty() => {
                self.third(now, from, (message, bytes, text), known.is_some())
            }
            Step::Open { .. } | Step::Create(_) => {
                self.first(now, from, (message, bytes), known, chance)
            }
            Step::Path(_) | Step::Proceed { .. } | Step::Done { .. } | Step::Refused { .. } => {
                Err(Refusal::Order)
            }
        }
    }

    /// Handles round 1; and round 3 where there are no keys, so that there was no round 2.
    fn first(
        &mut self,
        now: Instant,
        from: SocketAddr,
        (message, bytes): (&Message<'_>, &[u8]),
        known: Option<&Auth>,
        chance: impl FnOnce() -> u32,
    ) -> Result<Answer, Refusal> {
        let known = known.filter(|known| matches!(known, Auth::Sha256(_)));
        if self.keys.is_empty() && known.is_none() {
            return self.refuse(now, message, None);
        }
        let Self { keys, failures, .. } = &mut *self;
        let auth = verify(now, failures, bytes, known.into_iter().chain(&*keys))?;
        let (Some(key), Step::Open { size, .. }) =
            (keys.iter().position(|key| key == auth), message.step)
        else {
            return self.refuse(now, message, known);
        };
        if !self.bucket.take(now) {
            return Err(Refusal::Rate);
        }
        let Message { initiator, responder, .. } = *message;
        let opening = Opening { from, initiator, responder, size, has_cookie: true, key };
        let cookie = self.exchanges.open(now, opening, chance);
        let step = Step::Proceed { command: Command::Create, size };
        let message = Message { cookie, step, ..*message }.emit(&self.keys[key]);
        Ok(Answer { message: Some(message), create: None, refusal: None })
    }

    /// Handles round 3, with a description. As it may be long, it is hashed only if an authenticated round 1
    /// announced it, and only with the key of that round.
    fn third(
        &mut self,
        now: Instant,
        from: SocketAddr,
        (message, bytes, text): (&Message<'_>, &[u8], &[u8]),
        is_known: bool,
    ) -> Result<Answer, Refusal> {
        let Self { keys, failures, exchanges, bucket, .. } = self;
        let (cookie, ends) = (message.cookie, (message.initiator, message.responder));
        if !failures.has(now) {
            return Err(Refusal::Rate);
        }
        let found = exchanges.find(now, (cookie, self.zero_cookie), ends, text.len());
        let found = found.inspect_err(|refusal| {
            if *refusal == Refusal::Cookie {
                failures.take(now);
            }
        })?;
        let key = found.key();
        let auth = verify(now, failures, bytes, keys.get(key))?;
        if !bucket.take(now) {
            return Err(Refusal::Rate);
        }
        let reply = |step: Step<'_>| Some(Message { step, ..*message }.emit(auth));
        let (answered, hash) = match found.third(bytes)? {
            Third::Again(verdict) => {
                let message = verdict.step().and_then(reply);
                return Ok(Answer { message, create: None, refusal: None });
            }
            Third::First(answered, hash) => (answered, hash),
        };
        let description = Description::parse(text)
            .ok()
            .filter(|description| (description.local, description.remote) == ends);
        let (verdict, create, refusal) = match description {
            _ if is_known => (Verdict::Refused(Code::EXISTS), None, None),
            None => (Verdict::Refused(Code::UNKNOWN), None, Some(Refusal::CreateText)),
            Some(description) => {
                self.asked += 1;
                let (id, local) = (CreateId(self.asked), ends.1);
                let create = Create { id, from, local, description };
                (Verdict::Asked { id, from, ends, cookie, key }, Some(Box::new(create)), None)
            }
        };
        let message = verdict.step().and_then(reply);
        *answered = Some((hash, verdict));
        Ok(Answer { message, create, refusal })
    }

    /// The owner has decided. Returns the answer and its destination, if the request still waits.
    pub(super) fn answer(
        &mut self,
        id: CreateId,
        made: Result<&Description, Code>,
    ) -> Option<(SocketAddr, Vec<u8>)> {
        let is_asked = |verdict: &&mut Verdict| matches!(verdict, Verdict::Asked { id: asked, .. } if *asked == id);
        let verdict = self.exchanges.answers().find(is_asked)?;
        let &mut Verdict::Asked { from, ends: (initiator, responder), cookie, key, .. } = verdict
        else {
            return None;
        };
        let auth = self.keys.get(key)?;
        *verdict = match made {
            Ok(description) => Verdict::Done(description.to_text().into_bytes()),
            Err(code) => Verdict::Refused(code),
        };
        let step = verdict.step()?;
        let message = Message { auth: auth.kind(), cookie, initiator, responder, step };
        Some((from, message.emit(auth)))
    }

    /// Refuses a request: there are no keys, or this one is of a connection that may not create others. The
    /// refusal has no hash where no key is agreed; where one is, the request has been verified.
    fn refuse(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        known: Option<&Auth>,
    ) -> Result<Answer, Refusal> {
        if !self.bucket.take(now) {
            return Err(Refusal::Rate);
        }
        let round = if message.step.round() == Round::One { Round::Two } else { Round::Four };
        let step = Step::Refused { command: Command::Create, round, code: Code::UNKNOWN };
        let message = Message { cookie: 0, step, ..*message };
        let bytes = match known {
            Some(auth) => message.emit(auth),
            None => message.emit_unsealed(message.auth),
        };
        Ok(Answer { message: Some(bytes), create: None, refusal: Some(Refusal::CreateOff) })
    }
}

/// Which of these authenticates a message. It is not checked if too many have failed lately.
fn verify<'a>(
    now: Instant,
    failures: &mut TokenBucket,
    bytes: &[u8],
    auths: impl IntoIterator<Item = &'a Auth>,
) -> Result<&'a Auth, Refusal> {
    if !failures.has(now) {
        return Err(Refusal::Rate);
    }
    let found = auths.into_iter().find(|auth| auth.verify(bytes).is_ok());
    found.ok_or_else(|| {
        failures.take(now);
        Refusal::AuthHash
    })
}

impl Verdict {
    /// Round 4, if it is decided.
    fn step(&self) -> Option<Step<'_>> {
        let command = Command::Create;
        match self {
            Self::Asked { .. } => None,
            Self::Done(description) => Some(Step::Done { command, description }),
            Self::Refused(code) => Some(Step::Refused { command, round: Round::Four, code: *code }),
        }
    }
}
