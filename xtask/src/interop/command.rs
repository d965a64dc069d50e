//! Programs that have to succeed, and what they say if they don't.

use std::process::{Child, Command, Output};

use anyhow::{Context, bail};

/// Runs `ip` with these arguments, separated by spaces, and gives what it printed.
pub(super) fn ip(arguments: &str) -> anyhow::Result<String> {
    output(Command::new("ip").args(arguments.split(' ')))
}

/// `program` in a namespace that has a name.
pub(super) fn within(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

/// Runs a program to its end and gives what it printed. An error has what it complained of.
pub(super) fn output(command: &mut Command) -> anyhow::Result<String> {
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot start {command:?}"))?;
    let printed = String::from_utf8_lossy(&stdout).into_owned();
    if !status.success() {
        let complaint = String::from_utf8_lossy(&stderr);
        bail!("{}: {status}\n{printed}{complaint}", line(command));
    }
    Ok(printed)
}

/// A command in shell syntax.
fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// A process that does not outlive this value.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
