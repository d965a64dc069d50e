//! `mpt join LINE`: a client with all its uplinks, from an invitation.

mod silence;

use std::fs::File;
use std::io::IsTerminal as _;
use std::process::ExitStatus;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use mpt_control::ConnectionState;
use mpt_io::netlink::Netlink;
use mpt_io::poll::{Events, Interest, Poll};
use mpt_proto::{InvitationSecret, PrivateKey};
use nix::libc::SIGCHLD;
use signal_hook::consts::{SIGINT, SIGTERM};
use toml::Value;
use zeroize::Zeroizing;

use super::setup::{self, DirOption};
use super::signals::Signal;
use crate::config::{Moment, Prefix};
use crate::exit::Exit;
use crate::setup::{Child, Folder, Invitation, Record, Role, Waited, await_up, endpoint_text};
use crate::setup::{folder, host, host_networks, resolver, service};
use crate::{keys, output, watch};

/// How often the live view asks.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// What to join, and how.
#[derive(Debug, Args)]
pub(super) struct Join {
    /// The line that `mpt invite` has printed, or - to read it from standard input, where other users do not see it
    #[arg(value_name = "LINE")]
    line: String,
    /// Send all traffic through the tunnel, and ask the invitation's name servers
    #[arg(long)]
    everything: bool,
    /// What this host calls the connection
    #[arg(long, value_name = "NAME", default_value = "server")]
    name: String,
    /// An interface that gets no path, with * for any characters
    #[arg(long, value_name = "INTERFACE")]
    exclude: Vec<String>,
    /// The tunnel's interface; without it, the first of mpt0, mpt1, ... that is free
    #[arg(long, value_name = "NAME", value_parser = setup::interface)]
    interface: Option<String>,
    /// How many seconds to wait for the server, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Write the files, and start nothing
    #[arg(long)]
    no_start: bool,
    /// The file with the host's name servers
    #[arg(long, value_name = "FILE", default_value = resolver::RESOLV_CONF, hide = true)]
    resolv_conf: std::path::PathBuf,
    #[command(flatten)]
    dir: DirOption,
}

impl Join {
    /// Writes key, configuration and service, and waits for the server.
    pub(super) fn run(&self) -> Result<Exit> {
        let folder = self.dir.folder()?;
        if let Some(existing) = existing(&folder)? {
            output::complain(existing);
            return Ok(Exit::Negative);
        }
        let invitation = self.invitation()?;
        if let Some(fault) = unfit(&invitation)? {
            output::complain(fault);
            return Ok(Exit::Negative);
        }
        let start = !self.no_start;
        let by_systemd = start && folder.is_default() && service::systemd_runs();
        let mut record = Record {
            role: Role::Client,
            interface: self.interface()?,
            host: invitation.host.clone(),
            port: invitation.port,
            networks: self.networks(&invitation),
            dns: invitation.dns.clone(),
            internet: false,
            everything: self.everything,
            resolv_conf: std::path::absolute(&self.resolv_conf).context("no name servers' file")?,
            made_folder: folder.make()?,
            service: false,
            files: Vec::new(),
        };
        setup::or_undo(&folder, &mut record, |record| {
            self.write(&folder, record, &invitation, by_systemd)?;
            if start {
                setup::able(&folder)?;
            }
            if by_systemd { service::install(&folder, record) } else { Ok(()) }
        })?;
        if self.everything {
            caution(&invitation);
        }
        if by_systemd {
            self.follow_service(&folder, &record, &invitation)
        } else if start {
            self.run_here(&folder, &record, &invitation)
        } else {
            output::print(&format!(
                "wrote {}\n{}",
                folder.config().display(),
                setup::how_to_start(&folder, &record)
            ))
        }
    }

    fn invitation(&self) -> Result<Invitation> {
        let mut line = Zeroizing::new(String::new());
        if self.line == "-" {
            let read = std::io::stdin().read_line(&mut line);
            read.context("cannot read the invitation from standard input")?;
        } else {
            line.push_str(&self.line);
        }
        Ok(Invitation::from_line(&line)?)
    }

