use super::*;
use crate::sink::Held;

/// Delivers to a list, holds copies.
#[derive(Default)]
struct Trace {
    delivered: Vec<u8>,
    held: Vec<u8>,
}

impl Sink for Trace {
    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.push(packet[0]);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.held.push(packet[0]);
        Some(Held(self.held.len() as u32 - 1))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        self.delivered.push(self.held[held.0 as usize]);
        1
    }
}

const NOW: Instant = Instant::ZERO;

fn buffer(config: ReorderConfig, sink: &mut Trace) -> ReorderBuffer {
    let mut buffer = ReorderBuffer::new(config);
    (0..2).for_each(|path| buffer.forget_path(PathId(path)));
    buffer.set_live(NOW, 0b11, sink);
    buffer
}

fn insert(buffer: &mut ReorderBuffer, seq: u32, after: After, sink: &mut Trace) {
    let arrived = Arrived { path: PathId(0), seq: Seq::new(seq), after, in_turn: true };
    buffer.insert(NOW, arrived, &[seq as u8], sink).expect("it fits");
}

#[test]
fn a_session_begins_another_order_and_ends_it_with_everything_delivered() {
    let mut sink = Trace::default();
    let classic = ReorderConfig::default();
    let mut buffer = buffer(classic, &mut sink);
    for seq in [700, 702] {
        insert(&mut buffer, seq, After::Unknown, &mut sink);
    }
    assert_eq!(sink.delivered, [188]);
    let evidence = ReorderConfig { evidence: true, ..classic };
    buffer.set_config(NOW, evidence, &mut sink);
    assert_eq!(sink.delivered, [188, 190], "what was held");
    buffer.restart(NOW, Restarts::Told, &mut sink);
    assert_eq!(buffer.next(), Some(Seq::FIRST));
    insert(&mut buffer, 1, After::First, &mut sink);
    insert(&mut buffer, 3, After::Seq(Seq::new(2)), &mut sink);
    assert_eq!(sink.delivered, [188, 190, 1], "3 waits for 2");
    buffer.restart(NOW, Restarts::Told, &mut sink);
    insert(&mut buffer, 0, After::First, &mut sink);
    assert_eq!(sink.delivered, [188, 190, 1, 3, 0]);
    // The paths are live as before: 1 is given up when path 1 has passed it, and not until then.
    insert(&mut buffer, 2, After::Unknown, &mut sink);
    assert_eq!(buffer.stats().held, 1);
    let wait = Duration::from_millis(70);
    buffer.set_wait(PathId(0), wait, Duration::ZERO);
    assert_eq!(buffer.deadline(), Some(NOW + wait));
    buffer.covered(NOW, PathId(1), Seq::new(1), &mut sink);
    let margin = buffer.margin(PathId(1));
    assert_eq!(buffer.deadline(), Some(NOW + margin), "of a path that nothing is known of");
    buffer.on_timeout(NOW + margin, &mut sink);
    assert_eq!(sink.delivered, [188, 190, 1, 3, 0, 2]);
    insert(&mut buffer, 1, After::First, &mut sink);
    assert_eq!(sink.delivered, [188, 190, 1, 3, 0, 2, 1], "late");
    buffer.set_config(NOW, classic, &mut sink);
    insert(&mut buffer, 3, After::Unknown, &mut sink);
    assert_eq!(sink.delivered.last(), Some(&3), "the numbers of the session go on");
    let stats = buffer.stats();
    assert_eq!((stats.in_order, stats.reordered, stats.held), (4, 3, 0), "counted on");
    assert_eq!(stats.late, 1);
}

#[test]
fn without_a_window_everything_is_delivered_as_it_comes() {
    let mut sink = Trace::default();
    let config = ReorderConfig { evidence: true, window: 0, ..ReorderConfig::default() };
    let mut buffer = buffer(config, &mut sink);
    for seq in [5, 3, 9, 3] {
        insert(&mut buffer, seq, After::Unknown, &mut sink);
    }
    assert_eq!(sink.delivered, [5, 3, 9, 3]);
}

#[test]
fn other_settings_within_a_session_do_not_make_its_numbers_strays() {
    let mut sink = Trace::default();
    let evidence = ReorderConfig { evidence: true, ..ReorderConfig::default() };
    let classic = ReorderConfig::default();
    let mut buffer = buffer(classic, &mut sink);
    insert(&mut buffer, 100_000, After::First, &mut sink);
    for (seq, config) in [(100_001, evidence), (100_002, classic), (100_003, evidence)] {
        buffer.set_config(NOW, config, &mut sink);
        insert(&mut buffer, seq, After::Unknown, &mut sink);
    }
    assert_eq!(sink.delivered.len(), 4);
}

/// In plain framing 32 numbers from behind by all paths mean that the peer has restarted.
#[test]
fn in_a_session_numbers_that_came_before_are_copies_however_many_there_are() {
    let mut sink = Trace::default();
    let mut buffer = buffer(ReorderConfig::default(), &mut sink);
    buffer.restart(NOW, Restarts::Told, &mut sink);
    (0..100).for_each(|seq| insert(&mut buffer, seq, After::Unknown, &mut sink));
    for seq in 0..100 {
        let path = PathId((seq % 2) as u8);
        let arrived = Arrived { path, seq: Seq::new(seq), after: After::Unknown, in_turn: true };
        assert_eq!(buffer.insert(NOW, arrived, &[0], &mut sink), Err(Drop::Duplicate), "{seq}");
    }
    assert_eq!(buffer.next(), Some(Seq::new(100)));
}
