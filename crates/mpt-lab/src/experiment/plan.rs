//! What an experiment consists of: plain data.

use crate::cell::Cell;
use crate::results::ExperimentEntry;
use crate::system::System;

/// A question, and all the cells that answer it.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What reports say about it: title, question, axes, systems, plots and targets.
    pub entry: ExperimentEntry,
    /// How often each cell is measured, 1 to 100; each time in a fresh lab, with the next seed.
    pub repetitions: u32,
    /// What is measured beside each other, in the order of the tables.
    pub systems: Vec<System>,
    /// Whether each link is measured alone, without any tunnel.
    pub alone: bool,
    /// The cells, in the order of the axes, the last axis fastest; at least one.
    pub cells: Vec<Cell>,
}
