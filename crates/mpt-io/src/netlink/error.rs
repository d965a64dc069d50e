//! What the kernel says when it refuses.

use std::io;

use crate::interface::NameError;

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name cannot be an interface's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The process lacks the capability.
    #[error("cannot {action}: not permitted; run with CAP_NET_ADMIN or as root")]
    Permission {
        /// What was tried.
        action: String,
    },
    /// What was to be made exists.
    #[error("cannot {action}: it exists already")]
    Exists {
        /// What was tried.
        action: String,
    },
    /// What was to be changed or removed does not exist.
    #[error("cannot {action}: there is no such thing")]
    NotFound {
        /// What was tried.
        action: String,
    },
    /// Anything else.
    #[error("cannot {action}: {source}{}", explained(.explanation))]
    Refused {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: io::Error,
        /// The kernel's own sentence about it, where it gave one.
        explanation: Option<String>,
    },
}

impl Error {
    pub(super) fn new(action: &str, source: io::Error, explanation: Option<String>) -> Self {
        let action = action.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission { action },
            Some(libc::EEXIST) => Self::Exists { action },
            // Routes answer ESRCH, addresses EADDRNOTAVAIL, interfaces ENODEV.
            Some(libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::EADDRNOTAVAIL) => {
                Self::NotFound { action }
            }
            _ => Self::Refused { action, source, explanation },
        }
    }

    /// Whether the interface has no IPv6 settings that could be changed. The kernel returns
    /// (`validate_linkmsg` in `net/core/rtnetlink.c`) `EAFNOSUPPORT` if IPv6 is not built in, is
    /// switched off for the whole kernel (`ipv6.disable=1`) or is disabled on the interface, and
    /// `EOPNOTSUPP` if its IPv6 has no settings by netlink.
    pub(super) fn is_without_ipv6_settings(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        matches!(source.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EOPNOTSUPP))
    }

    pub(super) fn unreadable(action: &str, error: &impl ToString) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        Self::Refused { action: action.to_owned(), source, explanation: None }
    }
}

fn explained(explanation: &Option<String>) -> String {
    explanation.as_ref().map(|text| format!(" ({text})")).unwrap_or_default()
}

/// The sentence behind the header of the refused request: attribute `NLMSGERR_ATTR_MSG` of an
/// extended acknowledgement.
pub(super) fn explanation(request: &[u8]) -> Option<String> {
    const NLMSG_HEADER: usize = 16;
    const NLMSGERR_ATTR_MSG: u16 = 1;
    let mut rest = request.get(NLMSG_HEADER..)?;
    loop {
        let (head, _) = rest.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]);
        let value = rest.get(4..len)?;
        if kind == NLMSGERR_ATTR_MSG {
            let text = value.strip_suffix(&[0]).unwrap_or(value);
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explanation_is_found_behind_other_attributes() {
        let mut bytes = vec![0; 16];
        bytes.extend([8, 0, 2, 0, 9, 9, 9, 9]);
        bytes.extend([10, 0, 1, 0, b'N', b'o', b' ', b'w', b'a', 0, 0, 0]);
        let (len, start) = (bytes.len(), bytes.len() - 12);
        bytes[start] = 10;
        assert_eq!(explanation(&bytes).as_deref(), Some("No wa"));
        for cut in 0..len - 2 {
            assert_eq!(explanation(&bytes[..cut]), None);
        }
    }

    #[test]
    fn errors_say_what_was_tried() {
        let error = |errno| Error::new("do it", io::Error::from_raw_os_error(errno), None);
        assert!(matches!(error(libc::EPERM), Error::Permission { .. }));
        assert!(matches!(error(libc::EEXIST), Error::Exists { .. }));
        assert!(matches!(error(libc::ESRCH), Error::NotFound { .. }));
        assert!(matches!(error(libc::EINVAL), Error::Refused { .. }));
        assert!(error(libc::EPERM).to_string().starts_with("cannot do it: not permitted"));
    }

    #[test]
    fn only_two_errors_mean_that_there_are_no_ipv6_settings() {
        for errno in 1..200 {
            let error = Error::new("do it", io::Error::from_raw_os_error(errno), None);
            let expected = matches!(errno, libc::EAFNOSUPPORT | libc::EOPNOTSUPP);
            assert_eq!(error.is_without_ipv6_settings(), expected, "{error}");
        }
        assert!(!Error::unreadable("do it", &"no answer").is_without_ipv6_settings());
    }
}
