//! The fields of a control message, one after the other, in network byte order.

use std::net::IpAddr;

use crate::stats::Drop;
use crate::wire::keepalive::{address, mapped};

/// What is left of a message to be read. Whatever does not fit into it is [`Drop::ControlLength`].
#[derive(Clone, Debug)]
pub(super) struct Reader<'m>(&'m [u8]);

impl<'m> Reader<'m> {
    pub(super) fn new(message: &'m [u8]) -> Self {
        Self(message)
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'m [u8], Drop> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Drop::ControlLength)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn field<const N: usize>(&mut self) -> Result<[u8; N], Drop> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Drop::ControlLength)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Drop> {
        self.field().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Drop> {
        self.field().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Drop> {
        self.field().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Drop> {
        self.field().map(u64::from_be_bytes)
    }

    /// A tunnel address in the form that it has in a keepalive.
    pub(super) fn address(&mut self) -> Result<IpAddr, Drop> {
        self.field().map(address)
    }
}

/// A message that is being written.
#[derive(Debug)]
pub(super) struct Writer<'m> {
    message: &'m mut [u8],
    /// How many bytes are written.
    len: usize,
}

impl<'m> Writer<'m> {
    /// Begins a message of zeros, which is what reserved bytes and padding are.
    pub(super) fn new(message: &'m mut [u8]) -> Self {
        message.fill(0);
        Self { message, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many bytes there is still room for.
    pub(super) fn room(&self) -> usize {
        self.message.len() - self.len
    }

    /// The byte at `at`, to be written again.
    pub(super) fn byte_mut(&mut self, at: usize) -> &mut u8 {
        &mut self.message[at]
    }

    pub(super) fn reserved(&mut self, len: usize) -> &mut Self {
        self.len += len;
        self
    }

    fn field<const N: usize>(&mut self, field: [u8; N]) -> &mut Self {
        self.message[self.len..self.len + N].copy_from_slice(&field);
        self.len += N;
        self
    }

    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.field([value])
    }

    pub(super) fn u16(&mut self, value: u16) -> &mut Self {
        self.field(value.to_be_bytes())
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.field(value.to_be_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.field(value.to_be_bytes())
    }

    pub(super) fn address(&mut self, address: IpAddr) -> &mut Self {
        self.field(mapped(address).octets())
    }
}
