//! What a path was found to carry although the kernel believes in more.
//!
//! The core tells when a path swallows long datagrams ([`Event::Narrow`](mpt_proto::Event::Narrow)).
//! That counts until the peer tells that something longer arrived, which probes find out; or for as long
//! as the kernel believes a router that does tell, and then the kernel's idea is tried again.

use std::time::Duration;

use mpt_proto::Instant;

/// PMTU_RAISE_TIMER of RFC 8899, section 5.1.1.
const RAISE_AFTER: Duration = Duration::from_secs(600);

/// The limit of one path, if one was found.
#[derive(Debug, Default)]
pub(super) struct Narrowed(Option<Limit>);

#[derive(Debug)]
struct Limit {
    /// The largest inner packet.
    mtu: u32,
    until: Instant,
}

impl Narrowed {
    /// It was found that nothing larger than `mtu` passes. Returns whether this was unknown.
    pub(super) fn on_found(&mut self, now: Instant, mtu: u32) -> bool {
        let updates = self.0.as_ref().is_none_or(|limit| mtu < limit.mtu);
        let mtu = self.0.as_ref().map_or(mtu, |limit| limit.mtu.min(mtu));
        self.0 = Some(Limit { mtu, until: now + RAISE_AFTER });
        updates
    }

    /// Whether there is a limit, or was one that nobody has looked at since it ended.
    pub(super) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// The largest inner packet, given what the kernel believes, and what the peer tells that lately
    /// arrived.
    pub(super) fn mtu(&mut self, now: Instant, kernel: u32, carried: Option<u32>) -> u32 {
        if let Some(limit) = &mut self.0 {
            limit.mtu = limit.mtu.max(carried.unwrap_or(0));
            if limit.until <= now || kernel <= carried.unwrap_or(0) {
                self.0 = None;
            }
        }
        self.0.as_ref().map_or(kernel, |limit| limit.mtu.min(kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detected_mtu_applies_for_ten_minutes() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut narrowed = Narrowed::default();
        assert_eq!((narrowed.is_set(), narrowed.mtu(at(0), 1464, None)), (false, 1464));
        assert!(narrowed.on_found(at(0), 1400));
        assert_eq!(narrowed.mtu(at(1), 1464, None), 1400);
        assert_eq!(narrowed.mtu(at(1), 1300, None), 1300, "routers tell of another link");
        assert!(narrowed.on_found(at(10), 1280));
        assert!(!narrowed.on_found(at(20), 1400), "it is known to be narrower");
        assert_eq!(narrowed.mtu(at(619), 1464, None), 1280);
        assert_eq!((narrowed.mtu(at(620), 1464, None), narrowed.is_set()), (1464, false));
        assert!(narrowed.on_found(at(700), 1400));
    }

    #[test]
    fn what_arrives_all_the_same_is_believed_at_once() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut narrowed = Narrowed::default();
        assert!(narrowed.on_found(at(0), 52));
        assert_eq!(narrowed.mtu(at(1), 1464, Some(52)), 52);
        // Before the change: for ten minutes.
        assert_eq!(narrowed.mtu(at(3), 1464, Some(1280)), 1280);
        assert_eq!(narrowed.mtu(at(4), 1464, Some(52)), 1280, "longer than what lately arrived");
        assert_eq!((narrowed.mtu(at(5), 1464, Some(1464)), narrowed.is_set()), (1464, false));
    }
}
