//! How far a send batch has been sent, and what its datagrams met with.
//!
//! This is the logic of [`Socket::send`](super::Socket::send) without the system calls. It splits
//! the send batch into runs, gets the kernel's result for them, and splits the rest again. The
//! kernel reports an error only if it concerns the first message of a call; in other cases it
//! returns the number of messages accepted, and the error is returned when sending continues from
//! there.
//!
//! A run that is refused is not yet lost. If it may be the segmentation that the kernel objects to,
//! its datagrams are tried singly. Only when one of them passes alone is it known that the kernel does
//! not segment on this socket, which then [steps down](Sending::stepped_down).

use std::io;

use super::run::Run;
use super::send_batch::Staged;
use super::sent::Sent;
use super::{MAX_BATCH, MAX_SUPER};

/// A send batch on its way.
pub(super) struct Sending<'t> {
    staged: &'t [Staged],
    /// The first datagram whose fate is open.
    next: usize,
    /// Most bytes of a run.
    limit: usize,
    /// The socket has one remote address.
    connected: bool,
    /// The runs that the kernel was handed last, from `next` on.
    runs: [Run; MAX_BATCH],
    /// Datagrams of this length or more leave singly.
    single_from: usize,
    /// Datagrams of this length or more were found to be too big.
    too_big_from: usize,
    /// Whether the kernel is asked about the run at `next` for the second time.
    asked_again: bool,
    /// Whether the datagram at `next` was refused as part of a run for a reason that lies in the run
    /// or in the datagram.
    suspected: bool,
    stepped_down: bool,
    icmp_errors: u64,
    sent: Sent,
}

impl<'t> Sending<'t> {
    /// Begins with the first of `staged`. `limit` is the most bytes of a run, `None` where datagrams
    /// leave singly.
    pub(super) fn new(staged: &'t [Staged], limit: Option<usize>, connected: bool) -> Self {
        Self {
            staged,
            next: 0,
            limit: limit.unwrap_or(MAX_SUPER),
            connected,
            runs: [Run::default(); MAX_BATCH],
            single_from: if limit.is_some() { usize::MAX } else { 0 },
            too_big_from: usize::MAX,
            asked_again: false,
            suspected: false,
            stepped_down: false,
            icmp_errors: 0,
            sent: Sent::default(),
        }
    }

    /// The runs to hand to the kernel next; none when the send batch is through.
    pub(super) fn next_runs(&mut self) -> &[Run] {
        let too_big = |staged: &&Staged| staged.len() >= self.too_big_from;
        let skip = self.staged[self.next..].iter().take_while(too_big).count();
        self.sent.too_big += skip;
        self.next += skip;

        let mut first = self.next;
        let mut count = 0;
        while count < MAX_BATCH
            && let Some(staged) = self.staged.get(first)
            && staged.len() < self.too_big_from
        {
            let run = match staged.len() < self.single_from {
                true => Run::cut(self.staged, first, self.limit),
                false => Run::single(first),
            };
            self.runs[count] = run;
            count += 1;
            first = run.datagrams().end;
        }
        &self.runs[..count]
    }

    /// The kernel took that many of the runs, at least one.
    pub(super) fn on_taken(&mut self, taken: usize) {
        let datagrams = self.next..self.runs[taken - 1].datagrams().end;
        let staged = &self.staged[datagrams.clone()];
        self.sent.messages += taken;
        self.sent.datagrams += staged.len();
        self.sent.bytes += staged.iter().map(|staged| staged.len()).sum::<usize>();
        self.next = datagrams.end;
        // What was refused a moment ago and is taken unchanged was not the reason for the refusal.
        self.icmp_errors += u64::from(std::mem::take(&mut self.asked_again));
        if std::mem::take(&mut self.suspected) {
            // The datagram passes alone, so it was the run.
            self.stepped_down = true;
            self.single_from = 0;
        }
    }

