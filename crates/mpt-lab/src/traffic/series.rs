//! What a receiver got, over time: bytes and silences in samples of 100 ms.
//!
//! A run lasts seconds to minutes and a fast receiver reads tens of thousands of times per second, so
//! single reads are not kept. Each sample holds what later questions need: how many bytes arrived in
//! it, and the longest silence that *ended* in it. The size of a series is fixed when it is made.

use std::time::Duration;

use super::spread;

/// Width of one sample.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// How many bytes from the start of a run are kept in short steps. Deliveries of at least one packet's payload in
/// separate steps of [`STEP`] are some 12,000 pairs at most.
const EARLY: u64 = 16_000_000;

/// Width of a short step.
const STEP: Duration = Duration::from_millis(1);

/// Samples in the one-second window that decides when a run has become stable.
const SECOND: usize = 10;

/// Share of the settled rate at which a run counts as started.
const STARTED: f64 = 0.95;

/// What arrived within one hundred milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Bytes the receiving application got.
    pub bytes: u64,
    /// The longest silence between two deliveries that ended in this sample.
    pub gap: Duration,
}

/// Deliveries of one run, as samples that follow each other without a hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    samples: Vec<Sample>,
    last_delivery: Duration,
    /// The first [`EARLY`] bytes as they arrived, in steps of [`STEP`]: when a step began, and its bytes. A time to
    /// so many bytes is a matter of round trips, for which samples are too wide.
    early: Vec<(Duration, u64)>,
    /// The bytes in `early`.
    early_bytes: u64,
}

impl Series {
    /// An empty series for a run of `length`, rounded up to whole samples.
    pub fn new(length: Duration) -> Self {
        let samples = length.as_nanos().div_ceil(SAMPLE.as_nanos());
        let samples = usize::try_from(samples).unwrap_or(usize::MAX);
        Self {
            samples: vec![Sample::default(); samples],
            last_delivery: Duration::ZERO,
            early: Vec::new(),
            early_bytes: 0,
        }
    }

    /// Counts `bytes` delivered `at` that time after the start of the run.
    ///
    /// What arrives after the end of the run is not part of it and is ignored.
    pub fn on_delivery(&mut self, at: Duration, bytes: usize) {
        let Some(sample) = self.samples.get_mut(index(at)) else {
            return;
        };
        sample.bytes += bytes as u64;
        sample.gap = sample.gap.max(at.saturating_sub(self.last_delivery));
        self.last_delivery = at;
        if self.early_bytes < EARLY {
            self.early_bytes += bytes as u64;
            match self.early.last_mut() {
                Some((begun, so_far)) if at < *begun + STEP => *so_far += bytes as u64,
                _ => self.early.push((at, bytes as u64)),
            }
        }
    }

    /// Closes the run: the silence from the last delivery to the end counts as a gap.
    pub fn finish(&mut self) {
        let end = self.length();
        if let Some(sample) = self.samples.last_mut() {
            sample.gap = sample.gap.max(end.saturating_sub(self.last_delivery));
        }
        self.last_delivery = end;
    }

    /// Closes the run at this time instead of its planned end, for work that is done when it is done.
    pub fn finish_at(&mut self, end: Duration) {
        let samples = end.as_nanos().div_ceil(SAMPLE.as_nanos());
        self.samples.truncate(usize::try_from(samples).unwrap_or(usize::MAX));
        self.finish();
    }

    /// What a run that had ended at this time would have been, but for the silence to its end.
    #[must_use]
    pub fn first(&self, length: Duration) -> Self {
        let mut first = self.clone();
        first.samples.truncate(index(length));
        first
    }

    /// Adds another flow of the same run: bytes add up, of the gaps the longer one stays.
    pub fn merge(&mut self, other: &Self) {
        if self.samples.len() < other.samples.len() {
            self.samples.resize(other.samples.len(), Sample::default());
        }
        for (ours, theirs) in self.samples.iter_mut().zip(&other.samples) {
            ours.bytes += theirs.bytes;
            ours.gap = ours.gap.max(theirs.gap);
        }
        self.early.extend(&other.early);
        self.early.sort_unstable();
        self.early_bytes += other.early_bytes;
    }

