//! What a run says while it runs.

use std::time::Duration;

/// An observer of a run. Every method has a default that does nothing.
pub trait Watch {
    /// A step of the run begins.
    fn on_step(&mut self, _step: &Step) {}

    /// A step is in progress; called several times per second.
    fn on_tick(&mut self, _tick: &Tick) {}

    /// A link was cut or restored.
    fn on_cut(&mut self, _cut: &CutEvent) {}

    /// Something went wrong that does not end the run.
    fn on_trouble(&mut self, _what: &str) {}

    /// The step has ended with this goodput in Mbit/s, if it measured one.
    fn on_result(&mut self, _goodput_mbps: Option<f64>) {}
}

/// No observer.
#[derive(Clone, Copy, Debug)]
pub struct Silence;

impl Watch for Silence {}

/// A part of a run that measures one thing.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub title: String,
    /// Which it is, counted from 1.
    pub number: usize,
    /// Of how many.
    pub count: usize,
    /// How long it measures.
    pub length: Duration,
    /// How long the whole run will take from here on, set-up not counted.
    pub remaining: Duration,
    /// The links, by name, in the order of [`Tick::links`].
    pub links: Vec<String>,
    /// Rates of the links in bit/s, where they have one.
    pub rates: Vec<Option<f64>>,
}

/// Where a step is.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Time since the step began.
    pub elapsed: Duration,
    /// What the receiving application got during the last second, in bit/s.
    pub goodput: f64,
    /// What each link delivered during the last second, in outer IP bit/s.
    pub links: Vec<f64>,
    /// Which links are cut.
    pub cut: Vec<bool>,
}

/// A link was cut or restored.
#[derive(Clone, Debug)]
pub struct CutEvent {
    /// Its name.
    pub link: String,
    /// True if it was cut, false if it was restored.
    pub cut: bool,
    /// Time since the step began.
    pub elapsed: Duration,
}
