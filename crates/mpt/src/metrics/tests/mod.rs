//! The page as a whole, and the exporter over real sockets.

mod format;
mod pages;
mod readers;
mod served;
