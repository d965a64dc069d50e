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
pub(crate) type Fields = BTreeMap<&'static str, String>;

pub(crate) fn look_for_tshark() {
    let version = Command::new("tshark").arg("--version").stdout(Stdio::null()).status();
    if version.is_err() {
        skip("tshark is not installed");
    }
}

/// What tshark finds in the packets of a file that pass the filter.
pub(crate) fn tshark(file: &Path, ours: bool, filter: &str, names: &[&'static str]) -> Vec<Fields> {
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

/// The datagram of a vector of `docs/protocol.md`, section 14, as it is printed.
fn vector(number: u8) -> String {
    let document = include_str!("../../../../docs/protocol.md");
    let text = document.split(&format!("**14.{number}** ")).nth(1).expect("the vector");
    text.split("```").nth(1).expect("its datagram").to_owned()
}

fn extended() {
    let hello = vector(15) + &"00".repeat(252);
    let answer = vector(16);
    let changed = |at: usize, byte: &str, datagram: &str| {
        let mut hex: String = datagram.split_whitespace().collect();
        hex.replace_range(2 * at..2 * at + 2, byte);
        hex
    };
    let first = vector(13);
    // Each with the fields that it must have, and of these every value.
    let handshake = |kind: u8, len: usize| {
        format!(
            "200088b5 00000000 {kind:x}0ff0000 00000000 00000001 0a0b0c0d {}",
            "00".repeat(len - 4)
        )
    };
    let cases: [(String, &[(&str, &str)]); 30] = [
        (
            first.clone(),
            &[
                ("mpt.message", "0"),
                ("mpt.sequence", "4"),
                ("mpt.tail", "1"),
                ("mpt.out_of_turn", "0"),
                ("mpt.flow_distance", "5"),
                ("mpt.path_sequence", "6"),
                ("mpt.timestamp", "5000000"),
                ("ip.src", "198.18.1.1,10.9.0.1"),
            ],
        ),
        (
            vector(14),
            &[
                ("mpt.partial", "1"),
                ("mpt.out_of_turn", "1"),
                ("mpt.tail", "0"),
                ("mpt.equalise", "1"),
            ],
        ),
        (
            hello.clone(),
            &[
                ("mpt.message", "1"),
                ("mpt.key", "0"),
                ("mpt.sequence", ""),
                ("mpt.hello.session", "0x1111111122222222"),
                ("mpt.hello.index", "0x0a0b0c0d"),
                ("mpt.hello.repair", "1"),
                ("mpt.hello.key", "7"),
                ("mpt.receiver4", "10.9.0.2"),
            ],
        ),
        (
            answer.clone(),
            &[
                ("mpt.message", "2"),
                ("mpt.hello.answered", "0x1111111122222222"),
                ("mpt.hello.cookie", "0x0123456789abcdef"),
                ("mpt.hello.repair", "0"),
                ("mpt.hello.index", "0x1a1b1c1d"),
            ],
        ),
        (vector(17), &[("mpt.message", "11"), ("mpt.sender", "fd00:9::1"), ("mpt.hello.key", "")]),
        (vector(18), &[("mpt.message", "5"), ("mpt.challenge", "0x0123456789abcdef")]),
        (vector(19), &[("mpt.message", "6"), ("mpt.challenge.size", "1400")]),
        (
            vector(20),
            &[
                ("mpt.message", "7"),
                ("mpt.block.path", "3,254"),
                ("mpt.feedback.number", "258"),
                ("mpt.feedback.highest", "1000,4294967295"),
                ("mpt.feedback.received_bytes", "4294967297,104000000"),
                ("mpt.feedback.lost", "8,65536"),
                ("mpt.feedback.late", "2,0"),
                ("mpt.feedback.delay_deviation", "60,0"),
                ("mpt.longest", "1472,0"),
                ("mpt.feedback.below", "302,0"),
                ("mpt.feedback.range", "10,300"),
                ("mpt.feedback.bitmap", "0x8000000000000001,0x0000000000000001"),
            ],
        ),
        (
            vector(21),
            &[
                ("mpt.message", "8"),
                ("mpt.path", "2"),
                ("mpt.block.path", "2,3"),
                ("mpt.beacon.global", "4000000000,4294967295"),
                ("mpt.beacon.path_sequence", "16909059,0"),
            ],
        ),
        (
            vector(22),
            &[
                ("mpt.message", "9"),
                ("mpt.status.standby", "1"),
                ("mpt.status.calls", "3"),
                ("mpt.count", "200"),
                ("mpt.longest", "1472"),
                ("mpt.weight", "40"),
                ("mpt.lost_path", "2"),
                ("mpt.sent", "100000"),
                ("mpt.held", "250000"),
                ("mpt.hold", "80000"),
            ],
        ),
        (
            vector(23),
            &[
                ("mpt.status.off", "1"),
                ("mpt.weight", ""),
                ("mpt.lost_path", ""),
                ("mpt.held", ""),
                ("mpt.hold", ""),
            ],
        ),
        (vector(24), &[("mpt.message", "10"), ("mpt.close.reason", "1"), ("mpt.close.index", "")]),
        (vector(25), &[("mpt.close.reason", "4"), ("mpt.close.index", "0x0a0b0c0d")]),
        (handshake(3, 220), &[("mpt.message", "3"), ("mpt.hello.index", "0x0a0b0c0d")]),
        (handshake(4, 140), &[("mpt.message", "4"), ("mpt.key", "0")]),
        (handshake(13, 44), &[("mpt.message", "13")]),
        // What a receiver drops.
        (handshake(3, 219), &[("mpt.drop", "control_length")]),
        (changed(1, "01", &first), &[("mpt.drop", "gre_version")]),
        (changed(0, "b0", &first), &[("mpt.drop", "gre_flags")]),
        (changed(0, "10", &first), &[("mpt.drop", "gre_flags")]),
        (changed(12, "12", &first), &[("mpt.drop", "gre_flags")]),
        (changed(0, "20", &first), &[("mpt.drop", "gre_flags")]),
        ("300088b5 00000009 0000".to_owned(), &[("mpt.drop", "gre_truncated")]),
        ("200088b5 00000009".to_owned(), &[("mpt.drop", "extended_truncated")]),
        (first[..first.len() - 3].to_owned(), &[("mpt.drop", "inner_malformed")]),
        (vector(15), &[("mpt.drop", "control_length")]),
        (changed(23, "02", &answer), &[("mpt.drop", "control_length")]),
        (changed(20, "03", &vector(20)), &[("mpt.drop", "control_length")]),
        (changed(95, "00", &answer), &[("mpt.drop", ""), ("mpt.hello.index", "0x1a1b1c00")]),
        (changed(8, "f1", &vector(24)), &[("mpt.drop", "control_unknown")]),
    ];
    let datagrams = cases.each_ref().map(|(datagram, _)| datagram.as_str());
    let (_folder, file) = send(&datagrams);
    let mut names: Vec<_> = cases.iter().flat_map(|(_, fields)| *fields).map(|(n, _)| *n).collect();
    names.sort_unstable();
    names.dedup();
    let found = tshark(&file, true, &sent_by(Side::Left), &names);
    assert_eq!(found.len(), cases.len());
    for (fields, (datagram, expected)) in found.iter().zip(&cases) {
        for (name, value) in *expected {
            assert_eq!(fields[name], *value, "{name} of {datagram}: {fields:?}");
        }
        let drop = expected.iter().find(|(name, _)| *name == "mpt.drop");
        let drop = drop.map_or("", |(_, value)| *value);
        assert_eq!(fields["mpt.drop"], drop, "{datagram}: {fields:?}");
    }
    let bad = tshark(&file, true, "_ws.lua.error || _ws.malformed", &["frame.number"]);
    assert_eq!(bad, []);
}
