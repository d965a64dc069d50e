//! Reading single values: the right type, and within what is possible.
//!
//! Every reader reports what is wrong and returns `None` then.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mpt_proto::{InvitationHash, PublicKey};
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use super::keys::closest;
use super::report::{Problem, Problems};

/// Longest name in bytes of a connection or path, so that tables and log lines stay readable.
const MAX_NAME: usize = 64;

/// Longest interface name in bytes: IFNAMSIZ of `linux/if.h` without the closing zero.
const MAX_INTERFACE: usize = 15;

/// Longest path in bytes of a Unix socket: `sun_path` of unix(7) without the closing zero.
const MAX_SOCKET_PATH: usize = 107;

/// One value of the file and the key it belongs to.
#[derive(Debug)]
pub(super) struct Value<'t> {
    key: &'static str,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> Value<'t> {
    pub(super) fn new(key: &'static str, value: &'t Spanned<DeValue<'t>>) -> Self {
        Self { key, value }
    }

    pub(super) fn get(&self) -> &'t DeValue<'t> {
        self.value.get_ref()
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// The problem that the value is not `wanted`.
    pub(super) fn wrong_type(&self, wanted: &str) -> Problem {
        let found = match self.get() {
            DeValue::Array(_) => "an array",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Float(_) => "a float",
            DeValue::Integer(_) => "an integer",
            DeValue::String(_) => "a string",
            DeValue::Table(_) => "a table",
        };
        let title = format!("wrong type for `{}`", self.key);
        Problem::new(title, self.span()).label(format!("expected {wanted}, found {found}"))
    }

    /// The problem that the value is of the right type but impossible.
    pub(super) fn impossible(&self, label: impl Into<String>) -> Problem {
        Problem::new(format!("invalid value for `{}`", self.key), self.span()).label(label)
    }
}

/// What kind of value a key has: how it is read, and within what range it must be.
///
/// A function is a kind without a range.
pub(super) trait Kind<T> {
    /// The value, or `None` with what is wrong noted.
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<T>;

    /// The values that are allowed with their unit, for documents: `1 .. 10000`.
    fn range(&self) -> Option<String> {
        None
    }
}

impl<T, F: Fn(&Value<'_>, &mut Problems) -> Option<T>> Kind<T> for F {
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<T> {
        self(value, problems)
    }
}

/// Any text.
pub(super) fn text<'t>(value: &Value<'t>, problems: &mut Problems) -> Option<&'t str> {
    let text = value.get().as_str();
    if text.is_none() {
        problems.push(value.wrong_type("a string").help("put it in double quotes"));
    }
    text
}

/// The name of a connection or path.
pub(super) fn name(value: &Value<'_>, problems: &mut Problems) -> Option<String> {
    let text = text(value, problems)?;
    let fault = if text.is_empty() {
        "empty".into()
    } else if text.len() > MAX_NAME {
        format!("{} bytes long", text.len())
    } else if text.chars().any(char::is_control) {
        "has a control character".into()
    } else {
        return Some(text.to_owned());
    };
    let help = format!("use 1 to {MAX_NAME} bytes of printable text");
    problems.push(value.impossible(fault).help(help));
    None
}

/// The name of a network interface.
pub(super) fn interface(value: &Value<'_>, problems: &mut Problems) -> Option<String> {
    let text = text(value, problems)?;
    let Some(fault) = interface_fault(text) else {
        return Some(text.to_owned());
    };
    let help = format!(
        "an interface name has 1 to {MAX_INTERFACE} bytes and no white space, `/`, `:` or `%`"
    );
    problems.push(value.impossible(fault).help(help));
    None
}

/// Why a text cannot be the name of a network interface, by the rules of the kernel
/// (`dev_valid_name`), unless it can.
pub(crate) fn interface_fault(text: &str) -> Option<String> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%');
    if text.is_empty() {
        Some("empty".into())
    } else if text.len() > MAX_INTERFACE {
        Some(format!("{} bytes long", text.len()))
    } else if text == "." || text == ".." {
        Some("not a name".into())
    } else {
        text.chars().find(|&c| bad(c)).map(|c| format!("{c:?} cannot be part of it"))
    }
}

