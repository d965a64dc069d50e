//! The cases: matching configurations of the kernel's tunnel and ours.

use std::fmt::Write as _;

/// One pair of tunnels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// The IP version outside: 4 or 6.
    pub(super) outer: u8,
    /// GRE key at our end and at the kernel's.
    pub(super) keys: [Option<u32>; 2],
    /// GRE checksums, both sent and demanded.
    pub(super) checksum: bool,
    /// Sequence numbers, both sent and demanded.
    pub(super) sequence: bool,
    /// Whether the kernel sends UDP checksums. Over IPv6 a socket takes nothing without.
    pub(super) udp_checksum: bool,
    /// Whether the kernel's source port depends on the flow, or is 4754 as well.
    pub(super) any_port: bool,
    /// The MTU of the link outside.
    pub(super) link_mtu: u32,
}

/// What a case has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything gets through.
    Carries,
    /// No traffic passes, because the keys differ and each end drops the other's packets.
    Refuses,
    /// No traffic passes, because our host's kernel drops the other end's datagrams before our
    /// socket.
    Unheard,
}

/// The MTU of Ethernet.
const ETHERNET: u32 = 1500;

/// The kernel's address outside and ours, and the width of their subnet.
const OUTER: [(&str, &str, u8); 2] =
    [("192.0.2.2", "192.0.2.1", 24), ("2001:db8::2", "2001:db8::1", 64)];

/// All cases, in the order in which they are tried.
pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for outer in [4, 6] {
        let plain = Case {
            outer,
            keys: [None; 2],
            checksum: false,
            sequence: false,
            udp_checksum: outer == 6,
            any_port: true,
            link_mtu: ETHERNET,
        };
        for keys in [[None; 2], [Some(7); 2]] {
            for checksum in [false, true] {
                cases.push(Case { keys, checksum, ..plain });
            }
        }
        let everything = Case {
            keys: [Some(u32::MAX); 2],
            checksum: true,
            sequence: true,
            udp_checksum: true,
            any_port: false,
            ..plain
        };
        cases.push(everything);
        cases.push(Case { link_mtu: 1400, ..everything });
        cases.push(Case { keys: [Some(7), Some(8)], ..plain });
        if outer == 6 {
            cases.push(Case { udp_checksum: false, ..plain });
        }
    }
    cases
}

