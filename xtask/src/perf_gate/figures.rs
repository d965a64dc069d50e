//! The stored figures, and under which conditions they hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::{env, fmt};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// Percent by which a count may grow: a change elsewhere in a crate moves the compiler's decisions
/// about inlining by some percent, which should not fail the gate.
const TOLERANCE: f64 = 5.0;

/// What stands above the figures in their file.
const PREFACE: &str = "\
# Instructions per packet of parts of the data path, and the growth in percent that is tolerated.
# Written by `cargo xtask perf-gate --update`; see docs/performance.md.
";

/// Instructions per packet by case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figures {
    /// Percent.
    pub(super) tolerance: f64,
    pub(super) conditions: Conditions,
    instructions: BTreeMap<String, f64>,
}

/// What decides which instructions are executed, other than the sources.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Conditions {
    /// The compiler's version, as it says itself.
    compiler: String,
    /// What it compiles for.
    target: String,
    /// Whether the processor has AVX2, by which the checksum is then taken.
    avx2: bool,
}

impl Figures {
    pub(super) fn empty(tolerance: f64, conditions: Conditions) -> Self {
        Self { tolerance, conditions, instructions: BTreeMap::new() }
    }

    /// Reads a file; none is the same as one without a figure.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        if !file.exists() {
            return Ok(Self::empty(TOLERANCE, Conditions::here()?));
        }
        let context = || format!("cannot read {}", file.display());
        toml::from_str(&fs::read_to_string(file).with_context(context)?).with_context(context)
    }

    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        fs::write(file, self.to_string())
            .with_context(|| format!("cannot write {}", file.display()))
    }

    pub(super) fn get(&self, case: &str) -> Option<f64> {
        self.instructions.get(case).copied()
    }

    /// One figure over another one, where both are there.
    pub(super) fn ratio(&self, case: &str, other: &str) -> Option<f64> {
        Some(self.get(case)? / self.get(other)?)
    }

    pub(super) fn set(&mut self, case: String, count: f64) {
        self.instructions.insert(case, count);
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.instructions.keys().map(String::as_str)
    }

    /// These figures with some replaced.
    ///
    /// # Errors
    ///
    /// If those hold under other conditions, for then all of them do.
    pub(super) fn with(mut self, others: Self) -> anyhow::Result<Self> {
        if let Some(difference) = self.conditions.difference(&others.conditions) {
            bail!("the other figures were taken with {difference}; update all of them");
        }
        self.instructions.extend(others.instructions);
        Ok(self)
    }
}

/// The file.
impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conditions { compiler, target, avx2 } = &self.conditions;
        writeln!(formatter, "{PREFACE}tolerance = {:?}", self.tolerance)?;
        writeln!(formatter, "\n[conditions]\ncompiler = {compiler:?}\ntarget = {target:?}")?;
        writeln!(formatter, "avx2 = {avx2}\n\n[instructions]")?;
        for (case, count) in &self.instructions {
            writeln!(formatter, "{case} = {count:.1}")?;
        }
        Ok(())
    }
}

impl Conditions {
    /// Those of this machine. Valgrind passes the processor's AVX2 on, but no AVX-512.
    pub(super) fn here() -> anyhow::Result<Self> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
        ensure!(output.status.success(), "rustc does not report its version");
        let text = String::from_utf8_lossy(&output.stdout);
        let compiler = text.lines().next().context("rustc prints nothing")?.to_owned();
        let target = text.lines().find_map(|line| line.strip_prefix("host: "));
        let target = target.context("rustc does not report its target")?.to_owned();
        #[cfg(target_arch = "x86_64")]
        let avx2 = std::arch::is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let avx2 = false;
        Ok(Self { compiler, target, avx2 })
    }

    /// How other conditions differ from these, if they do, in the words "these, not those".
    pub(super) fn difference(&self, others: &Self) -> Option<String> {
        if self == others {
            return None;
        }
        Some(format!("{self}, and this is {others}"))
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { compiler, target, avx2 } = self;
        let avx2 = if *avx2 { "with" } else { "without" };
        write!(formatter, "{compiler} for {target} {avx2} AVX2")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cases: &[(&str, f64)]) -> Figures {
        let mut figures = Figures::empty(7.5, Conditions::here().unwrap());
        cases.iter().for_each(|(case, count)| figures.set((*case).to_owned(), *count));
        figures
    }

    #[test]
    fn what_is_written_is_read() {
        let written = figures(&[("emit", 17.0), ("parse", 123.4)]);
        let file = tempfile::NamedTempFile::new().unwrap();
        written.write(file.path()).unwrap();
        assert_eq!(Figures::read(file.path()).unwrap(), written);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_figures_and_a_broken_one_is_an_error() {
        let nothing = Figures::read(Path::new("/nonexistent/file")).unwrap();
        assert_eq!((nothing.tolerance, nothing.names().count()), (TOLERANCE, 0));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "tolerance = 5.0").unwrap();
        assert!(Figures::read(file.path()).is_err());
    }

    #[test]
    fn some_can_be_taken_anew_but_only_under_the_same_conditions() {
        let old = figures(&[("a", 1.0), ("b", 2.0)]);
        let both = old.clone().with(figures(&[("b", 3.0)])).unwrap();
        assert_eq!(both, figures(&[("a", 1.0), ("b", 3.0)]));
        let mut others = figures(&[("b", 3.0)]);
        others.conditions.compiler = "rustc 0.1".to_owned();
        assert!(old.with(others).unwrap_err().to_string().contains("rustc 0.1"));
    }
}
