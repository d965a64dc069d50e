//! Fitting a cell to the machine: slower links and longer times, equal in everything else.
//!
//! The capacity of a machine in emulated bits per second is limited. A cell whose links exceed it
//! is run in slow motion by a factor k: rates ÷ k; the links' delays and jitter, the hold time,
//! keepalive, dead time and how long the traffic lasts × k. Queues in bytes and windows in packets stay, because k times as
//! long at a rate k times lower is the same number of either, and so does what a flow can have
//! under way. What does not scale are the timers of the kernel's TCP, above all its least
//! retransmission time-out of 200 ms.

use std::time::Duration;

use mpt_sim::profile::Profile;

use crate::cell::ideal;
use crate::cell::{Cell, Framing, Kind, Traffic};
use crate::record::megabits;

/// Steps of the factor, times any power of ten: round numbers, so that a run repeated on the same
/// machine is scaled the same.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// The share of the ceiling that the load of a cell may take.
const SHARE: f64 = 0.5;

/// By how much the ceiling, which is measured with plain TCP, flatters: through a tunnel each packet
/// crosses both hosts' stacks twice and a daemon on either side.
const TUNNEL: f64 = 3.0;

impl Cell {
    /// Whether its traffic asks for all that the links have.
    pub fn is_greedy(&self) -> bool {
        match self.traffic.kind {
            Kind::Ftp | Kind::Quic | Kind::Tcp => true,
            // A call takes its time, however slow the links are.
            Kind::Calls | Kind::Media | Kind::Ping | Kind::Udp => false,
        }
    }

    /// Σ link rates in the direction of the traffic, in bit/s; 0 if one has no limit.
    pub fn link_rates(&self) -> f64 {
        ideal::rates(self).into_iter().sum::<Option<f64>>().unwrap_or(0.0)
    }

    /// The cell in slow motion, if its links together, loaded by a tunnel, ask for more than half of
    /// `ceiling` bit/s.
    #[must_use]
    pub fn scaled_to(self, ceiling: f64) -> Self {
        let wanted = self.link_rates() * TUNNEL / (SHARE * ceiling);
        if !self.is_greedy() || wanted <= 1.0 {
            return self;
        }
        let reason = format!(
            "a tunnel over {:.0} Mbit/s of links needs more than half of this machine's capacity; \
             its emulator carries {:.0} Mbit/s of plain TCP",
            megabits(self.link_rates()),
            megabits(ceiling),
        );
        let mut cell = self.scaled_by(round_up(wanted));
        cell.scale_reason = reason;
        cell
    }

    fn scaled_by(mut self, factor: f64) -> Self {
        for link in &mut self.topology.links {
            for profile in [&mut link.forward, &mut link.backward] {
                slow_down(profile, factor);
            }
        }
        if self.tunnel.framing == Framing::Plain {
            self.tunnel.reorder.get_or_insert_default().max_delay *= factor;
        }
        self.tunnel.keepalive *= factor;
        self.tunnel.dead_time *= factor;
        // As many round trips as at full speed: slow start takes no larger part of it.
        let Traffic { seconds, omit, long_seconds, .. } = &mut self.traffic;
        let times = [seconds, omit].into_iter().chain(long_seconds);
        times.for_each(|time| *time *= factor);
        self.events.iter_mut().for_each(|event| event.at *= factor);
        if let Some(outage) = &mut self.outage {
            outage.seconds *= factor;
            for cut in &mut outage.cuts {
                cut.at *= factor;
                cut.until *= factor;
            }
        }
        self.scale *= factor;
        self
    }
}

fn slow_down(profile: &mut Profile, factor: f64) {
    let longer = |time: Duration| time.mul_f64(factor);
    // The queue first: where the file does not say, it follows from the rate that is in the file.
    profile.queue = profile.queue_limit();
    profile.rate = profile.rate.map(|rate| (rate as f64 / factor).round() as u64);
    profile.delay = longer(profile.delay);
    profile.jitter = longer(profile.jitter);
    for (from, until) in &mut profile.blackouts {
        (*from, *until) = (longer(*from), longer(*until));
    }
}

/// The least 1, 2 or 5 times a power of ten that is not below `wanted`, which is above 1.
fn round_up(wanted: f64) -> f64 {
    let decade = 10f64.powf(wanted.log10().floor());
    let steps = STEPS.iter().chain(&[10.0]).map(|step| step * decade);
    steps.into_iter().find(|&factor| factor >= wanted).unwrap_or(wanted.ceil())
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    use super::*;

    fn cell(text: &str) -> Cell {
        let file = format!("title = 't'\n{text}");
        Experiment::parse("x", &file).unwrap_or_else(|error| panic!("{error}")).cells.remove(0)
    }

    const PAIR: &str = "[[link]]\nname = 'a'\nrate_mbps = 1000\ndelay_ms = 3\njitter_ms = 0.5\n\
                        [[link]]\nname = 'b'\nrate_mbps = 100\n";

    #[test]
    fn cells_beyond_the_machines_capacity_run_in_slow_motion() {
        let scaled = cell(PAIR).scaled_to(3e9);
        assert_eq!(scaled.scale, 5.0, "three times 1100 are 2.2 times half of 3000");
        let [a, b] = scaled.topology.links.as_slice() else { panic!() };
        assert_eq!((a.forward.rate, b.backward.rate), (Some(200_000_000), Some(20_000_000)));
        assert_eq!(a.forward.delay, Duration::from_millis(15));
        assert_eq!(a.backward.jitter, Duration::from_micros(2500));
        assert_eq!(a.forward.queue, Some(6_250_000), "50 ms at the rate in the file");
        assert_eq!(scaled.tunnel.classic_order().max_delay, 0.5);
        assert_eq!((scaled.tunnel.keepalive, scaled.tunnel.dead_time), (2.5, 8.75));
        assert_eq!((scaled.traffic.seconds, scaled.traffic.omit), (60.0, 10.0));
        assert!(scaled.scale_reason.contains("1100 Mbit/s"), "{}", scaled.scale_reason);
    }

    #[test]
    fn cells_within_the_ceiling_are_not_scaled() {
        assert_eq!(cell(PAIR).scaled_to(6.6e9).scale, 1.0);
        let pings = cell(&format!("{PAIR}[traffic]\nkind = 'ping'\n")).scaled_to(1e9);
        assert_eq!(pings.scale, 1.0);
        assert_eq!(cell("[[link]]\nname = 'a'\n").scaled_to(1e9).scale, 1.0, "no limit, no sum");
    }

    #[test]
    fn factors_are_round() {
        for (wanted, factor) in [(1.01, 2.0), (2.0, 2.0), (2.1, 5.0), (5.5, 10.0), (11.0, 20.0)] {
            assert_eq!(round_up(wanted), factor);
        }
    }
}
