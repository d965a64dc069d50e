//! Which inner packets a connection is for, where several lead to one peer.

use std::fmt;

use crate::ports::PortRanges;
use crate::wire::flow::Flow;

/// A connection's `match`: it carries only what this one holds.
///
/// The rule is the same for both directions of a flow, so that both hosts can have the same
/// settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The protocol above IP by its IANA number; `None` is any.
    pub protocol: Option<u8>,
    /// Ports of which the packet's source or destination port is one; the empty set is any, also a
    /// packet without ports.
    pub ports: PortRanges,
}

impl Selector {
    /// Whether packets of this flow belong to the connection. A packet with unknown ports, such as
    /// a fragment, matches no rule with ports.
    #[inline]
    pub fn matches(&self, flow: &Flow) -> bool {
        let port = |port| self.ports.contains(port);
        self.protocol.is_none_or(|protocol| protocol == flow.protocol)
            && (self.ports.is_empty()
                || flow.ports.is_some_and(|ports| port(ports.source) || port(ports.destination)))
    }
}

/// `udp 5060, 10000-20000`, `tcp`, `protocol 47`, `any protocol 53`, `anything`.
impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            None if self.ports.is_empty() => return formatter.write_str("anything"),
            None => formatter.write_str("any protocol")?,
            Some(Flow::TCP) => formatter.write_str("tcp")?,
            Some(Flow::UDP) => formatter.write_str("udp")?,
            Some(number) => write!(formatter, "protocol {number}")?,
        }
        if self.ports.is_empty() {
            return Ok(());
        }
        write!(formatter, " {}", self.ports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::flow::Ports;
    use std::net::IpAddr;

    fn flow(protocol: u8, ports: Option<(u16, u16)>) -> Flow {
        Flow {
            source: IpAddr::from([10, 9, 0, 1]),
            destination: IpAddr::from([10, 9, 0, 2]),
            protocol,
            ports: ports.map(|(source, destination)| Ports { source, destination }),
        }
    }

    fn selector(protocol: Option<u8>, port: Option<u16>) -> Selector {
        let ports = PortRanges::new(port.map(|port| port..=port + 9)).unwrap();
        Selector { protocol, ports }
    }

    #[test]
    fn both_directions_of_a_flow_match_the_same_rule() {
        let sip = selector(Some(Flow::UDP), Some(5060));
        assert!(sip.matches(&flow(Flow::UDP, Some((40000, 5069)))));
        assert!(sip.matches(&flow(Flow::UDP, Some((5069, 40000)))));
        assert!(!sip.matches(&flow(Flow::UDP, Some((5059, 5070)))), "neither port");
        assert!(!sip.matches(&flow(Flow::TCP, Some((40000, 5060)))), "another protocol");
        assert!(!sip.matches(&flow(Flow::UDP, None)), "a piece");
        assert_eq!(sip.to_string(), "udp 5060-5069");
    }

    #[test]
    fn omitted_criteria_match_anything() {
        let piece = flow(Flow::UDP, None);
        assert!(selector(Some(Flow::UDP), None).matches(&piece));
        assert!(selector(None, None).matches(&flow(1, None)));
        assert!(selector(None, Some(53)).matches(&flow(Flow::TCP, Some((53, 1)))));
        assert!(!selector(None, Some(53)).matches(&piece));
        let words = [(None, None), (None, Some(53)), (Some(6), None), (Some(47), None)];
        let words = words.map(|(protocol, port)| selector(protocol, port).to_string());
        assert_eq!(words, ["anything", "any protocol 53-62", "tcp", "protocol 47"]);
    }
}
