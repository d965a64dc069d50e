//! `mpt init`: a server that clients can be invited to.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use mpt_proto::PrivateKey;
use toml::Value;

use super::setup::{self, DirOption};
use crate::config::{self, Prefix};
use crate::exit::Exit;
use crate::setup::{Folder, Record, Role, Subnets, endpoint, endpoint_text, folder, host_networks};
use crate::setup::{peers, resolver, service};
use crate::{keys, output, preflight};

/// What a server is to be.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// How clients reach this host: a host name or address, with the UDP port if it is not 4754
    #[arg(long, value_name = "HOST[:PORT]")]
    server: String,
    /// This host's tunnel address with the length of its network, once for each IP version; without it, networks that are
    /// unused here are drawn at random
    #[arg(long, value_name = "ADDRESS/LEN", value_parser = setup::prefix)]
    address: Vec<Prefix>,
    /// Networks behind this host, which clients reach through the tunnel
    #[arg(long, value_name = "ADDRESS/LEN", value_parser = setup::prefix)]
    network: Vec<Prefix>,
    /// Let clients reach the Internet through this host: forwarding and masquerading as long as the daemon runs
    #[arg(long)]
    internet: bool,
    /// Name servers for clients that send everything through the tunnel; without it, those of this host
    #[arg(long, value_name = "ADDRESS")]
    dns: Vec<std::net::IpAddr>,
    /// The tunnel's interface
    #[arg(long, value_name = "NAME", value_parser = setup::interface, default_value = "mpt0")]
    interface: String,
    /// Write the files, and start nothing
    #[arg(long)]
    no_start: bool,
    #[command(flatten)]
    dir: DirOption,
}

impl Init {
    /// Writes key, configuration and service, and says what is next.
    pub(super) fn run(&self) -> Result<Exit> {
        let folder = self.dir.folder()?;
        if let Some(existing) = existing(&folder)? {
            output::complain(existing);
            return Ok(Exit::Negative);
        }
        let (host, port) = endpoint(&self.server)?;
        let used = host_networks()?;
        let subnets = match self.address.as_slice() {
            [] => Subnets::drawn(&used)?,
            chosen => Subnets::chosen(chosen, &used)?,
        };
        let start = !self.no_start && folder.is_default() && service::systemd_runs();
        let dns = if self.dns.is_empty() {
            resolver::of_host(Path::new(resolver::RESOLV_CONF))
        } else {
            self.dns.clone()
        };
        let any = subnets.addresses().iter().map(|own| Prefix { len: 0, ..*own }.network());
        let networks = if self.internet { any.collect() } else { Vec::new() };
        let mut record = Record {
            role: Role::Server,
            interface: self.interface.clone(),
            host,
            port,
            networks: [networks, self.network.clone()].concat(),
            dns,
            internet: self.internet,
            everything: false,
            resolv_conf: resolver::RESOLV_CONF.into(),
            made_folder: folder.make()?,
            service: false,
            files: Vec::new(),
        };
        setup::or_undo(&folder, &mut record, |record| {
            write(&folder, record, &subnets, start)?;
            if start { service::install(&folder, record) } else { Ok(()) }
        })?;
        output::print(&told(&folder, &record, &subnets)?)
    }
}

/// What is there already, with what to do about it.
fn existing(folder: &Folder) -> Result<Option<String>> {
    let shown = folder.path().display();
    match Record::load(folder)? {
        Some(record) if record.role == Role::Server => {
            let clients = peers::count(&folder.peers());
            Ok(Some(format!(
                "{shown} is the server {} already, with {} and interface {}: invite clients with `mpt invite NAME{}`, or begin anew after `mpt leave{}`",
                endpoint_text(&record.host, record.port),
                super::check::counted(clients, "client"),
                record.interface,
                folder.option(),
                folder.option(),
            )))
        }
        Some(record) => Ok(Some(format!(
            "{shown} is a client of {} already: `mpt leave{}` ends that, or choose another folder with --dir",
            endpoint_text(&record.host, record.port),
            folder.option(),
        ))),
        None => Ok(setup::foreign(folder)),
    }
}

