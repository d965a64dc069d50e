//! Where the cases are tried: in two namespaces, on a kernel that has GRE over FOU.
//!
//! Each case makes the kernel's tunnel in one of them, starts our daemon in the other, and removes both
//! when it is over. It prints a line, and the last line of all is the verdict.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};

use super::case::{self, Case, Outcome};
use super::command::{Process, ip, output, within};
use super::daemon::{Daemon, FOLDER};
use super::traffic;

/// The beginning of the last line if all cases passed.
const PASSED: &str = "interop: all passed";
/// The beginning of the last line if not.
const FAILED: &str = "interop: failed";

/// The tunnel addresses of the kernel, which ours talks to.
const KERNEL: [&str; 2] = ["10.9.0.2", "fd00:9::2"];

/// The target duration of all cases, without the build. It is not enforced, because it depends on
/// the machine, but shown in the verdict.
const BUDGET: Duration = Duration::from_secs(180);

/// Tries every case whose name contains `filter`: the verdict, which is good if all passed.
pub(super) fn run(mpt: &Path, filter: &str) -> Verdict {
    match try_cases(mpt, filter) {
        Ok((passed, 0)) => Verdict::passed(&format!("{passed} cases")),
        Ok((passed, failed)) => Verdict::failed(&format!("{failed} of {} cases", passed + failed)),
        Err(error) => Verdict::failed(&format!("{error:#}")),
    }
}

/// What has come of it all.
pub(super) struct Verdict {
    line: String,
}

impl Verdict {
    /// A good one, with what was done.
    pub(super) fn passed(what: &str) -> Self {
        Self { line: format!("{PASSED}: {what}") }
    }

    /// A bad one, with what was wrong.
    pub(super) fn failed(what: &str) -> Self {
        Self { line: format!("{FAILED}: {what}") }
    }

    /// The verdict that a line is, if it is one.
    pub(super) fn read(line: &str) -> Option<Self> {
        let is_one = line.starts_with(PASSED) || line.starts_with(FAILED);
        is_one.then(|| Self { line: line.to_owned() })
    }

    /// As one line.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// The same with the time that the run has taken.
    pub(super) fn after(&self, time: Duration) -> String {
        let over = if time > BUDGET {
            format!(", more than the {} s that it should", BUDGET.as_secs())
        } else {
            String::new()
        };
        format!("{}, in {} s{over}", self.line, time.as_secs())
    }

    /// The variable that tells it to a program.
    pub(super) fn exit_code(&self) -> ExitCode {
        if self.line.starts_with(PASSED) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// How many passed and how many failed.
fn try_cases(mpt: &Path, filter: &str) -> anyhow::Result<(usize, usize)> {
    prepare()?;
    let (mut passed, mut failed) = (0, 0);
    for case in case::all().iter().filter(|case| case.name().contains(filter)) {
        let begun = Instant::now();
        match Trial::new(mpt, case).and_then(Trial::finish) {
            Ok(found) => {
                let seconds = begun.elapsed().as_secs_f32();
                println!("interop: {:36} passed in {seconds:.1} s: {found}", case.name());
                passed += 1;
            }
            Err(error) => {
                println!("interop: {:36} FAILED: {error:#}", case.name());
                failed += 1;
            }
        }
        for line in case.kernel_tunnel_removed() {
            ip(&format!("-n linux {line}"))?;
        }
    }
    ensure!(passed + failed > 0, "no case is called {filter}");
    Ok((passed, failed))
}

/// Whether this kernel can do what is asked of it.
pub(super) fn probe() -> anyhow::Result<()> {
    prepare()?;
    for outer in [4, 6] {
        let case = case::all().into_iter().find(|case| case.outer == outer).expect("both versions");
        for line in case.kernel_tunnel() {
            ip(&format!("-n linux {line}"))?;
        }
        for line in case.kernel_tunnel_removed() {
            ip(&format!("-n linux {line}"))?;
        }
    }
    Ok(())
}

/// Makes the namespaces and the wire between them. What is mounted is seen by this process and its
/// children alone.
fn prepare() -> anyhow::Result<()> {
    output(Command::new("busybox").args(["mount", "-t", "tmpfs", "tmpfs", "/run"]))?;
    fs::create_dir(FOLDER).context("cannot make a folder")?;
    for line in case::wire() {
        ip(&line)?;
    }
    // The kernel leaves checksums and the cutting of large packets to the device, and a veth pair to the
    // other end, for which this is not inside a datagram. A device that has a wire leaves nothing undone.
    output(within("linux", "ethtool").args(["-K", "wire", "tx", "off"]))?;
    Ok(())
}

/// A case that runs.
struct Trial<'a> {
    case: &'a Case,
    daemon: Daemon<'a>,
}

impl<'a> Trial<'a> {
    fn new(mpt: &'a Path, case: &'a Case) -> anyhow::Result<Self> {
        for namespace in ["mpt", "linux"] {
            ip(&format!("-n {namespace} link set wire mtu {}", case.link_mtu))?;
        }
        for line in case.kernel_tunnel() {
            ip(&format!("-n linux {line}"))?;
        }
        Ok(Self { case, daemon: Daemon::start(mpt, case)? })
    }

    /// What was found, in few words.
    fn finish(mut self) -> anyhow::Result<String> {
        let found = match self.case.outcome() {
            Outcome::Carries => self.carries(),
            Outcome::Refuses => self.refuses(&format!("gre_key {PINGS}")),
            Outcome::Unheard => self.refuses(""),
        };
        let found = found.map_err(|error| anyhow!("{error:#}\n{}", self.daemon.log()))?;
        self.daemon.stop()?;
        Ok(found)
    }

