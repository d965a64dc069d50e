//! Runs the guide literally.
//!
//! The boxes marked `sh` in `docs/guide.md` are one shell session: this test runs it in an empty
//! folder, inside new namespaces, so that its hosts, `/run` and all its processes end with it. The
//! first command that fails ends it, and is reported with its line.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The session takes some ten seconds, nearly all of which are pings.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many of its last lines a failure shows.
const SHOWN: usize = 60;

/// What the guide expects of the machine.
const PROGRAMS: [&str; 7] = ["bash", "curl", "ip", "nft", "ping", "sysctl", "unshare"];

/// What making and removing its hosts takes.
const FOR_HOSTS: [&str; 4] = ["bash", "ip", "sysctl", "unshare"];

fn main() -> ExitCode {
    let trials = vec![
        Trial::ignorable_test("every_box_of_the_guide_runs", || {
            session(&PROGRAMS, |_| true, |_| {})
        }),
        Trial::ignorable_test("hosts_are_removed_where_parts_were_skipped", || {
            let (first, last) = ("in client internet server; do", "ip netns delete");
            session(&FOR_HOSTS, |text| text.contains(first) || text.contains(last), |_| {})
        }),
        Trial::ignorable_test("eight_lines_at_each_end_bond_uplinks_behind_nat", short),
        Trial::test("boxes_are_found_with_their_lines", boxes_are_found),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What a configuration file of the guide may have, without comments and empty lines.
const SHORT: usize = 8;

/// Each uplink alone carries packets while the other one is cut at its far end.
const EACH_ALONE: &str = "\
for cut in fibre lte; do
    internet ip link set $cut down
    until client ping -c 1 -W 1 10.9.0.2; do sleep 0.1; done
    client ping -c 5 -i 0.2 -W 1 10.9.0.2
    internet ip link set $cut up
    until [ $(server mpt status --socket /run/mpt/server.sock | grep -c '4754 *up ') = 2 ]; do sleep 0.1; done
done
";

/// The boxes of found uplinks and of a server that names nothing, as they are, with a NAT before each uplink.
fn short() -> Result<Completion, Failed> {
    const HOSTS: &str = "for host in client internet server; do";
    const CLIENT: &str = "remote = \"203.0.113.5\"              # or a host name\nEND";
    const SERVER: &str = "name = \"van\"";
    const NAT: &str = "internet nft -f -";
    const END_OF_BOX: &str = "kill $(jobs -p)\nwait\n";
    let guide = fs::read_to_string(guide())?;
    let mut seen = 0;
    for (line, text) in boxes(&guide) {
        let file = match () {
            () if text.contains(CLIENT) => "client.toml",
            () if text.contains(SERVER) => "server.toml",
            () => continue,
        };
        let lines = settings(&text, file);
        if lines.is_empty() || lines.len() > SHORT {
            return Err(
                format!("guide.md:{line}: {file} has {} lines: {lines:?}", lines.len()).into()
            );
        }
        seen += 1;
    }
    if seen != 2 {
        return Err(format!("the guide has {seen} such files").into());
    }
    let is_hosts = |text: &str| text.contains(HOSTS) && text.contains("ip netns add");
    session(
        &PROGRAMS,
        |text| is_hosts(text) || [CLIENT, SERVER, NAT].iter().any(|it| text.contains(it)),
        |text| {
            if text.contains(CLIENT) {
                // It goes on with the server of a chapter before.
                let end = text.find("\nEND\n").map_or(text.len(), |at| at + "\nEND\n".len());
                text.truncate(end);
            }
            if text.contains(NAT) {
                *text = text.replace(END_OF_BOX, &format!("{EACH_ALONE}{END_OF_BOX}"));
            }
        },
    )
}

/// The lines of a file that a box writes, without comments and empty lines.
fn settings<'a>(text: &'a str, file: &str) -> Vec<&'a str> {
    let begin = format!("cat > {file} <<'END'");
    let lines = text.lines().skip_while(|line| *line != begin).skip(1);
    let lines = lines.take_while(|line| *line != "END").map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide.md")
}

