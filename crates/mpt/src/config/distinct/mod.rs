//! What must differ between tunnels, connections and paths.
//!
//! The reader of a value claims it here with its place; the second to claim the same is a problem
//! that shows both places. [`names`], [`inner`] addresses, [`sockets`] and [`templates`] each check
//! one kind of conflict.

mod inner;
mod names;
mod sockets;
mod templates;

use std::net::IpAddr;
use std::ops::Range;

use toml::Spanned;

use super::report::{Problem, Problems};
use super::{Match, Prefix};

pub(super) use names::{Names, claim_name};
pub(super) use sockets::{Device, Origin, Reception, Socket};
pub(super) use templates::Template;

use inner::Inner;
use sockets::{Sockets, User};
use templates::Templates;

/// What must differ within the whole file.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    tunnels: Names,
    /// Of connections and of templates.
    connections: Names,
    /// Of templates alone, in the order of the file.
    template_names: Vec<(String, Range<usize>)>,
    inner: Inner,
    sockets: Sockets,
    templates: Templates,
    interfaces: Vec<(String, Range<usize>)>,
    /// Addresses outside the tunnel, each with what it is.
    outer: Vec<(IpAddr, Range<usize>, &'static str)>,
    tunnel_count: usize,
    connection_count: usize,
}

impl Distinct {
    /// What is claimed from here on belongs to a further tunnel.
    pub(super) fn next_tunnel(&mut self) {
        self.tunnel_count += 1;
    }

    /// What is claimed from here on belongs to a further connection.
    pub(super) fn next_connection(&mut self) {
        self.connection_count += 1;
    }

    /// The name of a tunnel.
    pub(super) fn tunnel(&mut self, name: &str, span: Range<usize>, problems: &mut Problems) {
        claim_name(&mut self.tunnels, "tunnel", "the file", name, span, problems);
    }

    /// The name of a connection. It names the connection without its tunnel on the command line.
    pub(super) fn connection(&mut self, name: &str, span: Range<usize>, problems: &mut Problems) {
        claim_name(&mut self.connections, "connection", "the file", name, span, problems);
    }

    /// The name of a template.
    pub(super) fn template_name(
        &mut self,
        name: &str,
        span: Range<usize>,
        problems: &mut Problems,
    ) {
        self.template_names.push((name.to_owned(), span.clone()));
        if let Some(first) = self.connections.claim(name.to_owned(), &span) {
            problems.push(
                Problem::new(format!("duplicate template name `{name}`"), span)
                    .label("used again here")
                    .other(first, "used first here")
                    .help("give each connection and each template of the file a unique name"),
            );
        }
    }

    /// An own tunnel address.
    pub(super) fn own(&mut self, addr: IpAddr, span: Range<usize>, problems: &mut Problems) {
        self.inner.own(addr, span, problems);
    }

    /// The tunnel addresses of the connection's peer. `selector`, which stands at `match_span`, is
    /// missing if it is faulty.
    pub(super) fn peer(
        &mut self,
        addresses: &[Spanned<IpAddr>],
        selector: &Option<Option<Match>>,
        match_span: Range<usize>,
        problems: &mut Problems,
    ) {
        let here = (self.tunnel_count, self.connection_count);
        self.inner.peer(here, addresses, selector, match_span, problems);
    }

    /// A network behind the peer of the connection, which has been claimed.
    pub(super) fn network(&mut self, network: Prefix, span: Range<usize>, problems: &mut Problems) {
        self.inner.network(self.connection_count, network, span, problems);
    }

    /// How a path is recognised when a datagram arrives; says whether all is well.
    pub(super) fn reception(
        &mut self,
        reception: Reception,
        span: Range<usize>,
        problems: &mut Problems,
    ) -> bool {
        let here = self.tunnel_count;
        self.sockets.claim(&reception.socket, here, User::Path, &span, problems)
            && self.sockets.reception(reception, &span, problems)
    }

    /// The socket for the commands that concern a path; says whether all is well.
    pub(super) fn commands(
        &mut self,
        socket: &Socket,
        span: Range<usize>,
        problems: &mut Problems,
    ) -> bool {
        self.sockets.claim(socket, self.tunnel_count, User::Commands, &span, problems)
    }

    /// On what socket and for whom a template is; says whether all is well.
    pub(super) fn template(
        &mut self,
        template: Template<'_>,
        span: Range<usize>,
        problems: &mut Problems,
    ) -> bool {
        let here = self.tunnel_count;
        self.sockets.claim(&template.socket, here, User::Template, &span, problems)
            && self.templates.claim(template, problems)
    }

    /// The interface that a path or template is bound to.
    pub(super) fn interface(&mut self, name: &str, span: Range<usize>) {
        self.interfaces.push((name.to_owned(), span));
    }

    /// An address outside the tunnel that is reached by the host's routes; `what` is it.
    pub(super) fn outer(&mut self, addr: IpAddr, span: Range<usize>, what: &'static str) {
        self.outer.push((addr, span, what));
    }

    /// Checks that need all tunnels.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (name, span) in &self.interfaces {
            if let Some(tunnel) = self.tunnels.place(name) {
                problems.push(
                    Problem::new(format!("a path goes through the tunnel `{name}`"), span.clone())
                        .label("the device of a tunnel")
                        .other(tunnel.clone(), "this one")
                        .help("bind the path to the interface that leads to the network"),
                );
            }
        }
        self.swallowed(problems);
        self.templates_and_connections(problems);
    }

    /// What leads to a network behind a peer leads into the tunnel, and so would the tunnel's own
    /// datagrams. A default route does not: the main table's routes go before it for these.
    fn swallowed(&self, problems: &mut Problems) {
        for (addr, span, what) in &self.outer {
            if let Some((network, place)) = self.inner.network_of(*addr) {
                problems.push(
                    Problem::new(format!("network `{network}` holds an address outside the tunnel"), place)
                        .label("all of this goes into the tunnel")
                        .other(span.clone(), what.to_string())
                        .help("the tunnel's own datagrams would go into the tunnel: give the path an `interface`, take a smaller network, or a default route: \"0.0.0.0/0\" or \"::/0\""),
                );
            }
        }
    }

    /// A connection that a template makes is called after it, with a hyphen.
    fn templates_and_connections(&self, problems: &mut Problems) {
        for (template, place) in &self.template_names {
            let made = |name: &str| {
                name.strip_prefix(template.as_str()).is_some_and(|rest| rest.starts_with('-'))
            };
            let taken = self.connections.iter().filter(|(name, span)| {
                made(name) && !self.template_names.iter().any(|(_, other)| other == *span)
            });
            for (name, span) in taken {
                problems.push(
                    Problem::new(
                        format!("connection `{name}` has a name of accepted connections"),
                        span.clone(),
                    )
                    .label(format!("begins with `{template}-`"))
                    .other(place.clone(), "as do connections of this template")
                    .help("give the connection or the template another name"),
                );
            }
        }
    }
}
