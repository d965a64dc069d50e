use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn parities_follow_the_loss_and_are_none_without() {
    let groups = Groups::default();
    let of = |packets, loss| groups.parities(packets, loss, loss);
    assert_eq!([1, 8, 64].map(|packets| of(packets, 0.0)), [0, 0, 0]);
    assert_eq!([0.0001, 0.001, 0.01, 0.02, 0.05].map(|loss| of(50, loss)), [0, 1, 3, 5, 8]);
    assert_eq!([4, 8, 16, 32, 64].map(|packets| of(packets, 0.02)), [2, 3, 3, 4, 6]);
    assert_eq!(of(1, 0.5), 1, "no more than packets");
}

#[test]
fn a_group_ends_with_its_time_or_when_it_is_full_or_a_number_is_too_far() {
    let mut groups = Groups::default();
    let mut put = |now, path, number| {
        let group = groups.put(at(now), PathId(path), Seq::new(number), 7, 0, b"packet");
        group.map(|group| (group.path, group.numbers.len(), group.longest()))
    };
    assert_eq!(put(0, 1, 100), None);
    assert_eq!(put(1, 2, 101), None);
    assert_eq!(put(2, 1, 102), None);
    assert_eq!(put(3, 1, 100 + MOST_SPAN), Some((PathId(1), 2, 8)), "it is too far");
    assert_eq!(put(4, 1, 99), Some((PathId(1), 1, 8)), "it is before");
    for number in 0..62 {
        assert_eq!(put(4, 2, 200 + number), None);
    }
    assert_eq!(put(4, 2, 300), Some((PathId(2), 64, 8)));
    assert_eq!((groups.due(), groups.take_due(at(13)).is_none()), (Some(at(14)), true));
    let group = groups.take_due(at(14)).expect("it is time");
    assert_eq!(group.packets().collect::<Vec<_>>(), [b"\x00\x07packet"]);
    assert_eq!(groups.due(), None);
}

#[test]
fn more_losses_than_parities_are_missing() {
    let mut groups = Groups::default();
    let group = |groups: &mut Groups, from: u32| {
        for number in from..from + 4 {
            groups.put(at(0), PathId(0), Seq::new(number), 0, 0, b"packet");
        }
        let group = groups.take_due(at(10)).expect("a group");
        groups.on_sent(&group, 2);
    };
    group(&mut groups, 10);
    let known = |groups: &mut Groups, number: u32, arrived| {
        groups.on_known(PathId(0), Seq::new(number), arrived)
    };
    assert_eq!(known(&mut groups, 10, true), Covered::Saved);
    assert_eq!(known(&mut groups, 11, false), Covered::Saved);
    assert_eq!(known(&mut groups, 12, false), Covered::Saved);
    assert_eq!(known(&mut groups, 13, false), Covered::Missing);
    assert_eq!(known(&mut groups, 13, false), Covered::Missing, "nothing is known of it");
    group(&mut groups, 20);
    groups.on_parity(PathId(1), 7, Seq::new(20));
    let mut block = Block { path: 0, highest: 9, resolved: 9, below: 4, ..Block::default() };
    assert!(block.bitmap.push(0b1_1011), "all but the third from 5 on");
    groups.on_report(PathId(1), &block);
    assert_eq!(known(&mut groups, 20, false), Covered::Saved);
    assert_eq!(known(&mut groups, 21, false), Covered::Missing, "a parity is lost, too");
}

#[test]
fn few_packets_are_not_worth_a_parity() {
    for (every, worth) in [(20_000, false), (5000, false), (2000, true), (200, true)] {
        let mut groups = Groups::default();
        let mut is_worth = false;
        for micros in (0..1_000_000).step_by(every) {
            is_worth = groups.is_worth(at(1000) + Duration::from_micros(micros));
        }
        assert_eq!(is_worth, worth, "{every}");
    }
}

#[test]
fn bursts_of_losses_are_allowed_for() {
    let mut groups = Groups::default();
    let before = groups.parities(32, 0.01, 0.01);
    for from in (0..20_000).step_by(32) {
        for number in from..from + 32 {
            groups.put(at(0), PathId(0), Seq::new(number), 0, 0, b"packet");
        }
        let group = groups.take_due(at(10)).expect("a group");
        groups.on_sent(&group, before as u8);
        for number in from..from + 32 {
            // All of every twentieth group's last eight are lost.
            let lost = from % 640 == 0 && number >= from + 24;
            groups.on_known(PathId(0), Seq::new(number), !lost);
        }
    }
    assert!(groups.parities(32, 0.01, 0.01) > before + 1);
}
