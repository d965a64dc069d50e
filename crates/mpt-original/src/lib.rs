//! The original MPT, without I/O: its command protocol, and in [`import`] its files as a configuration of `mpt`.
//!
//! The commands are two: a path is down or up again, and a connection is to be made.
//!
//! The original has a UDP port for commands besides that for data. An exchange has four rounds: the
//! initiator announces a command, the responder agrees, the initiator sends the command, the responder
//! acknowledges it. A cookie and a hash may authenticate the rounds:
//!
//! ```text
//! initiator                                        responder
//!   1  path status change, a path is down    -->
//!                                            <--    2  proceed; cookie
//!   3  cookie; the path                      -->       (executes it)
//!                                            <--    4  done
//! ```
//!
//! The initiator repeats a round that is not answered, every half second and six times in all. The responder
//! answers each repetition, and executes the command once. Either end may begin at any time, so both may at
//! once: these are two independent exchanges.
//!
//! [`Commands`] is one command port, by the same contract as
//! [`Endpoint`](mpt_proto::Endpoint): messages, the time and chance come in by method calls, messages to send and
//! events are polled. It finds the connection of each message by its tunnel addresses and passes
//! it to that connection's half: a `Responder` answers rounds 1 and 3, an
//! `Initiator` begins exchanges and handles rounds 2 and 4. Both know paths by their addresses
//! alone: what a command means for a path, the owner decides.
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
//! // A path goes down here, and the hosts exchange messages until the exchange ends.
//! let now = Instant::ZERO;
//! let (initiator, responder) = ("192.0.2.1".parse()?, "192.0.2.2".parse()?);
//! here.tell(now, id, PathReport { initiator, responder, down: true });
//! while let Some(told) = here.poll_transmit(now) {
//!     assert!(matches!(told.to, Destination::Peer { .. }), "the caller knows the address");
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
//! Faults of the original are not repeated: the kind of authentication is that of the connection and not that of
//! the message, every length is checked, a cookie is valid for one exchange and some seconds, the
//! key that is built in is refused, and a description of a connection has bounds.
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
