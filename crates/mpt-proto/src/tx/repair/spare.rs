//! How many bytes may be sent beyond inner packets because of a path.

/// What may be sent again of each byte that is sent: so much always, and so much of the share that is lost. A first repair
/// on two paths takes all of the latter.
const ALWAYS: f64 = 0.03;
const OF_LOSS: f64 = 2.0;
const AT_MOST: f64 = 0.15;

/// What may be saved up, in bytes: what the queue of an access link loses while the first transfer finds out what the link carries.
const SAVED: f64 = (512 << 10) as f64;

/// What duplicates, parity and second copies of what is sent again leave of that.
const FOR_REPAIRS: f64 = SAVED - (64 << 10) as f64;

/// The bytes that may be sent again of what one path has lost, and as duplicates of what it carries.
#[derive(Debug)]
pub(crate) struct Spare {
    bytes: f64,
    /// What is saved up of each byte that is sent.
    share: f64,
}

impl Default for Spare {
    fn default() -> Self {
        Self { bytes: SAVED, share: ALWAYS }
    }
}

impl Spare {
    /// The path loses this share of datagrams.
    pub(in crate::tx) fn set_loss(&mut self, loss: f64) {
        self.share = (ALWAYS + OF_LOSS * loss).min(AT_MOST);
    }

    /// A packet was sent on the path.
    #[inline]
    pub(in crate::tx) fn on_sent(&mut self, bytes: usize) {
        self.bytes = (self.bytes + bytes as f64 * self.share).min(SAVED);
    }

    /// Whether so many bytes may be sent for something that is lost; if so they count.
    pub(in crate::tx) fn take(&mut self, bytes: usize) -> bool {
        self.take_down_to(0.0, bytes)
    }

    /// The same for something that may never be missed, or is sent again already: what repairs need is left to them.
    pub(in crate::tx) fn take_beside_repairs(&mut self, bytes: usize) -> bool {
        self.take_down_to(FOR_REPAIRS, bytes)
    }

    fn take_down_to(&mut self, least: f64, bytes: usize) -> bool {
        let has = self.bytes >= least + bytes as f64;
        if has {
            self.bytes -= bytes as f64;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_take_a_share_that_follows_the_loss() {
        for (loss, expected) in [(0.0, 0.03), (0.02, 0.07), (0.3, 0.15)] {
            let mut spare = Spare::default();
            assert!(spare.take(SAVED as usize) && !spare.take(1));
            spare.set_loss(loss);
            (0..500).for_each(|_| spare.on_sent(1000));
            let taken = (0..).take_while(|_| spare.take(100)).count() * 100;
            let share = taken as f64 / 5e5;
            assert!((expected - 0.0003..=expected).contains(&share), "{loss}: {share}");
        }
    }

    #[test]
    fn what_may_never_be_missed_leaves_most_for_repairs() {
        let mut spare = Spare::default();
        let [left, rest] = [FOR_REPAIRS, SAVED - FOR_REPAIRS].map(|bytes| bytes as usize);
        assert!(left > rest && spare.take_beside_repairs(rest) && !spare.take_beside_repairs(1));
        assert!(spare.take(left) && !spare.take(1));
    }

    #[test]
    fn no_more_is_saved_up_than_a_queue_that_overflows() {
        let mut spare = Spare::default();
        (0..100_000).for_each(|_| spare.on_sent(1500));
        assert!(spare.take(SAVED as usize) && !spare.take(1));
    }
}
