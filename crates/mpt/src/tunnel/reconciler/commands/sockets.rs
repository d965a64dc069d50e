//! The sockets for commands: opened where one is wanted and closed where none is.
//!
//! A socket that cannot be opened is reported once, shown in the status, and retried. The tunnel
//! runs without it: keepalives alone take paths down and up.

use std::collections::BTreeMap;
use std::rc::Rc;

use mpt_io::poll::{Interest, Poll};
use mpt_io::udp::{self, Socket};

use crate::config;
use crate::mark::MARK;
use crate::tunnel::reconciler::socket::Key;

/// The sockets for the commands of a tunnel.
pub(super) struct Sockets {
    /// What wakes the main thread when a command comes.
    poll: Rc<Poll>,
    /// Those that are open.
    open: Vec<(Key, Socket)>,
    /// Those that there should be.
    wanted: Vec<Key>,
    /// Those that could not be opened, with the reported reason.
    absent: Vec<(Key, String)>,
}

impl Sockets {
    /// None so far; those to come are waited for in `poll`.
    pub(super) fn new(poll: Rc<Poll>) -> Self {
        Self { poll, open: Vec::new(), wanted: Vec::new(), absent: Vec::new() }
    }

    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// One of those that are open.
    pub(super) fn get(&self, index: usize) -> &Socket {
        &self.open[index].1
    }

    /// The place of the one of this kind, if it is open.
    pub(super) fn position(&self, key: &Key) -> Option<usize> {
        self.open.iter().position(|(open, _)| open == key)
    }

    /// From now on these are wanted. Closes all others.
    pub(super) fn want(&mut self, keys: impl Iterator<Item = Key>) {
        self.wanted.clear();
        for key in keys {
            if !self.wanted.contains(&key) {
                self.wanted.push(key);
            }
        }
        let Self { open, wanted, absent, .. } = self;
        open.retain(|(key, _)| wanted.contains(key));
        absent.retain(|(key, _)| wanted.contains(key));
    }

    /// Closes those that no path of these connections can want any more.
    pub(super) fn release(&mut self, connections: &[config::Connection]) {
        self.open.retain(|(key, _)| {
            connections.iter().any(|connection| {
                let port = connection.commands.as_ref().map(|commands| commands.port);
                port == Some(key.local.port())
                    && connection.paths.iter().any(|path| key.may_be_of(path))
            })
        });
    }

    /// Whether one is wanted that is not open.
    pub(super) fn lack(&self) -> bool {
        self.wanted.iter().any(|key| self.position(key).is_none())
    }

    /// Opens those that are wanted and are not open.
    ///
    /// # Errors
    ///
    /// If one cannot be had. The others are open.
    pub(super) fn open(&mut self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for key in std::mem::take(&mut self.wanted) {
            if self.position(&key).is_none() {
                outcome = outcome.and(self.open_one(&key));
            }
            self.wanted.push(key);
        }
        outcome
    }

    fn open_one(&mut self, key: &Key) -> anyhow::Result<()> {
        let told = self.absent.iter().position(|(absent, _)| absent == key);
        match socket(&self.poll, key) {
            Ok(socket) => {
                if let Some(place) = told {
                    self.absent.remove(place);
                    tracing::info!("commands of an original MPT are received at {}", key.local);
                }
                self.open.push((key.clone(), socket));
                Ok(())
            }
            Err(error) => {
                if told.is_none() {
                    tracing::warn!(
                        "cannot receive commands of an original MPT: {error:#}; until then its dead \
                         time detects paths that are down here"
                    );
                    self.absent.push((key.clone(), format!("{error:#}")));
                }
                Err(error.context("commands of an original MPT"))
            }
        }
    }

    /// Where they receive.
    pub(super) fn local(&self) -> Vec<String> {
        self.open.iter().map(|(_, socket)| socket.local_addr().to_string()).collect()
    }

    /// Where they should receive and do not, and why.
    pub(super) fn absent(&self) -> BTreeMap<String, String> {
        self.absent.iter().map(|(key, reason)| (key.local.to_string(), reason.clone())).collect()
    }
}

/// A socket of that kind.
fn socket(poll: &Poll, key: &Key) -> anyhow::Result<Socket> {
    let socket = Socket::open(&udp::Options {
        device: key.interface.as_ref().map(|(name, _)| name.clone()),
        mark: Some(MARK),
        segmentation: false,
        coalescing: false,
        ..udp::Options::new(key.local)
    })?;
    poll.add(&socket, 0, Interest::READABLE)?;
    Ok(socket)
}
