//! `mpt web token`

use std::path::Path;

use anyhow::{Result, bail};
use clap::Subcommand;
use mpt_control::{Client, Reply, Request};

use super::socket::SocketOption;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, Subcommand)]
pub(super) enum WebAction {
    /// Print the address of the web page with the token that allows changes
    ///
    /// The page is served if the configuration has `listen` in `[web]`. Without the token it shows everything and
    /// changes nothing; with it, paths can be switched off and on and weights changed. The token is the same until
    /// the daemon ends. Everybody who has it may do this, so it is for the browser only.
    #[command(after_help = "\
Exit codes: 0 printed, 2 no daemon answers, or it serves no page

Examples:
  mpt web token
  xdg-open \"$(sudo mpt web token)\"
  mpt web token --renew                        and the one before is worth nothing any more")]
    Token {
        /// Make a new token
        #[arg(long)]
        renew: bool,
        #[command(flatten)]
        socket: SocketOption,
    },
}

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
