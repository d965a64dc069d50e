//! Single values as they stand in a file.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use mpt_control::PathStatus;
use mpt_proto::{InvitationHash, PeerKind, PublicKey};

use super::ports::{PortRange, ShownPorts};
use super::prefix::Prefix;
use super::remote::Remote;

/// A value that can stand behind a key.
pub(crate) trait Written {
    /// As TOML.
    fn written(&self) -> String;
}

impl Written for str {
    fn written(&self) -> String {
        let mut text = String::from("\"");
        for c in self.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                c if c.is_control() => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{:04x}", u32::from(c));
                }
                c => text.push(c),
            }
        }
        text.push('"');
        text
    }
}

impl Written for String {
    fn written(&self) -> String {
        self.as_str().written()
    }
}

impl Written for PathBuf {
    /// It came out of a file, and so is UTF-8.
    fn written(&self) -> String {
        self.to_string_lossy().written()
    }
}

impl<T: Written> Written for [T] {
    fn written(&self) -> String {
        let values: Vec<_> = self.iter().map(Written::written).collect();
        format!("[{}]", values.join(", "))
    }
}

impl<T: Written> Written for Vec<T> {
    fn written(&self) -> String {
        self.as_slice().written()
    }
}

/// What needs no quotes.
macro_rules! bare {
    ($($type:ty),*) => {
        $(impl Written for $type {
            fn written(&self) -> String {
                self.to_string()
            }
        })*
    };
}

bare!(bool, u8, u16, u32, f64);

/// What is a string.
macro_rules! quoted {
    ($($type:ty),*) => {
        $(impl Written for $type {
            fn written(&self) -> String {
                self.to_string().written()
            }
        })*
    };
}

quoted!(InvitationHash, IpAddr, Prefix, PublicKey, Remote, SocketAddr);

impl Written for Duration {
    /// In seconds: the shortest number that is read as the same duration.
    fn written(&self) -> String {
        self.as_secs_f64().to_string()
    }
}

impl Written for PortRange {
    fn written(&self) -> String {
        let shown = ShownPorts(std::slice::from_ref(self)).to_string();
        if self.start() == self.end() { shown } else { shown.written() }
    }
}

/// The words that stand for the values of an enum, for reading and writing them.
macro_rules! words {
    ($type:ident: $($word:literal = $variant:ident),+) => {
        impl $type {
            /// The words that stand for it.
            pub(in crate::config) const WORDS: &'static [(&'static str, Self)] =
                &[$(($word, Self::$variant)),+];
        }

        impl $crate::config::written::Written for $type {
            fn written(&self) -> String {
                match self {
                    $(Self::$variant => $crate::config::written::Written::written($word),)+
                }
            }
        }
    };
}

pub(super) use words;

impl Written for PeerKind {
    fn written(&self) -> String {
        self.name().written()
    }
}

impl Written for PathStatus {
    fn written(&self) -> String {
        self.as_str().written()
    }
}

impl<T: Written> Written for Option<T> {
    /// An absent value is not written to a file; a change of it is shown nevertheless.
    fn written(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Written::written)
    }
}
