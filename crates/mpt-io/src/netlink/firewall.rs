//! A look at the packet filter of the kernel (nf_tables): which chains drop what no rule accepts.
//!
//! The rules are not read: what a firewall does to a packet can only be found out by running them.
//! The policy of a chain is simple enough to be known.

use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::conversation::Conversation;
use super::generic::{Attributes, Message};
use super::{Error, IpVersion};

/// `NFT_MSG_GETCHAIN` of the subsystem `NFNL_SUBSYS_NFTABLES` (`linux/netfilter/nf_tables.h`).
const GET_CHAIN: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | 4;

/// Attributes of a chain: its table, its name, its hook with the number in it, its policy.
const TABLE: u16 = 1;
const NAME: u16 = 3;
const HOOK: u16 = 4;
const HOOK_NUMBER: u16 = 1;
const POLICY: u16 = 5;

/// The policy that drops (`NF_DROP`).
const DROP: u32 = 0;

/// Where a chain stands in the way of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Packets for this host.
    Input,
    /// Packets that this host passes on.
    Forward,
}

/// A chain whose policy drops every packet that none of its rules accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictChain {
    /// The family of its table, as `nft(8)` calls it: `ip`, `ip6` or `inet`.
    pub family: &'static str,
    /// The name of its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// Which packets it judges.
    pub hook: Hook,
}

impl StrictChain {
    /// Whether it judges packets of this version of IP.
    pub fn judges(&self, version: IpVersion) -> bool {
        match version {
            IpVersion::V4 => self.family != "ip6",
            IpVersion::V6 => self.family != "ip",
        }
    }
}

/// A conversation with the packet filter of one network namespace.
#[derive(Debug)]
pub struct Firewall {
    conversation: Conversation,
}

impl Firewall {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what the kernel said, for example that it has no netfilter.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { conversation: Conversation::open(NETLINK_NETFILTER)? })
    }

    /// The chains that drop what they do not accept, in no particular order.
    ///
    /// # Errors
    ///
    /// See [`Error`]: reading needs `CAP_NET_ADMIN`, and the kernel may have no nf_tables.
    pub fn strict_chains(&mut self) -> Result<Vec<StrictChain>, Error> {
        let everything = Chain(Message {
            family: GET_CHAIN,
            command: libc::NFPROTO_UNSPEC as u8,
            version: libc::NFNETLINK_V0 as u8,
            attributes: Attributes::default(),
        });
        let answers = self.conversation.list(&everything, "list the chains of the firewall")?;
        Ok(answers.iter().filter_map(Chain::strict).collect())
    }
}

/// A message about a chain. Its header has the size of generic netlink's and begins, where that has
/// a command, with the family of the table (`struct nfgenmsg`).
#[derive(Clone, Debug)]
struct Chain(Message);

impl Chain {
    /// The chain, if it drops what it does not accept. Chains without a hook have no policy.
    fn strict(&self) -> Option<StrictChain> {
        let Self(message) = self;
        let family = match i32::from(message.command) {
            libc::NFPROTO_INET => "inet",
            libc::NFPROTO_IPV4 => "ip",
            libc::NFPROTO_IPV6 => "ip6",
            _ => return None,
        };
        let attributes = &message.attributes;
        let number = |attributes: &Attributes, kind| {
            attributes.get(kind)?.try_into().ok().map(u32::from_be_bytes)
        };
        let hook = match number(&attributes.nested(HOOK)?, HOOK_NUMBER)?.cast_signed() {
            libc::NF_INET_LOCAL_IN => Hook::Input,
            libc::NF_INET_FORWARD => Hook::Forward,
            _ => return None,
        };
        if number(attributes, POLICY)? != DROP {
            return None;
        }
        let (table, name) = (attributes.get_text(TABLE)?, attributes.get_text(NAME)?);
        Some(StrictChain { family, table, name, hook })
    }
}

impl NetlinkSerializable for Chain {
    fn message_type(&self) -> u16 {
        self.0.message_type()
    }

    fn buffer_len(&self) -> usize {
        self.0.buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        self.0.serialize(buffer);
    }
}

impl NetlinkDeserializable for Chain {
    type Error = <Message as NetlinkDeserializable>::Error;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Self::Error> {
        Message::deserialize(header, payload).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(family: i32, hook: Option<i32>, policy: Option<u32>) -> Option<StrictChain> {
        let mut attributes = Attributes::default().with(TABLE, b"filter\0").with(NAME, b"in\0");
        if let Some(hook) = hook {
            let number = Attributes::default().with(HOOK_NUMBER, &hook.to_be_bytes());
            attributes = attributes.with_nested(HOOK, &number);
        }
        if let Some(policy) = policy {
            attributes = attributes.with(POLICY, &policy.to_be_bytes());
        }
        Chain(Message { family: GET_CHAIN - 1, command: family as u8, version: 0, attributes })
            .strict()
    }

    #[test]
    fn a_chain_is_strict_if_it_has_a_hook_and_drops() {
        const IN: Option<i32> = Some(libc::NF_INET_LOCAL_IN);
        let found = chain(libc::NFPROTO_INET, IN, Some(DROP)).unwrap();
        assert_eq!((found.family, &*found.table, &*found.name), ("inet", "filter", "in"));
        assert_eq!(found.hook, Hook::Input);
        let forward = chain(libc::NFPROTO_IPV6, Some(libc::NF_INET_FORWARD), Some(DROP)).unwrap();
        assert_eq!((forward.family, forward.hook), ("ip6", Hook::Forward));
        assert_eq!(chain(libc::NFPROTO_INET, IN, Some(1)), None);
        assert_eq!(chain(libc::NFPROTO_INET, IN, None), None);
        assert_eq!(chain(libc::NFPROTO_INET, None, None), None);
        assert_eq!(chain(libc::NFPROTO_INET, Some(libc::NF_INET_LOCAL_OUT), Some(DROP)), None);
        assert_eq!(chain(libc::NFPROTO_BRIDGE, IN, Some(DROP)), None);
    }

    #[test]
    fn a_family_judges_its_own_version() {
        let judges = |family| {
            let chain = chain(family, Some(libc::NF_INET_LOCAL_IN), Some(DROP)).unwrap();
            [IpVersion::V4, IpVersion::V6].map(|version| chain.judges(version))
        };
        assert_eq!(judges(libc::NFPROTO_IPV4), [true, false]);
        assert_eq!(judges(libc::NFPROTO_IPV6), [false, true]);
        assert_eq!(judges(libc::NFPROTO_INET), [true, true]);
    }
}
