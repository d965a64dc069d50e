//! Whether the processors of this host, and not its links, were the limit of a load.

use std::collections::HashMap;
use std::fs;

/// A thread that runs for this share of the time can do no more.
const THREAD: f64 = 0.8;

/// Processors that idle for less than this share of the time are all busy.
const IDLE: f64 = 0.05;

/// How long processors and the threads of a process have run, in ticks of the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ticks {
    processors: u64,
    /// Of all processors together.
    total: u64,
    idle: u64,
    /// By thread.
    threads: HashMap<String, u64>,
}

impl Ticks {
    /// Those of now; nothing of what cannot be read.
    pub(super) fn of(process: u32) -> Self {
        let mut ticks = Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let name = thread.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            ticks.threads.extend(ran(&text).map(|ran| (name, ran)));
        }
        ticks
    }

    /// `/proc/stat`: user, nice, system, idle, iowait, irq, softirq and steal of all processors, then of each.
    fn parse(text: &str) -> Self {
        let all = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let all: Vec<u64> = all.filter_map(|word| word.parse().ok()).collect();
        let processors = text.lines().skip(1).filter(|line| line.starts_with("cpu")).count();
        Self {
            processors: processors as u64,
            total: all.iter().sum(),
            idle: all.iter().skip(3).take(2).sum(),
            threads: HashMap::new(),
        }
    }

    /// Whether processors or one of the threads were busy since.
    pub(super) fn were_busy_until(&self, now: &Self) -> bool {
        let total = now.total.saturating_sub(self.total) as f64;
        let idle = now.idle.saturating_sub(self.idle) as f64;
        let elapsed = total / now.processors.max(1) as f64;
        let ran = |(name, ticks): (&String, &u64)| {
            let before = self.threads.get(name).copied().unwrap_or_default();
            ticks.saturating_sub(before) as f64
        };
        total > 0.0
            && (idle < IDLE * total
                || now.threads.iter().map(ran).any(|ran| ran > THREAD * elapsed))
    }
}

/// How long a thread has run: `utime` and `stime` in `/proc/PID/task/TID/stat`, behind a name that may hold anything.
fn ran(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_busy_where_no_processor_idles_or_a_thread_always_runs() {
        let ticks = |busy: u64, idle: u64, thread: u64| {
            let text =
                format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 0 0 1\ncpu1 1 0 0 1\nintr 5\n");
            Ticks { threads: [("7".to_owned(), thread)].into(), ..Ticks::parse(&text) }
        };
        let begin = ticks(1000, 1000, 50);
        // 2 s of two processors with 100 ticks a second.
        assert!(!begin.were_busy_until(&ticks(1200, 1200, 150)));
        assert!(begin.were_busy_until(&ticks(1399, 1001, 100)), "nothing idles");
        assert!(begin.were_busy_until(&ticks(1250, 1150, 245)), "a thread runs all the time");
        assert!(!Ticks::default().were_busy_until(&Ticks::default()), "nothing is known");
        assert_eq!(ran("7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 30 12 0 0 20"), Some(42));
        assert_eq!(ran(""), None);
    }

    #[test]
    fn the_own_process_has_threads() {
        let ticks = Ticks::of(std::process::id());
        assert!(!ticks.threads.is_empty() && ticks.processors > 0, "{ticks:?}");
    }
}
