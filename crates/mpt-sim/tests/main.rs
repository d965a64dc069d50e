//! The core on simulated links, all in one program: each more would be linked with everything again.
//!
//! Only `memory.rs` is apart, because it counts what its process allocates.
//!
//! ```console
//! $ cargo test -p mpt-sim --test suite repair::
//! ```

mod adaptive;
mod beginning;
mod beside;
mod black_hole;
mod breaker;
mod calls;
mod classes;
mod duplicate;
mod estimator;
mod fail_over;
mod links;
mod mapping;
mod measurement;
mod model;
mod mtu;
mod orders;
mod policed;
mod random;
mod repair;
mod sealed;
mod session;
mod shares;
mod stalled;
mod standing;
mod surcharge;
mod sweep;
mod volume;
mod world;
