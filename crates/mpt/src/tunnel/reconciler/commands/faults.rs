//! Commands of an original that are refused because both ends do not fit: who sent them, and why.
//!
//! A peer sends few of them, so one is enough to be shown. Anybody can send them, so only a few senders are kept, and
//! the log gets one line for each.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mpt_control::Problem;
use mpt_original::Refusal;

/// The most that are kept.
const MOST: usize = 16;

/// How long one is shown after it was last seen: a path status changes rarely.
const SHOWN: Duration = Duration::from_secs(60);

/// One that goes on is warned of again after so long.
const REPEAT: Duration = Duration::from_secs(600);

/// What was refused lately.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

#[derive(Debug)]
struct Fault {
    from: IpAddr,
    refusal: Refusal,
    connection: Option<String>,
    first: Instant,
    last: Instant,
    warned: Instant,
}

impl Faults {
    /// A message was refused; it is of this connection, if the peer of one has its address. Returns what is to be
    /// warned of.
    pub(super) fn see(
        &mut self,
        now: Instant,
        from: SocketAddr,
        refusal: Refusal,
        connection: Option<&str>,
    ) -> Option<Problem> {
        code(refusal)?;
        let from = from.ip().to_canonical();
        let same = |fault: &&mut Fault| (fault.from, fault.refusal) == (from, refusal);
        if let Some(fault) = self.0.iter_mut().find(same) {
            fault.last = now;
            let due = now.saturating_duration_since(fault.warned) >= REPEAT;
            return due.then(|| {
                fault.warned = now;
                fault.problem(now)
            });
        }
        self.0.retain(|fault| now.saturating_duration_since(fault.warned) < REPEAT);
        if self.0.len() >= MOST {
            return None;
        }
        let connection = connection.map(str::to_owned);
        self.0.push(Fault { from, refusal, connection, first: now, last: now, warned: now });
        self.0.last().map(|fault| fault.problem(now))
    }

    /// What there is to show.
    pub(super) fn problems(&self, now: Instant) -> Vec<Problem> {
        let lately = |fault: &&Fault| now.saturating_duration_since(fault.last) < SHOWN;
        self.0.iter().filter(lately).map(|fault| fault.problem(now)).collect()
    }
}

impl Fault {
    fn problem(&self, now: Instant) -> Problem {
        let (text, remedy) = words(self.refusal, self.from);
        Problem {
            code: code(self.refusal).unwrap_or_default().to_owned(),
            connection: self.connection.clone(),
            path: None,
            text,
            remedy: remedy.to_owned(),
            since_seconds: now.saturating_duration_since(self.first).as_secs_f64(),
        }
    }
}

/// The code of refusals that say how both ends do not fit. Other messages are damaged, late, or too many.
#[expect(clippy::wildcard_enum_match_arm, reason = "most refusals say nothing of settings")]
fn code(refusal: Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::AuthKind | Refusal::AuthLength | Refusal::AuthMismatch | Refusal::AuthHash => {
            "command_auth"
        }
        Refusal::Connection | Refusal::Source => "command_source",
        Refusal::CreateOff => "command_create",
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most refusals say nothing of settings")]
fn words(refusal: Refusal, from: IpAddr) -> (String, &'static str) {
    match refusal {
        Refusal::AuthHash => (
            format!("commands of {from} have another key"),
            "set `auth.key` here to the `auth_key` there",
        ),
        Refusal::Connection => (
            format!("commands of {from} name tunnel addresses that no connection has"),
            "correct `peer` here, or the tunnel addresses there",
        ),
        Refusal::Source => (
            format!("commands come from {from}, which is the peer's address on no path"),
            "correct `remote` of a path here, or the address from which commands go there",
        ),
        Refusal::CreateOff => (
            format!("{from} asks for a connection, and is refused"),
            "add the connection to the file, here and there",
        ),
        _ => (
            format!("commands of {from} have another authentication type"),
            "set `auth.type` here to the `auth_type` there: \"none\" is 0, \"random\" 1, \"sha256\" 2",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_and_reason_is_warned_of_once_in_a_while_and_no_more_than_some() {
        let (mut faults, begin) = (Faults::default(), Instant::now());
        let from = |host: u8| SocketAddr::from(([192, 0, 2, host], 65050));
        let mut see = |seconds, host, refusal| {
            faults.see(begin + Duration::from_secs(seconds), from(host), refusal, None).is_some()
        };
        assert!(see(0, 1, Refusal::AuthHash));
        assert!(!see(1, 1, Refusal::AuthHash));
        assert!(see(1, 1, Refusal::AuthMismatch) && see(1, 2, Refusal::AuthHash));
        assert!(!see(2, 3, Refusal::Cookie), "that happens where all is well");
        assert!(see(600, 1, Refusal::AuthHash));
        let told = (10..100).filter(|&host| see(600, host, Refusal::Source)).count();
        assert!(told < MOST);
        assert!(faults.problems(begin + Duration::from_secs(601)).len() <= MOST);
        assert!(faults.problems(begin + Duration::from_secs(700)).is_empty());
    }
}
