//! The keys of the two hosts of a sealed tunnel.
//!
//! They are the same in every lab: its links reach nobody else, so nobody has to be kept from knowing them, and a run
//! that is repeated sends the same indices and keys of the same length. The daemons take them as any other: from a file
//! that nobody else may read.

use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use mpt_proto::{KEY_LEN, PrivateKey, PublicKey};
use tempfile::TempDir;

use crate::topology::Side;

/// The files of both private keys, in a folder of their own. Both are gone when it is dropped: not before the daemons.
#[derive(Debug)]
pub struct KeyFiles(TempDir);

impl KeyFiles {
    /// Writes both.
    ///
    /// # Errors
    ///
    /// There is no room for files that others cannot read.
    pub fn write() -> Result<Self> {
        let mut folder = tempfile::Builder::new();
        let folder = folder.prefix("mpt-lab-keys-").permissions(Permissions::from_mode(0o700));
        let files = Self(folder.tempdir().context("cannot make a folder for keys")?);
        for side in [Side::Left, Side::Right] {
            let path = files.path(side);
            let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            open.and_then(|mut file| file.write_all(private(side).to_base64().as_bytes()))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(files)
    }

    /// The file of a host's private key.
    pub fn path(&self, side: Side) -> PathBuf {
        self.0.path().join(side.name())
    }
}

/// The bytes of the private key of a host.
pub(crate) fn bytes(side: Side) -> [u8; KEY_LEN] {
    match side {
        Side::Left => [1; KEY_LEN],
        Side::Right => [2; KEY_LEN],
    }
}

fn private(side: Side) -> PrivateKey {
    PrivateKey::new(bytes(side))
}

/// The public key of a host.
pub fn public(side: Side) -> PublicKey {
    private(side).public()
}
