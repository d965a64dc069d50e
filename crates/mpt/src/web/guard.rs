//! Which requests are from this site's own page or from a person, and not made by another site's page in a
//! browser on this host.
//!
//! A browser sends requests to loopback addresses for every page that asks it to. Three of its own words tell:
//! `Host` is the name by which it found us, which under DNS rebinding is the attacker's; `Origin` and
//! `Sec-Fetch-Site` are the page that asks.

use std::net::IpAddr;

use crate::http::Request;

/// Whether the request names this host in one of the ways of loopback. The port is not compared: it is another one
/// where the page is forwarded, such as by ssh.
pub(super) fn is_for_this_host(request: &Request) -> bool {
    let Some(host) = &request.host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether no other site has a hand in it.
pub(super) fn is_of_this_site(request: &Request) -> bool {
    let own = |origin: &str| {
        let host = request.host.as_deref().unwrap_or_default();
        origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
    };
    let fetched = request.fetch_site.as_deref();
    request.origin.as_deref().is_none_or(own)
        && matches!(fetched, None | Some("same-origin" | "none"))
}

/// The token that a request carries (RFC 6750 section 2.1).
pub(super) fn token(request: &Request) -> Option<&str> {
    let (scheme, token) = request.authorization.as_deref()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
