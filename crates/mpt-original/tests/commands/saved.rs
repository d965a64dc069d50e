//! A description as the original writes it, and what it means.

use std::net::IpAddr;
use std::time::Duration;

use mpt_original::{AuthKind, DescribedNetwork, DescribedPath, Description};
use mpt_proto::Prefix;

/// As `mpt save` of the original writes it: a line of marks, then every key, padded to 16 characters.
pub(crate) const SAVED: &str = "\
;;;;;;;### Multipath connection configuration ###;;;;;;;
[connection]
name             = office uplink
permission       = 3
ip_ver           = 4
ip_local         = 10.0.0.3
local_port       = 23456
local_cmd_port   = 65020
ip_remote        = 10.0.0.2
remote_port      = 23457
remote_cmd_port  = 65021
path_count       = 2
network_count    = 1
status           = 0
reorder_window   = 900
max_buffdelay_msec = 300
auth_type        = 2

[path_0]
interface_name   = eth1
ip_ver           = 4
public_ipaddr    = 192.0.2.1
private_ipaddr   = 192.168.1.2
gw_ipaddr        = 192.168.1.1
remote_ipaddr    = 198.51.100.1
keepalive_time   = 5
dead_time        = 11
weight_in        = 1
weight_out       = 2
window_size      = 1
status           = 131

[path_1]
interface_name   = wlan0
ip_ver           = 6
public_ipaddr    = 2001:db8::1
private_ipaddr   = ::
gw_ipaddr        = ::
remote_ipaddr    = 2001:db8::2
keepalive_time   = 5
weight_in        = 3
weight_out       = 4
status           = 0

[net_0]
ip_ver           = 4
src_addr         = 192.168.3.0/24
dst_addr         = 0.0.0.0/0
";

/// What [`SAVED`] says.
pub(crate) fn described() -> Description {
    let prefix = |text: &str, bits| Prefix::new(address(text), bits).expect("a prefix");
    let first = DescribedPath {
        interface: "eth1".to_owned(),
        public: address("192.0.2.1"),
        private: address("192.168.1.2"),
        gateway: address("192.168.1.1"),
        remote: address("198.51.100.1"),
        keepalive: Duration::from_secs(5),
        dead_time: Duration::from_secs(11),
        weight_out: 2,
        weight_in: 1,
        down: true,
    };
    let second = DescribedPath {
        interface: "wlan0".to_owned(),
        public: address("2001:db8::1"),
        private: address("::"),
        gateway: address("::"),
        remote: address("2001:db8::2"),
        dead_time: Duration::from_secs(15),
        weight_out: 4,
        weight_in: 3,
        down: false,
        ..first
    };
    Description {
        name: "office uplink".to_owned(),
        local: address("10.0.0.3"),
        local_port: 23456,
        local_command_port: 65020,
        remote: address("10.0.0.2"),
        remote_port: 23457,
        remote_command_port: 65021,
        reorder_window: 900,
        max_delay: Duration::from_millis(300),
        auth: AuthKind::Sha256,
        paths: vec![DescribedPath { interface: "eth1".to_owned(), ..first.clone() }, second],
        networks: vec![DescribedNetwork {
            source: prefix("192.168.3.0", 24),
            destination: prefix("0.0.0.0", 0),
        }],
    }
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}
