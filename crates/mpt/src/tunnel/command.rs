//! What a running tunnel is asked to do by other threads.

use std::sync::mpsc::Sender;

use mpt_control::{Explanation, TraceMark, TunnelStatus};

use super::op::{LastHeard, TraceAnswer, TunnelOp};

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
    // The largest of them, and the rarest.
    TunnelOp(Box<TunnelOp>),
    Stop,
}
