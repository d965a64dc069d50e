//! What is sent back to an origin, whether it has a path or not.

use std::net::IpAddr;

use super::identity::At;
use crate::id::{ConnectionId, PathId};
use crate::wire::extended::Kind;
use crate::wire::extended::challenge::{ANSWER_LEN, Answer, Challenge};
use crate::wire::extended::close::{Close, LEN as CLOSE_LEN, Reason};
use crate::wire::extended::hello::{Hello, LEN as HELLO_LEN};
use crate::wire::extended::sealed::{COOKIE_REPLY_LEN, RESPONSE_LEN};

/// A message to the origin of a datagram. It needs nothing of a connection but an index, so it can be sent
/// before there is a session or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginReply {
    pub(crate) at: At,
    /// The own address that its datagram was sent to, if the host knows it: the reply comes from there.
    pub(crate) from: Option<IpAddr>,
    /// The path that it is sent on, if the origin has one.
    pub(crate) path: Option<(ConnectionId, PathId)>,
    /// The index under which it is received; 0 if none is known.
    pub(crate) key: u32,
    /// The connection that seals it, with the index of its present epoch.
    pub(crate) sealed_by: Option<ConnectionId>,
    pub(crate) body: ReplyBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyBody {
    HelloAnswer(Hello),
    Challenge(u64),
    Answer { number: u64, size: u16 },
    UnknownIndex(u32),
    HandshakeResponse([u8; RESPONSE_LEN]),
    Cookie([u8; COOKIE_REPLY_LEN]),
}

impl OriginReply {
    pub(crate) fn kind(&self) -> Kind {
        match self.body {
            ReplyBody::HelloAnswer(_) => Kind::HelloAnswer,
            ReplyBody::Challenge(_) => Kind::PathChallenge,
            ReplyBody::Answer { .. } => Kind::PathAnswer,
            ReplyBody::UnknownIndex(_) => Kind::Close,
            ReplyBody::HandshakeResponse(_) => Kind::HandshakeResponse,
            ReplyBody::Cookie(_) => Kind::CookieReply,
        }
    }

    /// Writes the message and returns its length.
    pub(crate) fn emit(&self, message: &mut [u8]) -> usize {
        match self.body {
            ReplyBody::HelloAnswer(hello) => {
                hello.emit(&mut message[..HELLO_LEN]);
                HELLO_LEN
            }
            ReplyBody::Challenge(number) => {
                // As long as its answer, which so may be sent to an origin without a path.
                Challenge { number }.emit(&mut message[..ANSWER_LEN]);
                ANSWER_LEN
            }
            ReplyBody::Answer { number, size } => {
                Answer { number, size }.emit(&mut message[..ANSWER_LEN]);
                ANSWER_LEN
            }
            ReplyBody::UnknownIndex(index) => {
                let close = Close { reason: Reason::UnknownIndex, index };
                close.emit(&mut message[..CLOSE_LEN]);
                CLOSE_LEN
            }
            ReplyBody::HandshakeResponse(response) => {
                message[..response.len()].copy_from_slice(&response);
                response.len()
            }
            ReplyBody::Cookie(reply) => {
                message[..reply.len()].copy_from_slice(&reply);
                reply.len()
            }
        }
    }
}
