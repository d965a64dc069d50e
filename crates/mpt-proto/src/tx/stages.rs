//! The two stages in which packets wait for their paths: see [`paced`](super::paced).

use std::collections::{BTreeSet, VecDeque};

use super::equalise::Equalise;
use super::opened::Opening;
use crate::class::{Class, Flows};
use crate::framing::Stamp;
use crate::id::{ConnectionId, PathId};
use crate::queue::FlowQueues;
use crate::queue::acks::AckThinner;
use crate::queue::store::{Place, Store};
use crate::sequence::Seq;
use crate::slots::Slots;
use crate::time::Instant;
use crate::tx::repair::Again;
use crate::tx::transmit::Keep;

/// What waits of one connection.
#[derive(Debug, Default)]
pub(super) struct Paced {
    /// First stage.
    pub(super) queues: FlowQueues,
    /// The same for packets of classes that may take only some paths.
    pub(super) within: Vec<(Class, FlowQueues)>,
    /// Second stage, by path. Packets that were sent ahead stand in front.
    pub(super) committed: Slots<VecDeque<Committed>>,
    pub(super) store: Store,
    /// Acknowledgements that wait.
    pub(super) acks: AckThinner,
    /// The time that bulk flows are to take.
    pub(super) equalise: Equalise,
    /// Trains, which show what paths carry.
    pub(super) trains: Trains,
    /// The numbers of those in the second stage that were moved to another path.
    pub(super) moved: BTreeSet<u32>,
    /// Until when the last one of these that left may arrive.
    pub(super) moves_until: Instant,
    /// The flows of which packets were offered.
    pub(super) flows: Flows,
    /// When a packet was offered last.
    pub(super) offered_at: Instant,
    /// The packet that takes two paths and whose bytes are to be written: where it is, and where the copy goes.
    pub(super) twin: Option<(Place, Place)>,
    /// The packet that was given out last, whose bytes have been written by the next call.
    pub(super) lent: Option<Place>,
    /// When something is due, and whether that is earlier than it was when it was last asked.
    pub(super) at: Option<Instant>,
    pub(super) sooner: bool,
}

/// A packet that has its number and waits for its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) place: Place,
    pub(super) stamp: Stamp,
    pub(super) tos: u8,
    /// The bytes of the IP packet that carries it.
    pub(super) wire_len: usize,
    /// Whether it leaves before those that are not.
    pub(super) ahead: bool,
    /// Whether another path carries the same.
    pub(super) is_copy: bool,
    /// Whether it is a copy that shows what the path carries.
    pub(super) of_train: bool,
    /// When it was sent first and how often, if it is sent again.
    pub(super) again: Option<Again>,
    /// Its class, if that may not take all paths.
    pub(super) class: Option<Class>,
}

impl Committed {
    /// A packet that no other path carries, behind those that wait.
    pub(super) const fn new(place: Place, stamp: Stamp, tos: u8, wire_len: usize) -> Self {
        let (ahead, is_copy, of_train) = (false, false, false);
        let (again, class) = (None, None);
        Self { place, stamp, tos, wire_len, ahead, is_copy, of_train, again, class }
    }
}

/// Trains of one connection.
#[derive(Debug, Default)]
pub(super) struct Trains {
    /// Bytes that were sent since the last one.
    pub(super) sent: u64,
    /// That which is being gathered.
    pub(super) gathered: Vec<Committed>,
    pub(super) to: Option<(PathId, usize)>,
    pub(super) began: Instant,
    /// When it was asked last whether one is to begin, and none was.
    pub(super) asked_at: Instant,
    /// Those at the beginning of the session.
    pub(super) opening: Opening,
}

impl Trains {
    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.gathered.capacity() * size_of::<Committed>()
    }
}

/// What becomes of a packet that was offered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offered {
    /// It is sent at once.
    Now(PathId, Stamp),
    /// It waits; its bytes are to be written there.
    Later(Place),
    /// The same, with a whole checksum: parity covers it.
    Covered(Place),
}

/// What becomes of a packet that was offered, without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) connection: ConnectionId,
    pub(super) offered: Offered,
    pub(super) tos: u8,
    pub(super) len: usize,
}

/// A packet that waited and is to be sent now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) path: PathId,
    pub(super) stamp: Stamp,
    pub(super) tos: u8,
    pub(super) place: Place,
    pub(super) len: usize,
    /// Whether it was sent before, or is a copy of what is sent.
    pub(super) is_copy: bool,
    pub(super) keep: Keep,
}

