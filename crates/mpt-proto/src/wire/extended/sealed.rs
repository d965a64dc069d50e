//! The lengths of what sealed framing adds: tags, and the messages of the handshake (`docs/protocol.md` section 9).

use super::hello;

/// The bytes that sealing adds to a datagram, behind its payload.
pub const TAG_LEN: usize = 16;

/// The bytes of a message authentication code, and of a cookie.
pub const MAC_LEN: usize = 16;

/// The bytes of the timestamp of an initiation.
pub const TIMESTAMP_LEN: usize = 12;

/// What Noise's first message adds to its payload: an ephemeral key, a static key, and two tags.
pub const FIRST_LEN: usize = 32 + 32 + 2 * TAG_LEN;

/// What Noise's second message adds to its payload: an ephemeral key and a tag.
pub const SECOND_LEN: usize = 32 + TAG_LEN;

/// The bytes of an initiation with one lane: an index, Noise's first message, and two codes.
pub const INITIATION_LEN: usize = 4 + FIRST_LEN + hello::LEN + TIMESTAMP_LEN + 2 * MAC_LEN;

/// The bytes of the secret of an invitation.
pub const SECRET_LEN: usize = 32;

/// The bytes of an initiation with one lane and the secret of an invitation.
pub const INVITED_LEN: usize = INITIATION_LEN + SECRET_LEN;

/// Bytes of the longest initiation: for as many lanes as there can be, with a secret. A host hashes all of an initiation
/// before it knows whether that is for it, so this bounds what a stranger can have it do.
pub const LONGEST_LEN: usize =
    4 + FIRST_LEN + hello::PADDED_LEN + TIMESTAMP_LEN + SECRET_LEN + 2 * MAC_LEN;

/// The bytes of a response with one lane: Noise's second message and a code.
pub const RESPONSE_LEN: usize = SECOND_LEN + hello::LEN + MAC_LEN;

/// The bytes of a cookie reply: a nonce, and the cookie with its tag.
pub const COOKIE_REPLY_LEN: usize = 12 + MAC_LEN + TAG_LEN;
