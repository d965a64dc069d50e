//! What the daemon may do, once it has what only root can get.
//!
//! A tunnel needs one capability: `CAP_NET_ADMIN`, to create its interface, set addresses and
//! routes, mark sockets and set large buffers. A UDP port below 1024 needs `CAP_NET_BIND_SERVICE`
//! too (capabilities(7)). A daemon that was started with more, as root or by a file's capabilities,
//! drops the rest permanently before it reads its first packet: from all sets, including the
//! bounding set, and with `no_new_privs` no program can regain any. It may also switch to another
//! user.
//!
//! This happens while the process has a single thread, because Linux keeps these things for each
//! thread and those started later inherit them. What is needed of the file system is done before:
//! the configuration has been read and the control socket is bound and handed over. A daemon
//! that becomes another user must also be allowed to read the file again when it is reloaded.

use std::fs;
use std::io;

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::sys::prctl::{set_keepcaps, set_no_new_privs};
use nix::unistd::{Uid, User, setgroups, setresgid, setresuid};
use thiserror::Error;

/// The first unprivileged port, unless the kernel is configured differently.
const FIRST_FREE_PORT: u16 = 1024;

/// Where the kernel says it (Documentation/networking/ip-sysctl.rst).
const FIRST_FREE_PORT_FILE: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// Why the daemon cannot drop its privileges.
#[derive(Debug, Error)]
pub(crate) enum PrivilegeError {
    /// There is no such user.
    #[error(
        "there is no user `{0}`: make one with `useradd --system --no-create-home {0}`, or name \
         another `user` in [daemon]"
    )]
    NoSuchUser(String),
    /// The user exists and the process may not become it.
    #[error(
        "cannot become user `{user}`: {error}; start as root, or as `{user}` with CAP_NET_ADMIN, or \
         remove `user` from [daemon]"
    )]
    NotAllowed {
        /// The user's name.
        user: String,
        /// What the kernel reported.
        error: io::Error,
    },
    /// The user data base cannot be asked.
    #[error("cannot look up user `{user}`: {error}")]
    Lookup {
        /// The user's name.
        user: String,
        /// What went wrong.
        error: io::Error,
    },
    /// A port needs a right that the process does not have.
    #[error(
        "port {0} needs CAP_NET_BIND_SERVICE: start as root, grant it (systemd: \
         `AmbientCapabilities` and `CapabilityBoundingSet`), or choose a `local_port` of {1} or more"
    )]
    Port(u16, u16),
    /// The kernel does not take rights away.
    #[error("cannot give up privileges: {0}")]
    Refused(#[from] CapsError),
    /// The kernel does not forbid their return.
    #[error("cannot set no_new_privs: {0}")]
    NoNewPrivileges(Errno),
}

/// What the daemon will be when it has given up the rest.
#[derive(Debug)]
pub(crate) struct Privileges {
    /// The user to become; `None` = it stays who it is.
    user: Option<User>,
    /// The capabilities that stay.
    kept: CapsHashSet,
}

impl Privileges {
    /// Determines the privileges needed to run as `user`, if set, with sockets on these UDP ports.
    /// Changes nothing, so that errors are found before anything is created.
    ///
    /// # Errors
    /// The user is unknown, or a port needs a right that the process does not have.
    pub(crate) fn needed(
        user: Option<&str>,
        ports: impl IntoIterator<Item = u16>,
    ) -> Result<Self, PrivilegeError> {
        let permitted = caps::read(None, CapSet::Permitted)?;
        let lowest = ports.into_iter().min().unwrap_or(u16::MAX);
        let kept = kept(&permitted, lowest, first_free_port())?;
        let user = match user.map(find).transpose()? {
            Some(user) if user.uid == Uid::effective() => None,
            user => user,
        };
        Ok(Self { user, kept })
    }

