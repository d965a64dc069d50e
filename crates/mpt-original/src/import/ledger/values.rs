//! Values of entries: texts, numbers, addresses.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use mpt_proto::Prefix;

use super::{Given, Ledger};
use crate::import::document::Shown;
use crate::import::integer;
use crate::import::problem::Problem;

/// The meaning of a prefix length of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Zero {
    /// There is no address.
    Nothing,
    /// Every address.
    Everything,
}

impl Ledger {
    /// The text of a key, unless there is none.
    pub(in crate::import) fn text(&mut self, key: &str) -> Option<Given<String>> {
        let Given { value, note, .. } = self.take(key)?;
        Some(Given::written(value.value, note))
    }

    /// The number of a key, clamped to `range`. `why` is the reason in the warning.
    pub(in crate::import) fn number(
        &mut self,
        key: &str,
        default: i64,
        range: RangeInclusive<i64>,
        why: &str,
    ) -> Given<i64> {
        let Some(Given { value: entry, note, .. }) = self.take(key) else {
            return Given::missing(key, default);
        };
        let Some((number, rest)) = integer::read(&entry.value) else {
            let problem = Problem::new(format!("`{key}` is not a number"), entry.span)
                .label("the original takes this for 0")
                .help("write a number, in decimal, or in hexadecimal with prefix 0x");
            self.findings.problems.push(problem);
            return Given::written(default, note);
        };
        let mut given = Given::written(number, note);
        if !rest.is_empty() {
            self.change(&mut given, number, &format!("read as {number}, as in C"));
        }
        let clamped = number.clamp(*range.start(), *range.end());
        if clamped != number {
            self.change(&mut given, clamped, &format!("clamped to {clamped}: {why}"));
        }
        given
    }

    /// The UDP port of a key. 0 stands for the original's default.
    pub(in crate::import) fn port(&mut self, key: &str, default: i64) -> Given<i64> {
        let mut given = self.number(key, default, 0..=65535, "a port is 1 to 65535");
        if given.value == 0 {
            let what = format!("taken as {default}, which is the original's default: 0 is no port");
            self.change(&mut given, default, &what);
        }
        given
    }

    /// The address of a key; `None` if the key is missing or the address unspecified. A prefix length, which
    /// the papers have and the original cannot read, is ignored.
    pub(in crate::import) fn address(&mut self, key: &str) -> Option<Given<IpAddr>> {
        let Given { value: entry, mut note, .. } = self.take(key)?;
        let (text, len) = match entry.value.split_once('/') {
            Some((text, len)) => (text, Some(len)),
            None => (&*entry.value, None),
        };
        let Ok(address) = text.trim().parse::<IpAddr>() else {
            let problem = Problem::new(format!("`{key}` is not an address"), entry.span)
                .label("the original takes this for no address")
                .help("write an address such as 192.0.2.1 or 2001:db8::1");
            self.findings.problems.push(problem);
            return None;
        };
        if address.is_unspecified() {
            self.asides.push(format!("{note}: no address"));
            return None;
        }
        if let Some(len) = len {
            note += &format!(" (the address alone, without /{})", Shown(len));
        }
        Some(Given::written(address, note))
    }

    /// The address of a key that is required. `title` is the problem if it is missing.
    pub(in crate::import) fn required_address(
        &mut self,
        key: &str,
        title: &str,
    ) -> Option<Given<IpAddr>> {
        let known = self.findings.problems.len();
        let address = self.address(key);
        if address.is_none() && self.findings.problems.len() == known {
            let label = format!("`{key}` is missing, or is no address");
            let help = format!("write `{key}` in `[{}]`, such as 192.0.2.2", self.section.name);
            self.problem(title, &label, &help);
        }
        address
    }

    /// The prefix of a key; `None` if the key is missing, or if the length is 0 and `zero` says that this
    /// stands for no address.
    pub(in crate::import) fn prefix(&mut self, key: &str, zero: Zero) -> Option<Given<Prefix>> {
        let Given { value: entry, note, .. } = self.take(key)?;
        let (addr, len) = entry.value.split_once('/').unwrap_or((&entry.value, ""));
        let bits = integer::read(len).filter(|(_, rest)| rest.is_empty());
        let bits = bits.and_then(|(bits, _)| u8::try_from(bits).ok());
        let prefix = addr.trim().parse().ok().zip(bits);
        let Some(prefix) = prefix.and_then(|(addr, bits)| Prefix::new(addr, bits)) else {
            let label =
                if len.is_empty() { "the original takes a missing length for 0" } else { "here" };
            let title = format!("`{key}` is not an address with its length");
            let help = "write an address and the length of its network, such as 10.0.0.1/24";
            self.findings.problems.push(Problem::new(title, entry.span).label(label).help(help));
            return None;
        };
        if prefix.bits() == 0 && zero == Zero::Nothing {
            self.asides.push(format!("{note}: a length of 0 means no address"));
            return None;
        }
        Some(Given::written(prefix, note))
    }
}
