//! A running tunnel: the thread or threads that move packets, and the handle by which others speak
//! to it.
//!
//! [`open`] makes what every tunnel needs. That is two sides: [`transmit`] takes inner packets to
//! the network, with [`outgoing`] the datagrams that wait to be sent, [`mtu`] what fits,
//! [`narrowed`] what of that arrives, [`reported`] what ICMP messages say of it, [`too_big`] the answer to what does not fit, and [`dark`] to what no path carries;
//! [`receive`] takes datagrams to the interface, with [`incoming`] the inner packets that wait to be
//! delivered, and [`strangers`] the rests from what belongs to no connection. [`clamp`] is for both: what TCP is to announce. [`run`] is the loop, for both on one thread or each on its own, between which
//! [`handover`] carries what they have to tell each other. [`report`] is what `mpt status` shows, with what the core has [`measured`],
//! [`explain`] why packets went where they went, by the [`history`] of counters, [`trace`] samples it over time, into a [`trace_buffer`], [`names`] puts events into words, [`main_event`] calls the main thread.
//!
//! [`problems`] is why a connection does not work as configured.
//!
//! What a tunnel is to be is decided by its [`reconciler`], in the main thread. It opens [`sockets`], sets up
//! the [`interface`], whose [`upkeep`] it sees to, and gives [`advice`] about it, and sends [`op`]s, first to the transmit side, which orders the receive side
//! to do the rest.

mod advice;
mod clamp;
mod command;
mod core;
mod dark;
mod explain;
mod handover;
mod history;
mod incoming;
mod interface;
mod interface_mtu;
mod main_event;
mod measured;
mod mtu;
mod names;
mod narrowed;
mod op;
mod open;
mod outgoing;
mod problems;
mod receive;
mod reconciler;
mod repair;
mod report;
mod reported;
mod run;
mod sockets;
mod strangers;
mod table;
mod too_big;
mod trace;
mod trace_buffer;
mod transmit;
mod upkeep;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpt_control::{Explanation, TraceMark, TunnelStatus};
use mpt_io::poll::Waker;

use crate::config::{self, Threads};
use command::Command;
use main_event::{MainEvent, MainEvents};
use op::TunnelOp;

pub(crate) use explain::MOST as MOST_EXPLAINED;
pub(crate) use interface::remove_left_rules;
pub(crate) use op::TraceAnswer;
pub(crate) use reconciler::Reconciler;

/// What is routed into a tunnel: the networks behind its peers, and peers outside its own networks.
pub(crate) fn routed_networks(tunnel: &config::Tunnel) -> BTreeSet<config::Prefix> {
    interface::routes(&tunnel.addresses, tunnel.connections.iter())
}

/// The largest inner packet that the interface and route of a path allow, in bytes; `None` if that is not known.
pub(crate) fn allowed_mtu(connection: &config::Connection, path: &config::Path) -> Option<u32> {
    let remote = SocketAddr::new(path.remote.address()?, connection.remote_port);
    let known = mtu::Kernel::default().path_mtu(path, remote, connection)?;
    Some(known.allowed)
}

/// How long a request waits for the tunnel's threads. A wake-up of the loop is bounded to some
/// milliseconds of work, so this is only ever reached on a machine that stands still.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a change of the configuration waits until the threads have carried it out: on a busy machine its
/// client should not give up because of thousands of connections.
const SYNC: Duration = Duration::from_millis(500);

/// What to do where a thread cannot be started.
pub(crate) const NO_THREAD: &str = "cannot start a thread; is the memory of the process limited \
                                    (`ulimit -v`), or the number of its threads (`ulimit -u`, \
                                    `TasksMax=` of its unit)?";

