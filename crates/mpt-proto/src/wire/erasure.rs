//! An erasure code: of some packets and some parities of them, as many as there were packets bring back all (section 8.5.2
//! of `docs/protocol.md`).
//!
//! Bytes are numbers of the field with 256 elements that the polynomial x^8 + x^4 + x^3 + x^2 + 1 makes, as in RFC 5510.
//! Parity *j* is the sum of all packets, each times a factor; those are of a Cauchy matrix, any square part of which can
//! be inverted (Plank, Xu: Optimizing Cauchy Reed-Solomon Codes for Fault-Tolerant Network Storage Applications, 2006), and
//! scaled so that parity 0 is the plain sum, which is XOR.
//!
//! Packets are short and few, so no more is made of it than tables of products.

/// The most packets of a group, and the most parities.
pub const MOST_PACKETS: usize = 64;
/// See [`MOST_PACKETS`].
pub const MOST_PARITIES: usize = 8;

/// The polynomial without its first term.
const POLYNOMIAL: u16 = 0x11d;

/// Powers of two, twice over, and their exponents.
const TABLES: ([u8; 510], [u8; 256]) = tables();

const fn tables() -> ([u8; 510], [u8; 256]) {
    let (mut power, mut exponent) = ([0; 510], [0; 256]);
    let (mut value, mut at) = (1_u16, 0);
    while at < 255 {
        power[at] = value as u8;
        power[at + 255] = value as u8;
        exponent[value as usize] = at as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        at += 1;
    }
    (power, exponent)
}

/// The product of two numbers.
const fn product(one: u8, other: u8) -> u8 {
    if one == 0 || other == 0 {
        return 0;
    }
    let (power, exponent) = &TABLES;
    power[exponent[one as usize] as usize + exponent[other as usize] as usize]
}

/// The number whose product with this one, which is not 0, is 1.
const fn inverse(value: u8) -> u8 {
    let (power, exponent) = &TABLES;
    power[255 - exponent[value as usize] as usize]
}

/// By what packet `packet` counts in parity `parity`.
///
/// # Panics
///
/// If there can be no such packet or parity.
pub fn factor(parity: usize, packet: usize) -> u8 {
    assert!(parity < MOST_PARITIES && packet < MOST_PACKETS, "a group is no larger");
    let place = (MOST_PARITIES + packet) as u8;
    product(place, inverse(place ^ parity as u8))
}

/// Adds a packet, times a factor, to a sum that is at least as long.
///
/// # Panics
///
/// If the sum is shorter.
pub fn add(sum: &mut [u8], packet: &[u8], factor: u8) {
    let sum = &mut sum[..packet.len()];
    if factor == 1 {
        sum.iter_mut().zip(packet).for_each(|(sum, byte)| *sum ^= byte);
        return;
    }
    let mut products = [0; 256];
    for (value, place) in products.iter_mut().enumerate() {
        *place = product(value as u8, factor);
    }
    sum.iter_mut().zip(packet).for_each(|(sum, byte)| *sum ^= products[usize::from(*byte)]);
}

/// Finds the packets that are missing. Each of the `sums` is a parity, by its number, to which all packets that are there were
/// [added](add), times their factors; all are of one length. Returns the missing packets in the order of `missing`; `None`
/// if there are fewer parities.
pub fn solve(missing: &[usize], sums: &mut [(usize, Vec<u8>)]) -> Option<Vec<Vec<u8>>> {
    let count = missing.len();
    let sums = sums.get_mut(..count)?;
    let row = |(parity, _): &(usize, Vec<u8>)| {
        missing.iter().map(|packet| factor(*parity, *packet)).collect::<Vec<u8>>()
    };
    let mut rows: Vec<Vec<u8>> = sums.iter().map(row).collect();
    // Gauss and Jordan: the matrix becomes the identity, and the sums the packets.
    for at in 0..count {
        let pivot = (at..count).find(|row| rows[*row][at] != 0)?;
        rows.swap(at, pivot);
        sums.swap(at, pivot);
        let scale = inverse(rows[at][at]);
        rows[at].iter_mut().for_each(|value| *value = product(*value, scale));
        sums[at].1.iter_mut().for_each(|value| *value = product(*value, scale));
        let (own, own_sum) = (rows[at].clone(), sums[at].1.clone());
        for other in (0..count).filter(|other| *other != at) {
            let by = rows[other][at];
            if by != 0 {
                add(&mut rows[other], &own, by);
                add(&mut sums[other].1, &own_sum, by);
            }
        }
    }
    Some(sums.iter_mut().map(|(_, sum)| std::mem::take(sum)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_field_is_that_of_rfc_5510() {
        assert_eq!((product(2, 0x80), product(0x53, 0xca)), (0x1d, 0x8f));
        for value in 1..=255 {
            assert_eq!(product(value, inverse(value)), 1, "{value}");
            assert_eq!(product(value, 1), value);
        }
        // By long multiplication.
        let slow = |one: u8, other: u8| {
            let bits = (0..8).filter(|bit| other >> bit & 1 != 0);
            let sum = bits.fold(0_u16, |sum, bit| sum ^ u16::from(one) << bit);
            (8..16).rev().fold(sum, |sum, bit| {
                if sum >> bit & 1 != 0 { sum ^ POLYNOMIAL << (bit - 8) } else { sum }
            }) as u8
        };
        for one in 0..=255 {
            (0..=255).for_each(|other| assert_eq!(product(one, other), slow(one, other)));
        }
    }

    #[test]
    fn the_first_parity_is_the_sum() {
        assert!((0..MOST_PACKETS).all(|packet| factor(0, packet) == 1));
        assert_eq!([factor(1, 0), factor(1, 1), factor(7, 63)], [0x9c, 0xac, 0x83]);
    }

    proptest! {
        #[test]
        fn as_many_parities_as_packets_are_missing_bring_them_back(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 40), 1..=MOST_PACKETS),
            parities in 1..=MOST_PARITIES,
            order in any::<[prop::sample::Index; 16]>(),
        ) {
            let encoded = |parity: usize| {
                let mut sum = vec![0; 40];
                let all = packets.iter().enumerate();
                all.for_each(|(at, packet)| add(&mut sum, packet, factor(parity, at)));
                (parity, sum)
            };
            let mut left: Vec<(usize, Vec<u8>)> = (0..parities).map(encoded).collect();
            let mut missing: Vec<usize> = Vec::new();
            for index in &order[..parities.min(packets.len())] {
                let packet = index.index(packets.len());
                if !missing.contains(&packet) {
                    missing.push(packet);
                }
            }
            // Of the parities some are lost, too.
            left.rotate_left(order[15].index(parities));
            left.truncate(missing.len());
            for (parity, sum) in &mut left {
                for (at, packet) in packets.iter().enumerate().filter(|(at, _)| !missing.contains(at)) {
                    add(sum, packet, factor(*parity, at));
                }
            }
            let found = solve(&missing, &mut left.clone()).expect("enough parities");
            let expected: Vec<_> = missing.iter().map(|packet| packets[*packet].clone()).collect();
            prop_assert_eq!(found, expected);
            left.pop();
            prop_assert_eq!(solve(&missing, &mut left), None, "one parity too few");
        }
    }
}
