//! What path statuses tell the peer of this host's settings, so that people learn at either end that both do not fit.

use std::num::NonZeroU16;
use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use super::told::Told;
use crate::config::{Late, ReorderConfig, SchedulerConfig};
use crate::id::PathId;
use crate::wire::extended::settings::{self, Picks, Settings};
use crate::wire::extended::{CONTROL_LEN, DATA_LEN, status};
use crate::wire::keepalive;

/// Of so many path statuses on a path one tells the settings, and the first two of a session or after a change do.
const TOLD_EVERY: u32 = 8;

/// Whether a path status tells the settings, by how many there were before it.
const fn is_told_in(before: u32) -> bool {
    before == 1 || before.is_multiple_of(TOLD_EVERY)
}

impl TransmitHalf {
    /// The tunnel has this MTU, which is configured or follows from the paths.
    pub(crate) fn set_tunnel_mtu(&mut self, mtu: u16, is_set: bool) {
        let mtu = (NonZeroU16::new(mtu), is_set);
        if std::mem::replace(&mut self.told.mtu, mtu) != mtu {
            self.paths.iter_mut().for_each(|(_, path)| path.statuses = 0);
        }
    }

    /// The bytes of IP packets that keepalives take on a path in so much time, in one direction.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn keepalive_bytes(&self, path: PathId, time: Duration) -> u64 {
        let path = &self.paths[path.index()];
        let datagram = match self.framing.index() {
            Some(_) => {
                self.framing.overhead() - DATA_LEN
                    + CONTROL_LEN
                    + status::LEN
                    + settings::LEN / TOLD_EVERY as usize
            }
            None => self.framing.overhead() + keepalive::LEN,
        };
        let count = path.interval().map_or(0.0, |every| time.as_secs_f64() / every.as_secs_f64());
        (path.wire_len(datagram) as f64 * count) as u64
    }

    /// What the next path status on a path tells, if it is its turn.
    pub(super) fn tell_settings(&mut self, index: usize) -> Option<Settings> {
        let (scheduler, Told { reorder, mtu: (mtu, mtu_is_set) }) = (self.policy, self.told);
        let ReorderConfig { evidence, window, max_delay, early_release, late } = reorder;
        // A path that tells that it goes is gone already.
        let path = self.paths.get_mut(index)?;
        let turn = is_told_in(path.statuses);
        path.statuses = path.statuses.wrapping_add(1);
        turn.then(|| Settings {
            picks: Some(match scheduler {
                SchedulerConfig::Weighted => Picks::Weighted,
                SchedulerConfig::Flow => Picks::Flow,
                SchedulerConfig::Earliest => Picks::Earliest,
                SchedulerConfig::LowestRtt => Picks::LowestRtt,
                SchedulerConfig::Redundant => Picks::Redundant,
            }),
            priority: path.priority,
            weight: NonZeroU16::new(path.weight.in_force()),
            mtu,
            mtu_is_set,
            dead_time: path.dead_time(),
            evidence,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            max_delay,
            early_release,
            drops_late: late == Late::Drop,
        })
    }
}

impl TransmitPath {
    /// The silence after which the path is down, as the receive half has it.
    fn dead_time(&self) -> Option<Duration> {
        let watched =
            self.failover.zip(self.peer_interval).filter(|_| self.own_dead_time.is_some());
        watched.map(|(failover, interval)| failover.max(interval * 7 / 2)).or(self.own_dead_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_in_the_first_two_path_statuses_and_in_every_eighth() {
        let told: Vec<u32> = (0..30).filter(|before| is_told_in(*before)).collect();
        assert_eq!(told, [0, 1, 8, 16, 24]);
    }
}
