//! Examples from the RFCs and the papers behind them.

use super::*;

fn with_times(arrivals: &[(u32, u64)]) -> Reordering {
    let mut stream = Stream::default();
    for &(number, ms) in arrivals {
        stream.on_arrival(at(ms), Seq::new(number));
    }
    stream.report()
}

fn numbers(numbers: impl IntoIterator<Item = u32>) -> Reordering {
    stream(numbers).report()
}

fn density(report: &Reordering) -> Vec<(i32, u64)> {
    report.density.iter().map(|(places, packets)| (*places, *packets)).collect()
}

#[test]
fn rfc_4737_section_7_1_a_single_packet_is_reordered() {
    // Sent 20 ms apart, 68 ms on their way; packet 4 took 82 ms longer.
    let report = with_times(&[
        (1, 68),
        (2, 88),
        (3, 108),
        (5, 148),
        (6, 168),
        (7, 188),
        (8, 208),
        (4, 210),
        (9, 228),
        (10, 248),
    ]);
    assert_eq!((report.packets, report.reordered), (10, 1));
    assert_eq!(report.ratio(), Some(0.1));
    assert_eq!((report.extent_sum, report.extent_max), (4, 4));
    assert_eq!(report.late_max, Duration::from_millis(62));
    assert_eq!(report.n_reordering, [1, 1, 1, 1]);
}

#[test]
fn rfc_4737_section_7_2_two_packets_are_reordered_by_an_early_one() {
    let report = numbers([1, 2, 3, 4, 7, 5, 6, 8, 9, 10]);
    assert_eq!(report.reordered, 2);
    assert_eq!((report.extent_sum, report.extent_max), (1 + 2, 2));
    // 6 comes directly behind 5.
    assert_eq!(report.n_reordering, [1]);
}

#[test]
fn rfc_4737_section_7_3_three_packets_are_reordered() {
    let report = numbers([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11]);
    assert_eq!(report.reordered, 3);
    assert_eq!((report.extent_sum, report.extent_max), (4 + 5 + 6, 6));
    assert_eq!(report.n_reordering, [1, 1, 1, 1]);
}

#[test]
fn rfc_5236_displacements() {
    let report = numbers([0, 3, 1, 4, 2, 5, 6, 7]);
    // Receive index less number: 0 -2 1 -1 2 0 0 0.
    assert_eq!(density(&report), [(-2, 1), (-1, 1), (0, 4), (1, 1), (2, 1)]);
}

#[test]
fn rfc_5236_lost_packets_and_copies_displace_nothing() {
    // 3 is lost, and the receive index skips it: displacements 0 0 -2 2 0 0 0.
    let report = numbers([0, 1, 4, 2, 5, 6, 7]);
    assert_eq!(density(&report), [(-2, 1), (0, 5), (2, 1)]);
    // 2 is lost and 3 comes twice: displacements 0 -1 1 0 - -2 0 2.
    let report = numbers([1, 4, 3, 5, 3, 8, 7, 6].map(|number| number + 99));
    assert_eq!(density(&report), [(-2, 1), (-1, 1), (0, 3), (1, 1), (2, 1)]);
    assert_eq!((report.duplicates, report.missing, report.packets), (1, 1, 7));
}

#[test]
fn rfc_5236_buffer_occupancy() {
    // 4 is held, then 5 too, then 3 frees both.
    let report = numbers([1, 2, 4, 5, 3].map(|number| number - 1));
    assert_eq!(report.buffer_occupancy, [3, 1, 1]);
}

#[test]
fn the_example_of_a_review_of_reordering_metrics() {
    // Table 1 of "Packet Reordering Metrics to Enable Performance Comparison in IP-Networks",
    // doi:10.1155/2020/8465191.
    let report = numbers([1, 6, 7, 2, 3, 4, 5, 8].map(|number| number - 1));
    assert_eq!(density(&report), [(-4, 2), (0, 2), (2, 4)]);
    assert_eq!(report.buffer_occupancy, [3, 1, 4]);
}
