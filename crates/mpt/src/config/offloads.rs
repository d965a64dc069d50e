//! Which of the kernel's ways to move many packets at once a tunnel may use.

use super::report::Problems;
use super::table::Table;
use super::{keys, value};

/// What may be used where the kernel has it. All is on unless switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offloads {
    /// Exchange packets with the interface behind a header that says what is left to do with
    /// them; the two next need it.
    pub(crate) vnet: bool,
    /// Take TCP super-packets from the interface and give it such.
    pub(crate) tso: bool,
    /// The same for UDP.
    pub(crate) uso: bool,
    /// Send runs of datagrams with one call (`UDP_SEGMENT`).
    pub(crate) gso: bool,
    /// Receive runs of datagrams with one call (`UDP_GRO`).
    pub(crate) gro: bool,
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

    /// Each with the key that it has in the file.
    pub(super) fn by_key(self) -> [(&'static str, bool); 5] {
        let Self { vnet, tso, uso, gso, gro } = self;
        [("vnet", vnet), ("tso", tso), ("uso", uso), ("gso", gso), ("gro", gro)]
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
    let Some(table) = table.table("offloads", &keys::OFFLOADS, problems).ok()? else {
        return Some(Offloads::ALL);
    };
    let mut offloads = Offloads::ALL;
    let mut good = true;
    for key in keys::OFFLOADS.keys {
        let on = table.optional(key, true, problems, value::flag);
        good &= on.is_some();
        if let (Some(on), Some(offload)) = (on, offloads.by_name(key)) {
            *offload = on;
        }
    }
    table.finish(problems);
    good.then_some(offloads)
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
        for key in keys::OFFLOADS.keys {
            assert_ne!(Offloads::ALL.without(key), Ok(Offloads::ALL), "{key}");
        }
    }
}
