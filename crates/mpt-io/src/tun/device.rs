//! The TUN device: opening it, and one super-packet at a time out and in.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::error::NODE;
use super::{Burst, Offloads, OpenError, Outlet, SuperPacket, VnetHeader, offload};
use crate::interface;
use crate::netlink::{self, Netlink};

/// A TUN interface that lives as long as this value.
///
/// Reading and writing never block. The descriptor keeps working when the calling thread moves to
/// another network namespace.
#[derive(Debug)]
pub struct Device {
    file: File,
    name: String,
    index: u32,
    offloads: Offloads,
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
    /// What to ask the kernel for; what it does not have is given up alone.
    pub offloads: Offloads,
}

impl Device {
    /// Creates the interface in the calling thread's network namespace, down and without addresses.
    ///
    /// It is removed when the device is dropped, unless it was created as persistent (`ip tuntap
    /// add`): such an interface is used if no other process holds it.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; each names the interface and what would help.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let name = options.name.clone();
        interface::check_name(&name)?;
        let (file, offloads) = open_with(&name, options.offloads.consistent())?;
        match set_up(&name, options.queue_len) {
            Ok(index) => Ok(Self { file, name, index, offloads }),
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

    /// What was asked for and granted.
    pub fn offloads(&self) -> Offloads {
        self.offloads
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
    /// One that cannot be what it claims is counted in `burst` and returned empty.
    ///
    /// # Errors
    ///
    /// The kernel's error; once the interface was removed one that [`is_removal`](Self::is_removal).
    pub fn read<'b>(&self, burst: &'b mut Burst) -> io::Result<Option<SuperPacket<'b>>> {
        let (memory, counters) = burst.parts();
        match (&self.file).read(memory) {
            Ok(len) => Ok(Some(SuperPacket::new(&mut memory[..len], self.offloads, counters))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an error of [`read`](Self::read) says that somebody has removed the interface
    /// (`ip link del`). This device is of no use then, and its name is free.
    pub fn is_removal(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EBADFD)
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
        self.write_with(&VnetHeader::NONE, packet)
    }
}

impl Outlet for Device {
    fn offloads(&self) -> Offloads {
        self.offloads
    }

    fn write_with(&self, header: &VnetHeader, packet: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        let result = if self.offloads.vnet_header {
            file.write_vectored(&[IoSlice::new(&header.to_bytes()), IoSlice::new(packet)])
        } else if *header == VnetHeader::NONE {
            file.write(packet)
        } else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        result.map(|_| ())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn open_node(name: &str) -> Result<File, OpenError> {
    let open = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(NODE);
    open.map_err(|source| OpenError::of_node(name, source))
}

/// Makes `file` the other side of the interface `name`.
fn attach(file: &File, name: &str, vnet_header: bool) -> Result<(), OpenError> {
    let mut request = interface::request(name)?;
    let vnet_header = if vnet_header { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | vnet_header) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which is what the pointer leads to.
    match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } {
        -1 => Err(OpenError::of_attaching(name, io::Error::last_os_error())),
        _ => Ok(()),
    }
}

/// Opens and attaches with as many of the `asked` offloads as there are.
fn open_with(name: &str, asked: Offloads) -> Result<(File, Offloads), OpenError> {
    let file = open_node(name)?;
    if asked.vnet_header && offload::has_vnet_header(file.as_fd()) {
        attach(&file, name, true)?;
        match offload::set(file.as_fd(), asked) {
            Ok(granted) => return Ok((file, granted)),
            // With the descriptor the interface goes, and with it the header.
            Err(_) => {
                drop(file);
                return open_with(name, Offloads::NONE);
            }
        }
    }
    attach(&file, name, false)?;
    Ok((file, Offloads::NONE))
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
