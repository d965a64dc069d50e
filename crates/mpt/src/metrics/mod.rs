//! What the daemon knows about itself, for Prometheus.
//!
//! [`page()`] turns a status into the text that Prometheus reads; [`Exporter`](exporter::Exporter) hands it out over HTTP
//! to whoever asks on a loopback address. The exporter is a guest in somebody else's loop: it waits
//! on their `Poll` and never blocks; [`Pages`] has one exactly while the settings want one. [`http`] is as much of HTTP/1.1 as one page needs, [`client`]
//! one connection of it.

mod client;
mod exporter;
mod family;
mod http;
mod page;
mod pages;

#[cfg(test)]
mod tests;

pub(crate) use page::page;
pub(crate) use pages::Pages;