impl Case {
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            // RFC 8200, section 8.1: over IPv6 a checksum of zero is good for special sockets only.
            Self { outer: 6, udp_checksum: false, .. } => Outcome::Unheard,
            Self { keys: [ours, kernels], .. } if ours != kernels => Outcome::Refuses,
            _ => Outcome::Carries,
        }
    }

    /// Its unique name.
    pub(super) fn name(&self) -> String {
        let mut name = format!("over-ipv{}", self.outer);
        let mut add = |present: bool, what: &str| {
            if present {
                name.push_str(what);
            }
        };
        add(self.outcome() == Outcome::Refuses, "-other");
        add(self.keys[0].is_some(), "-key");
        add(self.checksum, "-checksum");
        add(self.sequence, "-sequence");
        add(self.link_mtu != ETHERNET, "-narrow");
        add(self.outcome() == Outcome::Unheard, "-without-udp-checksum");
        name
    }

    /// The kernel's outer address, and ours.
    fn outer_addresses(&self) -> (&'static str, &'static str, u8) {
        OUTER[usize::from(self.outer == 6)]
    }

    /// The arguments of `ip` in the kernel's namespace that make its tunnel.
    pub(super) fn kernel_tunnel(&self) -> Vec<String> {
        let (kind, version, udp) = match self.outer {
            4 => ("gre", "", "encap-csum"),
            _ => ("ip6gre", " -6", "encap-udp6-csum"),
        };
        let (own, remote, _) = self.outer_addresses();
        let mut link = format!("link add gre1 type {kind} local {own} remote {remote}");
        if let Some(key) = self.keys[1] {
            let _ = write!(link, " key {key}");
        }
        for (present, option) in [(self.checksum, " csum"), (self.sequence, " seq")] {
            link.push_str(if present { option } else { "" });
        }
        if self.outer == 6 {
            // Without this a destination option precedes the UDP header.
            link.push_str(" encaplimit none");
        }
        let port = if self.any_port { "auto" } else { "4754" };
        let _ = write!(link, " encap fou encap-sport {port} encap-dport 4754");
        let _ = write!(link, " {}{udp}", if self.udp_checksum { "" } else { "no" });
        vec![
            format!("fou add port 4754 ipproto 47{version}"),
            link,
            // No link-local address, from which it would look for routers: that is not the peer's.
            "link set gre1 addrgenmode none".into(),
            "address add 10.9.0.2/24 dev gre1".into(),
            "address add fd00:9::2/64 dev gre1 nodad".into(),
            "link set gre1 up".into(),
        ]
    }

    /// The arguments of `ip` that take it away again.
    pub(super) fn kernel_tunnel_removed(&self) -> Vec<String> {
        let version = if self.outer == 6 { " -6" } else { "" };
        vec!["link del gre1".into(), format!("fou del port 4754{version}")]
    }

    /// Our configuration.
    pub(super) fn configuration(&self, socket: &str) -> String {
        let (remote, ..) = self.outer_addresses();
        let key = self.keys[0].map_or(String::new(), |key| format!("key = {key}\n"));
        let Self { checksum, sequence, .. } = self;
        format!(
            "[control]\n\
             socket = \"{socket}\"\n\
             [[tunnel]]\n\
             name = \"mpt0\"\n\
             addresses = [\"10.9.0.1/24\", \"fd00:9::1/64\"]\n\
             [[tunnel.connection]]\n\
             name = \"linux\"\n\
             peer = \"gre\"\n\
             peer_addresses = [\"10.9.0.2\", \"fd00:9::2\"]\n\
             {key}checksum = {checksum}\n\
             sequence = {sequence}\n\
             [[tunnel.connection.path]]\n\
             name = \"wire\"\n\
             remote = \"{remote}\"\n"
        )
    }
}

/// The arguments of `ip` that join our namespace, `mpt`, with the kernel's, `linux`.
pub(super) fn wire() -> Vec<String> {
    let mut lines = vec![
        "netns add mpt".into(),
        "netns add linux".into(),
        "link add wire netns mpt type veth peer name wire netns linux".into(),
    ];
    for (kernel, ours, len) in OUTER {
        let nodad = if kernel.contains(':') { " nodad" } else { "" };
        lines.push(format!("-n mpt address add {ours}/{len} dev wire{nodad}"));
        lines.push(format!("-n linux address add {kernel}/{len} dev wire{nodad}"));
    }
    for namespace in ["mpt", "linux"] {
        lines.push(format!("-n {namespace} link set lo up"));
        lines.push(format!("-n {namespace} link set wire up"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_commands_are_those_that_are_run() {
        let document: Vec<_> = include_str!("../../../docs/interop.md").lines().collect();
        for name in ["over-ipv4-key", "over-ipv6-key"] {
            let cases = all();
            let case = cases.iter().find(|case| case.name() == name).unwrap();
            for line in case.kernel_tunnel() {
                assert!(document.contains(&&*format!("# ip {line}")), "{name}: ip {line}");
            }
            let configuration = case.configuration("");
            let (_, tunnel) = configuration.split_once("[[tunnel]]").unwrap();
            let other = |line: &&str| case.outer == 6 && line.starts_with("remote");
            for line in tunnel.lines().filter(|line| !other(line)) {
                assert!(document.contains(&line), "{name}: {line}");
            }
        }
    }

    #[test]
    fn no_two_cases_have_the_same_name() {
        let mut names: Vec<_> = all().iter().map(Case::name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
