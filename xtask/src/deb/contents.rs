//! What the package installs, and where (file-hierarchy(7), Debian Policy 9 and 12).

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::Archive;

/// Configuration that an administrator may change, which an upgrade then leaves alone.
pub(super) const CONFIGURATION: &str = "etc/mpt/mpt.toml.example";

/// Files of the repository and where they go.
const FILES: [(&str, &str); 6] = [
    ("packaging/mpt.service", "lib/systemd/system/mpt.service"),
    ("packaging/mpt@.service", "lib/systemd/system/mpt@.service"),
    ("packaging/mpt.sysusers", "usr/lib/sysusers.d/mpt.conf"),
    ("packaging/mpt.toml.example", CONFIGURATION),
    ("packaging/debian/copyright", "usr/share/doc/mpt/copyright"),
    ("packaging/debian/lintian-overrides", "usr/share/lintian/overrides/mpt"),
];

/// Documents of the repository, compressed, and their names.
const DOCUMENTS: [(&str, &str); 6] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "changelog"),
    ("docs/guide.md", "guide.md"),
    ("docs/migrate.md", "migrate.md"),
    ("docs/protocol.md", "protocol.md"),
    ("docs/service.md", "service.md"),
];

/// Completions as they are made and where each shell looks for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("mpt.bash", "usr/share/bash-completion/completions/mpt"),
    ("_mpt", "usr/share/zsh/vendor-completions/_mpt"),
    ("mpt.fish", "usr/share/fish/vendor_completions.d/mpt.fish"),
];

/// All of it but what is known only later. `generated` has manual pages and completions.
pub(super) fn archive(
    root: &Path,
    generated: &Path,
    program: &[u8],
    time: u64,
) -> anyhow::Result<Archive> {
    let mut archive = Archive::new(time);
    archive.add("usr/bin/mpt", 0o755, program)?;
    for (from, to) in FILES {
        archive.add(to, 0o644, &read(&root.join(from))?)?;
    }
    for (from, to) in DOCUMENTS {
        archive.add_compressed(&format!("usr/share/doc/mpt/{to}.gz"), &read(&root.join(from))?)?;
    }
    for (from, to) in COMPLETIONS {
        archive.add(to, 0o644, &read(&generated.join("completions").join(from))?)?;
    }
    for section in ["man1", "man5"] {
        let folder = generated.join("man").join(section);
        let pages = fs::read_dir(&folder);
        for page in pages.with_context(|| format!("cannot list {}", folder.display()))? {
            let page = page?;
            let name = page.file_name().to_string_lossy().into_owned();
            let place = format!("usr/share/man/{section}/{name}.gz");
            archive.add_compressed(&place, &read(&page.path())?)?;
        }
    }
    Ok(archive)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}
