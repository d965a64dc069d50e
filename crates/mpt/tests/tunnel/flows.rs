//! One flow's loss does not delay another's packets: by a capture of both ends of the links and of the devices.

use std::collections::BTreeMap;
use std::time::Duration;

use mpt_lab::capture::Capture;
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::evidence::{look_for_tshark, tshark};
use crate::site::{Machine, PATIENT, Site, eventually};
use crate::suite::{Test, figure};

pub(crate) const TESTS: &[Test] =
    &[("a_lost_packet_of_one_flow_does_not_delay_another", other_flows_go_on)];

/// How much longer the second link takes.
const SKEW: f64 = 0.1;

const LINKS: &str = "[[link]]\nname = 'one'\ndelay_ms = 20\nloss = 0.04\n\
                     [[link]]\nname = 'two'\ndelay_ms = 120\nloss = 0.04\n";

/// What takes no longer has not waited, in seconds: the daemon and the capture have been busy.
const AT_ONCE: f64 = 0.005;

/// Bytes of UDP payload of a packet.
const SIZE: usize = 200;

/// Half of the packets by each link, so that every flow uses both.
const SESSION: &str = "framing = 'extended'\nscheduler = 'weighted'\n";

/// Packets of a flow by their numbers, and when each was first seen somewhere, in seconds.
type Seen = BTreeMap<u64, f64>;

/// What a capture says of one flow.
#[derive(Debug, Default)]
struct Flow {
    /// Where its packets came out of a link, and from the right host's device.
    arrived: Seen,
    delivered: Seen,
}

impl Flow {
    /// From when until when packets waited for one that was missing.
    fn gaps(&self) -> Vec<(f64, f64)> {
        let mut gaps = Vec::new();
        let mut highest = None;
        let mut by_time: Vec<(f64, u64)> = self.arrived.iter().map(|(n, at)| (*at, *n)).collect();
        by_time.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (at, number) in by_time {
            // It came after packets that are missing, and none of those behind them had come.
            if highest.is_some_and(|highest| number > highest + 1)
                && let Some(end) = self.delivered.get(&number).filter(|end| **end > at)
            {
                gaps.push((at, *end));
            }
            highest = highest.max(Some(number));
        }
        gaps
    }

    /// When all up to each packet had come, and how long it then took until it was delivered. What waited for a packet
    /// of its own flow that was given up is left out.
    fn waits(&self) -> Vec<(f64, f64)> {
        let mut ready: f64 = 0.0;
        let mut waits = Vec::new();
        let Some((&first, _)) = self.delivered.first_key_value() else { return waits };
        let (&last, _) = self.delivered.last_key_value().expect("there is a first one");
        let mut lost_until = 0.0_f64;
        for number in first..=last {
            match (self.arrived.get(&number), self.delivered.get(&number)) {
                (Some(&came), Some(&delivered)) => {
                    // Threads of their own look at links and devices, and one may be late to note the time.
                    ready = ready.max(came.min(delivered));
                    if ready > lost_until {
                        waits.push((ready, delivered - ready));
                    }
                }
                // All that has come when it is given up may have waited for it.
                _ => {
                    let next = self.delivered.range(number..).next();
                    lost_until = lost_until.max(next.map_or(ready, |(_, at)| *at));
                }
            }
        }
        waits
    }
}

fn other_flows_go_on() {
    look_for_tshark();
    let site = Site::start_with(LINKS, SESSION, |_, config| config.replace(PATIENT, ""));
    for side in [Side::Left, Side::Right] {
        eventually("both ends are in a session", || site.connection(side).framing == "extended");
    }
    let machine = Machine::watch(&site);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("flows.pcapng");
    let capture = Capture::start(&site.lab, &file, &["mpt0"]).expect("a capture");
    // At two rates, so that not all of a flow goes by one path.
    let streams = [5, 7].map(|interval| {
        let interval = Duration::from_millis(interval);
        let options = udp::Options { interval, size: SIZE, length: Duration::from_secs(5) };
        site.stream(4, options)
    });
    for stream in streams {
        stream.finish().expect("a report");
    }
    assert_eq!(capture.finish().expect("a file").dropped(), 0);

    let flows = read(&file);
    assert_eq!(flows.len(), 2, "two flows");
    let (mut waits, mut gaps) = (Vec::new(), Vec::new());
    for (one, other) in [(0, 1), (1, 0)] {
        let open = flows[one].gaps();
        let meanwhile = |ready: f64| open.iter().any(|(from, to)| (*from..*to).contains(&ready));
        waits.extend(flows[other].waits().into_iter().filter(|(ready, _)| meanwhile(*ready)));
        gaps.extend(open);
    }
    let longest_gap = gaps.iter().map(|(from, to)| to - from).fold(0.0, f64::max);
    let longest = waits.iter().map(|(_, wait)| *wait).fold(0.0, f64::max);
    let waiting = waits.iter().filter(|(_, wait)| *wait > AT_ONCE).count();
    figure(&format!(
        "{} gaps, the longest of {:.0} ms; {waiting} of {} packets of the other flow waited meanwhile, for {:.1} ms at most",
        gaps.len(),
        longest_gap * 1e3,
        waits.len(),
        longest * 1e3
    ));
    assert!(gaps.len() > 50 && waits.len() > 300, "{} gaps, {} packets", gaps.len(), waits.len());
    assert!(longest_gap > SKEW * 0.8, "gaps stay open for about the skew, {longest_gap} s");
    // Where packets wait for those of the other flow, nearly half of them do.
    assert!(waiting * 10 <= waits.len(), "{waiting} of {} packets waited", waits.len());
    // A machine that stands still delays everything.
    assert!(longest <= SKEW || machine.stalled(&site), "a packet waited for {longest} s");
}

/// The flows of a capture, by their ports.
fn read(file: &std::path::Path) -> Vec<Flow> {
    let names = ["frame.time_epoch", "frame.interface_name", "udp.payload"];
    let filter = r#"frame.packet_flags_direction == 1 && frame.interface_name in {"right one", "right two"} || frame.interface_name == "right mpt0""#;
    let mut flows: BTreeMap<u64, Flow> = BTreeMap::new();
    for fields in tshark(file, true, filter, &names) {
        let at: f64 = fields["frame.time_epoch"].parse().expect("seconds");
        let is_delivered = fields["frame.interface_name"] == "right mpt0";
        // Of the innermost packet. Packets that follow each other leave the device as one.
        let payload = fields["udp.payload"].rsplit(',').next().unwrap_or_default().as_bytes();
        for packet in payload.chunks_exact(2 * SIZE) {
            let packet = std::str::from_utf8(packet).expect("hexadecimal digits");
            let number = |at: usize| u64::from_str_radix(&packet[at..at + 16], 16);
            let (mark, number) = (number(0).expect("a number"), number(16).expect("a number"));
            // Two ports. A control message of extended framing begins with other bytes.
            if mark >> 32 != 0 {
                break;
            }
            let flow = flows.entry(mark).or_default();
            let seen = if is_delivered { &mut flow.delivered } else { &mut flow.arrived };
            let first = seen.entry(number).or_insert(at);
            *first = first.min(at);
        }
    }
    flows.into_values().collect()
}
