//! A running tunnel: one thread that moves packets, and the handle by which others speak to it.
//!
//! [`open`] makes everything a tunnel needs, [`run`] is the loop, [`outgoing`] the datagrams that
//! wait to be sent, [`incoming`] the inner packets that wait to be delivered, [`report`] what
//! `mpt status` shows. The thread owns all of that alone; the handle sends it commands.

mod incoming;
mod open;
mod outgoing;
mod report;
mod run;

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpt_control::TunnelStatus;
use mpt_io::poll::Waker;

use crate::config::{self, PathStatus};

/// How long a request waits for the tunnel's thread. A wake-up of the loop is bounded to some
/// milliseconds of work, so this is only ever reached on a machine that stands still.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the thread is asked to do.
enum Command {
    Status(Sender<TunnelStatus>),
    SetPathStatus { connection: String, path: String, status: PathStatus, reply: Sender<bool> },
    Stop,
}

/// A running tunnel.
pub(crate) struct Handle {
    /// The name of the tunnel and of its interface.
    pub(crate) name: String,
    commands: Sender<Command>,
    waker: Waker,
    thread: JoinHandle<()>,
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
        let (commands, receiver) = mpsc::channel();
        let name = settings.name.clone();
        let (mut tunnel, waker) = open::open(settings, epoch, receiver)?;
        let failure = Arc::new(Mutex::new(None));
        let reason = Arc::clone(&failure);
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
            if let Err(error) = tunnel.run() {
                *reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{error:#}"));
            }
        });
        let thread = thread.context("cannot start a thread")?;
        Ok(Self { name, commands, waker, thread, failure })
    }

    /// What the tunnel is and has done; `None` if its thread does not answer.
    pub(crate) fn status(&self) -> Option<TunnelStatus> {
        self.ask(Command::Status)
    }

    /// Switches a path off or makes it available again; false if the tunnel has no such path, or
    /// its thread does not answer.
    pub(crate) fn set_path_status(&self, connection: &str, path: &str, status: PathStatus) -> bool {
        let (connection, path) = (connection.to_owned(), path.to_owned());
        let command = |reply| Command::SetPathStatus { connection, path, status, reply };
        self.ask(command).unwrap_or(false)
    }

    /// Why the thread ended, if it did so by itself.
    pub(crate) fn failure(&self) -> Option<String> {
        // In this order: a thread that has ended has said before why, unless it panicked.
        let ended = self.thread.is_finished();
        let reason = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.or_else(|| ended.then(|| "its thread panicked; see the log".to_owned()))
    }

    /// Tells the peers, ends the thread, and removes what the tunnel made.
    pub(crate) fn stop(self) {
        // Neither can fail in a way that matters: a thread that is gone has nothing left to stop.
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        let _ = self.thread.join();
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
            thread: std::thread::spawn(move || run(&reason)),
            failure,
        }
    }

    /// What the handle tells once its thread has ended.
    fn ended(handle: &Handle) -> Option<String> {
        while !handle.thread.is_finished() {
            std::thread::yield_now();
        }
        handle.failure()
    }
}
