//! One flow of traffic, as data.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::CutRecord;
use crate::cell::Cut;
use crate::traffic::jitter::Jitter;
use crate::traffic::order::Summary;
use crate::traffic::series::{SAMPLE, Series};
use crate::traffic::spread::Spread;

/// Share of the former goodput at which a restored link counts as back in use.
const BACK: f64 = 0.95;

/// What the figures of a long run leave out at its start.
const LONG_OMIT: Duration = Duration::from_secs(10);

/// How many MB (10⁶ bytes) are timed from the start of a flow: a page, a picture, a program.
pub const MEGABYTES: [u64; 3] = [1, 4, 16];

/// What became of one flow, or of several that ran together. What its kind does not measure is absent.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(default)]
pub struct FlowRecord {
    /// Mean rate from the end of the start-up to the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<f64>,
    /// Of a long run: mean rate from ten seconds after its start to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_goodput_mbps: Option<f64>,
    /// Seconds until the first second at 95 % of the settled rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_seconds: Option<f64>,
    /// Seconds from the start until 1, 4 and 16 MB had arrived, of all flows together; absent if they did not.
    pub to_megabytes_seconds: [Option<f64>; MEGABYTES.len()],
    /// TCP segments sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// The longest silence between two deliveries after the start-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
    /// TCP: the sender's smoothed round-trip time at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_rtt_ms: Option<f64>,
    /// UDP: what was lost, doubled and overtaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Summary>,
    /// UDP: one-way delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<Spread>,
    /// UDP: one-way jitter; pings: that of the round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Jitter>,
    /// Pings: requests sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<u32>,
    /// Pings: requests never answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings_lost: Option<u32>,
    /// Pings: round-trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Spread>,
    /// FTP: seconds from the request to the last byte; absent if it did not come to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_seconds: Option<f64>,
    /// FTP: bytes over these seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_mbps: Option<f64>,
    /// Media: the voice stream; calls: all of them, with the lowest score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<StreamRecord>,
    /// Media: the video-like stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<StreamRecord>,
    /// Calls: how they were heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsRecord>,
    /// The thin stream beside the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideRecord>,
    /// The rival, and how the two shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rival: Option<RivalRecord>,
    /// Processor time of the thread that sent, in seconds.
    pub sender_seconds: f64,
    /// Processor time of the thread that received, in seconds.
    pub receiver_seconds: f64,
    /// Why it ended before its time, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Rate in each sample.
    pub samples_mbps: Vec<f64>,
    /// What the figures were made from.
    #[serde(skip)]
    pub series: Option<Series>,
}

/// What became of one real-time stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StreamRecord {
    /// One-way delay.
    pub delay_ms: Option<Spread>,
    /// Share of packets that never arrived.
    pub lost_share: f64,
    /// Share of the packets received that arrived out of order (RFC 4737).
    pub late_share: f64,
    /// Mean opinion score of the E-model, 1 to 4.5; for voice alone.
    pub mos: Option<f64>,
}

/// How calls were heard.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CallsRecord {
    /// Calls in which somebody heard nothing for three seconds.
    pub dropped: u64,
    /// The start-up in seconds.
    pub omit: f64,
    /// The lowest score of a call in each second of the run, those of the start-up too.
    pub seconds_mos: Vec<f64>,
}

/// What a rival at the same bottleneck got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RivalRecord {
    /// Its mean rate from the end of the start-up to the end of the run.
    pub goodput_mbps: f64,
    /// Jain's index of both: 1 for halves, 0.5 for all or nothing.
    pub jain: f64,
    /// What the one of the two got that got less, over half of what both got.
    pub least_fair_share: f64,
    /// What the measured traffic got, over half of what both got.
    pub own_fair_share: f64,
}

/// What became of the thin stream beside a greedy flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BesideRecord {
    /// One-way delay, of packets sent after the start-up.
    pub delay_ms: Option<Spread>,
    /// The 99th percentile of these delays less the delay of the fastest link.
    pub over_base_p99_ms: Option<f64>,
    /// The largest delay of packets sent within two seconds after the rate of a link has fallen.
    pub after_step_max_ms: Option<f64>,
    /// Share of all packets that never arrived.
    pub lost_share: f64,
}

impl CallsRecord {
    /// The lowest score in the seconds in which something happened, and that in all others after the start-up.
    pub fn lowest(&self, events: impl Iterator<Item = f64>) -> [Option<f64>; 2] {
        let events: BTreeSet<_> = events.map(|at| at as usize).collect();
        let mut lowest = [None; 2];
        for (second, &mos) in self.seconds_mos.iter().enumerate() {
            let at = usize::from(!events.contains(&second));
            if second as f64 >= self.omit {
                lowest[at] = Some(lowest[at].unwrap_or(mos).min(mos));
            }
        }
        lowest
    }
}

impl FlowRecord {
    /// Bytes that the receiving application got in all.
    pub fn received_bytes(&self) -> u64 {
        self.series.iter().flat_map(Series::samples).map(|sample| sample.bytes).sum()
    }

