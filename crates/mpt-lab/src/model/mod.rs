//! What a tunnel will do, computed without running a packet.
//!
//! [`predict`] takes links, tunnel and traffic of an experiment, and predicts the goodput, the
//! required reorder window and the required hold time. `docs/model.md` has the derivations and
//! their validation; here is their arithmetic, one file for each step:
//!
//! - `path`: what each path can carry, and how late it is;
//! - `order`: skew, and what it asks of the reorder buffer;
//! - `response`: what loss leaves of a TCP flow, by the response functions of Reno and CUBIC;
//! - `stall`: what a lost packet costs where the buffer waits for it;
//! - `simulated`: where no formula holds, [`mpt_sim::transfer`] runs Linux's TCP over the links in
//!   virtual time.
//!
//! A [`Prediction`] names the method, the term that binds, and every step in words.

mod order;
mod path;
mod report;
mod response;
mod simulated;
mod stall;

use serde::{Deserialize, Serialize};

use crate::cell::{Kind, Traffic, Tunnel};
use crate::topology::Topology;
use crate::traffic::calls;
use order::Need;
use path::{Path, Sizes};
pub use report::report;

/// Goodput below this share of the bound is bound by something else.
const REACHED: f64 = 0.97;

/// A prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Goodput of all flows together in Mbit/s, from the end of the omitted seconds to the end of the run.
    /// Absent where the links have no limit, and for traffic that is not measured by its goodput.
    pub goodput_mbps: Option<f64>,
    /// Between which values chance alone may bring a single run; absent where it was not simulated.
    pub goodput_range_mbps: Option<[f64; 2]>,
    /// How many packets the reorder window must span so that none is given up too early.
    pub window_packets: u32,
    /// How many seconds a packet must be held at the most.
    pub hold_seconds: f64,
    /// When the first second at 95 % of the settled rate begins; absent if only the steady rate was
    /// computed, or if the run is too short.
    pub startup_seconds: Option<f64>,
    /// How the goodput was found.
    pub method: Method,
    /// What keeps the goodput from being higher.
    pub binding: Binding,
    /// Every step in words, with numbers.
    pub terms: Vec<String>,
}

/// How a goodput was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By a formula.
    ClosedForm,
    /// By running the flow in virtual time.
    Simulated,
}

/// What keeps a goodput from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Nothing in the model: the machine.
    Machine,
    /// The sender offers no more.
    Offered,
    /// The sum of the links' capacities.
    Links,
    /// The link that is the most overloaded for its weight.
    Weights,
    /// TCP's answer to random loss.
    Loss,
    /// The reorder buffer waits for packets that never come.
    Hold,
    /// Packets out of order, which TCP takes for lost.
    Reordering,
    /// The flow has not found its rate when the measurement ends, or a queue is too short for it.
    Convergence,
}

impl Method {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClosedForm => "closed form",
            Self::Simulated => "simulated",
        }
    }
}

impl Binding {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "the machine",
            Self::Offered => "the offered load",
            Self::Links => "the sum of the links",
            Self::Weights => "the weights",
            Self::Loss => "TCP's response to loss",
            Self::Hold => "waiting in the reorder buffer for lost packets",
            Self::Reordering => "packets out of order",
            Self::Convergence => "TCP's convergence",
        }
    }
}

/// Predicts what `traffic` gets out of `tunnel` over the links of `topology`, in which inner packets of
/// up to `inner_mtu` bytes fit.
///
/// Nothing is measured and nothing depends on chance: the same arguments give the same answer. Weights
/// that are missing count as 1. It takes up to a few seconds of processor time where it has to simulate
/// a fast tunnel.
pub fn predict(
    topology: &Topology,
    tunnel: &Tunnel,
    traffic: &Traffic,
    inner_mtu: u32,
) -> Prediction {
    let sizes = Sizes::new(tunnel, inner_mtu);
    let paths = path::paths(topology, tunnel, traffic.direction, &sizes);
    match traffic.kind {
        Kind::Ftp | Kind::Media | Kind::Quic => filled(&paths, &sizes),
        Kind::Ping => ping(&paths, traffic),
        Kind::Calls => calls(&paths, traffic),
        Kind::Udp => udp(&paths, traffic),
        Kind::Tcp => tcp(topology, tunnel, traffic, &sizes, &paths),
    }
}

/// Calls fill nothing: only delays count.
fn calls(paths: &[Path], traffic: &Traffic) -> Prediction {
    let packets = calls::PER_SECOND as f64 * f64::from(traffic.flows);
    without_goodput(order::need(paths, packets, false), Binding::Offered)
}

