//! `mpt-lab shell HOST`: a command inside a host of a lab that is up.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use nix::sched::{CloneFlags, setns};

use mpt_lab::running::{Folder, Running};

/// Runs a command in a host of a running lab, by default your shell.
///
/// Exit code: that of the command, or 2 if it could not run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mpt-lab shell left                                your shell there\n\
\x20 mpt-lab shell left -- ping 10.9.0.2               one command"
)]
pub(crate) struct Arguments {
    /// `left` or `right`.
    host: String,
    /// The lab's name; not needed if only one is running.
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command: on success this process has become another program.
///
/// # Errors
///
/// There is no such lab or host, or the command cannot be run.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let running = choose(&Folder::open()?, arguments.lab.as_deref())?;
    enter(&running, &arguments.host)?;
    let (program, rest) = match arguments.command.split_first() {
        Some((program, rest)) => (program.clone(), rest),
        None => (env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()), &[][..]),
    };
    let host = format!("{}/{}", running.name, arguments.host);
    let error = Command::new(&program).args(rest).env("MPT_LAB_HOST", host).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

fn choose(folder: &Folder, name: Option<&str>) -> Result<Running> {
    let mut all = folder.all()?;
    let names = all.iter().map(|lab| lab.name.clone()).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        all.retain(|lab| lab.name == name);
    }
    match (all.len(), name) {
        (1, _) => Ok(all.remove(0)),
        (_, _) if names.is_empty() => {
            bail!("no lab is running: start one with `mpt-lab up FILE` in another terminal")
        }
        (0, Some(name)) => bail!("no running lab is called `{name}`; there are: {names}"),
        _ => bail!("several labs are running, select one with --lab: {names}"),
    }
}

/// Enters the lab's user and mount namespaces, where they are not the ones here, and the host's
/// network namespace.
fn enter(running: &Running, host: &str) -> Result<()> {
    let Some(found) = running.hosts.iter().find(|candidate| candidate.name == host) else {
        let names: Vec<_> = running.hosts.iter().map(|host| host.name.as_str()).collect();
        bail!("no host is called `{host}`: there are {}", names.join(" and "));
    };
    let process = format!("/proc/{}", running.pid);
    // Descriptors are opened first: behind the first door the others may be out of sight.
    let network = open(&format!("{process}/fd/{}", found.descriptor))?;
    let user = other_namespace(&process, "user")?;
    let mounts = other_namespace(&process, "mnt")?;
    let here = env::current_dir();
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER).context("cannot enter the lab's user namespace")?;
    }
    if let Some(mounts) = mounts {
        setns(mounts, CloneFlags::CLONE_NEWNS).context("cannot enter the lab's mounts")?;
        // Entering sets the working directory to the root.
        if let Ok(here) = here {
            let _ = env::set_current_dir(here);
        }
    }
    setns(network, CloneFlags::CLONE_NEWNET).context("cannot enter the host")
}

/// A namespace of the process, unless this process is in it already.
fn other_namespace(process: &str, kind: &str) -> Result<Option<File>> {
    let file = format!("{process}/ns/{kind}");
    let inode = |file: &str| fs::metadata(file).map(|data| (data.dev(), data.ino()));
    let theirs = inode(&file).with_context(|| format!("cannot look at {file}"))?;
    let own = inode(&format!("/proc/self/ns/{kind}")).context("cannot look at /proc/self/ns")?;
    if theirs == own { Ok(None) } else { open(&file).map(Some) }
}

fn open(file: &str) -> Result<File> {
    File::open(file)
        .with_context(|| format!("cannot open {file}: does the lab belong to another user?"))
}
