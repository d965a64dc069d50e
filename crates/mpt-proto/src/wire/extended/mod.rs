//! Extended framing: its header and its control messages (`docs/protocol.md` section 8).
//!
//! [`header`] begins every datagram. An inner packet follows it, or one of the messages, which [`message`]
//! tells apart: [`hello`] and [`close`] begin and end a session; [`challenge`] asks whether an origin
//! receives what is sent to it; [`status`], [`feedback`] and [`beacon`] say how the paths are; [`parity`] brings lost packets
//! back.
//!
//! A message that ends too early is [`Drop::ControlLength`](crate::Drop::ControlLength). Bytes after its end
//! are padding and have no meaning.

pub mod beacon;
pub mod challenge;
pub mod close;
pub mod feedback;
mod fields;
pub mod header;
pub mod hello;
pub mod message;
pub mod parity;
pub mod sealed;
pub mod settings;
pub mod status;

pub use header::{CONTROL_LEN, DATA_LEN, ETHER_TYPE, Flags, Header, Kind, NO_PATH, is_extended};
pub use message::Message;
