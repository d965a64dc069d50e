//! Settings in the core's words.

use std::time::Duration;

use mpt_proto::{
    ClassConfig, ConnectionConfig, EVIDENCE_WINDOW, FramingConfig, Late, PeerKeys, Pins,
    PortRanges, Prefix, ReorderConfig, SchedulerConfig, Selector,
};

use crate::{config, keys};

/// A connection without its paths. `alike` are all connections to its peer, itself included: networks
/// behind that peer are behind each of them.
pub(super) fn core_connection(
    settings: &config::Connection,
    alike: &[&config::Connection],
) -> ConnectionConfig {
    let networks = alike.iter().flat_map(|other| &other.networks);
    let mut networks: Vec<Prefix> = networks.filter_map(core_prefix).collect();
    networks.sort_unstable_by_key(|network| (network.address(), network.bits()));
    networks.dedup();
    let config::Policies { scheduler, framing, key, checksum, sequence, .. } = settings.policies;
    ConnectionConfig {
        peer_kind: settings.peer_kind,
        framing: match framing {
            config::Framing::Auto => FramingConfig::Auto,
            config::Framing::Plain => FramingConfig::Plain,
            config::Framing::Extended => FramingConfig::Extended,
            config::Framing::Sealed => FramingConfig::Sealed,
        },
        peer: settings.peer.clone(),
        networks,
        selector: settings.selector.as_ref().map(selector),
        key,
        checksum,
        sequence,
        scheduler: match scheduler {
            config::Scheduler::Earliest => SchedulerConfig::Earliest,
            config::Scheduler::LowestRtt => SchedulerConfig::LowestRtt,
            config::Scheduler::Redundant => SchedulerConfig::Redundant,
            config::Scheduler::Weighted => SchedulerConfig::Weighted,
            config::Scheduler::Flow => SchedulerConfig::Flow,
        },
        peer_keys: peer_keys(settings),
        thin_acks: settings.policies.thin_acks,
        equalise: settings.policies.equalise,
        compete: settings.policies.compete,
        breaker: settings.policies.breaker,
        repair: settings.policies.repair,
        classes: settings.classes.iter().map(class).collect(),
        reorder: reorder(&settings.policies),
        paths: Vec::new(),
    }
}

/// What packets of a class need.
fn class(settings: &config::Class) -> ClassConfig {
    ClassConfig {
        name: settings.name.clone(),
        selector: settings.selector.as_ref().map(selector).unwrap_or_default(),
        dscp: settings.dscp.iter().fold(0, |bits, dscp| bits | 1 << dscp),
        networks: settings.networks.iter().filter_map(core_prefix).collect(),
        deadline: settings.deadline.map(|millis| Duration::from_millis(millis.into())),
        repair: settings.repair(),
    }
}

/// The keys of the peer. Without them a sealed connection carries nothing.
fn peer_keys(settings: &config::Connection) -> Option<PeerKeys> {
    keys::peer_keys(settings).unwrap_or_else(|error| {
        tracing::error!(connection = settings.name, "nothing can be sealed: {error:#}");
        None
    })
}

/// Which packets a connection is for.
fn selector(settings: &config::Match) -> Selector {
    Selector { protocol: settings.protocol, ports: ports(&settings.ports) }
}

/// Which ports a path is for.
pub(super) fn pins(settings: &config::Pins) -> Pins {
    Pins {
        tcp_dst: ports(&settings.tcp_dst),
        tcp_src: ports(&settings.tcp_src),
        udp_dst: ports(&settings.udp_dst),
        udp_src: ports(&settings.udp_src),
    }
}

/// Ports; how many ranges there may be has been checked.
fn ports(ranges: &[std::ops::RangeInclusive<u16>]) -> PortRanges {
    PortRanges::new(ranges.iter().cloned()).unwrap_or_default()
}

/// Where a session says what belongs to what flow, packets are ordered by that unless the operator asks for a window.
fn reorder(policies: &config::Policies) -> ReorderConfig {
    let settings = &policies.reorder;
    let evidence = policies.framing != config::Framing::Plain && !settings.configured;
    ReorderConfig {
        evidence,
        window: if evidence && settings.window > 0 { EVIDENCE_WINDOW } else { settings.window },
        max_delay: settings.max_delay,
        early_release: settings.early_release,
        late: match settings.late {
            config::Late::Deliver => Late::Deliver,
            config::Late::Drop => Late::Drop,
        },
    }
}

/// A prefix in the core's words; lengths have been checked.
pub(super) fn core_prefix(prefix: &config::Prefix) -> Option<Prefix> {
    Prefix::new(prefix.addr, prefix.len)
}
