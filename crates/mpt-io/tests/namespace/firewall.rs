//! What is found out about a real packet filter.

use mpt_io::netlink::{Error, Firewall, Hook, IpVersion, StrictChain};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] =
    &[("firewall::chains_that_drop_what_they_do_not_accept_are_found", strict_chains)];

/// Kinds of attributes (`linux/netfilter/nf_tables.h`).
mod kind {
    pub(super) const TABLE_NAME: i32 = 1;
    pub(super) const CHAIN_TABLE: i32 = 1;
    pub(super) const CHAIN_NAME: i32 = 3;
    pub(super) const CHAIN_HOOK: i32 = 4;
    pub(super) const CHAIN_POLICY: i32 = 5;
    pub(super) const CHAIN_TYPE: i32 = 7;
    pub(super) const HOOK_NUMBER: i32 = 1;
    pub(super) const HOOK_PRIORITY: i32 = 2;
}

const DROP: u32 = 0;
const ACCEPT: u32 = 1;

/// A message to the packet filter, its header first (`linux/netfilter/nfnetlink.h`).
fn message(kind: u16, flags: u16, family: i32, resource: u16, attributes: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((20 + attributes.len() as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family as u8, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(attributes);
    bytes
}

fn attribute(kind: i32, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend((kind as u16).to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Makes a table with a chain in one transaction.
fn add_chain(family: i32, table: &str, name: &str, hook: i32, policy: u32) -> Result<(), Skip> {
    const BEGIN: u16 = 16;
    const END: u16 = 17;
    let subsystem = libc::NFNL_SUBSYS_NFTABLES as u16;
    let about = |what: i32| subsystem << 8 | what as u16;
    let flags = (libc::NLM_F_CREATE | libc::NLM_F_ACK) as u16;
    let text = |kind, text: &str| attribute(kind, format!("{text}\0").as_bytes());
    let place = [
        attribute(kind::HOOK_NUMBER, &hook.to_be_bytes()),
        attribute(kind::HOOK_PRIORITY, &0_u32.to_be_bytes()),
    ];
    let chain = [
        text(kind::CHAIN_TABLE, table),
        text(kind::CHAIN_NAME, name),
        attribute(kind::CHAIN_HOOK | libc::NLA_F_NESTED, &place.concat()),
        attribute(kind::CHAIN_POLICY, &policy.to_be_bytes()),
        text(kind::CHAIN_TYPE, "filter"),
    ];
    let batch = [
        message(BEGIN, 0, libc::AF_UNSPEC, subsystem, &[]),
        message(about(libc::NFT_MSG_NEWTABLE), flags, family, 0, &text(kind::TABLE_NAME, table)),
        message(about(libc::NFT_MSG_NEWCHAIN), flags, family, 0, &chain.concat()),
        message(END, 0, libc::AF_UNSPEC, subsystem, &[]),
    ];
    let skip = |error| Skip(format!("no packet filter can be made: {error}"));
    let mut socket = Socket::new(NETLINK_NETFILTER).map_err(skip)?;
    socket.bind_auto().unwrap();
    socket.connect(&SocketAddr::new(0, 0)).unwrap();
    socket.send(&batch.concat(), 0).unwrap();
    for _ in 0..2 {
        let mut verdict = vec![0; 1024];
        let len = socket.recv(&mut &mut verdict[..], 0).unwrap();
        assert!(len >= 20);
        let code = i32::from_ne_bytes(verdict[16..20].try_into().unwrap());
        if code != 0 {
            return Err(skip(std::io::Error::from_raw_os_error(-code)));
        }
    }
    Ok(())
}

fn strict_chains() -> Outcome {
    let mut firewall = Firewall::open().map_err(|error| Skip(error.to_string()))?;
    match firewall.strict_chains() {
        Ok(chains) => assert_eq!(chains, []),
        Err(error @ Error::Refused { .. }) => return Err(Skip(error.to_string())),
        Err(error) => panic!("{error}"),
    }
    add_chain(libc::NFPROTO_INET, "filter", "input", libc::NF_INET_LOCAL_IN, DROP)?;
    add_chain(libc::NFPROTO_INET, "lenient", "input", libc::NF_INET_LOCAL_IN, ACCEPT)?;
    add_chain(libc::NFPROTO_IPV4, "old", "FORWARD", libc::NF_INET_FORWARD, DROP)?;
    add_chain(libc::NFPROTO_IPV6, "out", "output", libc::NF_INET_LOCAL_OUT, DROP)?;
    let mut chains = firewall.strict_chains().unwrap();
    chains.sort_by(|a, b| a.table.cmp(&b.table));
    let chain = |family, table: &str, name: &str, hook| StrictChain {
        family,
        table: table.into(),
        name: name.into(),
        hook,
    };
    let input = chain("inet", "filter", "input", Hook::Input);
    assert!(input.judges(IpVersion::V6));
    assert_eq!(chains, [input, chain("ip", "old", "FORWARD", Hook::Forward)]);
    Ok(())
}
