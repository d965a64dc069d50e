//! Reasons for which a command is refused, with their counters.

/// Why a command was refused. Each reason has a name, under which it is counted. Messages of the last two are
/// answered, the others are not.
///
/// They are in the order of the checks: format, connection, authentication, exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Refusal {
    /// The message has fewer than 40 bytes.
    Short,
    /// Neither a path status change nor a connection create.
    Unknown,
    /// A kind of authentication above 2, which in the original always succeeds.
    AuthKind,
    /// The stated length of the authentication block is not that of its kind, or a connection create
    /// is not of kind 2.
    AuthLength,
    /// A round other than 1 to 4.
    Round,
    /// The second byte of a connection create is not zero in round 1 or 3.
    Status,
    /// The message does not have the length of its command and round.
    Length,
    /// The announced size is impossible for this command, or the data has another size.
    Size,
    /// The addresses of a path are of different IP versions.
    PathAddress,
    /// An IP version other than 4 and 6, or not that of the tunnel addresses.
    Version,
    /// No connection has these tunnel addresses.
    Connection,
    /// Its source is not an address of the connection's peer.
    Source,
    /// Its kind of authentication is not the connection's.
    AuthMismatch,
    /// The hash is wrong.
    AuthHash,
    /// Too many commands were received lately.
    Rate,
    /// It belongs to no open exchange, or that has expired.
    Order,
    /// It has another cookie than it was given, or one that was used for another message.
    Cookie,
    /// A connection create, and none are accepted. Answered with
    /// [`Code::UNKNOWN`](crate::Code::UNKNOWN).
    CreateOff,
    /// The description in a connection create cannot be read, or has other tunnel addresses. Answered with [`Code::UNKNOWN`](crate::Code::UNKNOWN).
    CreateText,
}

impl Refusal {
    /// All reasons, in their order.
    pub const ALL: [Self; 19] = [
        Self::Short,
        Self::Unknown,
        Self::AuthKind,
        Self::AuthLength,
        Self::Round,
        Self::Status,
        Self::Length,
        Self::Size,
        Self::PathAddress,
        Self::Version,
        Self::Connection,
        Self::Source,
        Self::AuthMismatch,
        Self::AuthHash,
        Self::Rate,
        Self::Order,
        Self::Cookie,
        Self::CreateOff,
        Self::CreateText,
    ];

    /// The name under which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "command_short",
            Self::Unknown => "command_unknown",
            Self::AuthKind => "command_auth_kind",
            Self::AuthLength => "command_auth_length",
            Self::Round => "command_round",
            Self::Status => "command_status",
            Self::Length => "command_length",
            Self::Size => "command_size",
            Self::PathAddress => "command_path_address",
            Self::Version => "command_version",
            Self::Connection => "command_connection",
            Self::Source => "command_source",
            Self::AuthMismatch => "command_auth_mismatch",
            Self::AuthHash => "command_auth_hash",
            Self::Rate => "command_rate",
            Self::Order => "command_order",
            Self::Cookie => "command_cookie",
            Self::CreateOff => "command_create_off",
            Self::CreateText => "command_create_text",
        }
    }
}

/// A counter of each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// The count of `reason`.
    pub fn count(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons with a count above zero, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL.into_iter().map(|reason| (reason, self.count(reason))).filter(|(_, n)| *n > 0)
    }

    pub(crate) fn add(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_listed_in_order_and_their_names_are_unique() {
        for (place, reason) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
        let mut names: Vec<&str> = Refusal::ALL.map(Refusal::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Refusal::ALL.len());
    }

    #[test]
    fn refusals_count_each_reason() {
        let mut refusals = Refusals::default();
        refusals.add(Refusal::Round);
        refusals.add(Refusal::Short);
        refusals.add(Refusal::Round);
        assert_eq!(refusals.total(), 3);
        assert_eq!(refusals.iter().collect::<Vec<_>>(), [(Refusal::Short, 1), (Refusal::Round, 2)]);
    }
}
