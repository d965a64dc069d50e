//! Receiving a batch: many datagrams with one system call.
//!
//! A batch has slots, and the kernel fills one slot after the other. With coalescing a slot takes
//! up to 64 KiB, all from one sender; without, one datagram.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;

use super::address::{RawAddress, specified};
use super::control::{ReceiveControl, Received};
use super::sending::is_icmp;
use super::{Coalesced, Datagram, MAX_BATCH, Socket};

/// The most that the kernel coalesces into one slot, in bytes.
const COALESCED: usize = 1 << 16;

/// Datagrams received together, and the memory for them.
///
/// One batch serves any number of sockets, one after the other. The memory is allocated once and
/// touched only as far as datagrams reach; the first slots are filled first, so that few slots, warm in
/// the cache, serve a quiet tunnel.
#[derive(Debug)]
pub struct Receive {
    memory: Box<[u8]>,
    slot_size: usize,
    addresses: Box<[RawAddress]>,
    controls: Box<[ReceiveControl]>,
    /// What lies in the slots, in order; slots whose content is unusable are left out.
    filled: Vec<Filled>,
}

/// How large a [`Receive`] batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// Slots of the batch, 1 to [`MAX_BATCH`]. More than 16 gain little.
    pub slots: usize,
    /// Longest datagram that fits a slot without coalescing, in bytes. A longer one is dropped and
    /// counted.
    pub slot_size: usize,
    /// Whether slots have room for coalesced datagrams: 64 KiB, whatever `slot_size` says. To be set
    /// if any of the sockets to be received from has coalescing in force ([`Socket::offloads`]).
    pub coalescing: bool,
}

impl Default for ReceiveOptions {
    /// 16 slots for coalesced datagrams; if that is switched off, for one of up to 2 KiB each, enough
    /// for paths with an MTU of 1500.
    fn default() -> Self {
        Self { slots: 16, slot_size: 2048, coalescing: true }
    }
}

#[derive(Clone, Copy, Debug)]
struct Filled {
    start: usize,
    len: usize,
    stride: usize,
    remote: SocketAddr,
    received: Received,
}

impl Receive {
    /// An empty batch. Numbers out of range are brought into range.
    pub fn new(options: &ReceiveOptions) -> Self {
        let slots = options.slots.clamp(1, MAX_BATCH);
        let slot_size = match options.coalescing {
            true => COALESCED,
            false => options.slot_size.clamp(1, COALESCED),
        };
        Self {
            memory: vec![0; slots * slot_size].into_boxed_slice(),
            slot_size,
            addresses: vec![RawAddress::EMPTY; slots].into_boxed_slice(),
            controls: vec![ReceiveControl::EMPTY; slots].into_boxed_slice(),
            filled: Vec::with_capacity(slots),
        }
    }

    /// What the last [`Socket::receive`] took in, slot by slot, in the order of arrival. What can be
    /// found out once for all datagrams of a sender need not be found out for each.
    pub fn coalesced(&self) -> impl Iterator<Item = Coalesced<'_>> {
        self.filled.iter().map(|filled| Coalesced {
            payload: &self.memory[filled.start..filled.start + filled.len],
            stride: filled.stride,
            remote: filled.remote,
            local: filled.received.local,
            tos: filled.received.tos,
        })
    }

    /// The datagrams that the last [`Socket::receive`] took in, in the order of their arrival.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.coalesced().flat_map(|coalesced| coalesced.datagrams())
    }

    /// Most slots that one receive can fill.
    pub fn slots(&self) -> usize {
        self.addresses.len()
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
        let slots = batch.slots();
        let mut vectors = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut messages: [MaybeUninit<libc::mmsghdr>; MAX_BATCH] =
            [const { MaybeUninit::uninit() }; MAX_BATCH];
        let places = batch.memory.chunks_exact_mut(batch.slot_size);
        let addresses = batch.addresses.iter_mut();
        let controls = batch.controls.iter_mut();
        for (index, ((place, address), control)) in places.zip(addresses).zip(controls).enumerate()
        {
            let vector = vectors[index]
                .write(libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() });
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

        // SAFETY: the loop above initialised the messages of all `slots` slots. They point to a
        // vector on this stack and, through it, to disjoint slots, addresses and control buffers of
        // the batch, all exclusively borrowed and alive, with their true lengths.
        let count = unsafe {
            libc::recvmmsg(
                self.as_fd().as_raw_fd(),
                messages.as_mut_ptr().cast(),
                slots as libc::c_uint,
                libc::MSG_TRUNC,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (index, message) in messages[..count].iter().enumerate() {
            // SAFETY: the first `count` messages are among those initialised above.
            let message = unsafe { message.assume_init_ref() };
            self.take_in(batch, index, message);
        }
        Ok(count)
    }

    /// Notes what the kernel put into the slot `index`.
    fn take_in(&self, batch: &mut Receive, index: usize, message: &libc::mmsghdr) {
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
        let start = index * batch.slot_size;
        batch.filled.push(Filled { start, len, stride, remote, received });
    }
}
