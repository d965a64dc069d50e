//! Routing rules: which table a packet's route is looked up in (`ip-rule(8)`).
//!
//! They exist here for one purpose: a default route through a tunnel that does not route the
//! tunnel's own datagrams into itself. The route is in a separate table; the datagrams' sockets set
//! a mark (fwmark); and of the two rules of [`Rule::default_route`] the first keeps every route of
//! the main table except its default routes, and the second directs the remaining unmarked packets
//! to the table of the tunnel. Only datagrams of the tunnel, and packets that the tunnel has no
//! route for, still use the default route of the main table, which stays unchanged.
//!
//! Unlike routes, rules do not go with an interface: what a killed process leaves behind is found
//! by [`Netlink::rules`].

use std::fmt;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{RouteHeader, RouteProtocol};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Error, Netlink, Route};

/// Identifies the creator of a rule. It is the IP protocol number of GRE, and iproute2 lists no
/// other program that uses it for routes or rules (`/etc/iproute2/rt_protos`).
const PROTOCOL: u8 = 47;

/// One of the two versions of IP. Each has separate rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl From<IpAddr> for IpVersion {
    /// The version of an address.
    fn from(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// Which packets a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// All.
    All,
    /// Those with this mark, not 0.
    Mark(u32),
    /// Those without this mark, not 0.
    NotMark(u32),
}

/// A rule: packets that it is about are looked up in its table. If that gives no route, or only one
/// that the rule suppresses, the next rule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The version of IP that it is about.
    pub version: IpVersion,
    /// Its place among the rules: the least number is asked first. The main table's own rule has
    /// 32766, that of this host's own addresses 0.
    pub priority: u32,
    /// The packets that it is about.
    pub selector: Selector,
    /// The table, not 0; [`Route::MAIN`] is the main one.
    pub table: u32,
    /// Routes to networks of so few bits or fewer are passed over: 0 means default routes.
    pub suppress_prefix_len: Option<u8>,
}

impl Rule {
    /// The rules that let a default route in `table` apply to everything but datagrams with `mark`,
    /// while more specific routes of the main table still win. They take the places `priority` and
    /// `priority + 1`; the caller chooses that below 32765 and `mark` and `table` other than 0.
    pub fn default_route(version: IpVersion, priority: u32, mark: u32, table: u32) -> [Self; 2] {
        let first = Self {
            version,
            priority,
            selector: Selector::All,
            table: Route::MAIN,
            suppress_prefix_len: Some(0),
        };
        let second = Self {
            priority: priority + 1,
            selector: Selector::NotMark(mark),
            table,
            suppress_prefix_len: None,
            ..first
        };
        [first, second]
    }

    fn to_message(self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = match self.version {
            IpVersion::V4 => AddressFamily::Inet,
            IpVersion::V6 => AddressFamily::Inet6,
        };
        message.header.action = RuleAction::ToTable;
        message.header.table = u8::try_from(self.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
        message.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)),
        ];
        let mark = match self.selector {
            Selector::All => None,
            Selector::Mark(mark) => Some(mark),
            Selector::NotMark(mark) => {
                message.header.flags |= RuleFlags::Invert;
                Some(mark)
            }
        };
        if let Some(mark) = mark {
            message.attributes.push(RuleAttribute::FwMark(mark));
            message.attributes.push(RuleAttribute::FwMask(u32::MAX));
        }
        let suppressed = self.suppress_prefix_len.map(u32::from);
        message.attributes.extend(suppressed.map(RuleAttribute::SuppressPrefixLen));
        message
    }

    /// The rule in a message, if [`to_message`](Self::to_message) could have made it.
    fn from_message(message: &RuleMessage) -> Option<Self> {
        let families =
            [(AddressFamily::Inet, IpVersion::V4), (AddressFamily::Inet6, IpVersion::V6)];
        let (_, version) =
            families.into_iter().find(|(family, _)| *family == message.header.family)?;
        let mut rule = Self {
            version,
            priority: 0,
            selector: Selector::All,
            table: message.header.table.into(),
            suppress_prefix_len: None,
        };
        for attribute in &message.attributes {
            if let RuleAttribute::Priority(priority) = attribute {
                rule.priority = *priority;
            } else if let RuleAttribute::Table(table) = attribute {
                rule.table = *table;
            } else if let RuleAttribute::SuppressPrefixLen(len) = attribute {
                // The kernel shows "none" as the largest number there is.
                rule.suppress_prefix_len = u8::try_from(*len).ok();
            } else if let RuleAttribute::FwMark(mark) = attribute {
                let inverted = message.header.flags.contains(RuleFlags::Invert);
                let selector = if inverted { Selector::NotMark } else { Selector::Mark };
                rule.selector = selector(*mark);
            }
        }
        let ours = RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL));
        let whole = |flags: RuleFlags| flags.difference(RuleFlags::Invert).is_empty();
        let ours = message.attributes.contains(&ours) && whole(message.header.flags);
        ours.then_some(rule)
    }
}

