//! What a reorder buffer has to do, as a list of rules applied until none applies.
//!
//! The model remembers every number that it was given. It does not support restarts of the sender:
//! give it the numbers of one sender, and no number so far from the expected one, or so many
//! consecutive ones from behind, that the core would suspect a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The settings of the buffer, in the words of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many numbers from the expected one on can be held or expected; 0 means no order.
    pub window: u64,
    /// How long a packet is held at the most.
    pub max_delay: Duration,
    /// Whether a number is given up once every live path has brought a higher one.
    pub early_release: bool,
    /// Whether a packet that comes after it was given up is delivered.
    pub deliver_late: bool,
}

/// What happened to a packet when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was delivered or is held.
    Taken,
    /// It has been delivered, or is held, already.
    Duplicate,
    /// It was given up before, and late packets are dropped.
    Late,
}

/// The reference reorder buffer.
#[derive(Clone, Debug)]
pub struct ReorderModel {
    settings: Settings,
    /// The number expected next; unknown until the first came.
    next: Option<u64>,
    /// The held numbers, and since when each is held.
    held: BTreeMap<u64, u64>,
    /// Everything ever delivered, in order of delivery.
    delivered: Vec<u64>,
    delivered_set: BTreeSet<u64>,
    /// The highest number each path has brought.
    highest: BTreeMap<usize, u64>,
    live: BTreeSet<usize>,
}

