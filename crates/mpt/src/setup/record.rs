//! What `mpt init` or `mpt join` did, so that it can be undone, and what invitations need to say.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::Folder;
use super::folder;
use crate::config::Prefix;

/// What a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// By `mpt init`.
    Server,
    /// By `mpt join`.
    Client,
}

/// What was done. It is written before the first step and after each that adds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// By which command.
    pub(crate) role: Role,
    /// The tunnel's interface.
    pub(crate) interface: String,
    /// The server, as clients reach it.
    pub(crate) host: String,
    /// Its UDP port.
    pub(crate) port: u16,
    /// Networks that the server leads to.
    pub(crate) networks: Vec<Prefix>,
    /// Name servers: for invitations on a server, for the resolver on a client.
    pub(crate) dns: Vec<IpAddr>,
    /// Whether the server translates addresses, so that clients reach the Internet.
    pub(crate) internet: bool,
    /// Whether all traffic of the client goes through the tunnel.
    pub(crate) everything: bool,
    /// The file that says which name servers the host asks.
    pub(crate) resolv_conf: PathBuf,
    /// Whether the folder did not exist before.
    pub(crate) made_folder: bool,
    /// Whether systemd runs the daemon.
    pub(crate) service: bool,
    /// Files outside of the folder that were made.
    pub(crate) files: Vec<PathBuf>,
}

impl Record {
    /// The record of a folder; `None` if neither command was run.
    ///
    /// # Errors
    ///
    /// It cannot be read, or somebody has changed it.
    pub(crate) fn load(folder: &Folder) -> Result<Option<Self>> {
        let path = folder.record();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let table: Option<Table> = text.parse().ok();
        let record = table.as_ref().and_then(Self::from_table);
        record.map(Some).with_context(|| {
            format!("{} is not as `mpt init` or `mpt join` wrote it: restore it", path.display())
        })
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// As [`folder::write`].
    pub(crate) fn save(&self, folder: &Folder) -> Result<()> {
        let text = format!(
            "# What `mpt {}` did. `mpt leave` undoes it.\n{}",
            if self.role == Role::Server { "init" } else { "join" },
            self.to_table()
        );
        folder::write(&folder.record(), text.as_bytes(), 0o644, None)
    }

    fn to_table(&self) -> Table {
        let path = |path: &PathBuf| path.display().to_string();
        let role = if self.role == Role::Server { "server" } else { "client" };
        Table::from_iter([
            ("role".to_owned(), Value::from(role)),
            ("interface".to_owned(), self.interface.as_str().into()),
            ("host".to_owned(), self.host.as_str().into()),
            ("port".to_owned(), i64::from(self.port).into()),
            ("networks".to_owned(), texts(self.networks.iter().map(Prefix::to_string))),
            ("dns".to_owned(), texts(self.dns.iter().map(IpAddr::to_string))),
            ("internet".to_owned(), self.internet.into()),
            ("everything".to_owned(), self.everything.into()),
            ("resolv_conf".to_owned(), path(&self.resolv_conf).into()),
            ("made_folder".to_owned(), self.made_folder.into()),
            ("service".to_owned(), self.service.into()),
            ("files".to_owned(), texts(self.files.iter().map(path))),
        ])
    }

    fn from_table(table: &Table) -> Option<Self> {
        let text = |key| table.get(key)?.as_str().map(str::to_owned);
        let flag = |key| table.get(key)?.as_bool();
        let list = |key| -> Option<Vec<String>> {
            let list = table.get(key)?.as_array()?;
            list.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        };
        Some(Self {
            role: match text("role")?.as_str() {
                "server" => Role::Server,
                "client" => Role::Client,
                _ => return None,
            },
            interface: text("interface")?,
            host: text("host")?,
            port: table.get("port")?.as_integer()?.try_into().ok()?,
            networks: list("networks")?.iter().map(|text| prefix(text)).collect::<Option<_>>()?,
            dns: list("dns")?.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?,
            internet: flag("internet")?,
            everything: flag("everything")?,
            resolv_conf: text("resolv_conf")?.into(),
            made_folder: flag("made_folder")?,
            service: flag("service")?,
            files: list("files")?.into_iter().map(PathBuf::from).collect(),
        })
    }
}

/// An array of strings.
pub(super) fn texts(texts: impl Iterator<Item = String>) -> Value {
    Value::Array(texts.map(Value::from).collect())
}

/// `ADDRESS/LEN`.
pub(super) fn prefix(text: &str) -> Option<Prefix> {
    let (addr, len) = text.split_once('/')?;
    let prefix = Prefix { addr: addr.parse().ok()?, len: len.parse().ok()? };
    (prefix.len <= Prefix::max_len(prefix.addr)).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path()).unwrap();
        assert_eq!(Record::load(&folder).unwrap(), None);
        let record = Record {
            role: Role::Client,
            interface: "mpt0".into(),
            host: "2001:db8::5".into(),
            port: 4754,
            networks: vec![prefix("0.0.0.0/0").unwrap(), prefix("fd00:7::/48").unwrap()],
            dns: vec!["9.9.9.9".parse().unwrap()],
            internet: false,
            everything: true,
            resolv_conf: "/etc/a \"quoted\" file".into(),
            made_folder: true,
            service: false,
            files: vec!["/etc/systemd/system/mpt.service".into()],
        };
        record.save(&folder).unwrap();
        assert_eq!(Record::load(&folder).unwrap(), Some(record));
        std::fs::write(folder.record(), "role = \"server\"\n").unwrap();
        let error = Record::load(&folder).unwrap_err().to_string();
        assert!(error.contains("setup.toml is not as"), "{error}");
    }

    #[test]
    fn prefixes_are_within_their_length() {
        assert!(prefix("10.0.0.0/33").is_none() && prefix("10.0.0.0").is_none());
        assert!(prefix("fd00::/129").is_none() && prefix("fd00::/128").is_some());
    }
}
