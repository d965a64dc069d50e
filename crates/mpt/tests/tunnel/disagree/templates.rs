//! Templates that do not fit the client that comes.

use mpt_lab::topology::Side;

use super::ends::{await_problem, doctor, problems};
use crate::site::{QUICK, Site, TWO_LINKS, eventually};

pub(super) fn template() {
    let accept = |peers: &str, key: &str| {
        format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24']\n[[tunnel.accept]]\n\
             name = 'road'\npeers = ['{peers}']\n{key}\n"
        )
    };
    for (peers, key, words) in [
        ("10.9.0.128/25", "", "its tunnel address 10.9.0.1 is not among the `peers`"),
        ("10.9.0.0/24", "key = 9", "it has no GRE key"),
        ("10.9.0.0/24", "sources = ['192.0.2.99/32']", "is not among the `sources`"),
        ("10.9.0.0/24", "framing = 'extended'", "does not use its framing"),
    ] {
        let mut site = Site::links_only(TWO_LINKS, "");
        let left =
            site.config(Side::Left).replace("'10.9.0.1/24', 'fd00:9::1/64'", "'10.9.0.1/24'");
        let left = left.replace("'10.9.0.2', 'fd00:9::2'", "'10.9.0.2'");
        site.start_daemon_with(Side::Right, &accept(peers, key));
        site.start_daemon_with(Side::Left, &left);
        let problem = await_problem(&site, Side::Right, "template", words);
        assert!(problem.text.contains("template road") && problem.connection.is_none());
    }
}

/// A template and this line of it, at the right host, and the left one as it is.
fn with_template(framing: &str, line: impl Fn(&Site) -> String) -> Site {
    let mut site = Site::links_only(TWO_LINKS, framing);
    let right = format!(
        "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.2/24', 'fd00:9::2/64']\n[[tunnel.accept]]\n\
         name = 'road'\npeers = ['10.9.0.0/24']\n{QUICK}{framing}\n{}\n",
        line(&site)
    );
    site.start_daemon_with(Side::Right, &right);
    site.start_daemon(Side::Left);
    site
}

/// One of the client's paths comes from an address that the template does not accept.
pub(super) fn unnamed_source(framing: &str) {
    let source = |site: &Site, path| site.lab.topology().address(Side::Left, path).to_string();
    let site = with_template(framing, |site| format!("sources = ['{}/32']", source(site, 0)));
    let words = format!(
        "datagrams of the peer come from {}:4754, which is not among the `sources` of template road",
        source(&site, 1)
    );
    let problem = await_problem(&site, Side::Right, "template", &words);
    assert_eq!(problem.connection.as_deref(), Some("road-10.9.0.1"), "{problem:?}");
    assert_eq!(problems(&site, Side::Right).len(), 1, "{:?}", problems(&site, Side::Right));
    let log = site.daemon(Side::Right).log();
    assert_eq!(log.matches("among the `sources`").count(), 1, "{log}");
}

/// A template knows a client by the address with which it asked. What the client sends from its other one is dropped.
pub(super) fn second_address() {
    let site = with_template("framing = 'extended'", |_| String::new());
    eventually("the client's paths are up", || {
        site.connection(Side::Left).paths.iter().all(|path| path.state == "up")
    });
    let (status, text) = doctor(&site, Side::Left, &[]);
    assert_eq!(status, Some(1), "{text}");
    let words = "fd00:9::2 does not answer through the tunnel, although 10.9.0.2 does: the peer knows this host as \
                 10.9.0.1 and drops what comes from fd00:9::1";
    assert!(text.contains(words), "{text}");
    assert_eq!(text.matches("\n- ").count(), 1, "{text}");
}
