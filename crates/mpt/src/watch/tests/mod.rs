//! The picture and the keys, without a terminal.

mod keys;
mod pictures;
mod scene;
