//! Digests: what tells builds of a program, and questions, apart.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use ring::digest::{SHA256, digest};

/// The SHA-256 of these bytes in hexadecimal digits, as `sha256sum` prints it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, bytes).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The SHA-256 of a file.
///
/// # Errors
///
/// It cannot be read.
pub fn sha256_of_file(file: &Path) -> io::Result<String> {
    Ok(sha256(&fs::read(file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_sha256sum_prints() {
        // The second example of FIPS 180-2, appendix B.
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let known = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(sha256(text), known);
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, text).unwrap();
        assert_eq!(sha256_of_file(&file).unwrap(), known);
    }
}
