//! Generic netlink: one protocol shared by several kernel subsystems.
//!
//! Each subsystem is a *family* with a name; the kernel numbers them as they are registered, and
//! returns the number on request. A message is four bytes (command and version of the family's
//! protocol) and attributes, each a length, a type and a value, padded to four bytes
//! (Documentation/userspace-api/netlink/intro.rst).

use std::convert::Infallible;

use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};

use netlink_sys::protocols::NETLINK_GENERIC;

use super::Error;
use super::conversation::Conversation;

/// Bytes of a generic netlink header: command, version, two reserved.
const HEADER: usize = 4;
/// Bytes of an attribute's length and kind.
const ATTRIBUTE: usize = 4;
/// The family that lists the families.
const CONTROLLER: u16 = libc::GENL_ID_CTRL as u16;
/// Marks an attribute that consists of attributes.
const NESTED: u16 = 1 << 15;

/// A message to or from a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The family's number.
    pub(super) family: u16,
    /// What is asked for, in the family's numbering.
    pub(super) command: u8,
    /// The version of the family's language.
    pub(super) version: u8,
    /// The attributes as they are sent.
    pub(super) attributes: Attributes,
}

/// A conversation with one family about one network namespace.
#[derive(Debug)]
pub struct Family {
    conversation: Conversation,
    number: u16,
}

impl Family {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if this kernel does not have the family.
    pub fn open(name: &str) -> Result<Self, Error> {
        let mut conversation = Conversation::open(NETLINK_GENERIC)?;
        let number = number(&mut conversation, name)?;
        Ok(Self { conversation, number })
    }

    /// Makes one request, command and version being those of the family's language, and returns the
    /// attributes of each message that answers it. `action` completes the sentence "cannot ..." of an error.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn request(
        &mut self,
        command: u8,
        version: u8,
        attributes: Attributes,
        action: &str,
    ) -> Result<Vec<Attributes>, Error> {
        let message = Message { family: self.number, command, version, attributes };
        let answers = self.conversation.request(message, 0, action)?;
        Ok(answers.into_iter().map(|answer| answer.attributes).collect())
    }
}

/// A sequence of attributes as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// The sequence with one more attribute. Values are a few bytes long.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let len = u16::try_from(ATTRIBUTE + value.len()).expect("values are a few bytes long");
        self.0.extend(len.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// The sequence with one more attribute, which consists of attributes.
    pub fn with_nested(self, kind: u16, inner: &Self) -> Self {
        self.with(kind | NESTED, &inner.0)
    }

    /// The value of the first attribute of this kind, `None` if there is none before the end or
    /// before the first truncated attribute.
    pub fn get(&self, kind: u16) -> Option<&[u8]> {
        let mut rest = &self.0[..];
        loop {
            let (head, _) = rest.split_first_chunk::<ATTRIBUTE>()?;
            let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            let value = rest.get(ATTRIBUTE..len)?;
            if u16::from_ne_bytes([head[2], head[3]]) & !NESTED == kind {
                return Some(value);
            }
            rest = rest.get(len.next_multiple_of(4)..)?;
        }
    }

    /// A value that consists of attributes.
    pub fn nested(&self, kind: u16) -> Option<Self> {
        self.get(kind).map(|value| Self(value.to_vec()))
    }

    /// A value of text, without the zero at its end.
    pub fn get_text(&self, kind: u16) -> Option<String> {
        let value = self.get(kind)?;
        let text = value.strip_suffix(&[0]).unwrap_or(value);
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// A value of four bytes.
    pub fn get_u32(&self, kind: u16) -> Option<u32> {
        self.get(kind)?.try_into().ok().map(u32::from_ne_bytes)
    }
}

/// The number of the family `name`.
///
/// # Errors
///
/// [`Error::NotFound`] if this kernel does not have it.
fn number(conversation: &mut Conversation, name: &str) -> Result<u16, Error> {
    let action = format!("find the part of the kernel called '{name}'");
    let terminated = [name.as_bytes(), &[0]].concat();
    let question = Message {
        family: CONTROLLER,
        command: libc::CTRL_CMD_GETFAMILY as u8,
        version: 1,
        attributes: Attributes::default().with(libc::CTRL_ATTR_FAMILY_NAME as u16, &terminated),
    };
    let answers = conversation.request(question, 0, &action)?;
    let number = answers.iter().find_map(|answer| {
        let value = answer.attributes.get(libc::CTRL_ATTR_FAMILY_ID as u16)?;
        value.try_into().ok().map(u16::from_ne_bytes)
    });
    number.ok_or_else(|| Error::unreadable(&action, &"the answer has no number"))
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        HEADER + self.attributes.0.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..HEADER].copy_from_slice(&[self.command, self.version, 0, 0]);
        buffer[HEADER..].copy_from_slice(&self.attributes.0);
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    /// A message too short for its header is one of command 0, which no family uses.
    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        let (head, attributes) =
            payload.split_first_chunk::<HEADER>().unwrap_or((&[0; HEADER], &[]));
        Ok(Self {
            family: header.message_type,
            command: head[0],
            version: head[1],
            attributes: Attributes(attributes.to_vec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_found_again() {
        let inner = Attributes::default().with(7, &[1]);
        let all = Attributes::default()
            .with(1, &[1, 2, 3])
            .with(2, &9_u32.to_ne_bytes())
            .with_nested(3, &inner);
        assert_eq!(all.0.len(), 8 + 8 + 4 + 8);
        assert_eq!(all.get(1), Some(&[1, 2, 3][..]));
        assert_eq!(all.get_u32(2), Some(9));
        assert_eq!(all.get_u32(1), None, "three bytes are no number");
        assert_eq!(all.get(3).map(<[u8]>::to_vec), Some(inner.0));
        assert_eq!(all.get(4), None);
    }

    #[test]
    fn attributes_that_lie_about_their_length_are_the_end() {
        for lying in [0_u16, 3, 9, u16::MAX] {
            let mut all = Attributes::default().with(1, &[0; 4]).with(2, &[0; 4]);
            all.0[..2].copy_from_slice(&lying.to_ne_bytes());
            assert_eq!(all.get(2), None, "{lying}");
        }
        assert_eq!(Attributes(vec![4, 0]).get(0), None);
    }

    #[test]
    fn a_message_survives_the_wire() {
        let message = Message {
            family: 30,
            command: 5,
            version: 1,
            attributes: Attributes::default().with(2, &[1, 0, 0, 0]),
        };
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let mut header = NetlinkHeader::default();
        header.message_type = 30;
        assert_eq!(Message::deserialize(&header, &bytes), Ok(message));
        assert_eq!(Message::deserialize(&header, &[5, 1]).map(|message| message.command), Ok(0));
    }
}
