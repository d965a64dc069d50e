//! Receiving a batch: many datagrams with one system call.
//!
//! A batch has slots, and the kernel fills one slot after the other. With coalescing a slot takes
//! up to 64 KiB, all from one sender; without, one datagram.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use super::address::{RawAddress, specified};
use super::control::{ReceiveControl, Received};
use super::sending::is_icmp;
use super::slots::Slots;
use super::{Coalesced, Datagram, MAX_BATCH, Socket};

/// The most that the kernel coalesces into one slot, in bytes.
const COALESCED: usize = 1 << 16;

/// Datagrams received together, and the memory for them.
///
/// One batch serves any number of sockets, one after the other. The memory is allocated once and
/// touched only as far as datagrams reach: few slots, warm in the cache, serve a quiet tunnel.
///
/// What is received is overwritten by the next receive, unless it is [kept](Self::keep).
#[derive(Debug)]
pub struct Receive {
    memory: Box<[u8]>,
    slot_size: usize,
    slots: Slots,
    addresses: Box<[RawAddress]>,
    controls: Box<[ReceiveControl]>,
    /// What lies in the slots, in order; slots whose content is unusable are left out.
    filled: Vec<Filled>,
}

/// Bytes of a datagram that stay where they were received.
///
/// They do so until [`Receive::release`]; one that is dropped instead keeps its slot permanently.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is not released stays"]
pub struct Kept {
    slot: u16,
    /// Within the slot, which has 64 KiB at most.
    offset: u16,
    len: u16,
}

/// How large a [`Receive`] batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// Slots that one receive can fill, 1 to [`MAX_BATCH`]. More than 16 gain little.
    pub slots: usize,
    /// Slots beyond those, for others to be filled while something is kept in them; 65,535 in all
    /// at most.
    pub spare: usize,
    /// Longest datagram that fits a slot without coalescing, in bytes. A longer one is dropped and
    /// counted.
    pub slot_size: usize,
    /// Whether slots have room for coalesced datagrams: 64 KiB, whatever `slot_size` says. To be set
    /// if any of the sockets to be received from has coalescing in force ([`Socket::offloads`]).
    pub coalescing: bool,
}

impl Default for ReceiveOptions {
    /// 16 slots for coalesced datagrams and none to spare; if that is switched off, for one of up to
    /// 2 KiB each, enough for paths with an MTU of 1500.
    fn default() -> Self {
        Self { slots: 16, spare: 0, slot_size: 2048, coalescing: true }
    }
}

impl ReceiveOptions {
    /// The memory that such a batch reserves, in bytes. It becomes real as far as it is used.
    pub fn memory(&self) -> usize {
        (self.slots + self.spare) * if self.coalescing { COALESCED } else { self.slot_size }
    }
}

#[derive(Clone, Copy, Debug)]
struct Filled {
    start: usize,
    len: usize,
    stride: usize,
    remote: SocketAddr,
    received: Received,
    waited: Duration,
}

impl Filled {
    /// Where the datagram of this number lies.
    #[inline]
    fn span(&self, number: usize) -> Range<usize> {
        let from = number * self.stride;
        self.start + from..self.start + self.len.min(from + self.stride)
    }
}

impl Receive {
    /// An empty batch. Numbers out of range are brought into range.
    pub fn new(options: &ReceiveOptions) -> Self {
        let slots = options.slots.clamp(1, MAX_BATCH);
        let slot_size = match options.coalescing {
            true => COALESCED,
            false => options.slot_size.clamp(1, COALESCED),
        };
        let all = u16::try_from(slots + options.spare).unwrap_or(u16::MAX);
        Self {
            // Zeroed allocations of this size come straight from the kernel, untouched.
            memory: vec![0; usize::from(all) * slot_size].into_boxed_slice(),
            slot_size,
            slots: Slots::new(all),
            addresses: vec![RawAddress::EMPTY; slots].into_boxed_slice(),
            controls: vec![ReceiveControl::EMPTY; slots].into_boxed_slice(),
            filled: Vec::with_capacity(slots),
        }
    }

    /// What the last [`Socket::receive`] took in, slot by slot, in the order of arrival. What can be
    /// found out once for all datagrams of a sender need not be found out for each.
    pub fn coalesced(&self) -> impl ExactSizeIterator<Item = Coalesced<'_>> {
        (0..self.filled.len()).map(|index| self.piece(index))
    }

    /// How many pieces the last [`Socket::receive`] took in.
    pub fn pieces(&self) -> usize {
        self.filled.len()
    }

    /// One of these pieces, in the order of arrival.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn piece(&self, index: usize) -> Coalesced<'_> {
        let filled = &self.filled[index];
        Coalesced {
            payload: &self.memory[filled.start..filled.start + filled.len],
            stride: filled.stride,
            remote: filled.remote,
            local: filled.received.local,
            tos: filled.received.tos,
            waited: filled.waited,
        }
    }

    /// The payload of one datagram of a piece, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such piece, or if it has no such datagram.
    #[inline]
    pub fn payload(&self, piece: usize, number: usize) -> &[u8] {
        &self.memory[self.filled[piece].span(number)]
    }

    /// The same, to be changed in place: for decryption before the packet is used.
    ///
    /// # Panics
    ///
    /// If there is no such piece, or if it has no such datagram.
    #[inline]
    pub fn payload_mut(&mut self, piece: usize, number: usize) -> &mut [u8] {
        &mut self.memory[self.filled[piece].span(number)]
    }

    /// The datagrams that the last [`Socket::receive`] took in, in the order of their arrival.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.coalesced().flat_map(|coalesced| coalesced.datagrams())
    }

    /// Most slots that one receive can fill.
    pub fn slots(&self) -> usize {
        self.addresses.len()
    }

    /// Keeps `bytes`, a part of what the last receive took in, where they are. `None` if they are
    /// not, or if no more than half of all slots are free: then they are better copied, because a
    /// single small packet keeps a slot of 64 KiB.
    pub fn keep(&self, bytes: &[u8]) -> Option<Kept> {
        if bytes.is_empty() {
            // It could be of either slot between which it is.
            return None;
        }
        let at = (bytes.as_ptr() as usize).checked_sub(self.memory.as_ptr() as usize)?;
        if at + bytes.len() > self.memory.len() || !self.slots.has_room() {
            return None;
        }
        let slot = (at / self.slot_size) as u16;
        let offset = u16::try_from(at % self.slot_size).ok()?;
        let len = u16::try_from(bytes.len()).ok()?;
        self.slots.keep(slot).then_some(Kept { slot, offset, len })
    }

    /// The bytes that were kept.
    ///
    /// # Panics
    ///
    /// May panic, or show others, if they were kept in another batch.
    pub fn kept(&self, kept: &Kept) -> &[u8] {
        let start = usize::from(kept.slot) * self.slot_size + usize::from(kept.offset);
        &self.memory[start..start + usize::from(kept.len)]
    }

    /// Gives up what was kept; its place is received into again.
    pub fn release(&self, kept: Kept) {
        self.slots.release(kept.slot);
    }
}

