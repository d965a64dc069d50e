use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

use zeroize::Zeroize;

use super::*;
use crate::sequence::Seq;
use crate::wire::extended::Flags;

const BYTES: [u8; 32] = [7; 32];
const BOTH: [Cipher; 2] = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

fn sealing(cipher: Cipher) -> SealingKey {
    KeyBytes::new(cipher, Zeroizing::new(BYTES)).key()
}

fn header(kind: Kind, path: u8, path_sequence: u32) -> Header {
    let sequence = (kind == Kind::Data).then_some(Seq::new(9));
    let flags = Flags::NONE;
    Header { key: 5, sequence, kind, flags, path, distance: 0, path_sequence, sent: 1 }
}

fn sealed(key: &mut SealingKey, header: &Header, text: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; header.size()];
    header.emit(&mut datagram);
    datagram.extend_from_slice(text);
    datagram.extend_from_slice(&[0; TAG_LEN]);
    key.seal(header, &mut datagram).expect("a number that was not used");
    datagram
}

#[test]
fn what_is_sealed_is_opened_and_not_legible_between() {
    for cipher in BOTH {
        let (mut seal, open) = (sealing(cipher), OpeningKey::new(cipher, &BYTES));
        for header in [header(Kind::Data, 3, 8), header(Kind::Close, 3, 8)] {
            let text = b"legible, and long enough not to be there by chance";
            let mut datagram = sealed(&mut seal, &header, text);
            assert!(!datagram.windows(8).any(|window| text.windows(8).any(|it| it == window)));
            open.open(&header, &mut datagram).expect("authentic");
            assert_eq!(&datagram[header.size()..][..text.len()], text);
        }
    }
}

#[test]
fn no_bit_can_be_changed() {
    for cipher in BOTH {
        let (mut seal, open) = (sealing(cipher), OpeningKey::new(cipher, &BYTES));
        let datagram = sealed(&mut seal, &header(Kind::Data, 3, 8), b"payload");
        for bit in 0..8 * datagram.len() {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // A header that is wrong, or has another length, is found out before.
            if let Ok(header) = Header::parse(&changed) {
                let opened = open.open(&header, &mut changed);
                assert_eq!(opened, Err(Drop::SealForged), "bit {bit}");
            }
        }
        let mut short = datagram[..39].to_vec();
        let header = header(Kind::Data, 3, 8);
        assert_eq!(open.open(&header, &mut short), Err(Drop::ExtendedTruncated));
    }
}

#[test]
fn no_number_seals_twice() {
    let mut key = sealing(Cipher::Aes256Gcm);
    let mut seal = |kind, path, number| {
        let header = header(kind, path, number);
        let mut datagram = vec![1; header.size() + TAG_LEN + 4];
        let result = key.seal(&header, &mut datagram);
        assert!(result.is_ok() || datagram.iter().all(|byte| *byte == 0), "it is not sent");
        result.is_ok()
    };
    assert!(seal(Kind::Data, 1, u32::MAX - 1));
    assert!(seal(Kind::Data, 1, 4), "the numbers wrap");
    for number in [4, 3, u32::MAX - 1, u32::MAX - 2] {
        assert!(!seal(Kind::Data, 1, number), "{number}");
        assert!(!seal(Kind::Feedback, 1, number), "messages and data share a space");
    }
    assert!(seal(Kind::Data, 2, 4));
    assert!(seal(Kind::PathChallenge, 1, 4) && !seal(Kind::Close, 2, 4), "one space on all paths");
}

#[test]
fn a_key_is_used_up() {
    let mut key = sealing(Cipher::Aes256Gcm);
    key.sealed.store(MOST_SEALED - 1, Ordering::Relaxed);
    sealed(&mut key, &header(Kind::Data, 0, 0), b"the last one");
    let (header, mut datagram) = (header(Kind::Data, 0, 1), [0; 60]);
    assert_eq!(key.seal(&header, &mut datagram), Err(Drop::SealExpired));
    assert_eq!(Usage(Arc::clone(&key.sealed)).count(), MOST_SEALED);
}

/// What is searched for is never in memory as it is, or it would find itself.
const MASK: u8 = 0x5a;

/// How often these bytes, which are masked, stand in what this process can write.
fn copies(masked: &[u8]) -> usize {
    let memory = File::open("/proc/self/mem").expect("Linux has it");
    let maps = read_to_string("/proc/self/maps").expect("Linux has it");
    let regions = maps.lines().filter(|line| line.contains(" rw")).filter_map(|line| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let address = |hex| u64::from_str_radix(hex, 16).ok();
        Some(address(from)?..address(to)?)
    });
    let mut page = vec![0; 4096 + masked.len() - 1];
    let mut found = 0;
    for start in regions.flat_map(|region| region.step_by(4096)) {
        let length = memory.read_at(&mut page, start).unwrap_or(0);
        let is_here =
            |at: &[u8]| at.iter().zip(masked).all(|(byte, masked)| byte ^ MASK == *masked);
        found += page[..length].windows(masked.len()).filter(|at| is_here(at)).count();
        page.fill(0);
    }
    found
}

#[test]
fn a_key_leaves_nothing_in_memory() {
    for cipher in BOTH {
        let mut key = [0; KEY_LEN];
        key.iter_mut().zip(0..).for_each(|(byte, at)| *byte = MASK ^ (cipher as u8 + 5 * at));
        let open = OpeningKey::new(cipher, &key);
        key.zeroize();
        let address = std::ptr::from_ref(&*open.0.0).addr() as u64;
        let mut masked = [0; size_of::<LessSafeKey>()];
        File::open("/proc/self/mem").unwrap().read_exact_at(&mut masked, address).unwrap();
        masked.iter_mut().for_each(|byte| *byte ^= MASK);
        // An allocator writes the first bytes of what is given back; and ChaCha20 has no more than its key.
        let masked = std::hint::black_box(&masked[16..32]);
        assert!(copies(masked) >= 1, "{cipher:?}: in use");
        drop(open);
        assert_eq!(copies(masked), 0, "{cipher:?}");
    }
}
