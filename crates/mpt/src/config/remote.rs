//! Where the peer is on a path: an address, or a host name that stands for one.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::address;
use super::report::Problems;
use super::value::{Value, text};

/// Longest host name in bytes without the dot at its end: what is left of 255 in the form of the
/// wire (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 253;

/// Longest part of a host name in bytes (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;

/// Where the peer is on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remote {
    /// There.
    Address(IpAddr),
    /// Where the resolver says, at the start and again while the path is silent. It is a host name
    /// by RFC 1123 section 2.1, as it was written.
    Name(String),
}

impl Remote {
    /// The address, unless it has to be resolved.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// The name, if it has to be resolved.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Address(_) => None,
            Self::Name(name) => Some(name),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// An address of one host, or a host name.
pub(super) fn remote(value: &Value<'_>, problems: &mut Problems) -> Option<Remote> {
    let text = text(value, problems)?;
    // What has a slash, only digits and dots, or more than one colon is a slip in an address.
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if text.parse::<IpAddr>().is_ok()
        || text.parse::<SocketAddr>().is_ok()
        || numeric
        || text.contains('/')
        || text.matches(':').count() > 1
    {
        return address::address(value, problems).map(Remote::Address);
    }
    if let Some((name, port)) = text.split_once(':')
        && !name.is_empty()
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
    {
        let help = format!("write \"{name}\"; the port is the connection's `remote_port`");
        problems.push(value.impossible("a host name with a port").help(help));
        return None;
    }
    match fault(text) {
        None => Some(Remote::Name(text.to_owned())),
        Some(fault) => {
            let help = "write an address such as \"203.0.113.5\" or \"2001:db8::5\", or a host name of letters, digits, hyphens and dots such as \"server.example.org\"";
            problems.push(value.impossible(fault).help(help));
            None
        }
    }
}

/// Whether that is an address or a host name.
pub(crate) fn is_host(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || fault(text).is_none()
}

/// Why that is no host name (RFC 1123 section 2.1), unless it is one.
fn fault(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if let Some(other) = name.chars().find(|&c| !allowed(c) && c != '.') {
        return Some(format!(
            "neither an IP address nor a host name, which has no `{}`",
            other.escape_debug()
        ));
    }
    if name.len() > MAX_NAME {
        return Some(format!("a host name of {} bytes; {MAX_NAME} are the most", name.len()));
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Some("a host name with an empty part".into());
        } else if label.len() > MAX_LABEL {
            return Some(format!("a part of {} bytes; {MAX_LABEL} are the most", label.len()));
        } else if label.starts_with('-') || label.ends_with('-') {
            return Some(format!("`{label}` begins or ends with a hyphen"));
        }
    }
    // The last part is alphabetic at least, so that no name looks like an address.
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| "neither an IP address nor a host name, whose last part has a letter".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_and_what_only_looks_like_one() {
        for good in [
            "a",
            "server",
            "server.example.org",
            "server.example.org.",
            "1and1.com",
            "xn--bcher-kva.example",
            "3com.a-b",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        let long_label = "a".repeat(64);
        let longest = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "a".repeat(61));
        assert_eq!((longest.len(), fault(&longest)), (253, None));
        assert_eq!(fault(&format!("{longest}.")), None);
        for bad in [
            "",
            ".",
            "a..b",
            ".a",
            "-a.b",
            "a-.b",
            "a_b",
            "bücher.example",
            "a b",
            "1.2.3",
            "a.5",
            &long_label,
            &format!("{longest}a"),
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
