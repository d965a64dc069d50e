//! The original's bytes, written and read by position.

use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

/// As much of a datagram as the original takes in.
pub(super) const LONGEST: usize = 1600;

/// The first byte of what is no inner packet.
pub(super) const CONTROL: u8 = 0xa0;

/// The commands.
pub(super) const KEEPALIVE: u8 = 0xa1;
pub(super) const PATH_STATUS: u8 = 0xa2;
pub(super) const CREATE: u8 = 0xa3;

/// As many characters of a key count.
const KEY: usize = 32;

/// A GRE header, with a number where the sender has a reorder window.
pub(super) fn header(version: u8, number: Option<u32>) -> Vec<u8> {
    let kind = if version == 6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    let number_follows = if number.is_some() { 0x10 } else { 0 };
    let mut header = vec![number_follows, 0, kind[0], kind[1]];
    header.extend(number.map(u32::to_be_bytes).into_iter().flatten());
    header
}

/// The number of a datagram and what is behind its header. Of the header only S is looked at.
pub(super) fn open(datagram: &[u8]) -> Option<(Option<u32>, &[u8])> {
    if datagram.len() < 8 {
        return None;
    }
    if datagram[0] & 0x10 == 0 {
        return Some((None, &datagram[4..]));
    }
    let number = datagram[4..8].try_into().expect("four bytes");
    Some((Some(u32::from_be_bytes(number)), &datagram[8..]))
}

/// A keepalive from one tunnel address to the other.
pub(super) fn keepalive(from: IpAddr, to: IpAddr) -> Vec<u8> {
    let unused = [KEEPALIVE, 0, 0, 0, 0, version(from), 0, 0];
    [&header(version(from), None)[..], &unused, &wide(from), &wide(to)].concat()
}

pub(super) fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

/// An address in 16 bytes.
pub(super) fn wide(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// By what commands are known to be the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Auth {
    None,
    Random,
    Sha256(&'static str),
}

impl Auth {
    pub(super) const ALL: [Self; 3] =
        [Self::None, Self::Random, Self::Sha256("0123456789abcdef0123456789ABCDEF")];

    pub(super) fn kind(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Random => 1,
            Self::Sha256(_) => 2,
        }
    }
}

/// A message of the command protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) command: u8,
    /// The status in requests, the return code in replies.
    pub(super) status: u8,
    pub(super) auth: u8,
    /// Meaningless without authentication.
    pub(super) cookie: u32,
    pub(super) round: u8,
    pub(super) version: u8,
    /// The original leaves in these what was there before, if `auth` is 2.
    pub(super) leftover: [u8; 2],
    pub(super) initiator: [u8; 16],
    pub(super) responder: [u8; 16],
    pub(super) data: Vec<u8>,
}

impl Message {
    /// The first of four rounds, with this many bytes of data to come.
    pub(super) fn opening(command: u8, auth: Auth, [own, peer]: [IpAddr; 2], size: u32) -> Self {
        Self {
            command,
            status: 0,
            auth: auth.kind(),
            cookie: 0,
            round: 1,
            version: version(own),
            leftover: if auth.kind() == 2 { [0xde, 0xad] } else { [0, 0] },
            initiator: wide(own),
            responder: wide(peer),
            // In the order of the bytes that most processors have.
            data: size.to_le_bytes().to_vec(),
        }
    }

    pub(super) fn write(&self, auth: Auth) -> Vec<u8> {
        let block = block(self.auth);
        let mut bytes = vec![self.command, self.status, self.auth, block as u8];
        bytes.extend(self.cookie.to_be_bytes());
        bytes.resize(4 + block, 0);
        bytes.extend([self.round, self.version]);
        bytes.extend(self.leftover);
        bytes.extend(self.initiator);
        bytes.extend(self.responder);
        bytes.extend(&self.data);
        if let (2, Auth::Sha256(key)) = (self.auth, auth) {
            let hash = hash(&bytes, key);
            bytes[8..40].copy_from_slice(&hash);
        }
        bytes
    }

    /// The fields are where the kind of authentication in the message says.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let auth = *bytes.get(2)?;
        let block = block(auth);
        let rest = bytes.get(4 + block..).filter(|rest| rest.len() >= 36)?;
        let word = bytes[4..8].try_into().expect("four bytes");
        Some(Self {
            command: bytes[0],
            status: bytes[1],
            auth,
            cookie: if block == 0 { 0 } else { u32::from_be_bytes(word) },
            round: rest[0],
            version: rest[1],
            leftover: [rest[2], rest[3]],
            initiator: rest[4..20].try_into().expect("16 bytes"),
            responder: rest[20..36].try_into().expect("16 bytes"),
            data: rest[36..].to_vec(),
        })
    }
}

/// Whether the hash in a message is the right one; there is none in messages of other kinds.
pub(super) fn is_authentic(bytes: &[u8], auth: Auth) -> bool {
    match auth {
        Auth::None | Auth::Random => true,
        Auth::Sha256(key) => bytes.len() >= 40 && bytes[8..40] == hash(bytes, key),
    }
}

/// The length of the authentication block.
fn block(auth: u8) -> usize {
    match auth {
        1 => 4,
        2 => 36,
        _ => 0,
    }
}

fn hash(bytes: &[u8], key: &str) -> [u8; 32] {
    let mut bytes = bytes.to_vec();
    bytes[8..40].fill(0);
    Sha256::new().chain_update(bytes).chain_update(&key.as_bytes()[..KEY]).finalize().into()
}

/// What was captured from the original (docs/protocol.md, section 14.5 and the vectors of 11.4).
pub(super) fn vectors() {
    let [two, three] = [2, 3].map(|host| IpAddr::from([10, 0, 0, host]));
    let is = |bytes: &[u8], hexadecimal: &str| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, hexadecimal.replace(' ', ""));
    };
    let addresses = "00000000000000000000ffff0a000003 00000000000000000000ffff0a000002".to_owned();
    is(&keepalive(three, two), &format!("00000800 a1000000 00040000 {addresses}"));
    is(&header(4, Some(4)), "10000800 00000004");
    is(&header(6, None), "000086dd");

    let mut down = Message::opening(PATH_STATUS, Auth::None, [three, two], 32);
    down.status = 0x80;
    is(&down.write(Auth::None), &format!("a2800000 01040000 {addresses} 20000000"));

    // The key is built into the original and public.
    let public = Auth::Sha256("A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1");
    let mut create = Message::opening(CREATE, public, [two, three], 0x467);
    create.leftover = [0, 0];
    let bytes = create.write(public);
    is(
        &bytes,
        "a3000224 00000000 193d90a0536de866e77647f40d26e1afeb1886c726eb3d59fb05fecf6c95c2a6 \
         01040000 00000000000000000000ffff0a000002 00000000000000000000ffff0a000003 67040000",
    );
    assert!(is_authentic(&bytes, public));
    assert_eq!(Message::read(&bytes), Some(create));
}
