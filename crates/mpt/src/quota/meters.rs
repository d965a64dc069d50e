//! What paths with a quota have carried since their months began.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file::{self, Count};
use super::month::{DAY, Month};
use super::rule::{Level, Use};
use crate::config;
use crate::output;

/// How often the counts are written: what a crash loses is at most what was carried meanwhile, and flash memory bears a
/// hundred writes a day.
const SAVE_EVERY: Duration = Duration::from_secs(600);

/// How long a count stays in seconds after its month began: two months.
const FORGET: u64 = 62 * DAY;

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The paths of a connection by an interface, which were found by themselves.
    Interface {
        /// The connection.
        connection: String,
        /// The interface.
        interface: String,
    },
    /// A configured path.
    Path {
        /// Its connection.
        connection: String,
        /// Its name.
        path: String,
    },
}

/// A count.
#[derive(Debug)]
struct Meter {
    /// When its month began; `None` as long as the clock was not set.
    begin: Option<u64>,
    used: u64,
    /// What was warned of last.
    told: Level,
}

/// The counts of a tunnel. What cannot be read or written is reported once, and counted on.
#[derive(Debug)]
pub(crate) struct Meters {
    file: PathBuf,
    meters: BTreeMap<Key, Meter>,
    /// When the counts are to be written; `None` if they are as they were.
    save_at: Option<Instant>,
    complained: bool,
    /// The clock as it was last shown, in seconds since 1970.
    clock: u64,
}

impl Meters {
    /// The counts that a file keeps.
    pub(crate) fn load(file: PathBuf) -> Self {
        let counts = file::read(&file).unwrap_or_else(|error| {
            tracing::warn!("{error:#}; quotas are counted from zero, and the file is replaced");
            Vec::new()
        });
        let meter = |Count { key, begin, used }| (key, Meter { begin, used, told: Level::Enough });
        let meters = counts.into_iter().map(meter).collect();
        Self { file, meters, save_at: None, complained: false, clock: 0 }
    }

    /// So many bytes more were carried.
    pub(crate) fn count(&mut self, key: &Key, bytes: u64, now: Instant) {
        if bytes > 0 {
            self.meter(key).used += bytes;
            self.save_at.get_or_insert(now + SAVE_EVERY);
        }
    }

    /// How much of a quota is used whose month begins on this day, at a time in seconds since 1970; `None`: the clock is
    /// not set. A warning is logged when it becomes little.
    pub(crate) fn look(
        &mut self,
        key: &Key,
        quota: config::Quota,
        day: u8,
        clock: Option<u64>,
    ) -> Use {
        self.clock = clock.unwrap_or(self.clock);
        let meter = self.meter(key);
        let month = clock.map(|clock| meter.month(clock, day));
        let all = quota.bytes();
        let found = Use { quota: all, used: meter.used, month, now: clock.unwrap_or_default() };
        let level = found.level();
        let more = level > std::mem::replace(&mut meter.told, level);
        if more {
            warn(key, level, &found);
        }
        found
    }

    /// Writes the counts if it is time, or at once if the daemon ends.
    pub(crate) fn save(&mut self, now: Instant, ends: bool) {
        if self.save_at.is_none_or(|at| now < at && !ends) {
            return;
        }
        // What has no quota any more is forgotten in time.
        let clock = self.clock;
        self.meters.retain(|_, meter| meter.begin.is_none_or(|begin| clock < begin + FORGET));
        let count = |(key, meter): (&Key, &Meter)| Count {
            key: key.clone(),
            begin: meter.begin,
            used: meter.used,
        };
        let counts: Vec<Count> = self.meters.iter().map(count).collect();
        match file::write(&self.file, &counts) {
            Ok(()) => {
                (self.save_at, self.complained) = (None, false);
            }
            Err(error) => {
                self.save_at = Some(now + SAVE_EVERY);
                if !std::mem::replace(&mut self.complained, true) {
                    tracing::warn!(
                        "{error:#}; quotas are counted on in memory, but a restart of the daemon loses that: make \
                         the folder writable for its user, or name another one by `state_dir` in `[daemon]`"
                    );
                }
            }
        }
    }

    /// The file that keeps the counts.
    pub(crate) fn file(folder: &Path, tunnel: &str) -> PathBuf {
        folder.join(format!("{tunnel}.quota.toml"))
    }

    fn meter(&mut self, key: &Key) -> &mut Meter {
        let new = || Meter { begin: None, used: 0, told: Level::Enough };
        self.meters.entry(key.clone()).or_insert_with(new)
    }
}

impl Meter {
    /// The month at a time. A new one begins with nothing used.
    fn month(&mut self, now: u64, day: u8) -> Month {
        let month = Month::around(now, day);
        match self.begin {
            // The clock shows less than it has shown: what was used is not forgotten for that.
            Some(begin) if begin > now => return Month::around(begin, day),
            Some(begin) if begin < month.begin => (self.used, self.told) = (0, Level::Enough),
            _ => {}
        }
        self.begin = Some(month.begin);
        month
    }
}