    fn interface(&self) -> Result<String> {
        if let Some(name) = &self.interface {
            return Ok(name.clone());
        }
        let mut netlink = Netlink::open().context("cannot ask the kernel")?;
        for number in 0..100 {
            let name = format!("mpt{number}");
            if netlink.link(&name).context("cannot ask the kernel")?.is_none() {
                return Ok(name);
            }
        }
        bail!("mpt0 to mpt99 exist: choose the tunnel's interface with --interface")
    }

    /// What is routed into the tunnel.
    fn networks(&self, invitation: &Invitation) -> Vec<Prefix> {
        let some = invitation.networks.iter().filter(|network| !network.is_default()).copied();
        let any = invitation.addresses.iter().map(|own| Prefix { len: 0, ..*own }.network());
        if self.everything { some.chain(any).collect() } else { some.collect() }
    }

    fn write(
        &self,
        folder: &Folder,
        record: &Record,
        invitation: &Invitation,
        by_systemd: bool,
    ) -> Result<()> {
        let owner = service::owner(by_systemd);
        record.save(folder)?;
        let key = PrivateKey::new(*keys::random()?);
        folder::write(&folder.private_key(), key.to_base64().as_bytes(), 0o600, owner)?;
        let secret = InvitationSecret::new(*invitation.secret).to_base64();
        folder::write(&folder.invitation(), secret.as_bytes(), 0o600, owner)?;
        let text = self.configuration(folder, record, invitation);
        folder::write(&folder.config(), text.as_bytes(), 0o644, None)?;
        setup::check(folder)
    }

    fn configuration(&self, folder: &Folder, record: &Record, invitation: &Invitation) -> String {
        let path = |path: std::path::PathBuf| Value::from(path.display().to_string());
        let text = |text: &str| Value::from(text);
        let mut config = String::from(
            "# Written by `mpt join`. `mpt leave` removes it; docs/guide.md describes all settings.\n\n",
        );
        config.push_str(&setup::control(folder));
        config.push_str(&format!(
            "[[tunnel]]\nname = {}\naddresses = {}\nprivate_key_file = {}\n\n\
             [[tunnel.connection]]\nname = {}\npeer = {}\npublic_key = {}\ninvitation_file = {}\n\
             remote = {}\n",
            text(&record.interface),
            setup::list(&invitation.addresses),
            path(folder.private_key()),
            text(&self.name),
            setup::list(&invitation.peer),
            text(&invitation.public_key.to_string()),
            path(folder.invitation()),
            text(&invitation.host),
        ));
        if invitation.port != crate::setup::PORT {
            config.push_str(&format!("remote_port = {}\n", invitation.port));
        }
        config.push_str("interfaces = \"auto\"\n");
        if !self.exclude.is_empty() {
            config.push_str(&format!("exclude = {}\n", setup::list(&self.exclude)));
        }
        if !record.networks.is_empty() {
            config.push_str(&format!("networks = {}\n", setup::list(&record.networks)));
        }
        config
    }

    /// How long to wait for the server; says so to who looks on.
    fn patience(&self, record: &Record) -> Result<Duration> {
        if is_terminal() {
            let server = endpoint_text(&record.host, record.port);
            output::print(&format!("waiting for {server}, {} s at the most\n", self.timeout))?;
        }
        Ok(Duration::from_secs(self.timeout))
    }

    /// Waits until the service has reached the server.
    fn follow_service(
        &self,
        folder: &Folder,
        record: &Record,
        invitation: &Invitation,
    ) -> Result<Exit> {
        let patience = self.patience(record)?;
        let connection = match await_up(&folder.socket(), patience, None, &mut || false)? {
            Waited::Up(connection) => connection,
            Waited::Ended => return Ok(Exit::Negative),
            Waited::InVain(last) => {
                let rest = "the service goes on trying, and `mpt leave` undoes this";
                output::complain(silence::text(record, last.as_deref(), self.timeout, rest));
                return Ok(Exit::Negative);
            }
        };
        output::print(&joined(record, invitation, &connection))?;
        if is_terminal() {
            watch::watch(&folder.socket(), WATCH_INTERVAL, &mut || false)
        } else {
            Ok(Exit::Done)
        }
    }

