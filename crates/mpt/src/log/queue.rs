//! The lines that wait to be written, and what became of those that were not.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mpt_control::LogStatus;

/// Most bytes of lines that wait: some thousand lines, many minutes of what a daemon logs in the worst
/// case (ten events per second and tunnel).
const MAX_BYTES: usize = 512 << 10;

/// A bounded queue of lines. Nobody who gives it a line ever waits for the log.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Queued>,
    /// The bytes of those lines.
    bytes: usize,
    /// Lines dropped since the last one that was queued.
    dropped_since: u64,
    /// Whether a line was taken out and is not [done](Queue::on_written) yet.
    writing: bool,
    /// All lines that were dropped.
    dropped: u64,
    /// All lines that could not be written.
    failed: u64,
    /// Why the last of those could not be written.
    error: Option<String>,
}

/// A line that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// The line with its end.
    pub(super) text: Vec<u8>,
    /// Lines right before it that were dropped.
    pub(super) dropped: u64,
}

impl Queue {
    /// Queues a line with its end, or drops and counts it if there is no room.
    pub(super) fn push(&self, text: Vec<u8>) {
        let mut state = self.lock();
        if state.bytes + text.len() > MAX_BYTES {
            state.dropped += 1;
            state.dropped_since += 1;
            return;
        }
        state.bytes += text.len();
        let dropped = std::mem::take(&mut state.dropped_since);
        state.lines.push_back(Queued { text, dropped });
        drop(state);
        self.changed.notify_all();
    }

    /// The next line, as soon as there is one. What became of it must be [told](Self::on_written).
    pub(super) fn pop(&self) -> Queued {
        let mut state = self.lock();
        loop {
            if let Some(line) = state.take() {
                return line;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next line, if there is one. What became of it must be [told](Self::on_written).
    pub(super) fn try_pop(&self) -> Option<Queued> {
        self.lock().take()
    }

    /// The line that was taken out is written, or could not be.
    pub(super) fn on_written(&self, result: Result<(), &io::Error>) {
        let mut state = self.lock();
        state.writing = false;
        if let Err(error) = result {
            state.failed += 1;
            state.error = Some(error.to_string());
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until all lines are written, for at most so long.
    pub(super) fn flush(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.writing || !state.lines.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What became of the lines that are missing.
    pub(super) fn status(&self) -> LogStatus {
        let state = self.lock();
        let lost = [("queue_full", state.dropped), ("write_failed", state.failed)];
        let lost = lost.into_iter().filter(|&(_, lines)| lines > 0);
        let lost: BTreeMap<_, _> = lost.map(|(name, lines)| (name.to_owned(), lines)).collect();
        LogStatus { lost, error: state.error.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<Queued> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.text.len();
        self.writing = true;
        Some(line)
    }
}

/// Where `tracing` writes one line, with one call.
#[derive(Debug)]
pub(super) struct Line(pub(super) Arc<Queue>);

impl io::Write for Line {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.push(text.to_vec());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_in_order() {
        let queue = Queue::default();
        for text in ["one\n", "two\n"] {
            queue.push(text.into());
        }
        for text in ["one\n", "two\n"] {
            assert_eq!(queue.pop(), Queued { text: text.into(), dropped: 0 });
            queue.on_written(Ok(()));
        }
        assert_eq!(queue.status(), LogStatus::default());
    }

    #[test]
    fn a_full_queue_drops_counts_and_says_before_which_line() {
        let queue = Queue::default();
        let long = vec![b'x'; MAX_BYTES / 2];
        for _ in 0..5 {
            queue.push(long.clone());
        }
        assert_eq!(queue.status().lost, [("queue_full".to_owned(), 3)].into());
        for _ in 0..2 {
            assert_eq!(queue.pop().dropped, 0);
        }
        queue.push(b"next\n".to_vec());
        queue.push(b"last\n".to_vec());
        assert_eq!(queue.pop(), Queued { text: b"next\n".to_vec(), dropped: 3 });
        assert_eq!(queue.pop(), Queued { text: b"last\n".to_vec(), dropped: 0 });
        assert_eq!(queue.status().lost["queue_full"], 3);
    }

    #[test]
    fn a_flush_waits_for_the_line_that_is_being_written() {
        let queue = Arc::new(Queue::default());
        queue.flush(Duration::from_secs(3600));
        queue.push(b"line\n".to_vec());
        queue.pop();
        let begin = Instant::now();
        let limit = Duration::from_millis(20);
        queue.flush(limit);
        assert!(begin.elapsed() >= limit, "nobody has written it");
        let writer = Arc::clone(&queue);
        let writer = std::thread::spawn(move || writer.on_written(Ok(())));
        // Returns long before its limit, or this test does not end.
        queue.flush(Duration::from_secs(3600));
        writer.join().unwrap();
    }
}
