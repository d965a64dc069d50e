//! Files of the original MPT, and what `mpt import` makes of them.
//!
//! Each folder of `import` is a separate test: the output and the messages are stored beside it.
//! `papers` and `al-imareen` follow the listings of the publications, `sample` the files that come
//! with the original. Each file in `import/wrong` is a mistake, imported together with what is
//! right. To change a result on purpose, run with `INSTA_UPDATE=always` and read the difference.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for name in names(&data(), |path| path.is_dir() && !path.ends_with("wrong")) {
        trials.push(Trial::test(format!("import {name}"), move || import(&name)));
    }
    let mistake = |path: &Path| {
        let is_conf = path.extension().is_some_and(|extension| extension == "conf");
        is_conf && !path.ends_with("interface.conf") && !path.ends_with("connection.conf")
    };
    for name in names(&data().join("wrong"), mistake) {
        trials.push(Trial::test(format!("refuse {name}"), move || refuse(&name)));
    }
    trials.push(Trial::test("no result without its files", no_result_without_files));
    trials.push(Trial::test("a file is written once", a_file_is_written_once));
    trials
        .push(Trial::test("who may read it is decided by a key", who_may_read_is_decided_by_a_key));
    trials.push(Trial::test("a link keeps its place", a_link_keeps_its_place));
    trials
        .push(Trial::test("a failed write leaves what stood there", a_failed_write_leaves_the_old));
    trials.push(Trial::test("a check writes nothing", a_check_writes_nothing));
    trials.push(Trial::test("what is missing is told", what_is_missing_is_told));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Imports a folder, for either kind of peer. What comes of it is taken by `mpt check`.
fn import(name: &str) -> Result<(), Failed> {
    // A result that must be fixed by hand.
    let code = if name == "mend" { 1 } else { 0 };
    let output = mpt(&data(), &["import", "--stdout", name])?;
    if output.status.code() != Some(code) {
        return Err(format!("{output:?}").into());
    }
    let again = mpt(&data(), &["import", "--stdout", name])?;
    if output != again {
        return Err("another time it is another result".into());
    }
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    stored(&data(), name, &format!("{stdout}\n== exit {code}, and on standard error\n{stderr}"));

    let folder = tempfile::tempdir()?;
    for peer in ["mpt-original", "mpt"] {
        let file = folder.path().join(peer).with_extension("toml");
        let file = file.to_string_lossy();
        for arguments in
            [&["import", "--peer", peer, name, "-o", &file][..], &["check", "--file-only", &file]]
        {
            let output = mpt(&data(), arguments)?;
            if output.status.code() != Some(code) {
                return Err(format!("{arguments:?}: {output:?}").into());
            }
        }
    }
    Ok(())
}

/// Imports a wrong file together with the other kind of file that is right.
fn refuse(name: &str) -> Result<(), Failed> {
    let folder = data().join("wrong");
    let other = if name.starts_with("interface-") { "connection.conf" } else { "interface.conf" };
    let output = mpt(&folder, &["import", "--stdout", &format!("{name}.conf"), other])?;
    let report = String::from_utf8(output.stderr)?;
    if output.status.code() != Some(2) || !output.stdout.is_empty() {
        return Err(format!("{}\n{report}", output.status).into());
    }
    let problems = report.lines().filter(|line| line.starts_with("error: ")).count();
    for needed in [format!("--> {name}.conf:"), "^".into(), "= help: ".into()] {
        if problems == 0 || report.matches(&needed).count() < problems {
            return Err(format!("`{needed}` is missing in\n{report}").into());
        }
    }
    if report.contains(KEY) {
        return Err(format!("a key is shown in\n{report}").into());
    }
    stored(&folder, name, &report);
    Ok(())
}

fn no_result_without_files() -> Result<(), Failed> {
    for (folder, extension) in [(data(), ""), (data().join("wrong"), "conf")] {
        for name in names(&folder, |path| path.extension().is_some_and(|other| other == "snap")) {
            if !folder.join(&name).with_extension(extension).exists() {
                return Err(format!("{name} has no files").into());
            }
        }
    }
    Ok(())
}

fn a_file_is_written_once() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let sample = data().join("sample");
    let sample = sample.to_string_lossy();
    let output = mpt(folder.path(), &["import", &sample])?;
    let file = folder.path().join("mpt.toml");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        String::from_utf8(output.stdout)?.starts_with("mpt.toml: written: 1 tunnel, 1 connection")
    );
    let first = fs::read_to_string(&file)?;

    fs::write(&file, "something else")?;
    let output = mpt(folder.path(), &["import", &sample])?;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = String::from_utf8(output.stderr)?;
    assert!(
        complaint.contains("mpt.toml exists already") && complaint.contains("--force"),
        "{complaint}"
    );
    assert_eq!(fs::read_to_string(&file)?, "something else");
    let output = mpt(folder.path(), &["import", "--force", &sample])?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read_to_string(&file)?, first);
    Ok(())
}

