//! Why a command counts for nothing.

/// Why a command was not followed. Each has a name, under which it is counted; the last two are answered
/// nevertheless.
///
/// In the order in which they are found: what a message is, whose it is, who says so, and what is to
/// become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Refusal {
    /// The message has fewer than 40 bytes.
    Short,
    /// Neither a path status change nor a connection create.
    Unknown,
    /// A kind of authentication above 2, which the original takes for one that always succeeds.
    AuthKind,
    /// The stated length of the authentication block is not that of its kind, or a connection create
    /// is not of kind 2.
    AuthLength,
    /// A round other than 1 to 4.
    Round,
    /// The byte behind the command means nothing in such a message.
    Status,
    /// The message is not as long as one of its round and command.
    Length,
    /// The announced size is none that the data of this command can have, or not that of the data
    /// which came.
    Size,
    /// The addresses of a path are of different IP versions.
    PathAddress,
    /// An IP version other than 4 and 6, or not that of the tunnel addresses.
    Version,
    /// No connection has these tunnel addresses.
    Connection,
    /// It came from an address that is none of the connection's peer.
    Source,
    /// Its kind of authentication is not the connection's.
    AuthMismatch,
    /// The hash is wrong.
    AuthHash,
    /// Too many commands have come lately.
    Rate,
    /// Nobody began what it goes on with, or that has expired.
    Order,
    /// It brings back another cookie than it was given, or one that was used for something else.
    Cookie,
    /// A connection create, and these are not accepted. Answered with
    /// [`Code::UNKNOWN`](crate::Code::UNKNOWN).
    CreateOff,
    /// The description in a connection create cannot be understood, or is not of these
    /// tunnel addresses. Answered with [`Code::UNKNOWN`](crate::Code::UNKNOWN).
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

/// A counter for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// How often `reason` was counted.
    pub fn count(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that were counted at least once, with their counts.
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
    fn all_reasons_are_listed_once_in_their_order_and_have_names_of_their_own() {
        for (place, reason) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
        let mut names: Vec<&str> = Refusal::ALL.map(Refusal::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Refusal::ALL.len());
    }

    #[test]
    fn refusals_show_what_was_counted() {
        let mut refusals = Refusals::default();
        refusals.add(Refusal::Round);
        refusals.add(Refusal::Short);
        refusals.add(Refusal::Round);
        assert_eq!(refusals.total(), 3);
        assert_eq!(refusals.iter().collect::<Vec<_>>(), [(Refusal::Short, 1), (Refusal::Round, 2)]);
    }
}