/// A value that may be left out.
pub(super) fn some<K>(kind: K) -> Optional<K> {
    Optional(kind)
}

/// See [`some`].
pub(super) struct Optional<K>(K);

impl<T, K: Kind<T>> Kind<Option<T>> for Optional<K> {
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<Option<T>> {
        self.0.read(value, problems).map(Some)
    }

    fn range(&self) -> Option<String> {
        self.0.range()
    }
}

/// `true` or `false`.
pub(super) fn flag(value: &Value<'_>, problems: &mut Problems) -> Option<bool> {
    let flag = value.get().as_bool();
    if flag.is_none() {
        problems.push(value.wrong_type("a boolean").help("write true or false, without quotes"));
    }
    flag
}

/// A whole number within `range`, which must fit into `T`.
pub(super) fn integer<T: Copy + Into<i64>>(range: RangeInclusive<T>) -> Integer {
    Integer((*range.start()).into()..=(*range.end()).into())
}

/// See [`integer`].
pub(super) struct Integer(RangeInclusive<i64>);

impl<T: TryFrom<i64>> Kind<T> for Integer {
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<T> {
        let help = format!("allowed: {} to {}", self.0.start(), self.0.end());
        let DeValue::Integer(integer) = value.get() else {
            problems.push(value.wrong_type("an integer").help(help));
            return None;
        };
        match number(integer).filter(|number| self.0.contains(number)) {
            Some(number) => T::try_from(number).ok(),
            None => {
                problems.push(value.impossible("out of range").help(help));
                None
            }
        }
    }

    fn range(&self) -> Option<String> {
        Some(format!("{} .. {}", self.0.start(), self.0.end()))
    }
}

/// The integer if it is one of 64 bits, the largest that TOML promises.
pub(super) fn number(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A number, whole or fractional, as `sound` makes something of it where it is in range. `wanted` is what
/// it counts, and `help` what is allowed.
pub(super) fn decimal<T>(
    value: &Value<'_>,
    wanted: &str,
    help: String,
    problems: &mut Problems,
    sound: impl FnOnce(f64) -> Option<T>,
) -> Option<T> {
    let decimal = if let DeValue::Float(float) = value.get() {
        float.as_str().parse().ok()
    } else if let DeValue::Integer(integer) = value.get() {
        number(integer).map(|number| number as f64)
    } else {
        problems.push(value.wrong_type(wanted).help(help));
        return None;
    };
    let sound = decimal.and_then(sound);
    if sound.is_none() {
        problems.push(value.impossible("out of range").help(help));
    }
    sound
}

/// A time in seconds, whole or fractional: within `range`, or 0 where `zero` says what that means.
pub(super) fn seconds(range: RangeInclusive<Duration>, zero: Option<&'static str>) -> Seconds {
    Seconds { range, zero }
}

/// See [`seconds`].
pub(super) struct Seconds {
    range: RangeInclusive<Duration>,
    zero: Option<&'static str>,
}

impl Kind<Duration> for Seconds {
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<Duration> {
        let (min, max) = (self.range.start().as_secs_f64(), self.range.end().as_secs_f64());
        let help = match self.zero {
            Some(zero) => format!("allowed: {min} to {max} seconds, or 0 = {zero}"),
            None => format!("allowed: {min} to {max} seconds"),
        };
        decimal(value, "a number of seconds", help, problems, |time| {
            let duration = Duration::try_from_secs_f64(time).ok()?;
            let zero = self.zero.is_some() && duration.is_zero();
            (zero || self.range.contains(&duration)).then_some(duration)
        })
    }

    fn range(&self) -> Option<String> {
        let (min, max) = (self.range.start().as_secs_f64(), self.range.end().as_secs_f64());
        let zero = self.zero.map(|zero| format!("; 0 = {zero}")).unwrap_or_default();
        Some(format!("{min} .. {max} s{zero}"))
    }
}

/// A list whose elements are read by `read`. An element that is wrong is left out; then the list is
/// `None` in the end, and the sound ones have been seen nevertheless.
pub(super) fn list<T>(
    read: impl Fn(&Value<'_>, &mut Problems) -> Option<T>,
) -> impl Fn(&Value<'_>, &mut Problems) -> Option<Vec<T>> {
    move |value: &Value<'_>, problems: &mut Problems| {
        let DeValue::Array(array) = value.get() else {
            problems.push(value.wrong_type("an array").help("put square brackets around it"));
            return None;
        };
        let elements: Vec<Option<T>> =
            array.iter().map(|element| read(&Value::new(value.key, element), problems)).collect();
        elements.into_iter().collect()
    }
}

/// The elements that were read of a list, each with its place.
pub(super) fn with_places<T: Clone>(value: &Value<'_>, list: &[T]) -> Vec<Spanned<T>> {
    let DeValue::Array(array) = value.get() else { return Vec::new() };
    let places = array.iter().map(Spanned::span);
    places.zip(list).map(|(place, element)| Spanned::new(place, element.clone())).collect()
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(words: &'static [(&'static str, T)]) -> OneOf<T> {
    OneOf(words)
}

