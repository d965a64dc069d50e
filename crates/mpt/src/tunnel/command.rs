//! What a running tunnel is asked to do by other threads.

use std::sync::mpsc::Sender;

use mpt_control::{Explanation, TraceMark, TunnelStatus};

use super::op::{LastHeard, TraceAnswer, TunnelOp, Volume};

/// What a tunnel is asked to do by other threads.
pub(super) enum Command {
    /// To be answered when all that was asked before is done.
    Sync(Sender<()>),
    Status(Sender<TunnelStatus>),
    Explain {
        connection: Option<String>,
        reply: Sender<Vec<Explanation>>,
    },
    Trace {
        connection: Option<String>,
        after: Option<TraceMark>,
        reply: Sender<TraceAnswer>,
    },
    LastHeard(Sender<Vec<LastHeard>>),
    /// What the paths with a quota have carried.
    Volumes(Sender<Vec<Volume>>),
    // The largest of them, and the rarest.
    TunnelOp(Box<TunnelOp>),
    Stop,
}
