//! The thread of a link: packets out of one device, through the model, into the other.
//!
//! Each pass sends what is due, at most [`BATCH`] packets per direction so that neither starves
//! the other, waits until the next packet is due or one arrives, and reads at most as many. Time
//! is what `Instant::now` says when a packet is read: that it waited in the device's queue before
//! cannot be seen from here, which is why stalls count, too, and not only late packets.

use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant as Clock};

use mpt_io::poll::{Events, Interest, Poll, Waker, set_timer_slack};
use mpt_io::tun::Burst;
use mpt_proto::Instant;
use mpt_sim::link::Link;
use mpt_sim::nat::Nat;
use mpt_sim::profile::Profile;
use nix::errno::Errno;

use super::Direction;
use super::device::{End, Losses};
use super::lateness::Record;
use super::report::{DirectionReport, Report, STALL};
use super::tap::{Tap, Way};
use super::taps::{self, Taps};
use crate::topology::{LinkSpec, Side};

/// Packets handled at once per direction: 64 x 1500 bytes take 8 ms at 100 Mbit/s on the link,
/// and about 0.2 ms here.
const BATCH: usize = 64;

/// The numbers of the directions.
const FORWARD: usize = 0;
const BACKWARD: usize = 1;

/// The token of the waker; the ends have their index.
const COMMAND: u64 = 2;

/// What the handle of a link wants. `done` is answered when it has happened.
#[derive(Debug)]
pub(super) enum Command {
    Blackout {
        direction: Direction,
        cut: bool,
        done: Sender<()>,
    },
    Carrier {
        /// Who sees it; both ends, if that is `None`.
        end: Option<Side>,
        present: bool,
        done: Sender<()>,
    },
    Profile {
        direction: Direction,
        profile: Profile,
        done: Sender<()>,
    },
    Rebind {
        done: Sender<()>,
    },
    Report {
        done: Sender<Report>,
    },
    Restart {
        done: Sender<()>,
    },
    /// Answered with whether there was no other pair of taps.
    Tap {
        taps: [Tap; 2],
        done: Sender<bool>,
    },
    Untap {
        done: Sender<()>,
    },
    Stop,
}

/// A link at work.
#[derive(Debug)]
pub(super) struct Relay {
    name: String,
    /// Left, right.
    ends: [End; 2],
    /// Forward, backward: number i reads from end i and writes to the other.
    lanes: [Lane; 2],
    /// Between the left end and the link.
    nat: Option<Nat>,
    /// Who looks at the ends.
    taps: Taps,
    commands: Receiver<Command>,
    poll: Poll,
    burst: Burst,
    origin: Clock,
    record_began: Clock,
    losses_before: [Losses; 2],
    /// Why packets are no longer carried; commands still are obeyed.
    failure: Option<String>,
}

/// One direction.
#[derive(Debug)]
struct Lane {
    link: Link,
    lateness: Record,
    stalls: u64,
    stalled: Duration,
    untranslated: u64,
    unwritten: u64,
    refused: u64,
}

impl Relay {
    pub(super) fn new(
        link: &LinkSpec,
        ends: [End; 2],
        nat: Option<Nat>,
        seeds: [u64; 2],
        commands: Receiver<Command>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        for (end, token) in ends.iter().zip(0..) {
            poll.add(&end.device, token, Interest::READABLE)?;
        }
        let waker = Waker::new(&poll, COMMAND)?;
        let [forward, backward] = seeds;
        let origin = Clock::now();
        let relay = Self {
            name: link.name.clone(),
            ends,
            lanes: [
                Lane::new(Link::new(link.forward.clone(), forward)),
                Lane::new(Link::new(link.backward.clone(), backward)),
            ],
            nat,
            taps: Taps::default(),
            commands,
            poll,
            burst: Burst::new(),
            origin,
            record_began: origin,
            losses_before: [Losses::default(); 2],
            failure: None,
        };
        Ok((relay, waker))
    }

    /// Carries packets until it is stopped.
    pub(super) fn run(mut self) {
        // Without it the kernel may group wake-ups and be 50 us late.
        let failure = set_timer_slack(Duration::from_nanos(1)).and_then(|()| self.carry());
        let Err(failure) = failure else { return };
        self.failure = Some(format!("the emulator failed: {failure}"));
        while let Ok(command) = self.commands.recv() {
            if !self.obey(command) {
                return;
            }
        }
    }

