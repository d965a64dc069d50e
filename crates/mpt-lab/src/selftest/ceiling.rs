//! How much the emulator carries at the most.
//!
//! The *ceiling* is what two links without a limit carry together when one plain TCP flow runs over each,
//! from left to right, acknowledgements back: the load of a tunnel over two paths without the tunnel.
//! It counts outer IP bits in the direction of the data. Of three short runs the median is taken and
//! rounded down to two digits, because the last percent is another one every time on a machine that is
//! shared. Sender, receiver, both hosts' kernels and the emulator share the processors, as they do in
//! an experiment; daemons come on top there, which is why experiments stay below half the ceiling.

use std::time::Duration;

use anyhow::{Context as _, Result};
use mpt_sim::profile::Profile;

use super::{FULL_PACKET, Form, SEED};
use crate::lab::Lab;
use crate::stop::Stop;
use crate::topology::{LinkSpec, Topology};
use crate::traffic::spread::median;
use crate::traffic::tcp::{CUBIC, Flow, Sink, Source, Transport};

/// How often the ceiling is sought.
const RUNS: usize = 3;

/// Links that are loaded at once.
const LINKS: usize = 2;

/// What a flow may take to find its rate: thousands of round trips of an undelayed link.
const WARM_UP: Duration = Duration::from_millis(200);

/// IPv4 and TCP headers with the timestamps option (RFC 7323), of a full packet.
const HEADERS: usize = 20 + 20 + 12;

/// The ceiling in Mbit/s.
pub(super) fn measure(stop: &Stop, form: Form) -> Result<f64> {
    let length = match form {
        Form::Full => Duration::from_millis(1500),
        Form::Quick => Duration::from_millis(500),
    };
    let link = |number| LinkSpec::new(format!("free{number}"), Profile::default());
    let lab = Lab::start(&Topology::new(SEED, (0..LINKS).map(link).collect())?)?;
    let runs = (0..RUNS).map(|_| {
        stop.check()?;
        goodput(&lab, length).context("cannot seek the ceiling")
    });
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let goodput = median(&runs).context("nothing arrived")?;
    Ok(two_digits(goodput / 1e6 * FULL_PACKET as f64 / (FULL_PACKET - HEADERS) as f64))
}

/// What flows over all links bring together, in bit/s.
fn goodput(lab: &Lab, length: Duration) -> Result<f64> {
    let start = |link| {
        let sink =
            lab.right().run(|| Sink::listen(Transport::Tcp, lab.right().address(link), None))?;
        let remote = sink.address();
        let source = lab.left().run(|| Source::connect(Transport::Tcp, remote, None, CUBIC))?;
        Flow::start(sink, source, length)
    };
    let flows = (0..LINKS).map(start).collect::<Result<Vec<_>, _>>()?;
    let goodput = |flow: Flow| flow.finish().series.goodput(WARM_UP);
    Ok(flows.into_iter().map(goodput).sum())
}

/// Rounded down to two significant digits.
fn two_digits(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powi(value.log10().floor() as i32 - 1);
    (value / unit).floor() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_has_two_digits_and_is_not_rounded_up() {
        for (value, rounded) in
            [(1999.0, 1900.0), (104.9, 100.0), (99.9, 99.0), (7.77, 7.7), (0.0, 0.0)]
        {
            let two = two_digits(value);
            assert!((two - rounded).abs() < 1e-9, "{value}: {two}");
        }
        assert_eq!(two_digits(f64::NAN), 0.0);
    }
}
