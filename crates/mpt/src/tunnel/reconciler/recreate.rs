//! A deleted interface, which is created again.
//!
//! Only addresses and routes are removed with the interface: sockets, connections, sequence numbers
//! and the order of packets belong to the tunnel's threads, which continue with another device.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Reconciler;
use crate::tunnel::interface::Interface;
use crate::tunnel::op::TunnelOp;
use crate::tunnel::open::open_device;

/// Between two times that the interface is created again, for a program that deletes it again and again.
const INTERVAL: Duration = Duration::from_secs(1);

/// When to create the interface again.
#[derive(Debug, Default)]
pub(super) struct Recreate {
    due: Option<Instant>,
    last: Option<Instant>,
    /// Why it could not be created.
    pub(super) failure: Option<String>,
}

impl Recreate {
    /// The interface is gone.
    pub(super) fn on_gone(&mut self, now: Instant) {
        let earliest = self.last.map_or(now, |last| (last + INTERVAL).max(now));
        self.due.get_or_insert(earliest);
    }

    /// When the interface is to be created again, if it is gone.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Whether to create it now. If so, the next time is at least [`INTERVAL`] later.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due.is_some_and(|at| at <= now);
        if due {
            (self.due, self.last) = (None, Some(now));
        }
        due
    }
}

impl Reconciler {
    /// Creates the interface again if it was deleted. If that cannot be done, the tunnel
    /// [fails](Self::failure).
    pub(super) fn recreate_if_due(&mut self, now: Instant) {
        if self.recreate.is_due(now)
            && let Err(error) = self.recreate_interface()
        {
            let failure =
                format!("its interface was deleted and cannot be created again: {error:#}");
            self.recreate.failure = Some(failure);
        }
    }

    fn recreate_interface(&mut self) -> anyhow::Result<()> {
        let device = Arc::new(open_device(&self.settings)?);
        // The rules of the one before lead nowhere and go with it.
        self.interface = Interface::new(device.index());
        self.handle.step(TunnelOp::SetDevice { device });
        // It has its MTU when the threads have answered.
        self.handle.await_steps();
        self.interface.bring_up(&self.settings.addresses)?;
        tracing::warn!(
            tunnel = self.settings.name,
            "the interface was deleted, but not by MPT: it is created again, with its addresses and routes"
        );
        // What stands in the way of a route is tried again when it may be gone.
        if let Err(error) = self.reconcile_routes() {
            tracing::warn!(tunnel = self.settings.name, "{error:#}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_made_at_once_and_then_once_in_a_second() {
        let start = Instant::now();
        let mut recreate = Recreate::default();
        assert!(!recreate.is_due(start) && recreate.deadline().is_none(), "it is there");
        recreate.on_gone(start);
        assert_eq!(recreate.deadline(), Some(start));
        assert!(recreate.is_due(start) && !recreate.is_due(start));
        let again = start + Duration::from_millis(300);
        recreate.on_gone(again);
        assert!(!recreate.is_due(again));
        assert_eq!(recreate.deadline(), Some(start + INTERVAL));
        assert!(recreate.is_due(start + INTERVAL));
        let later = start + 5 * INTERVAL;
        recreate.on_gone(later);
        assert!(recreate.is_due(later));
    }
}
