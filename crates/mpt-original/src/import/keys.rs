//! All keys of the original's files, of every version.

/// Commands and the client, in `[general]`.
pub(super) const GENERAL: [&str; 5] =
    ["tunnel_num", "accept_remote", "cmdport_local", "cmd_timeout", "interface_num"];

/// A tunnel, in `[tun_N]`.
pub(super) const TUNNEL: [&str; 4] = ["name", "mtu", "ipv4_addr", "ipv6_addr"];

/// `[connection]`. `keepalive_time` and `dead_time` are the positional form's.
pub(super) const CONNECTION: [&str; 18] = [
    "name",
    "permission",
    "ip_ver",
    "ip_local",
    "local_port",
    "local_cmd_port",
    "ip_remote",
    "remote_port",
    "remote_cmd_port",
    "path_count",
    "network_count",
    "status",
    "reorder_window",
    "max_buffdelay_msec",
    "auth_type",
    "auth_key",
    "keepalive_time",
    "dead_time",
];

/// A path, in `[path_N]`. The ports are those of the branch with flow mapping.
pub(super) const PATH: [&str; 17] = [
    "interface_name",
    "ip_ver",
    "public_ipaddr",
    "private_ipaddr",
    "gw_ipaddr",
    "remote_ipaddr",
    "keepalive_time",
    "dead_time",
    "weight_out",
    "weight_in",
    "cmd_default",
    "status",
    "window_size",
    "tcp_src",
    "tcp_dst",
    "udp_src",
    "udp_dst",
];

/// A network, in `[net_N]`.
pub(super) const NETWORK: [&str; 3] = ["ip_ver", "src_addr", "dst_addr"];

/// The key nearest to `wrong`, unless all are too far for a slip of the fingers: a third of the letters may be
/// wrong.
pub(super) fn closest<'k>(wrong: &str, keys: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A longer text is no slip, and comparing takes the product of the lengths.
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase().replace('-', "_");
    let distances = keys.into_iter().map(|key| (strsim::damerau_levenshtein(&wrong, key), key));
    let near = distances.filter(|&(distance, key)| distance <= (key.len() / 3).max(1));
    near.min().map(|(_, key)| key)
}

/// The key whose value is secret.
pub(super) const SECRET: &str = "auth_key";

/// All of them.
pub(super) fn all() -> Vec<&'static str> {
    let aliases = ALIASES.map(|(alias, _)| alias);
    [&GENERAL[..], &TUNNEL, &CONNECTION, &PATH, &NETWORK, &aliases].concat()
}

/// The keys of a section, by its name: `path_0`.
pub(super) fn of_section(name: &str) -> &'static [&'static str] {
    match name.split_once('_').map_or(name, |(kind, _)| kind) {
        "general" => &GENERAL,
        "tun" => &TUNNEL,
        "connection" => &CONNECTION,
        "path" => &PATH,
        "net" => &NETWORK,
        _ => &[],
    }
}

/// Other names that the original's manual or an earlier version has for a key, which the original
/// does not read.
pub(super) const ALIASES: [(&str, &str); 3] = [
    ("gateway_ipaddr", "gw_ipaddr"),
    ("local_ipaddr", "private_ipaddr"),
    ("default_cmd", "cmd_default"),
];

/// The positional form's first block of an interface.
pub(super) const POSITIONAL_GENERAL: [&str; 3] =
    ["cmdport_local", "interface_num", "accept_remote"];

/// Its second.
pub(super) const POSITIONAL_CLIENT: [&str; 1] = ["cmd_timeout"];

/// Its block of a tunnel. The last may be missing.
pub(super) const POSITIONAL_TUNNEL: [&str; 4] = TUNNEL;

/// Its block of a connection. The last may be missing.
pub(super) const POSITIONAL_CONNECTION: [&str; 15] = [
    "name",
    "permission",
    "ip_ver",
    "ip_local",
    "local_port",
    "ip_remote",
    "remote_port",
    "remote_cmd_port",
    "path_count",
    "network_count",
    "keepalive_time",
    "dead_time",
    "status",
    "auth_type",
    "auth_key",
];

/// Its block of a path. The last is missing from the papers' first path.
pub(super) const POSITIONAL_PATH: [&str; 11] = [
    "interface_name",
    "ip_ver",
    "public_ipaddr",
    "gw_ipaddr",
    "remote_ipaddr",
    "keepalive_time",
    "dead_time",
    "weight_out",
    "weight_in",
    "cmd_default",
    "status",
];
