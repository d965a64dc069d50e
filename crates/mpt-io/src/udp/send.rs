//! Sending a train: one system call for as many datagrams as the kernel takes.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;

use super::address::RawAddress;
use super::control::SendControl;
use super::train::Staged;
use super::{MAX_BATCH, Socket, Train};

/// What became of the datagrams of a train. `datagrams + full + too_big + failed` is their number.
#[derive(Debug, Default)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: usize,
    /// Bytes of payload in them.
    pub bytes: usize,
    /// Datagrams dropped because the socket's buffer or the interface's queue was full.
    pub full: usize,
    /// Datagrams dropped because they are longer than the path MTU allows.
    pub too_big: usize,
    /// Datagrams dropped for any other reason.
    pub failed: usize,
    /// The first of those other reasons.
    pub error: Option<io::Error>,
}

impl Socket {
    /// Sends the datagrams of `train` in order and leaves it empty.
    ///
    /// Nothing waits and nothing is lost silently: a datagram that cannot be sent is counted, and
    /// those behind it are sent all the same. Only where the reason holds for all of them, a full
    /// buffer or a route that is gone, they are counted under it without asking again for each.
    pub fn send(&self, train: &mut Train) -> Sent {
        let (address, address_len) = RawAddress::new(train.remote());
        let mut controls = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut vectors = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut messages = [const { MaybeUninit::uninit() }; MAX_BATCH];

        // Control messages are written once for each run of equal type of service.
        let mut run: Option<(u8, *mut libc::c_void, usize)> = None;
        for (index, staged) in train.staged().iter().enumerate() {
            let (control, control_len) = match run {
                Some((tos, control, len)) if tos == staged.tos => (control, len),
                _ => {
                    let control: &mut SendControl = controls[index].write(SendControl::EMPTY);
                    let len =
                        control.write(self.local_addr().is_ipv6(), train.source(), staged.tos);
                    run = Some((staged.tos, control.as_mut_ptr(), len));
                    (control.as_mut_ptr(), len)
                }
            };
            let payload = &train.staging()[staged.start as usize..staged.end as usize];
            let vector = vectors[index].write(libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: payload.len(),
            });
            // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            let header = &mut message.msg_hdr;
            if self.connected() != Some(train.remote()) {
                header.msg_name = address.as_ptr().cast_mut();
                header.msg_namelen = address_len;
            }
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            if control_len > 0 {
                header.msg_control = control;
                header.msg_controllen = control_len as _;
            }
            messages[index].write(message);
        }

        let mut sending = Sending::new(train.staged(), self.connected().is_some());
        while let Some(range) = sending.next_range() {
            let messages = &mut messages[range];
            // SAFETY: the loop above initialised the message of every staged datagram, and the
            // range lies within those. Their addresses, vectors, control messages and payloads are
            // locals of this function and the borrowed train, all alive; the kernel only reads them.
            // It writes the length field of each message, which is ours.
            let taken = unsafe {
                libc::sendmmsg(
                    self.as_fd().as_raw_fd(),
                    messages.as_mut_ptr().cast(),
                    messages.len() as libc::c_uint,
                    0,
                )
            };
            match usize::try_from(taken) {
                Ok(taken) => sending.on_taken(taken),
                Err(_) => sending.on_refused(io::Error::last_os_error()),
            }
        }
        if sending.icmp_errors > 0 {
            self.icmp_errors.fetch_add(sending.icmp_errors, Ordering::Relaxed);
        }
        let sent = sending.sent;
        train.clear();
        sent
    }
}

/// How far a train has been sent, and what its datagrams met with.
///
/// The kernel tells of an error only when it concerns the first datagram of a call; otherwise it
/// says how many it took, and the error comes back when asked again from there.
struct Sending<'t> {
    staged: &'t [Staged],
    next: usize,
    /// Datagrams of this length or more were found to be too big.
    too_big_from: usize,
    connected: bool,
    /// Whether the kernel is asked about the datagram at `next` for the second time.
    asked_again: bool,
    icmp_errors: u64,
    sent: Sent,
}

impl<'t> Sending<'t> {
    fn new(staged: &'t [Staged], connected: bool) -> Self {
        Self {
            staged,
            next: 0,
            too_big_from: usize::MAX,
            connected,
            asked_again: false,
            icmp_errors: 0,
            sent: Sent::default(),
        }
    }

    /// The datagrams to hand to the kernel next, if any are left.
    fn next_range(&mut self) -> Option<Range<usize>> {
        let too_big = |staged: &&Staged| staged.len() >= self.too_big_from;
        let rest = &self.staged[self.next..];
        let skip = rest.iter().take_while(too_big).count();
        let take = rest[skip..].iter().take_while(|staged| !too_big(staged)).count();
        self.sent.too_big += skip;
        self.next += skip;
        (take > 0).then_some(self.next..self.next + take)
    }

