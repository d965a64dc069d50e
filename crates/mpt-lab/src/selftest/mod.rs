//! What the emulator is worth on this machine, measured without any tunnel.
//!
//! Every report of the lab depends on links that match their profiles. So, in a few seconds, the
//! self-test creates links with known properties, sends numbered packets through them by kernel
//! sockets, and compares the arrivals with the settings:
//!
//! | property | set | accepted |
//! |---|---|---|
//! | delay | 10 and 50 ms | the median one-way delay within 0.3 ms |
//! | jitter | 20 ms ± 2 ms | the standard deviation within 5 %, of 4000 packets or more; without those under way while the sending thread itself was held up |
//! | loss | 1 % | within three standard deviations of a binomial over 20,000 packets |
//! | rate | 20 and 100 Mbit/s | outer IP bits per second within 1 %, under 25 % too much |
//!
//! All of it is read from the clock of the receiving thread and from the packets that arrived, nothing
//! from the emulator's own counters. Delay and jitter share one lab in which little else happens; loss
//! and rates share a busy one.
//!
//! Last comes the *ceiling* ([`ceiling()`]): how much the emulator carries at the most.
//!
//! A virtual machine that loses its processor for 50 ms delays packets by 50 ms, and that is no
//! defect of the emulator. A check that fails while the emulator itself reports a stall
//! ([`crate::emulator::Report`]) is therefore repeated, at most twice, and the output says so.

mod ceiling;
mod check;
mod report;
mod stream;

use std::time::Duration;

use anyhow::{Context as _, Result};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;

use crate::lab::Lab;
use crate::results::{Check, SelfTest};
use crate::stop::Stop;
use crate::topology::{LinkSpec, Topology};
use check::Property;
pub use report::text;
use stream::{Arrivals, Stream, Timetable};

/// How often a check is made again that failed on a machine that stalled.
const RETRIES: usize = 2;

/// The seed of the links: with the same one, the same packets are lost every time.
const SEED: u64 = 1;

/// Bytes of IPv4 and UDP headers.
const HEADERS: usize = 20 + 8;

/// An outer IP packet that fills the MTU of a link.
const FULL_PACKET: usize = 1500;

/// A packet that only has to arrive.
const SMALL_PACKET: usize = 128;

/// By how much the rate of a link is exceeded to keep its queue full.
const OVERLOAD: f64 = 1.25;

/// Packets sent to measure loss.
const LOSS_PACKETS: u64 = 20_000;

/// How long is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Twelve seconds.
    Full,
    /// Six seconds.
    Quick,
}

/// Measures the emulator. Needs the privileges of [`crate::privilege`]; `say` gets the progress.
///
/// # Errors
///
/// A lab or a socket cannot be made; [`crate::stop::Interrupted`] if `stop` was set.
pub fn run(stop: &Stop, form: Form, say: &mut dyn FnMut(&str)) -> Result<SelfTest> {
    let mut checks = Vec::new();
    for group in [quiet(form), busy(form)] {
        say(group.title);
        checks.extend(group.run(stop, say)?);
    }
    say("the ceiling");
    let ceiling_mbps = ceiling::measure(stop, form)?;
    Ok(SelfTest { ceiling_mbps, checks })
}

/// The ceiling alone, in Mbit/s; see the head of this module. Needs the rights of [`crate::privilege`].
///
/// # Errors
///
/// As [`run`].
pub fn ceiling(stop: &Stop, form: Form) -> Result<f64> {
    ceiling::measure(stop, form)
}

/// Whether every check was passed.
pub fn passed(selftest: &SelfTest) -> bool {
    selftest.checks.iter().all(|check| check.passed)
}

/// Links that are measured at the same time in one lab.
struct Group {
    title: &'static str,
    length: Duration,
    probes: Vec<Probe>,
}

/// A link, what is sent over it, and what is looked at.
struct Probe {
    link: LinkSpec,
    timetable: Timetable,
    property: Property,
}

/// Delay and jitter, which other packets would disturb.
fn quiet(form: Form) -> Group {
    let length = match form {
        Form::Full => Duration::from_millis(2800),
        Form::Quick => Duration::from_millis(2100),
    };
    let delay = |name: &str, ms: u64| {
        let delay = Duration::from_millis(ms);
        Probe {
            link: LinkSpec::new(name, Profile { delay, ..Profile::default() }),
            timetable: Timetable::new(SMALL_PACKET, 200.0, 1),
            property: Property::Delay(delay),
        }
    };
    let (mean, jitter) = (Duration::from_millis(20), Duration::from_millis(2));
    let profile = Profile { delay: mean, jitter, ..Profile::default() };
    let jitter = Probe {
        link: LinkSpec::new("jitter", profile),
        timetable: Timetable::new(SMALL_PACKET, 2500.0, 1),
        property: Property::Jitter { mean, deviation: jitter },
    };
    let probes = vec![delay("delay10", 10), delay("delay50", 50), jitter];
    Group { title: "delay and jitter", length, probes }
}

