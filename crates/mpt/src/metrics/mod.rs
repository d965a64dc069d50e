//! The daemon's status for Prometheus.
//!
//! [`page()`] turns a status into the text that Prometheus reads; [`Exporter`](exporter::Exporter) serves it
//! over HTTP on a loopback address, from a bounded [`server`](crate::server) in the main thread's loop;
//! [`Pages`] has one exactly while the settings want one. [`http`] is as much of HTTP/1.1 as one page needs.

mod exporter;
mod family;
mod http;
mod page;
mod pages;

#[cfg(test)]
mod tests;

pub(crate) use page::page;
pub(crate) use pages::Pages;
