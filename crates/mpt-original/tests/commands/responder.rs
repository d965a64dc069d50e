//! Path status changes that an original reports to this host.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_original::{ConnectionCommands, Event, Refusal};
use mpt_proto::ConnectionId;

use crate::peer::*;

#[test]
fn a_report_is_answered_in_rounds_2_and_4_with_each_kind_of_authentication() {
    for kind in 0..=2 {
        let mut host = Host::new(kind);
        for (status, down) in [(DOWN, true), (0, false), (0x83, true), (0xff, true), (0x7f, false)]
        {
            let first = Frame::request(kind, [0; 4], 1, status);
            let second = host.answer(&first.bytes()).expect("round 2");
            let cookie = cookie(&second);
            assert_eq!(cookie == [0; 4], kind == 0, "kinds 1 and 2 have a cookie");
            let expected = Frame { status: 0, cookie, round: 2, ..first };
            assert_eq!(second, clean(&expected), "the echo of round 1");
            assert_eq!(host.commands.poll_event(), None, "round 1 has no report");

            let third = Frame::request(kind, cookie, 3, status);
            let fourth = host.answer(&third.bytes()).expect("round 4");
            let expected = Frame { status: 0, round: 4, data: vec![], ..third };
            assert_eq!(fourth, clean(&expected));
            assert_eq!(host.commands.poll_event(), heard(down), "status {status:#x}");

            let again = Frame::request(kind, cookie, 3, status).bytes();
            assert_eq!(host.answer(&again), Some(fourth), "the answer may have been lost");
            assert_eq!(host.commands.poll_event(), None, "but it is executed once");
        }
        assert_eq!(host.commands.refusals().total(), 0);
        assert_eq!(host.commands.poll_timeout(), None);
    }
}

#[test]
fn round_3_needs_the_cookie_of_an_exchange_that_is_open() {
    for kind in [1, 2] {
        let third = |cookie, status| Frame::request(kind, cookie, 3, status).bytes();
        let mut host = Host::new(kind);
        host.refuses(&third([0; 4], DOWN), Refusal::Order);
        let cookie = host.open(kind, DOWN);
        host.refuses(&third([0; 4], DOWN), Refusal::Cookie);
        host.refuses(&third([9; 4], DOWN), Refusal::Cookie);
        assert_eq!(host.open(kind, DOWN), cookie, "a repeated round 1 is the same exchange");
        assert!(host.answer(&third(cookie, DOWN)).is_some());
        assert_eq!(host.commands.poll_event(), heard(true));

        host.refuses(&third(cookie, 0), Refusal::Cookie);
        let next = host.open(kind, 0);
        assert_ne!(next, cookie, "another report has another cookie");

        host.now += Duration::from_secs(10);
        host.refuses(&third(cookie, DOWN), Refusal::Order);
        host.refuses(&third(next, 0), Refusal::Order);
    }
}

#[test]
fn without_cookies_round_3_still_needs_a_round_1() {
    let mut host = Host::new(0);
    let third = Frame::request(0, [0; 4], 3, DOWN).bytes();
    host.refuses(&third, Refusal::Order);
    host.open(0, DOWN);
    assert!(host.answer(&third).is_some());
    assert_eq!(host.commands.poll_event(), heard(true));
    host.refuses(&Frame::request(0, [0; 4], 3, 0).bytes(), Refusal::Cookie);
    host.open(0, 0);
    assert!(host.answer(&Frame::request(0, [0; 4], 3, 0).bytes()).is_some());
    assert_eq!(host.commands.poll_event(), heard(false));
}

/// The original takes the offsets of fields from the kind in the message, and the check from the kind of the
/// connection, so that a message can bypass the check.
#[test]
fn another_kind_of_authentication_than_the_connections_is_refused() {
    for kind in 0..=2_u8 {
        let mut host = Host::new(kind);
        let cookie = host.open(kind, DOWN);
        for other in (0..=2).filter(|other| *other != kind) {
            for round in [1, 3] {
                let message = Frame::request(other, cookie, round, DOWN).bytes();
                host.refuses(&message, Refusal::AuthMismatch);
            }
        }
        // The same bytes with another kind in the header.
        for other in (0..=u8::MAX).filter(|other| *other != kind) {
            let mut message = Frame::request(kind, cookie, 3, DOWN).bytes();
            message[2] = other;
            let refusal = if other > 2 { Refusal::AuthKind } else { Refusal::AuthLength };
            host.refuses(&message, refusal);
        }
    }
}

#[test]
fn a_hash_with_another_key_is_refused_in_each_round() {
    let mut host = Host::new(2);
    let cookie = host.open(2, DOWN);
    for round in [1, 3] {
        let mut message = Frame::request(2, cookie, round, DOWN).bytes();
        message[8] ^= 1;
        host.refuses(&message, Refusal::AuthHash);
    }
}

