//! What the paths to a peer carry: as much is sent for a few seconds as the tunnel takes, and the peer's feedback says
//! what of it arrives by which path.
//!
//! What a peer can send is found out at the peer, which alone can make the load.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::reach;

/// How long is sent.
const SPAN: Duration = Duration::from_secs(3);

/// How many flows. One flow could not use more than one path where flows stay on their path.
const FLOWS: usize = 16;

/// Sends packets of `mtu` bytes, IP header included, to the discard port of a peer.
pub(super) fn load(peer: IpAddr, mtu: usize) {
    let sockets: Vec<_> = (0..FLOWS).filter_map(|_| reach::socket(peer).ok()).collect();
    let message = vec![0; reach::payload(peer, mtu)];
    let end = Instant::now() + SPAN;
    let timeout = Some(Duration::from_millis(100));
    let usable = sockets.iter().filter(|socket| socket.set_write_timeout(timeout).is_ok());
    let usable: Vec<_> = usable.collect();
    while Instant::now() < end && !usable.is_empty() {
        for socket in &usable {
            // That nobody listens there is told by the next call; what does not fit now is sent by the next one.
            let _ = socket.send(&message);
        }
    }
}