fn write(folder: &Folder, record: &Record, subnets: &Subnets, start: bool) -> Result<()> {
    let text = configuration(folder, record, subnets);
    let owner = service::owner(start);
    record.save(folder)?;
    let key = PrivateKey::new(*keys::random()?);
    folder::write(&folder.private_key(), key.to_base64().as_bytes(), 0o600, owner)?;
    folder::make(&folder.peers(), 0o700)?;
    if let Some((user, group)) = owner {
        let chown = nix::unistd::chown(&folder.peers(), Some(user), Some(group));
        chown.with_context(|| format!("cannot give {} away", folder.peers().display()))?;
    }
    folder::write(&folder.config(), text.as_bytes(), 0o644, None)?;
    setup::check(folder)
}

fn configuration(folder: &Folder, record: &Record, subnets: &Subnets) -> String {
    let path = |path: PathBuf| Value::from(path.display().to_string());
    let mut text = String::from(
        "# Written by `mpt init`. Clients are invited with `mpt invite NAME`; docs/guide.md describes all settings.\n\n",
    );
    text.push_str(&setup::control(folder));
    text.push_str(&format!(
        "[[tunnel]]\nname = {}\naddresses = {}\nprivate_key_file = {}\n\n\
         [[tunnel.accept]]\nname = \"client\"\npeers = {}\n",
        Value::from(record.interface.as_str()),
        setup::list(subnets.addresses()),
        path(folder.private_key()),
        path(folder.peers()),
    ));
    if record.port != crate::setup::PORT {
        text.push_str(&format!("local_port = {}\n", record.port));
    }
    text
}

/// What was done, what others have to do, and what is next.
fn told(folder: &Folder, record: &Record, subnets: &Subnets) -> Result<String> {
    let addresses: Vec<_> = subnets.addresses().iter().map(Prefix::to_string).collect();
    let mut text = format!(
        "wrote {}: this host is {} in the tunnel, interface {}\n",
        folder.config().display(),
        addresses.join(" and "),
        record.interface
    );
    if record.service {
        text.push_str("started the service `mpt`, now and after each start of this host\n");
    } else {
        text.push_str(&setup::how_to_start(folder, record));
    }
    text.push_str(&format!(
        "firewall: datagrams to UDP port {} must reach this host, through a router or a cloud's firewall, too\n",
        record.port
    ));
    text.push_str(if record.internet && record.service {
        "Internet: clients reach it through this host, which forwards and masquerades their packets as long as the daemon runs\n"
    } else if record.internet {
        "Internet: clients reach it through this host from `mpt host apply` on, which has it forward and masquerade their packets\n"
    } else {
        "Internet: clients reach this host only; for `mpt join --everything` set up forwarding and masquerading, or run `mpt leave`, then `mpt init --internet`\n"
    });
    let settings = config::load(&folder.config())?;
    for finding in preflight::lacks(&settings) {
        text.push_str(&format!("{finding}\n"));
    }
    text.push_str(&format!("next: mpt invite NAME{}\n", folder.option()));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_as_the_guide_has_it() {
        let folder = Folder::new(Path::new(Folder::DEFAULT)).unwrap();
        let own = ["10.66.1.1/24", "fd00:9::1/64"].map(|text| setup::prefix(text).unwrap());
        let subnets = Subnets::chosen(&own, &[]).unwrap();
        let record = Record {
            role: Role::Server,
            interface: "mpt0".into(),
            host: "vpn.example.org".into(),
            port: 5000,
            networks: Vec::new(),
            dns: Vec::new(),
            internet: false,
            everything: false,
            resolv_conf: resolver::RESOLV_CONF.into(),
            made_folder: true,
            service: false,
            files: Vec::new(),
        };
        insta::assert_snapshot!(configuration(&folder, &record, &subnets));
    }
}
