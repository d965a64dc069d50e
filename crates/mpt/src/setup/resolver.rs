//! Which name servers a host asks while all its traffic goes through the tunnel.
//!
//! systemd-resolved is told that the tunnel's name servers are for all names; it forgets that with the interface.
//! Elsewhere resolv.conf is replaced. The file of before, or the symbolic link, is kept beside it under another name, which is all
//! there is to know: it comes back by being renamed, also after a crash, and when somebody else has written resolv.conf
//! since, that file stays.
//!
//! The daemon itself looks the server's name up past the tunnel. For that the name servers of before stand in the new file as
//! comments ([`UPLINK`]).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{folder, program};
use crate::mark::UPLINK;

/// The host's file (`resolv.conf(5)`).
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// How a file begins that was written here.
const HEADER: &str = "# Written by mpt: all traffic goes through the tunnel. The file of before comes back at its end.\n";

/// Where the files of systemd-resolved are.
const RESOLVED: &str = "/run/systemd/resolve";

/// Has the host ask these name servers. Doing it again does no harm.
///
/// # Errors
///
/// The file cannot be replaced, or systemd-resolved refuses.
pub(crate) fn apply(file: &Path, interface: &str, servers: &[IpAddr]) -> Result<()> {
    if is_resolved(file) {
        let servers: Vec<_> = servers.iter().map(IpAddr::to_string).collect();
        let mut arguments = vec!["dns", interface];
        arguments.extend(servers.iter().map(String::as_str));
        program::run("resolvectl", &arguments, "")?;
        program::run("resolvectl", &["domain", interface, "~."], "")?;
        return program::run("resolvectl", &["default-route", interface, "yes"], "");
    }
    replace(file, servers).with_context(|| format!("cannot replace {}", file.display()))
}

/// Has the host ask whom it asked before. Doing it again does no harm.
///
/// # Errors
///
/// The file cannot be put back.
pub(crate) fn restore(file: &Path) -> Result<()> {
    put_back(file).with_context(|| {
        let kept = kept(file);
        format!("cannot restore {}: it is kept as {}", file.display(), kept.display())
    })
}

/// Whether systemd-resolved manages the file.
fn is_resolved(file: &Path) -> bool {
    let target = file.canonicalize().unwrap_or_default();
    target.starts_with(RESOLVED) && program::exists("resolvectl")
}

/// The name servers in a file that are not on this host itself.
pub(crate) fn name_servers(text: &str) -> Vec<IpAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address: IpAddr =
            (words.next()? == "nameserver").then(|| words.next()?.parse().ok())??;
        (!address.is_loopback()).then_some(address)
    };
    text.lines().filter_map(server).collect()
}

/// The name servers that this host asks and others can ask, too: for invitations.
pub(crate) fn of_host(file: &Path) -> Vec<IpAddr> {
    let public = |address: &IpAddr| match address {
        IpAddr::V4(address) => !address.is_link_local(),
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    };
    let files = [file.to_path_buf(), Path::new(RESOLVED).join("resolv.conf")];
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    texts
        .map(|text| name_servers(&text))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
        .into_iter()
        .filter(public)
        .take(3)
        .collect()
}

fn kept(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".before-mpt");
    name.into()
}

fn is_ours(file: &Path) -> bool {
    // A symbolic link is not, whatever it leads to.
    let plain = file.symlink_metadata().is_ok_and(|about| about.is_file());
    plain && fs::read(file).is_ok_and(|text| text.starts_with(HEADER.as_bytes()))
}

fn replace(file: &Path, servers: &[IpAddr]) -> Result<()> {
    let kept = kept(file);
    if !is_ours(file) {
        folder::remove(&kept)?;
        match fs::hard_link(file, &kept) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // The file is a mount of its own, as in containers.
            Err(_) => drop(fs::copy(file, &kept)?),
        }
    }
    let before = fs::read_to_string(&kept).unwrap_or_default();
    let mut text = HEADER.to_owned();
    for server in name_servers(&before) {
        text.push_str(&format!("{UPLINK}{server}\n"));
    }
    for server in servers {
        text.push_str(&format!("nameserver {server}\n"));
    }
    let other = |line: &&str| line.starts_with("search") || line.starts_with("options");
    for line in before.lines().filter(other) {
        text.push_str(&format!("{line}\n"));
    }
    match folder::write(file, text.as_bytes(), 0o644, None) {
        Ok(()) => Ok(()),
        Err(_) => Ok(overwrite(file, text.as_bytes())?),
    }
}

fn put_back(file: &Path) -> io::Result<()> {
    let kept = kept(file);
    let is_kept = kept.symlink_metadata().is_ok();
    match (is_ours(file), is_kept) {
        (true, true) => match fs::rename(&kept, file) {
            Ok(()) => Ok(()),
            Err(_) => {
                overwrite(file, &fs::read(&kept)?)?;
                fs::remove_file(&kept)
            }
        },
        (true, false) => fs::remove_file(file),
        // Somebody has written the file since, and knows better.
        (false, true) => fs::remove_file(&kept),
        (false, false) => Ok(()),
    }
}

/// Writes a file that cannot be replaced because it is a mount of its own.
fn overwrite(file: &Path, text: &[u8]) -> io::Result<()> {
    File::options().write(true).truncate(true).open(file)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    const BEFORE: &str =
        "# by DHCP\nsearch home.arpa\nnameserver 192.168.1.1\nnameserver 127.0.0.1\n";

    fn servers() -> Vec<IpAddr> {
        vec!["9.9.9.9".parse().unwrap(), "2620:fe::fe".parse().unwrap()]
    }

    #[test]
    fn a_file_comes_back_as_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        fs::write(&file, BEFORE).unwrap();
        let before = file.metadata().unwrap();
        // Also when it is applied again after a crash.
        for _ in 0..2 {
            apply(&file, "mpt0", &servers()).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            let (header, rest) = text.split_at(HEADER.len());
            assert_eq!(header, HEADER);
            assert_eq!(
                rest,
                "# uplink: 192.168.1.1\nnameserver 9.9.9.9\nnameserver 2620:fe::fe\nsearch home.arpa\n"
            );
        }
        for _ in 0..2 {
            restore(&file).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), BEFORE);
            let after = file.metadata().unwrap();
            assert_eq!(
                (after.ino(), after.modified().unwrap()),
                (before.ino(), before.modified().unwrap())
            );
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_link_comes_back_as_a_link_and_its_target_is_never_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (folder.path().join("resolv.conf"), folder.path().join("target"));
        fs::write(&target, BEFORE).unwrap();
        symlink("target", &file).unwrap();
        apply(&file, "mpt0", &servers()).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), BEFORE);
        assert!(fs::read_to_string(&file).unwrap().contains("nameserver 9.9.9.9"));
        restore(&file).unwrap();
        assert_eq!(fs::read_link(&file).unwrap(), Path::new("target"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn no_file_is_no_file_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        apply(&file, "mpt0", &servers()).unwrap();
        assert!(file.exists());
        restore(&file).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_somebody_has_written_since_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        fs::write(&file, BEFORE).unwrap();
        apply(&file, "mpt0", &servers()).unwrap();
        fs::write(&file, "nameserver 10.0.0.1\n").unwrap();
        restore(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "nameserver 10.0.0.1\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
