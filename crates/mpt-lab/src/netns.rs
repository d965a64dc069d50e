//! Network namespaces that vanish with the process that made them.
//!
//! A namespace is made by a thread of its own, its *holder*: the thread unshares its network and
//! hands back a descriptor of it. Nothing is bind-mounted and nothing is named, so the kernel
//! removes the namespace, with every interface in it, when the last descriptor is closed and the
//! last process in it has ended; a lab killed outright leaves nothing behind.
//!
//! Work is done inside in two ways. [`Namespace::run`] takes a closure to a fresh thread that has
//! entered the namespace; sockets and files opened there keep belonging to it wherever they are
//! used later. [`Namespace::spawn`] starts a program from the holder, so the program is born
//! inside. The holder lives as long as the namespace value, which is what lets a guarded program
//! (see [`crate::guard`]) be tied to it: the kernel's parent-death signal follows the thread, not
//! the process, that spawned the child.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sched::{CloneFlags, setns, unshare};

use crate::guard;

/// How long a program may take from being spawned to being itself. Only a machine that hangs
/// needs longer, and then a program may outlive its namespace.
const BIRTH_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at a program being born, which takes about a millisecond.
const BIRTH_LOOK_EVERY: Duration = Duration::from_micros(200);

/// A network namespace of our own, empty but for a loopback interface that is down.
///
/// Dropping the value ends the holder and closes the descriptor; guarded programs started by
/// [`spawn`](Self::spawn) are then killed by the kernel.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
    /// `None` only while being dropped.
    jobs: Option<SyncSender<Job>>,
    holder: Option<JoinHandle<()>>,
}

impl Namespace {
    /// Makes an empty network namespace.
    ///
    /// # Errors
    ///
    /// The kernel refuses: no permission (see [`crate::privilege`]), or a limit of
    /// `user.max_net_namespaces`.
    pub fn new() -> Result<Self> {
        let (made, born) = channel();
        let (jobs, work) = sync_channel(0);
        let holder = thread::Builder::new()
            .name("netns-holder".into())
            .spawn(move || match unshare_network() {
                Ok(descriptor) => {
                    if made.send(Ok(descriptor)).is_ok() {
                        keep(&work);
                    }
                }
                Err(error) => drop(made.send(Err(error))),
            })
            .context("cannot start the thread that keeps a network namespace")?;
        let descriptor = born
            .recv()
            .context("the thread that creates a network namespace failed")?
            .context("cannot make a network namespace; `mpt-lab doctor` says what is missing")?;
        Ok(Self { descriptor, jobs: Some(jobs), holder: Some(holder) })
    }

    /// Runs `work` on a new thread inside the namespace and returns its value; a panic in it is
    /// resumed in the caller.
    pub fn run<T, F>(&self, work: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let inside = || {
            setns(&self.descriptor, CloneFlags::CLONE_NEWNET)
                .expect("a namespace may be entered by the process that made it");
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Starts `command` inside the namespace. Build it with [`crate::guard::command`] to have it
    /// killed by the kernel should this process or the namespace go first.
    ///
    /// # Errors
    ///
    /// As [`Command::spawn`].
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let jobs = self.jobs.as_ref().expect("the holder lives until drop");
        let (reply, outcome) = channel();
        // The command travels to the holder and back, so that no borrow has to outlive this call on
        // another thread.
        let taken = mem::replace(command, Command::new(""));
        let ended = |_| io::Error::other("the thread of the network namespace has failed");
        jobs.send(Job { command: taken, reply }).map_err(|error| ended(error.to_string()))?;
        let (returned, child) = outcome.recv().map_err(|error| ended(error.to_string()))?;
        *command = returned;
        child
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(holder) = self.holder.take() {
            // A holder that panicked has nothing left to tell: the caller that waited for its reply has had
            // the error.
            let _ = holder.join();
        }
    }
}

/// One program to start, and where to send it back with the outcome.
struct Job {
    command: Command,
    reply: Sender<(Command, io::Result<Child>)>,
}

fn unshare_network() -> io::Result<OwnedFd> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    Ok(std::fs::File::open("/proc/thread-self/ns/net")?.into())
}

/// Starts the requested programs, and outlives their start: a guarded program is tied to this
/// thread only from when it has asked for that.
fn keep(work: &Receiver<Job>) {
    let mut newborn = Vec::new();
    while let Ok(Job { mut command, reply }) = work.recv() {
        let child = command.spawn();
        newborn.retain(|&process| guard::is_stand_in(process));
        newborn.extend(child.as_ref().ok().map(Child::id));
        // The caller waits for this reply; were it gone, the child would be dropped and, if
        // guarded, die with the holder.
        let _ = reply.send((command, child));
    }
    let deadline = Instant::now() + BIRTH_LIMIT;
    while newborn.iter().any(|&process| guard::is_stand_in(process)) && Instant::now() < deadline {
        thread::sleep(BIRTH_LOOK_EVERY);
    }
}
