//! Numbers out of reach.

use super::*;

#[test]
fn an_outage_of_more_packets_than_are_remembered_ends_with_the_third_packet() {
    let reach = REACH as u32;
    let mut bench = Bench::default();
    bench.accept_all(0, [0, 1, 5]);
    let far = 10 + reach;
    assert_eq!(bench.receive(0, far, After::First), Err(Drop::Stray));
    assert_eq!(bench.receive(0, far + 2, After::First), Err(Drop::Stray));
    assert_eq!(bench.receive(0, far + 2, After::First), Err(Drop::Stray), "a copy");
    assert_eq!(bench.accept(1, far + 3, After::First), [5, far + 3]);
    assert_eq!(bench.order.stats().lost_window, u64::from(far - 3));
    assert_eq!(bench.accept(1, far, After::First), [far], "it is expected");
    assert_eq!(bench.accept(1, far - 1, After::First), [far - 1], "it is late");
}

#[test]
fn numbers_out_of_reach_between_others_are_never_believed() {
    let mut bench = Bench::default();
    for n in 0..100 {
        assert_eq!(bench.receive(0, 1000 + REACH as u32 + n, After::First), Err(Drop::Stray));
        assert_eq!(bench.accept(0, n, After::First), [n]);
    }
}

#[test]
fn an_order_that_was_led_astray_goes_back() {
    let reach = REACH as u32;
    let mut bench = Bench::default();
    bench.accept_all(0, 0..10);
    for n in 0..2 {
        assert_eq!(bench.receive(0, 5 * reach + n, After::First), Err(Drop::Stray));
    }
    assert_eq!(bench.accept(0, 5 * reach + 2, After::First), [5 * reach + 2]);
    for n in 10..60 {
        assert_eq!(
            bench.receive(0, n, After::First),
            Err(Drop::Stray),
            "{n}: one path stood still"
        );
    }
    assert_eq!(bench.receive(1, 60, After::First), Err(Drop::Stray), "not for long");
    bench.now += ms(250);
    assert_eq!(bench.accept(0, 61, After::First), [61]);
    assert_eq!(bench.accept(1, 62, After::First), [62]);
}

#[test]
fn numbers_out_of_reach_are_of_one_row_only_if_they_follow_each_other() {
    let far = 1000 + REACH as u32;
    let mut bench = Bench::default();
    bench.accept_all(0, [0, 2]);
    for n in 0..10 {
        // What is held, or comes a second later, ends the row.
        assert_eq!(bench.receive(0, far + n, After::First), Err(Drop::Stray));
        assert_eq!(bench.receive(0, far + n + 1, After::First), Err(Drop::Stray));
        if n % 2 == 0 {
            bench.accept_all(0, [10 + n]);
        } else {
            bench.now += ms(1000);
        }
    }
}
