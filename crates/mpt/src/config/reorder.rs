//! Receive-side ordering: how long packets wait for those before them.

use std::time::Duration;

use mpt_proto::PeerKind;

use super::report::Problems;
use super::schema::{Tabled as _, settings};
use super::table::Table;
use super::words::Scheduler;
use super::written::{Written, words};
use super::{value, writer};

settings! {
    /// Receive-side ordering of a connection, where `default` holds unless the file says otherwise.
    #[derive(Copy)]
    Reorder "reorder", read as ReorderRead, with default: Reorder {
        /// Most packets held in the reorder buffer; 0 = deliver packets as they arrive.
        window: u32 = default(
            value::integer(0..=Reorder::MAX_WINDOW), default.window, "4096; with `\"flow\"` or `\"gre\"` 0"
        ), InPlace;
        /// Longest time a packet is held.
        max_delay: Duration = default(
            value::seconds(Duration::ZERO..=Reorder::MAX_DELAY, None), default.max_delay, "0.1"
        ), InPlace;
        /// Give up a gap as soon as every live path has delivered a higher sequence number.
        early_release: bool = default(value::flag, default.early_release, "true"), InPlace;
        /// What to do with a packet that arrives after its gap was given up: `"deliver"` or
        /// `"drop"`.
        late: Late = default(value::one_of(Late::WORDS), default.late, "`\"deliver\"`"), InPlace;
        /// Whether the file has `window` or `max_delay`, and so wants them to decide how long a packet
        /// waits, also where the peer's datagrams tell more.
        configured: bool = unsaid(false), Apart;
    }
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
    /// The window is also 0 for an RFC 8086 endpoint: it does not announce a restart, so a window
    /// would take its first packets for duplicates of old ones.
    pub(crate) fn default_for(scheduler: Scheduler, peer_kind: PeerKind) -> Self {
        match (scheduler, peer_kind) {
            (Scheduler::Flow, _) | (_, PeerKind::Gre) => Self { window: 0, ..Self::default() },
            (
                Scheduler::Weighted
                | Scheduler::Earliest
                | Scheduler::LowestRtt
                | Scheduler::Redundant,
                PeerKind::Mpt | PeerKind::Original,
            ) => Self::default(),
        }
    }
}

impl Default for Reorder {
    /// The default of the core.
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
            configured: false,
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

words! { Late: "deliver" = Deliver, "drop" = Drop }

/// The ordering of the connection in `table`, or `None` with what is wrong noted. `default` is what is
/// done where it says nothing.
pub(super) fn read(
    table: &Table<'_>,
    default: Reorder,
    problems: &mut Problems,
) -> Option<Reorder> {
    let Some(table) = table.table("reorder", &Reorder::KEYS, problems).ok()? else {
        return Some(default);
    };
    let mut reorder = Reorder::read(&table, default, problems);
    reorder.configured = Some(table.has("window") || table.has("max_delay"));
    table.finish(problems);
    reorder.whole()
}

/// Writes what differs from `default`, so that reading it gives the same.
pub(super) fn write(reorder: Reorder, default: Reorder, out: &mut writer::Writer) {
    let as_default = |of: Reorder| (of.window, of.max_delay);
    if reorder.configured && as_default(reorder) == as_default(default) {
        out.key("window", &reorder.window);
    }
    reorder.write(out, default);
}

impl Written for Reorder {
    fn written(&self) -> String {
        writer::whole(|out| self.write(out, *self))
    }
}
