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
    match Client::connect(socket)?.request(&Request::WebToken { renew })? {
        Reply::WebToken { token, listen } if listen.starts_with('/') => output::print(&format!(
            "http://localhost:9480/#token={token}\n\
             after forwarding a port to the socket, such as with `ssh -L 9480:{listen} HOST`\n"
        )),
        Reply::WebToken { token, listen } => {
            output::print(&format!("http://{listen}/#token={token}\n"))
        }
        Reply::Error { message, .. } => bail!(message),
        other @ (Reply::Changed { .. }
        | Reply::Config { .. }
        | Reply::Done
        | Reply::Explanation { .. }
        | Reply::Peers { .. }
        | Reply::Status { .. }
        | Reply::Trace { .. }
        | Reply::Version { .. }) => bail!("unexpected reply from the daemon: {other:?}"),
    }
}
