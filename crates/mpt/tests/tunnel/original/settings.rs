//! The original's configuration files, in its own format.
//!
//! It counts time in whole seconds. Here its clock goes ten times as fast, so a [`SECOND`] takes a
//! tenth of one; only for answers to commands it waits as long as ever.

use std::net::IpAddr;
use std::time::Duration;

use super::frames::Auth;

/// The original's second.
pub(super) const SECOND: Duration = Duration::from_millis(100);

/// Its configuration files.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Own tunnel address and the peer's.
    pub(super) tunnel: [IpAddr; 2],
    /// `local_port`, `remote_port`.
    pub(super) ports: [u16; 2],
    /// `cmdport_local`, `remote_cmd_port`.
    pub(super) command_ports: [u16; 2],
    /// `reorder_window`; 0 = neither are numbers sent nor packets put in order.
    pub(super) window: u32,
    /// `max_buffdelay_msec`.
    pub(super) delay: Duration,
    pub(super) auth: Auth,
    pub(super) paths: Vec<PathSettings>,
}

#[derive(Clone, Debug)]
pub(super) struct PathSettings {
    /// `interface_name`.
    pub(super) interface: String,
    /// `private_ipaddr`, which is `public_ipaddr` too.
    pub(super) local: IpAddr,
    /// `remote_ipaddr`.
    pub(super) remote: IpAddr,
    /// `weight_out`.
    pub(super) weight: u64,
    /// `keepalive_time`, in its seconds.
    pub(super) keepalive: u32,
    /// `dead_time`, in its seconds.
    pub(super) dead: u64,
}
