//! Behind address translators, as most homes are.

use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("both_uplinks_behind_translators_that_keep_the_port", behind_translators),
    ("a_translator_that_forgets_costs_its_path_only", rebinding),
];

fn behind_translators() {
    for addressing in ["per-link", "one-server"] {
        let links = TWO_LINKS.replace("delay_ms", "nat = true\ndelay_ms");
        let site = Site::start(&format!("addressing = '{addressing}'\n{links}"), "");
        site.assert_flawless(4);
        site.assert_flawless(6);
        let known: Vec<_> =
            site.connection(Side::Right).paths.into_iter().map(|path| path.remote).collect();
        assert!(!known.contains(&format!("{}:4754", site.lab.left().address(0))), "{known:?}");
    }
}

/// Plain framing cannot follow to another port: the peer's answers go to the configured one.
fn rebinding() {
    let links = TWO_LINKS.replacen("delay_ms", "nat = true\ndelay_ms", 1);
    let site = Site::start(&links, "");
    site.assert_flawless(4);
    site.lab.link(0).rebind();
    site.await_state(0, "down");
    let cause = site.path(Side::Right, 0).cause.unwrap_or_default();
    assert!(cause.contains("does not hear us"), "right hears left, but not the reverse: {cause}");
    site.assert_flawless(4);
    assert!(site.lab.link(0).report().backward.untranslated > 0);
}