/// Pings fill nothing: only delays count.
fn ping(paths: &[Path], traffic: &Traffic) -> Prediction {
    without_goodput(order::need(paths, 1.0 / traffic.interval, false), Binding::Offered)
}

/// Other traffic: the requirements of the buffer can be predicted, not the goodput.
fn filled(paths: &[Path], sizes: &Sizes) -> Prediction {
    let bound = Some(path::bound(paths)).filter(|bound| bound.is_finite());
    let packets = bound.unwrap_or(0.0) / 8.0 / sizes.segment as f64;
    without_goodput(order::need(paths, packets, true), Binding::Weights)
}

/// The prediction without a goodput.
fn without_goodput(need: Need, binding: Binding) -> Prediction {
    Prediction {
        goodput_mbps: None,
        goodput_range_mbps: None,
        window_packets: need.window,
        hold_seconds: need.hold,
        startup_seconds: None,
        method: Method::ClosedForm,
        binding,
        terms: need.terms,
    }
}

/// Packets at a fixed rate: each path takes its share, and passes what it can.
fn udp(paths: &[Path], traffic: &Traffic) -> Prediction {
    let offered = traffic.rate_mbps * 1e6;
    let weights: f64 = paths.iter().map(|path| f64::from(path.weight)).sum();
    let size = traffic.size as f64;
    let mut binding = Binding::Offered;
    let mut goodput = 0.0;
    let mut terms = vec![format!("{:.2} Mbit/s of payload are offered", traffic.rate_mbps)];
    for path in paths {
        let share = offered * f64::from(path.weight) / weights;
        let share_of_bytes = size / (size + path.headers_of_udp as f64);
        let room = path.rate.map_or(f64::INFINITY, |rate| rate * share_of_bytes);
        let passed = share.min(room) * (1.0 - path.loss);
        if room < share {
            binding = Binding::Weights;
        }
        let (share, passed_mbps) = (share / 1e6, passed / 1e6);
        terms.push(format!("path `{}` gets {share:.2} and passes {passed_mbps:.2}", path.name));
        goodput += passed;
    }
    let need = order::need(paths, offered / 8.0 / size, binding == Binding::Weights);
    terms.extend(need.terms);
    Prediction {
        goodput_mbps: Some(goodput / 1e6),
        goodput_range_mbps: None,
        window_packets: need.window,
        hold_seconds: need.hold,
        startup_seconds: None,
        method: Method::ClosedForm,
        binding,
        terms,
    }
}

/// Flows that want all there is.
fn tcp(
    topology: &Topology,
    tunnel: &Tunnel,
    traffic: &Traffic,
    sizes: &Sizes,
    paths: &[Path],
) -> Prediction {
    let mut terms = Vec::new();
    let sum: f64 = paths.iter().map(|path| path.capacity().unwrap_or(f64::INFINITY)).sum();
    let bound = path::bound(paths);
    if !bound.is_finite() {
        let mut prediction = without_goodput(order::need(paths, 0.0, false), Binding::Machine);
        prediction.terms.insert(0, "no link has a limit, so the machine sets the goodput".into());
        return prediction;
    }
    terms.push(format!("sum of capacities: {:.2} Mbit/s of payload", sum / 1e6));
    terms.push(format!("bound of the weights min(C/w)·Σw: {:.2} Mbit/s", bound / 1e6));
    let wrong = bound < REACHED * sum;
    let need = order::need(paths, bound / 8.0 / sizes.segment as f64, true);
    terms.extend(need.terms.iter().cloned());

    let view = View { paths, tunnel, traffic, sizes, bound, need: &need };
    let doubts = view.doubts();
    let settled = if wrong { Binding::Weights } else { Binding::Links };
    let mut prediction = Prediction {
        goodput_mbps: Some(bound / 1e6),
        goodput_range_mbps: None,
        window_packets: need.window,
        hold_seconds: need.hold,
        startup_seconds: None,
        method: Method::ClosedForm,
        binding: settled,
        terms,
    };
    let Some(growth) = simulated::growth(&traffic.congestion) else {
        let name = &traffic.congestion;
        prediction.terms.push(format!("there is no model of `{name}`, so no goodput is predicted"));
        prediction.goodput_mbps = None;
        return prediction;
    };
    if doubts.is_empty() {
        prediction.terms.push("nothing limits the flow below the bound".into());
        return prediction;
    }
    prediction.terms.extend(view.closed_forms());
    for (_, doubt) in &doubts {
        prediction.terms.push(format!("simulated, because {doubt}"));
    }
    let outcome = simulated::run(topology, tunnel, traffic, sizes, growth);
    prediction.method = Method::Simulated;
    prediction.goodput_mbps = Some(outcome.goodput / 1e6);
    prediction.goodput_range_mbps = outcome.range.map(|(low, high)| [low / 1e6, high / 1e6]);
    prediction.startup_seconds = outcome.startup;
    prediction.terms.extend(outcome.terms);
    // Of two shortfalls the larger one binds.
    if outcome.goodput < (REACHED * bound).min(bound * bound / sum) {
        prediction.binding = doubts[0].0;
    }
    prediction
}

