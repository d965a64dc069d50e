//! What goes over the links of a transfer.

use crate::link::Carried;
use crate::tcp::{Acknowledgement, Segment};

/// Something inner on its way through the tunnel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    pub(super) flow: usize,
    pub(super) inner: Inner,
    /// Its number in the tunnel.
    pub(super) number: u64,
    pub(super) size: usize,
    pub(super) broken: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Inner {
    Segment(Segment),
    Acknowledgement(Acknowledgement),
}

impl Carried for Datagram {
    fn size(&self) -> usize {
        self.size
    }

    fn invert_bit(&mut self, _bit: usize) {
        self.broken = true;
    }
}
