//! Reading and writing the file of a client.

use std::net::IpAddr;

use toml::de::DeTable;

use super::report::{Problem, Problems, Report};
use super::schema::Tabled as _;
use super::settings::Client;
use super::table::Table;
use super::writer::Writer;
use super::{Prefix, syntax_problems};

impl Client {
    /// The client in a text, which the report shows as the file `name`.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, Report> {
        let report = |problems| Report::new(name.to_owned(), text.to_owned(), problems);
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(report(syntax_problems(text, &errors)));
        }
        let mut problems = Problems::default();
        let client = read(&document.into_inner(), &mut problems);
        match (client, problems.into_sorted()) {
            (Some(client), problems) if problems.is_empty() => Ok(client),
            (_, problems) => Err(report(problems)),
        }
    }

    /// Its file.
    pub(crate) fn to_text(&self) -> String {
        let mut out = Writer::default();
        self.write(&mut out, ());
        out.into_text()
    }

    /// What inner sources it may have: its addresses, and the networks behind it.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Prefix> + '_ {
        let host = |&addr: &IpAddr| Prefix { addr, len: Prefix::max_len(addr) };
        self.addresses.iter().map(host).chain(self.networks.iter().copied())
    }
}

fn read(document: &DeTable<'_>, problems: &mut Problems) -> Option<Client> {
    let all = [&Client::KEYS];
    let table = Table::file(&all, document);
    let read = Client::read(&table, (), problems);
    table.finish(problems);
    if let Some(addresses) = &read.addresses {
        let versions = |ipv4| addresses.iter().filter(|it| it.is_ipv4() == ipv4).count();
        if addresses.is_empty() || versions(true) > 1 || versions(false) > 1 {
            let problem = Problem::new("tunnel addresses of a client", table.span_of("addresses"));
            let help = "list one address, or one of each IP version; more of them go to `networks`";
            problems.push(problem.label("none, or several of one IP version").help(help));
        }
    }
    for network in table.with_places("networks", read.networks.as_deref().unwrap_or_default()) {
        if network.get_ref().is_default() {
            let problem = Problem::new("a default route to a client", network.span());
            let label = "then it could use the addresses of all other clients";
            let help = "list the networks behind it, or configure it as a `[[tunnel.connection]]`";
            problems.push(problem.label(label).help(help));
        }
    }
    let has = [table.has("public_key"), table.has("invitation"), table.has("invitation_expires")];
    let fault = match has {
        [_, true, false] => Some((
            "an invitation that never expires",
            "add `invitation_expires = 2030-01-01T00:00:00Z`",
        )),
        [_, false, true] => {
            Some(("no invitation that could expire", "remove `invitation_expires`"))
        }
        [false, false, false] => Some((
            "a client that cannot be known",
            "add `public_key`, what `mpt pubkey` prints at the client, or invite it: `mpt invite NAME`",
        )),
        _ => None,
    };
    if let Some((title, help)) = fault {
        let key = if has[1] { "invitation" } else { "invitation_expires" };
        problems.push(Problem::new(title, table.span_of(key)).help(help));
    }
    read.whole()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            format!(
                "public_key = \"{KEY}\"\naddresses = [\"10.9.0.2\", \"fd00:9::2\"]\nnetworks = [\"192.168.7.0/24\"]\n"
            ),
            format!(
                "addresses = [\"10.9.0.2\"]\ninvitation = \"{KEY}\"\ninvitation_expires = 2026-11-25T03:00:00Z\n"
            ),
            format!(
                "public_key = \"{KEY}\"\naddresses = [\"10.9.0.2\"]\npreshared_key_file = \"/etc/mpt/van.psk\"\n"
            ),
        ] {
            let client = Client::parse(&text, "van.toml").unwrap();
            assert_eq!(client.to_text(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_shown_with_file_and_line() {
        let good = format!("public_key = \"{KEY}\"\n");
        for (text, place, says) in [
            (good.clone(), "van.toml", "missing key `addresses`"),
            (format!("{good}addresses = [\"10.9.0.300\"]\n"), "van.toml:2:", "not an IP address"),
            (format!("{good}addresses = []\n"), "van.toml:2:", "none, or several"),
            (
                format!("{good}addresses = [\"10.9.0.2\", \"10.9.0.3\"]\n"),
                "van.toml:2:",
                "several of one",
            ),
            (
                format!("{good}addresses = [\"10.9.0.2\"]\nadresses = 1\n"),
                "van.toml:3:",
                "did you mean `addresses`?",
            ),
            (
                format!("{good}addresses = [\"10.9.0.2\"]\nnetworks = [\"0.0.0.0/0\"]\n"),
                "van.toml:3:",
                "default route",
            ),
            ("addresses = [\"10.9.0.2\"]\n".into(), "van.toml", "cannot be known"),
            ("public_key = \"x\"\naddresses = [\"10.9.0.2\"]\n".into(), "van.toml:1:", "not a key"),
            (
                format!("addresses = [\"10.9.0.2\"]\ninvitation = \"{KEY}\"\n"),
                "van.toml:2:",
                "never expires",
            ),
            (
                format!(
                    "addresses = [\"10.9.0.2\"]\ninvitation = \"{KEY}\"\ninvitation_expires = \"soon\"\n"
                ),
                "van.toml:3:",
                "expected a date and time",
            ),
            ("addresses = [\n".into(), "van.toml:", "not TOML"),
        ] {
            let report = Client::parse(&text, "van.toml").expect_err(&text).render(false);
            assert!(report.contains(place) && report.contains(says), "{text}\n{report}");
        }
    }
}
