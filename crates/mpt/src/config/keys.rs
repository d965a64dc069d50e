//! The keys that each table of the file may have.
//!
//! One list for all, so that a key in the wrong table can be told where it belongs.

use toml::de::DeString;

/// The keys of one kind of table.
#[derive(Debug)]
pub(super) struct Keys {
    /// How the table is written in the file.
    pub(super) table: &'static str,
    /// Its keys in the order of the documentation.
    pub(super) keys: &'static [&'static str],
}

/// The file itself.
pub(super) static ROOT: Keys =
    Keys { table: "the file", keys: &["control", "daemon", "metrics", "tunnel"] };

/// The control socket.
pub(super) static CONTROL: Keys = Keys { table: "[control]", keys: &["socket"] };

/// The process.
pub(super) static DAEMON: Keys = Keys { table: "[daemon]", keys: &["user"] };

/// The page of metrics.
pub(super) static METRICS: Keys = Keys { table: "[metrics]", keys: &["listen"] };

/// A tunnel.
pub(super) static TUNNEL: Keys = Keys {
    table: "[[tunnel]]",
    keys: &["name", "addresses", "mtu", "clamp_mss", "offloads", "threads", "connection", "accept"],
};

/// The kernel's batching that a tunnel may use.
pub(super) static OFFLOADS: Keys =
    Keys { table: "offloads", keys: &["vnet", "tso", "uso", "gso", "gro"] };

/// A connection of a tunnel.
pub(super) static CONNECTION: Keys = Keys {
    table: "[[tunnel.connection]]",
    keys: &[
        "name",
        "peer",
        "peer_addresses",
        "networks",
        "match",
        "local_port",
        "remote_port",
        "command_port",
        "remote_command_port",
        "auth",
        "accept_create",
        "profile",
        "scheduler",
        "key",
        "checksum",
        "sequence",
        "reorder",
        "path",
    ],
};

/// By what commands are known to be the peer's.
pub(super) static AUTH: Keys = Keys { table: "auth", keys: &["type", "key"] };

/// The receive-side ordering of a connection.
pub(super) static REORDER: Keys =
    Keys { table: "reorder", keys: &["window", "max_delay", "early_release", "late"] };

/// Which inner packets a connection carries.
pub(super) static MATCH: Keys = Keys { table: "match", keys: &["protocol", "ports"] };

/// A path of a connection.
pub(super) static PATH: Keys = Keys {
    table: "[[tunnel.connection.path]]",
    keys: &[
        "name",
        "interface",
        "local",
        "remote",
        "weight",
        "priority",
        "keepalive",
        "dead_time",
        "status",
        "tcp_dst",
        "tcp_src",
        "udp_dst",
        "udp_src",
    ],
};

/// A template of connections.
pub(super) static ACCEPT: Keys = Keys {
    table: "[[tunnel.accept]]",
    keys: &[
        "name",
        "peers",
        "sources",
        "interface",
        "local",
        "local_port",
        "max_connections",
        "max_rate",
        "max_paths",
        "forget",
        "profile",
        "scheduler",
        "key",
        "checksum",
        "sequence",
        "reorder",
        "weight",
        "priority",
        "keepalive",
        "dead_time",
    ],
};

/// All of them. A key that several tables have is told to belong in the first of these.
pub(super) static ALL: [&Keys; 12] = [
    &ROOT,
    &CONTROL,
    &DAEMON,
    &METRICS,
    &TUNNEL,
    &OFFLOADS,
    &CONNECTION,
    &AUTH,
    &REORDER,
    &MATCH,
    &PATH,
    &ACCEPT,
];

impl Keys {
    /// What to do about a key that this table does not have.
    pub(super) fn remedy(&self, unknown: &DeString<'_>) -> String {
        if let Some(other) = ALL.iter().find(|other| other.keys.contains(&unknown.as_ref())) {
            return format!("`{unknown}` belongs in {}", quoted(other.table));
        }
        match closest(unknown, self.keys.iter().copied()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("the keys of {} are: {}", quoted(self.table), self.keys.join(", ")),
        }
    }

    /// The table as it appears within a sentence.
    pub(super) fn title(&self) -> String {
        quoted(self.table)
    }
}

fn quoted(table: &str) -> String {
    if table == ROOT.table { table.to_owned() } else { format!("`{table}`") }
}

/// The word nearest to `wrong`, unless all are too far for a slip of the fingers.
pub(super) fn closest<'w>(
    wrong: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    // A third of the letters may be wrong. Longer texts than this are no slip, and comparing takes
    // the product of the lengths.
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase().replace('-', "_");
    words
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&wrong, word), word))
        .filter(|&(distance, word)| distance <= (word.len() / 3).max(1))
        .min()
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised_and_other_words_are_not() {
        let keys = PATH.keys.iter().copied();
        for (wrong, right) in [
            ("wieght", Some("weight")),
            ("Weight", Some("weight")),
            ("dead-time", Some("dead_time")),
            ("keep_alive", Some("keepalive")),
            ("iface", None),
            ("", None),
        ] {
            assert_eq!(closest(wrong, keys.clone()), right, "{wrong}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_table_gets_a_hint_at_the_right_one() {
        assert_eq!(
            CONNECTION.remedy(&"weight".into()),
            "`weight` belongs in `[[tunnel.connection.path]]`"
        );
        assert_eq!(ROOT.remedy(&"tunnels".into()), "did you mean `tunnel`?");
        assert_eq!(
            ROOT.remedy(&"x".into()),
            "the keys of the file are: control, daemon, metrics, tunnel"
        );
    }
}