    /// The user to become, if it is another.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Drops everything else permanently. Call it before any thread starts.
    ///
    /// # Errors
    /// The kernel refuses. The process may then be in between and should end.
    pub(crate) fn take(self) -> Result<(), PrivilegeError> {
        // While the process may still do so. One that may not has nothing to gain from its bounding
        // set either: no_new_privs closes the only way there is.
        if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            for capability in &caps::read(None, CapSet::Bounding)? - &self.kept {
                caps::drop(None, CapSet::Bounding, capability)?;
            }
        }
        if let Some(user) = &self.user {
            become_user(user).map_err(|error| PrivilegeError::NotAllowed {
                user: user.name.clone(),
                error: error.into(),
            })?;
        }
        // Without what it inherits there can be no ambient set (capabilities(7)).
        caps::clear(None, CapSet::Inheritable)?;
        caps::set(None, CapSet::Effective, &self.kept)?;
        caps::set(None, CapSet::Permitted, &self.kept)?;
        set_no_new_privs().map_err(PrivilegeError::NoNewPrivileges)
    }
}

/// The permitted capabilities that are kept. Without `CAP_NET_ADMIN` none is: opening a tunnel then
/// fails with a remedy.
fn kept(
    permitted: &CapsHashSet,
    lowest_port: u16,
    first_free: u16,
) -> Result<CapsHashSet, PrivilegeError> {
    let mut kept = CapsHashSet::new();
    if permitted.contains(&Capability::CAP_NET_ADMIN) {
        kept.insert(Capability::CAP_NET_ADMIN);
    }
    if lowest_port < first_free {
        if !permitted.contains(&Capability::CAP_NET_BIND_SERVICE) {
            return Err(PrivilegeError::Port(lowest_port, first_free));
        }
        kept.insert(Capability::CAP_NET_BIND_SERVICE);
    }
    Ok(kept)
}

fn first_free_port() -> u16 {
    let text = fs::read_to_string(FIRST_FREE_PORT_FILE).unwrap_or_default();
    text.trim().parse().unwrap_or(FIRST_FREE_PORT)
}

fn find(name: &str) -> Result<User, PrivilegeError> {
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user),
        Ok(None) => Err(PrivilegeError::NoSuchUser(name.into())),
        Err(error) => Err(PrivilegeError::Lookup { user: name.into(), error: error.into() }),
    }
}

/// Switches to the user with only its own group, and keeps the permitted capabilities, which would
/// be lost with the change.
fn become_user(user: &User) -> nix::Result<()> {
    set_keepcaps(true)?;
    setgroups(&[])?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    set_keepcaps(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_capability_stays_and_a_second_for_low_ports_only() {
        let (admin, bind) = (Capability::CAP_NET_ADMIN, Capability::CAP_NET_BIND_SERVICE);
        let all = caps::all();
        assert_eq!(kept(&all, 4754, 1024).unwrap(), CapsHashSet::from([admin]));
        assert_eq!(kept(&all, 1024, 1024).unwrap(), CapsHashSet::from([admin]));
        assert_eq!(kept(&all, 1023, 1024).unwrap(), CapsHashSet::from([admin, bind]));
        assert_eq!(kept(&all, 53, 0).unwrap(), CapsHashSet::from([admin]));
    }

    #[test]
    fn what_is_not_permitted_is_not_kept_and_a_low_port_says_what_it_needs() {
        assert_eq!(kept(&CapsHashSet::new(), 4754, 1024).unwrap(), CapsHashSet::new());
        let error = kept(&CapsHashSet::from([Capability::CAP_NET_ADMIN]), 53, 1024).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("port 53") && text.contains("CAP_NET_BIND_SERVICE"), "{text}");
        assert!(text.contains("1024 or more"), "{text}");
    }

    #[test]
    fn an_unknown_user_is_detected_before_anything_is_changed() {
        let error = Privileges::needed(Some("nobody-of-that-name"), [4754]).unwrap_err();
        assert!(error.to_string().contains("useradd"), "{error}");
    }

    #[test]
    fn a_process_of_the_wanted_user_does_not_switch() {
        let me = User::from_uid(Uid::effective()).unwrap().unwrap();
        assert!(Privileges::needed(Some(&me.name), [4754]).unwrap().user().is_none());
        assert!(Privileges::needed(None, [4754]).unwrap().user().is_none());
    }
}