    /// The kernel refused the first of the runs.
    pub(super) fn on_refused(&mut self, error: io::Error) {
        let errno = error.raw_os_error().unwrap_or(0);
        if self.connected && is_icmp(errno) && !self.asked_again {
            // A connected socket reports an ICMP error about a datagram sent long ago instead of
            // sending, and forgets it by reporting it.
            self.asked_again = true;
            return;
        }
        self.asked_again = false;
        self.suspected = false;
        let run = self.runs[0];
        let rest = self.staged.len() - self.next;
        match errno {
            // A run of datagrams that are too big is refused; so may be one that only as a whole does
            // not suit the kernel.
            libc::EMSGSIZE | libc::EINVAL | libc::EIO if run.count() > 1 => {
                self.single_from = run.segment(self.staged);
                self.suspected = errno != libc::EMSGSIZE;
            }
            // Counted by the next call of `next_runs`, with all others of that length.
            libc::EMSGSIZE => self.too_big_from = run.segment(self.staged),
            libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => {
                self.sent.full += rest;
                self.next += rest;
            }
            _ => {
                let lost = if concerns_the_route(errno) { rest } else { run.count() };
                self.sent.failed += lost;
                self.sent.error.get_or_insert(error);
                self.next += lost;
            }
        }
    }

    /// Whether the kernel turned out not to segment on this socket.
    pub(super) fn stepped_down(&self) -> bool {
        self.stepped_down
    }

    /// Errors that were none of this send batch's.
    pub(super) fn icmp_errors(&self) -> u64 {
        self.icmp_errors
    }

    /// What became of the datagrams.
    pub(super) fn into_sent(self) -> Sent {
        self.sent
    }
}

/// Errors by which an ICMP message about an earlier datagram shows (`icmp_err_convert` in the
/// kernel's `net/ipv4/icmp.c`, and its IPv6 counterpart).
pub(super) fn is_icmp(errno: i32) -> bool {
    matches!(
        errno,
        libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENONET
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
            | libc::EPROTO
            | libc::EACCES
            | libc::EMSGSIZE
    )
}

