//! Paths that break their order.

use super::*;

#[test]
fn a_path_that_breaks_its_order_gets_a_margin() {
    let mut bench = Bench::new(1, WINDOW);
    bench.order.set_wait(PathId(0), ms(100), Duration::from_micros(900));
    assert_eq!(bench.accept_all(0, [0, 2]), [0, 2], "at once, as long as it keeps its order");
    assert_eq!(bench.accept_all(0, [1]), [1]);
    assert_eq!(bench.order.stats().late, 1);
    // From here on it has four mean deviations.
    assert_eq!(bench.accept_all(0, [3, 5]), [3]);
    assert_eq!(bench.order.deadline(), Some(bench.now + Duration::from_micros(3600)));
    assert_eq!(bench.wait(ms(3)), []);
    assert_eq!(bench.accept_all(0, [4]), [4, 5], "in time");
    assert_eq!(bench.accept_all(0, [7]), []);
    assert_eq!(bench.wait(ms(8)), [7]);
    // Without need it goes.
    bench.now += Duration::from_secs(120);
    for n in 0..4 {
        bench.now += Duration::from_secs(16);
        bench.accept_all(0, [9 + 2 * n]);
    }
    bench.wait(ms(100));
    assert_eq!(bench.accept_all(0, [20]), [20]);
}

#[test]
fn a_packet_that_was_overtaken_but_in_time_raises_the_margin_too() {
    let mut bench = Bench::default();
    bench.order.set_wait(PathId(0), ms(100), Duration::ZERO);
    assert_eq!(bench.accept_all(0, [0, 2]), [0]);
    bench.wait(ms(3));
    assert_eq!(bench.accept_all(0, [1]), [1, 2]);
    assert_eq!(bench.accept_all(0, [4]), []);
    assert_eq!(bench.cover(1, 9), []);
    assert_eq!(bench.wait(ms(3) - Duration::from_nanos(1)), []);
    assert_eq!(bench.wait(Duration::from_nanos(1)), [4]);
}

#[test]
fn copies_do_not_raise_the_margin() {
    let mut bench = Bench::default();
    bench.accept_all(0, [0, 2]);
    bench.accept_all(1, [3]);
    bench.order.expect_copies(bench.now + ms(1000));
    assert_eq!(bench.accept_all(0, [1]), [1], "sent again");
    bench.accept_all(0, [5]);
    assert_eq!(bench.accept_all(1, [6]), [5, 6]);
}