/// Whatever the mode of what stood there was.
fn who_may_read_is_decided_by_a_key() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("mpt.toml");
    let (open, secret) = (data().join("sample"), folder.path().join("secret"));
    with_key(&secret)?;
    let mode = || fs::metadata(&file).map(|metadata| metadata.permissions().mode() & 0o777);
    for (from, before, after) in
        [(&open, None, 0o644), (&secret, Some(0o666), 0o600), (&open, Some(0o600), 0o644)]
    {
        if let Some(before) = before {
            fs::set_permissions(&file, fs::Permissions::from_mode(before))?;
        }
        let output = mpt(folder.path(), &["import", "--force", &from.to_string_lossy()])?;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(mode()?, after, "{}", from.display());
        let told = String::from_utf8(output.stdout)?.contains("mpt.toml: contains a key");
        assert_eq!(told, after == 0o600);
    }
    fs::remove_file(&file)?;
    let output = mpt(folder.path(), &["import", &secret.to_string_lossy()])?;
    assert_eq!((output.status.code(), mode()?), (Some(0), 0o600));
    Ok(())
}

/// The sample, with a key that a reader of its name in clear would know.
fn with_key(folder: &Path) -> std::io::Result<()> {
    let sample = data().join("sample/conf");
    fs::create_dir(folder)?;
    fs::copy(sample.join("interface.conf"), folder.join("interface.conf"))?;
    let connection = fs::read_to_string(sample.join("connections/ipv4.conf"))?;
    let keyless = connection.lines().filter(|line| !line.starts_with("auth_"));
    let keyless: String = keyless.flat_map(|line| [line, "\n"]).collect();
    let with_key = format!("[connection]\nauth_type = 2\nauth_key = {KEY}\n");
    fs::write(folder.join("connection.conf"), format!("{keyless}{with_key}"))
}

/// A key of 32 characters.
const KEY: &str = "4nd-th3-k3y-i5-n0b0dy-el5e5-bu5i";

fn a_link_keeps_its_place() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [link, target] = ["mpt.toml", "target.toml"].map(|name| folder.path().join(name));
    fs::write(&target, "something else")?;
    std::os::unix::fs::symlink("target.toml", &link)?;
    let sample = data().join("sample");
    let output = mpt(folder.path(), &["import", "--force", &sample.to_string_lossy()])?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(fs::symlink_metadata(&link)?.is_symlink());
    assert!(fs::read_to_string(&target)?.starts_with("# Made by"));
    for place in ["/dev/null", "."] {
        let output =
            mpt(folder.path(), &["import", "--force", "-o", place, &sample.to_string_lossy()])?;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8(output.stderr)?.contains("is not a regular file"));
    }
    Ok(())
}

fn a_failed_write_leaves_the_old() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("mpt.toml"), "something else")?;
    // No file may have even one byte.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_mpt")])
        .args(["import", "--force"])
        .arg(data().join("sample"))
        .current_dir(folder.path())
        .output()?;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr)?.contains("cannot write mpt.toml"));
    assert_eq!(fs::read_to_string(folder.path().join("mpt.toml"))?, "something else");
    assert_eq!(fs::read_dir(folder.path())?.count(), 1, "nothing else is left");
    Ok(())
}

fn a_check_writes_nothing() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for (name, code) in [("papers", 0), ("mend", 1), ("wrong", 2)] {
        let place = data().join(name);
        let output = mpt(folder.path(), &["import", "--check", &place.to_string_lossy()])?;
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(fs::read_dir(folder.path())?.count(), 0);
        let stdout = String::from_utf8(output.stdout)?;
        if name == "papers" {
            assert!(
                stdout.starts_with("can be imported: 1 tunnel, 1 connection, 2 paths"),
                "{stdout}"
            );
            assert!(stdout.contains("not a setting: interface.conf:6 cmd_timeout = 5"), "{stdout}");
        }
    }
    Ok(())
}

fn what_is_missing_is_told() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("latin.conf"), b"[tun_0]\nname = caf\xe9\n")?;
    let sample = data().join("sample/conf");
    let interface = sample.join("interface.conf");
    let connection = sample.join("connections/ipv4.conf");
    for (places, said) in [
        (vec![folder.path().join("nowhere")], "cannot read"),
        (vec![folder.path().join("latin.conf")], "line 2 is not UTF-8"),
        (vec![sample.join("..").join("..").join("wrong/empty.conf")], "neither an interface nor"),
        (vec![interface.clone()], "there is no file of a connection"),
        (vec![connection.clone()], "there is no interface.conf"),
        (vec![interface.clone(), interface, connection], "both describe an interface"),
        (vec![sample.join("..")], ""),
        (vec![data().join("..").join("cli")], "has no files that end in .conf"),
    ] {
        let places: Vec<_> = places.iter().map(|place| place.to_string_lossy()).collect();
        let arguments: Vec<&str> =
            ["import", "--check"].into_iter().chain(places.iter().map(|place| &**place)).collect();
        let output = mpt(folder.path(), &arguments)?;
        assert_eq!(output.status.code(), Some(if said.is_empty() { 0 } else { 2 }), "{output:?}");
        let complaint = String::from_utf8(output.stderr)?;
        assert!(complaint.contains(said), "{complaint}");
    }
    Ok(())
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// The names without extension of what a folder has, in order.
fn names(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the directory is part of the crate");
    let paths = entries.map(|entry| entry.expect("the directory can be read").path());
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = paths.filter(|path| wanted(path)).filter_map(stem).collect();
    names.sort();
    names
}

fn mpt(folder: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_mpt")).args(arguments).current_dir(folder).output()
}

fn stored(folder: &Path, name: &str, result: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, result));
}
