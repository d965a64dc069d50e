//! What Wireshark makes of the captures of a tunnel, with our dissector and without.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mpt_lab::capture::Capture;
use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS, two_links};
use crate::suite::{Test, skip};

pub(crate) const TESTS: &[Test] = &[
    ("wireshark_reads_every_datagram_over_ipv4", || every_datagram(4, "")),
    ("wireshark_reads_every_datagram_over_ipv6", || every_datagram(6, "key = 7\nchecksum = true")),
    ("wireshark_knows_data_without_our_dissector", without_ours),
    ("wireshark_shows_what_a_receiver_drops", drops),
    ("wireshark_reads_extended_framing", extended),
];

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/wireshark/mpt.lua");

/// A file with traffic of every kind through a tunnel, from its first packet on.
struct Evidence {
    folder: tempfile::TempDir,
    /// Inner packets that the left daemon sent.
    transmitted: u64,
    /// The same of the right one.
    answered: u64,
}

impl Evidence {
    fn gather(outer: u8, connection: &str) -> Self {
        look_for_tshark();
        let site = Site::start(&two_links(outer), connection);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let capture = Capture::start(&site.lab, &folder.path().join(FILE), &["mpt0"]);
        let capture = capture.unwrap_or_else(|error| panic!("{error:#}"));
        for version in [4, 6] {
            assert_eq!(site.ping(version, 5).lost, 0);
            site.assert_flawless(version);
        }
        let summary = capture.finish().unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(summary.dropped(), 0, "{summary:?}");
        let sent = |side| site.connection(side).counters.transmitted.packets;
        Self { folder, transmitted: sent(Side::Left), answered: sent(Side::Right) }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }
}

const FILE: &str = "tunnel.pcapng";

/// One packet as tshark prints it: fields by name, those that it lacks being empty.
type Fields = BTreeMap<&'static str, String>;

fn look_for_tshark() {
    let version = Command::new("tshark").arg("--version").stdout(Stdio::null()).status();
    if version.is_err() {
        skip("tshark is not installed");
    }
}