/// Runs the boxes that `is_run` selects by their text, after `edit`.
fn session(
    programs: &[&str],
    is_run: impl Fn(&str) -> bool,
    edit: impl Fn(&mut String),
) -> Result<Completion, Failed> {
    if let Some(reason) = lacking(programs) {
        return match env::var_os("MPT_NO_SKIP") {
            Some(_) => Err(reason.into()),
            None => Ok(Completion::ignored_with(reason)),
        };
    }
    let mut boxes = boxes(&fs::read_to_string(guide())?);
    boxes.retain(|(_, text)| is_run(text));
    boxes.iter_mut().for_each(|(_, text)| edit(text));
    if boxes.len() < 2 {
        return Err("the guide has no such boxes".into());
    }
    let script = script(&boxes);
    let folder = tempfile::tempdir()?;
    let (empty, file, log) =
        (folder.path().join("empty"), folder.path().join("guide.sh"), folder.path().join("log"));
    fs::create_dir(&empty)?;
    fs::write(&file, script)?;
    let output = fs::File::create(&log)?;
    let mut child = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "--", "bash"])
        .arg(&file)
        .env("PATH", search_path()?)
        .current_dir(&empty)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status.to_string();
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break format!("not done within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let log = fs::read(&log)?;
    let log = String::from_utf8_lossy(&log);
    if log.ends_with(&format!("{END}\n")) {
        return Ok(Completion::Completed);
    }
    let lines: Vec<_> = log.lines().collect();
    let shown = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    let daemons = ["client.log", "server.log"].map(|name| {
        let text = fs::read_to_string(empty.join(name)).unwrap_or_default();
        format!("-- {name}\n{text}")
    });
    Err(format!("{status}\n{shown}\n{}", daemons.concat()).into())
}

/// What this machine or user lacks for it, if anything.
fn lacking(programs: &[&str]) -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("the guide is for root".into());
    }
    let found = |program: &&str| {
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    programs.iter().find(|program| !found(program)).map(|program| match *program {
        "nft" => "there is no `nft`: apt-get install nftables".to_owned(),
        other => format!("there is no `{other}`"),
    })
}

/// Where programs are sought: `mpt` is the one under test.
fn search_path() -> io::Result<std::ffi::OsString> {
    let mpt = PathBuf::from(env!("CARGO_BIN_EXE_mpt"));
    let own = mpt.parent().map(Path::to_path_buf);
    let folders = env::var_os("PATH").unwrap_or_default();
    env::join_paths(own.into_iter().chain(env::split_paths(&folders))).map_err(io::Error::other)
}

/// The last line of a session that came to its end.
const END: &str = "== the end of the guide";

/// The session: as a person's shell, with jobs, but ending at the first failure.
fn script(boxes: &[(usize, String)]) -> String {
    let mut script = String::from(
        "set -Eemuo pipefail\nmount -t tmpfs tmpfs /run\n\
         trap 'echo \"== failed: $BASH_COMMAND\"' ERR\n",
    );
    for (line, text) in boxes {
        script.push_str(&format!("echo '== guide.md:{line}'\n{text}"));
    }
    script + &format!("echo '{END}'\n")
}

/// The boxes that are run, each with the line on which it begins.
fn boxes(guide: &str) -> Vec<(usize, String)> {
    let mut boxes: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in (1..).zip(guide.lines()) {
        match (open, line) {
            (false, "```sh") => {
                open = true;
                boxes.push((number + 1, String::new()));
            }
            (true, "```") => open = false,
            (true, line) => {
                if let Some((_, text)) = boxes.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            (false, _) => {}
        }
    }
    boxes
}

fn boxes_are_found() -> Result<(), Failed> {
    let guide = "text\n```sh\na\nb\n```\n```console\n$ c\n```\n```sh\nd\n```\n";
    let expected = [(3, "a\nb\n".to_owned()), (10, "d\n".to_owned())];
    if boxes(guide) == expected { Ok(()) } else { Err(format!("{:?}", boxes(guide)).into()) }
}
