//! An initial file system for a kernel: the archive that it unpacks into memory when it starts.
//!
//! The format is the kernel's "newc" (Documentation/driver-api/early-userspace/buffer-format.rst): each
//! entry has a header of 13 numbers in hexadecimal, its name, and its contents, the last two padded to
//! four bytes. It is written here because entries need no file of that kind and no privilege: a console is
//! just numbers.

use std::collections::BTreeSet;
use std::path::Path;

/// File types, as in stat(2).
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// The name of the entry at the end.
const TRAILER: &str = "TRAILER!!!";

/// An archive that grows.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    /// The folders that exist.
    folders: BTreeSet<String>,
}

impl Archive {
    /// A folder, with those above it.
    pub(super) fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.folders.contains(path) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.folders.insert(path.to_owned());
        self.entry(path, FOLDER | 0o755, (0, 0), &[]);
    }

    /// A file that may be executed, at an absolute path.
    pub(super) fn program(&mut self, path: &Path, contents: &[u8]) {
        let path = self.place(path);
        self.entry(&path, FILE | 0o755, (0, 0), contents);
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &Path, target: &str) {
        let path = self.place(path);
        self.entry(&path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// A character device by its numbers.
    pub(super) fn device(&mut self, path: &Path, major: u32, minor: u32) {
        let path = self.place(path);
        self.entry(&path, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, (0, 0), &[]);
        self.bytes
    }

    /// The name of an entry, after its folder has been made.
    fn place(&mut self, path: &Path) -> String {
        let path = path.to_string_lossy();
        let path = path.trim_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        path.to_owned()
    }

    fn entry(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let len = |bytes: usize| u32::try_from(bytes).expect("files of less than 4 GiB");
        let header = [
            self.entries,        // inode
            mode,                //
            0,                   // owner
            0,                   // group
            1,                   // links
            0,                   // time
            len(contents.len()), //
            0,                   // device that the file was on, major and minor
            0,                   //
            major,               // device that the file is
            minor,               //
            len(name.len() + 1), //
            0,                   // checksum, which this kind of archive has not
        ];
        self.bytes.extend_from_slice(b"070701");
        for number in header {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_headers_names_and_contents_on_four_bytes() {
        let mut archive = Archive::default();
        archive.program(Path::new("/bin/a"), b"12345");
        archive.device(Path::new("/dev/console"), 5, 1);
        archive.link(Path::new("/bin/b"), "a");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let mut names = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!((at % 4, &text[at..at + 6]), (0, "070701"));
            let field = |number: usize| {
                let from = at + 6 + 8 * number;
                usize::from_str_radix(&text[from..from + 8], 16).unwrap()
            };
            let (mode, len, name_len) = (field(1), field(6), field(11));
            let name = &text[at + 110..at + 110 + name_len - 1];
            let contents = (at + 110 + name_len).next_multiple_of(4);
            names.push(format!("{name} {mode:o} {}", &text[contents..contents + len]));
            if name == "dev/console" {
                assert_eq!((field(9), field(10)), (5, 1));
            }
            at = (contents + len).next_multiple_of(4);
        }
        assert_eq!(
            names,
            [
                "bin 40755 ",
                "bin/a 100755 12345",
                "dev 40755 ",
                "dev/console 20600 ",
                "bin/b 120777 a",
                "TRAILER!!! 0 "
            ]
        );
    }
}
