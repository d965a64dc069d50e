//! How a link's thread is spoken to.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, bail};
use mpt_io::poll::Waker;
use mpt_sim::nat::Nat;

use super::device::End;
use super::relay::{Command, Relay};
use super::tap::Tap;
use crate::topology::LinkSpec;

/// A link's thread. Dropping it ends the thread and removes the devices.
#[derive(Debug)]
pub(super) struct Handle {
    orders: Orders,
    thread: Option<JoinHandle<()>>,
}

/// A way to give a link's thread commands, for as long as it lives.
#[derive(Clone, Debug)]
struct Orders {
    commands: Sender<Command>,
    waker: Waker,
}

/// A capture's taps at a link. The link offers packets until they are removed.
#[derive(Debug)]
pub struct TapHandle(Orders);

impl Handle {
    /// Starts a thread that carries packets between two devices.
    pub(super) fn start(
        link: &LinkSpec,
        ends: [End; 2],
        nat: Option<Nat>,
        seeds: [u64; 2],
    ) -> Result<Self> {
        let (commands, inbox): (_, Receiver<Command>) = channel();
        let (relay, waker) = Relay::new(link, ends, nat, seeds, inbox)
            .with_context(|| format!("cannot emulate link `{}`", link.name))?;
        let thread = thread::Builder::new()
            .name(format!("link {}", link.name))
            .spawn(|| relay.run())
            .context("cannot start the thread of a link")?;
        Ok(Self { orders: Orders { commands, waker }, thread: Some(thread) })
    }

    /// Sends a command and waits for its answer, which takes the thread one pass of its loop.
    pub(super) fn order<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> T {
        self.orders.give(command).expect("a relay ends only after its handle")
    }

    /// Has the link offer its packets to the taps of its ends.
    pub(super) fn tap(&self, taps: [Tap; 2]) -> Result<TapHandle> {
        if !self.order(|done| Command::Tap { taps, done }) {
            bail!("another capture of this link is running");
        }
        Ok(TapHandle(self.orders.clone()))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A relay that has died reads no command; joining it is all the same.
        let _ = self.orders.commands.send(Command::Stop);
        self.orders.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Orders {
    /// `None` if the thread has ended.
    fn give<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (done, answer) = channel();
        self.commands.send(command(done)).ok()?;
        self.waker.wake();
        answer.recv().ok()
    }
}

impl TapHandle {
    /// Removes the taps. When this returns, the link offers nothing any more.
    pub fn remove(self) {
        // A link that has ended has dropped them already.
        let _ = self.0.give(|done| Command::Untap { done });
    }
}
