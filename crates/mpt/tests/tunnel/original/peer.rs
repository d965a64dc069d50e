//! The original running in a host of the lab, on a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use mpt_io::poll::{Events, Interest, Poll, Waker};
use mpt_lab::lab::Host;

use super::machine::Machine;
use super::settings::Settings;

/// The original, running. Dropping it ends it at once, as if killed.
pub(super) struct Peer {
    machine: Arc<Mutex<Machine>>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    pub(super) fn start(host: &Host, settings: Settings) -> Self {
        let machine = host.run(|| Machine::start(settings));
        let poll = Poll::new().expect("an epoll descriptor");
        let waker = Waker::new(&poll, 0).expect("a waker");
        poll.add(machine.interface().device(), 0, Interest::READABLE).expect("an interface");
        for socket in machine.sockets() {
            poll.add(socket, 0, Interest::READABLE).expect("a socket");
        }
        let machine = Arc::new(Mutex::new(machine));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (machine, stop) = (Arc::clone(&machine), Arc::clone(&stop));
            let mut events = Events::with_capacity(16);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let rest = {
                        let mut machine = machine.lock().expect("no panic");
                        machine.turn();
                        machine.rest()
                    };
                    poll.wait(&mut events, Some(rest)).expect("epoll works");
                }
            })
        };
        Self { machine, stop, waker, thread: Some(thread) }
    }

    /// The program, which stands still as long as it is looked at.
    pub(super) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().expect("the original has not panicked")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // Its panic has been seen.
            let _ = thread.join();
        }
    }
}
