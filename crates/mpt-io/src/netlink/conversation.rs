//! One request, one answer: what every kind of netlink has in common.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

use super::Error;
use super::error;

/// Longest answer, in bytes. An interface with all its statistics takes about 2 KiB.
pub(super) const ANSWER: usize = 64 * 1024;

/// How often a listing is asked for again because things changed while it was made. A host where
/// that happens each time changes faster than it can be described.
const ATTEMPTS: usize = 16;

/// A socket on which requests are made, one after the other.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) socket: Socket,
    sequence: u32,
    answer: Vec<u8>,
    /// Messages read so far that answer no request.
    pub(super) notifications: u64,
}

impl Conversation {
    /// Opens a conversation with the part of the kernel that `protocol` names, about the calling
    /// thread's network namespace.
    pub(super) fn open(protocol: isize) -> Result<Self, Error> {
        let open = || {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // Errors carry a sentence of explanation instead of a copy of the request. Kernels
            // before 4.12 have neither; then the number must do.
            let _ = socket.set_ext_ack(true).and_then(|()| socket.set_cap_ack(true));
            Ok(socket)
        };
        match open() {
            Ok(socket) => {
                Ok(Self { socket, sequence: 0, answer: vec![0; ANSWER], notifications: 0 })
            }
            Err(source) => Err(Error::new("open a netlink socket", source, None)),
        }
    }

    /// Makes one request and returns the messages that answer it, before its acknowledgement.
    ///
    /// `action` completes the sentence "cannot ...".
    pub(super) fn request<M>(
        &mut self,
        message: M,
        flags: u16,
        action: &str,
    ) -> Result<Vec<M>, Error>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        Ok(self.exchange(message, NLM_F_ACK | flags, action)?.messages)
    }

    /// Asks for everything of a kind, and returns it as it was at one moment.
    ///
    /// `action` completes the sentence "cannot ...".
    pub(super) fn list<M>(&mut self, message: &M, action: &str) -> Result<Vec<M>, Error>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Clone,
    {
        for _ in 0..ATTEMPTS {
            let answer = self.exchange(message.clone(), NLM_F_DUMP, action)?;
            if !answer.interrupted {
                return Ok(answer.messages);
            }
        }
        let source = io::Error::new(io::ErrorKind::Interrupted, "it changes all the time");
        Err(Error::new(action, source, None))
    }

    /// Makes a request and reads up to the end of the answer.
    fn exchange<M>(&mut self, message: M, flags: u16, action: &str) -> Result<Answer<M>, Error>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|source| Error::new(action, source, None))?;

        let mut answer = Answer { messages: Vec::new(), interrupted: false };
        loop {
            let len = self
                .socket
                .recv(&mut &mut self.answer[..], 0)
                .map_err(|source| Error::new(action, source, None))?;
            let mut rest = &self.answer[..len];
            while !rest.is_empty() {
                let message = NetlinkMessage::<M>::deserialize(rest)
                    .map_err(|error| Error::unreadable(action, &error))?;
                let (header, payload) = message.into_parts();
                let len = (header.length as usize).next_multiple_of(4).max(1);
                rest = rest.get(len..).unwrap_or_default();
                if header.sequence_number != self.sequence {
                    self.notifications += 1;
                    continue;
                }
                answer.interrupted |= header.flags & NLM_F_DUMP_INTR != 0;
                if let NetlinkPayload::InnerMessage(message) = payload {
                    answer.messages.push(message);
                } else if let NetlinkPayload::Done(done) = payload {
                    if done.code == 0 {
                        return Ok(answer);
                    }
                    let source = io::Error::from_raw_os_error(done.code.saturating_abs());
                    return Err(Error::new(action, source, None));
                } else if let NetlinkPayload::Error(verdict) = payload {
                    if verdict.code.is_none() {
                        return Ok(answer);
                    }
                    let explanation = error::explanation(&verdict.header);
                    return Err(Error::new(action, verdict.to_io(), explanation));
                }
            }
        }
    }

    /// Forgets what has arrived and was not read.
    pub(super) fn discard_unread(&mut self) {
        while self.socket.recv(&mut &mut self.answer[..], libc::MSG_DONTWAIT).is_ok() {}
    }
}

/// What the kernel answered.
struct Answer<M> {
    messages: Vec<M>,
    /// Whether a listing was overtaken by a change, so that things may be missing or there twice.
    interrupted: bool,
}
