//! What a lost packet costs where the reorder buffer waits for it.
//!
//! Without early release the tunnel stands still from the first packet behind a gap until the maximum
//! delay is over, or until the window is full. That happens in the direction of the data for each lost
//! segment, and in the other for each lost acknowledgement, and losses that fall into one stand-still
//! share it. So of every 1/p segments that pass at the full rate R, one stops the tunnel:
//!
//! ```text
//! goodput = L·N / (N/R + H·(1 + N·a·p_back)),  N = 1/p, a = acknowledgements per segment (1/2)
//! ```

use crate::cell::Reorder;

/// Acknowledgements per segment (RFC 5681 section 4.2).
const ACKNOWLEDGEMENTS: f64 = 0.5;

/// The most that a flow of `segment` bytes gets out of a tunnel of capacity `bound`, in bit/s of payload,
/// where a share `there` of the segments and `back` of the acknowledgements is lost.
pub(super) fn goodput(bound: f64, segment: usize, there: f64, back: f64, reorder: &Reorder) -> f64 {
    let bits = segment as f64 * 8.0;
    // A full window ends a stand-still, too; but what the sender's window lets through is less.
    let filled = f64::from(reorder.window) * bits / bound;
    let hold = reorder.max_delay.min(filled);
    let stalls_per_segment = there + ACKNOWLEDGEMENTS * back;
    bits / (bits / bound + hold * stalls_per_segment)
}
