//! The MPT protocol without I/O: framing, paths, scheduling, reordering.
//!
//! An [`Endpoint`] is one end of a tunnel. It opens no socket, reads no clock and starts no thread:
//! the caller owns those, brings packets and the time, and takes away what is to be sent. So the same
//! code runs in the daemon, in the simulator under virtual time, and in a debugger at leisure.
//!
//! The order of calls, at one instant `now`:
//!
//! 1. bring what arrived: [`Endpoint::handle_inner`] for each packet of the tunnel interface,
//!    [`Endpoint::handle_datagram`] for each datagram, [`Endpoint::handle_timeout`] when the last
//!    deadline has passed;
//! 2. take what came of it: [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`] until `None`;
//! 3. wait until [`Endpoint::poll_timeout`], or for the next arrival.
//!
//! An endpoint is a [`TransmitSide`] and a [`ReceiveSide`], which share nothing. [`Endpoint::split`]
//! moves them apart for two threads; then the owner of the receive side asks it for
//! [`Message`]s, as it does for events, and has them given to the transmit side.
//!
//! Everything about an endpoint but its own addresses can change while it runs: connections and paths
//! come and go, and so do their settings. A [`Change`] says what, and is handed to both sides, the
//! transmit side first. See [`Endpoint::change`].
//!
//! It does not know interfaces, routes or configuration files, and packets pass through it
//! borrowed: the caller's [`Sink`] stores packets that must be held. It copies only packets that
//! may have to be retransmitted: [`TransmitSide::emit`].
//!
//! To read it, follow the packet. Out: `tx::side`, `tx::connection`, `scheduler`, [`wire::gre`],
//! `tx::retransmit`. In: `rx::side`, `demux::address`, [`wire::gre`], `rx::connection`,
//! `path::liveness`, `rx::reorder`. Between the two: `messages`. Measurements for people: `measure`.
//! Runtime reconfiguration: `change`, then `tx::reconfigure` and `rx::reconfigure`.

mod change;
mod class;
mod config;
mod connection;
mod deadlines;
mod demux;
mod endpoint;
mod event;
mod framing;
mod hash;
mod hold_times;
mod id;
mod keys;
mod measure;
mod messages;
mod mismatch;
mod path;
mod peer_kind;
mod pins;
mod ports;
mod prefix;
mod queue;
mod rest;
mod rx;
mod scheduler;
mod secret;
mod selector;
mod sequence;
mod sink;
mod slots;
mod stats;
mod time;
mod timer;
mod token_bucket;
mod tx;
pub mod wire;

pub use change::{Change, Surcharge};
pub use class::{BuiltIn, ClassConfig, FlowStats, RepairMode, Why};
pub use config::{
    ConfigError, ConnectionConfig, EVIDENCE_WINDOW, EndpointConfig, FramingConfig, Late,
    MAX_WEIGHT, MAX_WINDOW, PathConfig, ReorderConfig, SchedulerConfig,
};
pub use connection::{Connection, PathView};
pub use demux::accept::{AcceptConfig, ConnectRequest};
pub use demux::address::Origin;
pub use demux::candidate::PathRequest;
pub use endpoint::Endpoint;
pub use event::Event;
pub use framing::datagram::Opened;
pub use framing::extended::identity::Identity;
pub use framing::extended::reply::OriginReply;
pub use framing::extended::session::{Offer, Peer, SessionUpdate};
pub use framing::sealed::cipher::CipherTrial;
pub use framing::sealed::tx::Sealing;
pub use hold_times::HoldTimes;
pub use id::{AcceptId, ClientId, ConnectionId, MAX_PATHS, PathId, SocketId};
pub use keys::ciphers::{Cipher, Ciphers};
pub use keys::invitation::{InvitationHash, InvitationSecret};
pub use keys::{HostKeys, KEY_LEN, KeyError, PeerKeys, PresharedKey, PrivateKey, PublicKey};
pub use measure::Reordering;
pub use messages::{Feedback, KeepaliveFeedback, Message, PathUpdate, Reply};
pub use mismatch::{FramingFound, Misfit, Mismatch, MismatchKind};
pub use path::estimator::{Heard, Quality};
pub use path::feedback::Header as FeedbackHeader;
pub use path::metrics::PathMetrics;
pub use path::rate::{Finding, Found, RateStage};
pub use path::rtt::RoundTrip;
pub use path::{DownCause, PathState, PathStatus};
pub use peer_kind::PeerKind;
pub use pins::Pins;
pub use ports::{MAX_PORT_RANGES, PortRanges, PortsError};
pub use prefix::Prefix;
pub use rx::clients::{ClientConfig, ClientRequest, KnownBy};
pub use rx::connection::ReceiveHalf;
pub use rx::handshakes::SealedStatus;
pub use rx::measured::ReceiveQuality;
pub use rx::side::{Arrivals, ReceiveSide};
pub use secret::Secret;
pub use selector::Selector;
pub use sequence::Seq;
pub use sink::{Held, Sink};
pub use stats::{ConnectionStats, Drop, Drops, ParityStats, PathStats, ReorderStats, Traffic};
pub use time::Instant;
pub use timer::{Deadline, Timer};
pub use token_bucket::TokenBucket;
pub use tx::beyond::Beyond;
pub use tx::connection::TransmitHalf;
pub use tx::feedback::TransmitQuality;
pub use tx::repair::{ClassStats, CopyStats, RepairStats, StoreStats};
pub use tx::run::MAX_RUN;
pub use tx::side::TransmitSide;
pub use tx::standing::{PathStanding, QueueStanding};
pub use tx::transmit::{Taken, Transmit, TransmitKind, Waiting};
pub use wire::extended::settings::{Picks, Settings as PeerSettings};