/// What the question of whether a formula holds looks at.
struct View<'a> {
    paths: &'a [Path],
    tunnel: &'a Tunnel,
    traffic: &'a Traffic,
    sizes: &'a Sizes,
    /// Bit/s of payload.
    bound: f64,
    need: &'a Need,
}

impl View<'_> {
    /// Why the flow may not reach its bound, the weightiest reason first; none if it will.
    fn doubts(&self) -> Vec<(Binding, String)> {
        let mut doubts = Vec::new();
        let reorder = self.tunnel.classic_order();
        let lossy = self.paths.iter().any(|path| path.loss > 0.0 || path.loss_back > 0.0);
        let waits = reorder.window > 0 && !reorder.early_release && self.tunnel.sequence;
        if lossy && waits {
            doubts.push((Binding::Hold, "the reorder buffer waits for lost packets".into()));
        } else if lossy {
            doubts.push((Binding::Loss, "packets are lost".into()));
        }
        if self.paths.len() > 1 || self.paths.iter().any(Path::reorders) {
            let (window, hold) = (self.need.window, self.need.hold);
            if reorder.window == 0 || !self.tunnel.sequence {
                doubts.push((Binding::Reordering, "there is no reorder buffer".into()));
            } else if window > reorder.window || hold > reorder.max_delay {
                let why = format!(
                    "the buffer's {} packets and {} s are less than the {window} and {hold:.3} needed",
                    reorder.window, reorder.max_delay
                );
                doubts.push((Binding::Reordering, why));
            }
        }
        doubts.extend(self.convergence().map(|why| (Binding::Convergence, why)));
        doubts
    }

    /// Whether CUBIC keeps the links busy throughout the measurement.
    fn convergence(&self) -> Option<String> {
        let round_trip = path::round_trip(self.paths);
        let queue = path::queue_seconds(self.paths);
        if queue < response::least_queue(round_trip) {
            return Some(format!(
                "queues of {:.1} ms are too small for CUBIC at a round-trip time of {:.1} ms",
                queue * 1e3,
                round_trip * 1e3
            ));
        }
        let packets = self.bound / 8.0 / self.sizes.segment as f64;
        let startup = response::startup(packets, round_trip);
        if startup > self.traffic.omit {
            return Some(format!(
                "the start-up takes about {startup:.1} s, more than the {} s omitted",
                self.traffic.omit
            ));
        }
        let reorder = self.tunnel.classic_order();
        let waits = reorder.window > 0 && !reorder.early_release;
        waits.then(|| "each queue overflow makes the reorder buffer wait".into())
    }

    /// What the formulae say where none of them holds alone.
    fn closed_forms(&self) -> Vec<String> {
        let share = |loss: fn(&Path) -> f64| path::share_of_packets(self.paths, loss);
        let (there, back) = (share(|path| path.loss), share(|path| path.loss_back));
        let mut terms = Vec::new();
        if there > 0.0 {
            let round_trip = path::round_trip(self.paths);
            let window = response::cubic_window(there, round_trip);
            let rate = (window * self.sizes.segment as f64 * 8.0 / round_trip).min(self.bound);
            terms.push(format!(
                "response to {:.3} % of lost segments at {:.2} ms: a window of {window:.1}, {:.2} Mbit/s",
                there * 100.0,
                round_trip * 1e3,
                rate / 1e6
            ));
        }
        let reorder = self.tunnel.classic_order();
        if reorder.window > 0 && !reorder.early_release && there + back > 0.0 {
            let rate = stall::goodput(self.bound, self.sizes.segment, there, back, &reorder);
            terms.push(format!(
                "each loss blocks the tunnel for up to {} s: at the most {:.2} Mbit/s",
                reorder.max_delay,
                rate / 1e6
            ));
        }
        terms
    }
}

#[cfg(test)]
mod tests;
