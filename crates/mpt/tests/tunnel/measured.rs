//! Status and metrics of links with known delay, loss and order.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use mpt_control::PathState;
use mpt_io::netlink::Netlink;
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{PATIENCE, Site, eventually, inner};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] =
    &[("the_status_of_both_ends_shows_what_the_links_do_to_packets", links)];

/// One that is short and loses some, one that is longer and lets some overtake others.
const LINKS: &str = "[[link]]\nname = 'one'\ndelay_ms = 10\nloss = 0.05\n\
                     [[link]]\nname = 'two'\ndelay_ms = 40\nreorder = 0.05\n";

/// 1000 packets for each path.
const STREAM: udp::Options =
    udp::Options { interval: Duration::from_millis(1), size: 200, length: Duration::from_secs(2) };

#[expect(clippy::print_stderr, reason = "the figures are for the reader of the run")]
fn links() {
    let metrics = |_, config| format!("[metrics]\nlisten = '127.0.0.1:9475'\n\n{config}");
    let mut site = Site::links_only(LINKS, "reorder = { max_delay = 1, early_release = false }");
    for side in [Side::Left, Side::Right] {
        site.lab.host(side).run(|| {
            let mut netlink = Netlink::open().expect("a netlink socket");
            let index = netlink.link("lo").expect("an answer").expect("a loopback").index;
            netlink.set_up(index, true).expect("a loopback that is up");
        });
        site.start_daemon_with(side, &metrics(side, site.config(side)));
    }
    site.await_all_up();
    // Both at the same time, from left to right and back.
    let there = site.stream(4, STREAM);
    let back = {
        let sink = site.lab.left().run(|| udp::Sink::bind(inner(Side::Left, 4))).expect("a sink");
        let remote = sink.address();
        let source = site.lab.right().run(|| udp::Source::connect(remote)).expect("a source");
        udp::Stream::start(sink, source, STREAM).expect("a stream")
    };
    for stream in [there, back] {
        let order = stream.finish().expect("a report").order;
        assert!(order.received > 1800 && order.received < order.sent, "{order:?}");
    }
    for (side, other) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
        // The last keepalives report the last packets.
        eventually("what is lost is told exactly", || {
            (0..2).all(|index| {
                let (path, peer) = (site.path(side, index), site.path(other, index));
                path.lost == Some(peer.sent.packets - path.received.packets)
            })
        });
        let connection = site.connection(side);
        let [one, two] = &connection.paths[..] else { panic!("two paths") };
        eprintln!("{side:?}: {} | {}", shown(one), shown(two));
        // Twice the delay of the link; above that, whatever a busy machine adds.
        between(20.0, 500.0, one.rtt_ms);
        between(50.0, 500.0, two.rtt_ms);
        assert!(one.jitter_ms.is_some() && two.jitter_ms.is_some(), "{connection:?}");
        between(20.0, 100.0, one.lost.map(|lost| lost as f64));
        between(0.02, 0.1, one.loss);
        assert_eq!((two.lost, two.loss), (Some(0), Some(0.0)));

        let (kept, mixed) = (&one.reordering, &two.reordering);
        assert_eq!((kept.packets, kept.reordered), (one.received.packets, 0), "{kept:?}");
        assert_eq!(kept.ratio, 0.0);
        // Each that overtakes 40 ms of others makes all of them reordered.
        assert_eq!(mixed.packets, two.received.packets);
        assert!(mixed.ratio > 0.2 && mixed.reordered < mixed.packets, "{mixed:?}");
        assert!(mixed.extent_mean >= 1.0 && mixed.extent_max > 5, "{mixed:?}");
        assert!(mixed.late_ms_max > 20.0 && mixed.late_ms_mean < mixed.late_ms_max, "{mixed:?}");
        assert!(!mixed.n_reordering.is_empty() && !mixed.density.is_empty(), "{mixed:?}");
        let all = &connection.reordering;
        assert_eq!(all.packets, kept.packets + mixed.packets);
        assert!(all.reordered > 500 && all.late_ms_max > 20.0, "one link is longer: {all:?}");
        shows(&site, side, &connection.paths);
    }
}

fn shown(path: &PathState) -> String {
    let PathState { name, rtt_ms, jitter_ms, lost, loss, reordering, .. } = path;
    let (ratio, extent) = (reordering.ratio, reordering.extent_mean);
    format!(
        "{name} {rtt_ms:.1?} ms {jitter_ms:.1?} ms lost {lost:?} {loss:.3?} reordered {ratio:.3} extent {extent:.1}"
    )
}

fn between(least: f64, most: f64, value: Option<f64>) {
    let value = value.expect("it is measured");
    assert!((least..=most).contains(&value), "{value} is not in {least}..={most}");
}

/// The metrics page has the same values.
fn shows(site: &Site, side: Side, paths: &[PathState]) {
    let page = site.lab.host(side).run(page);
    let sample = |metric: &str, path: &PathState| -> f64 {
        let labels = format!("{{tunnel=\"mpt0\",connection=\"peer\",path=\"{}\"}} ", path.name);
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{metric}{labels}")));
        line.unwrap_or_else(|| panic!("no {metric} in\n{page}")).parse().expect("a number")
    };
    for path in paths {
        let lost = path.lost.expect("it is measured") as f64;
        assert_eq!(sample("mpt_path_lost_datagrams_total", path), lost);
        let reordered = sample("mpt_path_reordering_reordered_packets_total", path);
        assert_eq!(reordered, path.reordering.reordered as f64);
        between(0.01, 0.5, Some(sample("mpt_path_rtt_seconds", path)));
        assert!(sample("mpt_path_jitter_seconds", path) < 0.5);
        assert!(sample("mpt_path_loss_ratio", path) < 0.1);
    }
}

fn page() -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9475").expect("an exporter");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("room in the socket");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}
