//! What packets of a flow need: calls, games and key strokes other things than downloads.
//!
//! A flow is of a class by its packets' DSCP, by its ports, or by how it behaves; [`ClassConfig`] overrides that. The class
//! says how late a packet is still worth something, and how losses are repaired.

mod flows;

use std::time::Duration;

pub use flows::FlowStats;
pub(crate) use flows::Flows;

use crate::prefix::Prefix;
use crate::selector::Selector;
use crate::wire::flow::Flow;

/// A packet of a call is worth nothing after this time.
const REALTIME: Duration = Duration::from_millis(60);

/// DSCP values by class, one bit each (RFC 4594 section 2.3, RFC 5865, RFC 8622): EF, VA, AF4x and CS4 carry calls, games and
/// conferences; CS1, LE and AF1x what can wait.
const REALTIME_DSCP: u64 = bits(&[46, 44, 32, 34, 36, 38]);
const BULK_DSCP: u64 = bits(&[8, 1, 10, 12, 14]);

/// UDP ports of calls and conferences: STUN and TURN, which WebRTC goes by, and RTP (IANA).
const REALTIME_PORTS: [(u16, u16); 3] = [(3478, 3481), (5004, 5005), (19_302, 19_309)];

/// Ports behind which people type, or wait: SSH, Telnet, names, time, SIP, remote desktops.
const INTERACTIVE_PORTS: [(u16, u16); 7] =
    [(22, 23), (53, 53), (123, 123), (853, 853), (3389, 3389), (5060, 5061), (5900, 5910)];

const fn bits(values: &[u8]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < values.len() {
        bits |= 1 << values[at];
        at += 1;
    }
    bits
}

/// How losses of a class are repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairMode {
    /// They are sent again where that arrives in time, and take two paths at once where it does not and packets are lost.
    #[default]
    Auto,
    /// They are not.
    None,
    /// They are sent again.
    Retransmit,
    /// Every packet takes two paths at once, without a limit of bytes.
    Duplicate,
    /// Parity covers them where packets are lost, and they take two paths at once where they are too few for that.
    Parity,
}

/// A class that the operator describes. A packet belongs to the first that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// Its name.
    pub name: String,
    /// Protocol and ports.
    pub selector: Selector,
    /// DSCP values, one bit each; 0 is any.
    pub dscp: u64,
    /// Prefixes in one of which the source or the destination is; empty is any.
    pub networks: Vec<Prefix>,
    /// How late a packet is still worth something; `None`: as late as the tunnel repairs at all.
    pub deadline: Option<Duration>,
    /// How losses are repaired.
    pub repair: RepairMode,
}

impl ClassConfig {
    fn fits(&self, flow: &Flow, tos: u8) -> bool {
        let within =
            |network: &Prefix| network.contains(flow.source) || network.contains(flow.destination);
        (self.dscp == 0 || self.dscp >> (tos >> 2) & 1 != 0)
            && self.selector.matches(flow)
            && (self.networks.is_empty() || self.networks.iter().any(within))
    }
}

/// A class that is there without configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Calls, games, conferences: a packet that is late is lost.
    Realtime,
    /// What sends little, so that somebody waits for each packet.
    Interactive,
    /// The rest.
    Bulk,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Realtime, Self::Interactive, Self::Bulk];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Realtime => "realtime",
            Self::Interactive => "interactive",
            Self::Bulk => "bulk",
        }
    }
}

/// The class of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The nth that is configured.
    Configured(u8),
    BuiltIn(BuiltIn),
}

/// Why a flow is of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is configured so.
    Configured,
    /// Because of the DSCP of its packets.
    Dscp(u8),
    /// Because of one of its ports.
    Port(u16),
    /// It sends small packets of UDP at a steady pace.
    Steady,
    /// It sends little.
    Little,
    /// It sends much.
    Much,
}

/// What is wanted for the packets of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) deadline: Option<Duration>,
    /// Whether nothing is repaired that would come after the deadline, because the operator wants it so.
    pub(crate) is_strict: bool,
    pub(crate) repair: RepairMode,
}

const USUAL: Wanted = Wanted { deadline: None, is_strict: false, repair: RepairMode::Auto };

/// The classes of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes(Vec<ClassConfig>);

impl Classes {
    pub(crate) fn new(configured: &[ClassConfig]) -> Self {
        Self(configured.to_vec())
    }

    /// What all of them want.
    pub(crate) fn all_wanted(&self) -> impl Iterator<Item = Wanted> {
        let configured = (0..self.0.len()).map(|at| Class::Configured(at as u8));
        let all = configured.chain(BuiltIn::ALL.map(Class::BuiltIn));
        all.map(|class| self.wanted(class))
    }

