//! `mpt invite NAME`: one line that lets a client in, once.

use std::io::IsTerminal as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use mpt_control::{Client, ClientError, Reply, Request};
use mpt_proto::InvitationSecret;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use zeroize::Zeroizing;

use super::setup::DirOption;
use crate::config::{self, LoadError, Moment, Prefix};
use crate::exit::Exit;
use crate::setup::peers::Invited;
use crate::setup::{Folder, Invitation, Record, Role, Subnets, lifetime};
use crate::{keys, output};

/// Whom to invite.
#[derive(Debug, Args)]
pub(super) struct Invite {
    /// What the server calls the client
    #[arg(value_name = "NAME")]
    name: String,
    /// How long the invitation can be used, such as 30m, 24h or 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = lifetime)]
    expires: Duration,
    /// Print a JSON object: name, line, addresses, expires
    #[arg(long)]
    json: bool,
    /// Print no QR code
    #[arg(long)]
    no_qr: bool,
    #[command(flatten)]
    dir: DirOption,
}

impl Invite {
    /// Writes the client's file, has the daemon read it, and prints the line.
    pub(super) fn run(&self) -> Result<Exit> {
        let folder = self.dir.folder()?;
        let record = match Record::load(&folder)? {
            Some(record) if record.role == Role::Server => record,
            Some(_) => bail!(
                "this host is a client: run `mpt invite {}` on the server, or `mpt leave{}` and `mpt init` to make it one",
                self.name,
                folder.option()
            ),
            None => bail!(
                "{} has no server: run `mpt init --server HOST{}` first",
                folder.path().display(),
                folder.option()
            ),
        };
        let invitation = self.invite(&folder, record)?;
        reload(&folder)?;
        self.print(&invitation)
    }

    fn invite(&self, folder: &Folder, record: Record) -> Result<Invitation> {
        let settings = match config::load(&folder.config()) {
            Ok(settings) => settings,
            Err(LoadError::Invalid(report)) => {
                output::problems(&report);
                bail!(report);
            }
            Err(error) => return Err(error.into()),
        };
        let tunnel = settings.tunnels.iter().find(|tunnel| tunnel.name == record.interface);
        let tunnel = tunnel.with_context(|| {
            format!("{} has no tunnel {} any more", folder.config().display(), record.interface)
        })?;
        let own = &tunnel.addresses;
        let subnets = Subnets::chosen(own, &[])?;
        let key = keys::private_key(&folder.private_key())?;
        // Two invitations at once must not get the same addresses.
        let _lock = folder.lock()?;
        let invited = Invited::read(&folder.peers(), &self.name)?;
        let addresses = match invited.again(own) {
            Some(addresses) => addresses,
            None => subnets.next(&invited.taken)?,
        };
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
        let invitation = Invitation {
            name: self.name.clone(),
            host: record.host,
            port: record.port,
            public_key: key.public(),
            addresses,
            peer: own.iter().map(|prefix| prefix.addr).collect(),
            networks: record.networks,
            dns: record.dns,
            secret: keys::random()?,
            expires: now.as_secs() + self.expires.as_secs(),
        };
        let secret = InvitationSecret::new(*invitation.secret);
        let expires = Duration::from_secs(invitation.expires);
        invited.write(&invitation.addresses, &secret, expires)?;
        Ok(invitation)
    }

    fn print(&self, invitation: &Invitation) -> Result<Exit> {
        let line = invitation.to_line();
        let expires = Moment(Duration::from_secs(invitation.expires)).to_string();
        if self.json {
            let addresses: Vec<_> = invitation.addresses.iter().map(Prefix::to_string).collect();
            let object = serde_json::json!({
                "name": self.name, "line": &*line, "addresses": addresses, "expires": expires,
            });
            return output::print(&Zeroizing::new(format!("{object}\n")));
        }
        if !std::io::stdout().is_terminal() {
            return output::print(&Zeroizing::new(format!("{}\n", *line)));
        }
        let mut text = Zeroizing::new(format!("{}\n", *line));
        if !self.no_qr
            && let Some(code) = qr_code(&line)
        {
            text.push_str(&format!("\n{}\n", *code));
        }
        text.push_str(&format!(
            "\nOn the client: mpt join '{}…'\nThe first who comes with this line is let in as `{}`, once, until {expires}.\n",
            &line[..12],
            self.name,
        ));
        output::print(&text)
    }
}

/// Has the daemon read the folder of clients, if it runs.
fn reload(folder: &Folder) -> Result<()> {
    let answer = Client::connect(folder.socket());
    match answer.and_then(|mut client| client.request(&Request::PeersReload {})) {
        Ok(Reply::Error { message, .. }) => {
            bail!("the daemon has not read the new file: {message}")
        }
        Ok(_) => Ok(()),
        Err(ClientError::NotRunning { .. }) => {
            output::complain("no daemon runs here yet: it reads the new file when it starts");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// The line as a QR code of half blocks, if the terminal can show it: it is wide enough and shows UTF-8.
fn qr_code(line: &str) -> Option<Zeroizing<String>> {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let unicode =
        locale.is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"));
    let (columns, _) = ratatui::crossterm::terminal::size().ok()?;
    let code = QrCode::with_error_correction_level(line, EcLevel::L).ok()?;
    // With the quiet zone of four modules on each side.
    let fits = code.width() + 8 <= usize::from(columns);
    (unicode && fits).then(|| {
        // Most terminals are dark: what is dark in the code is left dark.
        let colours = code.render::<Dense1x2>();
        let mut colours = colours;
        colours.dark_color(Dense1x2::Light).light_color(Dense1x2::Dark);
        Zeroizing::new(colours.build())
    })
}
