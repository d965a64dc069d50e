//! What holds on a host as long as its daemon runs: the resolver of a client all of whose traffic goes through the tunnel, and
//! forwarding with translated addresses on a server through which clients reach the Internet.
//!
//! systemd runs `mpt host apply` after the start of the daemon and `mpt host restore` after its end, however that came; `mpt join`
//! does both by itself where the daemon runs in its foreground. Both may be repeated.

use std::fs;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::{Folder, Record, folder, program, resolver};

/// The table of our rule in the firewall.
const TABLE: &str = "mpt_internet";

/// The settings of the kernel that make it a router.
const FORWARDING: [&str; 2] =
    ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];

/// Does what the record asks for.
///
/// # Errors
///
/// A part cannot be done. [`restore`] undoes the others.
pub(crate) fn apply(folder: &Folder, record: &Record) -> Result<()> {
    let _lock = folder.lock()?;
    if record.internet {
        forward(folder)?;
        program::run("nft", &["-f", "-"], &translation(&record.interface))?;
    }
    if record.everything && !record.dns.is_empty() {
        resolver::apply(&record.resolv_conf, &record.interface, &record.dns)?;
    }
    Ok(())
}

/// Undoes it, and what a crash has left of it.
///
/// # Errors
///
/// A part cannot be undone; the others are.
pub(crate) fn restore(folder: &Folder, record: &Record) -> Result<()> {
    let _lock = folder.lock()?;
    let mut outcome = Ok(());
    if record.internet {
        let remove = format!("add table inet {TABLE}\ndelete table inet {TABLE}\n");
        outcome = outcome.and(program::run("nft", &["-f", "-"], &remove));
        outcome = outcome.and(no_longer_forward(folder));
    }
    if record.everything {
        outcome = outcome.and(resolver::restore(&record.resolv_conf));
    }
    outcome
}

/// Whatever comes out of the tunnel and leaves elsewhere has this host's address. Replaces an earlier one.
fn translation(interface: &str) -> String {
    format!(
        "add table inet {TABLE}\ndelete table inet {TABLE}\n\
         table inet {TABLE} {{\n    chain postrouting {{\n        \
         type nat hook postrouting priority srcnat;\n        \
         iifname \"{interface}\" oifname != \"{interface}\" masquerade\n    }}\n}}\n"
    )
}

fn forward(folder: &Folder) -> Result<()> {
    let mut before = Table::new();
    for setting in FORWARDING {
        // A host without IPv6 has no such setting.
        if let Ok(value) = fs::read_to_string(setting)
            && value.trim() == "0"
        {
            before.insert(setting.to_owned(), Value::from(value.trim()));
        }
    }
    // After a crash the first one is right.
    if !before.is_empty() && !folder.before().exists() {
        let text = format!("# What `mpt leave` sets again.\n{before}");
        folder::write(&folder.before(), text.as_bytes(), 0o644, None)?;
    }
    for setting in before.keys() {
        fs::write(setting, "1").with_context(|| format!("cannot write {setting}"))?;
    }
    Ok(())
}

fn no_longer_forward(folder: &Folder) -> Result<()> {
    let path = folder.before();
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let before: Table = text.parse().with_context(|| format!("cannot read {}", path.display()))?;
    for (setting, value) in &before {
        let known = FORWARDING.contains(&setting.as_str());
        if let Some(value) = value.as_str().filter(|_| known) {
            fs::write(setting, value).with_context(|| format!("cannot write {setting}"))?;
        }
    }
    folder::remove(&path)
}
