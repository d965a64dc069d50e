//! What is said about the package, and what is run when it comes and goes (deb-control(5)).

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::Archive;
use super::contents::CONFIGURATION;
use crate::architecture::Architecture;

/// The maintainer of the package, unless `DEBFULLNAME` and `DEBEMAIL` are set.
const MAINTAINER: (&str, &str) = ("The MPT developers", "mpt@packages.invalid");

/// The first packaging of a version.
const REVISION: u32 = 1;

/// What is particular about this package.
pub(super) struct Package {
    /// The version of MPT.
    pub(super) version: &'static str,
    /// Which machines it is for.
    pub(super) arch: Architecture,
    /// The oldest C library that it runs with.
    pub(super) libc: (u32, u32),
    /// What it takes on disk, in bytes.
    pub(super) size: u64,
}

impl Package {
    /// The name of its file, by Debian's custom.
    pub(super) fn file_name(&self) -> String {
        format!("mpt_{}-{REVISION}_{}.deb", self.version, self.arch.name())
    }

    fn control(&self) -> String {
        let (major, minor) = self.libc;
        format!(
            "Package: mpt\n\
             Version: {}-{REVISION}\n\
             Architecture: {}\n\
             Maintainer: {}\n\
             Installed-Size: {}\n\
             Depends: libc6 (>= {major}.{minor}), libgcc-s1 (>= 4.2)\n\
             Section: net\n\
             Priority: optional\n\
             Description: multipath tunnel that bonds several uplinks\n \
              MPT distributes IP packets over several paths to a peer, which restores\n \
              their order. When a path goes down, its traffic fails over to the others.\n \
              It uses GRE in UDP (RFC 8086) and interoperates with the original\n \
              MPT-GRE.\n \
              .\n \
              The package contains the daemon, its command line and systemd units. Nothing\n \
              runs before a configuration is written.\n",
            self.version,
            self.arch.name(),
            maintainer(),
            self.size.div_ceil(1024),
        )
    }

    /// Debian's change log, which only lists the packaging of this version.
    pub(super) fn changelog(&self, time: u64) -> String {
        format!(
            "mpt ({}-{REVISION}) unstable; urgency=medium\n\n  \
             * What changed in MPT is in changelog.gz.\n\n \
             -- {}  {}\n",
            self.version,
            maintainer(),
            date(time)
        )
    }
}

/// The whole control archive; the scripts are the files of `folder` with dpkg's script names.
pub(super) fn archive(
    folder: &Path,
    package: &Package,
    data: &Archive,
    time: u64,
) -> anyhow::Result<Archive> {
    let mut archive = Archive::new(time);
    archive.add("control", 0o644, package.control().as_bytes())?;
    archive.add("conffiles", 0o644, format!("/{CONFIGURATION}\n").as_bytes())?;
    let mut sums = String::new();
    for (path, bytes) in data.files().filter(|(path, _)| *path != CONFIGURATION) {
        writeln!(sums, "{:x}  {path}", md5::compute(bytes))?;
    }
    archive.add("md5sums", 0o644, sums.as_bytes())?;
    for script in ["postinst", "prerm", "postrm"] {
        let file = folder.join(script);
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        archive.add(script, 0o755, &text)?;
    }
    Ok(archive)
}

fn maintainer() -> String {
    let name = env::var("DEBFULLNAME").unwrap_or_else(|_| MAINTAINER.0.into());
    let address = env::var("DEBEMAIL").unwrap_or_else(|_| MAINTAINER.1.into());
    format!("{name} <{address}>")
}

/// A time in seconds since 1970 as electronic mail writes it (RFC 5322 section 3.3), in UTC.
fn date(time: u64) -> String {
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (days, seconds) = (time / 86_400, time % 86_400);
    let weekday = DAYS[(days % 7) as usize];
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = MONTHS[0].0;
    for (name, length) in MONTHS {
        month = name;
        let length = length + u64::from(name == "Feb" && is_leap(year));
        if day < length {
            break;
        }
        day -= length;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} +0000", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(date(951_782_399), "Mon, 28 Feb 2000 23:59:59 +0000");
        assert_eq!(date(951_782_400), "Tue, 29 Feb 2000 00:00:00 +0000");
        assert_eq!(date(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 +0000");
        assert_eq!(date(1_795_200_000), "Fri, 20 Nov 2026 18:40:00 +0000");
    }

    #[test]
    fn the_package_says_for_whom_it_is() {
        let package =
            Package { version: "1.2.3", arch: Architecture::Arm64, libc: (2, 34), size: 4097 };
        assert_eq!(package.file_name(), "mpt_1.2.3-1_arm64.deb");
        let text = package.control();
        for line in ["Version: 1.2.3-1", "Architecture: arm64", "Installed-Size: 5"] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
        assert!(text.contains("libc6 (>= 2.34)"), "{text}");
        // What follows the first line of a description is indented.
        let description = text.lines().skip_while(|line| !line.starts_with("Description")).skip(1);
        assert!(description.clone().count() > 3);
        assert!({ description }.all(|line| line.starts_with(' ')), "{text}");
    }
}
