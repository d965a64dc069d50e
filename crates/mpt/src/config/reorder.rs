//! Receive-side ordering: how long packets wait for those before them.

use std::time::Duration;

use super::report::Problems;
use super::table::Table;
use super::written::Written;
use super::{PeerKind, Scheduler, keys, value};

/// Receive-side ordering of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reorder {
    /// Most packets held, 0 to [`Reorder::MAX_WINDOW`]; 0 = deliver as they come.
    pub(crate) window: u32,
    /// Longest time a packet is held, 0 to [`Reorder::MAX_DELAY`].
    pub(crate) max_delay: Duration,
    /// Whether a gap is given up once every live path has delivered a higher number.
    pub(crate) early_release: bool,
    /// What becomes of a packet that comes after its place was given up.
    pub(crate) late: Late,
}

impl Reorder {
    /// Largest window in packets.
    pub(crate) const MAX_WINDOW: u32 = mpt_proto::MAX_WINDOW;

    /// Largest maximum delay. What waits longer has been sent again by any transport.
    pub(crate) const MAX_DELAY: Duration = Duration::from_secs(60);

    /// What is done where the file says nothing.
    ///
    /// With [`Scheduler::Flow`] nothing is held: a flow keeps to one path and so keeps its order by
    /// itself, and waiting would only let the flows of a slow path delay those of a fast one. The
    /// window is about what the *peer* sends; both ends are taken to use the same scheduler, and
    /// where they do not the file of the one that receives striped packets has to name a window.
    ///
    /// Nor is anything held of an endpoint that speaks nothing but GRE: nothing announces that it has begun
    /// anew, so a window would take its first packets for copies of old ones.
    pub(crate) fn default_for(scheduler: Scheduler, peer_kind: PeerKind) -> Self {
        match (scheduler, peer_kind) {
            (Scheduler::Weighted, PeerKind::Mpt | PeerKind::Original) => Self::default(),
            (Scheduler::Flow, _) | (_, PeerKind::Gre) => Self { window: 0, ..Self::default() },
        }
    }

    /// The values by the keys that they have in the file, as they are written there.
    pub(super) fn entries(self) -> [(&'static str, String); 4] {
        [
            ("window", self.window.written()),
            ("max_delay", self.max_delay.written()),
            ("early_release", self.early_release.written()),
            ("late", self.late.written()),
        ]
    }
}

impl Default for Reorder {
    /// What the core does when nobody says otherwise.
    fn default() -> Self {
        let core = mpt_proto::ReorderConfig::default();
        Self {
            window: core.window,
            max_delay: core.max_delay,
            early_release: core.early_release,
            late: match core.late {
                mpt_proto::Late::Deliver => Late::Deliver,
                mpt_proto::Late::Drop => Late::Drop,
            },
        }
    }
}

/// What becomes of a packet that comes after its place was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// Deliver it out of order.
    Deliver,
    /// Drop it.
    Drop,
}

/// The ordering of the connection in `table`, or `None` with what is wrong noted. `default` is what is
/// done where it says nothing.
pub(super) fn read(
    table: &Table<'_>,
    default: Reorder,
    problems: &mut Problems,
) -> Option<Reorder> {
    let Some(table) = table.table("reorder", &keys::REORDER, problems).ok()? else {
        return Some(default);
    };
    let window =
        table.optional("window", default.window, problems, value::integer(0..=Reorder::MAX_WINDOW));
    let max_delay = table.optional(
        "max_delay",
        default.max_delay,
        problems,
        value::seconds(Duration::ZERO..=Reorder::MAX_DELAY, None),
    );
    let early_release =
        table.optional("early_release", default.early_release, problems, value::flag);
    let late = table.optional(
        "late",
        default.late,
        problems,
        value::one_of(&[("deliver", Late::Deliver), ("drop", Late::Drop)]),
    );
    table.finish(problems);
    Some(Reorder {
        window: window?,
        max_delay: max_delay?,
        early_release: early_release?,
        late: late?,
    })
}
