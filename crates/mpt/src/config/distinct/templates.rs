//! Templates of connections: whom each accepts.

use std::ops::Range;

use toml::Spanned;

use super::sockets::Socket;
use crate::config::Prefix;
use crate::config::report::{Problem, Problems};

/// What assigns a connect request to a template.
#[derive(Clone, Debug)]
pub(in crate::config) struct Template<'p> {
    /// The socket it arrives on.
    pub(in crate::config) socket: Socket,
    /// Its GRE key.
    pub(in crate::config) key: Option<u32>,
    /// The tunnel addresses it may come from.
    pub(in crate::config) peers: &'p [Spanned<Prefix>],
}

/// All templates of the file.
#[derive(Debug, Default)]
pub(super) struct Templates(Vec<(Socket, Option<u32>, Prefix, Range<usize>)>);

impl Templates {
    /// Claims whom a template accepts, and says whether all is well.
    pub(super) fn claim(&mut self, template: Template<'_>, problems: &mut Problems) -> bool {
        let mut good = true;
        for peer in template.peers {
            let clash = self.0.iter().find(|(socket, key, prefix, _)| {
                (socket, *key) == (&template.socket, template.key)
                    && prefix.overlaps(*peer.get_ref())
            });
            if let Some((_, _, prefix, first)) = clash {
                good = false;
                problems.push(
                    Problem::new("two templates accept the same peer", peer.span())
                        .label(format!("overlaps `{prefix}` on the same socket, with the same key"))
                        .other(first.clone(), "accepted here")
                        .help("accept each peer by one template: split the prefixes, or let the templates differ in `key`, `local`, `interface` or `local_port`"),
                );
            }
        }
        let claims = template
            .peers
            .iter()
            .map(|peer| (template.socket.clone(), template.key, *peer.get_ref(), peer.span()));
        self.0.extend(claims.collect::<Vec<_>>());
        good
    }
}
