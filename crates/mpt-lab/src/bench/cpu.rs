//! Processor time of the whole machine.
//!
//! A process's own time leaves out what the kernel does on its behalf in interrupts, and a tick of
//! 10 ms is charged to whoever happens to run. The machine's busy time is the honest figure; it
//! includes the programs that send and receive, and everybody else on the machine.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// The unit of times in /proc/stat (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);
/// Fields of the first line that are not work: idle, and idle with a disk at work.
const IDLE: [usize; 2] = [3, 4];
/// Fields of the first line: user, nice, system, idle, iowait, irq, softirq. The eighth, steal, is the
/// work of other machines; what follows is contained in the first two (proc(5)).
const FIELDS: usize = 7;

/// Processor time that all processors together spent working since the machine's start.
pub(super) fn machine() -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy(&text).context("/proc/stat is not as proc(5) has it")
}

/// Share of one processor that somebody else keeps busy, 0 to the number of processors, watched
/// for `length` in which the caller does nothing.
pub(super) fn background(length: Duration) -> Result<f64> {
    let (before, start) = (machine()?, Instant::now());
    thread::sleep(length);
    let busy = machine()?.saturating_sub(before);
    Ok(busy.as_secs_f64() / start.elapsed().as_secs_f64())
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
    fn what_is_no_such_file_has_no_time() {
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
