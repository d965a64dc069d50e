//! The glance and the rules agree on any neighbour of the next packet.

use proptest::prelude::*;
use proptest::sample::Index;

use super::{Field, SPAN};
use crate::tun::checksum::Sum;
use crate::tun::inner::{DF, IPV4_LEN, IPV6_LEN, PSH, be16, put16, put32};
use crate::tun::inner::{Protocol, Transport, Version};
use crate::tun::merge::{Candidate, Identification};
use crate::tun::stage::{Extension, Stage};

/// A run and what it consists of.
#[derive(Clone, Debug)]
struct Sent {
    transport: Transport,
    options: usize,
    size: usize,
    packets: usize,
    counted: bool,
    fragmentable: bool,
}

/// What makes a packet another one than the next of a run.
#[derive(Clone, Debug)]
enum Edit {
    Header(Index, u8),
    Flip(Index, u8),
    Length(Index),
    Longer,
    Push,
    Ahead(u16),
    /// A payload whose checksum is zero, and whether the field contains all ones for it.
    Zero(bool),
}

impl Sent {
    fn headers_len(&self) -> usize {
        let options = if self.transport.protocol == Protocol::Tcp { 12 + self.options } else { 0 };
        self.transport.start + 8 + options
    }

    fn packet(&self, number: usize) -> Vec<u8> {
        let Transport { version, protocol, start } = self.transport;
        let len = self.headers_len() + self.size;
        let mut packet: Vec<u8> = (0..len).map(|i| (i * 29 + number * 7) as u8).collect();
        packet[..start].fill(9);
        match version {
            Version::V4 => {
                packet[..2].copy_from_slice(&[0x45, 2]);
                put16(&mut packet, 2, len as u16);
                let number = if self.counted { number as u16 } else { 0 };
                put16(&mut packet, 4, 0xfffe_u16.wrapping_add(number));
                put16(&mut packet, 6, if self.fragmentable { 0 } else { DF });
                packet[9] = protocol.number();
            }
            Version::V6 => {
                packet[..4].copy_from_slice(&[0x60, 1, 2, 3]);
                put16(&mut packet, 4, (len - IPV6_LEN) as u16);
                packet[6] = protocol.number();
            }
        }
        let header = &mut packet[start..];
        header[..4].copy_from_slice(&[1, 2, 3, 4]);
        match protocol {
            Protocol::Tcp => {
                header[8..20 + self.options].fill(1);
                let sequence = u32::MAX - 1000;
                put32(header, 4, sequence.wrapping_add((number * self.size) as u32));
                header[12] = ((20 + self.options) * 4) as u8;
                header[13] = 0x10;
            }
            Protocol::Udp => put16(header, 4, (len - start) as u16),
        }
        packet
    }

    /// Puts the checksums right.
    fn seal(&self, packet: &mut [u8], partial: bool) {
        let at = self.transport.field().at;
        if packet.len() < at + 2 {
            return;
        }
        if self.transport.version == Version::V4 {
            put16(packet, 10, 0);
            let checksum = Sum::of(&packet[..IPV4_LEN]).checksum();
            put16(packet, 10, checksum);
        }
        let len = packet.len() - self.transport.start;
        let pseudo_header = self.transport.pseudo_header(packet, len).partial();
        put16(packet, at, pseudo_header);
        if !partial {
            self.transport.field().complete(packet);
        }
    }

    fn apply(&self, edit: &Edit, packet: &mut Vec<u8>) {
        let start = self.transport.start;
        match *edit {
            Edit::Header(place, byte) => packet[place.index(self.headers_len())] = byte,
            Edit::Flip(place, bit) => {
                let place = place.index(packet.len());
                packet[place] ^= 1 << (bit % 8);
            }
            Edit::Length(place) => {
                packet.truncate(place.index(packet.len()));
                self.resize(packet);
            }
            Edit::Longer => {
                packet.push(1);
                self.resize(packet);
            }
            Edit::Push if self.transport.protocol == Protocol::Tcp => packet[start + 13] |= PSH,
            Edit::Push => {}
            Edit::Ahead(ahead) => {
                let identification = be16(packet, 4).unwrap();
                put16(packet, 4, identification.wrapping_add(ahead));
            }
            Edit::Zero(ones) => {
                let at = self.transport.field().at;
                let end = self.headers_len();
                if packet.len() < end + 2 {
                    return;
                }
                put16(packet, end, 0);
                self.seal(packet, false);
                let checksum = be16(packet, at).unwrap();
                put16(packet, end, checksum);
                self.seal(packet, false);
                put16(packet, at, if ones { 0xffff } else { 0 });
            }
        }
    }

