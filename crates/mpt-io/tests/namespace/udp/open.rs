//! Opening real sockets: what is granted, and what is refused.

use mpt_io::interface;
use mpt_io::netlink::Netlink;
use mpt_io::udp::{Buffers, OpenError, Options, Socket, route_mtu};

use super::{LOOPBACKS, addr, ip, open};
use crate::world::{in_fresh_namespace, is_real_root};
use crate::{Outcome, Test};

pub(crate) const TESTS: &[Test] = &[
    ("udp::open::buffers_are_reported_as_granted", buffers),
    ("udp::open::a_device_and_a_mark_are_set", device_and_mark),
    ("udp::open::the_route_mtu_is_that_of_device_or_route", mtu_of_routes),
    ("udp::open::errors_name_cause_and_remedy", open_errors),
];

fn buffers() -> Outcome {
    let options = Options::new(addr(LOOPBACKS[0]));
    let granted = |buffer_bytes| {
        let socket = Socket::open(&Options { buffer_bytes, ..options.clone() }).unwrap();
        socket.buffers()
    };
    let default = granted(0);
    assert!(default.receive > 0 && default.send > 0 && default.wanted == 0);
    assert_eq!(granted(65_536), Buffers { receive: 65_536, send: 65_536, wanted: 65_536 });

    let wanted = 512 << 20;
    let huge = granted(wanted);
    assert_eq!(huge.wanted, wanted);
    if is_real_root() {
        assert_eq!((huge.receive, huge.send), (wanted, wanted), "past the system's limit");
    } else {
        assert!(huge.receive < wanted && huge.send < wanted, "{huge:?}");
        assert!(huge.receive >= 65_536 && huge.send >= 65_536, "{huge:?}");
    }
    Ok(())
}

fn device_and_mark() -> Outcome {
    let options = Options::new(addr("0.0.0.0:0"));
    let device = Some("lo".to_owned());
    let socket = Socket::open(&Options { device, mark: Some(77), ..options }).unwrap();
    let raw = socket2::SockRef::from(&socket);
    assert_eq!(raw.device().unwrap().as_deref(), Some(&b"lo"[..]));
    assert_eq!(raw.mark().unwrap(), 77);
    assert!(socket2::SockRef::from(&open("[::]:0")).only_v6().unwrap());
    Ok(())
}

fn mtu_of_routes() -> Outcome {
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth("near", "far", None).unwrap();
    let near = interface::index("near").unwrap();
    netlink.set_mtu(near, 1380).unwrap();
    netlink.add_address(near, ip("192.0.2.1"), 24).unwrap();
    netlink.add_address(near, ip("2001:db8::1"), 64).unwrap();
    netlink.set_up(near, true).unwrap();
    netlink.set_up(interface::index("far").unwrap(), true).unwrap();
    for (local, remote) in [("192.0.2.1", "192.0.2.2:1"), ("2001:db8::1", "[2001:db8::2]:1")] {
        assert_eq!(route_mtu(None, None, None, addr(remote)).unwrap(), 1380);
        assert_eq!(route_mtu(Some(ip(local)), None, None, addr(remote)).unwrap(), 1380);
        assert_eq!(route_mtu(None, Some("near"), None, addr(remote)).unwrap(), 1380);
    }
    assert_eq!(route_mtu(None, None, None, addr("127.0.0.1:1")).unwrap(), 65_535);
    let error = |device, remote| {
        route_mtu(None, device, None, addr(remote)).unwrap_err().raw_os_error().unwrap()
    };
    assert_eq!(error(None, "198.51.100.1:1"), libc::ENETUNREACH);
    assert_eq!(error(Some("absent"), "192.0.2.2:1"), libc::ENODEV);
    assert!(route_mtu(None, Some("a/b"), None, addr("192.0.2.2:1")).is_err());
    Ok(())
}

fn open_errors() -> Outcome {
    let error = |options: &Options| Socket::open(options).unwrap_err();
    for any in LOOPBACKS {
        let taken = open(any);
        let options = Options::new(taken.local_addr());
        let text = error(&options).to_string();
        assert!(matches!(error(&options), OpenError::AddressInUse { .. }));
        assert!(
            text.contains(&taken.local_addr().to_string()) && text.contains("choose"),
            "{text}"
        );

        let options = Options { device: Some("absent".into()), ..Options::new(addr(any)) };
        assert!(matches!(error(&options), OpenError::NoSuchDevice { .. }));
        assert!(error(&options).to_string().contains("'absent'"));
        let options = Options { device: Some("a b".into()), ..Options::new(addr(any)) };
        assert!(matches!(error(&options), OpenError::Name(_)));
    }
    for (foreign, any, unreachable, other) in [
        ("192.0.2.77:0", "0.0.0.0:0", "198.51.100.1:7", "[::1]:7"),
        ("[2001:db8::77]:0", "[::]:0", "[2001:db8:9::1]:7", "127.0.0.1:7"),
    ] {
        let options = Options::new(addr(foreign));
        assert!(matches!(error(&options), OpenError::AddressNotHere { .. }));
        let options = Options { connect: Some(addr(unreachable)), ..Options::new(addr(any)) };
        assert!(matches!(error(&options), OpenError::Unreachable { .. }), "{:?}", error(&options));
        let options = Options { connect: Some(addr(other)), ..Options::new(addr(any)) };
        assert!(matches!(error(&options), OpenError::MixedFamilies { .. }));
    }
    // A socket belongs to the namespace that it was opened in, so this port is free in another.
    let taken = open(LOOPBACKS[0]).local_addr();
    let _here = Socket::open(&Options::new(taken)).unwrap();
    let there = in_fresh_namespace(move || Socket::open(&Options::new(taken)).map(drop));
    there.join().unwrap().unwrap();
    Ok(())
}
