//! How often each of some small numbers was seen.

/// Counts by number, the first of 0. There are up to a thousand, most of them small, so that an idle connection keeps
/// them [packed](Self::rest).
#[derive(Clone, Debug)]
pub(super) enum Histogram {
    Open(Vec<u64>),
    /// Each count in groups of 7 bits, the least significant first; in all but the last one the highest bit is set
    /// (LEB128).
    Packed(Box<[u8]>),
}

impl Default for Histogram {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Histogram {
    /// Adds to the count of a number.
    pub(super) fn add(&mut self, number: usize, count: u64) {
        let counts = self.open();
        if counts.len() <= number {
            counts.resize(number + 1, 0);
        }
        counts[number] += count;
    }

    /// All counts, up to the last that is not 0.
    pub(super) fn counts(&self) -> Vec<u64> {
        match self {
            Self::Open(counts) => counts.clone(),
            Self::Packed(bytes) => unpack(bytes),
        }
    }

    /// Gives back memory until the next one is added.
    pub(super) fn rest(&mut self) {
        if let Self::Open(counts) = self {
            *self = Self::Packed(pack(counts));
        }
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Open(counts) => counts.capacity() * size_of::<u64>(),
            Self::Packed(bytes) => bytes.len(),
        }
    }

    fn open(&mut self) -> &mut Vec<u64> {
        if let Self::Packed(bytes) = self {
            *self = Self::Open(unpack(bytes));
        }
        match self {
            Self::Open(counts) => counts,
            Self::Packed(_) => unreachable!("it was opened"),
        }
    }
}

fn pack(counts: &[u64]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(counts.len());
    for mut count in counts.iter().copied() {
        while count >= 0x80 {
            bytes.push(count as u8 | 0x80);
            count >>= 7;
        }
        bytes.push(count as u8);
    }
    bytes.into()
}

fn unpack(bytes: &[u8]) -> Vec<u64> {
    let ends = bytes.split_inclusive(|byte| byte & 0x80 == 0);
    ends.map(|groups| {
        groups.iter().rev().fold(0, |count, group| count << 7 | u64::from(group & 0x7f))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_same_after_a_rest() {
        let counts = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX, 0, 5];
        let mut histogram = Histogram::default();
        for (number, count) in counts.iter().enumerate() {
            histogram.add(number, *count);
        }
        histogram.rest();
        assert_eq!((histogram.counts(), histogram.memory()), (counts.to_vec(), 22));
        histogram.rest();
        histogram.add(8, 2);
        histogram.add(11, 1);
        assert_eq!(histogram.counts()[7..], [0, 7, 0, 0, 1]);
    }
}
