//! `mpt web token`

use std::path::Path;

use anyhow::{Result, bail};
use mpt_control::{Client, Reply, Request};

use super::line::WebAction;
use crate::exit::Exit;
use crate::output;

/// Executes `mpt web …`.
pub(super) fn web(action: &WebAction) -> Result<Exit> {
    match action {
        WebAction::Token { renew, socket } => token(*renew, &socket.socket),
    }
}

/// Prints the address of the page with the token that allows changes.
fn token(renew: bool, socket: &Path) -> Result<Exit> {
    let reply = Client::connect(socket)?.request(&Request::WebToken { renew })?;
    let Reply::WebToken { token, listen } = reply else { bail!(reply.into_refusal()) };
    if listen.starts_with('/') {
        return output::print(&format!(
            "http://localhost:9480/#token={token}\n\
             after forwarding a port to the socket, such as with `ssh -L 9480:{listen} HOST`\n"
        ));
    }
    output::print(&format!("http://{listen}/#token={token}\n"))
}
