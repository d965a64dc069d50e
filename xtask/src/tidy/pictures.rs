//! Pictures of the documents are small enough for a slow line.

use std::fs;
use std::io;
use std::path::Path;

use super::Violation;

/// Where they are, below the root.
const FOLDER: &str = "docs/images";

/// Most bytes of one.
const MAX_BYTES: u64 = 200_000;

/// Every picture that is too large.
pub(super) fn check(root: &Path) -> io::Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER))? {
        let entry = entry?;
        let bytes = entry.metadata()?.len();
        if bytes > MAX_BYTES {
            violations.push(Violation::new(
                format!("{FOLDER}/{}", entry.file_name().display()),
                format!("it has {bytes} bytes, more than {MAX_BYTES}"),
                "have contrib/pictures/make.sh make it, which reduces it to a palette",
            ));
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_above_the_limit_is_named() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(FOLDER);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("small.png"), vec![0; MAX_BYTES as usize]).unwrap();
        assert_eq!(check(root.path()).unwrap(), []);
        fs::write(folder.join("large.png"), vec![0; MAX_BYTES as usize + 1]).unwrap();
        let violations = check(root.path()).unwrap();
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].place, "docs/images/large.png");
    }
}
