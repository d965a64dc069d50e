//! Control messages, before their bytes are written.

use crate::framing::Stamp;
use crate::id::PathId;
use crate::wire::extended::beacon::{self, Beacon};
use crate::wire::extended::challenge::{self, Challenge};
use crate::wire::extended::feedback::{self, Block};
use crate::wire::extended::hello::{self, Hello};
use crate::wire::extended::sealed::INVITED_LEN;
use crate::wire::extended::status::Status;
use crate::wire::keepalive::{self, Keepalive};

/// A control message to be sent on a path.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) path: PathId,
    pub(crate) stamp: Stamp,
    pub(crate) message: ControlMessage,
    /// The length of the datagram, padding included; `None` if there is none.
    pub(crate) padded: Option<usize>,
}

/// What a control message says.
#[derive(Clone, Debug)]
pub(crate) enum ControlMessage {
    Keepalive(Keepalive),
    Status(Status),
    Hello(Hello),
    Confirm(Hello),
    Challenge(Challenge),
    Beacon(Beacon),
    Feedback { number: u16, before: Option<u8>, clock: u32, reports: Vec<Block> },
    Initiation(Box<[u8]>),
}

/// The longest control message, in bytes; padding is not part of it.
pub(crate) const MAX_CONTROL: usize = feedback::MAX_LEN;

const _: () = assert!(MAX_CONTROL >= hello::PADDED_LEN && MAX_CONTROL >= INVITED_LEN);

impl ControlMessage {
    /// Writes the message and returns its length. Blocks of feedback for which there is no room stay in it.
    pub(crate) fn emit(&mut self, message: &mut [u8; MAX_CONTROL]) -> usize {
        match self {
            Self::Keepalive(keepalive) => {
                let mut bytes = [0; keepalive::LEN];
                let bytes = keepalive.emit(&mut bytes);
                message[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
            Self::Status(status) => {
                let len = status.wire_len();
                status.emit(&mut message[..len]);
                len
            }
            Self::Hello(hello) => {
                hello.emit(&mut message[..hello::PADDED_LEN]);
                hello::PADDED_LEN
            }
            Self::Confirm(hello) => {
                hello.emit(&mut message[..hello::LEN]);
                hello::LEN
            }
            Self::Beacon(beacon) => {
                let len = beacon::len(1);
                beacon::emit(&[*beacon], &mut message[..len]);
                len
            }
            Self::Feedback { number, before, clock, reports } => {
                let mut writer = feedback::Writer::new(message, *number, *before, *clock);
                let written = reports.iter().take_while(|block| writer.push(block)).count();
                reports.drain(..written);
                writer.finish()
            }
            Self::Challenge(challenge) => {
                challenge.emit(&mut message[..challenge::LEN]);
                challenge::LEN
            }
            Self::Initiation(initiation) => {
                message[..initiation.len()].copy_from_slice(initiation);
                initiation.len()
            }
        }
    }
}
