//! `mpt genkey` and `mpt pubkey`

use std::io::Read as _;

use anyhow::{Context as _, Result};
use mpt_proto::PrivateKey;
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::{keys, output};

/// Prints a new private key.
pub(super) fn generate() -> Result<Exit> {
    let key = PrivateKey::new(*keys::random()?);
    print(&key.to_base64())
}

/// Prints the public key of the private key on standard input.
pub(super) fn public() -> Result<Exit> {
    let mut text = Zeroizing::new(String::with_capacity(4096));
    let read = std::io::stdin().lock().take(4096).read_to_string(&mut text);
    read.context("cannot read a private key from standard input")?;
    let key = PrivateKey::from_base64(&text).context("standard input has no private key")?;
    print(&key.public().to_string())
}

fn print(key: &str) -> Result<Exit> {
    output::print(&Zeroizing::new(format!("{key}\n")))
}
