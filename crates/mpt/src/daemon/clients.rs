//! Requests about the clients that templates know by their keys.

use std::path::{Path, PathBuf};

use mpt_control::{ErrorKind, Reply};

use super::{Daemon, Host, find};
use crate::clients;
use crate::config::{Client, Settings};

impl<H: Host> Daemon<H> {
    /// All clients.
    pub(super) fn list_clients(&self) -> Reply {
        let peers = self.tunnels.iter().flat_map(|tunnel| self.host.clients(tunnel)).collect();
        Reply::Peers { peers }
    }

    /// Reads the folders of clients again.
    pub(super) fn reload_clients(&mut self) -> Result<Reply, Reply> {
        let (changes, faults) = self.read_clients();
        if faults.is_empty() {
            return Ok(Reply::Changed { changes });
        }
        let message = format!(
            "{} of clients: what {} said before still holds; the other files have been read",
            if faults.len() == 1 { "a faulty file" } else { "faulty files" },
            if faults.len() == 1 { "it" } else { "they" },
        );
        Err(Reply::bad_config(message, faults.join("\n") + "\n"))
    }

    /// A further client: its file is written and read.
    pub(super) fn add_client(
        &mut self,
        template: Option<&str>,
        name: &str,
        settings: &str,
    ) -> Result<Reply, Reply> {
        let folder = folder(&self.running, template)?;
        let file = file(&folder, name)?;
        if let Err(report) = Client::parse(settings, &file.display().to_string()) {
            let message = format!("client {name}: invalid settings; nothing was changed");
            return Err(Reply::bad_config(message, report.render(false)));
        }
        clients::create(&folder, &file, settings).map_err(refused)?;
        let (changes, faults) = self.read_clients();
        let begin = file.display().to_string();
        let Some(fault) = faults.into_iter().find(|fault| fault.starts_with(&begin)) else {
            return Ok(Reply::Changed { changes });
        };
        // It cannot stay there: the next start would report it again.
        clients::remove(&file).map_err(refused)?;
        let message = format!("client {name} is not added: {fault}");
        Err(Reply::error(ErrorKind::BadConfig, message))
    }

    /// A client goes: its file is removed, and its connection ends.
    pub(super) fn remove_client(
        &mut self,
        template: Option<&str>,
        name: &str,
    ) -> Result<Reply, Reply> {
        let file = file(&folder(&self.running, template)?, name)?;
        if !file.try_exists().unwrap_or(true) {
            let message = format!("no client `{name}`: there is no {}", file.display());
            return Err(Reply::error(ErrorKind::NoSuchPeer, message));
        }
        clients::remove(&file).map_err(refused)?;
        let (changes, faults) = self.read_clients();
        faults.iter().for_each(|fault| tracing::error!("{fault}"));
        Ok(Reply::Changed { changes })
    }

    /// Reads the files of keys again. Returns what has changed, and what is wrong with files.
    pub(super) fn read_keys(&mut self) -> (Vec<String>, Vec<String>) {
        let Self { host, tunnels, .. } = self;
        let (mut changes, mut faults) = (Vec::new(), Vec::new());
        for tunnel in tunnels {
            let (more, wrong) = host.reload_keys(tunnel);
            changes.extend(more);
            faults.extend(wrong);
        }
        (changes, faults)
    }

    /// Reads the folders of clients again. Returns what has changed, and what is wrong with files.
    pub(super) fn read_clients(&mut self) -> (Vec<String>, Vec<String>) {
        let Self { host, tunnels, .. } = self;
        let (mut changes, mut faults) = (Vec::new(), Vec::new());
        for tunnel in tunnels {
            let (more, wrong) = host.reload_clients(tunnel);
            changes.extend(more);
            faults.extend(wrong);
        }
        for change in &changes {
            tracing::info!("{change}");
        }
        (changes, faults)
    }
}

/// The folder of the template of that name, or of the only one that has a folder.
fn folder(settings: &Settings, template: Option<&str>) -> Result<PathBuf, Reply> {
    let accepts = settings.tunnels.iter().flat_map(|tunnel| &tunnel.accepts);
    let folders = accepts.filter_map(|accept| Some((&*accept.name, accept.folder.as_deref()?)));
    let folders: Vec<(&str, &Path)> = folders.collect();
    let refuse = |message: String| Err(Reply::error(ErrorKind::NoSuchPeer, message));
    let names = || find::list(folders.iter().map(|(name, _)| *name));
    match (template, &folders[..]) {
        (_, []) => refuse(
            "no template knows its clients by keys: add a `[[tunnel.accept]]` with `peers = \"/etc/mpt/peers.d\"`, and `mpt reload`".into(),
        ),
        (None, [(_, only)]) => Ok((*only).to_owned()),
        (None, _) => refuse(format!("name one with --template: {}", names())),
        (Some(name), _) => match folders.iter().find(|(other, _)| *other == name) {
            Some((_, folder)) => Ok((*folder).to_owned()),
            None => refuse(format!("no template `{name}` with a folder: {}", names())),
        },
    }
}

fn file(folder: &Path, name: &str) -> Result<PathBuf, Reply> {
    let file = clients::file_of(folder, name);
    file.map_err(|error| Reply::error(ErrorKind::BadConfig, error.to_string()))
}

fn refused(error: anyhow::Error) -> Reply {
    Reply::error(ErrorKind::Unavailable, format!("{error:#}"))
}
