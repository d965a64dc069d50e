//! A running tunnel: the thread or threads that move packets, and the handle by which others speak
//! to it.
//!
//! [`open`] makes everything a tunnel needs. That is two sides: [`transmit`] takes inner packets to
//! the network, with [`outgoing`] the datagrams that wait to be sent, [`mtu`] what fits and
//! [`narrowed`] what of that arrives;
//! [`receive`] takes datagrams to the interface, with [`incoming`] the inner packets that wait to be
//! delivered. [`run`] is the loop, for both on one thread or each on its own, between which
//! [`handover`] carries what they have to tell each other. [`report`] is what `mpt status` shows.
//! The handle sends commands, first to the transmit side, which orders the receive side to do the
//! rest.

mod handover;
mod incoming;
mod mtu;
mod narrowed;
mod open;
mod outgoing;
mod receive;
mod report;
mod run;
mod transmit;

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpt_control::TunnelStatus;
use mpt_io::poll::Waker;
use mpt_proto::{ConnectionId, Event, PathId};

use crate::config::{self, PathStatus, Threads};

/// How long a request waits for the tunnel's threads. A wake-up of the loop is bounded to some
/// milliseconds of work, so this is only ever reached on a machine that stands still.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a tunnel is asked to do by other threads.
enum Command {
    Status(Sender<TunnelStatus>),
    SetPathStatus { connection: String, path: String, status: PathStatus, reply: Sender<bool> },
    Stop,
}

/// What the transmit side, having done its own part, leaves to the receive side.
enum Order {
    Status {
        status: Box<TunnelStatus>,
        reply: Sender<TunnelStatus>,
    },
    SetPathStatus {
        connection: ConnectionId,
        path: PathId,
        status: mpt_proto::PathStatus,
        reply: Sender<bool>,
    },
    /// Whether a path can carry the least inner packet.
    SetPathFits {
        connection: ConnectionId,
        path: PathId,
        fits: bool,
    },
    /// To be told with what the receive side has seen.
    Tell(Event),
    Stop,
}

/// A running tunnel.
pub(crate) struct Handle {
    /// The name of the tunnel and of its interface.
    pub(crate) name: String,
    commands: Sender<Command>,
    waker: Waker,
    threads: Vec<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Handle {
    /// Starts a tunnel; it is ready when this returns. Times count from `epoch`.
    ///
    /// # Errors
    ///
    /// If the interface, a socket, an address or a route cannot be had. What had been made by then
    /// is gone again.
    pub(crate) fn start(settings: &config::Tunnel, epoch: Instant) -> anyhow::Result<Self> {
        let (tx, rx) = open::open(settings)?;
        let (commands, receiver) = mpsc::channel();
        let name = settings.name.clone();
        let (waker, bodies) = match settings.threads {
            Threads::One => {
                let (waker, body) = run::together(tx, rx, receiver)?;
                (waker, vec![(name.clone(), body)])
            }
            Threads::Two => {
                let (waker, [tx, rx]) = run::apart(tx, rx, receiver)?;
                (waker, vec![(format!("tx {name}"), tx), (format!("rx {name}"), rx)])
            }
        };
        let failure = Arc::new(Mutex::new(None));
        let mut threads = Vec::new();
        // If the second cannot be started, the first finds its other side gone and ends.
        for (name, mut body) in bodies {
            let reason = Arc::clone(&failure);
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                let now = || mpt_proto::Instant::ZERO + epoch.elapsed();
                // The reason is there before the other thread hears of the end and ends too.
                if let Err(error) = body(&now) {
                    let mut reason = reason.lock().unwrap_or_else(PoisonError::into_inner);
                    *reason = Some(format!("{error:#}"));
                }
            });
            threads.push(thread.context("cannot start a thread")?);
        }
        Ok(Self { name, commands, waker, threads, failure })
    }

    /// What the tunnel is and has done; `None` if its threads do not answer.
    pub(crate) fn status(&self) -> Option<TunnelStatus> {
        self.ask(Command::Status)
    }

    /// Switches a path off or makes it available again; false if the tunnel has no such path, or
    /// its threads do not answer.
    pub(crate) fn set_path_status(&self, connection: &str, path: &str, status: PathStatus) -> bool {
        let (connection, path) = (connection.to_owned(), path.to_owned());
        let command = |reply| Command::SetPathStatus { connection, path, status, reply };
        self.ask(command).unwrap_or(false)
    }

    /// Why a thread ended, if one did so by itself. The other ends with it.
    pub(crate) fn failure(&self) -> Option<String> {
        // In this order: a thread that has ended has said before why, unless it panicked.
        let ended = self.threads.iter().any(JoinHandle::is_finished);
        let reason = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.or_else(|| ended.then(|| "its thread panicked; see the log".to_owned()))
    }

    /// Tells the peers, ends the threads, and removes what the tunnel made.
    pub(crate) fn stop(self) {
        // Neither can fail in a way that matters: a thread that is gone has nothing left to stop.
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        for thread in self.threads {
            let _ = thread.join();
        }
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = mpsc::channel();
        self.commands.send(command(reply)).ok()?;
        self.waker.wake();
        answer.recv_timeout(PATIENCE).ok()
    }
}

#[cfg(test)]
mod tests {
    use mpt_io::poll::Poll;

    use super::*;

    #[test]
    fn a_thread_that_ends_by_itself_is_a_failure_however_it_ends() {
        let (end, wait) = mpsc::channel::<()>();
        let running = handle(move |_| assert!(wait.recv().is_err()));
        assert_eq!(running.failure(), None);
        drop(end);
        running.stop();

        let failed = handle(|reason| *reason.lock().unwrap() = Some("no device".into()));
        assert_eq!(ended(&failed), Some("no device".into()));
        failed.stop();

        // Without the message that a panic prints, which would look as if this test failed.
        let panicked = handle(|_| std::panic::resume_unwind(Box::new("on purpose")));
        let failure = ended(&panicked).unwrap();
        assert!(failure.contains("panicked") && failure.contains("log"), "{failure}");
        panicked.stop();

        let poisoned = handle(|reason| {
            let _reason = reason.lock().unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(ended(&poisoned).unwrap().contains("panicked"));
        poisoned.stop();
    }

    /// A tunnel whose thread does only this.
    fn handle(run: impl FnOnce(&Mutex<Option<String>>) + Send + 'static) -> Handle {
        let poll = Poll::new().unwrap();
        let failure = Arc::new(Mutex::new(None));
        let reason = Arc::clone(&failure);
        Handle {
            name: "mpt0".into(),
            commands: mpsc::channel().0,
            waker: Waker::new(&poll, 0).unwrap(),
            threads: vec![std::thread::spawn(move || run(&reason))],
            failure,
        }
    }

    /// What the handle tells once its thread has ended.
    fn ended(handle: &Handle) -> Option<String> {
        while !handle.threads[0].is_finished() {
            std::thread::yield_now();
        }
        handle.failure()
    }
}