fn warn(key: &Key, level: Level, found: &Use) {
    let (connection, path) = match key {
        Key::Interface { connection, interface } => (connection, interface),
        Key::Path { connection, path } => (connection, path),
    };
    let quota = output::bytes(found.quota);
    let left = found.month.map_or(u64::MAX, |month| month.end.saturating_sub(found.now));
    let rest = if found.month.is_some() {
        format!("the month ends in {}", output::duration(left as f64))
    } else {
        "the host's clock is not set, so it is not known when the month ends".to_owned()
    };
    if level == Level::Nothing {
        tracing::warn!(
            connection,
            path,
            "the quota of {quota} is used up: the path carries packets only while no other one is up; {rest}"
        );
    } else {
        let used = output::bytes(found.used);
        tracing::warn!(connection, path, "{used} of the quota of {quota} are used; {rest}");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::Quota;

    const QUOTA: u64 = 1_000_000_000;

    fn key() -> Key {
        Key::Path { connection: "server".into(), path: "lte".into() }
    }

    fn used(meters: &mut Meters, day: u8, clock: Option<u64>) -> u64 {
        meters.look(&key(), Quota::of(QUOTA), day, clock).used
    }

    /// The clock at noon of a day of the year 2026, which begins on the day 20,454 of the epoch.
    fn clock(day_of_year: u64) -> Option<u64> {
        Some((20_454 + day_of_year - 1) * DAY + DAY / 2)
    }

    #[test]
    fn a_restart_goes_on_counting_and_a_new_month_begins_at_zero() {
        let place = tempfile::tempdir().unwrap();
        let file = Meters::file(place.path(), "mpt0");
        let start = Instant::now();
        let mut meters = Meters::load(file.clone());
        assert_eq!(used(&mut meters, 1, clock(10)), 0);
        meters.count(&key(), 400, start);
        assert_eq!(used(&mut meters, 1, clock(20)), 400);
        meters.save(start + SAVE_EVERY - Duration::from_secs(1), false);
        assert!(!file.exists(), "it is written rarely");
        meters.save(start + SAVE_EVERY, false);
        let mut meters = Meters::load(file.clone());
        meters.count(&key(), 30, start);
        assert_eq!(used(&mut meters, 1, clock(31)), 430);
        meters.save(start, true);
        let mut meters = Meters::load(file);
        assert_eq!(used(&mut meters, 1, clock(32)), 0, "the first of February");
        meters.count(&key(), 5, start);
        assert_eq!(used(&mut meters, 1, clock(33)), 5);
    }

    #[test]
    fn nothing_is_written_when_nothing_was_counted() {
        let place = tempfile::tempdir().unwrap();
        let file = Meters::file(place.path(), "mpt0");
        let mut meters = Meters::load(file.clone());
        used(&mut meters, 1, clock(10));
        meters.count(&key(), 0, Instant::now());
        meters.save(Instant::now(), true);
        assert!(!file.exists());
    }

    #[test]
    fn a_clock_that_is_not_set_or_goes_back_loses_no_count() {
        let place = tempfile::tempdir().unwrap();
        let mut meters = Meters::load(Meters::file(place.path(), "mpt0"));
        let now = Instant::now();
        meters.count(&key(), 7, now);
        assert_eq!(used(&mut meters, 15, None), 7);
        assert_eq!(used(&mut meters, 15, clock(50)), 7, "it is set");
        meters.count(&key(), 10, now);
        assert_eq!(used(&mut meters, 15, None), 17);
        assert_eq!(used(&mut meters, 15, clock(10)), 17, "it is set to an earlier month");
        assert_eq!(used(&mut meters, 15, clock(60)), 17, "and to the right one again");
        assert_eq!(used(&mut meters, 15, clock(75)), 0, "March the 16th");
    }

    #[test]
    fn a_folder_that_cannot_be_written_stops_no_count() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        fs::write(&folder, "not a folder").unwrap();
        let start = Instant::now();
        let mut meters = Meters::load(Meters::file(&folder, "mpt0"));
        meters.count(&key(), 5, start);
        meters.save(start + SAVE_EVERY, false);
        assert!(meters.complained);
        meters.count(&key(), 5, start);
        assert_eq!(used(&mut meters, 1, clock(10)), 10);
        meters.save(start + SAVE_EVERY, false);
        // It is tried again later.
        fs::remove_file(&folder).unwrap();
        meters.save(start + 2 * SAVE_EVERY, false);
        assert!(!meters.complained);
        let mut meters = Meters::load(Meters::file(&folder, "mpt0"));
        assert_eq!(used(&mut meters, 1, clock(10)), 10);
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let file = Meters::file(place.path(), "mpt0");
        fs::write(&file, "once it was TOML: \0").unwrap();
        let mut meters = Meters::load(file.clone());
        meters.count(&key(), 5, Instant::now());
        meters.save(Instant::now(), true);
        assert_eq!(used(&mut Meters::load(file), 1, clock(10)), 5);
    }

    #[test]
    fn what_has_no_quota_any_more_is_forgotten_after_two_months() {
        let place = tempfile::tempdir().unwrap();
        let mut meters = Meters::load(Meters::file(place.path(), "mpt0"));
        let other = Key::Path { connection: "server".into(), path: "gone".into() };
        meters.count(&other, 5, Instant::now());
        meters.look(&other, Quota::of(QUOTA), 1, clock(10));
        for (day, known) in [(50, 2), (80, 1)] {
            meters.count(&key(), 5, Instant::now());
            used(&mut meters, 1, clock(day));
            meters.save(Instant::now(), true);
            assert_eq!(meters.meters.len(), known, "{day}");
        }
    }

    #[test]
    fn it_is_told_once_at_80_percent_and_once_at_all() {
        let place = tempfile::tempdir().unwrap();
        let mut meters = Meters::load(Meters::file(place.path(), "mpt0"));
        let mut told = Vec::new();
        for _ in 0..24 {
            meters.count(&key(), QUOTA / 20, Instant::now());
            let before = meters.meter(&key()).told;
            used(&mut meters, 1, clock(10));
            let after = meters.meter(&key()).told;
            if after > before {
                told.push((meters.meter(&key()).used * 100 / QUOTA, after));
            }
        }
        assert_eq!(told, [(80, Level::Little), (100, Level::Nothing)]);
        used(&mut meters, 1, clock(40));
        assert_eq!(meters.meter(&key()).told, Level::Enough, "a month later");
    }
}
