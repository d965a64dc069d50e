//! Processor time of one thread, to separate the cost of sending and of receiving.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Processor time, user and system, that the calling thread has used since it was started.
///
/// It includes what the kernel does inside the thread's own system calls. What the kernel does in
/// interrupts is charged to the thread that happens to run, so a figure is a lower bound of the cost.
pub(super) fn thread_time() -> Duration {
    // The clock of the calling thread always exists.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_work_of_the_calling_thread_counts() {
        let busy = || {
            while thread_time() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        };
        let before = thread_time();
        thread::spawn(busy).join().unwrap();
        let waited = thread_time() - before;
        assert!(waited < Duration::from_millis(20), "{waited:?}");
    }
}