impl Paced {
    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        let committed: usize = self.committed.iter().map(|(_, lane)| lane.capacity()).sum();
        let within: usize = self.within.iter().map(|(_, queues)| queues.memory()).sum();
        self.queues.memory()
            + within
            + self.store.memory()
            + self.acks.memory()
            + self.trains.memory()
            + self.flows.memory()
            + self.committed.memory()
            + committed * size_of::<Committed>()
            + self.moved.len() * size_of::<u32>()
            + self.within.capacity() * size_of::<(Class, FlowQueues)>()
    }

    /// Gives back what is not needed while no packet is offered, if none waits.
    pub(super) fn rest(&mut self) {
        if !self.store.is_empty() {
            return;
        }
        self.queues.rest();
        self.within.clear();
        self.within.shrink_to(0);
        self.committed.iter_mut().for_each(|(_, lane)| lane.shrink_to(0));
        self.committed.shrink();
        self.store = Store::default();
        self.acks = AckThinner::default();
        self.trains.gathered.shrink_to(0);
        self.flows = Flows::default();
    }

    /// The queues of a class that may take only some paths.
    pub(super) fn within(&mut self, class: Class) -> &mut FlowQueues {
        let at = self.within.iter().position(|(of, _)| *of == class);
        let at = at.unwrap_or_else(|| {
            self.within.push((class, FlowQueues::default()));
            self.within.len() - 1
        });
        &mut self.within[at].1
    }

    /// All queues of the first stage.
    pub(super) fn first_stage(&self) -> impl Iterator<Item = &FlowQueues> {
        std::iter::once(&self.queues).chain(self.within.iter().map(|(_, queues)| queues))
    }

    /// Writes a packet that waits. `fill` returns whether its checksum is partial.
    pub(super) fn fill(&mut self, place: Place, fill: impl FnOnce(&mut [u8]) -> bool) {
        self.store.fill(place, fill);
        if let Some((from, to)) = self.twin.take_if(|(from, _)| *from == place) {
            self.store.copy_to(from, to);
        }
    }

    /// A packet that waits, and whether its checksum is partial.
    pub(super) fn packet(&self, place: Place) -> (&[u8], bool) {
        self.store.get(place)
    }

    /// Something is due at this time.
    pub(super) fn wake_at(&mut self, at: Instant) {
        if self.at.is_none_or(|before| at < before) {
            self.at = Some(at);
            self.sooner = true;
        }
    }

    /// Whether packets are on the way, or wait, by another path than that of their turn: so nothing that leaves says what
    /// its path will bring.
    pub(super) fn moves(&self, now: Instant) -> bool {
        !self.moved.is_empty() || now < self.moves_until
    }

    /// A packet that was committed to another path takes this one, in the order of the numbers.
    pub(super) fn adopt(&mut self, path: PathId, mut committed: Committed) {
        if committed.again.is_none_or(|again| again.times == 0 && !again.is_second) {
            self.moved.extend(committed.stamp.sequence().map(Seq::value));
        }
        committed.ahead = false;
        let Some(lane) = self.lane(path) else { return };
        let number = |committed: &Committed| committed.stamp.sequence();
        let is_later = |other: &&Committed| {
            let order = number(other).zip(number(&committed));
            !other.ahead && order.is_some_and(|(other, own)| other.offset_from(own) > 0)
        };
        let later = lane.iter().rev().take_while(is_later).count();
        lane.insert(lane.len() - later, committed);
    }

    /// What is committed to a path.
    fn lane(&mut self, path: PathId) -> Option<&mut VecDeque<Committed>> {
        if self.committed.get(path.index()).is_none() {
            self.committed.put(path.index(), VecDeque::new());
        }
        self.committed.get_mut(path.index())
    }

    /// The packet that leaves a path last, if it is one that waits in its turn.
    pub(super) fn last(&self, path: PathId) -> Option<&Committed> {
        let lane = self.committed.get(path.index())?;
        lane.back().filter(|last| !last.ahead)
    }

    /// Takes it.
    pub(super) fn take_last(&mut self, path: PathId) -> Option<Committed> {
        self.committed.get_mut(path.index())?.pop_back()
    }

    pub(super) fn has_committed(&self, path: PathId) -> bool {
        self.committed.get(path.index()).is_some_and(|lane| !lane.is_empty())
    }

    /// Whether a packet waits that leaves before those that are committed in their order.
    pub(super) fn has_ahead(&self, path: PathId) -> bool {
        let first = self.committed.get(path.index()).and_then(VecDeque::front);
        first.is_some_and(|first| first.ahead)
    }

    /// A packet waits for a path: behind the others, or before those that are not ahead if it is.
    pub(super) fn push(&mut self, path: PathId, committed: Committed) {
        let Some(lane) = self.lane(path) else { return };
        if committed.ahead {
            let at = lane.iter().take_while(|other| other.ahead).count();
            lane.insert(at, committed);
        } else {
            lane.push_back(committed);
        }
    }
}
