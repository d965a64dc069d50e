//! `cargo xtask unit`: the systemd units stay as closed as they are meant to be.
//!
//! `systemd-analyze security` rates the exposure of the service, from 0 to 10. If that program is
//! missing, a message says so and only the other rule is checked: the unit for several files
//! differs from the one for a single file by names only.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::cargo::workspace;

/// The units, one daemon for one file and one for any number of files.
const UNITS: [&str; 2] = ["mpt.service", "mpt@.service"];

/// What may differ between them: how a line is written in the first and in the second.
const NAMES: [(&str, &str); 7] = [
    ("Description=Multipath tunnel", "Description=Multipath tunnel %i"),
    ("ConditionPathExists=/etc/mpt/mpt.toml", "ConditionPathExists=/etc/mpt/%i.toml"),
    ("ExecStart=/usr/bin/mpt run /etc/mpt/mpt.toml", "ExecStart=/usr/bin/mpt run /etc/mpt/%i.toml"),
    (
        "ExecReload=/usr/bin/mpt reload",
        "ExecReload=/usr/bin/mpt reload --socket /run/mpt-%i/control.sock",
    ),
    // Two of one user could end each other, and open each other's control socket.
    ("User=mptd", "User=mptd-%i"),
    ("RuntimeDirectory=mpt", "RuntimeDirectory=mpt-%i"),
    ("StateDirectory=mpt", "StateDirectory=mpt-%i"),
];

/// The highest rating that is accepted.
const LIMIT: f64 = 3.0;

/// Exit code 1 if a unit is too open or the two differ.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let folder = workspace()?.workspace_root.into_std_path_buf().join("packaging");
    let mut good = true;
    let [single, several] = UNITS.map(|unit| {
        let file = folder.join(unit);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    });
    if let Some(difference) = difference(&single?, &several?) {
        eprintln!("unit: {} and {} differ: {difference}", UNITS[0], UNITS[1]);
        good = false;
    }
    for unit in UNITS {
        match exposure(&folder.join(unit))? {
            None => println!("unit: {unit}: not rated: systemd-analyze is not installed"),
            Some(exposure) if exposure <= LIMIT => {
                println!("unit: {unit}: exposure {exposure:.1}, at most {LIMIT:.1} is accepted");
            }
            Some(exposure) => {
                eprintln!(
                    "unit: {unit}: exposure {exposure:.1} is more than {LIMIT:.1}: see \
                     `systemd-analyze security --offline=true packaging/{unit}`"
                );
                good = false;
            }
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first setting in which the units differ other than by names.
fn difference(single: &str, several: &str) -> Option<String> {
    let renamed = settings(single)
        .map(|line| NAMES.iter().find(|(from, _)| *from == line).map_or(line, |(_, to)| *to));
    let renamed: Vec<&str> = renamed.collect();
    let several: Vec<&str> = settings(several).collect();
    let missing = renamed.iter().find(|line| !several.contains(line));
    let extra = several.iter().find(|line| !renamed.contains(line));
    match missing.or(extra) {
        Some(line) => Some(format!("`{line}` is in one only")),
        None => (renamed != several).then(|| "the order of their settings".into()),
    }
}

fn settings(unit: &str) -> impl Iterator<Item = &str> {
    unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The rating of a unit, or `None` if there is nothing to rate it with.
fn exposure(unit: &Path) -> anyhow::Result<Option<f64>> {
    let rated = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager"])
        .arg(unit)
        .env("LC_ALL", "C")
        .output();
    let rated = match rated {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        rated => rated.context("cannot start systemd-analyze")?,
    };
    match rating(&String::from_utf8_lossy(&rated.stdout)) {
        Some(rating) => Ok(Some(rating)),
        None => bail!(
            "systemd-analyze gave no rating of {}: {}",
            unit.display(),
            String::from_utf8_lossy(&rated.stderr).trim()
        ),
    }
}

/// From the last line: `-> Overall exposure level for mpt.service: 1.8 OK`.
fn rating(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.contains("Overall exposure level"))?;
    line.rsplit_once(": ")?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rating_is_the_last_line_of_many() {
        let text = "x: 9.9\n-> Overall exposure level for mpt.service: 1.8 OK :)\n";
        assert_eq!(rating(text), Some(1.8));
        assert_eq!(rating("Failed to load unit"), None);
    }

    #[test]
    fn units_may_differ_by_names_and_comments_only() {
        let single = "# one\n[Service]\nRuntimeDirectory=mpt\nNoNewPrivileges=yes\n";
        let several = "# many\n[Service]\nRuntimeDirectory=mpt-%i\nNoNewPrivileges=yes\n";
        assert_eq!(difference(single, several), None);
        for other in [
            several.replace("yes", "no"),
            several.replace("NoNewPrivileges=yes\n", ""),
            several.replace("mpt-%i", "mpt"),
            several.to_owned() + "ProtectHome=no\n",
            "[Service]\nNoNewPrivileges=yes\nRuntimeDirectory=mpt-%i\n".into(),
        ] {
            assert!(difference(single, &other).is_some(), "{other}");
        }
    }

    #[test]
    fn the_units_read_what_is_for_the_packages_group_only() {
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
        let read = |name| fs::read_to_string(packaging.join(name)).unwrap();
        let groups = read("mpt.sysusers");
        let group = settings(&groups).find_map(|line| line.strip_prefix("g ")?.strip_suffix(" -"));
        let group = group.unwrap();
        for unit in UNITS {
            let unit = read(unit);
            let of = |key: &str| settings(&unit).find_map(|line| line.strip_prefix(key));
            assert_eq!(of("SupplementaryGroups="), Some(group));
            // Unnamed it would be mpt, and systemd makes no user where there is such a group.
            assert!(
                of("DynamicUser=") == Some("yes") && of("User=").is_some_and(|user| user != group)
            );
        }
    }

    #[test]
    fn a_unit_without_a_sandbox_is_too_open() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("open.service");
        fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
        match exposure(&unit).unwrap() {
            Some(exposure) => assert!(exposure > 9.0, "{exposure}"),
            None => println!("skipped: systemd-analyze is not installed"),
        }
    }
}
