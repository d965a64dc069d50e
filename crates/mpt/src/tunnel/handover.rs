//! What crosses between two threads: a bounded queue, and the other's wake-up.
//!
//! The two directions differ in what happens when the queue is full. The transmit side waits, which
//! it may because the receive side never waits for it. The receive side keeps what it has and comes
//! back ([`Handover::send_all`]); so it never waits, and nothing is lost.
//!
//! Packets never cross. What does is rare, so a queue of the standard library is good enough.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError, TrySendError};

use mpt_io::poll::Waker;

/// The giving end of a queue to another thread. When it is gone, the other end is woken too.
#[derive(Debug)]
pub(super) struct Handover<T> {
    // In this order: who is woken at the end must find the queue abandoned.
    queue: SyncSender<T>,
    waker: WakeAtEnd,
    /// What the queue had no room for.
    unsent: Option<T>,
}

/// The taking end.
#[derive(Debug)]
pub(super) struct Handed<T> {
    queue: Receiver<T>,
    /// The giving end must not have the only one.
    _waker: Waker,
}

#[derive(Debug)]
struct WakeAtEnd(Waker);

impl Drop for WakeAtEnd {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// A queue with room for `capacity` to the thread that waits with `waker`'s poll.
pub(super) fn handover<T>(capacity: usize, waker: Waker) -> (Handover<T>, Handed<T>) {
    let (giving, taking) = mpsc::sync_channel(capacity);
    let handed = Handed { queue: taking, _waker: waker.clone() };
    (Handover { queue: giving, waker: WakeAtEnd(waker), unsent: None }, handed)
}

impl<T> Handed<T> {
    /// Has `take` take what is there, until it breaks. Breaks too when nothing is left and the
    /// giving end is gone.
    pub(super) fn take_all(&self, mut take: impl FnMut(T) -> ControlFlow<()>) -> ControlFlow<()> {
        loop {
            match self.queue.try_recv() {
                Ok(item) => take(item)?,
                Err(TryRecvError::Empty) => return ControlFlow::Continue(()),
                Err(TryRecvError::Disconnected) => return ControlFlow::Break(()),
            }
        }
    }
}

impl<T> Handover<T> {
    /// Sends and wakes, after waiting if the queue is full. Items are dropped if the receiver is
    /// gone.
    pub(super) fn send(&self, item: T) {
        let _ = self.queue.send(item);
        self.waker.0.wake();
    }

    /// Sends what `next` gives and wakes, if there is anything; false if there is no room for all of
    /// it. Then one item is kept here and sent first by the next call, the others stay with `next`.
    pub(super) fn send_all(&mut self, mut next: impl FnMut() -> Option<T>) -> bool {
        let mut sent = false;
        while let Some(item) = self.unsent.take().or_else(&mut next) {
            match self.queue.try_send(item) {
                Ok(()) => sent = true,
                Err(TrySendError::Full(item)) => {
                    self.unsent = Some(item);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        if sent {
            self.waker.0.wake();
        }
        self.unsent.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mpt_io::poll::{Events, Poll};

    use super::*;

    const TOKEN: u64 = 3;

    fn woken(poll: &Poll) -> bool {
        let mut events = Events::with_capacity(1);
        poll.wait(&mut events, Some(Duration::ZERO)).unwrap() == 1
    }

    fn taken<T>(handed: &Handed<T>) -> (Vec<T>, bool) {
        let mut items = Vec::new();
        let flow = handed.take_all(|item| {
            items.push(item);
            ControlFlow::Continue(())
        });
        (items, flow.is_continue())
    }

    #[test]
    fn what_does_not_fit_is_kept_and_sent_later_in_order() {
        let poll = Poll::new().unwrap();
        let (mut handover, handed) = handover(2, Waker::new(&poll, TOKEN).unwrap());
        let mut numbers = 0..7;
        assert!(handover.send_all(|| None) && !woken(&poll), "nothing to say");
        let mut received = Vec::new();
        for _ in 0..3 {
            assert!(!handover.send_all(|| numbers.next()));
            assert!(woken(&poll));
            assert!(!handover.send_all(|| numbers.next()), "still full");
            assert!(!woken(&poll));
            received.extend(taken(&handed).0);
        }
        assert!(handover.send_all(|| numbers.next()));
        received.extend(taken(&handed).0);
        assert_eq!(received, (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn the_end_of_either_side_reaches_the_other() {
        let poll = Poll::new().unwrap();
        let (giving, taking) = handover(1, Waker::new(&poll, TOKEN).unwrap());
        giving.send(7);
        assert!(woken(&poll));
        drop(giving);
        assert!(woken(&poll));
        assert_eq!(taken(&taking), (vec![7], false));

        let (mut giving, taking) = handover(1, Waker::new(&poll, TOKEN).unwrap());
        drop(taking);
        giving.send(1);
        let mut numbers = 0..3;
        assert!(giving.send_all(|| numbers.next()), "nobody is left to keep it for");
    }
}
