//! Clients that a template knows by their keys: one file for each, in a folder.
//!
//! [`Clients`] has what the files say, [`folder`] reads and writes them, and [`conflict`] finds what contradicts each other in
//! them. A faulty file concerns its client alone: it is reported with its place, and what it said before still holds.

mod conflict;
mod folder;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use mpt_proto::{AcceptId, ClientConfig, ClientId, KnownBy, PublicKey};

use crate::config::{Client, Prefix};
use conflict::Claim;
pub(crate) use folder::{create, file_of, read, remove};

/// The clients of one template.
#[derive(Debug)]
pub(crate) struct Clients {
    folder: PathBuf,
    accept: AcceptId,
    by_name: BTreeMap<Box<str>, Known>,
    names: HashMap<ClientId, Box<str>>,
    /// Those whose files do not say yet that they have used their invitations.
    unsaved: BTreeSet<ClientId>,
}

#[derive(Debug)]
struct Known {
    id: ClientId,
    client: Client,
    /// What the file says if that is not it.
    on_disk: Option<Box<Client>>,
}

/// What a look at the folder came to.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Who is new, or has changed.
    pub(crate) add: Vec<ClientConfig>,
    /// Who is gone, or has changed: its connection ends.
    pub(crate) remove: HashSet<ClientId>,
    /// All that in words.
    pub(crate) lines: Vec<String>,
    /// What is wrong with files, with their places.
    pub(crate) faults: Vec<String>,
}

impl Clients {
    /// None so far, of a template.
    pub(crate) fn new(folder: &Path, accept: AcceptId) -> Self {
        Self {
            folder: folder.to_owned(),
            accept,
            by_name: BTreeMap::new(),
            names: HashMap::new(),
            unsaved: BTreeSet::new(),
        }
    }

    /// Where their files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The client with this number, and its name.
    pub(crate) fn get(&self, id: ClientId) -> Option<(&str, &Client)> {
        let name = self.names.get(&id)?;
        Some((name, &self.by_name.get(name)?.client))
    }

    /// All of them, with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Client)> {
        self.by_name.iter().map(|(name, known)| (&**name, &known.client))
    }

    /// What inner addresses they have, and whose they are.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (Prefix, String)> + '_ {
        self.iter().flat_map(|(name, client)| {
            client.claims().map(move |prefix| (prefix, format!("client {name}")))
        })
    }

    /// Reads the folder again. Numbers are taken from `next`, and `others` are inner addresses that no client may have,
    /// and whose they are.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read. Then nothing has changed.
    pub(crate) fn reload(
        &mut self,
        next: &mut u32,
        others: &[(Prefix, String)],
    ) -> anyhow::Result<Changes> {
        let (mut found, faults) = read(&self.folder)?;
        let mut changes = Changes::default();
        for (name, fault) in faults {
            // What it said before still holds.
            if let Some(known) = self.by_name.get(&name) {
                found.insert(name, known.on_disk().clone());
            }
            changes.faults.push(fault);
        }
        let claims = found.iter().map(|(name, client)| {
            let is_new = self.by_name.get(name).is_none_or(|known| known.on_disk() != client);
            Claim { name, client, is_new }
        });
        for (name, fault) in conflict::find(claims.collect(), others, &self.folder) {
            found.remove(&name);
            if let Some(known) = self.by_name.get(&name) {
                found.insert(name, known.on_disk().clone());
            }
            changes.faults.push(fault);
        }
        let gone: Vec<Box<str>> =
            self.by_name.keys().filter(|name| !found.contains_key(*name)).cloned().collect();
        for name in gone {
            if let Some(known) = self.by_name.remove(&name) {
                self.forget(known.id, &mut changes);
                changes.lines.push(format!("client {name}: removed"));
            }
        }
        for (name, client) in found {
            let verb = match self.by_name.get(&name) {
                Some(known) if *known.on_disk() == client => continue,
                Some(known) => {
                    self.forget(known.id, &mut changes);
                    "changed"
                }
                None => "added",
            };
            changes.lines.push(format!("client {name}: {verb}"));
            let id = ClientId(*next);
            *next += 1;
            changes.add.extend(core(id, self.accept, &client));
            self.names.insert(id, name.clone());
            self.by_name.insert(name, Known { id, client, on_disk: None });
        }
        Ok(changes)
    }

    fn forget(&mut self, id: ClientId, changes: &mut Changes) {
        self.names.remove(&id);
        self.unsaved.remove(&id);
        changes.remove.insert(id);
    }

    /// All of them in the core's words.
    pub(crate) fn core(&self) -> Vec<ClientConfig> {
        let known = self.by_name.values();
        known.filter_map(|known| core(known.id, self.accept, &known.client)).collect()
    }

    /// A client has used its invitation and is known by its key from now on; [`save`](Self::save) says so in its file.
    pub(crate) fn pin(&mut self, id: ClientId, key: PublicKey) {
        let Some(known) = self.names.get(&id).and_then(|name| self.by_name.get_mut(name)) else {
            return;
        };
        known.on_disk.get_or_insert_with(|| Box::new(known.client.clone()));
        known.client.public_key = Some(key);
        (known.client.invitation, known.client.invitation_expires) = (None, None);
        self.unsaved.insert(id);
    }

    /// Writes the files of clients that have used their invitations. Returns what could not be written; that is tried again.
    pub(crate) fn save(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        for id in std::mem::take(&mut self.unsaved) {
            let Some(name) = self.names.get(&id) else { continue };
            let Some(known) = self.by_name.get_mut(name) else { continue };
            let Some(on_disk) = known.on_disk.as_deref() else { continue };
            match folder::pin(&self.folder, name, on_disk, &known.client) {
                Ok(()) => known.on_disk = None,
                Err(error) => {
                    failures.push(format!("{error:#}"));
                    self.unsaved.insert(id);
                }
            }
        }
        failures
    }

    /// Whether files are yet to be written.
    pub(crate) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }
}

impl Known {
    fn on_disk(&self) -> &Client {
        self.on_disk.as_deref().unwrap_or(&self.client)
    }
}

/// A client in the core's words. One with a key needs no invitation any more.
fn core(id: ClientId, accept: AcceptId, client: &Client) -> Option<ClientConfig> {
    let invitation = client.invitation.zip(client.invitation_expires);
    let known_by = match client.public_key {
        Some(key) => KnownBy::Key(key),
        None => {
            invitation.map(|(hash, expires)| KnownBy::Invitation { hash, expires: expires.0 })?
        }
    };
    Some(ClientConfig { id, accept, known_by })
}

#[cfg(test)]
mod tests;