    /// The class of a packet by what stands in it; `None` if only the behaviour of its flow can tell.
    pub(crate) fn of(&self, flow: &Flow, tos: u8) -> Option<(Class, Why)> {
        if let Some(at) = self.0.iter().position(|class| class.fits(flow, tos)) {
            return Some((Class::Configured(at as u8), Why::Configured));
        }
        let dscp = tos >> 2;
        for (values, class) in [(REALTIME_DSCP, BuiltIn::Realtime), (BULK_DSCP, BuiltIn::Bulk)] {
            if values >> dscp & 1 != 0 {
                return Some((Class::BuiltIn(class), Why::Dscp(dscp)));
            }
        }
        let ports = flow.ports?;
        let of = |list: &[(u16, u16)], class: BuiltIn| {
            let mut ports = [ports.destination, ports.source].into_iter();
            let port = ports
                .find(|port| list.iter().any(|(first, last)| (first..=last).contains(&port)))?;
            Some((Class::BuiltIn(class), Why::Port(port)))
        };
        let calls = of(&REALTIME_PORTS, BuiltIn::Realtime).filter(|_| flow.protocol == Flow::UDP);
        calls.or_else(|| of(&INTERACTIVE_PORTS, BuiltIn::Interactive))
    }

    /// What is wanted for it.
    pub(crate) fn wanted(&self, class: Class) -> Wanted {
        match class {
            Class::Configured(at) => match self.0.get(usize::from(at)) {
                Some(class) => {
                    Wanted { deadline: class.deadline, is_strict: true, repair: class.repair }
                }
                None => USUAL,
            },
            Class::BuiltIn(BuiltIn::Realtime) => Wanted { deadline: Some(REALTIME), ..USUAL },
            Class::BuiltIn(BuiltIn::Interactive | BuiltIn::Bulk) => USUAL,
        }
    }

    /// Its name.
    pub(crate) fn name(&self, class: Class) -> &str {
        match class {
            Class::Configured(at) => {
                self.0.get(usize::from(at)).map_or("", |class| class.name.as_str())
            }
            Class::BuiltIn(class) => class.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::ports::PortRanges;
    use crate::wire::flow::Ports;

    fn flow(protocol: u8, source: u16, destination: u16) -> Flow {
        Flow {
            source: IpAddr::from([10, 9, 0, 1]),
            destination: IpAddr::from([10, 20, 0, 2]),
            protocol,
            ports: Some(Ports { source, destination }),
        }
    }

    #[test]
    fn dscp_goes_before_ports_and_says_nothing_by_default() {
        let classes = Classes::default();
        let of = |flow: &Flow, dscp: u8| classes.of(flow, dscp << 2 | 1);
        let (web, ssh) = (flow(Flow::TCP, 40_000, 443), flow(Flow::TCP, 40_000, 22));
        assert_eq!(of(&web, 0), None);
        let realtime = |why| Some((Class::BuiltIn(BuiltIn::Realtime), why));
        assert_eq!(of(&web, 46), realtime(Why::Dscp(46)));
        let bulk = Some((Class::BuiltIn(BuiltIn::Bulk), Why::Dscp(8)));
        assert_eq!(of(&ssh, 8), bulk);
        let interactive = Some((Class::BuiltIn(BuiltIn::Interactive), Why::Port(22)));
        assert_eq!(of(&ssh, 0), interactive);
        assert_eq!(of(&flow(Flow::UDP, 3480, 40_000), 0), realtime(Why::Port(3480)));
        assert_eq!(of(&flow(Flow::TCP, 3480, 40_000), 0), None, "no call goes by TCP there");
    }

    #[test]
    fn what_is_configured_goes_before_all() {
        let game = ClassConfig {
            name: "game".into(),
            selector: Selector {
                protocol: Some(Flow::UDP),
                ports: PortRanges::new([27_015..=27_030]).unwrap(),
            },
            dscp: 0,
            networks: vec![Prefix::new(IpAddr::from([10, 20, 0, 0]), 16).unwrap()],
            deadline: Some(Duration::from_millis(40)),
            repair: RepairMode::Duplicate,
        };
        let marked = ClassConfig {
            name: "marked".into(),
            selector: Selector::default(),
            dscp: bits(&[46, 8]),
            networks: Vec::new(),
            deadline: None,
            repair: RepairMode::None,
        };
        let classes = Classes::new(&[game, marked]);
        let of = |flow: &Flow, tos: u8| classes.of(flow, tos).map(|(class, _)| class);
        let at = |at| Some(Class::Configured(at));
        let mut play = flow(Flow::UDP, 40_000, 27_020);
        assert_eq!(of(&play, 46 << 2), at(0));
        play.destination = IpAddr::from([10, 21, 0, 2]);
        assert_eq!(of(&play, 46 << 2), at(1), "another network");
        assert_eq!(of(&play, 0), None);
        assert_eq!(classes.name(Class::Configured(1)), "marked");
        assert_eq!(classes.wanted(Class::Configured(0)).deadline, Some(Duration::from_millis(40)));
        let repairs: Vec<_> = classes.all_wanted().map(|wanted| wanted.repair).collect();
        assert_eq!(repairs[..2], [RepairMode::Duplicate, RepairMode::None]);
        assert_eq!(repairs.len(), 2 + BuiltIn::ALL.len());
    }
}
