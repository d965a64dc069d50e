//! Archives: tar, compressed, and the `ar` around them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Files by their paths without the leading `/`, with owner root and one time for all.
pub(super) struct Archive {
    files: BTreeMap<String, (u32, Vec<u8>)>,
    time: u64,
}

impl Archive {
    /// An empty one, whose files will all have this time.
    pub(super) fn new(time: u64) -> Self {
        Self { files: BTreeMap::new(), time }
    }

    /// Adds a file with its permissions.
    ///
    /// # Errors
    /// There is one of that name already.
    pub(super) fn add(&mut self, path: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
        let before = self.files.insert(path.to_owned(), (mode, bytes.to_vec()));
        anyhow::ensure!(before.is_none(), "two files would be {path}");
        Ok(())
    }

    /// Adds a world-readable file with maximum compression. Its name should end in `.gz`.
    ///
    /// # Errors
    /// There is one of that name already.
    pub(super) fn add_compressed(&mut self, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
        self.add(path, 0o644, &compressed(bytes)?)
    }

    /// The files by their paths.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, (_, bytes))| (path.as_str(), bytes.as_slice()))
    }

    /// The sum of the files' sizes in bytes, each rounded up to a kibibyte.
    pub(super) fn size(&self) -> u64 {
        self.files().map(|(_, bytes)| bytes.len().next_multiple_of(1024) as u64).sum()
    }

    /// As a compressed tar, every folder before what is in it.
    fn into_tar(self) -> io::Result<Vec<u8>> {
        let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        let mut made = vec![String::new()];
        for (path, (mode, bytes)) in &self.files {
            let folders =
                Path::new(path).ancestors().skip(1).map(|folder| folder.to_string_lossy());
            let mut missing: Vec<String> =
                folders.map(String::from).filter(|folder| !made.contains(folder)).collect();
            missing.reverse();
            for folder in missing {
                let mut header = self.header(EntryType::Directory, 0o755, 0);
                tar.append_data(&mut header, format!("./{folder}/"), io::empty())?;
                made.push(folder);
            }
            let mut header = self.header(EntryType::Regular, *mode, bytes.len() as u64);
            tar.append_data(&mut header, format!("./{path}"), bytes.as_slice())?;
        }
        tar.into_inner()?.finish()
    }

    fn header(&self, kind: EntryType, mode: u32, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_mtime(self.time);
        header.set_uid(0);
        header.set_gid(0);
        header
    }
}

/// Bytes compressed by gzip, without a name or time.
fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    gzip.finish()
}

/// A Debian package of these two (deb(5)).
pub(super) fn package(control: Archive, data: Archive, time: u64) -> io::Result<Vec<u8>> {
    let mut package = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control.into_tar()?),
        ("data.tar.gz", data.into_tar()?),
    ];
    for (name, bytes) in members {
        // Name, time, owner, group, mode, size and an end, in columns (ar(5)).
        let size = bytes.len();
        writeln!(package, "{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, 100_644)?;
        package.extend(bytes);
        if size % 2 == 1 {
            package.push(b'\n');
        }
    }
    Ok(package)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn folders_come_before_their_files_and_everything_has_one_owner_and_time() {
        let mut archive = Archive::new(77);
        archive.add("usr/share/doc/x", 0o644, b"text").unwrap();
        archive.add("usr/bin/x", 0o755, b"program").unwrap();
        assert_eq!(archive.size(), 2048);
        let tar = archive.into_tar().unwrap();
        let mut tar = tar::Archive::new(GzDecoder::new(tar.as_slice()));
        let mut seen = Vec::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 77));
            seen.push((entry.path().unwrap().display().to_string(), header.mode().unwrap(), text));
        }
        let of = |path: &str, mode, text: &str| (String::from(path), mode, String::from(text));
        let expected = [
            of("usr/", 0o755, ""),
            of("usr/bin/", 0o755, ""),
            of("usr/bin/x", 0o755, "program"),
            of("usr/share/", 0o755, ""),
            of("usr/share/doc/", 0o755, ""),
            of("usr/share/doc/x", 0o644, "text"),
        ];
        let seen: Vec<_> = seen
            .into_iter()
            .map(|(path, mode, text)| of(path.trim_start_matches("./"), mode, &text))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn two_files_of_one_name_are_refused() {
        let mut archive = Archive::new(0);
        archive.add("a", 0o644, b"").unwrap();
        assert!(archive.add("a", 0o644, b"").is_err());
    }

    #[test]
    fn members_start_at_even_places_and_the_same_files_make_the_same_package() {
        let make = || {
            let mut control = Archive::new(1);
            control.add("control", 0o644, b"Package: x\n").unwrap();
            package(control, Archive::new(1), 1).unwrap()
        };
        let bytes = make();
        assert_eq!(bytes, make());
        assert!(bytes.starts_with(
            b"!<arch>\ndebian-binary   1           0     0     100644  4         `\n2.0\n"
        ));
        for name in ["control.tar.gz", "data.tar.gz"] {
            let at = bytes.windows(name.len()).position(|window| window == name.as_bytes());
            assert_eq!(at.unwrap() % 2, 0, "{name}");
        }
    }
}
