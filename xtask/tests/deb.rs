//! The Debian package: installed by dpkg in a separate root, removed, and purged.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and say what it skips"
)]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The program in the package: any that every machine has. What MPT does is tested elsewhere.
const PROGRAM: &str = "/usr/bin/env";

/// Where users and groups are written down, and what is beside it while that is done. They stay:
/// files of a removed package may belong to them (Debian policy 9.2.2).
const ACCOUNTS: [&str; 5] =
    ["etc/group", "etc/gshadow", "etc/passwd", "etc/shadow", "etc/.pwd.lock"];

/// A package, and a root in which nothing was ever installed.
struct Debian {
    folder: TempDir,
    package: PathBuf,
}

impl Debian {
    /// `None`, with a message, if there is no dpkg.
    fn new() -> Option<Self> {
        if let Err(error) = Command::new("dpkg").arg("--version").output() {
            assert!(env::var_os("MPT_NO_SKIP").is_none(), "dpkg: {error}");
            println!("skipped: dpkg: {error}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let package = package(folder.path());
        for made in ["info", "updates", "triggers"] {
            fs::create_dir_all(folder.path().join("root/var/lib/dpkg").join(made)).unwrap();
        }
        fs::write(folder.path().join("root/var/lib/dpkg/status"), "").unwrap();
        Some(Self { folder, package })
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Runs dpkg on that root, the package's scripts included. The package's dependencies are not
    /// installed there.
    fn dpkg(&self, arguments: &[&str]) {
        let output = Command::new("dpkg")
            .arg(format!("--root={}", self.root().display()))
            .args(["--force-script-chrootless", "--force-depends", "--force-not-root"])
            .arg(format!("--log={}", self.folder.path().join("log").display()))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "dpkg {arguments:?}: {}", said(&output));
    }

    /// All files in the root but dpkg's own, and those of groups.
    fn files(&self) -> BTreeSet<String> {
        let mut files = BTreeSet::new();
        let mut open = vec![self.root()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(self.root()).unwrap().display().to_string();
                    files.insert(name);
                }
            }
        }
        files.retain(|file| !file.starts_with("var/lib/dpkg/") && !ACCOUNTS.contains(&&**file));
        files
    }

    /// The names of all groups.
    fn groups(&self) -> Vec<String> {
        let groups = fs::read_to_string(self.root().join("etc/group")).unwrap_or_default();
        groups.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    }
}

/// Builds the package into a folder.
fn package(folder: &Path) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["deb", "--binary", PROGRAM, "--out"])
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_is_installed_removed_and_purged_and_nothing_stays() {
    let Some(debian) = Debian::new() else { return };
    assert_eq!(debian.files(), BTreeSet::new());

    debian.dpkg(&["--install", debian.package.to_str().unwrap()]);
    let files = debian.files();
    for file in [
        "usr/bin/mpt",
        "lib/systemd/system/mpt.service",
        "lib/systemd/system/mpt@.service",
        "usr/lib/sysusers.d/mpt.conf",
        "etc/mpt/mpt.toml.example",
        "usr/share/man/man1/mpt.1.gz",
        "usr/share/man/man1/mpt-run.1.gz",
        "usr/share/man/man5/mpt.toml.5.gz",
        "usr/share/bash-completion/completions/mpt",
        "usr/share/zsh/vendor-completions/_mpt",
        "usr/share/fish/vendor_completions.d/mpt.fish",
        "usr/share/doc/mpt/copyright",
        "usr/share/doc/mpt/changelog.gz",
        "usr/share/doc/mpt/changelog.Debian.gz",
        "usr/share/doc/mpt/crates",
        "usr/share/doc/mpt/guide.md.gz",
        "usr/share/doc/mpt/migrate.md.gz",
        "usr/share/doc/mpt/service.md.gz",
    ] {
        assert!(files.contains(file), "{file} in {files:#?}");
    }
    match Command::new("systemd-sysusers").arg("--version").output() {
        Ok(_) => assert_eq!(debian.groups(), ["mpt", "mptd"]),
        Err(error) => println!("skipped: the group: systemd-sysusers: {error}"),
    }
    let program =
        Command::new(debian.root().join("usr/bin/mpt")).arg("--version").output().unwrap();
    assert!(program.status.success(), "the program was packaged whole");

    // An administrator's own configuration must not be removed.
    fs::write(debian.root().join("etc/mpt/mpt.toml"), "mine").unwrap();
    debian.dpkg(&["--remove", "mpt"]);
    let kept = ["etc/mpt/mpt.toml", "etc/mpt/mpt.toml.example"].map(String::from);
    assert_eq!(debian.files(), BTreeSet::from(kept));

    let links = debian.root().join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&links).unwrap();
    for unit in ["mpt.service", "mpt@right.service"] {
        std::os::unix::fs::symlink("/gone", links.join(unit)).unwrap();
    }
    debian.dpkg(&["--purge", "mpt"]);
    assert_eq!(debian.files(), BTreeSet::from(["etc/mpt/mpt.toml".to_owned()]));
}

#[test]
fn what_was_changed_survives_an_upgrade() {
    let Some(debian) = Debian::new() else { return };
    let package = debian.package.to_str().unwrap();
    debian.dpkg(&["--install", package]);
    let example = debian.root().join("etc/mpt/mpt.toml.example");
    fs::write(&example, "changed").unwrap();
    debian.dpkg(&["--install", package]);
    assert_eq!(fs::read_to_string(example).unwrap(), "changed");
}

#[test]
fn the_same_source_gives_the_same_package() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [one, other] = [one, other].map(|folder| fs::read(package(folder.path())).unwrap());
    assert!(one == other, "two packages differ");
}
