//! What the core measures, in the words and units of the status.

use std::time::Duration;

use mpt_control::{Direction, PathState, Reordering};
use mpt_proto::{Quality, RateStage, ReceiveQuality, TransmitQuality};

/// What a path does to time, and what it loses.
pub(super) fn put_quality(quality: &Quality, path: &mut PathState) {
    let Quality { round_trip, jitter, lost, loss_recent } = *quality;
    path.rtt_ms = round_trip.map(|round_trip| milliseconds(round_trip.smoothed));
    path.jitter_ms = jitter.map(milliseconds);
    path.lost = lost;
    path.loss = loss_recent;
}

/// In what order packets came. Means and shares of nothing are shown as 0.
pub(super) fn reordering(measured: &mpt_proto::Reordering) -> Reordering {
    let displacement = |(displacement, &packets): (&i32, &u64)| (displacement.to_string(), packets);
    Reordering {
        packets: measured.packets,
        reordered: measured.reordered,
        ratio: measured.ratio().unwrap_or_default(),
        extent_mean: measured.extent_mean().unwrap_or_default(),
        extent_max: measured.extent_max,
        late_ms_mean: milliseconds(measured.late_mean().unwrap_or_default()),
        late_ms_max: milliseconds(measured.late_max),
        n_reordering: measured.n_reordering.clone(),
        density: measured.density.iter().map(displacement).collect(),
        buffer_occupancy: measured.buffer_occupancy.clone(),
        duplicates: measured.duplicates,
    }
}

/// What the peer's feedback says of a path.
pub(super) fn to_peer(quality: TransmitQuality) -> Direction {
    let TransmitQuality {
        received,
        lost,
        loss_recent,
        rate,
        delay,
        deviation,
        capacity,
        pace,
        queue,
    } = quality;
    let bits = |bytes: u64| bytes.saturating_mul(8);
    Direction {
        received,
        lost,
        loss: loss_recent,
        rate: rate.map(bits),
        capacity: capacity.map(bits),
        pace: pace.map(bits),
        queueing_ms: capacity.map(|_| milliseconds(queue)),
        delay_ms: delay.map(milliseconds),
        deviation_ms: deviation.map(milliseconds),
        ..Direction::default()
    }
}

/// What the timestamps and path sequences of the peer say of a path, with the share of `loss` that its path statuses show.
pub(super) fn from_peer(quality: &ReceiveQuality, loss: Option<f64>) -> Direction {
    let ReceiveQuality { delay, queueing, deviation, jitter, lost, received } = *quality;
    Direction {
        received,
        lost,
        loss,
        rate: None,
        capacity: None,
        pace: None,
        stage: None,
        delay_ms: Some(milliseconds(delay)),
        queueing_ms: Some(milliseconds(queueing)),
        deviation_ms: Some(milliseconds(deviation)),
        jitter_ms: Some(milliseconds(jitter)),
    }
}

/// The name of what the estimate of a rate is at.
pub(super) fn stage(stage: RateStage) -> &'static str {
    match stage {
        RateStage::Open => "open",
        RateStage::Trains => "trains",
        RateStage::Start => "start",
        RateStage::Servo => "servo",
        RateStage::Draining => "draining",
        RateStage::Competing => "competing",
        RateStage::Stopped => "stopped",
    }
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mpt_proto::RoundTrip;

    use super::*;

    #[test]
    fn order_keeps_its_counts_and_gets_its_means() {
        // 1, 4, 2, 3, 3: 2 and 3 came after 4, 7 and 9 ms later.
        let measured = mpt_proto::Reordering {
            packets: 4,
            reordered: 2,
            extent_sum: 3,
            extent_max: 2,
            late_sum: Duration::from_millis(16),
            late_max: Duration::from_millis(9),
            n_reordering: vec![1],
            density: BTreeMap::from([(-2, 1), (0, 1), (1, 2)]),
            buffer_occupancy: vec![2, 2],
            duplicates: 1,
            ..mpt_proto::Reordering::default()
        };
        let expected = Reordering {
            packets: 4,
            reordered: 2,
            ratio: 0.5,
            extent_mean: 1.5,
            extent_max: 2,
            late_ms_mean: 8.0,
            late_ms_max: 9.0,
            n_reordering: vec![1],
            density: BTreeMap::from([("-2".into(), 1), ("0".into(), 1), ("1".into(), 2)]),
            buffer_occupancy: vec![2, 2],
            duplicates: 1,
        };
        assert_eq!(reordering(&measured), expected);
        assert_eq!(reordering(&mpt_proto::Reordering::default()), Reordering::default());
    }

    #[test]
    fn what_is_not_known_stays_unknown_and_times_become_milliseconds() {
        let mut path = PathState::default();
        put_quality(&Quality::default(), &mut path);
        assert_eq!(path, PathState::default());
        let round_trip = RoundTrip {
            latest: Duration::from_millis(50),
            min: Duration::from_millis(30),
            smoothed: Duration::from_micros(42_500),
            variation: Duration::from_millis(4),
        };
        let quality = Quality {
            round_trip: Some(round_trip),
            jitter: Some(Duration::from_micros(1500)),
            lost: Some(12),
            loss_recent: Some(0.25),
        };
        put_quality(&quality, &mut path);
        assert_eq!((path.rtt_ms, path.jitter_ms), (Some(42.5), Some(1.5)));
        assert_eq!((path.lost, path.loss), (Some(12), Some(0.25)));
    }
}
