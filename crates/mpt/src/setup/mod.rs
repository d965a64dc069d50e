//! Two commands to a bonded uplink: what `mpt init`, `mpt invite`, `mpt join` and `mpt leave` have in common.
//!
//! [`Folder`] is where all files of a host are. [`Record`] says what a command did outside of it, so that
//! `mpt leave` can undo it, whatever became of it since. An [`Invitation`] is one line. [`Subnets`] are the tunnel's
//! addresses. [`service`] makes systemd run the daemon. [`host`] is what holds as long as the daemon runs, and is
//! undone when it ends: the resolver of a client, and the translation of addresses of a server.
//!
//! [`peers`] are the files of a server's clients. These commands run as root, before or beside the daemon. The daemon itself does none of this: it starts no
//! programs and may write almost nothing.

pub(crate) mod folder;
pub(crate) mod host;
mod invitation;
mod launch;
mod lifetime;
pub(crate) mod peers;
mod program;
mod record;
pub(crate) mod resolver;
pub(crate) mod service;
mod subnets;

pub(crate) use folder::Folder;
pub(crate) use invitation::Invitation;
pub(crate) use launch::{Child, Waited, await_up, end_daemon};
pub(crate) use lifetime::lifetime;
pub(crate) use record::{Record, Role};
pub(crate) use subnets::{Subnets, host_networks};

use anyhow::{Result, bail};

/// The UDP port where nobody says otherwise: that of GRE in UDP (RFC 8086).
pub(crate) const PORT: u16 = 4754;

/// An endpoint, `HOST` or `HOST:PORT`; an IPv6 address with a port has brackets.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn endpoint(text: &str) -> Result<(String, u16)> {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok((text.to_owned(), PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        None => (text, PORT),
        Some((host, port)) => match port.parse() {
            Ok(port @ 1..) => (host, port),
            _ => bail!(
                "`{port}` in `{text}` is not a port: write HOST or HOST:PORT, such as vpn.example.org:4754"
            ),
        },
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() {
        bail!("`{text}` has no host: write HOST or HOST:PORT, such as vpn.example.org:4754");
    }
    if !crate::config::is_host(host) {
        bail!("`{host}` is neither an address nor a host name: write one such as vpn.example.org");
    }
    Ok((host.to_owned(), port))
}

/// An endpoint as [`endpoint`] reads it.
pub(crate) fn endpoint_text(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_with_and_without_a_port() {
        for (text, host, port) in [
            ("vpn.example.org", "vpn.example.org", PORT),
            ("vpn.example.org:5000", "vpn.example.org", 5000),
            ("203.0.113.5", "203.0.113.5", PORT),
            ("203.0.113.5:1", "203.0.113.5", 1),
            ("2001:db8::5", "2001:db8::5", PORT),
            ("[2001:db8::5]:5000", "2001:db8::5", 5000),
        ] {
            let read = endpoint(text).unwrap();
            assert_eq!(read, (host.to_owned(), port));
            assert_eq!(endpoint(&endpoint_text(&read.0, read.1)).unwrap(), read);
        }
        for bad in ["", ":5000", "vpn:0", "vpn:65536", "vpn:", "[]:4754"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }
}
