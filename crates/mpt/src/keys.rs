//! The files of keys, and which cipher is the faster one on this machine.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use mpt_proto::{
    Cipher, CipherTrial, Ciphers, HostKeys, InvitationSecret, KEY_LEN, PeerKeys, PresharedKey,
    PrivateKey, PublicKey,
};
use zeroize::Zeroizing;

use crate::config;

/// A file of a key is no longer.
const MOST: u64 = 4096;

/// Each cipher seals so many packets of this length, so many times, to find out which is the faster one: half
/// a millisecond, or some ten without instructions for AES.
const TRIALS: usize = 64;
const PACKETS: usize = 8;
const TRIAL_LEN: usize = 1400;

/// The private key in a file.
///
/// # Errors
///
/// If it cannot be read, others than its owner can read it, or it is no key.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKey> {
    let text = secret(path)?;
    PrivateKey::from_base64(&text).with_context(|| format!("{} has no key", path.display()))
}

/// The pre-shared key in a file.
///
/// # Errors
///
/// As [`private_key`].
pub(crate) fn preshared_key(path: &Path) -> Result<PresharedKey> {
    let text = secret(path)?;
    PresharedKey::from_base64(&text).with_context(|| format!("{} has no key", path.display()))
}

/// This host's public key, if the tunnel has a private one.
///
/// # Errors
///
/// As [`private_key`].
pub(crate) fn public_key(settings: &config::Tunnel) -> Result<Option<PublicKey>> {
    let private = settings.private_key_file.as_deref().map(private_key).transpose()?;
    Ok(private.map(|private| private.public()))
}

/// What this host needs to seal, if the tunnel has a private key. Time zero was `since_zero` ago.
///
/// # Errors
///
/// As [`private_key`]; also if there are no random numbers.
pub(crate) fn host_keys(
    settings: &config::Tunnel,
    since_zero: Duration,
) -> Result<Option<HostKeys>> {
    let Some(path) = &settings.private_key_file else { return Ok(None) };
    let private = private_key(path)?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock_zero = since_1970.saturating_sub(since_zero);
    Ok(Some(HostKeys::new(private, ciphers(), *random()?, clock_zero)))
}

/// The keys of the peer of a connection, if it is sealed.
///
/// # Errors
///
/// As [`private_key`].
pub(crate) fn peer_keys(settings: &config::Connection) -> Result<Option<PeerKeys>> {
    let Some(public) = settings.public_key else { return Ok(None) };
    let preshared = settings.preshared_key_file.as_deref().map(preshared_key).transpose()?;
    let invitation =
        settings.invitation_file.as_deref().and_then(|file| invitation(file).transpose());
    Ok(Some(PeerKeys { public, preshared, invitation: invitation.transpose()? }))
}

/// The secret of an invitation in a file, or `None` if there is no such file: it may be removed when it has been used.
///
/// # Errors
///
/// As [`private_key`].
fn invitation(path: &Path) -> Result<Option<InvitationSecret>> {
    if path.try_exists().is_ok_and(|is_there| !is_there) {
        tracing::debug!("there is no invitation in {}", path.display());
        return Ok(None);
    }
    let text = secret(path)?;
    let read = InvitationSecret::from_base64(&text);
    read.with_context(|| format!("{} has no secret of an invitation", path.display())).map(Some)
}

/// 32 random bytes.
///
/// # Errors
///
/// If the kernel gives none.
pub(crate) fn random() -> Result<Zeroizing<[u8; KEY_LEN]>> {
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut *bytes));
    read.context("cannot read random numbers from /dev/urandom")?;
    Ok(bytes)
}

/// What a tunnel whose datagrams are not sealed is told, in one line; `None` if all are.
pub(crate) fn unsealed(settings: &config::Tunnel) -> Option<String> {
    let open = settings
        .connections
        .iter()
        .filter(|connection| connection.policies.framing != config::Framing::Sealed);
    let is_open = open.count() > 0 || settings.accepts.iter().any(|accept| accept.folder.is_none());
    is_open.then(|| {
        format!(
            "tunnel {} is open to forgery and legible to others: to seal it, make a key on each host (`mpt genkey`), and name both with `private_key_file` and `public_key`",
            settings.name
        )
    })
}

fn secret(path: &Path) -> Result<Zeroizing<String>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let of = file.metadata().with_context(|| format!("cannot look at {shown}"))?;
    if !of.is_file() {
        bail!("{shown} is not a file");
    }
    if of.mode() & 0o077 != 0 {
        bail!(
            "others can read {shown}: run `chmod 600 {shown}`, and make another key if one may have read it"
        );
    }
    let mut text = Zeroizing::new(String::with_capacity(MOST as usize));
    let read = file.take(MOST).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {shown}"))?;
    Ok(text)
}

/// Both ciphers, and which is the faster one.
fn ciphers() -> Ciphers {
    let trials = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305].map(CipherTrial::new);
    let mut buffer = vec![0; TRIAL_LEN];
    let [aes, chacha] = shortest(|which| {
        let start = Instant::now();
        (0..PACKETS).for_each(|_| trials[which].seal(&mut buffer));
        start.elapsed()
    });
    let fastest = fastest(aes, chacha);
    tracing::debug!(?aes, ?chacha, "the faster cipher is {}", fastest.name());
    Ciphers::fastest(fastest)
}

/// The shortest time of each of two, by many short trials in turn: what disturbs this host for a while disturbs both.
fn shortest(mut trial: impl FnMut(usize) -> Duration) -> [Duration; 2] {
    let mut shortest = [Duration::MAX; 2];
    for _ in 0..TRIALS {
        for (which, shortest) in shortest.iter_mut().enumerate() {
            *shortest = trial(which).min(*shortest);
        }
    }
    shortest
}

/// The faster one. With instructions for it, AES takes half as long; a few hundredths are no reason to leave it.
fn fastest(aes: Duration, chacha: Duration) -> Cipher {
    if aes <= chacha + chacha / 8 { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_disturbed_measurement_does_not_change_the_cipher() {
        // The first tenth of all trials takes ten times as long.
        let mut done = 0;
        let [one, other] = shortest(|which| {
            done += 1;
            let factor = if done <= TRIALS / 5 { 10 } else { 1 };
            Duration::from_micros([3, 6][which]) * factor
        });
        assert_eq!([one, other], [3, 6].map(Duration::from_micros));
        let of = |aes, chacha| fastest(Duration::from_micros(aes), Duration::from_micros(chacha));
        assert_eq!(of(3, 6), Cipher::Aes256Gcm);
        assert_eq!(of(110, 100), Cipher::Aes256Gcm, "about the same");
        assert_eq!(of(300, 100), Cipher::ChaCha20Poly1305);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let key = PrivateKey::new(*random().expect("random bytes"));
        fs::write(&path, key.to_base64().as_bytes()).expect("written");
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(private_key(&path).is_ok(), good, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        assert!(private_key(&path).is_ok_and(|read| read == key));
        fs::write(&path, "no key").expect("written");
        assert!(private_key(&path).is_err());
        assert!(private_key(folder.path()).is_err());
    }
}
