//! What the bytes between two peers look like, and what has to be inferred because they do not say it.
//!
//! [`plain`] is GRE in UDP as RFC 8086 has it: it interoperates, and says little.

pub(crate) mod plain;
