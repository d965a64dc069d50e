//! What the kernel and this crate do for each other at a TUN device.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::vnet;

/// Work that is saved at a TUN device by handing over many packets as one.
///
/// Requested in [`Options`](super::Options); the subset that the kernel supports is returned by
/// [`Device::offloads`](super::Device::offloads). The last two require the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// A [header](super::VnetHeader) stands in front of every packet, and the kernel leaves inner
    /// checksums to be completed here. Without it every packet is read and written alone.
    pub vnet_header: bool,
    /// TCP segments are read and written many at a time.
    pub tso: bool,
    /// UDP datagrams of equal size are read and written many at a time. Kernels before 6.2 cannot.
    pub uso: bool,
}

/// `TUN_F_` flags of `linux/if_tun.h`: what may be read from the device.
mod flag {
    pub(super) const CSUM: libc::c_uint = 0x01;
    pub(super) const TSO4: libc::c_uint = 0x02;
    pub(super) const TSO6: libc::c_uint = 0x04;
    pub(super) const USO4: libc::c_uint = 0x20;
    pub(super) const USO6: libc::c_uint = 0x40;
}

impl Offloads {
    /// Everything.
    pub const ALL: Self = Self { vnet_header: true, tso: true, uso: true };
    /// Nothing: one packet per read and per write, finished by the kernel.
    pub const NONE: Self = Self { vnet_header: false, tso: false, uso: false };

    /// The same without what cannot be had: all need the header.
    pub(super) fn consistent(self) -> Self {
        if self.vnet_header { self } else { Self::NONE }
    }

    /// What to try next after the kernel refused this; `None` when only the header is left.
    ///
    /// The newest flag is dropped first. The kernel requires both versions of USO or neither, and
    /// returns `EINVAL` for every flag that it does not support.
    fn step_down(self) -> Option<Self> {
        match self {
            Self { uso: true, .. } => Some(Self { uso: false, ..self }),
            Self { tso: true, .. } => Some(Self { tso: false, ..self }),
            _ => None,
        }
    }

    fn flags(self) -> libc::c_uint {
        let tso = if self.tso { flag::TSO4 | flag::TSO6 } else { 0 };
        let uso = if self.uso { flag::USO4 | flag::USO6 } else { 0 };
        flag::CSUM | tso | uso
    }
}

impl Default for Offloads {
    fn default() -> Self {
        Self::ALL
    }
}

/// Whether the driver supports the header; checked before a device is attached.
pub(super) fn has_vnet_header(node: BorrowedFd<'_>) -> bool {
    let mut features: libc::c_uint = 0;
    // SAFETY: TUNGETFEATURES writes one C unsigned int, which is what the pointer leads to.
    let result = unsafe { libc::ioctl(node.as_raw_fd(), libc::TUNGETFEATURES, &raw mut features) };
    result == 0 && features & libc::IFF_VNET_HDR as libc::c_uint != 0
}

/// Sets up a device that was attached with the header, and says what the kernel granted.
///
/// # Errors
///
/// If not even the header can be used; the device must then be attached again without it.
pub(super) fn set(device: BorrowedFd<'_>, asked: Offloads) -> io::Result<Offloads> {
    let len = vnet::LEN as libc::c_int;
    // SAFETY: TUNSETVNETHDRSZ reads one C int, which is what the pointer leads to.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const len) } == -1 {
        return Err(io::Error::last_os_error());
    }
    obtain(asked, |flags| {
        // SAFETY: TUNSETOFFLOAD takes its flags by value.
        match unsafe {
            libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags))
        } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    })
}

/// Asks for less and less until the kernel agrees.
fn obtain(
    asked: Offloads,
    mut try_flags: impl FnMut(libc::c_uint) -> io::Result<()>,
) -> io::Result<Offloads> {
    let mut wanted = asked;
    loop {
        let Err(error) = try_flags(wanted.flags()) else { return Ok(wanted) };
        wanted = wanted.step_down().ok_or(error)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that supports only some flags.
    fn kernel(known: libc::c_uint) -> impl FnMut(libc::c_uint) -> io::Result<()> {
        move |flags| match flags & !known {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    #[test]
    fn each_offload_is_disabled_separately() {
        use flag::*;
        let everything = CSUM | TSO4 | TSO6 | USO4 | USO6;
        let no_uso = Offloads { uso: false, ..Offloads::ALL };
        let no_tso = Offloads { tso: false, ..no_uso };
        for (known, expected) in [
            (everything, Offloads::ALL),
            (everything & !USO6, no_uso),
            (CSUM | TSO4 | TSO6, no_uso),
            (CSUM | TSO4, no_tso),
            (CSUM, no_tso),
        ] {
            assert_eq!(obtain(Offloads::ALL, kernel(known)).unwrap(), expected, "{known:#x}");
        }
        let error = obtain(Offloads::ALL, kernel(0)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn only_requested_offloads_are_granted() {
        let only_uso = Offloads { tso: false, ..Offloads::ALL };
        assert_eq!(obtain(only_uso, kernel(!0)).unwrap(), only_uso);
        assert_eq!(Offloads { vnet_header: false, ..Offloads::ALL }.consistent(), Offloads::NONE);
        assert_eq!(only_uso.consistent(), only_uso);
    }
}
