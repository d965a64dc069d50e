//! Offload features of an interface, as `ethtool -k` and `ethtool -K` show and set them.
//!
//! A pair of virtual interfaces passes super-packets whole, which no wire does. Switching
//! `tx-tcp-segmentation`, `tx-tcp6-segmentation` and `tx-udp-segmentation` off and `rx-gro` on makes
//! such a pair behave like a wire with network cards at its ends.

use std::io;

use crate::interface::{self, NameError};

/// From `linux/ethtool.h`.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
/// Words per block of 32 features in the answer to `ETHTOOL_GFEATURES`: available, requested,
/// active, never changed.
const BLOCK: usize = 4;

/// One offload feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name of it, such as `tx-udp-segmentation`.
    pub name: String,
    /// Whether it can be switched.
    pub changeable: bool,
    /// Whether it is on.
    pub active: bool,
}

/// Why features could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name cannot be an interface's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The kernel does not support the feature.
    #[error("interface '{interface}' has no feature '{feature}'; see 'ethtool -k {interface}'")]
    Unknown {
        /// The interface.
        interface: String,
        /// The feature asked for.
        feature: String,
    },
    /// The feature stays as it is.
    #[error("feature '{feature}' of interface '{interface}' cannot be changed")]
    Fixed {
        /// The interface.
        interface: String,
        /// The feature asked for.
        feature: String,
    },
    /// The kernel refused.
    #[error("cannot {step} the features of interface '{interface}': {source}")]
    Refused {
        /// The interface.
        interface: String,
        /// What was tried.
        step: &'static str,
        /// What the kernel said; `EPERM` means that `CAP_NET_ADMIN` is missing.
        source: io::Error,
    },
}

/// All features of the kernel with their state at `interface`.
///
/// # Errors
///
/// See [`Error`].
pub fn features(interface: &str) -> Result<Vec<Feature>, Error> {
    let names = names(interface)?;
    let blocks = names.len().div_ceil(32);
    let mut data = vec![0; 2 + blocks * BLOCK];
    (data[0], data[1]) = (ETHTOOL_GFEATURES, blocks as u32);
    ask(interface, "read", &mut data)?;
    let bit = |column: usize, feature: usize| {
        data[2 + feature / 32 * BLOCK + column] >> (feature % 32) & 1 != 0
    };
    let feature = |(index, name)| Feature {
        name,
        changeable: bit(0, index) && !bit(3, index),
        active: bit(2, index),
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

/// Switches one feature on or off.
///
/// # Errors
///
/// See [`Error`]; [`Error::Fixed`] if the kernel took the request but left the feature as it was.
pub fn set_feature(interface: &str, feature: &str, on: bool) -> Result<(), Error> {
    let names = names(interface)?;
    let (interface_name, feature_name) = (interface.to_owned(), feature.to_owned());
    let Some(index) = names.iter().position(|name| name == feature) else {
        return Err(Error::Unknown { interface: interface_name, feature: feature_name });
    };
    let blocks = names.len().div_ceil(32);
    // Two words per block: which features to set, and to what.
    let mut data = vec![0; 2 + blocks * 2];
    (data[0], data[1]) = (ETHTOOL_SFEATURES, blocks as u32);
    data[2 + index / 32 * 2] = 1 << (index % 32);
    data[2 + index / 32 * 2 + 1] = u32::from(on) << (index % 32);
    ask(interface, "set", &mut data)?;
    match features(interface)?.get(index) {
        Some(feature) if feature.active == on => Ok(()),
        _ => Err(Error::Fixed { interface: interface_name, feature: feature_name }),
    }
}

/// The names of all features, each at the place of its bit.
fn names(interface: &str) -> Result<Vec<String>, Error> {
    // Command, reserved, a 64-bit mask of string sets, and then one word per set: its size.
    let mask = (1_u64 << ETH_SS_FEATURES).to_ne_bytes();
    let half = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| mask[at + i]));
    let mut data = [ETHTOOL_GSSET_INFO, 0, half(0), half(4), 0];
    ask(interface, "count", &mut data)?;
    // A kernel of today has 64; the limit only keeps nonsense from becoming an allocation.
    let count = (data[4] as usize).min(4096);

    let mut data = vec![0; 3 + count * ETH_GSTRING_LEN / 4];
    (data[0], data[1], data[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32);
    ask(interface, "name", &mut data)?;
    let bytes: Vec<u8> = data[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = |name: &[u8]| {
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..len]).into_owned()
    };
    Ok(bytes.chunks_exact(ETH_GSTRING_LEN).map(text).collect())
}

/// Makes one ethtool request whose structure is `data`, starting with the command.
fn ask(interface: &str, step: &'static str, data: &mut [u32]) -> Result<(), Error> {
    let mut request = interface::request(interface)?;
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL takes an ifreq whose data points to the structure of the command. Callers
    // size `data` for the command and the number of elements they state in it, which bounds what
    // the kernel writes; it is exclusively borrowed for the call.
    unsafe { interface::ask(libc::SIOCETHTOOL as libc::Ioctl, &mut request) }
        .map_err(|source| Error::Refused { interface: interface.to_owned(), step, source })
}