impl fmt::Display for Rule {
    /// In the words of `ip rule`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            IpVersion::V4 => write!(f, "IPv4 rule {}:", self.priority)?,
            IpVersion::V6 => write!(f, "IPv6 rule {}:", self.priority)?,
        }
        match self.selector {
            Selector::All => {}
            Selector::Mark(mark) => write!(f, " fwmark {mark:#x}")?,
            Selector::NotMark(mark) => write!(f, " not fwmark {mark:#x}")?,
        }
        if self.table == Route::MAIN {
            write!(f, " lookup main")?;
        } else {
            write!(f, " lookup {}", self.table)?;
        }
        match self.suppress_prefix_len {
            Some(len) => write!(f, " suppress_prefixlength {len}"),
            None => Ok(()),
        }
    }
}

impl Netlink {
    /// Adds a rule, with a note that it was made here.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if that very rule exists.
    pub fn add_rule(&mut self, rule: &Rule) -> Result<(), Error> {
        let message = RouteNetlinkMessage::NewRule(rule.to_message());
        self.request(message, NLM_F_CREATE | NLM_F_EXCL, &format!("add the {rule}")).map(drop)
    }

    /// Removes a rule that [`add_rule`](Self::add_rule) made.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if there is none.
    pub fn remove_rule(&mut self, rule: &Rule) -> Result<(), Error> {
        let message = RouteNetlinkMessage::DelRule(rule.to_message());
        self.request(message, 0, &format!("remove the {rule}")).map(drop)
    }

    /// The existing rules of both versions of IP that were made by [`add_rule`](Self::add_rule), in
    /// any process; those of each version in the order of evaluation.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn rules(&mut self) -> Result<Vec<Rule>, Error> {
        let everything = RouteNetlinkMessage::GetRule(RuleMessage::default());
        let answers = self.list(&everything, "list the routing rules")?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| {
                let RouteNetlinkMessage::NewRule(message) = answer else { return None };
                Rule::from_message(&message)
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_the_message_and_foreign_ones_are_not_taken_for_ours() {
        for version in [IpVersion::V4, IpVersion::V6] {
            let plain = Rule {
                version,
                priority: 30_000,
                selector: Selector::All,
                table: 100_000,
                suppress_prefix_len: None,
            };
            for rule in [
                plain,
                Rule { selector: Selector::Mark(7), table: Route::MAIN, ..plain },
                Rule { selector: Selector::NotMark(u32::MAX), ..plain },
                Rule { suppress_prefix_len: Some(0), ..plain },
            ] {
                let mut message = rule.to_message();
                assert_eq!(Rule::from_message(&message), Some(rule));
                message.attributes.retain(|a| !matches!(a, RuleAttribute::Protocol(_)));
                assert_eq!(Rule::from_message(&message), None);
            }
        }
    }

    #[test]
    fn rules_are_printed_in_the_format_of_ip_rule() {
        let [first, second] = Rule::default_route(IpVersion::V4, 4754, 0x1292, 100);
        assert_eq!(first.to_string(), "IPv4 rule 4754: lookup main suppress_prefixlength 0");
        assert_eq!(second.to_string(), "IPv4 rule 4755: not fwmark 0x1292 lookup 100");
    }
}
