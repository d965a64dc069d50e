//! The original MPT, without I/O: its command protocol, and in [`import`] its files as a configuration of `mpt`.
//!
//! The commands are two: a path is down or up again, and a connection is to be made.
//!
//! The original has a UDP port for commands besides that for data. An exchange has four rounds. The
//! initiator says what is to come, the responder lets it go on, the initiator says it, the responder has done
//! it. In between, a cookie and a hash may show who speaks:
//!
//! ```text
//! initiator                                        responder
//!   1  path status change, the path is down  -->
//!                                            <--    2  go on; cookie
//!   3  cookie; it is this one                -->       (does it)
//!                                            <--    4  done
//! ```
//!
//! The initiator repeats a round that is not answered, every half second and six times in all. The responder
//! answers whatever is repeated, and does it once. Either end may begin at any time, so both may at
//! once: what one end begins and what the other does are two exchanges that know nothing of each other.
//!
//! [`Commands`] is all that is said on one command port, by the same contract as
//! [`Endpoint`](mpt_proto::Endpoint): messages, the time and chance come in by method calls, what is to be sent
//! and what happened is polled. It finds the connection of each message by its tunnel addresses and hands
//! it to that connection's half: a `Responder` answers rounds 1 and 3, an
//! `Initiator` begins exchanges and takes rounds 2 and 4. Neither knows more of paths than
//! their addresses: what a command means for a path, its owner decides.
//!
//! ```
//! use mpt_original::{Auth, Commands, ConnectionCommands, Destination, Event, PathReport};
//! use mpt_proto::{ConnectionId, Instant};
//!
//! let (a, b) = ("10.0.0.2".parse()?, "10.0.0.3".parse()?);
//! let settings = |local, remote| ConnectionCommands { local, remote, auth: Auth::Random, sources: vec![] };
//! let (mut here, mut there) = (Commands::default(), Commands::default());
//! let id = ConnectionId(0);
//! here.set_connection(id, settings(a, b));
//! there.set_connection(id, settings(b, a));
//!
//! // A path goes down here, and both talk until all is said.
//! let now = Instant::ZERO;
//! let (initiator, responder) = ("192.0.2.1".parse()?, "192.0.2.2".parse()?);
//! here.tell(now, id, PathReport { initiator, responder, down: true });
//! while let Some(told) = here.poll_transmit(now) {
//!     assert!(matches!(told.to, Destination::Peer { .. }), "the caller knows where that is");
//!     there.handle_datagram(now, "192.0.2.1:65050".parse()?, &told.message, || 7);
//!     while let Some(answer) = there.poll_transmit(now) {
//!         here.handle_datagram(now, "192.0.2.2:65050".parse()?, &answer.message, || 8);
//!     }
//! }
//! let heard = Event::Path { connection: id, local: responder, remote: initiator, down: true };
//! assert_eq!(there.poll_event(), Some(heard));
//! assert!(matches!(here.poll_event(), Some(Event::Told { .. })));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```
//!
//! What the original does wrong is not repeated: the kind of authentication is the connection's and not the
//! message's, every length is checked, a cookie is good for one exchange and some seconds, the
//! key that is built in is no key, and a description of a connection has bounds.
//! `docs/protocol.md` is the normative text.

mod auth;
mod commands;
mod creator;
mod description;
mod event;
mod exchanges;
pub mod import;
mod initiator;
mod message;
mod refusal;
mod responder;
mod step;

pub use auth::{Auth, AuthKind, Key, KeyError};
pub use commands::{Commands, ConnectionCommands, Destination, Transmit};
pub use creator::CreateCommands;
pub use description::{
    DescribedNetwork, DescribedPath, Description, DescriptionError, MAX_NAME, MAX_NETWORKS,
    MAX_PATHS,
};
pub use event::{Create, CreateId, Event, Outcome};
pub use message::{MAX_DESCRIPTION, MAX_MESSAGE, Message};
pub use refusal::{Refusal, Refusals};
pub use step::{Code, Command, PathReport, Round, Step};
