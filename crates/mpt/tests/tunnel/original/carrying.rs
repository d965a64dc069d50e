//! Inner packets and keepalives.

use std::net::SocketAddr;
use std::time::Instant;

use mpt_lab::topology::Side;

use super::cycle::Cycle;
use super::frames::{self, Auth};
use super::machine::Seen;
use super::meeting::{Meeting, PORTS, TERMS, Terms};
use super::settings::SECOND;
use crate::site::{eventually, inner};

/// With numbers and without, from either side, and in paths of either IP version.
pub(super) fn both_ways() {
    let cases = [
        Terms { windows: [900, 900], ..TERMS },
        Terms { windows: [900, 0], outer: 6, ..TERMS },
        Terms { windows: [0, 900], inner: 6, ..TERMS },
    ];
    for terms in cases {
        let meeting = Meeting::start(terms);
        for side in [Side::Left, Side::Right] {
            assert_eq!(meeting.ping(side, 10), 0, "{terms:?}, {side:?}");
        }
        // The order is restored if the sender numbers its packets and the receiver looks at that.
        if terms.windows == [900, 900] {
            meeting.assert_flawless(Side::Left);
            meeting.assert_flawless(Side::Right);
        }
        let numbered = meeting.data().iter().all(|seen| seen.number().is_some());
        let plain = meeting.data().iter().all(|seen| seen.number().is_none());
        assert_eq!((numbered, plain), (terms.windows[0] > 0, terms.windows[0] == 0), "{terms:?}");
    }
}

/// Everything that reaches the original is what its document says, and nothing else.
pub(super) fn frames() {
    for terms in [
        Terms { auth: Auth::ALL[2], ..TERMS },
        Terms { windows: [0, 0], inner: 6, outer: 6, ..TERMS },
    ] {
        let mut meeting = Meeting::without_ours(terms);
        let began = Instant::now();
        meeting.start_ours();
        meeting.await_all_up();
        assert_eq!(meeting.ping(Side::Left, 10), 0);
        assert_eq!(meeting.ping(Side::Right, 10), 0);
        let [ours, theirs] = [Side::Left, Side::Right].map(|side| inner(side, terms.inner));
        let keepalive = frames::keepalive(ours, theirs);
        assert_eq!(keepalive.len(), 44);
        let came = [0, 1].map(|path| meeting.keepalives(path));
        for (path, came) in came.into_iter().enumerate() {
            eventually("further keepalives", || meeting.keepalives(path) > came + 5);
            // However late some are, none is sent before its time by more than a sixteenth.
            let most = 1 + began.elapsed().as_millis() / (SECOND * 15 / 16).as_millis();
            assert!(meeting.keepalives(path) as u128 <= most, "more than {most}");
        }
        let mut next = 0;
        let seen = meeting.peer().machine().seen.clone();
        for seen in &seen {
            let address = meeting.site.lab.left().address(seen.path);
            assert_eq!(seen.from, SocketAddr::from((address, PORTS[0])));
            if seen.is_keepalive() {
                assert_eq!(seen.bytes, keepalive);
            }
        }
        let mut data: Vec<&Seen> = seen.iter().filter(|seen| !seen.is_keepalive()).collect();
        assert_eq!(data.len(), 20, "each ping and its answer");
        data.sort_by_key(|seen| seen.number());
        for seen in data {
            let number = (terms.windows[0] > 0).then_some(next);
            let header = frames::header(terms.inner, number);
            assert!(seen.bytes.starts_with(&header), "{number:?}: {:02x?}", &seen.bytes[..8]);
            assert_eq!(seen.bytes[header.len()] >> 4, terms.inner);
            next += 1;
        }
    }
}

pub(super) fn weights() {
    let weights = [1, 2];
    let meeting = Meeting::start(Terms { weights, ..TERMS });
    assert_eq!(meeting.ping(Side::Right, 30), 0);
    let mut data = meeting.data();
    data.sort_by_key(Seen::number);
    let cycle = Cycle::new(&weights);
    let turns: Vec<_> = cycle.paths().iter().copied().cycle().take(data.len()).collect();
    let paths: Vec<_> = data.iter().map(|seen| seen.path).collect();
    assert_eq!(paths, turns, "the answers");
    let mut machine = meeting.peer().machine();
    assert_eq!([0, 1].map(|path| machine.path(path).carried), [10, 20], "the questions");
}
