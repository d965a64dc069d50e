//! What the model expects of a system in a cell.

use super::step::{Step, Subject};
use crate::cell::{Cell, Scheduler, Traffic, ideal};
use crate::model::{self, Prediction};
use crate::record::Run;
use crate::results::Figure;
use crate::system::System;

/// What the model expects of a system, as the clock would see it; `None` where it has no opinion.
pub(super) fn predicted(cell: &Cell, step: &Step, runs: &[Run]) -> Option<Figure> {
    let Subject::System(system) = &step.subject else { return None };
    let inner_mtu = runs.iter().find_map(|run| run.inner_mtu)?;
    let prediction = cell.predict(system, Some(inner_mtu))?;
    let median = prediction.goodput_mbps?;
    let [min, max] = prediction.goodput_range_mbps.unwrap_or([median; 2]);
    Some(Figure { median, min, max, count: 1 })
}

impl Cell {
    /// The model's prediction for a tunnel with this inner MTU, or with the one that fits the
    /// links. `None` if the system is no tunnel, if it measures the links, or if there are events,
    /// neither of which the model supports.
    pub fn predict(&self, system: &System, inner_mtu: Option<u32>) -> Option<Prediction> {
        let tunnel = system.tunnel(self)?;
        let inner_mtu = inner_mtu.unwrap_or_else(|| ideal::inner_mtu(&self.topology, &tunnel));
        // The model shares packets by weights.
        let known = self.events.is_empty() && tunnel.scheduler == Scheduler::Weighted;
        let traffic = Traffic { long_seconds: None, ..self.traffic.clone() };
        known.then(|| model::predict(&self.topology, &tunnel, &traffic, inner_mtu))
    }
}
