//! An invitation: all that a client needs, in one line.
//!
//! `mpt:` and the Base64 of bytes (RFC 4648 section 5, without padding): a version, the fields in a fixed order,
//! and the first four bytes of the BLAKE2s-256 of everything before them. docs/protocol.md describes them. The line contains a secret, so it is
//! overwritten in memory and has no `Debug`.

use std::fmt;
use std::net::IpAddr;

use blake2::{Blake2s256, Digest as _};
use data_encoding::BASE64URL_NOPAD;
use mpt_proto::{KEY_LEN, PublicKey};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::config::Prefix;

/// What a line begins with.
const SCHEME: &str = "mpt:";

/// The only version so far.
const VERSION: u8 = 1;

/// Bytes of the checksum. One in four thousand million damaged lines is not noticed; the handshake refuses that one.
const CHECKSUM: usize = 4;

/// The longest line in bytes: a longer text is something else.
const LONGEST: usize = 4096;

/// All that a client needs to reach a server and to be let in once.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Invitation {
    /// What the server calls the client.
    pub(crate) name: String,
    /// The server's host name or address.
    pub(crate) host: String,
    /// Its UDP port.
    pub(crate) port: u16,
    /// Its static key.
    pub(crate) public_key: PublicKey,
    /// The client's tunnel addresses, with the prefix lengths of their subnets.
    pub(crate) addresses: Vec<Prefix>,
    /// The server's tunnel addresses.
    pub(crate) peer: Vec<IpAddr>,
    /// Networks that the server leads to. Default routes are for `mpt join --everything` only.
    pub(crate) networks: Vec<Prefix>,
    /// Name servers for `mpt join --everything`.
    pub(crate) dns: Vec<IpAddr>,
    /// By which the server recognises the client the first time.
    pub(crate) secret: Zeroizing<[u8; KEY_LEN]>,
    /// Until when, in seconds since 1970-01-01 00:00 UTC.
    pub(crate) expires: u64,
}

/// Why a text is no invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum LineError {
    /// It does not look like one.
    #[error(
        "this is not an invitation: it should begin with `mpt:`; copy the line that `mpt invite` has printed, and put it in quotes"
    )]
    NotALine,
    /// The checksum does not fit.
    #[error(
        "the invitation is damaged: a part is missing or was changed; copy the whole line that `mpt invite` has printed"
    )]
    Damaged,
    /// It is sound, and of another version.
    #[error(
        "the invitation is of version {0}, and this mpt knows version {VERSION}: install the server's version of mpt"
    )]
    Version(u8),
}

impl Invitation {
    /// The line. Names and lists that are longer than 255 are cut off.
    pub(crate) fn to_line(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST));
        bytes.push(VERSION);
        bytes.extend(self.secret.iter());
        bytes.extend(self.public_key.bytes());
        bytes.extend(self.expires.to_be_bytes());
        bytes.extend(self.port.to_be_bytes());
        put_text(&mut bytes, &self.host);
        put_text(&mut bytes, &self.name);
        put_list(&mut bytes, &self.addresses, |bytes, prefix| put_prefix(bytes, *prefix));
        put_list(&mut bytes, &self.peer, |bytes, address| put_address(bytes, *address));
        put_list(&mut bytes, &self.networks, |bytes, prefix| put_prefix(bytes, *prefix));
        put_list(&mut bytes, &self.dns, |bytes, address| put_address(bytes, *address));
        let checksum = checksum(&bytes);
        bytes.extend(checksum);
        let mut line = Zeroizing::new(String::with_capacity(2 * LONGEST));
        line.push_str(SCHEME);
        BASE64URL_NOPAD.encode_append(&bytes, &mut line);
        line
    }

    /// Reads a line. White space, which mail programs insert, is ignored.
    ///
    /// # Errors
    ///
    /// See [`LineError`].
    pub(crate) fn from_line(line: &str) -> Result<Self, LineError> {
        if line.len() > LONGEST {
            return Err(LineError::NotALine);
        }
        let line: Zeroizing<String> =
            Zeroizing::new(line.chars().filter(|c| !c.is_whitespace()).collect());
        let text = line.strip_prefix(SCHEME).ok_or(LineError::NotALine)?;
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| LineError::Damaged)?;
        let bytes = Zeroizing::new(bytes);
        let (content, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(LineError::Damaged)?;
        if checksum(content) != *sum {
            return Err(LineError::Damaged);
        }
        match content.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(LineError::Version(other)),
            None => return Err(LineError::Damaged),
        }
        // Other bytes with a good checksum are no accident.
        read(&mut Reader(&content[1..])).ok_or(LineError::Damaged)
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Invitation").field("name", &self.name).finish_non_exhaustive()
    }
}

