//! Links in real time, in user space.
//!
//! A link is two TUN devices, one in each host's namespace, whose descriptors one thread of this
//! process holds: what the left host routes into its device comes out of the right host's, after
//! [`mpt_sim::link::Link`] has done to it what the profile says, and back again through another
//! such link. It needs no traffic control of the kernel, and simulator and lab share one model.
//! Without a vnet header the kernel hands over finished packets of at most the MTU, so loss, delay
//! and queue see each real packet.
//!
//! The model owns the queue. The device's own (its `txqueuelen`) is only where packets wait for
//! the thread to be scheduled; it is read at once, so that normally it is empty and
//! [`DEVICE_QUEUE`] is no second buffer in series.
//!
//! An emulator that shares its processors can be late, and then the link did not match its profile.
//! So the thread records how late every packet was, and a [`Report`] says whether measurements
//! across the link are doubtful, and why.
//!
//! Where the kernel has netem it can be the link instead: see [`netem`]. A [`Wire`] is either.

mod device;
mod handle;
mod lateness;
pub mod netem;
mod relay;
mod report;
pub(crate) mod tap;
mod taps;

use std::net::IpAddr;

use anyhow::{Context as _, Result, bail};
use mpt_sim::nat::Nat;
use mpt_sim::profile::Profile;
use serde::{Deserialize, Serialize};

use crate::topology::{LinkSpec, Side};
pub use device::{DEVICE_QUEUE, End};
use handle::Handle;
pub use handle::TapHandle;
pub use lateness::Lateness;
use netem::Cable;
pub(crate) use netem::Plug;
use relay::Command;
pub use report::{DirectionReport, Report};
pub use tap::{Tap, Way};

/// A direction of a link, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the left host to the right one.
    Forward,
    /// From the right host to the left one.
    Backward,
    /// Either.
    Both,
}

/// A running link. Dropping an emulated one ends its thread and removes its devices.
#[derive(Debug)]
pub struct Wire {
    name: String,
    carrier: Carrier,
}

/// What carries a link's packets.
#[derive(Debug)]
enum Carrier {
    Relay(Handle),
    Netem(Box<Cable>),
}

impl Wire {
    /// Joins two devices by a link. Its black-out windows count from here. With an address in
    /// `nat` there is a translator with that outside address between the left end and the link; it
    /// keeps ports until it rebinds, and lets UDP and TCP pass.
    ///
    /// All chance follows from `seeds`: forward, then backward.
    ///
    /// # Errors
    ///
    /// The kernel refuses a thread or a poll descriptor.
    pub fn start(
        link: &LinkSpec,
        left: End,
        right: End,
        nat: Option<IpAddr>,
        seeds: [u64; 2],
    ) -> Result<Self> {
        let nat = nat.map(|outside| Nat::new(outside).with_preserved_ports());
        let carrier = Carrier::Relay(Handle::start(link, [left, right], nat, seeds)?);
        Ok(Self { name: link.name.clone(), carrier })
    }

    /// Has the kernel emulate a link between the ends of a pair of interfaces.
    ///
    /// # Errors
    ///
    /// [`NetemError::Missing`](netem::NetemError::Missing) where the kernel has no netem,
    /// [`Unsupported`](netem::Unsupported) where it cannot do what the profile says, and whatever
    /// else the kernel refuses.
    pub(crate) fn plug(link: &LinkSpec, plugs: [Plug; 2], seeds: [u64; 2]) -> Result<Self> {
        let cable = Cable::start(link, plugs, seeds)
            .with_context(|| format!("cannot emulate link `{}`", link.name))?;
        Ok(Self { name: link.name.clone(), carrier: Carrier::Netem(cable.into()) })
    }

    /// The link's name, which is also its devices'.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its packets pass this process, so that it can be tapped.
    pub fn is_emulated(&self) -> bool {
        matches!(self.carrier, Carrier::Relay(_))
    }

    /// Cuts or restores the link in a direction. When this returns it is done; packets in flight
    /// arrive.
    pub fn set_blackout(&self, direction: Direction, cut: bool) {
        match &self.carrier {
            Carrier::Relay(relay) => {
                relay.order(|done| Command::Blackout { direction, cut, done });
            }
            Carrier::Netem(cable) => cable.set_blackout(direction, cut),
        }
    }

    /// Replaces the profile of a direction. Packets in flight keep their due time. If netem does
    /// not support the profile, the link stays unchanged and its report says so.
    pub fn set_profile(&self, direction: Direction, profile: Profile) {
        match &self.carrier {
            Carrier::Relay(relay) => {
                relay.order(|done| Command::Profile { direction, profile, done });
            }
            Carrier::Netem(cable) => cable.set_profile(direction, &profile),
        }
    }

    /// Takes the carrier of both ends away, as a pulled cable does, or gives it back. Without it both
    /// hosts see that the interface is down, and nothing passes. The kernel's virtual interfaces keep
    /// their carrier, so with netem a link without one is merely silent.
    pub fn set_carrier(&self, present: bool) {
        self.change_carrier(None, present);
    }

    /// As [`set_carrier`](Self::set_carrier), but only the host on that side sees it, as where a
    /// switch or a modem stands in between. Nothing passes in either direction all the same.
    pub fn set_carrier_of(&self, side: Side, present: bool) {
        self.change_carrier(Some(side), present);
    }

    fn change_carrier(&self, end: Option<Side>, present: bool) {
        match &self.carrier {
            Carrier::Relay(relay) => relay.order(|done| Command::Carrier { end, present, done }),
            Carrier::Netem(cable) => cable.set_blackout(Direction::Both, !present),
        }
    }

    /// Has the translator in front of the left host forget its mappings, as a reboot does. Does
    /// nothing on a link without one.
    pub fn rebind(&self) {
        if let Carrier::Relay(relay) = &self.carrier {
            relay.order(|done| Command::Rebind { done });
        }
    }

    /// Begins a new record of lateness, stalls and device drops, at the start of a measurement. The
    /// link's own statistics continue.
    pub fn restart_record(&self) {
        match &self.carrier {
            Carrier::Relay(relay) => relay.order(|done| Command::Restart { done }),
            Carrier::Netem(cable) => cable.restart_record(),
        }
    }

    /// What the link did so far, and whether to believe it.
    pub fn report(&self) -> Report {
        match &self.carrier {
            Carrier::Relay(relay) => relay.order(|done| Command::Report { done }),
            Carrier::Netem(cable) => cable.report(),
        }
    }

    /// Has the link offer its packets to the taps of its left and of its right end.
    ///
    /// # Errors
    ///
    /// Another capture of the link is running, or its packets do not pass this process.
    pub fn tap(&self, taps: [Tap; 2]) -> Result<TapHandle> {
        match &self.carrier {
            Carrier::Relay(relay) => relay.tap(taps),
            Carrier::Netem(_) => bail!("the packets of link `{}` pass only the kernel", self.name),
        }
    }
}
