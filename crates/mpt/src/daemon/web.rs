//! What the web page shows and changes.

use mpt_control::{ControlStatus, Explanation, Reply, Request, Status};

use super::{Daemon, Host};
use crate::web;

/// The daemon as the web page sees it, for one turn of the loop.
pub(crate) struct Behind<'d, H: Host> {
    /// The daemon.
    pub(crate) daemon: &'d mut Daemon<H>,
    /// The status of the control socket.
    pub(crate) control: ControlStatus,
}

impl<H: Host> web::Backend for Behind<'_, H> {
    fn status(&mut self) -> Status {
        self.daemon.status(self.control.clone())
    }

    fn explain(&mut self) -> Result<Vec<Explanation>, String> {
        let reply = self.change(Request::Explain { connection: None });
        let Reply::Explanation { connections } = reply else {
            return Err(reply.into_refusal().message);
        };
        Ok(connections)
    }

    fn allows(&self, token: &str) -> bool {
        self.daemon.web_token.as_ref().is_some_and(|own| own.is(token))
    }

    fn change(&mut self, request: Request) -> Reply {
        self.daemon.answer(request, self.control.clone())
    }
}
