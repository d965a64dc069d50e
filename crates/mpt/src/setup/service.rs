//! systemd runs the daemon.
//!
//! The package has a unit. Without the package the same one is written, for this program where it is, and removed by `mpt
//! leave`. A drop-in beside either says what differs: that the daemon writes the files of its clients, and what is done
//! beside it ([`super::host`]).

use std::path::Path;

use anyhow::{Context as _, Result};

use super::folder::{self, Owner};
use super::{Folder, Record, Role, program};

/// The unit.
pub(crate) const UNIT: &str = "mpt.service";

/// It, as the package has it.
const TEXT: &str = include_str!("../../../../packaging/mpt.service");

/// Where the package puts units.
const PACKAGED: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];

/// Where an administrator does.
const OWN: &str = "/etc/systemd/system";

/// The user that the unit runs as, which the package makes.
const USER: &str = "mptd";

/// Whether systemd runs this host (sd_booted(3)).
pub(crate) fn systemd_runs() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Who is to own the keys: the user of the unit, or who runs this.
pub(crate) fn owner(service: bool) -> Owner {
    if service { folder::user(USER) } else { None }
}

/// Has systemd run the daemon, now and after each start of this host.
///
/// # Errors
///
/// A file cannot be written, or systemd refuses. [`uninstall`] undoes what was done.
pub(crate) fn install(folder: &Folder, record: &mut Record) -> Result<()> {
    let own = program::own()?;
    let own = own.to_str().context("the path of this program is no UTF-8: move it")?;
    let has_unit =
        PACKAGED.into_iter().chain([OWN]).any(|place| Path::new(place).join(UNIT).exists());
    let mut files = Vec::new();
    if !has_unit {
        files.push((Path::new(OWN).join(UNIT), TEXT.replace("/usr/bin/mpt", own)));
    }
    let drop_in = Path::new(OWN).join("mpt.service.d/setup.conf");
    files.push((drop_in, drop_in_text(folder, record, own, folder::user(USER).is_some())));
    record.service = true;
    record.files = files.iter().map(|(path, _)| path.clone()).collect();
    record.save(folder)?;
    for (path, text) in &files {
        if let Some(parent) = path.parent() {
            folder::make(parent, 0o755)?;
        }
        folder::write(path, text.as_bytes(), 0o644, None)?;
    }
    program::run("systemctl", &["daemon-reload"], "")?;
    program::run("systemctl", &["enable", "--now", UNIT], "")
        .context("the service does not start: `journalctl -u mpt` says why")
}

/// What differs from the unit.
fn drop_in_text(folder: &Folder, record: &Record, own: &str, has_user: bool) -> String {
    let dir = folder.path().display();
    let command = if record.role == Role::Server { "init" } else { "join" };
    let mut text = format!("# Written by `mpt {command}`; `mpt leave` removes it.\n[Service]\n");
    if !has_user {
        // Root owns the keys then. It keeps one capability, as the unit says.
        text.push_str("DynamicUser=no\nUser=root\nSupplementaryGroups=\n");
    }
    if record.role == Role::Server {
        text.push_str(&format!("ReadWritePaths={dir}/peers.d\n"));
    }
    if record.internet || record.everything {
        text.push_str(&format!(
            "ExecStartPost=+{own} host apply --dir {dir}\nExecStopPost=+{own} host restore --dir {dir}\n"
        ));
    }
    text
}

/// Ends the service and removes what [`install`] made.
///
/// # Errors
///
/// systemd refuses, or a file cannot be removed.
pub(crate) fn uninstall(record: &Record) -> Result<()> {
    if !record.service {
        return Ok(());
    }
    program::run("systemctl", &["disable", "--now", UNIT], "")?;
    for file in &record.files {
        folder::remove(file)?;
        // A folder of drop-ins that has others stays.
        if let Some(parent) = file.parent().filter(|parent| parent.ends_with("mpt.service.d")) {
            let _ = std::fs::remove_dir(parent);
        }
    }
    program::run("systemctl", &["daemon-reload"], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(role: Role) -> Record {
        Record {
            role,
            interface: "mpt0".into(),
            host: "vpn.example.org".into(),
            port: super::super::PORT,
            networks: Vec::new(),
            dns: Vec::new(),
            internet: false,
            everything: false,
            resolv_conf: super::super::resolver::RESOLV_CONF.into(),
            made_folder: true,
            service: true,
            files: Vec::new(),
        }
    }

    fn text(record: &Record, has_user: bool) -> String {
        let folder = Folder::new(Path::new(Folder::DEFAULT)).unwrap();
        drop_in_text(&folder, record, "/usr/bin/mpt", has_user)
    }

    #[test]
    fn a_drop_in_has_only_what_differs_from_the_unit() {
        let client = text(&record(Role::Client), true);
        assert!(client.ends_with("[Service]\n"), "{client}");
        let server = text(&record(Role::Server), true);
        assert!(server.ends_with("[Service]\nReadWritePaths=/etc/mpt/peers.d\n"), "{server}");
        let everything = Record { everything: true, ..record(Role::Client) };
        for line in [
            "DynamicUser=no",
            "User=root",
            "ExecStartPost=+/usr/bin/mpt host apply --dir /etc/mpt",
            "ExecStopPost=+/usr/bin/mpt host restore --dir /etc/mpt",
        ] {
            let text = text(&everything, false);
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }

    #[test]
    fn the_unit_names_the_program_where_it_can_be_replaced() {
        assert_eq!(TEXT.matches("/usr/bin/mpt ").count(), 2);
        assert!(TEXT.contains(&format!("User={USER}\n")));
    }
}