    /// Runs the daemon as long as this command.
    fn run_here(&self, folder: &Folder, record: &Record, invitation: &Invitation) -> Result<Exit> {
        let end = Signal::of(&[SIGTERM, SIGINT]).context("cannot wait for signals")?;
        let ended = Signal::of(&[SIGCHLD]).context("cannot wait for signals")?;
        let log = if is_terminal() {
            let file = File::create(folder.log());
            Some(file.with_context(|| format!("cannot write {}", folder.log().display()))?)
        } else {
            None
        };
        let mut child = Child::start(&folder.config(), log)?;
        let result = self.attend(folder, record, invitation, &mut child, [&end, &ended]);
        let stopped = child.end();
        // After `mpt leave` there is nothing left to restore.
        let restored = match Record::load(folder)? {
            Some(record) => host::restore(folder, &record),
            None => Ok(()),
        };
        let exit = result?;
        stopped.and(restored).map(|()| exit)
    }

    fn attend(
        &self,
        folder: &Folder,
        record: &Record,
        invitation: &Invitation,
        child: &mut Child,
        [end, ended]: [&Signal; 2],
    ) -> Result<Exit> {
        let patience = self.patience(record)?;
        let mut was_ended = false;
        let waited = await_up(&folder.socket(), patience, Some(child), &mut || {
            was_ended |= end.came();
            was_ended
        });
        let again = || {
            format!(
                "{} again, and `mpt leave{}` undoes this",
                setup::starter(folder, record),
                folder.option()
            )
        };
        let waited = waited.with_context(|| {
            let log = folder.log();
            let place =
                if is_terminal() { format!("in {}", log.display()) } else { "above".into() };
            format!("the reason stands {place}; {}", again())
        });
        let connection = match waited? {
            Waited::Up(connection) => connection,
            // Not by this command: what `mpt leave` has removed cannot be started again.
            Waited::Ended if Record::load(folder)?.is_none() => return Ok(Exit::Negative),
            Waited::Ended => return Ok(in_vain(&again())),
            Waited::InVain(_) if was_ended => return Ok(in_vain(&again())),
            Waited::InVain(last) => {
                output::complain(silence::text(record, last.as_deref(), self.timeout, &again()));
                return Ok(Exit::Negative);
            }
        };
        host::apply(folder, record)?;
        output::print(&joined(record, invitation, &connection))?;
        if end.came() {
            return Ok(Exit::Done);
        }
        if is_terminal() {
            let mut is_over = || !matches!(child.ended(), Ok(None));
            let watched = watch::watch(&folder.socket(), WATCH_INTERVAL, &mut is_over);
            // Of a daemon that has ended there is nothing to see.
            return match child.ended()? {
                Some(status) => Ok(after(status, &again())),
                None => watched.and_then(|_| {
                    output::print(&format!("the tunnel ends with this view: {}\n", again()))
                }),
            };
        }
        let poll = Poll::new().context("cannot wait for events")?;
        for (signal, token) in [(end, 0), (ended, 1)] {
            poll.add(signal, token, Interest::READABLE).context("cannot wait for signals")?;
        }
        let mut events = Events::with_capacity(2);
        loop {
            // Before it is asked, so that none is missed.
            ended.came();
            if let Some(status) = child.ended()? {
                return Ok(after(status, &again()));
            }
            if end.came() {
                return Ok(Exit::Done);
            }
            poll.wait(&mut events, None).context("cannot wait for events")?;
        }
    }
}

/// What follows if it was ended before it was of use.
fn in_vain(again: &str) -> Exit {
    output::complain(format_args!("ended before the server answered; {again}"));
    Exit::Negative
}

