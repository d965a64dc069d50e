//! What is sent beyond inner packets.

use super::transmit::TransmitKind;
use crate::stats::Traffic;

/// The bytes of IP packets that a connection has sent on its paths beyond those of the inner packets, since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Headers of inner packets that were sent for the first time: IP, UDP and those of the framing.
    pub headers: u64,
    /// Packets that were sent on another path too, or before: repairs, duplicates and trains.
    pub copies: u64,
    /// Messages of the tunnel itself.
    pub control: u64,
}

impl Beyond {
    /// Datagrams of one kind were sent. Of their bytes of UDP payload `framing` are headers in each, and each has `outer`
    /// bytes of headers in front.
    pub(super) fn on_sent(
        &mut self,
        kind: TransmitKind,
        datagrams: Traffic,
        [outer, framing]: [usize; 2],
    ) {
        let outer = datagrams.packets * outer as u64;
        match kind {
            TransmitKind::Inner => self.headers += outer + datagrams.packets * framing as u64,
            TransmitKind::Retransmission => self.copies += outer + datagrams.bytes,
            TransmitKind::Control => self.control += outer + datagrams.bytes,
            TransmitKind::Reply => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_inner_packets_is_told_apart() {
        let mut beyond = Beyond::default();
        let ten = Traffic { packets: 10, bytes: 10_240 };
        beyond.on_sent(TransmitKind::Inner, ten, [28, 24]);
        assert_eq!(beyond, Beyond { headers: 520, ..Beyond::default() });
        beyond.on_sent(TransmitKind::Retransmission, ten, [28, 24]);
        beyond.on_sent(TransmitKind::Control, ten, [48, 24]);
        assert_eq!(beyond, Beyond { headers: 520, copies: 10_520, control: 10_720 });
    }
}
