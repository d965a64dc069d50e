//! Processor time: of the whole machine, of this process, and of the emulator in it.
//!
//! A process's own time omits the kernel's work for it in interrupts. The machine's busy time
//! includes it, but also the work of all other processes, and it is sampled: a tick of 10 ms is
//! charged to the thread that happens to run, so that many short pieces of work are missed. It
//! suits a benchmark that keeps the machine busy; experiments on slow links count what processes
//! and threads have spent.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::time::{ClockId, clock_gettime};

use crate::daemon::process::time_in;

/// The unit of times in /proc/stat (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);
/// How the names of the emulator's threads begin.
const THREADS: &str = "link ";
/// Fields of the first line that are not work: idle, and idle with a disk at work.
const IDLE: [usize; 2] = [3, 4];
/// Fields of the first line: user, nice, system, idle, iowait, irq, softirq. The eighth, steal, is the
/// work of other machines; what follows is contained in the first two (proc(5)).
const FIELDS: usize = 7;

/// Processor time that all processors together spent working since the machine's start.
pub(crate) fn machine() -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy(&text).context("/proc/stat has not the format of proc(5)")
}

/// Load of other processes in processors, 0 to their number, measured for `length` in which the
/// caller does nothing.
pub(crate) fn background(length: Duration) -> Result<f64> {
    let (before, start) = (machine()?, Instant::now());
    thread::sleep(length);
    let busy = machine()?.saturating_sub(before);
    Ok(busy.as_secs_f64() / start.elapsed().as_secs_f64())
}

/// Processor time that this process has spent since its start: traffic and emulator. The kernel
/// counts it precisely, without the work of others.
pub(crate) fn own() -> Result<Duration> {
    let spent = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    spent.map(Duration::from).context("cannot read the clock of this process")
}

/// Processor time that the threads of the emulator have spent since their start, to within 10 ms for
/// each of them. Threads that have ended do not count.
pub(crate) fn emulator() -> Result<Duration> {
    let threads = fs::read_dir("/proc/self/task").context("cannot read /proc/self/task")?;
    let times = threads.flatten().filter_map(|thread| {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).ok();
        read("comm")?.starts_with(THREADS).then(|| time_in(&read("stat")?)).flatten()
    });
    Ok(times.sum())
}

fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields = line.split_whitespace().take(FIELDS).map(|field| field.parse::<u64>().ok());
    let fields: Vec<u64> = fields.collect::<Option<_>>()?;
    if fields.len() < FIELDS {
        return None;
    }
    let work = fields.iter().enumerate().filter(|(index, _)| !IDLE.contains(index));
    let ticks: u64 = work.map(|(_, ticks)| ticks).sum();
    Some(TICK * u32::try_from(ticks).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_waiting_stolen_and_guest_time_are_not_work() {
        let stat = "cpu  100 20 3 5000 600 7 8 9000 10 11\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
        assert_eq!(busy(stat), Some(Duration::from_millis(1380)));
    }

    #[test]
    fn the_time_of_a_thread_is_user_and_system_whatever_its_name() {
        let stat = "7 (link a) b) S 1 7 7 0 -1 4194368 10 0 0 0 30 12 0 0 20 0 3 0 99 0 0";
        assert_eq!(time_in(stat), Some(Duration::from_millis(420)));
        assert_eq!(time_in("7 (link) S 1"), None);
    }

    #[test]
    fn a_file_of_another_format_has_no_time() {
        for stat in ["", "cpu0 1 2 3 4 5 6 7", "cpu  1 2 3", "cpu  1 2 3 4 5 6 x"] {
            assert_eq!(busy(stat), None, "{stat:?}");
        }
    }

    #[test]
    fn a_busy_thread_is_seen() {
        let before = machine().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        // However slow the machine is, a thread that does not rest gets its ticks in the end.
        while machine().unwrap() < before + Duration::from_millis(50) {
            assert!(Instant::now() < deadline);
        }
    }
}