/// Loss and rates.
fn busy(form: Form) -> Group {
    let length = match form {
        Form::Full => Duration::from_millis(2500),
        Form::Quick => Duration::from_millis(1500),
    };
    let rate = |name: &str, mbps: u64| {
        let rate = mbps * 1_000_000;
        let packets_per_second = rate as f64 * OVERLOAD / 8.0 / FULL_PACKET as f64;
        Probe {
            link: LinkSpec::new(name, Profile { rate: Some(rate), ..Profile::default() }),
            timetable: Timetable::new(FULL_PACKET, packets_per_second, 4),
            property: Property::Rate(rate),
        }
    };
    let share = 0.01;
    let loss = Probe {
        link: LinkSpec::new("loss", Profile { loss: Loss::Random(share), ..Profile::default() }),
        timetable: Timetable::new(
            SMALL_PACKET,
            LOSS_PACKETS as f64 / length.as_secs_f64() + 1.0,
            10,
        ),
        property: Property::Loss(share),
    };
    Group {
        title: "loss and rate",
        length,
        probes: vec![rate("rate20", 20), rate("rate100", 100), loss],
    }
}

impl Group {
    /// Measures all probes, and those that failed on a stalled machine again.
    fn run(&self, stop: &Stop, say: &mut dyn FnMut(&str)) -> Result<Vec<Check>> {
        let (mut checks, mut stalled) = self.once(stop)?;
        for _ in 0..RETRIES {
            let failed: Vec<&str> = checks
                .iter()
                .filter(|check| !check.passed)
                .map(|check| check.name.as_str())
                .collect();
            if failed.is_empty() || !stalled {
                break;
            }
            say(&format!("the machine stalled, so this is measured again: {}", failed.join("; ")));
            let (again, stalled_again) = self.once(stop)?;
            stalled = stalled_again;
            for (check, again) in checks.iter_mut().zip(again) {
                if !check.passed {
                    *check = again;
                }
            }
        }
        Ok(checks)
    }

    /// Measures all probes once; returns whether the emulator reports a stall.
    fn once(&self, stop: &Stop) -> Result<(Vec<Check>, bool)> {
        stop.check()?;
        let links = self.probes.iter().map(|probe| probe.link.clone()).collect();
        let lab = Lab::start(&Topology::new(SEED, links)?)?;
        let streams = self.probes.iter().enumerate().map(|(number, probe)| {
            let address = lab.right().address(number);
            let sink = lab.right().run(|| stream::sink(address))?;
            let remote = sink.local_addr()?;
            let source = lab.left().run(|| stream::source(remote))?;
            Stream::start(source, sink, probe.timetable, self.length, stop)
        });
        let streams = streams
            .collect::<std::io::Result<Vec<_>>>()
            .with_context(|| format!("cannot measure {}", self.title))?;
        let arrivals: Vec<Arrivals> = streams.into_iter().map(Stream::finish).collect();
        stop.check()?;
        let checks = self.probes.iter().zip(&arrivals);
        let checks = checks.map(|(probe, arrivals)| probe.property.check(arrivals)).collect();
        let reports = lab.reports();
        let stalled = reports
            .iter()
            .any(|report| report.doubtful || report.forward.stalls + report.backward.stalls > 0);
        Ok((checks, stalled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_send_what_their_properties_need() {
        for form in [Form::Full, Form::Quick] {
            for group in [quiet(form), busy(form)] {
                for probe in &group.probes {
                    let packets = probe.timetable.packets(group.length);
                    let least = match probe.property {
                        Property::Delay(_) => 400,
                        Property::Jitter { .. } => 4000,
                        Property::Loss(_) => LOSS_PACKETS,
                        // A packet more or less is then no hundredth.
                        Property::Rate(_) => 1000,
                    };
                    assert!(packets >= least, "{form:?}, {}: {packets}", probe.link.name);
                }
            }
        }
    }

    #[test]
    fn one_failed_check_fails_the_test() {
        let check = |passed| Check { passed, ..Check::default() };
        let test = |checks| SelfTest { ceiling_mbps: 1.0, checks };
        assert!(passed(&test(vec![check(true), check(true)])));
        assert!(!passed(&test(vec![check(true), check(false)])));
    }
}
