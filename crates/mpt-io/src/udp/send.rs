//! Sending a send batch: one system call for as many super-datagrams as the kernel takes.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use super::address::RawAddress;
use super::control::SendControl;
use super::run::Run;
use super::sending::Sending;
use super::{MAX_BATCH, SendBatch, Sent, Socket};

impl Socket {
    /// Sends the datagrams of `send batch` in order and leaves it empty.
    ///
    /// Neighbours of one length and type of service leave as one super-datagram, where segmentation is
    /// in force ([`Socket::offloads`]); a kernel that turns out not to segment is asked no more.
    ///
    /// Nothing waits and nothing is lost silently: a datagram that cannot be sent is counted, and
    /// those behind it are sent all the same. Only where the reason holds for all of them, a full
    /// buffer or a route that is gone, they are counted under it without asking again for each.
    pub fn send(&self, send_batch: &mut SendBatch) -> Sent {
        let limit = self.offloads().segmentation.then_some(send_batch.limit());
        let mut sending = Sending::new(send_batch.staged(), limit, self.meets_icmp());
        loop {
            let runs = sending.next_runs();
            if runs.is_empty() {
                break;
            }
            match self.hand_over(send_batch, runs) {
                Ok(taken) => sending.on_taken(taken),
                Err(error) => sending.on_refused(error),
            }
        }
        self.note_sent(sending.stepped_down(), sending.icmp_errors());
        let sent = sending.into_sent();
        send_batch.clear();
        sent
    }

    /// Asks the kernel once to take `runs`, at most [`MAX_BATCH`], and says how many it took.
    fn hand_over(&self, send_batch: &SendBatch, runs: &[Run]) -> io::Result<usize> {
        let (address, address_len) = RawAddress::new(send_batch.remote());
        let mut controls = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut vectors = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut messages = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let (ipv6, staged) = (self.local_addr().is_ipv6(), send_batch.staged());

        // Neighbours with the same control messages share them.
        let mut shared_by = None;
        let mut control: *mut libc::c_void = std::ptr::null_mut();
        let mut control_len = 0;
        for (index, run) in runs.iter().enumerate() {
            // A segment is no longer than a datagram can be, which fits 16 bits.
            let segment = (run.count() > 1).then_some(run.segment(staged) as u16);
            let content = (run.tos(staged), segment);
            if shared_by != Some(content) {
                let place: &mut SendControl = controls[index].write(SendControl::EMPTY);
                control_len = place.write(ipv6, send_batch.source(), content.0, segment);
                control = place.as_mut_ptr();
                shared_by = Some(content);
            }
            let payload = &send_batch.staging()[run.bytes(staged)];
            let vector = vectors[index].write(libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: payload.len(),
            });
            // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            let header = &mut message.msg_hdr;
            if self.connected() != Some(send_batch.remote()) {
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

        // SAFETY: the loop above initialised one message for each run, and their number is the one
        // given. Their addresses, vectors, control messages and payloads are locals of this function
        // and the borrowed send batch, all alive; the kernel only reads them. It writes the length field
        // of each message, which is ours.
        let taken = unsafe {
            libc::sendmmsg(
                self.as_fd().as_raw_fd(),
                messages.as_mut_ptr().cast(),
                runs.len() as libc::c_uint,
                0,
            )
        };
        usize::try_from(taken).map_err(|_| io::Error::last_os_error())
    }
}