fn read(reader: &mut Reader<'_>) -> Option<Invitation> {
    let invitation = Invitation {
        secret: Zeroizing::new(*reader.array()?),
        public_key: PublicKey::new(*reader.array()?),
        expires: u64::from_be_bytes(*reader.array()?),
        port: u16::from_be_bytes(*reader.array()?),
        host: reader.text()?,
        name: reader.text()?,
        addresses: reader.list(Reader::prefix)?,
        peer: reader.list(Reader::address)?,
        networks: reader.list(Reader::prefix)?,
        dns: reader.list(Reader::address)?,
    };
    reader.0.is_empty().then_some(invitation)
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let hash: [u8; 32] = Blake2s256::digest(bytes).into();
    std::array::from_fn(|place| hash[place])
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let text = &text.as_bytes()[..text.len().min(255)];
    bytes.push(text.len() as u8);
    bytes.extend(text);
}

fn put_list<T>(bytes: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    let list = &list[..list.len().min(255)];
    bytes.push(list.len() as u8);
    list.iter().for_each(|item| put(bytes, item));
}

/// The version of IP, 4 or 6, and the address.
fn put_address(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(6);
            bytes.extend(address.octets());
        }
    }
}

fn put_prefix(bytes: &mut Vec<u8>, prefix: Prefix) {
    put_address(bytes, prefix.addr);
    bytes.push(prefix.len);
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(array)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| *byte)
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::from(self.byte()?);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.byte()?;
        (0..len).map(|_| item(self)).collect()
    }

    fn address(&mut self) -> Option<IpAddr> {
        match self.byte()? {
            4 => self.array::<4>().map(|octets| IpAddr::from(*octets)),
            6 => self.array::<16>().map(|octets| IpAddr::from(*octets)),
            _ => None,
        }
    }

    fn prefix(&mut self) -> Option<Prefix> {
        let addr = self.address()?;
        let len = self.byte()?;
        (len <= Prefix::max_len(addr)).then_some(Prefix { addr, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invitation() -> Invitation {
        let prefix = |text: &str, len| Prefix { addr: text.parse().unwrap(), len };
        Invitation {
            name: "van".into(),
            host: "vpn.example.org".into(),
            port: 4754,
            public_key: PublicKey::new([2; KEY_LEN]),
            addresses: vec![prefix("10.9.0.2", 24), prefix("fd00:9::2", 64)],
            peer: vec!["10.9.0.1".parse().unwrap(), "fd00:9::1".parse().unwrap()],
            networks: vec![prefix("0.0.0.0", 0), prefix("::", 0)],
            dns: vec!["9.9.9.9".parse().unwrap()],
            secret: Zeroizing::new([1; KEY_LEN]),
            expires: 1_798_761_599,
        }
    }

    #[test]
    fn a_line_says_what_was_put_into_it() {
        let line = invitation().to_line();
        assert_eq!(Invitation::from_line(&line), Ok(invitation()));
        let (first, second) = line.split_at(60);
        assert_eq!(Invitation::from_line(&format!(" {first}\r\n  {second}\n")), Ok(invitation()));
    }

    /// The example of docs/protocol.md, so that the format does not change unnoticed.
    #[test]
    fn the_example_of_the_protocol() {
        let protocol = include_str!("../../../../docs/protocol.md");
        let line = invitation().to_line();
        assert!(protocol.contains(line.as_str()), "{}", *line);
    }

    #[test]
    fn every_damaged_character_is_noticed() {
        let line = invitation().to_line();
        for place in SCHEME.len()..line.len() {
            let mut other = line.as_bytes().to_vec();
            other[place] = if other[place] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(Invitation::from_line(&other), Err(LineError::Damaged), "{place}");
            let cut = &line[..place];
            assert_eq!(Invitation::from_line(cut), Err(LineError::Damaged), "{place}");
        }
    }

    #[test]
    fn other_texts_and_other_versions() {
        for text in ["", "mpt", "http://example.org", "MPT:AQ"] {
            assert_eq!(Invitation::from_line(text), Err(LineError::NotALine), "{text}");
        }
        assert_eq!(Invitation::from_line(&"mpt:A".repeat(2000)), Err(LineError::NotALine));
        let line = |content: &[u8]| {
            let bytes = [content, &checksum(content)].concat();
            format!("mpt:{}", BASE64URL_NOPAD.encode(&bytes))
        };
        assert_eq!(Invitation::from_line(&line(&[2, 7, 7])), Err(LineError::Version(2)));
        assert_eq!(Invitation::from_line(&line(&[])), Err(LineError::Damaged));
        assert_eq!(Invitation::from_line(&line(&[1, 7, 7])), Err(LineError::Damaged));
        let whole = invitation().to_line();
        let bytes = BASE64URL_NOPAD.decode(&whole.as_bytes()[SCHEME.len()..]).unwrap();
        let longer = [&bytes[..bytes.len() - CHECKSUM], &[0]].concat();
        assert_eq!(Invitation::from_line(&line(&longer)), Err(LineError::Damaged));
    }

    #[test]
    fn nothing_of_it_is_shown_but_the_name() {
        assert_eq!(format!("{:?}", invitation()), "Invitation { name: \"van\", .. }");
    }
}
