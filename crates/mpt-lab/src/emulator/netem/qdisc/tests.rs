//! The messages to the kernel byte by byte, as defined by `linux/pkt_sched.h` and sent by `tc`.

use netlink_packet_core::Emitable;

use super::*;

/// The message and its attributes, as on the socket.
fn bytes(netem: &Netem) -> Vec<u8> {
    let message = netem.message(7);
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

/// The value of `TCA_OPTIONS`, which comes last.
fn options(netem: &Netem) -> Vec<u8> {
    // 20 bytes of `struct tcmsg`, 12 of the kind, 4 of the head.
    bytes(netem)[36..].to_vec()
}

/// Attributes behind `struct tc_netem_qopt`.
fn attributes(netem: &Netem) -> Vec<(u16, Vec<u8>)> {
    list(&options(netem)[24..])
}

fn list(mut rest: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let number = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
        let len = usize::from(number(0));
        found.push((number(2), rest[4..len].to_vec()));
        rest = &rest[len.next_multiple_of(4)..];
    }
    found
}

fn value(netem: &Netem, kind: u16) -> Option<Vec<u8>> {
    attributes(netem).into_iter().find_map(|(found, value)| (found == kind).then_some(value))
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn the_message_is_about_the_place_below_the_root() {
    let bytes = bytes(&Netem { limit: 1000, ..Netem::default() });
    // Family and padding, index, handle 2:0, parent 1:1, info.
    assert_eq!(bytes[..20], words(&[0, 7, 0x0002_0000, 0x0001_0001, 0]));
    // TCA_KIND with its closing zero, padded.
    assert_eq!(bytes[20..24], [10_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
    assert_eq!(&bytes[24..32], b"netem\0\0\0");
    // TCA_OPTIONS: the structure, two times, two probabilities and the rate.
    let len = 24 + 2 * 12 + 2 * 12 + 20;
    assert_eq!(bytes[32..36], [4 + len as u16, 2].map(u16::to_ne_bytes).concat());
    assert_eq!(bytes[36..60], words(&[0, 1000, 0, 0, 0, 0]));
    assert_eq!(bytes.len(), 36 + len);
}

#[test]
fn times_are_returned_in_both_units() {
    let netem = Netem {
        delay: Duration::from_millis(50),
        jitter: Duration::from_micros(640),
        ..Netem::default()
    };
    // latency, limit, loss, gap, duplicate, jitter, the first and last in units of 64 ns.
    assert_eq!(options(&netem)[..24], words(&[781_250, 0, 0, 0, 0, 10_000]));
    assert_eq!(value(&netem, 10), Some(50_000_000_i64.to_ne_bytes().into()));
    assert_eq!(value(&netem, 11), Some(640_000_i64.to_ne_bytes().into()));
    assert_eq!(value(&netem, 2).map(|table| table.len()), Some(8192));
    let slow = Netem { delay: Duration::from_secs(1000), ..Netem::default() };
    assert_eq!(options(&slow)[..4], words(&[u32::MAX]));
    assert_eq!(value(&slow, 2), None, "a table only with jitter");
}

#[test]
fn probabilities_are_fractions_of_32_bits() {
    let netem = Netem {
        loss: NetemLoss::Random(0.01),
        duplicate: 1.0,
        corrupt: 0.5,
        reorder: 0.25,
        ..Netem::default()
    };
    // `tc qdisc add ... loss 1% duplicate 100% reorder 25%` sends 0x28f5c29, 0xffffffff and gap 1.
    assert_eq!(options(&netem)[8..20], words(&[0x028f_5c29, 1, u32::MAX]));
    assert_eq!(value(&netem, 3), Some(words(&[0x4000_0000, 0])));
    assert_eq!(value(&netem, 4), Some(words(&[0x8000_0000, 0])));
    assert_eq!([chance(-1.0), chance(2.0), chance(f64::NAN)], [0, u32::MAX, 0]);
}

#[test]
fn disabled_offloads_are_reported() {
    // Or a change would leave it as it was.
    let all = attributes(&Netem::default());
    let nothing = |kind, len| (kind, vec![0; len]);
    let expected = [nothing(10, 8), nothing(11, 8), nothing(3, 8), nothing(4, 8), nothing(6, 16)];
    assert_eq!(all, expected);
}

#[test]
fn bursts_are_a_nested_model() {
    let loss = NetemLoss::GilbertElliott { p: 0.25, r: 0.5, h: 0.0, k: 1.0 };
    let netem = Netem { loss, ..Netem::default() };
    assert_eq!(options(&netem)[8..12], words(&[0]), "no random loss besides");
    let nested = list(&value(&netem, 5).unwrap());
    // struct tc_netem_gemodel: p, r, h, k1.
    assert_eq!(nested, [(2, words(&[0x4000_0000, 0x8000_0000, 0, 0]))]);
    let loss = NetemLoss::GilbertElliott { p: 0.0, r: 0.0, h: 1.0, k: 0.0 };
    let nested = list(&value(&Netem { loss, ..Netem::default() }, 5).unwrap());
    assert_eq!(nested, [(2, words(&[0, 0, u32::MAX, u32::MAX]))]);
}

#[test]
fn rates_are_bytes_per_second() {
    let netem = Netem { rate: Some(1_250_000), overhead: -14, ..Netem::default() };
    assert_eq!(value(&netem, 6), Some(words(&[1_250_000, -14_i32 as u32, 0, 0])));
    assert_eq!(value(&netem, 8), None);
    let fast = Netem { rate: Some(5_000_000_000), seed: Some(9), ..Netem::default() };
    assert_eq!(value(&fast, 6), Some(words(&[u32::MAX, 0, 0, 0])));
    assert_eq!(value(&fast, 8), Some(5_000_000_000_u64.to_ne_bytes().into()));
    assert_eq!(value(&fast, 14), Some(9_u64.to_ne_bytes().into()));
}
