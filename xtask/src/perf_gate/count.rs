//! Running a case under callgrind.
//!
//! Callgrind begins and ends to count where the program enters and leaves `counted_round`. A case runs
//! twice, the second time with twice as many packets; the difference belongs to packets alone, without what
//! is done only once.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, bail, ensure};
use cargo_metadata::Message;

use crate::cargo;

/// The benchmark of `mpt-io` that is run.
const BENCH: &str = "instructions";

/// The function that is counted.
const COUNTED: &str = "*counted_round*";

/// Packets of the shorter run: twice what the largest reorder buffer holds.
const PACKETS: usize = 20_000;

/// The C library chooses how to copy memory by the processor it finds. This leaves it only the way that
/// every x86-64 processor can go, so that a copy counts the same on all of them.
const TUNABLES: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-Prefer_ERMS,-Prefer_FSRM";

/// The program whose instructions are counted.
pub(super) struct Program {
    executable: PathBuf,
    /// Where callgrind's profiles go.
    profiles: PathBuf,
}

impl Program {
    /// Builds it as it ships. Profiles will be kept in the directory `profiles`.
    pub(super) fn build(profiles: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&profiles)
            .with_context(|| format!("cannot make {}", profiles.display()))?;
        let mut build = cargo::command()
            .args(["bench", "--quiet", "--package", "mpt-io", "--bench", BENCH, "--no-run"])
            .arg("--message-format=json-render-diagnostics")
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start cargo")?;
        let messages = build.stdout.take().context("cargo has no output")?;
        let mut executable = None;
        for message in Message::parse_stream(BufReader::new(messages)) {
            if let Message::CompilerArtifact(artifact) =
                message.context("cannot read cargo's output")?
                && artifact.target.name == BENCH
            {
                executable = artifact.executable;
            }
        }
        ensure!(build.wait()?.success(), "the build failed, so there is nothing to count");
        let executable = executable.context("cargo built no program")?.into_std_path_buf();
        Ok(Self { executable, profiles })
    }

    /// The names of the cases.
    pub(super) fn cases(&self) -> anyhow::Result<Vec<String>> {
        let output = Command::new(&self.executable).arg("list").output();
        let output =
            output.with_context(|| format!("cannot start {}", self.executable.display()))?;
        let names = succeeded(output)?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Counts cases, and gives each with its instructions per packet to `each`, in their order.
    pub(super) fn count_all(
        &self,
        cases: &[String],
        mut each: impl FnMut(&str, f64),
    ) -> anyhow::Result<()> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            // Here, so that an error ends it before the threads are waited for.
            let (sender, receiver) = mpsc::channel();
            for _ in 0..processors {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(number) else { return };
                        // Nobody listens any more: there was an error.
                        if sender.send((number, self.count(case))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut early = BTreeMap::new();
            for (number, case) in cases.iter().enumerate() {
                let count = loop {
                    if let Some(count) = early.remove(&number) {
                        break count;
                    }
                    let (number, count) = receiver.recv().context("a thread has ended")?;
                    early.insert(number, count);
                };
                each(case, count?);
            }
            Ok(())
        })
    }

    /// Instructions that a case takes per packet.
    fn count(&self, case: &str) -> anyhow::Result<f64> {
        let context = || format!("case {case}");
        let few = self.run(case, PACKETS).with_context(context)?;
        let many = self.run(case, 2 * PACKETS).with_context(context)?;
        ensure!(many.packets > few.packets, "{case} did not process more packets when requested");
        let instructions = many.instructions.saturating_sub(few.instructions);
        ensure!(instructions > 0, "callgrind counted nothing in {COUNTED} of {case}");
        Ok(instructions as f64 / (many.packets - few.packets) as f64)
    }

    /// The profile of a case that was counted.
    pub(super) fn profile(&self, case: &str) -> PathBuf {
        self.profiles.join(format!("{case}.out"))
    }

    fn run(&self, case: &str, packets: usize) -> anyhow::Result<Run> {
        let profile = self.profile(case);
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--cache-sim=no", "--branch-sim=no"])
            .arg(format!("--toggle-collect={COUNTED}"))
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(&self.executable)
            .args([case, &packets.to_string()])
            .env("GLIBC_TUNABLES", TUNABLES)
            .output();
        let output = match output {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!(
                    "valgrind is not installed, and nothing else counts; `apt-get install valgrind`"
                )
            }
            output => output.context("cannot start valgrind")?,
        };
        let said = succeeded(output)?;
        let moved = said.trim().strip_prefix(case).and_then(|rest| rest.trim().parse().ok());
        let packets = moved.with_context(|| format!("the program said {said:?}"))?;
        Ok(Run { packets, instructions: total(&profile)? })
    }
}

/// What happened in one run.
struct Run {
    packets: u64,
    instructions: u64,
}

/// The output of a program, if it succeeded; if not, its standard error is the error.
fn succeeded(output: Output) -> anyhow::Result<String> {
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The sum of all instructions in a profile (callgrind's format: "totals:" and a number).
fn total(profile: &Path) -> anyhow::Result<u64> {
    let context = || format!("cannot read {}", profile.display());
    let text = fs::read_to_string(profile).with_context(context)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals:"));
    total.and_then(|total| total.trim().parse().ok()).with_context(context)
}