    fn carry(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(3);
        loop {
            self.send_due()?;
            self.poll.wait(&mut events, self.time_to_wait())?;
            for event in events.iter() {
                if event.token == COMMAND {
                    while let Ok(command) = self.commands.try_recv() {
                        if !self.obey(command) {
                            return Ok(());
                        }
                    }
                } else {
                    self.read(event.token as usize)?;
                }
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// Until the next packet is due; `None` while nothing is on the way.
    fn time_to_wait(&self) -> Option<Duration> {
        let due = self.lanes.iter().filter_map(|lane| lane.link.next_due()).min()?;
        Some(due.since(self.now()))
    }

    fn send_due(&mut self) -> io::Result<()> {
        for number in 0..self.lanes.len() {
            let end = &self.ends[1 - number];
            let lane = &mut self.lanes[number];
            let now = Instant::ZERO + self.origin.elapsed();
            for sent in 0..BATCH {
                let Some((due, mut packet)) = lane.link.receive(now) else { break };
                if number == BACKWARD
                    && let Some(nat) = &mut self.nat
                    && nat.inbound_packet(now, &mut packet).is_err()
                {
                    lane.untranslated += 1;
                    let comment = || taps::UNTRANSLATED.into();
                    self.taps.show(1 - number, Clock::now(), Way::In, &packet, comment);
                    continue;
                }
                let write = end.device.write(&packet);
                let left = self.origin.elapsed();
                let late = (Instant::ZERO + left).since(due);
                let comment = || taps::of_exit(&write);
                self.taps.show(1 - number, self.origin + left, Way::In, &packet, comment);
                lane.on_sent(late, sent == 0, write)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, number: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(mut packets) = self.ends[number].device.read(&mut self.burst)? else { break };
            let at = Clock::now();
            let now = Instant::ZERO + at.duration_since(self.origin);
            while let Some(sent) = packets.next_packet() {
                let lane = &mut self.lanes[number];
                let mut packet = sent.to_vec();
                if number == FORWARD
                    && let Some(nat) = &mut self.nat
                    && nat.outbound_packet(now, &mut packet).is_err()
                {
                    lane.untranslated += 1;
                    let comment = || taps::UNTRANSLATED.into();
                    self.taps.show(number, at, Way::Out, sent, comment);
                    continue;
                }
                let before = *lane.link.stats();
                lane.link.send(now, packet);
                let comment = || taps::of_entry(&before, lane.link.stats());
                self.taps.show(number, at, Way::Out, sent, comment);
            }
        }
        Ok(())
    }

    /// Whether to continue.
    fn obey(&mut self, command: Command) -> bool {
        // The sender of a command waits for the answer; if it does not, the answer is not needed.
        match command {
            Command::Blackout { direction, cut, done } => {
                self.each(direction, |link, _| link.set_blackout(cut));
                let _ = done.send(());
            }
            Command::Carrier { end, present, done } => {
                self.each(Direction::Both, |link, _| link.set_blackout(!present));
                let ends = [Side::Left, Side::Right].into_iter().zip(&self.ends);
                for (_, end) in ends.filter(|(side, _)| end.is_none_or(|end| end == *side)) {
                    if let Err(error) = end.device.set_carrier(present) {
                        self.failure.get_or_insert(format!("the carrier did not change: {error}"));
                    }
                }
                let _ = done.send(());
            }
            Command::Profile { direction, profile, done } => {
                self.each(direction, |link, now| link.set_profile(now, profile.clone()));
                let _ = done.send(());
            }
            Command::Rebind { done } => {
                self.nat.iter_mut().for_each(Nat::rebind);
                let _ = done.send(());
            }
            Command::Report { done } => {
                let _ = done.send(self.report());
            }
            Command::Restart { done } => {
                self.restart();
                let _ = done.send(());
            }
            Command::Tap { taps, done } => {
                let free = self.taps.set(taps);
                let _ = done.send(free);
            }
            Command::Untap { done } => {
                self.taps.remove();
                let _ = done.send(());
            }
            Command::Stop => return false,
        }
        true
    }

    fn each(&mut self, direction: Direction, mut change: impl FnMut(&mut Link, Instant)) {
        let now = self.now();
        let [forward, backward] = &mut self.lanes;
        if direction != Direction::Backward {
            change(&mut forward.link, now);
        }
        if direction != Direction::Forward {
            change(&mut backward.link, now);
        }
    }

    fn restart(&mut self) {
        self.record_began = Clock::now();
        for (before, end) in self.losses_before.iter_mut().zip(&self.ends) {
            // Should the table be unreadable, the report says so.
            *before = end.losses().unwrap_or(*before);
        }
        for lane in &mut self.lanes {
            lane.restart();
        }
    }

    fn report(&self) -> Report {
        let mut failure = self.failure.clone();
        let losses: [Losses; 2] = std::array::from_fn(|number| {
            let before = self.losses_before[number];
            match self.ends[number].losses() {
                Ok(so_far) => so_far.since(before),
                Err(error) => {
                    failure.get_or_insert(format!("cannot read the hosts' drop counters: {error}"));
                    Losses::default()
                }
            }
        });
        let reports = std::array::from_fn(|number| {
            self.lanes[number].report(losses[number].sent, losses[1 - number].received)
        });
        Report::new(&self.name, self.record_began.elapsed(), reports, failure.as_deref())
    }
}

impl Lane {
    fn new(link: Link) -> Self {
        Self {
            link,
            lateness: Record::new(),
            stalls: 0,
            stalled: Duration::ZERO,
            untranslated: 0,
            unwritten: 0,
            refused: 0,
        }
    }

    /// Records how late a packet left; the first of a batch shows how long the thread had not run.
    fn on_sent(&mut self, late: Duration, first: bool, write: io::Result<()>) -> io::Result<()> {
        self.lateness.add(late);
        if first && late >= STALL {
            self.stalls += 1;
            self.stalled += late;
        }
        let Err(error) = write else { return Ok(()) };
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EINVAL) => self.refused += 1,
            // The receiving host has taken its device down, or has no memory for the packet.
            Some(Errno::EIO | Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => {
                self.unwritten += 1;
            }
            _ => return Err(error),
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.lateness = Record::new();
        self.stalls = 0;
        self.stalled = Duration::ZERO;
        self.untranslated = 0;
        self.unwritten = 0;
        self.refused = 0;
    }

    fn report(&self, unread: u64, lost_behind: u64) -> DirectionReport {
        DirectionReport {
            stats: *self.link.stats(),
            lateness: self.lateness.summary(),
            stalls: self.stalls,
            stalled_seconds: self.stalled.as_secs_f64(),
            unread,
            untranslated: self.untranslated,
            unwritten: self.unwritten + lost_behind,
            refused: self.refused,
        }
    }
}
