//! Path status changes that this host reports to an original.

use std::net::IpAddr;
use std::time::Duration;

use mpt_original::{Code, Outcome, PathReport, Refusal};

use crate::peer::*;

#[test]
fn a_report_has_two_rounds_with_each_kind_of_authentication() {
    for kind in 0..=2 {
        let mut host = Host::new(kind);
        for down in [true, false] {
            host.commands.tell(host.now, CONNECTION, report(down));
            let mut expected = Frame::request(kind, [0; 4], 1, if down { DOWN } else { 0 });
            (expected.initiator, expected.responder) = (OWN, PEER);
            assert_eq!(host.sent(), Some(clean(&expected)));
            assert_eq!(host.sent(), None, "and waits");

            let cookie = if kind == 0 { [0; 4] } else { [1, 2, 3, 4] };
            host.hears(&Frame::reply(kind, cookie, 2, 0));
            expected = Frame { cookie, round: 3, data: [OWN_END, PEER_END].concat(), ..expected };
            assert_eq!(host.sent(), Some(clean(&expected)));

            // The original may give its last answer another cookie.
            let last = if kind == 0 { [0; 4] } else { [5; 4] };
            host.hears(&Frame::reply(kind, last, 4, 0));
            assert_eq!(host.told(), Some((report(down), Outcome::Done)));
            assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
        }
        assert_eq!(host.commands.refusals().total(), 0);
    }
}

#[test]
fn each_round_is_sent_six_times_every_half_second() {
    let half = Duration::from_millis(500);
    for answered in [false, true] {
        let mut host = Host::new(1);
        host.commands.tell(host.now, CONNECTION, report(true));
        if answered {
            host.sent().expect("round 1");
            host.hears(&Frame::reply(1, [7; 4], 2, 0));
        }
        let first = host.sent().expect("the first time");
        assert_eq!(first[8], if answered { 3 } else { 1 });
        let resend = |host: &mut Host, message: &[u8], times| {
            for _ in 0..times {
                assert_eq!(host.wait(), half);
                assert_eq!(host.sent().as_deref(), Some(message));
                assert_eq!(host.told(), None);
            }
        };
        match answered {
            false => resend(&mut host, &first, 5),
            true => {
                // A peer that has forgotten the exchange answers when it begins again.
                resend(&mut host, &first, 2);
                assert_eq!(host.wait(), half);
                assert_eq!(host.sent().expect("round 1 again")[8], 1);
                host.hears(&Frame::reply(1, [8; 4], 2, 0));
                let third = host.sent().expect("round 3 again");
                assert_eq!((third[8], cookie(&third)), (3, [8; 4]));
                resend(&mut host, &third, 5);
            }
        }
        assert_eq!(host.wait(), half);
        assert_eq!(host.told(), Some((report(true), Outcome::Unanswered)));
        assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
    }
}

#[test]
fn a_refusal_ends_an_exchange_in_its_round_only() {
    for (round, code) in [(2, 4), (4, 5)] {
        let mut host = Host::new(0);
        host.commands.tell(host.now, CONNECTION, report(true));
        host.sent().expect("round 1");
        if round == 4 {
            host.hears(&Frame::reply(0, [0; 4], 4, code));
            assert_eq!(host.told(), None, "round 4 is not expected yet");
            host.hears(&Frame::reply(0, [0; 4], 2, 0));
        }
        host.hears(&Frame::reply(0, [0; 4], round, code));
        assert_eq!(host.told(), Some((report(true), Outcome::Refused(Code(code)))));
    }
}

/// In the original any unexpected round ends the exchange.
#[test]
fn unexpected_rounds_are_ignored() {
    let mut host = Host::new(1);
    let done = Frame::reply(1, [7; 4], 4, 0);
    host.hears(&done);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.sent().expect("round 1");
    host.hears(&done);
    assert_eq!(host.commands.refusals().count(Refusal::Order), 2);
    host.hears(&Frame::reply(1, [7; 4], 2, 0));
    assert_eq!(cookie(&host.sent().expect("round 3")), [7; 4]);
    host.hears(&Frame::reply(1, [7; 4], 2, 0));
    assert_eq!(host.sent(), None, "a repetition changes nothing");
    host.hears(&Frame::reply(1, [8; 4], 2, 0));
    assert_eq!(cookie(&host.sent().expect("round 3")), [8; 4], "the peer has this cookie only");
    assert_eq!(host.told(), None);
    host.hears(&done);
    assert_eq!(host.told(), Some((report(true), Outcome::Done)));
}