/// What follows from the end of the daemon, which was not asked to by this command.
fn after(status: ExitStatus, again: &str) -> Exit {
    // `mpt leave` has it end so.
    if status.success() {
        return Exit::Done;
    }
    output::complain(format_args!("the daemon has ended ({status}); {again}"));
    Exit::Failure
}

/// Whether somebody can look at a live view.
fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// What is there already, with what to do about it.
fn existing(folder: &Folder) -> Result<Option<String>> {
    let Some(record) = Record::load(folder)? else { return Ok(setup::foreign(folder)) };
    let (what, host) = (folder.path().display(), endpoint_text(&record.host, record.port));
    Ok(Some(match record.role {
        Role::Client => format!(
            "{what} is a client of {host} already: {}, `mpt leave{}` ends that, or choose another folder with --dir",
            setup::starter(folder, &record),
            folder.option()
        ),
        Role::Server => format!(
            "{what} is the server {host}: choose another folder with --dir, and with `mpt leave{}` it ends to be one",
            folder.option()
        ),
    }))
}

/// Why this host cannot use the invitation, with what to do about it.
fn unfit(invitation: &Invitation) -> Result<Option<String>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if invitation.expires <= now {
        return Ok(Some(format!(
            "the invitation expired at {}, and it is {} here: ask for another, `mpt invite {}` on the server, or set this host's clock",
            Moment(Duration::from_secs(invitation.expires)),
            Moment(Duration::from_secs(now)),
            invitation.name
        )));
    }
    let used = host_networks()?;
    let clash = invitation.addresses.iter().find_map(|own| {
        used.iter().find(|other| other.overlaps(*own)).map(|other| (own.network(), other))
    });
    Ok(clash.map(|(tunnel, other)| {
        format!(
            "the tunnel's network {tunnel} overlaps {other}, which this host has a route to: choose another on the server (`mpt leave`, then `mpt init --address`), or remove that route"
        )
    }))
}

/// What `--everything` will lack.
fn caution(invitation: &Invitation) {
    if !invitation.networks.iter().any(|network| network.is_default()) {
        output::complain(
            "the server was not set up to lead to the Internet (`mpt init --internet`): unless it forwards and masquerades by other means, nothing but the server is reached",
        );
    }
    if invitation.dns.is_empty() {
        output::complain("the invitation has no name servers: this host asks the same as before");
    }
}

fn joined(record: &Record, invitation: &Invitation, connection: &ConnectionState) -> String {
    let list = |items: Vec<String>| items.join(" and ");
    let paths = connection.paths.iter().filter(|path| path.state == "up");
    format!(
        "joined {} as {}: {} in the tunnel, where the server is {}, interface {}, by {}\n",
        endpoint_text(&record.host, record.port),
        invitation.name,
        list(invitation.addresses.iter().map(|own| own.addr.to_string()).collect()),
        list(invitation.peer.iter().map(ToString::to_string).collect()),
        record.interface,
        list(paths.map(|path| path.name.clone()).collect()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one of section 9.4 of `docs/protocol.md`.
    const LINE: &str = "mpt:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAAAAAazbsfxKSD3Zwbi5leGFtcGxlLm9yZwN2YW4CBAoJAAIYBv0AAAkAAAAAAAAAAAAAAAJAAgQKCQABBv0AAAkAAAAAAAAAAAAAAAECBAAAAAAABgAAAAAAAAAAAAAAAAAAAAAAAQQJCQkJ000tBw";

    #[test]
    fn an_expired_invitation_is_told_by_both_times_and_with_remedies() {
        let mut invitation = Invitation::from_line(LINE).unwrap();
        invitation.expires = 1_700_000_000;
        let fault = unfit(&invitation).unwrap().unwrap();
        for words in ["expired at 2023-11-14T22:13:20Z", "mpt invite van", "set this host's clock"]
        {
            assert!(fault.contains(words), "{fault}");
        }
    }
}