impl Socket {
    /// Fills `batch` with what waits at this socket and says how many slots that took: 0 when nothing
    /// waited, fewer than [`Receive::slots`] when nothing is left.
    ///
    /// What cannot be used is counted ([`Socket::counters`]) and is missing in the batch, so it may
    /// hold less than that.
    ///
    /// # Errors
    ///
    /// The kernel's error. ICMP errors about datagrams sent earlier are counted, not returned.
    pub fn receive(&self, batch: &mut Receive) -> io::Result<usize> {
        batch.filled.clear();
        // Each error report clears itself, so one retry for each normally suffices. The limit keeps a
        // flood of ICMP messages from holding this thread; the rest waits for the next wake-up.
        for _ in 0..MAX_BATCH {
            match self.receive_once(batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.raw_os_error().is_some_and(is_icmp) => {
                    self.icmp_errors.fetch_add(1, Ordering::Relaxed);
                }
                result => return result,
            }
        }
        Ok(0)
    }

    fn receive_once(&self, batch: &mut Receive) -> io::Result<usize> {
        let most = batch.slots();
        let slots = batch.slots.refill(most);
        let memory = batch.memory.as_mut_ptr();
        let mut vectors = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut messages: [MaybeUninit<libc::mmsghdr>; MAX_BATCH] =
            [const { MaybeUninit::uninit() }; MAX_BATCH];
        let addresses = batch.addresses.iter_mut();
        let controls = batch.controls.iter_mut();
        for (index, ((slot, address), control)) in
            slots.iter().zip(addresses).zip(controls).enumerate()
        {
            // SAFETY: the memory has `slot_size` bytes for each of the slots, of which this is one.
            let place = unsafe { memory.add(usize::from(*slot) * batch.slot_size) };
            let vector = vectors[index]
                .write(libc::iovec { iov_base: place.cast(), iov_len: batch.slot_size });
            // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = address.as_mut_ptr();
            message.msg_hdr.msg_namelen = RawAddress::CAPACITY;
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr();
            message.msg_hdr.msg_controllen = ReceiveControl::CAPACITY as _;
            messages[index].write(message);
        }

        // SAFETY: the loop above initialised one message for each of `slots`. They point to a vector on
        // this stack and, through it, to disjoint slots, addresses and control buffers of the batch,
        // all exclusively borrowed and alive, with their true lengths.
        let count = unsafe {
            libc::recvmmsg(
                self.as_fd().as_raw_fd(),
                messages.as_mut_ptr().cast(),
                slots.len() as libc::c_uint,
                libc::MSG_TRUNC as _,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        // The clock of the kernel's stamps. If it is set meanwhile, some waits are wrong once.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for (index, message) in messages[..count].iter().enumerate() {
            // SAFETY: the first `count` messages are among those initialised above.
            let message = unsafe { message.assume_init_ref() };
            self.take_in(batch, index, message, now);
        }
        Ok(count)
    }

    /// Notes what the kernel put into the slot `index`.
    fn take_in(&self, batch: &mut Receive, index: usize, message: &libc::mmsghdr, now: Duration) {
        let header = &message.msg_hdr;
        let mut received = batch.controls[index].parse(header.msg_controllen as _);
        received.local = received.local.or(specified(self.local_addr().ip()));
        // As asked for by MSG_TRUNC: what there was, even if the slot has no room for it.
        let whole = message.msg_len as usize;
        let stride = received.segment.unwrap_or(whole).max(1);
        // Of coalesced datagrams those in front may have fitted.
        let len = match whole > batch.slot_size {
            true => batch.slot_size / stride * stride,
            false => whole,
        };
        let count = |bytes: usize| bytes.div_ceil(stride) as u64;
        if header.msg_flags & libc::MSG_CTRUNC != 0 {
            self.control_truncated.fetch_add(count(whole).max(1), Ordering::Relaxed);
        }
        if len < whole {
            self.truncated.fetch_add(count(whole) - count(len), Ordering::Relaxed);
            if len == 0 {
                return;
            }
        }
        let Some(remote) = batch.addresses[index].get(header.msg_namelen) else {
            self.unknown_source.fetch_add(count(len).max(1), Ordering::Relaxed);
            return;
        };
        let start = usize::from(batch.slots.filled(index)) * batch.slot_size;
        let waited = received.stamp.map_or(Duration::ZERO, |stamp| now.saturating_sub(stamp));
        batch.filled.push(Filled { start, len, stride, remote, received, waited });
    }
}
