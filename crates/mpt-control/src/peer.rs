//! The clients that a server knows by their keys.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A client of a template that has a folder of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name: that of its file.
    pub name: String,
    /// The tunnel.
    pub tunnel: String,
    /// The template.
    pub template: String,
    /// Its public key in Base64, unless it was only invited.
    #[serde(default)]
    pub public_key: Option<String>,
    /// Its tunnel addresses.
    pub addresses: Vec<IpAddr>,
    /// The networks behind it.
    #[serde(default)]
    pub networks: Vec<String>,
    /// When its invitation expires, in UTC: `2030-01-01T00:00:00Z`; none if it has none, or has used it.
    #[serde(default)]
    pub invitation_expires: Option<String>,
    /// The name of its connection, if it has one.
    #[serde(default)]
    pub connection: Option<String>,
    /// Seconds since something has come by that, if anything has.
    #[serde(default)]
    pub heard_seconds: Option<f64>,
}
