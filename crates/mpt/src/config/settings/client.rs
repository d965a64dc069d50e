//! The settings of a client that a template knows by its key: a file of its own.

use std::net::IpAddr;
use std::path::PathBuf;

use mpt_proto::{InvitationHash, PublicKey};

use crate::config::address;
use crate::config::moment::{self, Moment};
use crate::config::prefix::Prefix;
use crate::config::schema::settings;
use crate::config::value;

settings! {
    /// A client: who it is, and what is behind it.
    Client "the file of a client", read as ClientRead, with none: () {
        /// Its public key, as `mpt pubkey` prints it; missing as long as it was only invited.
        public_key: Option<PublicKey> = optional(
            value::public_key,
            "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\""
        ), Apart;
        /// Its tunnel addresses, at most one of each IP version.
        addresses: Vec<IpAddr> = required(value::list(address::address), "[\"10.9.0.2\"]"), Apart;
        /// Further prefixes behind it; routes to them are installed.
        networks: Vec<Prefix> = default(value::list(address::network), Vec::new()), Apart;
        /// The file of a key that only both hosts know.
        preshared_key_file: Option<PathBuf> = optional(value::file, "\"/etc/mpt/preshared.key\""),
            Apart;
        /// While it is invited: the BLAKE2s-256 hash of the secret, in Base64.
        invitation: Option<InvitationHash> = optional(
            value::invitation,
            "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\""
        ), Apart;
        /// When the invitation expires.
        invitation_expires: Option<Moment> = optional(moment::moment, "2030-01-01T00:00:00Z"), Apart;
    }
}
