//! Paths that may have fallen silent.

use super::*;

#[test]
fn what_may_be_on_a_silent_path_is_waited_for_until_it_can_come_by_another_one() {
    let mut bench = Bench::default();
    bench.order.repairs.set_silence(ms(100));
    bench.order.set_wait(PathId(0), ms(5), Duration::ZERO);
    assert_eq!(bench.accept_all(0, [0, 2]), [0]);
    assert_eq!(bench.order.silent_at(), None, "nothing has ever come by the other path");
    assert_eq!(bench.wait(ms(5)), [2]);
    // It is in use, and was last heard of before 5.
    bench.accept_all(1, [3]);
    bench.accept_all(0, [4, 6, 7]);
    assert_eq!(bench.order.silent_at(), Some((bench.now + ms(5), 0b10)));
    assert_eq!(bench.wait(ms(105) - Duration::from_nanos(1)), []);
    assert_eq!(bench.receive_sent(false, 0, 5, After::Unknown).unwrap(), Accepted::Fits);
    assert_eq!(bench.delivered(), [5, 6, 7], "sent again");
    bench.accept_all(0, [9]);
    assert_eq!(bench.wait(ms(105)), [9], "for no longer");
    // A beacon says that nothing is on its way by it.
    bench.accept_all(1, [10]);
    bench.cover(1, 10);
    bench.accept_all(0, [12]);
    assert_eq!((bench.order.silent_at(), bench.wait(ms(5))), (None, vec![12]));
    // Nor by one that has come to what is missing.
    bench.accept_all(1, [13, 15]);
    bench.accept_all(0, [16]);
    assert_eq!(bench.order.silent_at(), None);
}