/// A running tunnel.
struct Handle {
    /// The number of its interface.
    index: u32,
    commands: Sender<Command>,
    /// Whether steps wait for the threads to be woken.
    stepped: Cell<bool>,
    waker: Waker,
    main_events: Receiver<MainEvent>,
    threads: Vec<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Handle {
    /// Starts a tunnel without connections, and with an interface that is down. Times count from
    /// `epoch`; `main` is woken when there is a [`MainEvent`]. For `largest` see [`open::open`].
    ///
    /// # Errors
    ///
    /// If the interface cannot be had. What had been made by then is gone again.
    fn start(
        settings: &config::Tunnel,
        largest: u32,
        epoch: Instant,
        main: Waker,
    ) -> anyhow::Result<Self> {
        let (main_events, noticed) = MainEvents::new(main);
        let (tx, rx) = open::open(settings, largest, epoch, main_events)?;
        let (commands, receiver) = mpsc::channel();
        let (name, index) = (settings.name.clone(), tx.device.index());
        let (waker, bodies) = match settings.threads {
            Threads::One => {
                let (waker, body) = run::together(tx, rx, receiver)?;
                (waker, vec![(name, body)])
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
            threads.push(thread.context(NO_THREAD)?);
        }
        Ok(Self {
            index,
            commands,
            stepped: Cell::new(false),
            waker,
            main_events: noticed,
            threads,
            failure,
        })
    }

    /// What the tunnel is and has done; `None` if its threads do not answer.
    fn status(&self) -> Option<TunnelStatus> {
        self.ask(Command::Status)
    }

    /// Why packets went where they went: of one connection, or of all; `None` if its threads do not answer.
    fn explain(&self, connection: Option<&str>) -> Option<Vec<Explanation>> {
        let connection = connection.map(str::to_owned);
        self.ask(|reply| Command::Explain { connection, reply })
    }

    /// What was traced since a mark; `None` if its threads do not answer.
    fn trace(&self, connection: Option<&str>, after: Option<TraceMark>) -> Option<TraceAnswer> {
        let connection = connection.map(str::to_owned);
        self.ask(|reply| Command::Trace { connection, after, reply })
    }

    /// Has a step carried out, after those before it, when the threads are woken.
    fn step(&self, step: TunnelOp) {
        // It fails if the thread has ended, which is detected and reported elsewhere.
        let _ = self.commands.send(Command::TunnelOp(Box::new(step)));
        self.stepped.set(true);
    }

    /// Has the steps carried out that wait, if any do.
    fn wake_if_stepped(&self) {
        if self.stepped.take() {
            self.waker.wake();
        }
    }

    /// Has the steps carried out that wait, and waits until that is done.
    fn await_steps(&self) {
        if self.stepped.take() {
            // A thread answers after it has done what it was asked before.
            let _: Option<()> = self.ask_within(SYNC, Command::Sync);
        }
    }

    /// Why a thread ended, if one did so by itself. The other ends with it.
    fn failure(&self) -> Option<String> {
        // In this order: a thread that has ended has said before why, unless it panicked.
        let ended = self.threads.iter().any(JoinHandle::is_finished);
        let reason = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.or_else(|| ended.then(|| "its thread panicked; see the log".to_owned()))
    }

    /// Notifies the peers, ends the threads, and removes what the tunnel created.
    fn stop(self) {
        // Neither can fail in a way that matters: a thread that is gone has nothing left to stop.
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        for thread in self.threads {
            let _ = thread.join();
        }
    }

    /// One without threads, and what is sent to them.
    #[cfg(test)]
    fn pretended() -> (Self, Receiver<Command>) {
        let poll = mpt_io::poll::Poll::new().expect("a poll");
        let (commands, receiver) = mpsc::channel();
        let handle = Self {
            index: 0,
            commands,
            stepped: Cell::new(false),
            waker: Waker::new(&poll, 0).expect("a waker"),
            main_events: mpsc::channel().1,
            threads: Vec::new(),
            failure: Arc::default(),
        };
        (handle, receiver)
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        self.ask_within(PATIENCE, command)
    }

    fn ask_within<T>(
        &self,
        patience: Duration,
        command: impl FnOnce(Sender<T>) -> Command,
    ) -> Option<T> {
        let (reply, answer) = mpsc::channel();
        self.commands.send(command(reply)).ok()?;
        self.waker.wake();
        answer.recv_timeout(patience).ok()
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
            index: 0,
            stepped: Cell::new(false),
            main_events: mpsc::channel().1,
            commands: mpsc::channel().0,
            waker: Waker::new(&poll, 0).unwrap(),
            threads: vec![std::thread::spawn(move || run(&reason))],
            failure,
        }
    }

    /// The status of the handle after its thread has ended.
    fn ended(handle: &Handle) -> Option<String> {
        while !handle.threads[0].is_finished() {
            std::thread::yield_now();
        }
        handle.failure()
    }
}
