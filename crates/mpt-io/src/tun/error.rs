//! Why a TUN device cannot be opened, and what would help.

use std::io;

use crate::interface::NameError;
use crate::netlink;

/// The character device behind all TUN interfaces.
pub(super) const NODE: &str = "/dev/net/tun";

/// Why a [`Device`](super::Device) could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name cannot be an interface's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no TUN in this kernel, or no node for it here.
    #[error(
        "cannot open interface '{name}': {NODE} is missing; \
         load it with 'modprobe tun', or make the node with \
         'mkdir -p /dev/net && mknod {NODE} c 10 200'"
    )]
    NodeMissing {
        /// The interface that was to be opened.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// This user may not open the node.
    #[error(
        "cannot open interface '{name}': no permission to open {NODE}; \
         run as root, or allow it with 'chmod 0666 {NODE}'"
    )]
    NodePermission {
        /// The interface that was to be opened.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The process lacks the capability to make interfaces here.
    #[error(
        "cannot create interface '{name}': not permitted; \
         run with CAP_NET_ADMIN, as root, or inside a user and network namespace of its own"
    )]
    Permission {
        /// The interface that was to be created.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another process holds the interface, or it is of another kind.
    #[error(
        "cannot create interface '{name}': the name is in use; \
         choose another, or see who holds it with 'ip link show {name}'"
    )]
    NameInUse {
        /// The interface that was to be created.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The interface was created but could not be asked about or set up.
    #[error("cannot set up interface '{name}': {source}")]
    Setup {
        /// The interface that was created.
        name: String,
        /// What was tried, and what the kernel said.
        source: netlink::Error,
    },
    /// Anything else.
    #[error("cannot open interface '{name}': {source}")]
    Other {
        /// The interface that was to be opened.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl OpenError {
    /// What a [`NODE`] that cannot be opened means.
    pub(super) fn of_node(name: &str, source: io::Error) -> Self {
        let name = name.to_owned();
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Self::NodeMissing { name, source },
            Some(libc::EACCES | libc::EPERM) => Self::NodePermission { name, source },
            _ => Self::Other { name, source },
        }
    }

    /// What a refused TUNSETIFF means. `EINVAL` is what it says of an existing interface that is no
    /// TUN: the other causes of `EINVAL`, the name and the flags, are ours and known to be good.
    pub(super) fn of_attaching(name: &str, source: io::Error) -> Self {
        let name = name.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission { name, source },
            Some(libc::EBUSY | libc::EEXIST | libc::EINVAL) => Self::NameInUse { name, source },
            _ => Self::Other { name, source },
        }
    }
}
