//! Ending a run from outside.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a program that SIGINT ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// A flag that ends a run as soon as it is seen, which takes a moment. Whatever the run made is
/// then taken down in order.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// The run was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; everything the lab made is removed")]
pub struct Interrupted;

impl Stop {
    /// A flag that SIGINT (Ctrl-C) and SIGTERM set. A second one of them ends the process at once; the
    /// kernel then takes down what the run made.
    ///
    /// # Errors
    ///
    /// The kernel refuses a signal handler.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and passes the first handler by.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop.0))?;
            flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An error once the flag is set.
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}