    /// Makes the lengths in the headers that of the packet.
    fn resize(&self, packet: &mut [u8]) {
        let (len, start) = (packet.len(), self.transport.start);
        if len < start + 8 {
            return;
        }
        match self.transport.version {
            Version::V4 => put16(packet, 2, len as u16),
            Version::V6 => put16(packet, 4, (len - IPV6_LEN) as u16),
        }
        if self.transport.protocol == Protocol::Udp {
            put16(packet, start + 4, (len - start) as u16);
        }
    }

    /// A stage with all packets in it.
    fn stage(&self) -> Stage {
        let mut stage = Stage::new();
        for number in 0..self.packets {
            let mut packet = self.packet(number);
            self.seal(&mut packet, false);
            let candidate = Candidate::new(&packet).unwrap();
            if number == 0 {
                assert!(stage.begin(&candidate, false));
            } else {
                assert!(stage.is_continued_by(&candidate, Identification::Renumber));
                stage.add(&candidate);
            }
        }
        stage
    }

    /// Whether a packet of this run may have a simple form.
    fn is_plain(&self, packet: &[u8]) -> bool {
        packet.len() >= SPAN && self.headers_len() <= SPAN && self.packets > 1
    }
}

/// Field by field, what [`Stage::extend`] does at a glance.
fn extend_slowly(stage: &mut Stage, packet: &[u8], field: Field) -> Extension {
    let partial = match field {
        Field::Complete => false,
        Field::Partial => true,
        Field::Either => Transport::of_partial(packet).is_some(),
    };
    let candidate = Candidate::new(packet)
        .filter(|candidate| stage.is_continued_by(candidate, Identification::Renumber));
    match candidate {
        None => Extension::Unforeseen,
        Some(candidate) if !candidate.is_intact(partial) => Extension::Corrupt,
        Some(candidate) if stage.add(&candidate) => Extension::Last,
        Some(_) => Extension::Added,
    }
}

fn runs() -> impl Strategy<Value = Sent> {
    let versions = prop_oneof![Just((Version::V4, 20)), Just((Version::V6, 40))];
    let protocols = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)];
    let options = prop_oneof![2 => Just(12), 1 => (0..=10_usize).prop_map(|words| words * 4)];
    let rest = (1..200_usize, 1..6_usize, prop::bool::weighted(0.8), any::<bool>());
    (versions, protocols, options, rest).prop_map(
        |((version, start), protocol, options, (size, packets, counted, fragmentable))| Sent {
            transport: Transport { version, protocol, start },
            options,
            size,
            packets,
            counted,
            fragmentable: fragmentable && counted,
        },
    )
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Edit::Header(place, byte)),
        (any::<Index>(), any::<u8>()).prop_map(|(place, bit)| Edit::Flip(place, bit)),
        any::<Index>().prop_map(Edit::Length),
        Just(Edit::Longer),
        Just(Edit::Push),
        any::<u16>().prop_map(|ahead| Edit::Ahead(ahead % 5)),
        any::<bool>().prop_map(Edit::Zero),
    ];
    prop::collection::vec(edit, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_fast_path_agrees_with_the_rules(
        (run, edits) in (runs(), edits()),
        field in prop::sample::select(&[Field::Complete, Field::Partial, Field::Either][..]),
        (sealed_before, sealed_after, partial) in any::<(bool, bool, bool)>(),
    ) {
        let mut packet = run.packet(run.packets);
        if sealed_before {
            run.seal(&mut packet, partial);
        }
        for edit in &edits {
            // Others may have left too little of it.
            if packet.len() > run.headers_len() {
                run.apply(edit, &mut packet);
            }
        }
        if sealed_after {
            run.seal(&mut packet, partial);
        }
        let (mut fast, mut slow) = (run.stage(), run.stage());
        let expected = extend_slowly(&mut slow, &packet, field);
        let found = fast.extend(&packet, field);
        if found == Extension::Unforeseen {
            prop_assert!(expected == Extension::Unforeseen || !run.is_plain(&packet));
            extend_slowly(&mut fast, &packet, field);
        } else {
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(fast.take(), slow.take());
    }
}
