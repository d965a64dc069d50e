//! Combined mapping: two connections to one peer, one for some packets and one for the rest.

use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::tcp;

use super::{all_flawless, connection_of, packets, sent_during, stream};
use crate::site::{Site, inner};

/// Places of the connections in the configuration.
pub(super) const VOICE: usize = 0;
pub(super) const REST: usize = 1;

/// Two links for each connection.
const FOUR_LINKS: &str = "[[link]]\nname = 'one'\nrate_mbps = 50\ndelay_ms = 2\n\
                          [[link]]\nname = 'two'\nrate_mbps = 50\ndelay_ms = 10\n\
                          [[link]]\nname = 'three'\nrate_mbps = 50\ndelay_ms = 2\n\
                          [[link]]\nname = 'four'\nrate_mbps = 50\ndelay_ms = 10\n";

/// A connection for what `rule` matches over the first two links, with these lines of its own, and
/// one for the rest over the other two.
pub(super) fn site(rule: &str, lines: &str) -> Site {
    const PATH: &str = "[[tunnel.connection.path]]\n";
    Site::start_with(FOUR_LINKS, "", |_, config| {
        let mut parts = config.split(PATH);
        let head = parts.next().expect("a tunnel");
        let (tunnel, connection) =
            head.split_once("[[tunnel.connection]]\n").expect("a connection");
        let paths: Vec<_> = parts.map(|path| format!("{PATH}{path}")).collect();
        let voice = connection
            .replace("name = 'peer'", &format!("name = 'voice'\n{lines}\nmatch = {rule}"));
        let [voice_paths, rest_paths] = [paths[..2].concat(), paths[2..].concat()];
        format!(
            "{tunnel}[[tunnel.connection]]\n{voice}{voice_paths}\
             [[tunnel.connection]]\n{connection}{rest_paths}"
        )
    })
}

pub(super) fn combined() {
    let rule = "{ protocol = 'udp', ports = ['5000-5999'] }";
    // Distinguished by a key, or by ports.
    for lines in ["key = 2", "local_port = 4800\nremote_port = 4800"] {
        let site = site(rule, lines);
        assert_eq!(
            connection_of(&site, Side::Left, VOICE).r#match.as_deref(),
            Some("udp 5000-5999")
        );
        for from in [Side::Left, Side::Right] {
            udp_and_tcp(&site, from);
        }
    }
}

/// Runs both kinds at once, and asserts that each kept to its connection and used both its paths.
fn udp_and_tcp(site: &Site, from: Side) {
    let tcp = tcp_flow(site, from);
    let before = connection_of(site, from, VOICE).counters.transmitted.packets;
    let sent = sent_during(site, from, VOICE, || {
        all_flawless([4, 6].map(|version| stream(site, from, version, 5060, packets(400, 1))));
    });
    let transmitted = connection_of(site, from, VOICE).counters.transmitted.packets - before;
    assert_eq!(transmitted, 800, "the UDP packets and nothing else");
    assert_eq!(sent, [400, 400], "packet by packet, by the weights");
    crate::site::eventually("TCP has arrived", || tcp.received() > 1_000_000);
    assert_eq!(tcp.finish().failure, None);
    let rest = connection_of(site, from, REST);
    let sent: Vec<_> = rest.paths.iter().map(|path| path.sent.packets).collect();
    assert!(sent[0] > 300 && sent[0].abs_diff(sent[1]) <= 1, "{sent:?}");

    let others = || all_flawless([stream(site, from, 4, 7000, packets(100, 1))]);
    assert_eq!(sent_during(site, from, VOICE, others), [0, 0], "another port");
    let held = [VOICE, REST].map(|connection| connection_of(site, from, connection).drops);
    assert!(held.iter().all(|drops| !drops.contains_key("inner_source")), "{held:?}");
}

fn tcp_flow(site: &Site, from: Side) -> tcp::Flow {
    let to = if from == Side::Left { Side::Right } else { Side::Left };
    let listen = || tcp::Sink::listen(tcp::Transport::Tcp, inner(to, 4), None);
    let sink = site.lab.host(to).run(listen).expect("a sink");
    let remote = sink.address();
    let connect = || tcp::Source::connect(tcp::Transport::Tcp, remote, None, tcp::CUBIC);
    let source = site.lab.host(from).run(connect).expect("a source");
    tcp::Flow::start(sink, source, Duration::from_secs(1)).expect("a flow")
}