#[test]
fn a_message_belongs_to_the_connection_with_its_tunnel_addresses() {
    let mut host = Host::new(0);
    let mut reversed = Frame::request(0, [0; 4], 1, DOWN);
    (reversed.initiator, reversed.responder) = (OWN, PEER);
    host.refuses(&reversed.bytes(), Refusal::Connection);
    host.commands.set_connection(
        CONNECTION,
        ConnectionCommands { remote: [10, 0, 0, 4].into(), ..settings(0) },
    );
    host.refuses(&Frame::request(0, [0; 4], 1, DOWN).bytes(), Refusal::Connection);
    let mut other = Frame::request(0, [0; 4], 1, DOWN);
    other.initiator[15] = 4;
    assert!(host.answer(&other.bytes()).is_some());
    host.commands.remove_connection(CONNECTION);
    host.refuses(&other.bytes(), Refusal::Connection);
}

#[test]
fn a_connection_may_take_over_the_addresses_of_a_removed_one() {
    let mut host = Host::new(0);
    let heir = ConnectionId(4);
    host.commands.set_connection(heir, settings(0));
    host.commands.remove_connection(CONNECTION);
    host.open(0, DOWN);
    assert!(host.answer(&Frame::request(0, [0; 4], 3, DOWN).bytes()).is_some());
    let event = host.commands.poll_event();
    assert!(matches!(event, Some(Event::Path { connection, .. }) if connection == heir));
}

#[test]
fn commands_from_other_sources_are_refused_where_sources_are_set() {
    let mut host = Host::new(1);
    let mut narrow = settings(1);
    narrow.sources = vec![[192, 0, 2, 9].into()];
    let cookie = host.open(1, DOWN);
    host.commands.set_connection(CONNECTION, narrow.clone());
    host.refuses(&Frame::request(1, cookie, 3, DOWN).bytes(), Refusal::Source);
    narrow.sources.push([192, 0, 2, 1].into());
    host.commands.set_connection(CONNECTION, narrow);
    let third = Frame::request(1, cookie, 3, DOWN).bytes();
    assert!(host.answer(&third).is_some(), "the exchange goes on");
}

#[test]
fn an_exchange_survives_the_rate_limit() {
    let mut host = Host::new(1);
    let (first, mut answered) = (Frame::request(1, [0; 4], 1, DOWN).bytes(), 0);
    let cookie = host.open(1, DOWN);
    while host.answer(&first).is_some() {
        answered += 1;
        assert!(answered < 1000, "there is a limit");
    }
    assert_eq!(host.commands.refusals().count(Refusal::Rate), 1);
    let third = Frame::request(1, cookie, 3, DOWN).bytes();
    host.refuses(&third, Refusal::Rate);
    host.now += Duration::from_millis(50);
    assert!(host.answer(&third).is_some());
    assert_eq!(host.commands.poll_event(), heard(true));
    host.refuses(&third, Refusal::Rate);
}

#[test]
fn the_rate_limit_applies_to_guessed_cookies() {
    for kind in [1, 2] {
        let mut host = Host::new(kind);
        host.open(kind, DOWN);
        let begun = host.now;
        for guess in 1..=2000_u32 {
            host.now += Duration::from_millis(1);
            let message = Frame::request(kind, guess.to_be_bytes(), 3, DOWN).bytes();
            assert_eq!(host.answer(&message), None);
        }
        let guessed = host.commands.refusals().count(Refusal::Cookie);
        let most = 63 + (host.now.since(begun).as_millis() / 50) as u64;
        assert!(guessed <= most, "{guessed} cookies were looked at in two seconds");
        assert_eq!(host.commands.refusals().count(Refusal::Rate), 2000 - guessed);
    }
}

#[test]
fn a_ninth_exchange_replaces_the_oldest() {
    let mut host = Host::new(2);
    let cookies: Vec<[u8; 4]> = (0..9)
        .map(|number| {
            let from = SocketAddr::from(([192, 0, 2, 1], 1000 + number));
            let first = Frame::request(2, [0; 4], 1, DOWN).bytes();
            let chance = 77;
            host.commands.handle_datagram(host.now, from, &first, || chance);
            cookie(&host.commands.poll_transmit(host.now).expect("round 2").message)
        })
        .collect();
    let mut different = cookies.clone();
    different.dedup();
    assert_eq!(different.len(), 9, "also where chance repeats itself");
    host.refuses(&Frame::request(2, cookies[0], 3, DOWN).bytes(), Refusal::Cookie);
    for &cookie in &cookies[1..] {
        assert!(host.answer(&Frame::request(2, cookie, 3, DOWN).bytes()).is_some());
        assert_eq!(host.commands.poll_event(), heard(true));
    }
}