    fn carries(&self) -> anyhow::Result<String> {
        let mtu = self.mtu()?;
        for address in KERNEL {
            for len in [56, full_ping(mtu, address)] {
                let answers = pings("mpt", address, len)?;
                ensure!(answers == PINGS, "{answers} of {PINGS} pings of {len} to {address}");
            }
            transfer(address).with_context(|| format!("TCP to {address}"))?;
        }
        if self.case.sequence {
            // Created again, the kernel's tunnel begins at 0 again, without an announcement.
            for line in [self.case.kernel_tunnel_removed(), self.case.kernel_tunnel()].concat() {
                ip(&format!("-n linux {line}"))?;
            }
            let answers = pings("mpt", KERNEL[0], 56)?;
            ensure!(
                answers == PINGS,
                "{answers} of {PINGS} pings after the kernel's tunnel was \
                created again"
            );
        }
        let drops = self.daemon.drops()?;
        ensure!(drops.is_empty(), "our daemon dropped: {}", drops.join(", "));
        let errors = kernel_errors()?;
        ensure!(errors == 0, "the kernel counts {errors} errors");
        Ok(format!("MTU {mtu}"))
    }

    /// Pings of both ends get no answer, and this is all that our daemon dropped.
    fn refuses(&self, expected: &str) -> anyhow::Result<String> {
        for (namespace, address) in [("mpt", KERNEL[0]), ("mpt", KERNEL[1]), ("linux", "10.9.0.1")]
        {
            let answers = pings(namespace, address, 56)?;
            ensure!(answers == 0, "{answers} pings to {address} were answered");
        }
        let drops = self.daemon.drops()?.join(", ");
        ensure!(drops == expected, "our daemon dropped: {drops}");
        Ok(format!("nothing got through {drops}").trim_end().to_owned())
    }

    /// The MTU, on which both ends have to agree by themselves.
    fn mtu(&self) -> anyhow::Result<u32> {
        let mtu_of = |namespace, interface| -> anyhow::Result<u32> {
            let link = ip(&format!("-n {namespace} link show {interface}"))?;
            let mtu = link.split_whitespace().skip_while(|word| *word != "mtu").nth(1);
            mtu.and_then(|mtu| mtu.parse().ok()).context("an interface without an MTU")
        };
        let (ours, kernels) = (mtu_of("mpt", "mpt0")?, mtu_of("linux", "gre1")?);
        ensure!(ours == kernels, "our MTU is {ours}, the kernel's {kernels}");
        Ok(ours)
    }
}

/// Pings that are sent at a time.
const PINGS: usize = 3;

/// The length of an echo's data with which it is as large as the MTU.
fn full_ping(mtu: u32, address: &str) -> u32 {
    mtu - 8 - if address.contains(':') { 40 } else { 20 }
}

/// How many pings with this much data, from a namespace, are answered.
fn pings(namespace: &str, address: &str, len: u32) -> anyhow::Result<usize> {
    let version = if address.contains(':') { "-6" } else { "-4" };
    let said = within(namespace, "busybox")
        .args(["ping", version, "-c", &PINGS.to_string(), "-i", "0.1", "-W", "2"])
        .args(["-s", &len.to_string(), address])
        .output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    let count = text.split(", ").find_map(|part| part.strip_suffix(" packets received"));
    let count = count.and_then(|count| count.parse().ok());
    count.with_context(|| format!("{text}{}", String::from_utf8_lossy(&said.stderr)))
}

/// A transfer in both directions, which our side begins.
fn transfer(address: &str) -> anyhow::Result<()> {
    let own = std::env::current_exe()?;
    let own = own.to_string_lossy();
    let address_with = |port: &str| match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    };
    let server = within("linux", &own)
        .args(["interop-part", "serve", &address_with("0")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut server = Process(server);
    let said = server.0.stdout.take().context("a server without output")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    let port = line.trim().strip_prefix(traffic::LISTENING).context("the server did not begin")?;
    let fetch = ["interop-part", "fetch", &address_with(port.trim())];
    output(within("mpt", &own).args(fetch))?;
    let status = server.0.wait()?;
    ensure!(status.success(), "the server: {status}");
    Ok(())
}

/// What the kernel's tunnel counts as wrong or dropped.
fn kernel_errors() -> anyhow::Result<u64> {
    let mut errors = 0;
    for counter in ["rx_errors", "tx_errors", "rx_dropped", "tx_dropped"] {
        let file = format!("/sys/class/net/gre1/statistics/{counter}");
        let text = output(within("linux", "busybox").args(["cat", &file]))?;
        errors += text.trim().parse::<u64>().with_context(|| file)?;
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_tells_the_time_and_whether_it_was_too_much() {
        let after = |line, seconds: u64| {
            Verdict::read(line)
                .expect("a verdict")
                .after(Duration::from_millis(seconds * 1000 + 400))
        };
        assert_eq!(
            after("interop: all passed: 15 cases", 97),
            "interop: all passed: 15 cases, in 97 s"
        );
        assert_eq!(
            after("interop: failed: 1 of 15 cases", 200),
            "interop: failed: 1 of 15 cases, in 200 s, more than the 180 s that it should"
        );
        assert!(Verdict::read("interop: over-ipv4 passed in 3.2 s: MTU 1468").is_none());
    }
}
