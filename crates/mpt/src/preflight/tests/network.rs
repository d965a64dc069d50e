//! What is passed on, and what a firewall lets through.

use mpt_io::netlink::{Hook, StrictChain};

use super::{FILE, found, one};
use crate::preflight::facts::Facts;

fn chain(family: &'static str, name: &str, hook: Hook) -> StrictChain {
    StrictChain { family, table: "filter".into(), name: name.into(), hook }
}

#[test]
fn networks_behind_peers_need_forwarding() {
    let with =
        |networks: &str| FILE.replace("peer = ", &format!("networks = [{networks}]\npeer = "));
    one(
        &with("\"10.20.0.0/16\", \"10.30.0.0/16\""),
        |_| (),
        [
            "warning: net.ipv4.ip_forward is 0",
            "hosts behind this one cannot reach 10.20.0.0/16 through it",
            "sysctl -w net.ipv4.ip_forward=1",
        ],
    );
    one(
        &with("\"fd00:20::/48\""),
        |_| (),
        [
            "warning: net.ipv6.conf.all.forwarding is 0",
            "hosts behind this one cannot reach fd00:20::/48 through it",
            "sysctl -w net.ipv6.conf.all.forwarding=1",
        ],
    );
    assert_eq!(found(&with("\"::/0\""), |_| ()), [""; 0], "that may be for the host alone");
    let forwarding = |facts: &mut Facts| {
        facts.sysctls.insert("net/ipv4/ip_forward".into(), 1);
    };
    assert_eq!(found(&with("\"10.20.0.0/16\""), forwarding), [""; 0]);
}

#[test]
fn a_strict_firewall_is_reported_with_the_unread_rules() {
    let add = |chain: StrictChain| move |facts: &mut Facts| facts.strict_chains.push(chain);
    one(
        FILE,
        add(chain("inet", "input", Hook::Input)),
        [
            "warning: the firewall chain inet filter input drops packets that no rule accepts",
            "datagrams from peers are dropped unless a rule accepts UDP port 4754; mpt does not \
             read the rules",
            "nft insert rule inet filter input udp dport 4754 accept",
        ],
    );
    let two = format!(
        "{FILE}[[tunnel.connection]]\nname = \"other\"\npeer = [\"10.9.0.3\"]\nlocal_port = 4755\n\
         [[tunnel.connection.path]]\nname = \"fibre\"\nremote = \"203.0.113.6\"\n"
    );
    let ipv4 = found(&two, add(chain("ip", "INPUT", Hook::Input)));
    assert!(ipv4[0].ends_with("nft insert rule ip filter INPUT udp dport '{ 4754, 4755 }' accept"));
    let ipv6 = found(&two, add(chain("ip6", "INPUT", Hook::Input)));
    assert!(ipv6[0].ends_with("nft insert rule ip6 filter INPUT udp dport 4754 accept"));

    let forward = chain("ip", "FORWARD", Hook::Forward);
    assert_eq!(found(FILE, add(forward.clone())), [""; 0], "nothing is passed on");
    let networks = FILE.replace("peer = ", "networks = [\"10.20.0.0/16\"]\npeer = ");
    one(
        &networks,
        |facts| {
            facts.sysctls.insert("net/ipv4/ip_forward".into(), 1);
            facts.strict_chains.push(forward);
            facts.strict_chains.push(chain("ip6", "FORWARD", Hook::Forward));
        },
        [
            "warning: the firewall chain ip filter FORWARD drops packets that no rule accepts",
            "nothing is forwarded through mpt0 unless a rule accepts it; mpt does not read the rules",
            "nft insert rule ip filter FORWARD iifname mpt0 accept && \
             nft insert rule ip filter FORWARD oifname mpt0 accept",
        ],
    );
}
