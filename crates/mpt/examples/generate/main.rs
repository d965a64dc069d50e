//! Manual pages and shell completions, made from the command line's own definition.
//!
//! `cargo run -p mpt --example generate -- FOLDER` fills a folder: `man/man1` with a page for each
//! command, `man/man5` with what a configuration may say, and `completions` for bash, zsh and fish, as `mpt man` and
//! `mpt completions` have them. `cargo xtask generate` calls it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap_complete::Shell;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [folder] = arguments.as_slice() else { bail!("use: generate FOLDER") };
    generate(Path::new(folder))
}

/// Makes everything in `folder`, which need not exist.
fn generate(folder: &Path) -> anyhow::Result<()> {
    for (name, text) in mpt::manual_pages()? {
        let section = name.rsplit('.').next().unwrap_or_default();
        let place = made(folder.join(format!("man/man{section}")))?.join(name);
        fs::write(&place, text).with_context(|| format!("cannot write {}", place.display()))?;
    }
    let completions = made(folder.join("completions"))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut mpt::command_line(), "mpt", &completions)
            .with_context(|| format!("cannot write completions for {shell}"))?;
    }
    Ok(())
}

fn made(folder: PathBuf) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    #[test]
    fn every_page_is_rendered_without_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in mpt::manual_pages().unwrap() {
            let file = folder.path().join(&name);
            fs::write(&file, &text).unwrap();
            let file = file.to_str().unwrap();
            let Some(output) = run("groff", &["-Kutf8", "-man", "-Tutf8", "-ww", "-z", file])
            else {
                return;
            };
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{name}: {said}");
        }
    }

    #[test]
    fn the_shells_take_their_completions() {
        let folder = tempfile::tempdir().unwrap();
        generate(folder.path()).unwrap();
        let completions = folder.path().join("completions");
        for (shell, file) in [("bash", "mpt.bash"), ("zsh", "_mpt"), ("fish", "mpt.fish")] {
            let file = completions.join(file);
            let text = fs::read_to_string(&file).unwrap();
            for word in ["status", "json", "socket", "path"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
            let Some(output) = run(shell, &["-n", file.to_str().unwrap()]) else { continue };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    #[test]
    fn bash_completes_commands_and_options() {
        let folder = tempfile::tempdir().unwrap();
        generate(folder.path()).unwrap();
        let file = folder.path().join("completions/mpt.bash");
        let script = |words: &str, at: usize| {
            format!(
                "source {}; COMP_WORDS=({words}); COMP_CWORD={at}; \
                 _mpt mpt \"${{COMP_WORDS[{at}]}}\" \"\"; echo \"${{COMPREPLY[*]}}\"",
                file.display()
            )
        };
        for (words, at, wanted) in [("mpt sta", 1, "status"), ("mpt status --js", 2, "--json")] {
            let Some(output) = run("bash", &["-c", &script(words, at)]) else { return };
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), wanted);
        }
    }

    /// The output of a program, or `None` with a message if it is not installed. zsh and fish are
    /// often missing, so these two may be skipped even if skips are errors.
    fn run(program: &str, arguments: &[&str]) -> Option<Output> {
        match Command::new(program).args(arguments).output() {
            Ok(output) => Some(output),
            Err(error) => {
                let optional = ["zsh", "fish"].contains(&program);
                assert!(
                    optional || std::env::var_os("MPT_NO_SKIP").is_none(),
                    "{program}: {error}"
                );
                println!("skipped: {program}: {error}");
                None
            }
        }
    }
}
