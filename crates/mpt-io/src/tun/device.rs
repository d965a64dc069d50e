//! The TUN device: opening it, one super-packet at a time out, one packet at a time in.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::interface::{self, NameError};
use crate::netlink::{self, Netlink};

/// The character device behind all TUN interfaces.
const NODE: &str = "/dev/net/tun";

/// Longest inner packet, in bytes: the length fields of IP have 16 bits.
pub const MAX_PACKET: usize = 65_535;

/// A TUN interface that lives as long as this value.
///
/// Reading and writing never block. The descriptor keeps working when the calling thread moves to
/// another network namespace.
#[derive(Debug)]
pub struct Device {
    file: File,
    name: String,
    index: u32,
}

/// How to open a [`Device`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Name of the interface: 1 to 15 bytes ([`interface::check_name`]).
    pub name: String,
    /// Packets that the kernel keeps for the reader before it drops (`txqueuelen`); `None` leaves
    /// the kernel's default of 500. What is in force is in
    /// [`Link::queue_len`](crate::netlink::Link::queue_len).
    pub queue_len: Option<u32>,
}

/// Why a [`Device`] could not be opened.
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

impl Device {
    /// Creates the interface in the calling thread's network namespace, down and without addresses.
    ///
    /// It disappears when the device is dropped, unless somebody made it persistent beforehand
    /// (`ip tuntap add`): such an interface is taken over if nobody else holds it.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; each names the interface and what would help.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let name = options.name.clone();
        let mut request = interface::request(&name)?;
        let file = open_node(&name)?;

        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which is what the pointer leads to.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } == -1 {
            return Err(attach_error(name, io::Error::last_os_error()));
        }
        match set_up(&name, options.queue_len) {
            Ok(index) => Ok(Self { file, name, index }),
            Err(source) => Err(OpenError::Setup { name, source }),
        }
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Index of the interface in the network namespace where it was opened.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Plugs the cable in (`true`, as it is after opening) or pulls it out.
    ///
    /// # Errors
    ///
    /// The kernel's error, for example on kernels before 5.0, which cannot do that.
    pub fn set_carrier(&self, carrier: bool) -> io::Result<()> {
        let value = libc::c_int::from(carrier);
        // SAFETY: TUNSETCARRIER reads one C int, which is what the pointer leads to.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETCARRIER, &raw const value) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Takes the next super-packet from the kernel, or `None` when none waits.
    ///
    /// # Errors
    ///
    /// The kernel's error; `EBADFD` once the interface was removed.
    pub fn read<'b>(&self, burst: &'b mut Burst) -> io::Result<Option<SuperPacket<'b>>> {
        match (&self.file).read(&mut burst.memory) {
            Ok(len) => Ok(Some(SuperPacket { packet: Some(&mut burst.memory[..len]) })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands one complete IP packet to the kernel.
    ///
    /// The receive path of a tunnel goes through a [`Coalescer`](super::Coalescer) instead.
    ///
    /// # Errors
    ///
    /// `EIO` while the interface is down, `EINVAL` if this is no IP packet, and whatever else the
    /// kernel says.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Memory for one super-packet, allocated once and used for every read.
#[derive(Debug)]
pub struct Burst {
    memory: Box<[u8]>,
}

impl Burst {
    /// Room for the largest super-packet; pages are touched only as far as packets reach.
    pub fn new() -> Self {
        Self { memory: vec![0; MAX_PACKET].into_boxed_slice() }
    }
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}

/// What one read returned: one or more inner packets in the memory of a [`Burst`].
#[derive(Debug)]
pub struct SuperPacket<'b> {
    /// Mutable, because a segment's headers are written in front of its payload.
    packet: Option<&'b mut [u8]>,
}

impl SuperPacket<'_> {
    /// The next inner packet, finished: complete headers, checksums filled in.
    ///
    /// It is valid until the next call. This is not an [`Iterator`] because packets of one
    /// super-packet share memory: the headers of each are written over the end of the one before.
    pub fn next_packet(&mut self) -> Option<&[u8]> {
        self.packet.take().map(|packet| &*packet)
    }
}

fn open_node(name: &str) -> Result<File, OpenError> {
    let open = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(NODE);
    open.map_err(|source| {
        let name = name.to_owned();
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
                OpenError::NodeMissing { name, source }
            }
            Some(libc::EACCES | libc::EPERM) => OpenError::NodePermission { name, source },
            _ => OpenError::Other { name, source },
        }
    })
}

/// Sets the queue length and returns the index of the interface just created.
///
/// By netlink, because the older ioctl for the queue length is refused in user namespaces. Who owns
/// a persistent interface but no capability may still use it, with the queue that it has.
fn set_up(name: &str, queue_len: Option<u32>) -> Result<u32, netlink::Error> {
    let mut netlink = Netlink::open()?;
    let link = netlink.link(name)?;
    let index = link.ok_or(netlink::Error::NotFound { action: "find it again".into() })?.index;
    match queue_len.map(|packets| netlink.set_queue_len(index, packets)) {
        None | Some(Ok(()) | Err(netlink::Error::Permission { .. })) => Ok(index),
        Some(Err(error)) => Err(error),
    }
}

/// What a refused TUNSETIFF means. `EINVAL` is what it says of an existing interface that is no TUN:
/// the other causes of `EINVAL`, the name and the flags, are ours and known to be good.
fn attach_error(name: String, source: io::Error) -> OpenError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => OpenError::Permission { name, source },
        Some(libc::EBUSY | libc::EEXIST | libc::EINVAL) => OpenError::NameInUse { name, source },
        _ => OpenError::Other { name, source },
    }
}