/// What tshark finds in the packets of a file that pass the filter.
fn tshark(file: &Path, ours: bool, filter: &str, names: &[&'static str]) -> Vec<Fields> {
    let mut command = Command::new("tshark");
    // Nothing of the user who runs this: no settings, no other dissectors.
    let home = tempfile::tempdir().expect("a temporary folder");
    command.env("HOME", home.path()).env("XDG_CONFIG_HOME", home.path());
    if ours {
        command.arg("-X").arg(format!("lua_script:{DISSECTOR}"));
    }
    command.arg("-n").arg("-r").arg(file).args(["-Y", filter, "-T", "fields", "-E", "separator=;"]);
    for name in names {
        command.args(["-e", name]);
    }
    let output = command.output().expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    let fields = |line: &str| -> Fields {
        names.iter().copied().zip(line.split(';').map(str::to_owned)).collect()
    };
    text.lines().map(fields).collect()
}

/// Datagrams that a host sent into any link.
fn sent_by(side: Side) -> String {
    let name = side.name();
    let ends = format!(r#"frame.interface_name in {{"{name} one", "{name} two"}}"#);
    format!("{ends} && frame.packet_flags_direction == 2")
}

fn every_datagram(outer: u8, connection: &str) {
    let evidence = Evidence::gather(outer, connection);
    let file = evidence.file();
    let strict = !connection.is_empty();
    let names = [
        "mpt.sequence",
        "mpt.key",
        "mpt.checksum.status",
        "mpt.control",
        "mpt.sender4",
        "mpt.status",
        "mpt.longest",
        "mpt.time",
        "mpt.held",
        "ip.src",
        "ipv6.src",
        "_ws.col.Protocol",
    ];
    for (side, own, count) in
        [(Side::Left, 1, evidence.transmitted), (Side::Right, 2, evidence.answered)]
    {
        let sent = tshark(&file, true, &sent_by(side), &names);
        let (keepalives, data): (Vec<_>, Vec<_>) =
            sent.iter().partition(|fields| !fields["mpt.control"].is_empty());
        let numbers: Vec<u64> =
            data.iter().map(|fields| fields["mpt.sequence"].parse().expect("a number")).collect();
        let expected: Vec<u64> = (0..count).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{side:?}");
        for fields in &data {
            let inner = [format!("10.9.0.{own}"), format!("fd00:9::{own}")];
            let sources = [&fields["ip.src"], &fields["ipv6.src"]].map(|list| list.split(','));
            let found =
                sources.into_iter().flatten().any(|source| inner.iter().any(|i| i == source));
            assert!(found, "no inner packet: {fields:?}");
            assert_ne!(fields["_ws.col.Protocol"], "MPT", "{fields:?}");
        }
        // The streams alone take 800 ms, with a keepalive on each path every 100 ms.
        assert!(keepalives.len() >= 8, "{} keepalives", keepalives.len());
        let mut heard = 0;
        for fields in keepalives {
            assert_eq!(fields["mpt.control"], "0xa1");
            assert_eq!(fields["mpt.sequence"], "");
            assert_eq!(fields["mpt.sender4"], format!("10.9.0.{own}"));
            assert_eq!(fields["mpt.status"], "0x00");
            assert!(fields["mpt.longest"].parse::<u32>().expect("a length") >= 60, "{fields:?}");
            assert!(fields["mpt.time"].parse::<u32>().is_ok(), "{fields:?}");
            heard += u32::from(!fields["mpt.held"].is_empty());
            assert_eq!(fields["_ws.col.Protocol"], "MPT");
        }
        assert!(heard >= 4, "{heard} keepalives echo what came");
        for fields in &sent {
            let (key, status) = if strict { ("7", "1") } else { ("", "") };
            let found = (fields["mpt.key"].as_str(), fields["mpt.checksum.status"].as_str());
            assert_eq!(found, (key, status), "{fields:?}");
        }
    }
    let inner = r#"frame.interface_name == "left mpt0" && frame.packet_flags_direction == 2"#;
    let inner = tshark(&file, true, inner, &["frame.number"]);
    assert_eq!(inner.len() as u64, evidence.transmitted, "what went into the tunnel");
    let bad = "_ws.malformed || mpt.drop || mpt.checksum.status == 0";
    assert_eq!(tshark(&file, true, bad, &["frame.number", "mpt.drop"]), []);
}

fn without_ours() {
    let evidence = Evidence::gather(4, "key = 7");
    let filter = format!("gre && !(ip.version == 10) && icmp && {}", sent_by(Side::Left));
    let names = ["gre.proto", "gre.key", "gre.sequence_number", "ip.src"];
    let pings = tshark(&evidence.file(), false, &filter, &names);
    assert_eq!(pings.len(), 5);
    for (number, fields) in pings.iter().enumerate() {
        assert_eq!(fields["gre.sequence_number"], number.to_string());
        assert_eq!(
            (fields["gre.proto"].as_str(), fields["gre.key"].as_str()),
            ("0x0800", "0x00000007")
        );
        assert!(fields["ip.src"].ends_with(",10.9.0.1"), "{fields:?}");
    }
}

/// A file with these datagrams, given in hexadecimal, as the left host sends them.
fn send(datagrams: &[&str]) -> (tempfile::TempDir, PathBuf) {
    look_for_tshark();
    let site = Site::links_only(TWO_LINKS, "");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(FILE);
    let capture = Capture::start(&site.lab, &file, &[]).expect("a capture");
    let socket = |side| {
        let host = site.lab.host(side);
        host.run(|| UdpSocket::bind((host.address(0), 4754))).expect("a socket")
    };
    let (left, right) = (socket(Side::Left), socket(Side::Right));
    for hex in datagrams {
        let hex: String = hex.split_whitespace().collect();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        let datagram: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        left.send_to(&datagram, right.local_addr().expect("an address")).expect("sent");
        right.recv(&mut [0; 500]).expect("received");
    }
    capture.finish().expect("a file");
    (folder, file)
}

/// An ICMP echo request from 10.9.0.1 to 10.9.0.2 (docs/protocol.md, section 14).
const INNER: &str = "4500002000004000400126c90a0900010a0900020800568c000100014d505421";
/// What follows the first four bytes of a keepalive from 10.0.0.3 to 10.0.0.2.
const KEEPALIVE: &str =
    "00040000 00000000000000000000ffff0a000003 00000000000000000000ffff0a000002";

fn drops() {
    let cases = [
        ("000008", "gre_truncated"),
        ("10000800 0000", "gre_truncated"),
        ("00000800", "inner_malformed"),
        (&format!("40000800 {INNER}"), "gre_flags"),
        (&format!("00010800 {INNER}"), "gre_version"),
        ("00000806 00", "gre_protocol"),
        (&format!("b0000800 47f80000 00000008 ffffffff {INNER}"), "gre_checksum"),
        (&format!("00000800 a2000000 {KEEPALIVE}"), "control_unknown"),
        (&format!("00000800 a1000000 {}", &KEEPALIVE[2..]), "control_length"),
        (&format!("00000800 a1000000 {KEEPALIVE} {}", "00".repeat(15)), "control_length"),
        (&format!("00000800 {}", &INNER[..62]), "inner_malformed"),
        (&format!("000086dd {INNER}"), "inner_malformed"),
        (&format!("03f80800 {INNER}"), ""),
        (&format!("b0000800 47f80000 00000007 ffffffff {INNER}"), ""),
        (&format!("00000800 a1000000 {KEEPALIVE}"), ""),
        (&format!("00000800 a1000000 {KEEPALIVE} {}", "00".repeat(16)), ""),
    ];
    let (_folder, file) = send(&cases.map(|(datagram, _)| datagram));
    let found = tshark(&file, true, &sent_by(Side::Left), &["mpt.drop"]);
    let found: Vec<_> = found.iter().map(|fields| fields["mpt.drop"].as_str()).collect();
    assert_eq!(found, cases.map(|(_, name)| name));
}

fn extended() {
    // Type and flags, path 3, flow distance 5, path sequence 6, time stamp 7: section 8.1.
    let control = |kind: &str, rest: &str| {
        format!("200088b5 00000009 {kind}0030005 00000006 00000007 {rest}")
    };
    let tunnel = &KEEPALIVE[9..];
    let hello = format!(
        "01000002 00000003 1111111111111111 0000000000000000 {tunnel} 00000007 00000001 00000000 000000aa 000000bb"
    );
    let feedback = format!("01000000 00000064 0301000c {} 00000008", "0000000a".repeat(6));
    let cases = [
        // Data, whose sequence number is 4 and which is a copy with a partial checksum.
        format!("300088b5 00000009 00000004 0c030005 00000006 00000007 {INNER}"),
        control("1", &hello),
        control("5", "2222222222222222"),
        control("6", "2222222222222222 05780000"),
        control("7", &feedback),
        control("8", "01000000 03000000 0000000b 0000000c"),
        control("9", "05000000"),
        control("a", "01000000"),
        // A close that is too short, and a type that is unassigned.
        control("a", "01"),
        control("f", "01"),
    ];
    let (_folder, file) = send(&cases.each_ref().map(String::as_str));
    let names = [
        "mpt.message",
        "mpt.key",
        "mpt.sequence",
        "mpt.path_sequence",
        "mpt.path",
        "ip.src",
        "mpt.hello.index",
        "mpt.challenge.size",
        "mpt.feedback.delay_mean",
        "mpt.feedback.range",
        "mpt.beacon.global",
        "mpt.status.backup",
        "mpt.close.reason",
        "data.data",
    ];
    let found = tshark(&file, true, &sent_by(Side::Left), &names);
    let outer = "198.18.1.1";
    let expected: [&[(&str, &str)]; 10] = [
        &[("mpt.message", "0"), ("mpt.sequence", "4"), ("ip.src", "198.18.1.1,10.9.0.1")],
        &[("mpt.message", "1"), ("mpt.hello.index", "0x000000aa,0x000000bb")],
        &[("mpt.message", "5"), ("mpt.sequence", "")],
        &[("mpt.message", "6"), ("mpt.challenge.size", "1400")],
        &[("mpt.message", "7"), ("mpt.feedback.delay_mean", "10"), ("mpt.feedback.range", "8")],
        &[("mpt.message", "8"), ("mpt.beacon.global", "11"), ("mpt.path", "3,3")],
        &[("mpt.message", "9"), ("mpt.status.backup", "1"), ("ip.src", outer)],
        &[("mpt.message", "10"), ("mpt.close.reason", "1")],
        &[("mpt.message", "10"), ("mpt.close.reason", ""), ("data.data", "01")],
        &[("mpt.message", "15"), ("data.data", "01")],
    ];
    assert_eq!(found.len(), expected.len());
    for (fields, expected) in found.iter().zip(expected) {
        for (name, value) in expected {
            assert_eq!(fields[name], *value, "{name} of {fields:?}");
        }
        assert_eq!((fields["mpt.key"].as_str(), fields["mpt.path_sequence"].as_str()), ("9", "6"));
    }
    let bad = tshark(&file, true, "_ws.lua.error || _ws.malformed || mpt.drop", &["frame.number"]);
    assert_eq!(bad, []);
}
