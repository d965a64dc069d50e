//! What host names stand for.
//!
//! A name is resolved on a separate thread, because that may take many seconds. A result is valid
//! until the peer is silent: then the name is resolved again, and the old result is used in the
//! meantime. Where the answer about one IP version is late, the other is used before it (RFC 8305 section 3).

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use mpt_io::poll::Waker;

use super::lookup::lookup;

/// How soon the same name is asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// These addresses, at least one, the preferred first.
    Addresses(Vec<IpAddr>),
    /// Nothing, for this reason in words.
    Failed(String),
    /// It is being asked for the first time.
    Asking,
}

/// The names that were ever asked for.
pub(crate) struct Names {
    known: BTreeMap<String, Known>,
    answers: Receiver<Answer>,
    answer: Sender<Answer>,
    main: Waker,
}

struct Known {
    resolved: Resolved,
    asked: Instant,
    asking: bool,
}

struct Answer {
    name: String,
    addresses: io::Result<Vec<IpAddr>>,
    /// Whether nothing follows.
    complete: bool,
}

impl Names {
    /// None. `main` is woken for every answer.
    pub(super) fn new(main: Waker) -> Self {
        let (answer, answers) = mpsc::channel();
        Self { known: BTreeMap::new(), answers, answer, main }
    }

    /// What a name stands for; asks if that is not known.
    pub(crate) fn resolve(&mut self, name: &str, now: Instant) -> Resolved {
        match self.known.get(name) {
            Some(known) => known.resolved.clone(),
            None => {
                let known = Known { resolved: Resolved::Asking, asked: now, asking: false };
                self.known.insert(name.to_owned(), known);
                self.ask(name, now);
                Resolved::Asking
            }
        }
    }

    /// Asks again, unless that happened a moment ago: what is known does not seem to be right.
    pub(crate) fn doubt(&mut self, name: &str, now: Instant) {
        if self.known.get(name).is_some_and(|known| !known.asking && now >= known.asked + AGAIN) {
            self.ask(name, now);
        }
    }

    /// Takes in the answers that came. Returns whether any did.
    pub(crate) fn take_answers(&mut self) -> bool {
        let mut any = false;
        while let Ok(Answer { name, addresses, complete }) = self.answers.try_recv() {
            let Some(known) = self.known.get_mut(&name) else { continue };
            any = true;
            known.asking = !complete;
            match addresses {
                // A part is better than nothing, and nothing else.
                Ok(_) if !complete && matches!(known.resolved, Resolved::Addresses(_)) => {}
                Ok(addresses) if !addresses.is_empty() => {
                    known.resolved = Resolved::Addresses(addresses);
                }
                failed => {
                    let reason = match failed {
                        Ok(_) => "it has no address".to_owned(),
                        Err(error) => error.to_string(),
                    };
                    // An answer that was good before is still the best guess.
                    if !matches!(known.resolved, Resolved::Addresses(_)) {
                        known.resolved = Resolved::Failed(reason);
                    }
                }
            }
        }
        any
    }

    fn ask(&mut self, name: &str, now: Instant) {
        let Some(known) = self.known.get_mut(name) else { return };
        (known.asked, known.asking) = (now, true);
        let (name, answer, main) = (name.to_owned(), self.answer.clone(), self.main.clone());
        let ask = move || {
            let tell = |addresses, complete| {
                // A daemon that has ended needs no answer.
                if answer.send(Answer { name: name.clone(), addresses, complete }).is_ok() {
                    main.wake();
                }
            };
            let addresses = lookup(&name, &mut |part| tell(Ok(part), false));
            tell(addresses, true);
        };
        if std::thread::Builder::new().name("resolver".into()).spawn(ask).is_err() {
            known.asking = false;
        }
    }
}
