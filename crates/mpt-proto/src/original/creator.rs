//! Answers those who want a connection to be created.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::auth::Auth;
use super::commands::{Create, CreateCommands, CreateId};
use super::description::Description;
use super::exchanges::{Exchanges, Opening, Third};
use super::message::{Code, Command, Message, Round, Step};
use super::refusal::Refusal;
use crate::time::Instant;
use crate::token_bucket::TokenBucket;

/// How many answers may follow one another at once: an exchange takes two, and twelve at the most.
const BURST: u32 = 24;

/// The time for one more answer. Nobody creates two connections in a second for long.
const INTERVAL: Duration = Duration::from_millis(250);

/// Lets connections be created, or not.
#[derive(Debug)]
pub(super) struct Creator {
    /// What those who are let in authenticate themselves by, and whether zero is a cookie; nobody is
    /// without.
    open: Option<(Auth, bool)>,
    exchanges: Exchanges<Verdict>,
    bucket: TokenBucket,
    /// How many have been asked for.
    asked: u64,
}

/// The answer to round 3.
#[derive(Debug)]
enum Verdict {
    /// The owner is asked.
    Asked { id: CreateId, from: SocketAddr, ends: (IpAddr, IpAddr), cookie: u32 },
    /// It is done: the description of what was made.
    Done(Vec<u8>),
    /// It is not done.
    Refused(Code),
}

/// What becomes of a message.
#[derive(Debug)]
pub(super) struct Answer {
    /// What is sent to whom it came from; nothing while the owner thinks.
    pub(super) message: Option<Vec<u8>>,
    /// What the owner is asked.
    pub(super) create: Option<Box<Create>>,
    /// Under which reason it is counted although it is answered.
    pub(super) refusal: Option<Refusal>,
}

impl Default for Creator {
    fn default() -> Self {
        Self {
            open: None,
            exchanges: Exchanges::default(),
            bucket: TokenBucket::new(BURST, INTERVAL),
            asked: 0,
        }
    }
}

impl Creator {
    /// From now on those who have this key are let in, or nobody.
    pub(super) fn set(&mut self, settings: Option<CreateCommands>) {
        let open = settings.map(|settings| (Auth::Sha256(settings.key), settings.zero_cookie));
        if open != self.open {
            self.open = open;
            self.exchanges = Exchanges::default();
        }
    }

    /// Takes round 1 or 3; `bytes` are all of it. `known` is the connection with these tunnel addresses, if
    /// there is one, by what it is authenticated.
    ///
    /// # Errors
    ///
    /// Why it is not answered.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        (message, bytes): (&Message<'_>, &[u8]),
        known: Option<&Auth>,
        chance: impl FnOnce() -> u32,
    ) -> Result<Answer, Refusal> {
        let Some((auth, zero)) = &self.open else { return self.refuse(now, message, known) };
        auth.verify(bytes)?;
        let reply =
            |cookie: u32, step: Step<'_>| Some(Message { cookie, step, ..*message }.emit(auth));
        let (command, ends) = (Command::Create, (message.initiator, message.responder));
        match message.step {
            Step::Open { size, .. } => {
                if !self.bucket.take(now) {
                    return Err(Refusal::Rate);
                }
                let (initiator, responder) = ends;
                let opening = Opening { from, initiator, responder, size, has_cookie: true };
                let cookie = self.exchanges.open(now, opening, chance);
                let message = reply(cookie, Step::Proceed { command, size });
                Ok(Answer { message, create: None, refusal: None })
            }
            Step::Create(text) => {
                let cookie = message.cookie;
                let third = self.exchanges.third(now, (cookie, *zero), ends, bytes, text.len())?;
                if !self.bucket.take(now) {
                    return Err(Refusal::Rate);
                }
                match third {
                    Third::Again(verdict) => {
                        let message = verdict.step().and_then(|step| reply(cookie, step));
                        Ok(Answer { message, create: None, refusal: None })
                    }
                    Third::First(answered, hash) => {
                        let description = Description::parse(text)
                            .ok()
                            .filter(|description| (description.local, description.remote) == ends);
                        let refused = |code: Code, refusal: Option<Refusal>| {
                            let step = Step::Refused { command, round: Round::Four, code };
                            (Verdict::Refused(code), reply(cookie, step), None, refusal)
                        };
                        let (verdict, message, create, refusal) = match description {
                            _ if known.is_some() => refused(Code::EXISTS, None),
                            None => refused(Code::UNKNOWN, Some(Refusal::CreateText)),
                            Some(description) => {
                                self.asked += 1;
                                let (id, local) = (CreateId(self.asked), ends.1);
                                let create = Create { id, from, local, description };
                                let verdict = Verdict::Asked { id, from, ends, cookie };
                                (verdict, None, Some(Box::new(create)), None)
                            }
                        };
                        *answered = Some((hash, verdict));
                        Ok(Answer { message, create, refusal })
                    }
                }
            }
            Step::Path(_) | Step::Proceed { .. } | Step::Done { .. } | Step::Refused { .. } => {
                Err(Refusal::Order)
            }
        }
    }

    /// The owner has decided. Returns the answer and whom it is for, if that is still waited for.
    pub(super) fn answer(
        &mut self,
        id: CreateId,
        made: Result<&Description, Code>,
    ) -> Option<(SocketAddr, Vec<u8>)> {
        let (auth, _) = self.open.as_ref()?;
        let is_asked = |verdict: &&mut Verdict| matches!(verdict, Verdict::Asked { id: asked, .. } if *asked == id);
        let verdict = self.exchanges.answers().find(is_asked)?;
        let &mut Verdict::Asked { from, ends: (initiator, responder), cookie, .. } = verdict else {
            return None;
        };
        *verdict = match made {
            Ok(description) => Verdict::Done(description.to_text().into_bytes()),
            Err(code) => Verdict::Refused(code),
        };
        let step = verdict.step()?;
        let message = Message { auth: auth.kind(), cookie, initiator, responder, step };
        Some((from, message.emit(auth)))
    }

    /// Nobody is let in. That is said without a hash where no key is agreed.
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
            Some(auth @ Auth::Sha256(_)) => message.emit(auth),
            _ => message.emit_unsealed(message.auth),
        };
        Ok(Answer { message: Some(bytes), create: None, refusal: Some(Refusal::CreateOff) })
    }
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
