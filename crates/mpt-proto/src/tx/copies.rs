//! What was told by feedback and is told again: see [`feedback_copy`](super::feedback_copy).

use std::time::Duration;

use crate::id::PathId;
use crate::path::MAX_FEEDBACK_GAP;
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

/// A feedback that tells a loss is copied if none follows for so long.
const ALONE: Duration = Duration::from_millis(5);

/// What was told and not copied.
#[derive(Debug, Default)]
pub(super) struct FeedbackCopies {
    /// The last block of each path.
    blocks: Vec<Block>,
    /// When the first of them was sent, and the last, and the path that the last was sent on.
    sent: Option<(Instant, Instant, PathId)>,
    /// Whether one of them tells a loss.
    tells_loss: bool,
    /// Whether one is to be copied at once: a path is quiet, which may be the one that feedback goes by.
    hurries: bool,
    /// How many datagrams each path had lost by its last block, by path id.
    lost: Vec<(u8, u32)>,
}

impl FeedbackCopies {
    /// Feedback with these blocks is sent on a path.
    pub(super) fn on_sent(&mut self, now: Instant, path: PathId, blocks: &[Block]) {
        for block in blocks {
            match self.blocks.iter_mut().find(|it| it.path == block.path) {
                Some(before) => *before = *block,
                None => self.blocks.push(*block),
            }
            match self.lost.iter_mut().find(|(path, _)| *path == block.path) {
                Some((_, lost)) => {
                    self.tells_loss |= std::mem::replace(lost, block.lost) != block.lost;
                }
                None => {
                    self.tells_loss |= block.lost > 0;
                    self.lost.push((block.path, block.lost));
                }
            }
        }
        self.sent = Some((self.sent.map_or(now, |(first, ..)| first), now, path));
    }

    /// The next feedback is to be told again at once.
    pub(super) fn hurry(&mut self) {
        self.hurries = true;
    }

    /// When they are to be told again.
    pub(super) fn due(&self) -> Option<Instant> {
        let (first, last, _) = self.sent?;
        if self.hurries {
            return Some(last);
        }
        let regular = first + MAX_FEEDBACK_GAP;
        Some(if self.tells_loss { regular.min(last + ALONE) } else { regular })
    }

    /// Takes what is to be told again, and on which path it was told last.
    pub(super) fn take(&mut self, now: Instant) -> Option<(PathId, Vec<Block>)> {
        self.due().filter(|at| *at <= now)?;
        (self.tells_loss, self.hurries) = (false, false);
        let (.., path) = self.sent.take()?;
        Some((path, std::mem::take(&mut self.blocks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn block(path: u8, highest: u32, lost: u32) -> Block {
        Block { path, highest, lost, ..Block::default() }
    }

    #[test]
    fn what_was_told_is_told_again_every_20_ms() {
        let mut copies = FeedbackCopies::default();
        assert_eq!(copies.due(), None);
        copies.on_sent(at(0), PathId(1), &[block(4, 10, 0)]);
        copies.on_sent(at(15), PathId(1), &[block(4, 30, 0), block(5, 3, 0)]);
        assert_eq!(copies.due(), Some(at(20)));
        assert!(copies.take(at(19)).is_none());
        let (path, blocks) = copies.take(at(20)).expect("copies");
        let told: Vec<_> = blocks.iter().map(|block| (block.path, block.highest)).collect();
        assert_eq!((path, told), (PathId(1), vec![(4, 30), (5, 3)]));
        assert_eq!(copies.due(), None);
    }

    #[test]
    fn that_a_path_is_quiet_is_told_twice_at_once() {
        let mut copies = FeedbackCopies::default();
        copies.on_sent(at(0), PathId(1), &[block(4, 10, 0)]);
        copies.hurry();
        copies.on_sent(at(3), PathId(1), &[block(4, 12, 0)]);
        let (_, blocks) = copies.take(at(3)).expect("copies");
        assert_eq!(blocks[0].highest, 12);
        copies.on_sent(at(8), PathId(1), &[block(4, 20, 0)]);
        assert_eq!(copies.due(), Some(at(28)), "once");
    }

    #[test]
    fn a_loss_is_told_again_if_nothing_follows() {
        let mut copies = FeedbackCopies::default();
        copies.on_sent(at(0), PathId(1), &[block(4, 10, 2)]);
        assert_eq!(copies.due(), Some(at(5)));
        copies.on_sent(at(4), PathId(1), &[block(4, 20, 2)]);
        assert_eq!(copies.due(), Some(at(9)), "it was repeated meanwhile");
        copies.take(at(9));
        copies.on_sent(at(10), PathId(1), &[block(4, 30, 2)]);
        assert_eq!(copies.due(), Some(at(30)), "the loss is known");
    }
}
