//! A film in one direction: 5 Mbit/s in thirty frames a second.
//!
//! Every two seconds a key frame holds a whole picture; the frames after it hold what changed. Frames
//! vary in size, but two seconds always have the same sum. All packets of a frame leave at once, as a
//! camera that does not pace sends them: the burst is what such traffic has and a steady stream has
//! not.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::traffic::udp::{Departure, HEADER, MOST_PACKETS, Timetable};

/// Mean rate of the payload in bytes per second: 5 Mbit/s.
const RATE: f64 = 5e6 / 8.0;

/// Frames per second.
const FRAMES: u32 = 30;

/// Frames from one key frame to the next.
const GROUP: usize = 60;

/// Size of a key frame, with that of an ordinary one as the unit.
const KEY: f64 = 6.0;

/// How far ordinary frames differ from their mean, as a share of it.
const VARIATION: f64 = 0.3;

/// UDP payload of a full packet.
const SIZE: usize = 1200;

/// The packets of all frames that begin within `length`, up to the limit of a run.
pub(super) fn timetable(length: Duration, seed: u64) -> Timetable {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut departures = Vec::new();
    let sizes = std::iter::repeat_with(|| group(&mut random)).flatten();
    for (frame, size) in (0..).zip(sizes) {
        let due = Duration::from_secs(1) * frame / FRAMES;
        if due >= length || departures.len() as u64 >= MOST_PACKETS {
            break;
        }
        departures.extend(packets(size, due));
    }
    Timetable::listed(departures, length)
}

/// Bytes of a key frame and the ordinary frames after it.
fn group(random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut weights = vec![KEY];
    let ordinary = || random.random_range(1.0 - VARIATION..1.0 + VARIATION);
    weights.extend(std::iter::repeat_with(ordinary).take(GROUP - 1));
    let unit = RATE * GROUP as f64 / f64::from(FRAMES) / weights.iter().sum::<f64>();
    weights.iter().map(|weight| (weight * unit).round() as usize).collect()
}

/// A frame in packets, all full but the last.
fn packets(bytes: usize, due: Duration) -> impl Iterator<Item = Departure> {
    let full = std::iter::repeat_n(SIZE, bytes / SIZE);
    let rest = Some(bytes % SIZE).filter(|&rest| rest > 0).map(|rest| rest.max(HEADER));
    full.chain(rest).map(move |size| Departure { due, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seconds_always_have_the_rate() {
        let film = frames(&timetable(Duration::from_secs(8), 7));
        assert_eq!(film.len(), 240);
        for group in film.chunks(GROUP) {
            let rate = group.iter().map(|&(_, bytes)| bytes).sum::<usize>() as f64 * 8.0 / 2.0;
            assert!((rate / 5e6 - 1.0).abs() < 0.001, "{rate}");
        }
    }

    #[test]
    fn key_frames_are_several_times_larger_and_all_frames_differ() {
        let film = frames(&timetable(Duration::from_secs(4), 7));
        let ordinary = &film[1..GROUP];
        let largest = ordinary.iter().map(|&(_, bytes)| bytes).max().unwrap();
        assert!(film[0].1 > 4 * largest && film[GROUP].1 > 4 * largest);
        assert!(ordinary.windows(2).all(|pair| pair[0].1 != pair[1].1));
    }

    #[test]
    fn packets_of_a_frame_leave_together_thirty_times_a_second() {
        let timetable = timetable(Duration::from_secs(1), 7);
        let film = frames(&timetable);
        assert_eq!(film.len(), 30);
        assert_eq!(film[15].0, Duration::from_millis(500));
        let sizes = (0..timetable.packets()).map(|n| timetable.departure(n).unwrap().size);
        assert!(sizes.clone().max() == Some(SIZE) && sizes.clone().all(|size| size >= HEADER));
        assert!(sizes.filter(|&size| size < SIZE).count() <= 30, "at most one per frame");
    }

    #[test]
    fn the_seed_decides() {
        let film = |seed| frames(&timetable(Duration::from_secs(2), seed));
        assert_eq!(film(1), film(1));
        assert_ne!(film(1), film(2));
    }

    /// When each frame is due, and its bytes.
    fn frames(timetable: &Timetable) -> Vec<(Duration, usize)> {
        let packets = (0..timetable.packets()).map(|n| timetable.departure(n).unwrap());
        let packets: Vec<_> = packets.collect();
        let frames = packets.chunk_by(|a, b| a.due == b.due);
        frames.map(|frame| (frame[0].due, frame.iter().map(|packet| packet.size).sum())).collect()
    }
}
