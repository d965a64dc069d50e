//! The loop: readiness, core, flush, next deadline; on one thread or on two.
//!
//! Each wake-up reads the clock once, takes a bounded number of packets from every source that is
//! ready, hands them through the core, and sends what came of it before it waits again. Waiting is
//! level-triggered, so whatever a budget left behind is reported at once.
//!
//! On one thread ([`together`]) the sides call each other. On two ([`apart`]) messages between them
//! pass through a [`Handover`]: messages about the paths from the receive side, commands from the
//! transmit side. No packet passes, and the sides are the same code in both cases.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use mpt_io::poll::{Events, Poll, Waker};
use mpt_proto::{ConnectionId, Instant, Message, SocketId};

use super::command::Command;
use super::handover::{Handed, Handover, handover};
use super::op::ReceiveCommand;
use super::receive::{ReceiveLoop, SOCKETS};
use super::transmit::{DEVICE, TransmitLoop};

/// What is ready: a wake-up by another thread, the interface, or, from [`SOCKETS`] on, a socket.
const WAKER: u64 = 0;

/// Sockets that one wait reports at the most. The kernel hands out the others next.
const EVENTS: usize = 64;

/// Orders that may wait for the receive side. They come at the pace at which the configuration, the
/// network or MTUs change; when the queue is full the transmit side waits.
const ORDERS: usize = 64;

/// Messages that may wait for the transmit side: all that a few connections ever have. Those of more
/// stay with the core for a moment.
const MESSAGES: usize = 512;

/// How soon the receive side tries again to hand over messages. There is room for all that may wait
/// for each path, and the transmit side has been woken, so this happens on a machine that stands
/// still.
const MESSAGES_AGAIN: Duration = Duration::from_millis(1);

/// The work of one thread of a tunnel. Dropping it ends the other thread.
pub(super) type Body = Box<dyn FnMut(&dyn Fn() -> Instant) -> anyhow::Result<()> + Send>;

/// Both sides on one thread; the sockets are to be waited for by the receive side's poll.
///
/// # Errors
///
/// If nothing can be waited for.
pub(super) fn together(
    tx: TransmitLoop,
    rx: ReceiveLoop,
    commands: Receiver<Command>,
) -> anyhow::Result<(Waker, Body)> {
    let poll = Arc::clone(&rx.poll);
    let waker = new_waker(&poll)?;
    tx.wait_for_device()?;
    let mut together = Together { tx, rx, commands };
    Ok((waker, Box::new(move |now| run(&poll, now, &mut together))))
}

/// A thread for each side: first the one that sends, which the waker wakes.
///
/// # Errors
///
/// If nothing can be waited for.
pub(super) fn apart(
    mut tx: TransmitLoop,
    rx: ReceiveLoop,
    commands: Receiver<Command>,
) -> anyhow::Result<(Waker, [Body; 2])> {
    let tx_poll = Arc::new(Poll::new().context("cannot wait for packets")?);
    let rx_poll = Arc::clone(&rx.poll);
    let (tx_waker, rx_waker) = (new_waker(&tx_poll)?, new_waker(&rx_poll)?);
    tx.poll = Arc::clone(&tx_poll);
    tx.wait_for_device()?;
    let (to_tx, messages) = handover(MESSAGES, tx_waker.clone());
    let (to_rx, orders) = handover(ORDERS, rx_waker);
    let mut transmitting = Transmitting { tx, commands, messages, to_rx };
    let mut receiving = Receiving { rx, orders, to_tx, messages_again: None };
    let bodies: [Body; 2] = [
        Box::new(move |now| run(&tx_poll, now, &mut transmitting)),
        Box::new(move |now| run(&rx_poll, now, &mut receiving)),
    ];
    Ok((tx_waker, bodies))
}

fn new_waker(poll: &Poll) -> anyhow::Result<Waker> {
    Waker::new(poll, WAKER).context("cannot make a waker")
}

/// Processes packets until it is stopped.
fn run(poll: &Poll, now: &dyn Fn() -> Instant, work: &mut impl Work) -> anyhow::Result<()> {
    let mut events = Events::with_capacity(EVENTS);
    loop {
        if events.is_empty() {
            // A timer ended the wait, perhaps after a stall of this machine. Drain pending input
            // before expiring timers.
            poll.wait(&mut events, Some(Duration::ZERO)).context("cannot wait for packets")?;
        }
        let now = now();
        for event in events.iter().filter(|event| event.token != WAKER) {
            if event.closed {
                work.handle_errors(now, event.token);
            }
            work.handle_ready(now, event.token)?;
        }
        if work.finish(now).is_break() {
            return Ok(());
        }
        if let Some(rest) = work.rest(now) {
            thread::sleep(rest);
        }
        // Counted from the start of this wake-up: late by no more than its own length.
        let timeout = work.deadline().map(|at| at.since(now));
        poll.wait(&mut events, timeout).context("cannot wait for packets")?;
    }
}

