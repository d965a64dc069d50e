//! `cargo xtask interop`: our daemon and Linux's own GRE over FOU, the two ends of one tunnel.
//!
//! Two network namespaces are joined by a wire. In one runs `mpt`; in the other the kernel itself puts GRE
//! in UDP (`ip fou`, `ip link add … type gre … encap fou`). [`case`] lists the ways in which both are
//! configured, and [`inside`] sends pings and TCP through each.
//!
//! Where the host's kernel has GRE over FOU, this happens on the host, in namespaces of a process that
//! takes everything with it when it ends. Elsewhere a [`guest`] does it: a Debian [`kernel`] in QEMU.
//! What is missing for that is said, with the way to have it, and skipped.

mod archive;
mod case;
mod command;
mod compare;
mod daemon;
mod guest;
mod inside;
mod kernel;
mod traffic;

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cargo::{self, workspace};
use kernel::Kernel;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the cases whose names contain this.
    #[arg(default_value = "")]
    filter: String,

    /// Whose kernel: the host's if it has GRE over FOU, or always one of them.
    #[arg(long, value_enum, default_value_t = On::Either)]
    on: On,

    /// A folder in which a Debian kernel package was unpacked, for the machine. Without it, `interop/kernel`
    /// below cargo's output, or what is installed.
    #[arg(long, value_name = "FOLDER")]
    kernel: Option<PathBuf>,

    /// Instead of the cases, the throughput of a sealed tunnel beside that of the kernel's WireGuard, in the machine. Where
    /// the host's kernel has WireGuard, `mpt-lab bench` measures both there.
    #[arg(long, conflicts_with_all = ["filter", "on"])]
    wireguard: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum On {
    Either,
    Host,
    Qemu,
}

/// What this program does in other places than the terminal.
#[derive(clap::Subcommand)]
pub(crate) enum Part {
    /// Be the first process of the machine.
    Boot {
        #[arg(default_value = "")]
        filter: String,
        #[arg(long)]
        wireguard: bool,
    },
    /// Try the cases in namespaces of this process's own.
    Cases {
        mpt: PathBuf,
        #[arg(default_value = "")]
        filter: String,
    },
    /// Find out whether this kernel has what the cases need.
    Probe,
    /// Be the server of a transfer.
    Serve { address: SocketAddr },
    /// Be the client of a transfer.
    Fetch { address: SocketAddr },
}

/// Exit code 1 if a case failed.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut lacking = missing(&["busybox", "ethtool", "ip"]);
    if !lacking.is_empty() {
        return skip(&lacking);
    }
    let target = workspace()?.target_directory.into_std_path_buf();
    if options.on != On::Qemu && !options.wireguard {
        match probe() {
            Ok(()) => {
                println!("interop: on this host's kernel");
                let cases = [Path::new("cases"), &built(&target)?, Path::new(&options.filter)];
                let status = apart(&cases).status().context("cannot start unshare")?;
                return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            Err(error) if options.on == On::Host => {
                return Err(
                    error.context("this host's kernel does not support it, or does not permit it")
                );
            }
            Err(_) => {}
        }
    }

    let folder = target.join("interop");
    lacking.extend(missing(&[guest::QEMU]));
    let besides: &[&str] = if options.wireguard { &[compare::MODULE] } else { &[] };
    let find = |root: &Path| Kernel::find(root, besides);
    let kernel = match &options.kernel {
        Some(root) => find(root),
        None => find(&folder.join("kernel")).or_else(|| find(Path::new("/"))),
    };
    let Some(kernel) = kernel.filter(|_| lacking.is_empty()) else {
        return skip(&lacking);
    };
    println!("interop: Linux {} in QEMU", kernel.version);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if options.wireguard {
        let [mpt, lab] = compare::built(&target)?;
        return guest::run(&kernel, &[("mpt", mpt), ("mpt-lab", lab)], &folder, "--wireguard");
    }
    guest::run(&kernel, &[("mpt", built(&target)?)], &folder, &options.filter)
}

/// The parts that run elsewhere.
pub(crate) fn run_part(part: &Part) -> anyhow::Result<ExitCode> {
    match part {
        Part::Boot { filter, wireguard } => guest::boot(|| match wireguard {
            true => compare::run(),
            false => inside::run(Path::new("/bin/mpt"), filter),
        }),
        Part::Cases { mpt, filter } => {
            let begun = Instant::now();
            let verdict = inside::run(mpt, filter);
            println!("{}", verdict.after(begun.elapsed()));
            Ok(verdict.exit_code())
        }
        Part::Probe => inside::probe().map(|()| ExitCode::SUCCESS),
        Part::Serve { address } => traffic::serve(*address).map(|()| ExitCode::SUCCESS),
        Part::Fetch { address } => traffic::fetch(*address).map(|()| ExitCode::SUCCESS),
    }
}

/// Whether the host's kernel has what is needed, and lets us have it.
fn probe() -> anyhow::Result<()> {
    command::output(&mut apart(&[Path::new("probe")])).map(|_| ())
}

/// This program in new namespaces, which end with it together with their content. An unprivileged
/// user becomes root in a user namespace.
fn apart(part: &[&Path]) -> Command {
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"].iter().filter(|_| !root));
    command.args(["--net", "--mount", "--pid", "--fork"]);
    command.args(["--mount-proc", "--kill-child", "--"]);
    command.arg(env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()));
    command.arg("interop-part").args(part);
    // Where those who are not root do not look.
    let path = env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// The daemon, built as tests have it.
fn built(target: &Path) -> anyhow::Result<PathBuf> {
    let built =
        cargo::command().args(["build", "--quiet", "--package", "mpt", "--bin", "mpt"]).status();
    if !built.context("cannot start cargo")?.success() {
        bail!("the build failed, so there is nothing to try");
    }
    Ok(target.join("debug/mpt"))
}

/// The Debian packages of missing programs.
fn missing(programs: &[&str]) -> Vec<&'static str> {
    let packages = [
        ("busybox", "busybox-static"),
        ("ethtool", "ethtool"),
        ("ip", "iproute2"),
        (guest::QEMU, "qemu-system-x86"),
    ];
    let missing = packages.into_iter().filter(|(program, _)| programs.contains(program));
    missing
        .filter(|(program, _)| guest::find(program).is_err())
        .map(|(_, package)| package)
        .collect()
}

/// Says what is missing and how to have it; without any package it is the kernel.
fn skip(lacking: &[&str]) -> anyhow::Result<ExitCode> {
    let remedy = match lacking {
        [] => "no kernel with what it takes: contrib/interop/fetch-kernel.sh".into(),
        packages => format!("apt-get install {}", packages.join(" ")),
    };
    if env::var_os("MPT_NO_SKIP").is_some() {
        bail!("interop: {remedy}");
    }
    println!("interop: skipped: {remedy}");
    Ok(ExitCode::SUCCESS)
}
