//! The numbers in the datagrams that a host sends in its sessions.
//!
//! The global sequence has no gap and begins at 0 with each session; a copy repeats a number that was sent. The path
//! sequence of each path id goes on by one, and where a path takes over the id of another one, it goes on beyond. So
//! no number of either kind is given to two datagrams of a session.

use std::collections::HashMap;

use mpt_proto::ConnectionId;
use mpt_proto::wire::extended::{Flags, Header, Kind, is_extended};

/// What one host has sent last, by its connection and the index under which the peer receives.
#[derive(Default)]
pub(super) struct Sequences {
    /// Global sequences.
    data: HashMap<(ConnectionId, u32), u32>,
    /// Path sequences by path id, and whether the id may belong to another path by now.
    paths: HashMap<(ConnectionId, u32, u8), (u32, bool)>,
    /// The header of the last packet.
    last: Option<Header>,
    /// Whether a connection came or went: then what is not known here may have been sent.
    forgot: bool,
}

impl Sequences {
    /// The header of the last packet that was sent in a session.
    pub(super) fn last(&self) -> Option<Header> {
        self.last
    }

    /// A path comes or goes: another one may get its path id.
    pub(super) fn on_path_change(&mut self) {
        self.paths.values_mut().for_each(|(_, may_jump)| *may_jump = true);
    }

    /// A connection comes or goes, and its session with it.
    pub(super) fn on_connection_change(&mut self) {
        *self = Self { forgot: true, ..Self::default() };
    }

    /// Looks at a datagram that is sent.
    pub(super) fn on_sent(&mut self, connection: ConnectionId, datagram: &[u8]) {
        if !is_extended(datagram) {
            return;
        }
        let header = Header::parse(datagram).expect("what a host sends can be read");
        if let Some(sequence) = header.sequence {
            self.on_packet(connection, header, sequence.value());
        }
        let counts =
            matches!(header.kind, Kind::Data | Kind::Feedback | Kind::Beacon | Kind::PathStatus);
        if !counts {
            return assert_eq!(header.path_sequence, 0, "{header:?} is not counted");
        }
        let fresh = (header.path_sequence, false);
        if let Some((last, may_jump)) =
            self.paths.insert((connection, header.key, header.path), fresh)
        {
            let step = header.path_sequence.wrapping_sub(last);
            let fits = if may_jump { (1..1 << 31).contains(&step) } else { step == 1 };
            assert!(fits, "{header:?} after {last} on this path");
        }
    }

    fn on_packet(&mut self, connection: ConnectionId, header: Header, sequence: u32) {
        let session = (connection, header.key);
        let last = self.data.get(&session).copied();
        let known = last.is_some() || !self.forgot;
        if header.flags.contains(Flags::OUT_OF_TURN) {
            let is_old = last.is_some_and(|last| last.wrapping_sub(sequence) < 1 << 31);
            assert!(is_old || !known, "{header:?} is no copy: {last:?} was sent last");
            return;
        }
        let next = last.map_or(0, |last| last.wrapping_add(1));
        assert!(!known || [0, next].contains(&sequence), "{header:?} instead of {next}");
        self.data.insert(session, sequence);
        self.last = Some(header);
    }
}
