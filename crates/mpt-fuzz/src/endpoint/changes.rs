//! What is done to a running host by its operator and its surroundings.

use std::sync::Arc;
use std::time::Duration;

use mpt_proto::{Change, ConnectionId, Instant, PathId, Surcharge};

use super::settings::{CONNECTIONS, PATHS, status, vary_connection, vary_path};
use super::{Host, World};
use crate::input::Input;

impl World {
    /// Changes something at a host, or how its sides hear of each other. Half of the choices about a
    /// path are `SetPath`'s, which has most to choose from.
    pub(super) fn change(&mut self, host: usize, choice: u8, input: &mut Input<'_>) {
        match choice % 16 {
            0 => self.add_connection(host, input),
            // Of the same settings at both, or nothing would pass.
            1 => {
                self.add_connection(host, &mut input.clone());
                self.add_connection(1 - host, input);
            }
            2 => {
                let connection = self.connection(input);
                self.apply(host, Change::RemoveConnection { connection });
            }
            3 | 4 => {
                let connection = self.connection(input);
                let wanted = self.hosts[host].plan.connection(connection).cloned();
                let mut config = wanted.map_or_else(
                    || self.settings.connection(host, connection, &mut input.clone()),
                    |config| (*config).clone(),
                );
                vary_connection(&mut config, host, input);
                let config = Arc::new(config);
                self.apply(host, Change::SetConnection { connection, config });
            }
            5 => {
                let (connection, path) = (self.connection(input), path(input));
                let config = self.settings.path(host, connection, input);
                self.apply(host, Change::AddPath { connection, path, config });
            }
            6 => {
                let (connection, path) = (self.connection(input), path(input));
                self.apply(host, Change::RemovePath { connection, path });
            }
            7..=9 => {
                let (connection, path) = (self.connection(input), path(input));
                let wanted = self.hosts[host].plan.path(connection, path).cloned();
                let mut config = wanted
                    .unwrap_or_else(|| self.settings.path(host, connection, &mut input.clone()));
                vary_path(&mut config, host, connection, input);
                self.apply(host, Change::SetPath { connection, path, config });
            }
            10 | 11 => {
                let (connection, path) = (self.connection(input), path(input));
                let (present, unnoticed) = (input.flag(), Duration::ZERO);
                self.apply(host, Change::SetPresent { connection, path, present, unnoticed });
            }
            12 => {
                let (connection, path) = (self.connection(input), path(input));
                self.apply(host, Change::SetStatus { connection, path, status: status(input) });
            }
            13 => {
                let (connection, path) = (self.connection(input), path(input));
                let choice = input.byte();
                let change = match (choice >> 6, choice & 1 != 0) {
                    (0, fits) => Change::SetFits { connection, path, fits },
                    (1, last_resort) => {
                        let price = u16::from(choice & 0x3f) * 20;
                        let surcharge = Surcharge { price, last_resort };
                        Change::SetSurcharge { connection, path, surcharge }
                    }
                    (_, down) => Change::SetPeerDown { connection, path, down },
                };
                self.apply(host, change);
            }
            14 => {
                let apart = input.flag();
                self.with(host, |host, now| host.set_apart(now, apart));
            }
            _ => {
                let (changes, path_updates) = (input.byte(), input.byte());
                self.with(host, |host, now| host.carry_changes(now, usize::from(changes % 8)));
                let (fetched, handed) =
                    (usize::from(path_updates & 0xf), usize::from(path_updates >> 4));
                self.hosts[host].carry_messages(self.now, fetched, handed);
            }
        }
    }

    fn add_connection(&mut self, host: usize, input: &mut Input<'_>) {
        let connection = self.connection(input);
        if !self.hosts[host].plan.has(connection) {
            // The peer, which is not informed, continues with the numbers of the previous one.
            self.hosts[1 - host].inbox.distrust_order(connection);
        }
        if !self.settings.tells_connections_apart() {
            self.hosts.iter_mut().for_each(|host| host.inbox.stop_judging());
        }
        let config = Arc::new(self.settings.connection(host, connection, input));
        self.apply(host, Change::AddConnection { connection, config, accepted_by: None });
    }

    pub(super) fn apply(&mut self, host: usize, change: Change) {
        self.with(host, |host, now| host.change(now, change));
    }

    /// Does something to a host that may make it forget what it has received. Then whatever was sent before,
    /// and has a copy on its way or is sent again, may come out again.
    fn with(&mut self, host: usize, act: impl FnOnce(&mut Host, Instant) -> bool) {
        if act(&mut self.hosts[host], self.now) {
            (0..self.number).for_each(|number| self.hosts[host].inbox.distrust(number));
        }
    }

    /// Any connection, there or not.
    fn connection(&self, input: &mut Input<'_>) -> ConnectionId {
        ConnectionId(input.index(CONNECTIONS) as u16)
    }
}

/// Any path, there or not.
fn path(input: &mut Input<'_>) -> PathId {
    PathId(PATHS[input.index(PATHS.len())])
}
