//! Extended framing (sections 8 and 10 of `docs/protocol.md`): a header that says what plain framing leaves to
//! inference, inside a session that both hosts have agreed on.
//!
//! - [`identity`]: by what this host is known in its sessions, and what proves that an origin receives;
//! - [`reply`]: what is sent to an origin that may have no path;
//! - [`tx`]: sequences and headers of what is sent;
//! - [`session`]: what the receiving half knows of the peer's session, and which of the peer's paths is which.

pub(crate) mod identity;
pub(crate) mod reply;
pub(crate) mod session;
pub(crate) mod tx;
