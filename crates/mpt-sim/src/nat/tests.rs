//! Mapping, filtering and forgetting.

use super::*;

const NOW: Instant = Instant::ZERO;

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn nat() -> Nat {
    Nat::new("198.51.100.1".parse().unwrap())
}

fn hosts() -> (SocketAddr, SocketAddr) {
    (socket("10.0.0.2:4754"), socket("203.0.113.5:4754"))
}

#[test]
fn an_answer_finds_its_way_back_inside() {
    let (inside, remote) = hosts();
    let mut nat = nat();
    let outside = nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap();
    assert_eq!(outside.ip(), nat.outside());
    assert_ne!(outside.port(), inside.port());
    assert_eq!(nat.inbound(NOW, Protocol::Udp, outside, remote), Ok(inside));
    // One mapping for all destinations.
    let other = socket("203.0.113.9:53");
    assert_eq!(nat.outbound(NOW, Protocol::Udp, inside, other), Ok(outside));
    // Ports of the two protocols are apart.
    assert_eq!(nat.inbound(NOW, Protocol::Tcp, outside, remote), Err(NatDrop::Unmapped));
}

#[test]
fn a_preserved_port_belongs_to_its_first_user_until_the_next_rebinding() {
    let (inside, remote) = hosts();
    let mut nat = nat().with_preserved_ports();
    let mut outside = |inside| nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap().port();
    assert_eq!(outside(inside), inside.port());
    assert_ne!(outside(socket("10.0.0.3:4754")), inside.port());
    assert_eq!(outside(socket("10.0.0.3:5000")), 5000);
    assert_ne!(outside(socket("10.0.0.4:80")), 80, "reserved ports are not given out");
    nat.rebind();
    assert_ne!(nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap().port(), inside.port());
}

#[test]
fn two_hosts_inside_get_two_ports() {
    let (inside, remote) = hosts();
    let mut nat = nat();
    let second = socket("10.0.0.3:4754");
    let a = nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap();
    let b = nat.outbound(NOW, Protocol::Udp, second, remote).unwrap();
    assert_ne!(a, b);
    assert_eq!(nat.inbound(NOW, Protocol::Udp, a, remote), Ok(inside));
    assert_eq!(nat.inbound(NOW, Protocol::Udp, b, remote), Ok(second));
}

#[test]
fn the_filter_determines_which_sources_are_accepted() {
    let (inside, remote) = hosts();
    let (same_host, stranger) = (socket("203.0.113.5:1"), socket("203.0.113.6:4754"));
    for (filtering, host_passes, stranger_passes) in [
        (Filtering::AddressAndPort, false, false),
        (Filtering::Address, true, false),
        (Filtering::EndpointIndependent, true, true),
    ] {
        let mut nat = nat().with_filtering(filtering);
        let outside = nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap();
        let passes =
            |nat: &mut Nat, from| nat.inbound(NOW, Protocol::Udp, outside, from) == Ok(inside);
        assert!(passes(&mut nat, remote));
        assert_eq!(passes(&mut nat, same_host), host_passes, "{filtering:?}");
        assert_eq!(passes(&mut nat, stranger), stranger_passes, "{filtering:?}");
    }
}

#[test]
fn rebinding_closes_the_old_port_and_opens_another() {
    let (inside, remote) = hosts();
    let mut nat = nat();
    let before = nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap();
    nat.rebind();
    assert!(nat.ports.is_empty() && nat.mappings.is_empty());
    assert_eq!(nat.inbound(NOW, Protocol::Udp, before, remote), Err(NatDrop::Unmapped));
    let after = nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap();
    assert_ne!(before, after);
    assert_eq!(nat.inbound(NOW, Protocol::Udp, after, remote), Ok(inside));
    nat.rebind_to("198.51.100.77".parse().unwrap());
    assert_eq!(nat.inbound(NOW, Protocol::Udp, after, remote), Err(NatDrop::Unmapped));
    let moved = nat.outbound(NOW, Protocol::Udp, inside, remote).unwrap();
    assert_eq!(moved.ip(), "198.51.100.77".parse::<IpAddr>().unwrap());
}

#[test]
fn a_mapping_lives_as_long_as_it_is_used_from_inside() {
    let (inside, remote) = hosts();
    let at = |seconds| NOW + Duration::from_secs(seconds);
    let mut nat = nat().with_timeout(Duration::from_secs(30));
    let outside = nat.outbound(at(0), Protocol::Udp, inside, remote).unwrap();
    assert_eq!(nat.outbound(at(29), Protocol::Udp, inside, remote), Ok(outside));
    // What comes in does not refresh it.
    assert_eq!(nat.inbound(at(58), Protocol::Udp, outside, remote), Ok(inside));
    assert_eq!(nat.inbound(at(59), Protocol::Udp, outside, remote), Err(NatDrop::Unmapped));
    assert_ne!(nat.outbound(at(60), Protocol::Udp, inside, remote), Ok(outside));
    assert_eq!(nat.mappings.len(), 1, "the expired mapping is gone");
}

#[test]
fn ports_run_out_and_come_back() {
    let (_, remote) = hosts();
    let mut nat = nat();
    let inside = |i: u32| SocketAddr::new(IpAddr::V4((0x0a00_0000 + i).into()), 1);
    let ports = u32::from(u16::MAX - FIRST_PORT) + 1;
    for i in 0..ports {
        assert!(nat.outbound(NOW, Protocol::Udp, inside(i), remote).is_ok());
    }
    let one_more = nat.outbound(NOW, Protocol::Udp, inside(ports), remote);
    assert_eq!(one_more, Err(NatDrop::Exhausted));
    let later = NOW + Nat::DEFAULT_TIMEOUT;
    assert!(nat.outbound(later, Protocol::Udp, inside(ports), remote).is_ok());
    // The host whose expired port was taken over gets another.
    let outside = nat.outbound(later, Protocol::Udp, inside(0), remote).unwrap();
    assert_eq!(nat.inbound(later, Protocol::Udp, outside, remote), Ok(inside(0)));
}

#[test]
fn a_nat_serves_one_ip_version() {
    let (_, remote) = hosts();
    let inside = socket("[fd00::2]:4754");
    let result = nat().outbound(NOW, Protocol::Udp, inside, remote);
    assert_eq!(result, Err(NatDrop::Version));
}