/// What a thread does when it wakes up.
trait Work {
    /// Takes what has arrived at a source.
    fn handle_ready(&mut self, now: Instant, source: u64) -> anyhow::Result<()>;

    /// Takes what a source reports beside what has arrived.
    fn handle_errors(&mut self, _: Instant, _: u64) {}

    /// Does whatever else is due, and sends and delivers what came of it all; breaks at the end.
    fn finish(&mut self, now: Instant) -> ControlFlow<()>;

    /// How long to do nothing before the next wait, because there is next to nothing to do.
    fn rest(&mut self, _: Instant) -> Option<Duration> {
        None
    }

    /// When to wake up although nothing arrives.
    fn deadline(&self) -> Option<Instant>;
}

/// Both sides on one thread.
struct Together {
    tx: TransmitLoop,
    rx: ReceiveLoop,
    commands: Receiver<Command>,
}

impl Together {
    fn carry_messages(&mut self, now: Instant) {
        while let Some(update) = self.rx.poll_message() {
            self.tx.handle_message(now, update);
        }
    }
}

impl Work for Together {
    fn handle_ready(&mut self, now: Instant, source: u64) -> anyhow::Result<()> {
        match source {
            DEVICE => self.tx.read_device(now)?,
            socket => self.rx.read_socket(SocketId((socket - SOCKETS) as u16), now),
        }
        Ok(())
    }

    fn handle_errors(&mut self, now: Instant, source: u64) {
        if source != DEVICE {
            self.rx.read_errors(SocketId((source - SOCKETS) as u16), now);
        }
    }

    fn finish(&mut self, now: Instant) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        self.rx.handle_timeout(now);
        while flow.is_continue()
            && let Ok(command) = self.commands.try_recv()
        {
            let Self { tx, rx, .. } = self;
            tx.carry_out(now, command, |order| {
                if rx.carry_out(now, order).is_break() {
                    flow = ControlFlow::Break(());
                }
            });
        }
        self.carry_messages(now);
        self.tx.send(now);
        let Self { tx, rx, .. } = self;
        tx.check_mtu(now, |order| {
            let _ = rx.carry_out(now, order);
        });
        self.carry_messages(now);
        // Last, as all of that may have led to events.
        self.rx.flush(now);
        flow
    }

    fn rest(&mut self, now: Instant) -> Option<Duration> {
        self.rx.rest(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.tx.deadline().into_iter().chain(self.rx.deadline()).min()
    }
}

/// The transmit side on its own thread.
struct Transmitting {
    tx: TransmitLoop,
    commands: Receiver<Command>,
    messages: Handed<(ConnectionId, Message)>,
    to_rx: Handover<ReceiveCommand>,
}

impl Work for Transmitting {
    fn handle_ready(&mut self, now: Instant, _: u64) -> anyhow::Result<()> {
        self.tx.read_device(now)
    }

    fn finish(&mut self, now: Instant) -> ControlFlow<()> {
        let Self { tx, messages, .. } = self;
        let mut flow = messages.take_all(|update| {
            tx.handle_message(now, update);
            ControlFlow::Continue(())
        });
        while flow.is_continue()
            && let Ok(command) = self.commands.try_recv()
        {
            let Self { tx, to_rx, .. } = self;
            tx.carry_out(now, command, |order| {
                if matches!(order, ReceiveCommand::Stop) {
                    flow = ControlFlow::Break(());
                }
                to_rx.send(order);
            });
        }
        self.tx.send(now);
        self.tx.check_mtu(now, |order| self.to_rx.send(order));
        flow
    }

    fn deadline(&self) -> Option<Instant> {
        self.tx.deadline()
    }
}

/// The receive side on its own thread.
struct Receiving {
    rx: ReceiveLoop,
    orders: Handed<ReceiveCommand>,
    to_tx: Handover<(ConnectionId, Message)>,
    /// When to hand over the messages for which there was no room.
    messages_again: Option<Instant>,
}

impl Work for Receiving {
    fn handle_ready(&mut self, now: Instant, source: u64) -> anyhow::Result<()> {
        self.rx.read_socket(SocketId((source - SOCKETS) as u16), now);
        Ok(())
    }

    fn handle_errors(&mut self, now: Instant, source: u64) {
        self.rx.read_errors(SocketId((source - SOCKETS) as u16), now);
    }

    fn finish(&mut self, now: Instant) -> ControlFlow<()> {
        self.rx.handle_timeout(now);
        let flow = self.orders.take_all(|order| self.rx.carry_out(now, order));
        let all = self.to_tx.send_all(|| self.rx.poll_message());
        self.messages_again = (!all).then(|| now + MESSAGES_AGAIN);
        self.rx.flush(now);
        flow
    }

    fn rest(&mut self, now: Instant) -> Option<Duration> {
        self.rx.rest(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.rx.deadline().into_iter().chain(self.messages_again).min()
    }
}
