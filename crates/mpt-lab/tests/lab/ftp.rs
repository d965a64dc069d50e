//! A file fetched over FTP, from every server program that this machine has.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use mpt_lab::emulator::Direction;
use mpt_lab::lab::mptcp::Mptcp;
use mpt_lab::lab::{Host, Lab};
use mpt_lab::traffic::ftp::{self, Client, Download, Options, Program, Report, Server, StartError};

use crate::mptcp::{allow, links};
use crate::world::{Test, eventually, skip};

pub(crate) const TESTS: &[Test] = &[
    ("vsftpd_serves_a_file_ipv4", || whole(Program::Vsftpd, 4)),
    ("vsftpd_serves_a_file_ipv6", || whole(Program::Vsftpd, 6)),
    ("pyftpdlib_serves_a_file_ipv4", || whole(Program::Pyftpdlib, 4)),
    ("pyftpdlib_serves_a_file_ipv6", || whole(Program::Pyftpdlib, 6)),
    ("vsftpd_serves_over_mptcp_and_every_link", || every_link(Program::Vsftpd, [4, 4])),
    ("vsftpd_serves_over_mptcp_and_mixed_links", || every_link(Program::Vsftpd, [4, 6])),
    ("pyftpdlib_serves_over_mptcp_and_every_link", || every_link(Program::Pyftpdlib, [6, 6])),
    ("pyftpdlib_serves_over_mptcp_and_mixed_links", || every_link(Program::Pyftpdlib, [4, 6])),
    ("a_download_over_a_link_that_dies_ends_at_its_deadline", death),
    ("a_download_that_is_dropped_stops", dropped),
    ("several_clients_fetch_at_once", several),
    ("a_server_that_cannot_start_says_why", no_start),
];

const MEGABYTE: u64 = 1_000_000;

fn whole(program: Program, version: u8) {
    let lab = links(&[version]);
    let Some(server) = serve(&lab, program, 5 * MEGABYTE, None) else { return };
    let idle = lab.left().run(|| Client::connect(&server, None)).unwrap();
    let report = fetch(&lab, &server, Duration::from_secs(60)).finish();
    assert_eq!((report.failure, report.bytes), (None, 5 * MEGABYTE));
    let sum: u64 = report.series.samples().iter().map(|sample| sample.bytes).sum();
    assert_eq!(sum, report.bytes);
    // Two seconds at 20 Mbit/s, less the headers; a bucket of packets was in the queue at most.
    assert!(report.duration > Duration::from_millis(1900), "{:?}", report.duration);
    assert!(report.series.length() < report.duration + Duration::from_millis(101));
    // One session waits for a command, and on this link never learns that its client is gone.
    lab.link(0).set_blackout(Direction::Both, true);
    drop(idle);
    assert!(inhabitants(lab.right()) > 0);
    drop(server);
    eventually("the server and its sessions are gone", || inhabitants(lab.right()) == 0);
}

fn every_link(program: Program, versions: [u8; 2]) {
    let lab = links(&versions);
    let mptcp = allow(&lab);
    let Some(server) = serve(&lab, program, 5 * MEGABYTE, Some(mptcp)) else { return };
    let report = fetch(&lab, &server, Duration::from_secs(60)).finish();
    assert_eq!((report.failure, report.bytes), (None, 5 * MEGABYTE));
    for report in lab.reports() {
        let bytes = report.backward.stats.delivered.bytes;
        assert!(bytes > MEGABYTE / 2, "{} carried {bytes} bytes", report.link);
    }
}

fn death() {
    let lab = links(&[4]);
    for program in [Program::Vsftpd, Program::Pyftpdlib] {
        let Some(server) = serve(&lab, program, 500 * MEGABYTE, None) else { continue };
        let (start, limit) = (Instant::now(), Duration::from_secs(2));
        let download = fetch(&lab, &server, limit);
        eventually("the download is under way", || download.received() > 100_000);
        lab.link(0).set_blackout(Direction::Both, true);
        let report = download.finish();
        lab.link(0).set_blackout(Direction::Both, false);
        assert!(start.elapsed() >= limit);
        assert!(start.elapsed() < limit + Duration::from_secs(10), "it did not end by itself");
        let failure = report.failure.unwrap();
        assert!(failure.contains("of 500000000 bytes"), "{failure}");
        assert!(report.bytes > 100_000 && report.bytes < 500 * MEGABYTE);
    }
}

fn dropped() {
    let lab = links(&[4]);
    let Some(server) = serve_any(&lab, 500 * MEGABYTE) else { return };
    let start = Instant::now();
    let download = fetch(&lab, &server, Duration::from_secs(600));
    eventually("the download is under way", || download.received() > 100_000);
    drop(download);
    // One that waits for an answer stops as well.
    let client = lab.left().run(|| Client::connect(&server, None)).unwrap();
    lab.link(0).set_blackout(Direction::Both, true);
    drop(Download::start(client, Duration::from_secs(600)).unwrap());
    assert!(start.elapsed() < Duration::from_secs(300), "it sat out its time");
}

fn several() {
    let lab = links(&[4]);
    let Some(server) = serve_any(&lab, MEGABYTE) else { return };
    let downloads: Vec<_> = (0..4).map(|_| fetch(&lab, &server, Duration::from_secs(60))).collect();
    let reports: Vec<Report> = downloads.into_iter().map(Download::finish).collect();
    for report in reports {
        assert_eq!((report.failure, report.bytes), (None, MEGABYTE));
    }
}

fn no_start() {
    let lab = links(&[4]);
    let program = Program::find(false).unwrap_or_else(|reason| skip(&reason.to_string()));
    // An address of the other host.
    let address = lab.left().address(0);
    let error = Server::start(lab.right(), Options { program, address, bytes: 1, mptcp: None });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("ended") && text.contains("bind"), "{text}");
}

/// A server in the right host, on its first link; `None` for vsftpd without root. Gives up if the
/// program is not installed.
fn serve(lab: &Lab, program: Program, bytes: u64, mptcp: Option<Mptcp>) -> Option<Server> {
    let clients: Vec<_> = (0..lab.links().len()).map(|link| lab.left().address(link)).collect();
    ftp::send_with(lab.right(), &clients, "cubic").unwrap();
    let address = mptcp.as_ref().map_or(lab.right().address(0), Mptcp::remote);
    match Server::start(lab.right(), Options { program, address, bytes, mptcp }) {
        Ok(server) => Some(server),
        Err(StartError::Unavailable(reason)) if program == Program::Vsftpd && !is_real_root() => {
            assert!(reason.to_string().contains("root"), "{reason}");
            None
        }
        Err(StartError::Unavailable(reason)) => skip(&reason.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Whether this is root, and not only of a user namespace.
fn is_real_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Processes whose network is a host's.
fn inhabitants(host: &Host) -> usize {
    let place = |path: &Path| fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    let home = place(Path::new(&format!("/proc/self/fd/{}", host.as_fd().as_raw_fd())));
    assert!(home.is_some());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|process| place(&process.path().join("ns/net")) == home).count()
}

fn serve_any(lab: &Lab, bytes: u64) -> Option<Server> {
    let program = Program::find(false).unwrap_or(Program::Pyftpdlib);
    serve(lab, program, bytes, None)
}

fn fetch(lab: &Lab, server: &Server, limit: Duration) -> Download {
    let client = lab.left().run(|| Client::connect(server, None)).unwrap();
    Download::start(client, limit).unwrap()
}
