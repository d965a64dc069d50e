//! `mpt leave`: the host as it was before.

use anyhow::{Context as _, Result};
use clap::Args;

use super::check::counted;
use super::setup::{self, DirOption};
use crate::exit::Exit;
use crate::setup::{Record, Role, end_daemon, endpoint_text, host, peers, service};
use crate::{output, tunnel};

/// What to leave.
#[derive(Debug, Args)]
pub(super) struct Leave {
    /// Also if this is a server with clients, which have to be invited again, or if a part cannot be undone
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dir: DirOption,
}

impl Leave {
    /// Ends the daemon, and undoes all that `mpt init` or `mpt join` did.
    pub(super) fn run(&self) -> Result<Exit> {
        let folder = self.dir.folder()?;
        let Some(record) = Record::load(&folder)? else {
            output::complain(format_args!(
                "there is nothing to leave: {} was not made by `mpt init` or `mpt join`; name their folder with --dir",
                folder.path().display()
            ));
            return Ok(Exit::Negative);
        };
        let clients = match record.role {
            Role::Server => peers::count(&folder.peers()),
            Role::Client => 0,
        };
        if clients > 0 && !self.force {
            output::complain(format_args!(
                "{} of this server would have to be invited again: if that is wanted, run `mpt leave --force{}`",
                counted(clients, "client"),
                folder.option()
            ));
            return Ok(Exit::Negative);
        }
        let undo = || -> Result<()> {
            service::uninstall(&record)?;
            end_daemon(&folder.config(), &folder.socket())?;
            // Those of a daemon that was killed.
            tunnel::remove_left_rules().context("cannot remove routing rules")?;
            host::restore(&folder, &record)
        };
        let undone = undo();
        if let Err(error) = undone {
            if !self.force {
                let force = format!(
                    "not all could be undone; `mpt leave{}` tries again, with --force it goes on without",
                    folder.option()
                );
                return Err(error).context(force);
            }
            output::complain(format_args!("{error:#}"));
        }
        let left = setup::remove_files(&folder, &record)?;
        let mut text = match record.role {
            Role::Client => format!("left {}\n", endpoint_text(&record.host, record.port)),
            Role::Server => {
                format!("no longer the server {}\n", endpoint_text(&record.host, record.port))
            }
        };
        if record.made_folder && !left.is_empty() {
            text.push_str(&format!("{} still has {}\n", folder.path().display(), left.join(", ")));
        }
        output::print(&text)
    }
}
