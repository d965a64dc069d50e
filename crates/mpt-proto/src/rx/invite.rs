//! Hellos of peers that nobody configured: whom a template permits is answered, and connected when he confirms.
//!
//! The answer names no connection, because none is made before somebody has proved to receive at his origin. With the
//! confirm there is one, whose own hello then begins the session.

use super::hello::meeting;
use super::side::Arrivals;
use crate::id::ConnectionId;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::hello::{Hello, VERSION};

impl Arrivals<'_> {
    /// Somebody without a connection asks for a session.
    pub(super) fn invite(&mut self, now: Instant, hello: &Hello) -> Result<(), Drop> {
        if !self.accepting.invites(self.origin, hello, self.local) {
            return Err(Drop::HelloUnknown);
        }
        self.answer_hello(now, hello, self.sessions.inviter, true);
        Ok(())
    }

    /// Somebody confirms such an answer: that is a connect request.
    pub(super) fn on_invited(&mut self, now: Instant, hello: &Hello) -> Result<(), Drop> {
        if hello.version != VERSION {
            return Err(Drop::HelloVersion);
        }
        let (at, own) = (self.at(), self.sessions.inviter.session);
        let is_valid = meeting(at, hello, own).is_valid(&self.sessions.secret, now, hello.cookie);
        if hello.echo != own || !is_valid {
            return Err(Drop::HelloCookie);
        }
        let connections = &*self.connections;
        // He repeats it until he has had the hello of his connection.
        let ids = self.sessions.greetable.get(&hello.sender).into_iter().flatten();
        if ids.filter_map(|id| connections.get(id.index())).any(|half| half.path_at(at).is_some()) {
            return Ok(());
        }
        let paths = |id: ConnectionId| {
            connections.get(id.index()).map_or(0, |connection| connection.paths().count())
        };
        match self.accepting.on_confirm(now, self.origin, hello, self.local, paths)? {
            true => Ok(()),
            false => Err(Drop::HelloUnknown),
        }
    }
}
