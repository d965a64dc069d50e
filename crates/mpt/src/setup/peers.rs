//! The files of a server's clients, as far as an invitation needs them: which addresses are taken, and a new one.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mpt_proto::InvitationSecret;
use nix::unistd::{Gid, Uid};

use super::folder;
use crate::clients;
use crate::config::{Client, Moment, Prefix};
use crate::output;

/// What is known of a client that is to be invited, and of the others.
#[derive(Debug)]
pub(crate) struct Invited {
    file: PathBuf,
    /// The tunnel addresses of all others.
    pub(crate) taken: BTreeSet<IpAddr>,
    /// What its file says, if it was invited before and has not come.
    before: Option<Client>,
}

impl Invited {
    /// Reads the folder for an invitation of the client `name`.
    ///
    /// # Errors
    ///
    /// The name is none, the client has come already, or its file is wrong.
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Self> {
        let file = clients::file_of(folder, name)?;
        let (mut clients, faults) = clients::read(folder)?;
        for (other, fault) in faults {
            if *other == *name {
                bail!("{fault}");
            }
            output::complain(format_args!("warning: {fault}"));
        }
        let before = clients.remove(name);
        if before.as_ref().is_some_and(|client| client.public_key.is_some()) {
            bail!(
                "`{name}` has joined already: choose another name, or remove it first with `mpt peer remove {name}`"
            );
        }
        let taken = clients.into_values().flat_map(|client| client.addresses).collect();
        Ok(Self { file, taken, before })
    }

    /// The addresses that it was invited with before, if they still belong to the tunnel, whose own addresses these are.
    pub(crate) fn again(&self, own: &[Prefix]) -> Option<Vec<Prefix>> {
        let before = &self.before.as_ref()?.addresses;
        let of = |own: &Prefix| {
            let fits = |address: &&IpAddr| {
                let host = Prefix { addr: **address, len: Prefix::max_len(**address) };
                host.overlaps(*own) && !self.taken.contains(*address)
            };
            before.iter().find(fits).map(|address| Prefix { addr: *address, len: own.len })
        };
        own.iter().map(of).collect()
    }

    /// Writes the file of the client, which from now on has these addresses and this secret until `expires`, for the user who owns
    /// the folder.
    ///
    /// # Errors
    ///
    /// As [`folder::write`].
    pub(crate) fn write(
        self,
        addresses: &[Prefix],
        secret: &InvitationSecret,
        expires: Duration,
    ) -> Result<()> {
        let before = self.before.unwrap_or_else(|| Client {
            public_key: None,
            addresses: Vec::new(),
            networks: Vec::new(),
            preshared_key_file: None,
            invitation: None,
            invitation_expires: None,
        });
        let client = Client {
            addresses: addresses.iter().map(|address| address.addr).collect(),
            invitation: Some(secret.hash()),
            invitation_expires: Some(Moment(expires)),
            ..before
        };
        let folder = self.file.parent().context("a file without a folder")?;
        let about = folder.metadata();
        let about = about.with_context(|| format!("cannot look at {}", folder.display()))?;
        let owner = Some((Uid::from_raw(about.uid()), Gid::from_raw(about.gid())));
        folder::write(&self.file, client.to_text().as_bytes(), 0o600, owner)
    }
}

/// How many clients there are; 0 if the folder cannot be read.
pub(crate) fn count(folder: &Path) -> usize {
    clients::read(folder).map_or(0, |(clients, faults)| clients.len() + faults.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::record;
    use std::fs;

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        texts.iter().map(|text| record::prefix(text).unwrap()).collect()
    }

    #[test]
    fn a_client_is_invited_again_until_it_has_come() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let file = folder.join("van.toml");
        let addresses = prefixes(&["10.9.0.2/24", "fd00:9::2/64"]);
        let invite = |secret: u8| {
            let secret = InvitationSecret::new([secret; 32]);
            let invited = Invited::read(folder, "van").unwrap();
            invited.write(&addresses, &secret, Duration::from_secs(1_798_761_599)).unwrap();
            fs::read_to_string(&file).unwrap()
        };
        let first = invite(1);
        let hash = InvitationSecret::new([1; 32]).hash();
        assert_eq!(
            first,
            format!(
                "addresses = [\"10.9.0.2\", \"fd00:9::2\"]\ninvitation = \"{hash}\"\ninvitation_expires = 2026-12-31T23:59:59Z\n"
            )
        );
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);

        // What somebody has added stays.
        fs::write(&file, format!("networks = [\"192.168.7.0/24\"]\n{first}")).unwrap();
        let own = prefixes(&["10.9.0.1/24", "fd00:9::1/64"]);
        assert_eq!(Invited::read(folder, "van").unwrap().again(&own), Some(addresses.clone()));
        let moved = prefixes(&["10.8.0.1/24", "fd00:9::1/64"]);
        assert_eq!(Invited::read(folder, "van").unwrap().again(&moved), None);
        let second = invite(2);
        assert!(second.contains("192.168.7.0/24") && !second.contains(&hash.to_string()));
        let other = Invited::read(folder, "bus").unwrap();
        assert_eq!((other.taken.len(), other.again(&own)), (2, None));

        let key = mpt_proto::PublicKey::new([7; 32]);
        fs::write(&file, format!("public_key = \"{key}\"\n{second}")).unwrap();
        let error = Invited::read(folder, "van").unwrap_err().to_string();
        assert!(
            error.contains("has joined already") && error.contains("mpt peer remove van"),
            "{error}"
        );
        assert_eq!(count(folder), 1);
    }

    #[test]
    fn names_are_names_of_files() {
        let place = tempfile::tempdir().unwrap();
        for bad in ["", "a/b", "../x", ".x", "a b", "ü", &"a".repeat(40)] {
            assert!(Invited::read(place.path(), bad).is_err(), "{bad}");
        }
        assert!(Invited::read(place.path(), "van-2").is_ok());
    }
}