    /// The kernel took that many datagrams from `next` on.
    fn on_taken(&mut self, taken: usize) {
        let staged = &self.staged[self.next..self.next + taken];
        self.sent.datagrams += taken;
        self.sent.bytes += staged.iter().map(|staged| staged.len()).sum::<usize>();
        self.next += taken;
        // What was refused a moment ago and is taken unchanged was not the reason for the refusal.
        self.icmp_errors += u64::from(std::mem::take(&mut self.asked_again));
    }

    /// The kernel refused the datagram at `next`.
    fn on_refused(&mut self, error: io::Error) {
        let errno = error.raw_os_error().unwrap_or(0);
        if self.connected && is_icmp(errno) && !self.asked_again {
            // A connected socket reports an ICMP error about a datagram sent long ago instead of
            // sending, and forgets it by reporting it.
            self.asked_again = true;
            return;
        }
        self.asked_again = false;
        let rest = self.staged.len() - self.next;
        match errno {
            libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => {
                self.sent.full += rest;
                self.next += rest;
            }
            // Counted by the next call of `next_range`, with all others of that length.
            libc::EMSGSIZE => self.too_big_from = self.staged[self.next].len(),
            _ => {
                let lost = if concerns_the_route(errno) { rest } else { 1 };
                self.sent.failed += lost;
                self.sent.error.get_or_insert(error);
                self.next += lost;
            }
        }
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
    use super::*;

    fn staged(lengths: &[u32]) -> Vec<Staged> {
        let mut end = 0;
        let stage = |len: &u32| {
            end += len;
            Staged { start: end - len, end, tos: 0 }
        };
        lengths.iter().map(stage).collect()
    }

    /// Sends datagrams of these lengths to a kernel that answers each call as `kernel` says: the
    /// number taken or the error. Returns the outcome and the number of calls.
    fn send(
        lengths: &[u32],
        connected: bool,
        mut kernel: impl FnMut(Range<usize>) -> Result<usize, i32>,
    ) -> (Sent, u64, usize) {
        let staged = staged(lengths);
        let mut sending = Sending::new(&staged, connected);
        let mut calls = 0;
        while let Some(range) = sending.next_range() {
            calls += 1;
            assert!(calls <= 2 * lengths.len() + 1, "the number of calls is bounded");
            match kernel(range) {
                Ok(taken) => sending.on_taken(taken),
                Err(errno) => sending.on_refused(io::Error::from_raw_os_error(errno)),
            }
        }
        let sent = sending.sent;
        assert_eq!(sent.datagrams + sent.full + sent.too_big + sent.failed, lengths.len());
        (sent, sending.icmp_errors, calls)
    }

    #[test]
    fn a_willing_kernel_is_asked_once() {
        let (sent, _, calls) = send(&[100, 200, 300], false, |range| Ok(range.len()));
        assert_eq!((sent.datagrams, sent.bytes, calls), (3, 600, 1));
        let (sent, _, calls) = send(&[100, 200, 300], false, |_| Ok(1));
        assert_eq!((sent.datagrams, sent.bytes, calls), (3, 600, 3));
    }

    #[test]
    fn oversized_datagrams_are_left_out_after_one_refusal() {
        let lengths = [100, 1500, 100, 1600, 1500, 1400];
        let (sent, _, calls) = send(&lengths, true, |range| {
            match lengths[range.clone()].iter().position(|len| *len > 1472) {
                Some(0) => Err(libc::EMSGSIZE),
                Some(small) => Ok(small),
                None => Ok(range.len()),
            }
        });
        assert_eq!((sent.datagrams, sent.bytes, sent.too_big), (3, 1600, 3));
        assert_eq!(calls, 5, "one, two refusals of the second, one, one");
    }

    #[test]
    fn an_old_icmp_error_costs_no_datagram() {
        let mut first = true;
        let (sent, icmp_errors, _) = send(&[10, 10], true, |range| {
            if std::mem::take(&mut first) { Err(libc::ECONNREFUSED) } else { Ok(range.len()) }
        });
        assert_eq!((sent.datagrams, sent.failed, icmp_errors), (2, 0, 1));
    }

    #[test]
    fn a_full_buffer_ends_the_train() {
        let mut answers = [Ok(1), Err(libc::EAGAIN)].into_iter();
        let (sent, _, calls) = send(&[10, 10, 10], false, |_| answers.next().unwrap());
        assert_eq!((sent.datagrams, sent.full, calls), (1, 2, 2));
    }

    #[test]
    fn a_refused_datagram_leaves_the_rest_alone() {
        let (sent, _, _) = send(&[10, 10, 10], false, |range| match range.start {
            0 => Ok(1),
            1 => Err(libc::EPERM),
            _ => Ok(range.len()),
        });
        assert_eq!((sent.datagrams, sent.failed), (2, 1));
        assert_eq!(sent.error.unwrap().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_lost_route_ends_the_train() {
        let (sent, icmp_errors, calls) = send(&[10; 64], true, |_| Err(libc::ENETUNREACH));
        assert_eq!((sent.failed, icmp_errors, calls), (64, 0, 2));
    }
}