    /// When so many bytes had arrived, within a millisecond; `None` if they did not, or if they are more than the
    /// 16 MB of which this is known.
    pub fn time_to(&self, bytes: u64) -> Option<Duration> {
        let mut sum = 0;
        let enough = |(_, step): &&(Duration, u64)| {
            sum += step;
            sum >= bytes
        };
        self.early.iter().find(enough).map(|(at, _)| *at).filter(|_| bytes <= EARLY)
    }

    /// The samples, the first one starting with the run.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Length of the run.
    pub fn length(&self) -> Duration {
        SAMPLE * u32::try_from(self.samples.len()).unwrap_or(u32::MAX)
    }

    /// Mean rate in bit/s over the whole samples between two times, 0 for an empty window.
    pub fn rate(&self, from: Duration, to: Duration) -> f64 {
        let window = self.window(from, to);
        rate_of(window)
    }

    /// Goodput in bit/s: the mean rate from `omit` after the start to the end of the run.
    pub fn goodput(&self, omit: Duration) -> f64 {
        self.rate(omit, self.length())
    }

    /// The longest silence that ended between two times.
    pub fn longest_gap(&self, from: Duration, to: Duration) -> Duration {
        self.window(from, to).iter().map(|sample| sample.gap).max().unwrap_or_default()
    }

    /// How long the run took to become stable: the start of the first second at or above 95 % of the
    /// median second of the run's second half. `None` if the run is shorter than two seconds or
    /// nothing arrived in its second half.
    pub fn startup(&self) -> Option<Duration> {
        let half = self.samples.len() / 2;
        let seconds: Vec<f64> = self.samples[half..].chunks_exact(SECOND).map(rate_of).collect();
        let settled = spread::median(&seconds).filter(|&rate| rate > 0.0)?;
        self.reaches(STARTED * settled, Duration::ZERO)
    }

    /// The start of the first second, not before `from`, in which the mean rate was at least `rate`
    /// bit/s.
    pub fn reaches(&self, rate: f64, from: Duration) -> Option<Duration> {
        let first = index(from);
        let rest = self.samples.get(first..)?;
        let found = rest.windows(SECOND).position(|second| rate_of(second) >= rate)?;
        Some(SAMPLE * u32::try_from(first + found).unwrap_or(u32::MAX))
    }

    fn window(&self, from: Duration, to: Duration) -> &[Sample] {
        let end = index(to).min(self.samples.len());
        let start = index(from).min(end);
        &self.samples[start..end]
    }
}

/// The sample a time falls into.
fn index(at: Duration) -> usize {
    usize::try_from(at.as_nanos() / SAMPLE.as_nanos()).unwrap_or(usize::MAX)
}