/// See [`one_of`].
pub(super) struct OneOf<T: 'static>(&'static [(&'static str, T)]);

impl<T: Copy> Kind<T> for OneOf<T> {
    fn read(&self, value: &Value<'_>, problems: &mut Problems) -> Option<T> {
        let Self(words) = self;
        let wrong = text(value, problems)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == wrong) {
            return Some(*meaning);
        }
        let allowed: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let help = match closest(wrong, words.iter().map(|(word, _)| *word)) {
            Some(word) if words.len() > 1 => {
                format!("did you mean \"{word}\"? allowed: {}", allowed.join(", "))
            }
            _ => format!("allowed: {}", allowed.join(", ")),
        };
        problems.push(value.impossible("not one of the allowed words").help(help));
        None
    }
}

/// The absolute path of a file.
pub(super) fn file(value: &Value<'_>, problems: &mut Problems) -> Option<PathBuf> {
    let text = text(value, problems)?;
    let is_path = text.starts_with('/') && !text.contains('\0');
    if is_path && Path::new(text).file_name().is_some() {
        return Some(text.into());
    }
    let problem = value.impossible("not the absolute path of a file");
    problems.push(problem.help("write an absolute path such as \"/etc/mpt/private.key\""));
    None
}

/// A public key in Base64.
pub(super) fn public_key(value: &Value<'_>, problems: &mut Problems) -> Option<PublicKey> {
    let key = text(value, problems)?.parse();
    if key.is_err() {
        let problem = value.impossible("not a key");
        problems.push(problem.help("write the 44 characters that `mpt pubkey` prints at the peer"));
    }
    key.ok()
}

/// The hash of the secret of an invitation in Base64.
pub(super) fn invitation(value: &Value<'_>, problems: &mut Problems) -> Option<InvitationHash> {
    let hash = text(value, problems)?.parse();
    if hash.is_err() {
        let problem = value.impossible("not a hash");
        problems.push(problem.help("invite the client again: `mpt invite NAME`"));
    }
    hash.ok()
}

/// Where a Unix socket can be.
pub(super) fn socket_path(value: &Value<'_>, problems: &mut Problems) -> Option<PathBuf> {
    let text = text(value, problems)?;
    let fault = if text.len() > MAX_SOCKET_PATH {
        format!("{} bytes long", text.len())
    } else if text.contains('\0') {
        "has a zero byte".into()
    } else if !text.starts_with('/') || Path::new(text).file_name().is_none() {
        "not the absolute path of a file".into()
    } else {
        return Some(text.into());
    };
    let help = format!(
        "write an absolute path of at most {MAX_SOCKET_PATH} bytes such as \"{}\"",
        mpt_control::DEFAULT_SOCKET
    );
    problems.push(value.impossible(fault).help(help));
    None
}
