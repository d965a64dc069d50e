//! How many tests run at the same time.
//!
//! A few for each processor always may. More may while processors are idle, because most tests wait most of the time; on
//! a machine that does other work they would starve one another.

use std::fs;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// How many tests always may run for each processor: one takes a sixth of it on average. With four, some are starved for
/// longer than their dead time on a machine that does other work, too.
const ALWAYS: usize = 3;
/// How many may run for each processor while there is idle time.
const WHILE_IDLE: usize = 10;
/// The share of the processors' time that must be idle for one more.
const IDLE: f64 = 0.4;
/// For how long that is measured: a test that has just begun has to show what it takes.
const WINDOW: Duration = Duration::from_millis(500);

/// Hands out turns.
pub(super) struct Turns {
    /// How many tests may run, however busy the machine is.
    always: usize,
    /// How many may run while there is idle time.
    most: usize,
    state: Mutex<State>,
    /// A turn has ended.
    ended: Condvar,
}

struct State {
    running: usize,
    /// When processor time was last looked at, and what it was; `None` where idle time cannot be known.
    seen: Option<(Instant, Time)>,
}

/// A test may run until this is dropped.
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    /// For so many tests, or, if that is `None`, as the processors allow.
    pub(super) fn new(wanted: Option<usize>) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        // Where this process may not use all processors, their idle time says nothing.
        let seen = fs::read_to_string(STAT)
            .ok()
            .filter(|stat| processors_in(stat) == processors)
            .and_then(|stat| Some((Instant::now(), Time::read(&stat)?)));
        Self {
            always: wanted.unwrap_or(processors * ALWAYS),
            most: wanted.unwrap_or(processors * WHILE_IDLE),
            state: Mutex::new(State { running: 0, seen }),
            ended: Condvar::new(),
        }
    }

    /// How many tests run at the same time at the most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Waits until one more test may run.
    pub(super) fn take(&self) -> Turn<'_> {
        let mut state = self.state();
        while state.running >= self.always && (state.running >= self.most || !state.is_idle()) {
            let waited = self.ended.wait_timeout(state, WINDOW);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.running += 1;
        Turn(self)
    }

    /// No thread panics while holding the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.ended.notify_one();
    }
}

impl State {
    /// Whether processors were idle for long enough in a window that has just ended. The next one begins then.
    fn is_idle(&mut self) -> bool {
        let Some((since, before)) = &self.seen else { return false };
        if since.elapsed() < WINDOW {
            return false;
        }
        let now = fs::read_to_string(STAT).ok().and_then(|stat| Time::read(&stat));
        let share = now.as_ref().map_or(0.0, |now| now.idle_since(before));
        self.seen = now.map(|now| (Instant::now(), now));
        share >= IDLE
    }
}

/// Where the kernel counts processor time (proc_stat(5)).
const STAT: &str = "/proc/stat";

/// Processor time since the machine started, in ticks.
struct Time {
    idle: u64,
    all: u64,
}

impl Time {
    /// From the line of all processors: user, nice, system, idle, and more kinds, of which guests' time is in the first
    /// two already.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let kinds: Vec<u64> =
            line.split_whitespace().map_while(|ticks| ticks.parse().ok()).take(8).collect();
        Some(Self { idle: *kinds.get(3)?, all: kinds.iter().sum() })
    }

    /// The idle share since then.
    fn idle_since(&self, before: &Self) -> f64 {
        let [idle, all] = [(self.idle, before.idle), (self.all, before.all)]
            .map(|(now, before)| now.saturating_sub(before) as f64);
        if all > 0.0 { idle / all } else { 0.0 }
    }
}

/// How many processors the machine has.
fn processors_in(stat: &str) -> usize {
    let names = stat.lines().filter_map(|line| line.split_whitespace().next()?.strip_prefix("cpu"));
    names.filter(|number| !number.is_empty()).count()
}
