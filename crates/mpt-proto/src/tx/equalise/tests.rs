use super::*;

const MS: Duration = Duration::from_millis(1);

const SITUATION: Situation = Situation {
    backlog: Duration::ZERO,
    reached: [1_000_000; 2],
    rates: None,
    is_full: false,
    skew: Duration::from_millis(50),
    round_trip: Duration::from_millis(20),
};

/// What a packet of a bulk flow tells.
const BULK: Judged = Judged { volume: Volume::Bulk, is_known: true, is_over: true };

fn early(delay: Duration) -> Early {
    Early { delay, ..Early::default() }
}

/// A bulk flow over a path of 1 MB/s with a round trip of 20 ms, beside one that is 50 ms slower.
struct Flow {
    equalise: Equalise,
    now: Instant,
}

impl Flow {
    fn new() -> Self {
        Self { equalise: Equalise::default(), now: Instant::ZERO + Duration::from_secs(1) }
    }

    /// For so many tenths of a second as much is sent as the window in bytes allows, or if less the pace.
    fn run(&mut self, tenths: u32, window: f64, pace: f64) -> Duration {
        for _ in 0..tenths * 10 {
            self.now += 10 * MS;
            let round_trip = 20.0 + self.equalise.delay.as_secs_f64() * 1e3;
            let rate = (window / round_trip).min(pace) * 1e3;
            self.equalise.on_packet(self.now, BULK);
            self.equalise.on_sent((rate / 100.0) as usize);
            self.equalise.update(self.now, SITUATION);
        }
        self.equalise.delay
    }
}

#[test]
fn grows_as_far_as_the_window_of_the_sender_reaches_and_then_further_as_that_grows() {
    let mut flow = Flow::new();
    assert_eq!(flow.run(5, 40_000.0, 1000.0), Duration::ZERO, "nothing is known yet");
    let reached = flow.run(100, 40_000.0, 1000.0);
    assert!((14 * MS..=21 * MS).contains(&reached), "{reached:?}");
    let reached = flow.run(200, 80_000.0, 1000.0);
    assert_eq!(reached, 50 * MS + SPARE);
    assert!(flow.equalise.of(Volume::Bulk).is_some() && flow.equalise.of(Volume::Usual).is_none());
}

#[test]
fn a_flow_with_a_window_of_one_path_is_left_alone_for_longer_and_longer() {
    let mut flow = Flow::new();
    let mut delayed = 0;
    for _ in 0..600 {
        delayed += u32::from(!flow.run(1, 20_000.0, 1000.0).is_zero());
    }
    assert!((6..60).contains(&delayed), "{delayed} tenths of a minute");
}

#[test]
fn replaces_the_queue_by_which_slower_paths_have_joined_unless_packets_wait_for_all() {
    for is_full in [false, true] {
        let mut equalise = Equalise::default();
        let mut now = Instant::ZERO + Duration::from_secs(1);
        for _ in 0..200 {
            now += 10 * MS;
            equalise.on_packet(now, BULK);
            equalise.on_sent(19_500);
            let backlog = (52 * MS).saturating_sub(equalise.delay);
            let rates = Some(2_000_000);
            equalise.update(now, Situation { backlog, rates, is_full, ..SITUATION });
        }
        let expected = if is_full { Duration::ZERO } else { 49 * MS };
        assert_eq!(equalise.delay, expected, "packets wait: {is_full}");
    }
}

#[test]
fn the_early_delay_does_not_change_while_there_is_a_bulk_flow() {
    let mut flow = Flow::new();
    assert!(flow.equalise.set_early(flow.now, early(30 * MS), true));
    flow.run(1, 20_000.0, 1000.0);
    assert!(!flow.equalise.set_early(flow.now, early(10 * MS), true));
    assert_eq!(flow.equalise.delay(), 30 * MS);
    let later = flow.now + FORGOTTEN;
    assert!(flow.equalise.set_early(later, early(10 * MS), true));
    assert_eq!(flow.equalise.delay(), 10 * MS);
    flow.run(1, 20_000.0, 1000.0);
    assert!(flow.equalise.set_early(flow.now, early(Duration::ZERO), false), "one path is left");
    assert_eq!(flow.equalise.delay(), Duration::ZERO);
}

#[test]
fn the_early_delay_does_not_change_while_a_connection_begins_that_may_become_a_bulk_flow() {
    let mut equalise = Equalise::default();
    let mut now = Instant::ZERO + Duration::from_secs(1);
    for (is_over, volume, changes) in
        [(true, Volume::Early, false), (false, Volume::Early, true), (true, Volume::Usual, true)]
    {
        now += 2 * YOUNG;
        equalise.set_early(now, early(20 * MS), true);
        equalise.on_packet(now, Judged { volume, is_over, ..BULK });
        let late = now + (YOUNG - MS);
        assert_eq!(equalise.set_early(late, early(40 * MS), true), changes, "{volume:?}");
        assert!(equalise.set_early(late + MS, early(50 * MS), true));
    }
}

#[test]
fn a_flow_whose_window_fills_a_path_beside_a_small_faster_one_is_not_slowed_down() {
    // 0.1 MB/s, 2 MB/s that take 15 ms longer, and as much that takes 50 ms longer. A flow has 80 kB in flight.
    let paths = [(0, 100_000), (15, 2_000_000), (50, 2_000_000)];
    let within =
        |delay: Duration| paths.iter().filter(|it| it.0 * MS <= delay).map(|it| it.1).sum::<u64>();
    let mut equalise = Equalise::default();
    let mut now = Instant::ZERO + Duration::from_secs(1);
    equalise.set_early(now, early(15 * MS), true);
    let mut least = f64::MAX;
    for _ in 0..3000 {
        now += 10 * MS;
        let rate = 80_000.0 / (20 * MS + equalise.delay).as_secs_f64();
        least = least.min(rate);
        equalise.on_packet(now, BULK);
        equalise.on_sent((rate / 100.0) as usize);
        let reached = [equalise.delay, shrunk(equalise.delay)].map(within);
        let rates = Some(4_100_000);
        equalise.update(now, Situation { reached, rates, ..SITUATION });
    }
    assert!(least > 1_800_000.0, "{least} bytes per second");
}

#[test]
fn ends_without_bulk() {
    let mut flow = Flow::new();
    flow.run(50, 40_000.0, 1000.0);
    assert!(flow.equalise.is_active() && flow.equalise.told().is_some());
    let now = flow.now + FORGOTTEN;
    assert!(flow.equalise.update(now, SITUATION), "the peer is told");
    assert!(!flow.equalise.is_active() && flow.equalise.told().is_none());
}
