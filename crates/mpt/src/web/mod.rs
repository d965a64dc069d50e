//! A page for people who would rather look: what each path does, as it does it.
//!
//! [`Web`] serves it while the settings want it, on a loopback address or a Unix socket, from a bounded
//! [`server`](crate::server) in the main thread's loop. There are three resources ([`site`]): the page, which is
//! one file with everything in it ([`page`]); the events, in which the daemon says every second what there is to
//! see ([`snapshot`]); and changes of paths, for those who have the [`token`]. What a browser sends on behalf of
//! another site is refused ([`guard`]). Where the daemon's status comes from is the owner's ([`Backend`]).

mod guard;
mod page;
mod serving;
mod site;
mod snapshot;
#[cfg(test)]
mod tests;
mod token;

use mpt_control::{Explanation, Reply, Request, Status};

pub(crate) use serving::Web;
pub(crate) use token::Token;

/// The daemon, as far as the page shows or changes it.
pub(crate) trait Backend {
    /// What there is.
    fn status(&mut self) -> Status;

    /// Why packets went where they went, or why that cannot be said.
    fn explain(&mut self) -> Result<Vec<Explanation>, String>;

    /// Whether changes are allowed to a client that sends this.
    fn allows(&self, token: &str) -> bool;

    /// Executes a request.
    fn change(&mut self, request: Request) -> Reply;
}
