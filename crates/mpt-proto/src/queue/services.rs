//! Which services send much in one connection. Only there something is gained by the early delay of connections, see
//! `tx/early.rs`; where somebody waits for a page it makes each round trip longer for nothing.
//!
//! When a connection begins nobody knows what it will transfer, and then it is too late: BBR believes in its first
//! round trip for ten seconds. So what the ones before it have transferred decides. A port has some *credit*, which each connection that
//! sends little takes a bit of and each one that sends much adds to. Ports behind which people wait for answers have none to begin with.
//! A host that has sent much by one of its ports has a credit of its own for that.
//!
//! Where a sender would otherwise get less than by the best path alone all connections take it, as by that path they would take as long.

use std::net::IpAddr;

use crate::hash::mix;
use crate::wire::flow::{Flow, Ports};

/// The most credit, and what a port has at first.
const MOST: u8 = 8;

/// A host's connection that sends much is worth so many that send little.
const MUCH: u8 = 4;

/// Ports of connections that most often send little (IANA): SSH, Telnet, mail, names, web, directories, data bases, remote desktops, calls.
/// In order.
const LITTLE: [u16; 32] = [
    22, 23, 25, 53, 80, 110, 143, 389, 443, 465, 587, 636, 853, 993, 995, 1433, 1883, 3128, 3306,
    3389, 5060, 5061, 5222, 5432, 5900, 5901, 6379, 8000, 8080, 8443, 8883, 9418,
];

/// Others share so many credits, and hosts so many.
const PORTS: usize = 256;
const HOSTS: usize = 256;

/// A port, and that port of a host: where their credits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    port: u16,
    host: u16,
}

impl Service {
    /// What a connection is for: the end with the lower port provides it.
    pub(crate) fn of(flow: &Flow) -> Option<Self> {
        let Ports { source, destination } = flow.ports?;
        let (port, host) = if source < destination {
            (source, flow.source)
        } else {
            (destination, flow.destination)
        };
        let port_at = match LITTLE.binary_search(&port) {
            Ok(at) => at,
            Err(_) => LITTLE.len() + mix(port.into()) as usize % PORTS,
        };
        let host = match host {
            IpAddr::V4(host) => mix(u64::from(host.to_bits()) << 16 | u64::from(port)),
            IpAddr::V6(host) => {
                let bits = host.to_bits();
                mix(mix((bits >> 64) as u64 ^ u64::from(port)) ^ bits as u64)
            }
        };
        let host_at = LITTLE.len() + PORTS + host as usize % HOSTS;
        Some(Self { port: port_at as u16, host: host_at as u16 })
    }
}

/// The credits.
#[derive(Debug, Default)]
pub(crate) struct Services {
    credits: Vec<u8>,
}

impl Services {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.credits.capacity()
    }

    /// Whether a connection that begins is likely to send much.
    pub(crate) fn sends_much(&mut self, Service { port, host }: Service) -> bool {
        if self.credits.is_empty() {
            self.credits = vec![0; LITTLE.len() + PORTS + HOSTS];
            self.credits[LITTLE.len()..][..PORTS].fill(MOST);
        }
        [port, host].into_iter().any(|at| self.credits[usize::from(at)] > 0)
    }

    /// A connection has sent much, or has ended without that.
    pub(crate) fn on_judged(&mut self, Service { port, host }: Service, is_much: bool) {
        for (at, much) in [(port, 1), (host, MUCH)] {
            if let Some(credit) = self.credits.get_mut(usize::from(at)) {
                let more = (*credit + much).min(MOST);
                *credit = if is_much { more } else { credit.saturating_sub(1) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(host: u8, port: u16) -> Service {
        let ports = Some(Ports { source: port, destination: 40_000 + u16::from(host) });
        let [source, destination] = [[10, 0, 0, host], [10, 9, 0, 1]].map(IpAddr::from);
        Service::of(&Flow { source, destination, protocol: Flow::TCP, ports }).unwrap()
    }

    #[test]
    fn both_directions_are_of_the_same_service_and_others_are_of_another() {
        let ports = Some(Ports { source: 40_007, destination: 5201 });
        let [destination, source] = [[10, 0, 0, 7], [10, 9, 0, 1]].map(IpAddr::from);
        let other = Service::of(&Flow { source, destination, protocol: Flow::TCP, ports });
        assert_eq!(other, Some(service(7, 5201)));
        assert_ne!(service(7, 5201).host, service(8, 5201).host);
        assert_ne!(service(7, 5201).host, service(7, 5202).host);
        assert_eq!(service(7, 5201).port, service(8, 5201).port);
        assert!(LITTLE.is_sorted());
    }

    #[test]
    fn a_port_loses_its_credit_by_connections_that_send_little() {
        let mut services = Services::default();
        for host in 1..=MOST {
            assert!(services.sends_much(service(host, 5201)));
            services.on_judged(service(host, 5201), false);
        }
        assert!(!services.sends_much(service(100, 5201)));
        assert!(services.sends_much(service(100, 5202)), "another port");
        services.on_judged(service(3, 5201), true);
        assert!(services.sends_much(service(100, 5201)));
    }

    #[test]
    fn every_other_connection_that_sends_much_keeps_it() {
        let mut services = Services::default();
        for host in 0..100 {
            assert!(services.sends_much(service(host, 5201)));
            services.on_judged(service(host, 5201), host % 2 > 0);
        }
    }

    #[test]
    fn a_host_behind_a_port_of_the_web_has_credit_when_it_has_sent_much() {
        let mut services = Services::default();
        assert!(!services.sends_much(service(1, 443)));
        services.on_judged(service(1, 443), true);
        services.on_judged(service(2, 443), false);
        assert!(services.sends_much(service(1, 443)));
        assert!(!services.sends_much(service(2, 443)));
        (0..MUCH).for_each(|_| services.on_judged(service(1, 443), false));
        assert!(!services.sends_much(service(1, 443)));
    }
}
