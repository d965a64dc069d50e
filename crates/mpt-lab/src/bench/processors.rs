//! Which processors the two hosts use.
//!
//! One flow through a tunnel keeps four threads busy: a sender, a receiver and two daemons. Two processors can be
//! shared among them in several ways, each of which lasts for seconds, and the fastest takes two thirds of the processor time of the
//! slowest. So each host gets processors of its own, as if the hosts were two machines: the same way for every subject, in every round.

use std::fs;
use std::io;

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::topology::Side;

/// The calling thread, to the kernel.
const MYSELF: Pid = Pid::from_raw(0);

/// The processors of this process, one half for each host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processors {
    all: CpuSet,
    left: CpuSet,
    right: CpuSet,
}

impl Processors {
    /// Those that the calling thread may use. Where that is a single one, both hosts have it.
    ///
    /// # Errors
    ///
    /// The kernel's, where it has more processors than can be asked for.
    pub(super) fn divided() -> Result<Self> {
        let all = sched_getaffinity(MYSELF).context("cannot read which processors are allowed")?;
        let numbers: Vec<usize> =
            (0..CpuSet::count()).filter(|&number| all.is_set(number) == Ok(true)).collect();
        let (left, right) = halves(&numbers);
        Ok(Self { all, left: set(left)?, right: set(right)? })
    }

    /// Has the calling thread, and those that it starts, run on the processors of a host.
    pub(super) fn pin_thread(&self, side: Side) -> io::Result<()> {
        Ok(sched_setaffinity(MYSELF, self.of(side))?)
    }

    /// Has all threads of a process run on the processors of a host.
    pub(super) fn pin_process(&self, process: u32, side: Side) -> Result<()> {
        each_thread(process, self.of(side))
    }

    /// Takes that back.
    pub(super) fn release_process(&self, process: u32) -> Result<()> {
        each_thread(process, &self.all)
    }

    fn of(&self, side: Side) -> &CpuSet {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }
}

/// The first half is the left host's; of an odd number, the right one has one more.
fn halves(numbers: &[usize]) -> (&[usize], &[usize]) {
    if numbers.len() < 2 { (numbers, numbers) } else { numbers.split_at(numbers.len() / 2) }
}

fn set(numbers: &[usize]) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    for &number in numbers {
        set.set(number).context("a processor's number is too large")?;
    }
    Ok(set)
}

fn each_thread(process: u32, set: &CpuSet) -> Result<()> {
    let folder = format!("/proc/{process}/task");
    for thread in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
        let name = thread.with_context(|| format!("cannot read {folder}"))?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        match sched_setaffinity(Pid::from_raw(id), set) {
            // A thread that ended in the meantime.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(error).context("cannot bind a daemon to processors"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;

    fn numbers(set: &CpuSet) -> Vec<usize> {
        (0..CpuSet::count()).filter(|&number| set.is_set(number) == Ok(true)).collect()
    }

    #[test]
    fn each_host_has_a_half_and_a_single_processor_is_shared() {
        assert_eq!(halves(&[0, 1]), (&[0][..], &[1][..]));
        assert_eq!(halves(&[2, 5, 7]), (&[2][..], &[5, 7][..]));
        assert_eq!(halves(&[3]), (&[3][..], &[3][..]));
        assert_eq!(halves(&[0, 1, 2, 3]), (&[0, 1][..], &[2, 3][..]));
    }

    #[test]
    fn a_thread_runs_where_its_host_is() {
        let processors = Processors::divided().unwrap();
        for side in [Side::Left, Side::Right] {
            let found = thread::spawn(move || {
                processors.pin_thread(side).unwrap();
                // What it starts inherits that.
                thread::spawn(|| sched_getaffinity(MYSELF).unwrap()).join().unwrap()
            });
            assert_eq!(numbers(&found.join().unwrap()), numbers(processors.of(side)));
        }
    }

    #[test]
    fn a_process_is_bound_and_released() {
        let processors = Processors::divided().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let found =
            || numbers(&sched_getaffinity(Pid::from_raw(child.id().cast_signed())).unwrap());
        processors.pin_process(child.id(), Side::Right).unwrap();
        assert_eq!(found(), numbers(&processors.right));
        processors.release_process(child.id()).unwrap();
        assert_eq!(found(), numbers(&processors.all));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(processors.pin_process(child.id(), Side::Left).is_err(), "it has ended");
    }
}
