//! Where inputs come from: the stored corpus, and what the repository has anyway.

use std::fs;
use std::path::{Path, PathBuf};

/// One input, and where it is from.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) origin: String,
    pub(crate) bytes: Vec<u8>,
}

/// The folder that cargo fuzz works in.
pub(crate) fn fuzz() -> PathBuf {
    repository().join("fuzz")
}

/// Everything that a target is given: what is stored for it, the wrong configurations that have a report,
/// and the datagrams that the protocol's document prints.
pub(crate) fn inputs(target: &str) -> Vec<Input> {
    let mut inputs = stored(target);
    match target {
        "config" => inputs.extend(
            files(&repository().join("crates/mpt/tests/bad-config"))
                .into_iter()
                .filter(|input| input.origin.ends_with(".toml")),
        ),
        // Any packet has a flow.
        "flow" => inputs.extend(stored("mss").into_iter().map(|input| Input {
            bytes: input.bytes.get(3..).unwrap_or_default().to_vec(),
            ..input
        })),
        "extended" | "gre" => inputs.extend(vectors()),
        _ => {}
    }
    inputs
}

/// The files of a target's corpus.
pub(crate) fn stored(target: &str) -> Vec<Input> {
    files(&fuzz().join("corpus").join(target))
}

/// The files in a folder, in the order of their names, so that every run is the same.
fn files(folder: &Path) -> Vec<Input> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    let input = |path: PathBuf| Input {
        bytes: fs::read(&path).expect("a file that can be read"),
        origin: path.display().to_string(),
    };
    paths.into_iter().map(input).collect()
}

/// The blocks of hexadecimal digits among the test vectors of `docs/protocol.md`.
fn vectors() -> Vec<Input> {
    let path = repository().join("docs/protocol.md");
    let document = fs::read_to_string(path).expect("the protocol's document");
    let section = document.split("## 14. Test vectors").nth(1).expect("the section");
    let blocks = section.split("```").skip(1).step_by(2);
    let inputs: Vec<Input> = blocks
        .map(|block| {
            let digits: Vec<u8> = block.bytes().filter(u8::is_ascii_hexdigit).collect();
            let byte = |pair: &[u8]| {
                let pair = std::str::from_utf8(pair).expect("ASCII");
                u8::from_str_radix(pair, 16).expect("hexadecimal")
            };
            let bytes = digits.chunks(2).map(byte).collect();
            Input { origin: "docs/protocol.md, section 14".to_owned(), bytes }
        })
        .collect();
    assert!(inputs.len() >= 8, "the vectors are where they were");
    inputs
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
