//! Every mistake in a configuration file, and what `mpt check` says about it.
//!
//! Each file of `bad-config` is a separate test. Its complete report is stored beside it, because
//! the wording is the feature: what is wrong, where, and what to do about it. To change a report on
//! purpose, run with `INSTA_UPDATE=always` and read the difference.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-config");
    let entries = fs::read_dir(&directory).expect("the directory is part of the crate");
    let mut trials: Vec<Trial> = entries
        .filter_map(|entry| {
            let path = entry.expect("the directory can be read").path();
            let name = path.file_stem()?.to_str()?.to_owned();
            let is_toml = path.extension().is_some_and(|extension| extension == "toml");
            is_toml.then(|| Trial::test(name.clone(), move || check(&name)))
        })
        .collect();
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    trials.push(Trial::test("no report without a file", no_report_without_a_file));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn check(name: &str) -> Result<(), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_mpt"))
        .arg("check")
        .arg(format!("{name}.toml"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-config"))
        .output()?;
    let report = String::from_utf8(output.stderr)?;
    if output.status.code() != Some(1) {
        return Err(format!("{}\n{report}", output.status).into());
    }
    if !output.stdout.is_empty() {
        return Err("something stands on standard output".into());
    }
    // One report per problem, each with a place in the file and a remedy.
    let problems = report.lines().filter(|line| line.starts_with("error: ")).count();
    let several = matches!(name, "several" | "syntax-several");
    if (problems > 1) != several || problems == 0 {
        return Err(format!("{problems} problems\n{report}").into());
    }
    for needed in [format!("--> {name}.toml:"), "^".into(), "= help: ".into()] {
        if report.matches(&needed).count() < problems {
            return Err(format!("`{needed}` is missing in\n{report}").into());
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("bad-config");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, report));
    Ok(())
}

fn no_report_without_a_file() -> Result<(), Failed> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-config");
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "snap")
            && !path.with_extension("toml").exists()
        {
            return Err(format!("{} has no file", path.display()).into());
        }
    }
    Ok(())
}
