//! The code that brings packets of a group back.

use mpt_proto::wire::erasure::{MOST_PACKETS, MOST_PARITIES, add, factor, solve};

use crate::input::Input;

/// A group of packets of any bytes, of which any are lost, and any of its parities: what is left brings all back if there are as
/// many, and nothing if there are fewer.
pub fn parity(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let packets = 1 + input.index(MOST_PACKETS);
    let parities = 1 + input.index(MOST_PARITIES);
    let (lost, parities_lost) =
        ((u64::from(input.long()) << 32) | u64::from(input.long()), input.byte());
    let packet: Vec<Vec<u8>> = (0..packets).map(|_| input.bytes().to_vec()).collect();
    let longest = packet.iter().map(Vec::len).max().unwrap_or_default();
    let is_lost = |at: &usize| lost >> at & 1 != 0;
    let missing: Vec<usize> = (0..packets).filter(is_lost).collect();
    let sum = |parity: usize, of: &mut dyn Iterator<Item = usize>| {
        let mut sum = vec![0; longest];
        of.for_each(|at| add(&mut sum, &packet[at], factor(parity, at)));
        sum
    };
    let left = (0..parities).filter(|parity| parities_lost >> parity & 1 == 0);
    // A parity to which all that have come are added is the sum of those that are missing.
    let mut sums: Vec<(usize, Vec<u8>)> =
        left.map(|parity| (parity, sum(parity, &mut missing.iter().copied()))).collect();
    let enough = sums.len() >= missing.len();
    let found = solve(&missing, &mut sums);
    assert_eq!(found.is_some(), enough, "{missing:?}");
    for (place, found) in missing.iter().zip(found.into_iter().flatten()) {
        let of = &packet[*place];
        assert_eq!(&found[..of.len()], of);
        assert!(found[of.len()..].iter().all(|byte| *byte == 0), "padding");
    }
}
