//! Which of the kernel's ways to move many packets at once a tunnel may use.

use super::report::Problems;
use super::schema::{Tabled as _, settings};
use super::table::Table;
use super::written::Written;
use super::{value, writer};

settings! {
    /// The permitted offloads, used if the kernel supports them. All are on by default.
    #[derive(Copy, Eq)]
    Offloads "offloads", read as OffloadsRead, with none: () {
        /// Exchange super-packets with the interface; required by `tso` and `uso`.
        vnet: bool = default(value::flag, true), InPlace;
        /// TCP in super-packets.
        tso: bool = default(value::flag, true), InPlace;
        /// UDP in super-packets.
        uso: bool = default(value::flag, true), InPlace;
        /// Send several datagrams per system call (UDP GSO).
        gso: bool = default(value::flag, true), InPlace;
        /// Receive several datagrams per system call (UDP GRO).
        gro: bool = default(value::flag, true), InPlace;
    }
}

impl Offloads {
    pub(crate) const ALL: Self = Self { vnet: true, tso: true, uso: true, gso: true, gro: true };

    /// The environment variable that switches some off for all tunnels of a daemon.
    pub(crate) const VARIABLE: &str = "MPT_OFFLOADS";

    /// These, less those that a list switches off: names with commas between them, or `off` for
    /// all.
    ///
    /// # Errors
    ///
    /// The name that is none.
    pub(crate) fn without(mut self, list: &str) -> Result<Self, String> {
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "off" => self = Self::NONE,
                name => *self.by_name(name).ok_or_else(|| name.to_owned())? = false,
            }
        }
        Ok(self)
    }

    const NONE: Self = Self { vnet: false, tso: false, uso: false, gso: false, gro: false };

    fn by_name(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "vnet" => Some(&mut self.vnet),
            "tso" => Some(&mut self.tso),
            "uso" => Some(&mut self.uso),
            "gso" => Some(&mut self.gso),
            "gro" => Some(&mut self.gro),
            _ => None,
        }
    }
}

/// The offloads of the tunnel in `table`, or `None` with what is wrong noted.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems) -> Option<Offloads> {
    let Some(table) = table.table("offloads", &Offloads::KEYS, problems).ok()? else {
        return Some(Offloads::ALL);
    };
    let offloads = Offloads::read(&table, (), problems);
    table.finish(problems);
    offloads.whole()
}

impl Written for Offloads {
    fn written(&self) -> String {
        writer::whole(|out| self.write(out, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_switches_off_what_it_names() {
        let all = Offloads::ALL;
        assert_eq!(all.without(""), Ok(all));
        assert_eq!(all.without("tso, gro"), Ok(Offloads { tso: false, gro: false, ..all }));
        assert_eq!(all.without("off"), Ok(Offloads::NONE));
        assert_eq!(all.without("tso,teleport"), Err("teleport".to_owned()));
    }

    #[test]
    fn every_key_names_an_offload() {
        for key in Offloads::KEYS.names() {
            assert_ne!(Offloads::ALL.without(key), Ok(Offloads::ALL), "{key}");
        }
    }
}
