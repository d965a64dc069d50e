//! What is imported from the original's files runs: the listings of the publications, with the
//! addresses of a lab in place of theirs, at both ends.

use std::path::Path;
use std::process::Command;

use mpt_lab::topology::{Side, Topology};

use crate::site::{Site, assert_flawless, daemon, ping};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("the_listing_of_the_papers_runs", papers),
    ("the_files_of_the_measurements_run", || measurements(["mpt-original"; 2])),
    ("the_files_of_the_measurements_run_at_once_with_our_own_kind", || measurements(["mpt"; 2])),
    ("the_files_of_the_measurements_run_while_one_end_moves", || {
        measurements(["mpt", "mpt-original"]);
    }),
];

/// The links by the names that the interfaces have in the listings.
const LINKS: &str = "[[link]]\nname = 'eth1'\nrate_mbps = 50\ndelay_ms = 2\n\
                     [[link]]\nname = 'eth2'\nrate_mbps = 50\ndelay_ms = 4\n";

/// One value to a line, and the peer's addresses in other networks than the own ones.
fn papers() {
    let listing = Listing {
        files: ["papers/interface.conf", "papers/connections/connection.conf"],
        tunnel: ["192.168.1.1", "192.168.1.2"],
        paths: [["10.1.1.1", "10.1.1.2"], ["10.2.2.1", "10.3.3.2"]],
        keepalive: ["5               # keepalive", "1  # keepalive"],
    };
    let site = listing.run(["mpt-original"; 2]);
    let report = ping(site.lab.left(), address("192.168.1.2"), 22);
    assert_eq!(report.lost, 0, "{report:?}");
    // The weights are 1 and 10.
    let sent = sent(&site);
    assert!(sent[1] >= 20 && sent[0] >= 2, "{sent:?}");
}

/// Sections with keys. What arrives is in order, because both ends have a window.
fn measurements(peers: [&str; 2]) {
    let listing = Listing {
        files: ["al-imareen/interface.conf", "al-imareen/connections/ipv4.conf"],
        tunnel: ["10.0.0.1", "10.0.0.2"],
        paths: [["10.1.1.1", "10.1.1.2"], ["10.2.2.1", "10.2.2.2"]],
        keepalive: ["keepalive_time   = 5", "keepalive_time = 1"],
    };
    let site = listing.run(peers);
    assert_eq!(ping(site.lab.left(), address("10.0.0.2"), 5).lost, 0);
    let before = sent(&site);
    assert_flawless(site.stream_to(address("10.0.0.2"), crate::site::SHORT));
    let after = sent(&site);
    // The weights are 100 and 50, and whatever a host says unasked goes through the tunnel too.
    let share = (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64;
    assert!((1.8..2.2).contains(&share), "{before:?} {after:?}");
}

/// A listing, and what in it depends on the hosts.
struct Listing {
    files: [&'static str; 2],
    /// The own tunnel address, and the peer's.
    tunnel: [&'static str; 2],
    /// The own address of each path, and the peer's.
    paths: [[&'static str; 2]; 2],
    /// How often paths are probed, and how often so that nobody has to wait.
    keepalive: [&'static str; 2],
}

impl Listing {
    /// Runs what is imported at both ends of two links for these kinds of peers, until all paths are up.
    fn run(&self, peers: [&str; 2]) -> Site {
        let mut site = Site::links_only(LINKS, "");
        for (side, peer) in [Side::Left, Side::Right].into_iter().zip(peers) {
            let config = self.import(&site, side, peer);
            site.start_daemon_with(side, &config);
        }
        site.await_all_up();
        site
    }

    /// The configuration of one side, which `mpt check` takes on its host.
    fn import(&self, site: &Site, side: Side, peer: &str) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in self.files {
            let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import").join(file);
            let text = std::fs::read_to_string(data).expect("a listing");
            let name = Path::new(file).file_name().expect("a file's name");
            let text = self.adapted(&text, side, site.lab.topology());
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let mpt = |arguments: &[&str]| {
            let mut command = Command::new(daemon());
            command.args(arguments).current_dir(folder.path());
            let output = site.lab.host(side).run(move || command.output()).expect("mpt runs");
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        };
        mpt(&["import", ".", "--peer", peer]);
        mpt(&["check", "mpt.toml"]);
        std::fs::read_to_string(folder.path().join("mpt.toml")).expect("what was imported")
    }

    /// The listing as it would be on one of the hosts. Addresses are replaced in one pass, as some
    /// take each other's place.
    fn adapted(&self, text: &str, side: Side, topology: &Topology) -> String {
        let (other, own, peers) = match side {
            Side::Left => (Side::Right, 0, 1),
            Side::Right => (Side::Left, 1, 0),
        };
        let mut words = vec![
            (self.tunnel[0], self.tunnel[own].to_owned()),
            (self.tunnel[1], self.tunnel[peers].to_owned()),
            (self.keepalive[0], self.keepalive[1].to_owned()),
        ];
        for (link, [local, remote]) in self.paths.into_iter().enumerate() {
            words.push((local, topology.address(side, link).to_string()));
            words.push((remote, topology.known_address(other, link).to_string()));
        }
        for (place, (word, _)) in words.iter().enumerate() {
            assert!(!words[..place].iter().any(|(earlier, _)| word.contains(earlier)), "{word}");
        }
        let marked = words.iter().enumerate().fold(text.to_owned(), |text, (place, (word, _))| {
            text.replace(word, &format!("<{place}>"))
        });
        words
            .iter()
            .enumerate()
            .fold(marked, |text, (place, (_, value))| text.replace(&format!("<{place}>"), value))
    }
}

/// How many inner packets the left daemon has sent on each path.
fn sent(site: &Site) -> Vec<u64> {
    site.connection(Side::Left).paths.iter().map(|path| path.sent.packets).collect()
}

fn address(text: &str) -> std::net::IpAddr {
    text.parse().expect("an address")
}
