//! A secret of this host, from which it derives everything that others must not be able to guess.

use std::fmt;
use std::hash::Hasher as _;
use std::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher24;

/// 128 random bits, the key of a pseudorandom function (SipHash-2-4, Aumasson and Bernstein 2012).
///
/// Session ids, connection indices, cookies and challenges are outputs of it, so none of them has to be stored
/// before somebody has proved to receive what is sent to it. The same secret gives the same values.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Secret([u8; 16]);

impl Secret {
    /// The secret of these bytes, which must be random and new at each start.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Begins an input. Inputs of different `purpose` have unrelated outputs.
    pub(crate) fn about(&self, purpose: &'static str) -> Input {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(purpose.as_bytes());
        hasher.write_u8(0);
        Input(hasher)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// An input of the function, part by part. Parts have fixed lengths, so no two inputs are the same bytes.
pub(crate) struct Input(SipHasher24);

impl Input {
    pub(crate) fn number(mut self, number: u64) -> Self {
        self.0.write_u64(number);
        self
    }

    pub(crate) fn address(mut self, address: IpAddr) -> Self {
        let octets = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        self.0.write(&octets);
        self
    }

    pub(crate) fn socket_address(self, at: SocketAddr) -> Self {
        let version = u64::from(at.is_ipv6());
        self.address(at.ip()).number(u64::from(at.port()) << 1 | version)
    }

    /// The output: 64 bits that look random to a host that does not know the secret.
    pub(crate) fn output(self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_and_the_secret_decide_the_output() {
        let output = |secret: [u8; 16], purpose, number, address: &str| {
            let at: SocketAddr = address.parse().expect("an address");
            Secret::new(secret).about(purpose).number(number).socket_address(at).output()
        };
        let one = output([1; 16], "a", 7, "192.0.2.1:5");
        let others = [
            output([2; 16], "a", 7, "192.0.2.1:5"),
            output([1; 16], "b", 7, "192.0.2.1:5"),
            output([1; 16], "a", 8, "192.0.2.1:5"),
            output([1; 16], "a", 7, "192.0.2.2:5"),
            output([1; 16], "a", 7, "192.0.2.1:6"),
            output([1; 16], "a", 7, "[::ffff:192.0.2.1]:5"),
        ];
        assert_eq!(one, output([1; 16], "a", 7, "192.0.2.1:5"));
        assert!(!others.contains(&one));
        assert!(!format!("{:?}", Secret::new([0xab; 16])).contains("ab"), "it is not shown");
    }
}