#[test]
fn failed_authentication_of_answers_is_reported_on_timeout() {
    let mut host = Host::new(2);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.sent().expect("round 1");
    host.hears(&Frame::reply(0, [0; 4], 2, 0));
    let mut forged = Frame::reply(2, [7; 4], 2, 0).bytes();
    forged[8] ^= 1;
    host.commands.handle_datagram(host.now, source(), &forged, || unreachable!());
    assert_eq!(host.commands.refusals().count(Refusal::AuthMismatch), 1);
    assert_eq!(host.commands.refusals().count(Refusal::AuthHash), 1);
    assert_eq!((host.sent(), host.told()), (None, None), "it might be a forgery");
    while host.commands.poll_timeout().is_some() {
        host.wait();
        host.sent();
    }
    assert_eq!(host.told(), Some((report(true), Outcome::AuthFailed)));
}

/// In the original both exchanges would end.
#[test]
fn two_exchanges_in_opposite_directions_both_complete() {
    for kind in 0..=2 {
        let mut host = Host::new(kind);
        host.commands.tell(host.now, CONNECTION, report(true));
        host.sent().expect("round 1");
        let theirs = host.open(kind, 0);
        let ours = if kind == 0 { [0; 4] } else { [1; 4] };
        host.hears(&Frame::reply(kind, ours, 2, 0));
        host.sent().expect("round 3");
        assert!(host.answer(&Frame::request(kind, theirs, 3, 0).bytes()).is_some());
        assert_eq!(host.commands.poll_event(), heard(false));
        host.hears(&Frame::reply(kind, ours, 4, 0));
        assert_eq!(host.told(), Some((report(true), Outcome::Done)));
        assert_eq!(host.commands.refusals().total(), 0);
    }
}

#[test]
fn a_later_report_replaces_a_waiting_one_of_the_same_path() {
    let mut host = Host::new(0);
    let other = PathReport { initiator: [203, 0, 113, 1].into(), ..report(true) };
    for told in [report(true), report(false), other, report(true)] {
        host.commands.tell(host.now, CONNECTION, told);
    }
    assert_eq!(host.told(), Some((report(false), Outcome::Superseded)));
    for expected in [report(true), other, report(true)] {
        let first = host.sent().expect("round 1");
        assert_eq!(first[1], DOWN);
        host.hears(&Frame::reply(0, [0; 4], 2, 0));
        let third = host.sent().expect("round 3");
        assert_eq!(
            third[52..56],
            match expected.initiator {
                IpAddr::V4(address) => address.octets(),
                IpAddr::V6(_) => unreachable!("the paths here have none"),
            }
        );
        assert_eq!(host.sent(), None, "one after the other");
        host.hears(&Frame::reply(0, [0; 4], 4, 0));
        assert_eq!(host.told(), Some((expected, Outcome::Done)));
    }
    assert_eq!((host.sent(), host.told()), (None, None));
}

#[test]
fn the_queue_of_reports_is_bounded() {
    let mut host = Host::new(0);
    let path = |number: u8| PathReport { initiator: [203, 0, 113, number].into(), ..report(true) };
    for number in 0..=65 {
        host.commands.tell(host.now, CONNECTION, path(number));
    }
    assert_eq!(host.told(), Some((path(1), Outcome::Superseded)), "0 is being sent");
    assert_eq!(host.told(), None);
}

#[test]
fn a_changed_key_and_a_removed_connection_drop_reports_and_exchanges() {
    let mut host = Host::new(1);
    let cookie = host.open(1, DOWN);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.commands.set_connection(CONNECTION, settings(2));
    assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
    host.refuses(&Frame::request(2, cookie, 3, DOWN).bytes(), Refusal::Order);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.commands.remove_connection(CONNECTION);
    assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
    host.commands.tell(host.now, CONNECTION, report(true));
    assert_eq!(host.sent(), None);
}