    /// What a series of deliveries says, its first part left out of goodput and gaps.
    pub fn of_series(series: Series, omit: Duration) -> Self {
        let per_sample = |bytes: u64| megabits(bytes as f64 * 8.0 / SAMPLE.as_secs_f64());
        Self {
            goodput_mbps: Some(megabits(series.goodput(omit))),
            startup_seconds: series.startup().map(|time| time.as_secs_f64()),
            longest_gap_ms: Some(milliseconds(series.longest_gap(omit, series.length()))),
            to_megabytes_seconds: MEGABYTES
                .map(|count| Some(series.time_to(count * 1_000_000)?.as_secs_f64())),
            samples_mbps: series.samples().iter().map(|sample| per_sample(sample.bytes)).collect(),
            series: Some(series),
            ..Self::default()
        }
    }

    /// The same of a run that was longer than what its goodput, start-up and gaps are about, which is `measured`; its cell was scaled by
    /// so much.
    #[must_use]
    pub fn of_long_run(self, omit: Duration, measured: Duration, scale: f64) -> Self {
        let Some(series) = &self.series else { return self };
        let first = Self::of_series(series.first(measured), omit);
        Self {
            goodput_mbps: first.goodput_mbps,
            long_goodput_mbps: Some(megabits(series.goodput(LONG_OMIT.mul_f64(scale)))),
            startup_seconds: first.startup_seconds,
            longest_gap_ms: first.longest_gap_ms,
            ..self
        }
    }
}

impl CutRecord {
    /// What a series of deliveries says about a cut of the link of that name.
    pub fn of_series(series: &Series, omit: Duration, cut: &Cut, link: &str) -> Self {
        let [at, until] = [cut.at, cut.until].map(Duration::from_secs_f64);
        let end = series.length();
        let before = series.rate(omit.min(at), at);
        let back = series.reaches(BACK * before, until).filter(|_| before > 0.0);
        Self {
            link: link.to_owned(),
            at: cut.at,
            until: cut.until,
            before_mbps: megabits(before),
            during_mbps: megabits(series.rate(at, until)),
            after_mbps: megabits(series.rate(until, end)),
            longest_gap_ms: milliseconds(series.longest_gap(at, end)),
            back_seconds: back.map(|time| time.saturating_sub(until).as_secs_f64()),
        }
    }
}

/// Mbit/s of bit/s.
pub fn megabits(rate: f64) -> f64 {
    rate / 1e6
}

/// Milliseconds as a fraction.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::Direction;

    #[test]
    fn a_long_run_tells_its_beginning_and_its_later_part() {
        let mut series = Series::new(Duration::from_secs(60));
        for sample in 0..600u64 {
            // 80 kbit/s for 12 s, then twice that.
            let bytes = if sample < 120 { 1000 } else { 2000 };
            series.on_delivery(Duration::from_millis(sample * 100 + 50), bytes);
        }
        let [omit, measured] = [2, 12].map(Duration::from_secs);
        let record = FlowRecord::of_series(series, omit).of_long_run(omit, measured, 1.0);
        assert_eq!(record.goodput_mbps, Some(0.08));
        assert_eq!(record.startup_seconds, Some(0.0), "of the part that is measured");
        let later = (0.08 * 2.0 + 0.16 * 48.0) / 50.0;
        assert!((record.long_goodput_mbps.unwrap() - later).abs() < 1e-9);
        assert_eq!(record.samples_mbps.len(), 600, "all of it can be drawn");
    }

    #[test]
    fn seconds_with_an_event_are_told_apart_from_the_others() {
        let seconds_mos = vec![1.0, 4.4, 4.1, 2.0, 4.3, 3.0];
        let calls = CallsRecord { dropped: 0, omit: 1.0, seconds_mos };
        assert_eq!(calls.lowest([3.0, 5.9].into_iter()), [Some(2.0), Some(4.1)]);
        assert_eq!(calls.lowest([].into_iter()), [None, Some(2.0)]);
    }

    #[test]
    fn a_cut_is_shown_with_goodput_before_during_and_after() {
        let mut series = Series::new(Duration::from_secs(12));
        for sample in 0..120u64 {
            let bytes = match sample {
                0..20 => 10,
                20..40 => 1000,
                // Two seconds of silence after the cut, then half the rate.
                40..60 => continue,
                60..80 => 500,
                80..90 => 700,
                _ => 1000,
            };
            series.on_delivery(Duration::from_millis(sample * 100 + 50), bytes);
        }
        series.finish();
        let cut = Cut { link: 0, at: 4.0, until: 8.0, direction: Direction::Both };
        let record = CutRecord::of_series(&series, Duration::from_secs(2), &cut, "a");
        assert_eq!(record.before_mbps, 0.08);
        assert_eq!(record.during_mbps, 0.02);
        assert!((record.after_mbps - 0.074).abs() < 1e-9);
        assert_eq!(record.longest_gap_ms, 2100.0);
        assert_eq!(record.back_seconds, Some(0.9), "one slow tenth leaves 97 % of a second");
    }
}
