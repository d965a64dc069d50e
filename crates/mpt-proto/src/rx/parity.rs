//! Packets that are lost are brought back by parity: see section 8.5.2 of `docs/protocol.md`. What is computed from what is
//! [kept](super::covers) takes its place in the order as if it had come out of turn.

use super::connection::ReceiveHalf;
use super::playout::delivery;
use super::receive::after;
use crate::id::PathId;
use crate::rx::reorder::Arrived;
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::stats::{Drop, ParityStats};
use crate::time::Instant;
use crate::wire::extended::parity::{COVER_LEN, Parity};
use crate::wire::inner;

impl ReceiveHalf {
    /// A packet came that parity covers.
    #[cold]
    pub(super) fn keep_covered(
        &mut self,
        now: Instant,
        path: PathId,
        (number, distance): (Option<Seq>, u16),
        packet: &[u8],
        sink: &mut impl Sink,
    ) {
        if !self.measured.as_ref().is_some_and(|measured| measured.repairs) {
            return;
        }
        let Some(number) = number else { return };
        let found = self.covers.get_or_insert_default().on_packet(now, number, distance, packet);
        self.bring_back(now, path, found, sink);
    }

    /// A parity came.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    pub(super) fn receive_parity(
        &mut self,
        now: Instant,
        path: PathId,
        parity: Parity<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Drop> {
        if !self.measured.as_ref().is_some_and(|measured| measured.repairs) {
            return Err(Drop::ControlUnknown);
        }
        let found = self.covers.get_or_insert_default().on_parity(now, parity)?;
        self.bring_back(now, path, found, sink);
        Ok(())
    }

    /// Packets were computed: they take their places in the order, if they are what may come from the peer.
    fn bring_back(
        &mut self,
        now: Instant,
        path: PathId,
        found: Vec<(Seq, Vec<u8>)>,
        sink: &mut impl Sink,
    ) {
        for (seq, cover) in found {
            let Some((distance, packet)) = cover.split_first_chunk::<COVER_LEN>() else { continue };
            let parsed = inner::parse(packet).filter(|inner| {
                self.framing.peer().contains(&inner.source)
                    || self.networks.iter().any(|network| network.contains(inner.source))
            });
            let Some(inner) = parsed else {
                self.count_parity(|stats| stats.failed += 1);
                continue;
            };
            self.play_out.begin(now, None);
            let after = after(seq, u16::from_be_bytes(*distance));
            let arrived = Arrived { path, seq, after, in_turn: false };
            let mut sink = delivery!(self, sink);
            let accepted = self.reorder.insert(now, arrived, &packet[..inner.len], &mut sink);
            let is_new = accepted.is_ok();
            self.count_parity(|stats| {
                stats.recovered += u64::from(is_new);
                stats.in_vain += u64::from(!is_new);
            });
        }
    }

    fn count_parity(&mut self, count: impl FnOnce(&mut ParityStats)) {
        if let Some(covers) = &mut self.covers {
            count(&mut covers.stats);
        }
    }

    /// What became of the peer's parities in this session.
    pub fn parity_stats(&self) -> ParityStats {
        let present = self.covers.as_ref().map(|covers| covers.stats).unwrap_or_default();
        self.parity_before + present
    }
}
