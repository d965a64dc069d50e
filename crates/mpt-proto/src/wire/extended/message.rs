//! Any control message of extended framing.

use super::beacon::{self, Beacons};
use super::challenge::{Answer, Challenge};
use super::close::Close;
use super::feedback::Feedback;
use super::header::Kind;
use super::hello::Hello;
use super::parity::Parity;
use super::status::Status;
use crate::stats::Drop;

/// A control message that was received.
#[derive(Clone, Debug)]
pub enum Message<'m> {
    /// A request to begin a session.
    Hello(Hello),
    /// The answer to a hello.
    HelloAnswer(Hello),
    /// The answer to a hello answer.
    HelloConfirm(Hello),
    /// A path challenge.
    Challenge(Challenge),
    /// A path answer.
    Answer(Answer),
    /// A feedback.
    Feedback(Feedback<'m>),
    /// A beacon.
    Beacon(Beacons<'m>),
    /// A path status.
    Status(Status),
    /// A close.
    Close(Close),
    /// A parity.
    Parity(Parity<'m>),
}

impl<'m> Message<'m> {
    /// Reads what follows a header of this kind.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlUnknown`] if a kind has no message that is implemented, which includes data;
    /// [`Drop::ControlLength`] if the message is too short, or a number in it is out of the range that bounds
    /// its length; [`Drop::UnknownIndex`] if it offers the index 0.
    pub fn parse(kind: Kind, message: &'m [u8]) -> Result<Self, Drop> {
        match kind {
            Kind::Hello => Hello::parse(kind, message).map(Self::Hello),
            Kind::HelloAnswer => Hello::parse(kind, message).map(Self::HelloAnswer),
            Kind::HelloConfirm => Hello::parse(kind, message).map(Self::HelloConfirm),
            Kind::PathChallenge => Challenge::parse(message).map(Self::Challenge),
            Kind::PathAnswer => Answer::parse(message).map(Self::Answer),
            Kind::Feedback => Feedback::parse(message).map(Self::Feedback),
            Kind::Beacon => beacon::parse(message).map(Self::Beacon),
            Kind::PathStatus => Status::parse(message).map(Self::Status),
            Kind::Close => Close::parse(message).map(Self::Close),
            Kind::Parity => Parity::parse(message).map(Self::Parity),
            Kind::Data
            | Kind::HandshakeInitiation
            | Kind::HandshakeResponse
            | Kind::CookieReply
            | Kind::Unassigned(_) => Err(Drop::ControlUnknown),
        }
    }
}

#[cfg(test)]
mod tests;
