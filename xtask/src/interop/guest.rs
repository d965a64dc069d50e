//! A machine for the cases where the host's kernel has no GRE over FOU: Debian's kernel in QEMU, without
//! hardware virtualization.
//!
//! It has no disk. Everything is in the initial file system: modules, `ip` and our programs with their
//! libraries, and busybox. The first process is this program itself, which loads the modules, tries the
//! cases and switches the machine off; what it prints comes over a serial line.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::archive::Archive;
use super::command::{Process, output};
use super::inside::Verdict;
use super::kernel::Kernel;

/// The emulator.
pub(super) const QEMU: &str = "qemu-system-x86_64";

/// Longest life of the machine. It needs a fifth of that where nothing else runs, and is meant to need no
/// more than half; but it is emulated, and beside builds and other tests it can be several times as slow. That
/// is said in the verdict and is no fault of what is tried, so only what hangs is ended.
const PATIENCE: Duration = Duration::from_secs(360);

/// The line after which the machine's output is that of the cases.
const BEGIN: &str = "interop: begin";

/// Where the modules are in the machine; their names begin with their turn.
const MODULES: &str = "/modules";

/// Starts the machine with these programs of ours beside this one, prints what it prints, and passes if its verdict is good.
/// The arguments are those of [`boot`]'s command.
pub(super) fn run(
    kernel: &Kernel,
    programs: &[(&'static str, PathBuf)],
    folder: &Path,
    arguments: &str,
) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let initrd = folder.join("initrd");
    fs::write(&initrd, initial_files(kernel, programs, folder)?)
        .with_context(|| format!("cannot write {}", initrd.display()))?;
    // What follows `--` are the arguments of the first process; what has a `=` and means nothing to the
    // kernel is its environment.
    let command_line = format!(
        "console=ttyS0 quiet panic=-1 mitigations=off PATH=/bin rdinit=/bin/xtask \
         -- interop-part boot {arguments}"
    );
    let machine = Command::new(QEMU)
        .args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512"])
        .args(["-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&initrd)
        .args(["-append", &command_line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {QEMU}"))?;
    let mut machine = Process(machine);
    watch(begun, machine.0.stdout.take().context("a machine without a console")?)
}

/// Prints the console's lines until the verdict, the machine's end, or the end of patience. What firmware
/// and kernel say before the first case is shown only if it is all that there is. The run has `begun` then.
fn watch(begun: Instant, console: impl Read + Send + 'static) -> anyhow::Result<ExitCode> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
            if sender.send(printable(&line)).is_err() {
                break;
            }
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let mut before = Some(String::new());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = match lines.recv_timeout(left) {
            Ok(line) => line,
            Err(gone) => {
                let reason = match gone {
                    mpsc::RecvTimeoutError::Timeout => format!("within {PATIENCE:?}"),
                    mpsc::RecvTimeoutError::Disconnected => "until the machine ended".into(),
                };
                bail!("no verdict {reason}\n{}", before.unwrap_or_default());
            }
        };
        match &mut before {
            Some(_) if line == BEGIN => before = None,
            Some(before) => before.push_str(&(line + "\n")),
            None => match Verdict::read(&line) {
                Some(verdict) => {
                    println!("{}", verdict.after(begun.elapsed()));
                    return Ok(verdict.exit_code());
                }
                None => println!("{line}"),
            },
        }
    }
}

/// A line of the console without what is meant for a terminal: control characters, and the sequences by
/// which firmware clears the screen.
fn printable(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut parts = line.split('\x1b');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text.push_str(&part[end..]);
    }
    text.retain(|c| !c.is_control());
    text
}

/// The archive that becomes the machine's file system.
fn initial_files(
    kernel: &Kernel,
    ours: &[(&'static str, PathBuf)],
    folder: &Path,
) -> anyhow::Result<Vec<u8>> {
    let mut archive = Archive::default();
    for path in ["dev", "proc", "run", "sys", "tmp", "var"] {
        archive.folder(path);
    }
    archive.link(Path::new("/var/run"), "/run");
    // What the first process needs before anything is mounted: its output, and an input for others.
    archive.device(Path::new("/dev/console"), 5, 1);
    archive.device(Path::new("/dev/null"), 1, 3);
    let mut libraries = Vec::new();
    let programs = [
        ("xtask", std::env::current_exe()?),
        ("ip", find("ip")?),
        ("ethtool", find("ethtool")?),
        ("busybox", find("busybox")?),
    ];
    for (name, program) in programs.into_iter().chain(ours.iter().cloned()) {
        archive.program(&Path::new("/bin").join(name), &stripped(&program, folder)?);
        libraries.extend(libraries_of(&program)?);
    }
    libraries.sort();
    libraries.dedup();
    for library in libraries {
        let contents = fs::read(&library);
        let contents = contents.with_context(|| format!("cannot read {}", library.display()))?;
        archive.program(&library, &contents);
    }
    for (turn, module) in kernel.modules()?.iter().enumerate() {
        let file = format!("{MODULES}/{turn:02}-{}.ko", module.name);
        archive.program(Path::new(&file), &module.object);
    }
    Ok(archive.finish())
}

/// A program in `PATH`, or in folders that are only in root's `PATH`.
pub(super) fn find(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.is_file()).with_context(|| format!("there is no {program}"))
}

/// A program without what only debuggers read, which is most of it; as it is where there is no strip(1).
fn stripped(program: &Path, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let made = folder.join("stripped");
    let strip = Command::new("strip").arg("-o").arg(&made).arg(program).output();
    let file = match strip {
        Ok(strip) if strip.status.success() => &made,
        _ => program,
    };
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The libraries that a program is started with, and what starts it. None for one that is linked
/// statically.
fn libraries_of(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output().context("cannot start ldd")?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

/// What the machine's first process does: the kernel has mounted nothing and loaded nothing.
pub(super) fn boot(work: impl FnOnce() -> Verdict) -> anyhow::Result<ExitCode> {
    for (kind, place) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")]
    {
        output(Command::new("busybox").args(["mount", "-t", kind, kind, place]))?;
    }
    let mut modules: Vec<_> =
        fs::read_dir(MODULES)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    modules.sort();
    for module in modules {
        output(Command::new("busybox").arg("insmod").arg(module))?;
    }
    // Firmware does not end its last line.
    println!("\n{BEGIN}");
    println!("{}", work().line());
    output(Command::new("busybox").args(["poweroff", "-f"]))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_console_is_read_without_what_clears_the_screen() {
        assert_eq!(printable(b"\x1b[2J\x1b[1;1Hinterop: \x1b[0mx\r"), "interop: x");
        assert_eq!(printable(b"plain"), "plain");
        assert_eq!(printable(b"cut \x1b[2"), "cut ");
    }

    #[test]
    fn the_verdict_is_the_machines_and_not_of_its_end() {
        let watch = |text: String| watch(Instant::now(), Cursor::new(text));
        let verdict = |text: &str| watch(format!("firmware\n{BEGIN}\r\n{text}\n"));
        assert_eq!(verdict("interop: all passed: 3 cases").unwrap(), ExitCode::SUCCESS);
        assert_eq!(verdict("interop: failed: 1 of 3 cases").unwrap(), ExitCode::FAILURE);
        let error = verdict("interop: over-ipv4 passed").unwrap_err();
        assert!(!error.to_string().contains("firmware"), "{error}");
        let error = watch("interop: all passed\nKernel panic\n".to_owned()).unwrap_err();
        assert!(error.to_string().contains("Kernel panic"), "{error}");
    }
}
