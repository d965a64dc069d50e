//! `cargo xtask perf-gate` with a cargo that builds a stand-in for the program, and a valgrind that makes
//! up what it counts.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A gate whose cases `emit` and `parse` take as many instructions as a test says.
struct Gate {
    directory: TempDir,
}

impl Gate {
    fn new() -> Self {
        let gate = Self { directory: tempfile::tempdir().unwrap() };
        let program = gate.script(
            "instructions",
            r#"if [ "$1" = list ]; then printf 'parse\nemit\n'; else echo "$1 $(($2 + 7))"; fi"#,
        );
        let artifact = format!(
            r#"{{"reason":"compiler-artifact","package_id":"mpt","manifest_path":"/Cargo.toml",
            "target":{{"kind":["bench"],"crate_types":["bin"],"name":"instructions",
            "src_path":"/main.rs","edition":"2024","doc":false,"doctest":false,"test":false}},
            "profile":{{"opt_level":"3","debuginfo":1,"debug_assertions":false,
            "overflow_checks":false,"test":false}},"features":[],"filenames":[],
            "executable":"{}","fresh":true}}"#,
            program.display()
        );
        fs::write(gate.path("artifact"), artifact.replace('\n', "") + "\n").unwrap();
        let build = format!("cat {}", gate.path("artifact").display());
        let cargo = env!("CARGO");
        gate.script(
            "cargo",
            &format!("case $1 in bench) {build} ;; *) exec {cargo} \"$@\" ;; esac"),
        );
        // What a case takes is in a file of its name; 1234 more are for the start.
        gate.script(
            "valgrind",
            r#"for argument; do
                case $argument in --callgrind-out-file=*) out=${argument#*=} ;; esac
                program=$before before=$case case=$packets packets=$argument
            done
            echo "totals: $((1234 + $(cat "$(dirname "$0")/$case") * (packets + 7)))" > "$out"
            exec "$before" "$case" "$packets""#,
        );
        gate.takes("parse", 100);
        gate.takes("emit", 300);
        gate
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn takes(&self, case: &str, instructions: u32) {
        fs::write(self.path(case), instructions.to_string()).unwrap();
    }

    fn figures(&self) -> String {
        fs::read_to_string(self.path("figures.toml")).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        self.run_with_path(&format!("{}:{path}", self.directory.path().display()), arguments)
    }

    fn run_with_path(&self, path: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("perf-gate")
            .arg("--figures")
            .arg(self.path("figures.toml"))
            .args(arguments)
            .env("CARGO", self.path("cargo"))
            .env("CARGO_TARGET_DIR", self.path("out"))
            .env("PATH", path)
            .output()
            .unwrap()
    }
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn what_is_stored_passes_what_takes_more_is_refused_and_what_takes_less_is_mentioned() {
    let gate = Gate::new();
    assert_eq!(gate.run(&["--update"]).status.code(), Some(0));
    assert!(gate.figures().contains("emit = 300.0\nparse = 100.0\n"), "{}", gate.figures());
    let (code, stdout, stderr) = told(&gate.run(&[]));
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("2 cases, none worse by more than 5 %"), "{stdout}");

    gate.takes("parse", 106);
    let (code, stdout, stderr) = told(&gate.run(&[]));
    assert_eq!(code, Some(1));
    assert!(stdout.contains("106.0    +6.0 %   WORSE"), "{stdout}");
    assert!(stderr.contains("worse by more than 5 %: parse\n"), "{stderr}");
    assert!(stderr.contains("out/perf-gate/parse.out"), "{stderr}");
    assert!(Path::new(&gate.path("out/perf-gate/parse.out")).exists());

    gate.takes("parse", 80);
    let (code, stdout, _) = told(&gate.run(&[]));
    assert_eq!(code, Some(0));
    assert!(stdout.contains("better by more than 5 %: parse; keep it so with"), "{stdout}");
}

#[test]
fn cases_without_figure_and_figures_without_case_are_refused() {
    let gate = Gate::new();
    gate.run(&["--update"]);
    let changed = gate.figures().replace("emit", "omit");
    fs::write(gate.path("figures.toml"), changed).unwrap();
    let (code, _, stderr) = told(&gate.run(&[]));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("differ: emit, omit;"), "{stderr}");
}

#[test]
fn some_cases_can_be_looked_at_and_stored_alone() {
    let gate = Gate::new();
    gate.run(&["--update"]);
    gate.takes("parse", 200);
    gate.takes("emit", 200);
    let (code, stdout, _) = told(&gate.run(&["emit"]));
    assert_eq!(code, Some(0));
    assert!(!stdout.contains("parse"), "{stdout}");
    assert_eq!(gate.run(&["emit", "--update"]).status.code(), Some(0));
    assert!(gate.figures().contains("emit = 200.0\nparse = 100.0\n"), "{}", gate.figures());
    let (code, _, stderr) = told(&gate.run(&["send"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("no case send; there are: parse, emit"), "{stderr}");
}

#[test]
fn figures_of_another_compiler_are_compared_with_but_refuse_nothing() {
    let gate = Gate::new();
    gate.run(&["--update"]);
    fs::write(gate.path("figures.toml"), gate.figures().replace("\"rustc ", "\"rustc 0.")).unwrap();
    gate.takes("parse", 200);
    let (code, stdout, stderr) = told(&gate.run(&[]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains("nothing fails, because the figures were measured with rustc 0."),
        "{stdout}"
    );
    assert!(stderr.contains("worse by more than 5 %: parse"), "{stderr}");
}

#[test]
fn without_valgrind_the_remedy_is_told() {
    let gate = Gate::new();
    fs::remove_file(gate.path("valgrind")).unwrap();
    let rustc = Command::new("sh").args(["-c", "command -v rustc"]).output().unwrap().stdout;
    let rustc = PathBuf::from(String::from_utf8(rustc).unwrap().trim());
    let shell = gate.path("bin");
    fs::create_dir(&shell).unwrap();
    for tool in [Path::new("/bin/cat"), &rustc] {
        std::os::unix::fs::symlink(tool, shell.join(tool.file_name().unwrap())).unwrap();
    }
    let (code, _, stderr) = told(&gate.run_with_path(shell.to_str().unwrap(), &[]));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("apt-get install valgrind"), "{stderr}");
}

#[test]
fn a_program_that_fails_and_a_count_of_nothing_are_errors() {
    let gate = Gate::new();
    gate.takes("parse", 0);
    let (code, _, stderr) = told(&gate.run(&[]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("callgrind counted nothing"), "{stderr}");

    gate.script("valgrind", "echo lost >&2; exit 3");
    let (code, _, stderr) = told(&gate.run(&[]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("case parse") && stderr.contains("lost"), "{stderr}");
}
