//! Many connections of one endpoint: their keepalives gather, so that it seldom has to wake up.

use std::time::Duration;

use crate::pair::{Inbox, Settings, config, inner_address, outer_address};
use mpt_proto::{ConnectionId, Endpoint, Instant};

const EVERY: Duration = Duration::from_millis(500);
const CONNECTIONS: u64 = 200;

/// An endpoint with connections to silent peers, each begun at another time.
fn crowd() -> (Endpoint, Instant) {
    let settings = Settings { weights: vec![1], dead_time: None, ..Settings::default() };
    let mut only = config(&settings, 1);
    let connection = only.connections.remove(0);
    let mut endpoint = Endpoint::new(&only, Instant::ZERO).expect("good settings");
    let mut now = Instant::ZERO;
    for number in 0..CONNECTIONS as u8 {
        now = Instant::ZERO + EVERY / CONNECTIONS as u32 * u32::from(number);
        let mut config = connection.clone();
        config.peer = vec![inner_address(number.wrapping_add(50))];
        config.paths[0].remote = outer_address(number.wrapping_add(50), 0);
        let connection = ConnectionId(u16::from(number));
        let change = mpt_proto::Change::AddConnection {
            connection,
            config: config.into(),
            accepted_by: None,
        };
        endpoint.change(now, &change, &mut Inbox::default());
        while endpoint.poll_transmit(now).is_some() {}
    }
    (endpoint, now)
}

#[test]
fn keepalives_are_sent_together_at_most_a_sixteenth_early() {
    let (mut endpoint, mut now) = crowd();
    let mut last = vec![now; CONNECTIONS as usize];
    let (mut wakes, mut sent) = (0, 0);
    let begin = now + 4 * EVERY;
    while now < begin + 8 * EVERY {
        now = endpoint.poll_timeout().unwrap().at;
        endpoint.handle_timeout(now, &mut Inbox::default());
        let settled = now >= begin;
        wakes += u64::from(settled);
        while let Some(transmit) = endpoint.poll_transmit(now) {
            let since = &mut last[usize::from(transmit.connection.0)];
            let gap = now.since(*since);
            *since = now;
            assert!(gap <= EVERY, "late: {gap:?}");
            assert!(!settled || gap >= EVERY - EVERY / 16, "early: {gap:?}");
            sent += u64::from(settled);
        }
    }
    assert!(sent >= 8 * CONNECTIONS, "{sent}");
    assert!(wakes <= 8 * 17, "{wakes} times awake in eight intervals");
}