fn rate_of(samples: &[Sample]) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
    bytes as f64 * 8.0 / (samples.len() as f64 * SAMPLE.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_leaves_the_first_seconds_out() {
        let series = ramp(10, &[(0, 0), (2, 1000)]);
        // 1000 bytes per sample from second 2 on = 80 kbit/s; the idle start must not dilute it.
        assert_eq!(series.goodput(Duration::from_secs(2)), 80_000.0);
        assert_eq!(series.rate(Duration::ZERO, series.length()), 64_000.0);
    }

    #[test]
    fn what_arrives_after_the_end_is_not_part_of_the_run() {
        let mut series = Series::new(Duration::from_secs(1));
        series.on_delivery(Duration::from_millis(999), 7);
        series.on_delivery(Duration::from_millis(1000), 1_000_000);
        assert_eq!(series.rate(Duration::ZERO, Duration::from_secs(5)), 56.0);
    }

    #[test]
    fn a_run_that_ends_early_is_no_longer_than_it_was() {
        let mut series = Series::new(Duration::from_secs(60));
        series.on_delivery(Duration::from_millis(1050), 1000);
        series.finish_at(Duration::from_millis(1050));
        assert_eq!(series.length(), Duration::from_millis(1100));
        assert_eq!(series.samples()[10].bytes, 1000, "the last delivery is part of it");
        let end = series.length();
        assert_eq!(series.longest_gap(Duration::from_secs(1), end), Duration::from_millis(1050));
        series.finish_at(Duration::from_secs(9));
        assert_eq!(series.length(), end, "it does not grow");
    }

    #[test]
    fn a_silence_belongs_to_the_sample_in_which_it_ends() {
        let mut series = Series::new(Duration::from_secs(3));
        for millis in [10, 20, 1520, 1530] {
            series.on_delivery(Duration::from_millis(millis), 1);
        }
        series.finish();
        let at = |millis| Duration::from_millis(millis);
        assert_eq!(series.longest_gap(at(0), at(1500)), at(10));
        assert_eq!(series.longest_gap(at(1500), at(1600)), at(1500));
        assert_eq!(series.longest_gap(at(1600), at(3000)), at(1470), "silence to the end counts");
    }

    #[test]
    fn startup_ends_with_the_first_second_at_the_settled_rate() {
        let series = ramp(10, &[(0, 100), (3, 1000)]);
        assert_eq!(series.startup(), Some(Duration::from_secs(3)));
        let flat = ramp(10, &[(0, 960), (1, 1000)]);
        assert_eq!(flat.startup(), Some(Duration::ZERO), "96 % is stable");
    }

    #[test]
    fn a_rate_is_reached_where_a_whole_second_has_it() {
        let series = ramp(10, &[(0, 1000), (2, 10), (5, 1000)]);
        let secs = Duration::from_secs;
        assert_eq!(series.reaches(80_000.0, Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(series.reaches(80_000.0, secs(2)), Some(secs(5)));
        assert_eq!(series.reaches(80_001.0, Duration::ZERO), None);
        assert_eq!(series.reaches(1.0, secs(60)), None);
    }

    #[test]
    fn a_run_without_deliveries_never_starts() {
        assert_eq!(Series::new(Duration::from_secs(10)).startup(), None);
        assert_eq!(Series::new(Duration::ZERO).startup(), None);
        let died = ramp(10, &[(0, 1000), (5, 0)]);
        assert_eq!(died.startup(), None);
    }

    #[test]
    fn flows_of_one_run_add_up() {
        let mut both = ramp(4, &[(0, 100)]);
        both.merge(&ramp(4, &[(0, 0), (2, 50)]));
        assert_eq!(both.samples()[0].bytes, 100);
        assert_eq!(both.samples()[39].bytes, 150);
        assert!(both.samples()[20].gap > Duration::from_secs(1), "the silent flow's gap stays");
    }

    #[test]
    fn the_first_bytes_are_timed_within_a_millisecond() {
        let mut series = Series::new(Duration::from_secs(60));
        for millis in 0..40_000u64 {
            series.on_delivery(Duration::from_millis(millis), 500);
        }
        assert_eq!(series.time_to(500), Some(Duration::ZERO));
        assert_eq!(series.time_to(1_000_000), Some(Duration::from_millis(1999)));
        assert_eq!(series.time_to(16_000_000), Some(Duration::from_millis(31_999)));
        assert_eq!(series.time_to(16_000_001), None, "that is not kept");
        let mut few = Series::new(Duration::from_secs(60));
        few.on_delivery(Duration::from_micros(1500), 10);
        few.on_delivery(Duration::from_micros(2400), 10);
        few.on_delivery(Duration::from_micros(2500), 10);
        assert_eq!(few.time_to(20), Some(Duration::from_micros(1500)), "one step");
        assert_eq!(few.time_to(30), Some(Duration::from_micros(2500)));
        assert_eq!(few.time_to(31), None, "so much never came");
    }

    #[test]
    fn the_first_bytes_of_several_flows_are_counted_together() {
        let [mut one, mut two] = [(); 2].map(|()| Series::new(Duration::from_secs(1)));
        one.on_delivery(Duration::from_millis(10), 5);
        one.on_delivery(Duration::from_millis(30), 5);
        two.on_delivery(Duration::from_millis(20), 5);
        one.merge(&two);
        assert_eq!(one.time_to(10), Some(Duration::from_millis(20)));
        assert_eq!(one.time_to(15), Some(Duration::from_millis(30)));
    }

    /// A series of `seconds` in which each sample gets the bytes of the last step that has begun.
    fn ramp(seconds: u64, steps: &[(u64, usize)]) -> Series {
        let mut series = Series::new(Duration::from_secs(seconds));
        for sample in 0..seconds * 10 {
            let step = steps.iter().rev().find(|&&(from, _)| from * 10 <= sample);
            if let Some(&(_, bytes)) = step.filter(|&&(_, bytes)| bytes > 0) {
                series.on_delivery(Duration::from_millis(sample * 100 + 50), bytes);
            }
        }
        series.finish();
        series
    }
}
