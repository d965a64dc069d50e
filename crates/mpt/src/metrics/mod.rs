//! The daemon's status for Prometheus.
//!
//! [`page()`] turns a status into the text that Prometheus reads; [`Exporter`](exporter::Exporter) serves it
//! over HTTP on a loopback address, from a bounded [`server`](crate::server) in the main thread's loop;
//! [`Pages`] has one exactly while the settings want one. A page is in one of two formats, as the request
//! accepts them ([`Format`]).

mod exporter;
mod family;
mod format;
mod page;
mod pages;
mod repair;

#[cfg(test)]
mod tests;

pub(crate) use format::Format;
pub(crate) use page::page;
pub(crate) use pages::Pages;
