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

/// Documents of the repository, compressed, and their names: the guide, and all that it refers to.
const DOCUMENTS: [(&str, &str); 13] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "changelog"),
    ("docs/adaptive.md", "adaptive.md"),
    ("docs/explain.md", "explain.md"),
    ("docs/guide.md", "guide.md"),
    ("docs/interop.md", "interop.md"),
    ("docs/lab.md", "lab.md"),
    ("docs/migrate.md", "migrate.md"),
    ("docs/mpt.toml", "mpt.toml"),
    ("docs/protocol.md", "protocol.md"),
    ("docs/security.md", "security.md"),
    ("docs/service.md", "service.md"),
    ("docs/status.md", "status.md"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guide_refers_to_is_installed_beside_it() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
        let guide = fs::read_to_string(guide).expect("the guide");
        let links = guide.split("](").skip(1).filter_map(|link| link.split([')', '#']).next());
        let files: Vec<&str> =
            links.filter(|link| !link.is_empty() && !link.contains('/')).collect();
        assert!(files.len() > 10, "{files:?}");
        for file in files {
            assert!(DOCUMENTS.iter().any(|(_, name)| *name == file), "{file}");
        }
    }
}