impl ReorderModel {
    /// An empty buffer, while no path is live.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            next: None,
            held: BTreeMap::new(),
            delivered: Vec::new(),
            delivered_set: BTreeSet::new(),
            highest: BTreeMap::new(),
            live: BTreeSet::new(),
        }
    }

    /// The number expected next, once one came.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// All that was delivered so far, in order of delivery.
    pub fn delivered(&self) -> &[u64] {
        &self.delivered
    }

    /// The numbers that are held.
    pub fn held(&self) -> impl Iterator<Item = u64> + '_ {
        self.held.keys().copied()
    }

    /// When [`ReorderModel::on_time`] has something to do, in nanoseconds.
    pub fn deadline(&self) -> Option<u64> {
        let longest = self.held.values().min()?;
        Some(longest + self.settings.max_delay.as_nanos() as u64)
    }

    /// Expects `number` first, rather than whichever comes first.
    pub fn begin(&mut self, number: u64) {
        self.next = Some(number);
    }

    /// `number` came by `path` at `now` nanoseconds.
    pub fn insert(&mut self, now: u64, path: usize, number: u64) -> Outcome {
        if self.settings.window == 0 {
            self.deliver(number);
            return Outcome::Taken;
        }
        let next = *self.next.get_or_insert(number);
        if self.delivered_set.contains(&number) || self.held.contains_key(&number) {
            return Outcome::Duplicate;
        }
        if number < next {
            if !self.settings.deliver_late {
                return Outcome::Late;
            }
            self.deliver(number);
            self.brought(path, number);
            return Outcome::Taken;
        }
        // The window moves on so that the number is its last place.
        self.give_up_below((number + 1).saturating_sub(self.settings.window));
        self.held.insert(number, now);
        self.deliver_run();
        self.brought(path, number);
        self.release_early();
        Outcome::Taken
    }

    /// Other paths than before are live.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = usize>) {
        self.live = live.into_iter().collect();
        self.release_early();
    }

    /// Time passes: nothing may be held any longer than the maximum delay.
    pub fn on_time(&mut self, now: u64) {
        while self.deadline().is_some_and(|deadline| deadline <= now) {
            let longest = self.held.iter().min_by_key(|&(_, &since)| since);
            if let Some((&number, _)) = longest {
                self.give_up_below(number);
            }
        }
    }

    /// Whatever is missing below the lowest of the live paths' highest numbers is lost, for each
    /// path keeps its order.
    fn release_early(&mut self) {
        let highest = self.live.iter().map(|path| self.highest.get(path).copied());
        // A path that has brought nothing may still bring anything.
        let reached: Option<Vec<u64>> = highest.collect();
        if let Some(least) = reached.and_then(|reached| reached.into_iter().min())
            && self.settings.early_release
        {
            self.give_up_below(least);
        }
    }

    /// Expects nothing below `number` any more: delivers what is held there, then what follows.
    fn give_up_below(&mut self, number: u64) {
        let above = self.held.split_off(&number);
        for held in std::mem::replace(&mut self.held, above).into_keys() {
            self.deliver(held);
        }
        self.next = self.next.map(|next| next.max(number));
        self.deliver_run();
    }

    fn deliver_run(&mut self) {
        while let Some(next) = self.next
            && self.held.remove(&next).is_some()
        {
            self.deliver(next);
            self.next = Some(next + 1);
        }
    }

    fn deliver(&mut self, number: u64) {
        self.delivered.push(number);
        self.delivered_set.insert(number);
    }

    fn brought(&mut self, path: usize, number: u64) {
        let highest = self.highest.entry(path).or_insert(number);
        *highest = number.max(*highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings {
        window: 8,
        max_delay: Duration::from_nanos(100),
        early_release: true,
        deliver_late: true,
    };

    /// Gives `numbers` to a fresh model by one path that is never live, at time 0.
    fn fed(settings: Settings, numbers: &[u64]) -> ReorderModel {
        let mut model = ReorderModel::new(settings);
        for &number in numbers {
            model.insert(0, 0, number);
        }
        model
    }

    #[test]
    fn gaps_are_waited_for_and_filled() {
        let model = fed(SETTINGS, &[5, 7, 8, 6, 10]);
        assert_eq!(model.delivered(), [5, 6, 7, 8]);
        assert_eq!(model.held().collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn the_maximum_delay_ends_one_gap_and_not_the_next() {
        let mut model = fed(SETTINGS, &[0, 2]);
        model.insert(50, 0, 4);
        model.on_time(99);
        assert_eq!(model.delivered(), [0]);
        model.on_time(100);
        assert_eq!(model.delivered(), [0, 2]);
        assert_eq!(model.deadline(), Some(150));
        model.on_time(150);
        assert_eq!(model.delivered(), [0, 2, 4]);
        assert_eq!(model.deadline(), None);
    }

    #[test]
    fn the_window_moves_only_as_far_as_it_must() {
        let mut model = fed(SETTINGS, &[0, 2, 4, 9]);
        assert_eq!(model.delivered(), [0, 2]);
        model.insert(0, 0, 12);
        assert_eq!(model.delivered(), [0, 2, 4]);
        assert_eq!(model.held().collect::<Vec<_>>(), [9, 12]);
    }

    #[test]
    fn a_gap_is_lost_when_all_live_paths_are_past_it() {
        let mut model = ReorderModel::new(SETTINGS);
        model.set_live([0, 1]);
        model.insert(0, 0, 0);
        model.insert(0, 0, 2);
        assert_eq!(model.delivered(), [0], "path 1 may still bring 1");
        model.insert(0, 1, 3);
        assert_eq!(model.delivered(), [0, 2, 3]);
        model.insert(0, 0, 5);
        assert_eq!(model.delivered(), [0, 2, 3]);
        model.set_live([0]);
        assert_eq!(model.delivered(), [0, 2, 3, 5], "path 1 is dead");
    }

    #[test]
    fn duplicates_and_late_packets_are_distinguished() {
        let strict = Settings { deliver_late: false, ..SETTINGS };
        for (settings, outcome) in [(SETTINGS, Outcome::Taken), (strict, Outcome::Late)] {
            let mut model = fed(settings, &[0, 2]);
            assert_eq!(model.insert(0, 0, 2), Outcome::Duplicate, "held");
            model.on_time(100);
            assert_eq!(model.insert(100, 0, 2), Outcome::Duplicate, "delivered");
            assert_eq!(model.insert(100, 0, 1), outcome);
        }
    }

    #[test]
    fn without_a_window_everything_passes() {
        let model = fed(Settings { window: 0, ..SETTINGS }, &[3, 1, 3]);
        assert_eq!(model.delivered(), [3, 1, 3]);
    }
}
