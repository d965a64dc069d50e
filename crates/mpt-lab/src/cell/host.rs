//! What a host's own limits leave of the links.
//!
//! A TCP sender keeps what is under way in its send buffer, up to the third value of `net.ipv4.tcp_wmem`. The kernel
//! counts its own bookkeeping there, about as much again as the payload. Where the buffer is smaller than that, a flow
//! cannot fill the links, whatever lies between.

use super::ideal;
use super::{Cell, Kind};

/// Payload and bookkeeping, over payload.
const BOOKKEEPING: f64 = 2.0;

impl Cell {
    /// Bytes that each TCP flow has to have under way to fill all links: the sum of their rates, times the round trip of
    /// the slowest, over the flows. `None` for other traffic, or if a link has no limit.
    pub fn under_way(&self) -> Option<f64> {
        let is_tcp = matches!(self.traffic.kind, Kind::Media | Kind::Tcp);
        let rates = ideal::rates(self).into_iter().sum::<Option<f64>>().filter(|_| is_tcp)?;
        let trips = self.topology.links.iter().map(|link| link.forward.delay + link.backward.delay);
        let flows = if self.traffic.kind == Kind::Tcp { self.traffic.flows } else { 1 };
        Some(rates / 8.0 * trips.max()?.as_secs_f64() / f64::from(flows))
    }

    /// Why a host whose send buffers hold so many bytes limits the flows, for people; `None` if it does not.
    pub fn host_limit(&self, send_buffer: u64) -> Option<String> {
        let needed = self.under_way()? * BOOKKEEPING;
        (needed > send_buffer as f64).then(|| {
            format!(
                "the sending host's buffer of {:.1} MB (net.ipv4.tcp_wmem) is less than the {:.1} MB with \
                 which a TCP flow fills these links",
                send_buffer as f64 / 1e6,
                needed / 1e6
            )
        })
    }
}

/// The largest send buffer of a TCP socket, in bytes, from the text of `net.ipv4.tcp_wmem`.
pub(crate) fn largest_of(text: &str) -> Option<u64> {
    text.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn cell(traffic: &str) -> Cell {
        let text = format!(
            "title = 't'\n[[link]]\nname = 'a'\nrate_mbps = 50\ndelay_ms = 10\n\
             [[link]]\nname = 'b'\nrate_mbps = 50\ndelay_ms = 160\n[traffic]\n{traffic}"
        );
        Experiment::parse("x", &text).unwrap_or_else(|error| panic!("{error}")).cells.remove(0)
    }

    #[test]
    fn a_buffer_below_twice_what_is_under_way_limits_the_host() {
        // 100 Mbit/s for 320 ms are 4 MB.
        assert_eq!(cell("").under_way(), Some(4e6));
        let why = cell("").host_limit(7_999_999).unwrap();
        assert!(why.contains("8.0 MB (net.ipv4.tcp_wmem)") && why.contains("the 8.0 MB"), "{why}");
        assert_eq!(cell("").host_limit(8_000_000), None);
        assert_eq!(cell("flows = 16").under_way(), Some(250e3), "each has its own");
        assert_eq!(cell("kind = 'quic'").under_way(), None, "that has no kernel's buffer");
    }

    #[test]
    fn the_third_value_is_the_largest() {
        assert_eq!(largest_of("4096\t16384\t4194304\n"), Some(4_194_304));
        assert_eq!(largest_of("4096 16384"), None);
    }
}
