//! The core from outside, all in one program: each more would be linked with everything again.
//!
//! ```console
//! $ cargo test -p mpt-proto --test suite endpoint::
//! ```

mod adversity;
mod again;
mod change;
mod clients;
mod defects;
mod document;
mod endpoint;
mod forged;
mod hostile;
mod independent;
mod invite;
mod kinds;
mod many;
mod mapping;
mod original;
mod pair;
mod probes;
mod runs;
mod sealed;
mod split;
mod strangers;
mod vectors;
mod vectors_extended;
mod weights;
