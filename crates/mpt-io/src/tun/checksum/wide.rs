//! Sums with registers of 32 bytes (AVX2). Those of 64 bytes were slower, and so were add-with-carry
//! chains; what the compiler makes of the plain sum takes a third more operations.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_extract_epi64, _mm256_loadu_si256, _mm256_setzero_si256,
    _mm256_srli_epi64, _mm256_storeu_si256,
};

use super::narrow;

/// Bytes in a register.
type Block = [u8; 32];

/// The sum of `bytes`.
#[target_feature(enable = "avx2")]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks();
    let (pairs, last) = blocks.as_chunks();
    let (mut even_lanes, mut odd_lanes) = (Lanes::new(), Lanes::new());
    for [even, odd] in pairs {
        even_lanes.add(load(even));
        odd_lanes.add(load(odd));
    }
    if let [last] = last {
        even_lanes.add(load(last));
    }
    even_lanes.and(&odd_lanes).total() + narrow::sum(rest)
}

/// The sum of `bytes`, which are copied to `place` in the same pass.
///
/// # Panics
///
/// If the lengths differ, or are less than a register.
#[target_feature(enable = "avx2")]
pub(super) fn copy(bytes: &[u8], place: &mut [u8]) -> u64 {
    assert_eq!(bytes.len(), place.len(), "a place is as long as what it is for");
    let (blocks, rest) = bytes.as_chunks();
    let (pairs, last) = blocks.as_chunks();
    let (mut even_lanes, mut odd_lanes) = (Lanes::new(), Lanes::new());
    let (pair_places, last_place) = place.as_chunks_mut().0.as_chunks_mut();
    for ([even_place, odd_place], [even, odd]) in pair_places.iter_mut().zip(pairs) {
        let (even, odd) = (load(even), load(odd));
        store(even_place, even);
        store(odd_place, odd);
        even_lanes.add(even);
        odd_lanes.add(odd);
    }
    if let ([last_place], [last]) = (last_place, last) {
        let last = load(last);
        store(last_place, last);
        even_lanes.add(last);
    }
    let total = even_lanes.and(&odd_lanes).total() + narrow::sum(rest);
    // What is left behind the blocks, and some bytes before it once more.
    let ends = (bytes.last_chunk(), place.last_chunk_mut());
    let (Some(end), Some(end_place)) = ends else { panic!("at least one block") };
    store(end_place, load(end));
    total
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(block: &Block) -> __m256i {
    // SAFETY: a block has the 32 bytes that are read, and they need no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(place: &mut Block, block: __m256i) {
    // SAFETY: a block has the 32 bytes that are written, and they need no alignment.
    unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), block) }
}

/// Sums of 64-bit words, four side by side.
///
/// Of every word the upper half is added up apart, and the whole without regard to overflow: what
/// the lower halves come to is the difference. That takes one operation less than to separate the
/// halves. Neither sum of halves overflows within 2^32 words.
struct Lanes {
    whole: __m256i,
    upper: __m256i,
}

impl Lanes {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new() -> Self {
        Self { whole: _mm256_setzero_si256(), upper: _mm256_setzero_si256() }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(&mut self, words: __m256i) {
        self.whole = _mm256_add_epi64(self.whole, words);
        self.upper = _mm256_add_epi64(self.upper, _mm256_srli_epi64::<32>(words));
    }

    /// What both come to together.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn and(&self, other: &Self) -> Self {
        Self {
            whole: _mm256_add_epi64(self.whole, other.whole),
            upper: _mm256_add_epi64(self.upper, other.upper),
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn total(&self) -> u64 {
        let across = |lanes| {
            let lanes = [
                _mm256_extract_epi64::<0>(lanes),
                _mm256_extract_epi64::<1>(lanes),
                _mm256_extract_epi64::<2>(lanes),
                _mm256_extract_epi64::<3>(lanes),
            ];
            lanes.iter().fold(0_u64, |sum, lane| sum.wrapping_add(*lane as u64))
        };
        let upper = across(self.upper);
        across(self.whole).wrapping_sub(upper << 32) + upper
    }
}
