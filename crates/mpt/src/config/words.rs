//! What has a few named values.

use super::written::words;

/// A named set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The best that there is: classic.
    Auto,
    /// Weights, a reorder window and a maximum delay.
    Classic,
}

words! { Profile: "auto" = Auto, "classic" = Classic }

/// The policy that chooses a path per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    /// Every packet by itself, by the paths' weights.
    Weighted,
    /// All packets of a flow on one path, flows by the paths' weights.
    Flow,
}

words! { Scheduler: "weighted" = Weighted, "flow" = Flow }