/// Errors that the next datagram from and to the same addresses will meet with too.
fn concerns_the_route(errno: i32) -> bool {
    matches!(
        errno,
        libc::ENETUNREACH
            | libc::EHOSTUNREACH
            | libc::ENETDOWN
            | libc::ENODEV
            | libc::ENXIO
            | libc::EADDRNOTAVAIL
            | libc::EINVAL
            | libc::EBADF
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What became of a send batch in these tests.
    struct Outcome {
        sent: Sent,
        icmp_errors: u64,
        stepped_down: bool,
        calls: usize,
        /// How many datagrams each message that was taken had.
        taken: Vec<usize>,
    }

    /// Sends datagrams of these lengths to a kernel that judges each message as `kernel` says, given
    /// the datagrams' lengths and which call this is: it takes the message or has an error.
    fn send(
        lengths: &[u32],
        segmentation: bool,
        connected: bool,
        mut kernel: impl FnMut(&[u32], usize) -> Result<(), i32>,
    ) -> Outcome {
        let mut end = 0;
        let stage = |len: &u32| {
            end += len;
            Staged { start: end - len, end, tos: 0 }
        };
        let staged: Vec<_> = lengths.iter().map(stage).collect();
        let limit = segmentation.then_some(MAX_SUPER);
        let mut sending = Sending::new(&staged, limit, connected);
        let (mut calls, mut taken) = (0, Vec::new());
        loop {
            let runs = sending.next_runs().to_vec();
            if runs.is_empty() {
                break;
            }
            calls += 1;
            assert!(calls <= 4 * lengths.len() + 1, "the number of calls is bounded");
            let judge = |run: &Run| kernel(&lengths[run.datagrams()], calls);
            let verdicts: Vec<_> = runs.iter().map(judge).collect();
            match verdicts.iter().position(Result::is_err) {
                Some(0) => {
                    sending.on_refused(io::Error::from_raw_os_error(verdicts[0].unwrap_err()));
                }
                other => {
                    let count = other.unwrap_or(runs.len());
                    taken.extend(runs[..count].iter().map(|run| run.count()));
                    sending.on_taken(count);
                }
            }
        }
        let (icmp_errors, stepped_down) = (sending.icmp_errors(), sending.stepped_down());
        let sent = sending.into_sent();
        assert_eq!(sent.datagrams + sent.full + sent.too_big + sent.failed, lengths.len());
        assert_eq!((sent.messages, sent.datagrams), (taken.len(), taken.iter().sum()));
        Outcome { sent, icmp_errors, stepped_down, calls, taken }
    }

    /// A kernel that takes datagrams of up to 1472 bytes, in runs or not.
    fn mtu_1500(run: &[u32]) -> Result<(), i32> {
        if run[0] > 1472 { Err(libc::EMSGSIZE) } else { Ok(()) }
    }

    #[test]
    fn a_kernel_that_accepts_is_called_once() {
        let lengths = [100, 100, 50, 300];
        let outcome = send(&lengths, false, false, |_, _| Ok(()));
        assert_eq!((outcome.sent.datagrams, outcome.sent.bytes, outcome.calls), (4, 550, 1));
        assert_eq!(outcome.taken, [1; 4]);
        let outcome = send(&lengths, true, false, |_, _| Ok(()));
        assert_eq!((outcome.sent.datagrams, outcome.sent.bytes, outcome.calls), (4, 550, 1));
        assert_eq!(outcome.taken, [3, 1]);
    }

    #[test]
    fn a_long_send_batch_takes_several_calls() {
        let lengths: Vec<u32> = (0..150).map(|i| 100 + i).collect();
        let outcome = send(&lengths, true, false, |_, _| Ok(()));
        assert_eq!((outcome.calls, outcome.taken), (3, vec![1; 150]));
    }

    #[test]
    fn oversized_datagrams_are_left_out_after_one_refusal() {
        let lengths = [100, 1500, 100, 1600, 1500, 1400];
        let outcome = send(&lengths, false, true, |run, _| mtu_1500(run));
        let sent = outcome.sent;
        assert_eq!((sent.datagrams, sent.bytes, sent.too_big), (3, 1600, 3));
        assert_eq!(outcome.calls, 5, "one, two refusals of the second, one, one");
    }

    #[test]
    fn only_what_is_too_big_in_a_run_is_lost() {
        let lengths = [100, 100, 1500, 1500, 1500, 70, 70, 1400, 1400, 1600, 1600];
        for connected in [false, true] {
            let outcome = send(&lengths, true, connected, |run, _| mtu_1500(run));
            assert_eq!((outcome.sent.datagrams, outcome.sent.too_big), (6, 5));
            assert_eq!(outcome.taken, [2, 2, 2], "what is not too big still leaves in runs");
            assert!(!outcome.stepped_down);
            assert_eq!(outcome.icmp_errors, 0);
        }
    }

    #[test]
    fn a_run_too_big_as_a_whole_leaves_singly() {
        let kernel = |run: &[u32], _| if run.len() > 2 { Err(libc::EMSGSIZE) } else { Ok(()) };
        let outcome = send(&[100, 100, 100, 40, 40], true, false, kernel);
        assert_eq!((outcome.sent.datagrams, outcome.stepped_down), (5, false));
        assert_eq!(outcome.taken, [1, 1, 1, 2]);
    }

    #[test]
    fn without_kernel_segmentation_datagrams_are_sent_singly() {
        for errno in [libc::EIO, libc::EINVAL] {
            let kernel = |run: &[u32], _| if run.len() > 1 { Err(errno) } else { Ok(()) };
            let outcome = send(&[30, 100, 100, 100, 40, 40, 50], true, true, kernel);
            assert!(outcome.stepped_down);
            assert_eq!((outcome.sent.datagrams, outcome.sent.messages), (7, 7));
            // The first alone, the run refused, its whole length singly, and so on with the rest.
            assert_eq!((outcome.calls, outcome.icmp_errors), (4, 0));
        }
    }

    #[test]
    fn an_unrelated_error_does_not_disable_segmentation() {
        // A source address that is not this host's.
        let outcome = send(&[100; 64], true, true, |_, _| Err(libc::EINVAL));
        assert!(!outcome.stepped_down);
        assert_eq!((outcome.sent.failed, outcome.calls), (64, 2));
        assert_eq!(outcome.sent.error.unwrap().raw_os_error(), Some(libc::EINVAL));

        // Older kernels say EINVAL to a run of datagrams that are too big.
        let kernel = |run: &[u32], _| match (run[0] > 1472, run.len()) {
            (true, 1) => Err(libc::EMSGSIZE),
            (true, _) => Err(libc::EINVAL),
            (false, _) => Ok(()),
        };
        let outcome = send(&[1500, 1500, 1500, 90, 90], true, false, kernel);
        assert!(!outcome.stepped_down);
        assert_eq!((outcome.sent.too_big, outcome.taken), (3, vec![2]));
    }

    #[test]
    fn a_pending_icmp_error_loses_no_datagram() {
        let kernel = |_: &[u32], call| if call == 1 { Err(libc::ECONNREFUSED) } else { Ok(()) };
        for segmentation in [false, true] {
            let outcome = send(&[10, 10], segmentation, true, kernel);
            assert_eq!((outcome.sent.datagrams, outcome.sent.failed), (2, 0));
            assert_eq!((outcome.icmp_errors, outcome.stepped_down), (1, false));
        }
    }

    #[test]
    fn a_full_buffer_ends_the_send_batch() {
        let mut room = 1;
        let kernel = |_: &[u32], _| {
            room -= 1;
            if room < 0 { Err(libc::EAGAIN) } else { Ok(()) }
        };
        let outcome = send(&[10, 10, 10], false, false, kernel);
        assert_eq!((outcome.sent.datagrams, outcome.sent.full, outcome.calls), (1, 2, 2));
    }

    #[test]
    fn a_refused_message_does_not_affect_the_rest() {
        let kernel = |run: &[u32], _| if run[0] == 20 { Err(libc::EPERM) } else { Ok(()) };
        let outcome = send(&[10, 20, 20, 30], true, false, kernel);
        assert_eq!((outcome.sent.datagrams, outcome.sent.failed), (2, 2));
        assert_eq!(outcome.sent.error.unwrap().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_lost_route_ends_the_send_batch() {
        let outcome = send(&[10; 64], true, true, |_, _| Err(libc::ENETUNREACH));
        assert_eq!((outcome.sent.failed, outcome.icmp_errors, outcome.calls), (64, 0, 2));
    }

    proptest! {
        /// Whatever a kernel that can say no to any message does: every datagram is accounted for once
        /// and asked about a bounded number of times, which `send` asserts.
        #[test]
        fn any_kernel_result_is_handled(
            lengths in prop::collection::vec(prop_oneof![1u32..4, Just(1460)], 1..100),
            errors in prop::collection::vec(
                prop::option::weighted(0.3, prop::sample::select(vec![
                    libc::EMSGSIZE, libc::EIO, libc::EINVAL, libc::EAGAIN, libc::EPERM,
                    libc::ECONNREFUSED, libc::ENETUNREACH,
                ])),
                1..50,
            ),
            segmentation: bool,
            connected: bool,
        ) {
            let mut errors = errors.iter().cycle();
            let kernel = |_: &[u32], _| errors.next().copied().flatten().map_or(Ok(()), Err);
            let outcome = send(&lengths, segmentation, connected, kernel);
            prop_assert!(segmentation || outcome.taken.iter().all(|count| *count == 1));
        }
    }
}
