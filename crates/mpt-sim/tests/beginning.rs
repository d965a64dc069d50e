//! How long connections take that have only begun: the handshake, a request and its response, and the first bytes of a transfer,
//! beside the better of the same links alone.
//!
//! ```console
//! $ cargo test --release -p mpt-sim --test suite beginning:: -- --ignored --nocapture
//! $ LINKS='50/10/0,50/160/0 300/4/0,30/20/0.005/4' SEEDS=5 cargo test --release -p mpt-sim --test suite beginning:: -- --ignored --nocapture
//! ```

use std::time::Duration;

use crate::links::{at, begins, links_of, plan};
use mpt_proto::Instant;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::world::HostId;
use mpt_sim::world::pair::Pair;

/// Those of `rtt_320`, `rtt_120`, `lte_geo`, `fiber_lte`, `dual_lte`, `lte_starlink`, `jit_20`, and one where the fastest carries little.
const LINKS: [&str; 8] = [
    "50/10/0,50/160/0",
    "50/10/0,50/60/0",
    "40/17.5/0,20/160/0.005/10",
    "300/4/0,30/20/0.005/4",
    "40/15/0.005/2.5,25/22/0.005/4",
    "40/17.5/0/4,100/25/0.01/12.5",
    "50/10/0/10,50/10/0/10",
    "5/5/0,50/30/0",
];

/// The kilobytes of transfers.
const SIZES: [u64; 4] = [10, 100, 1000, 4000];

/// A port of which nothing is known, and one of which it is that most connections send little.
const PORT: u16 = 6000;
const WEB: u16 = 443;

/// Nobody waits longer for a packet.
const LONGEST: Duration = Duration::from_secs(5);

/// Flags of the TCP header.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// An IPv4 packet of a TCP connection between port 40000 and up of the left host and one port of the right host, which the `from_left` one
/// sends or the other, with so many bytes of data.
fn packet(from_left: bool, ports: [u16; 2], flags: u8, data: usize) -> Vec<u8> {
    let (left, right) = ([10, 9, 0, 1], [10, 9, 0, 2]);
    let mut packet = vec![0; 40 + data];
    let len = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 6]);
    let [from, to] = if from_left { [left, right] } else { [right, left] };
    packet[12..16].copy_from_slice(&from);
    packet[16..20].copy_from_slice(&to);
    let [from, to] = if from_left { ports } else { [ports[1], ports[0]] };
    packet[20..22].copy_from_slice(&from.to_be_bytes());
    packet[22..24].copy_from_slice(&to.to_be_bytes());
    packet[32..34].copy_from_slice(&[5 << 4, flags]);
    packet
}

/// Sends packets, and lets time pass until all have arrived.
fn pass(pair: &mut Pair, from: HostId, packets: &[Vec<u8>]) {
    let to = if from == pair.left { pair.right } else { pair.left };
    let wanted = pair.world.host_stats(to).unclaimed + packets.len() as u64;
    packets.iter().for_each(|packet| pair.world.send_inner(from, packet));
    let end = pair.world.now() + LONGEST;
    while pair.world.host_stats(to).unclaimed < wanted && pair.world.now() < end {
        pair.world.run_for(Duration::from_micros(100));
    }
}

/// Milliseconds that the handshake of a connection from the left host to a port of the right one takes there, and from then on a request
/// of 300 bytes and its response of 600; then the connection ends.
fn exchange(pair: &mut Pair, ports: [u16; 2]) -> [f64; 2] {
    let (left, right) = (pair.left, pair.right);
    let since = |pair: &Pair, from: Instant| pair.world.now().since(from).as_secs_f64() * 1e3;
    let began = pair.world.now();
    pass(pair, left, &[packet(true, ports, SYN, 0)]);
    pass(pair, right, &[packet(false, ports, SYN | ACK, 0)]);
    let handshake = since(pair, began);
    let began = pair.world.now();
    let request = [packet(true, ports, ACK, 0), packet(true, ports, ACK | PUSH, 300)];
    pass(pair, left, &request);
    pass(pair, right, &[packet(false, ports, ACK | PUSH, 600)]);
    let response = since(pair, began);
    pass(pair, right, &[packet(false, ports, ACK | FIN, 0)]);
    pass(pair, left, &[packet(true, ports, ACK | FIN, 0)]);
    [handshake, response]
}

fn pair_of(seed: u64, wires: &[Profile]) -> Pair {
    let mut pair = Pair::new(seed, &plan(wires)).expect("a plan the core accepts");
    pair.world.run_until(at(begins(seed, wires)));
    pair
}

/// The milliseconds until a new transfer by a port has delivered so many kilobytes.
fn times(seed: u64, wires: &[Profile], port: u16, bbr: bool) -> [f64; 4] {
    let mut pair = pair_of(seed, wires);
    let began = pair.world.now();
    let sender = Sender::new(Pair::flow(false, port), 1380, began, at(1_000_000));
    let sender = if bbr { sender.with_bbr() } else { sender };
    let transfer = pair.world.add_bulk(pair.left, pair.right, sender);
    SIZES.map(|size| {
        while pair.world.bulk(transfer).1.stats().bytes < size * 1000 {
            pair.world.run_for(Duration::from_millis(1));
        }
        pair.world.now().since(began).as_secs_f64() * 1e3
    })
}

/// The median of each column.
fn medians<const N: usize>(mut rows: Vec<[f64; N]>) -> [f64; N] {
    std::array::from_fn(|column| {
        rows.sort_by(|one, other| one[column].total_cmp(&other[column]));
        rows[rows.len() / 2][column]
    })
}

/// A path that takes much longer, which BBR fills if it is told of that from its first packet on.
const LONGER: &str = "50/10/0,50/160/0";

/// What handshake, request and response take together over these links, in the connections of some ports one after another.
fn take(pair: &mut Pair, ports: &[u16]) -> Vec<f64> {
    let number = |at: usize| 40_000 + at as u16;
    let took = |(at, port): (usize, &u16)| exchange(pair, [number(at), *port]).iter().sum();
    ports.iter().enumerate().map(took).collect()
}

#[test]
fn connections_of_the_web_and_those_of_a_port_of_short_ones_take_no_longer_than_by_the_best_path() {
    let wires = links_of(LONGER);
    let alone = take(&mut pair_of(1, &wires[..1]), &[PORT])[0];
    let took = take(&mut pair_of(1, &wires), &[WEB, PORT, PORT, PORT, PORT, WEB]);
    let [web, first, .., web_again] = took[..] else { unreachable!("as many as ports") };
    assert!(web < 1.2 * alone && web_again < 1.2 * alone, "{took:?}, {alone} alone");
    assert!(first > 3.0 * alone, "nothing is known of its port: {took:?}, {alone} alone");
    let took = take(&mut pair_of(1, &wires), &[PORT; 12]);
    assert!(took[11] < 1.2 * alone, "{took:?}, {alone} alone");
}

#[test]
fn a_host_that_has_sent_much_is_expected_to_do_so_again() {
    let wires = links_of(LONGER);
    let alone = take(&mut pair_of(1, &wires[..1]), &[WEB])[0];
    let mut pair = pair_of(1, &wires);
    let now = pair.world.now();
    let sender = Sender::new(Pair::flow(false, WEB), 1380, now, now + Duration::from_secs(3));
    pair.world.add_bulk(pair.left, pair.right, sender);
    pair.world.run_for(Duration::from_secs(4));
    let took = take(&mut pair, &[WEB; 8]);
    assert!(took[0] > 2.0 * alone && took[7] < 1.2 * alone, "{took:?}, {alone} alone");
}

/// A path beside a much faster one, and paths whose delays vary.
#[test]
fn connections_of_the_web_take_no_longer_for_paths_that_are_slow_or_vary() {
    for (links, port) in
        [("90/8/0,2/30/0/10", PORT), ("300/4/0,30/20/0.005/4", WEB), ("50/10/0/10,50/10/0/10", WEB)]
    {
        let wires = links_of(links);
        let [both, alone] = [&wires[..], &wires[..1]].map(|wires| {
            let third = |seed| take(&mut pair_of(seed, wires), &[port; 3])[2];
            let [third] = medians((1..=5).map(|seed| [third(seed)]).collect());
            third
        });
        assert!(both < 1.7 * alone, "{links}: {both}, {alone} alone");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_transfer_takes_hardly_longer_for_a_path_beside_a_much_faster_one() {
    // Of 300 + 30 Mbit/s BBR gets more than of 300 only if its first round trip is longer.
    for (links, most) in [
        ("90/8/0,2/30/0/10", 1.3),
        ("90/8/0,2/30/0", 1.3),
        ("90/8/0,10/30/0/10", 1.3),
        ("300/4/0,30/20/0.005/4", 1.5),
    ] {
        let wires = links_of(links);
        for bbr in [false, true] {
            let [both, alone] = [&wires[..], &wires[..1]].map(|wires| {
                medians((1..=5).map(|seed| times(seed, wires, PORT, bbr)).collect())[3]
            });
            assert!(both < most * alone, "{links}, BBR {bbr}: {both}, {alone} alone");
        }
    }
}

/// What was measured: handshake and exchange of the first connection to a port, of later ones, and of the first one to a port of the web; and
/// transfers by the first port by CUBIC and BBR, and by the port of the web.
type Measured = ([[f64; 2]; 3], [[f64; 4]; 4]);

fn measured(wires: &[Profile], seeds: u64) -> Measured {
    let mut exchanges = [vec![], vec![], vec![]];
    for seed in 1..=seeds {
        let mut pair = pair_of(seed, wires);
        for number in 0..20 {
            let got = exchange(&mut pair, [40_000 + number, PORT]);
            match number {
                0 => exchanges[0].push(got),
                10.. => exchanges[1].push(got),
                _ => {}
            }
        }
        exchanges[2].push(exchange(&mut pair_of(seed, wires), [41_000, WEB]));
    }
    let transfers = [(PORT, false), (PORT, true), (WEB, false), (WEB, true)];
    let transfers = transfers.map(|(port, bbr)| {
        medians((1..=seeds).map(|seed| times(seed, wires, port, bbr)).collect())
    });
    (exchanges.map(medians), transfers)
}

/// Prints, in milliseconds, medians of several starts: handshake, and request and response, of the first connection to a port, of
/// connections 11 to 20, and of the first one to port 443; then the time to 10 kB, 100 kB, 1 MB, and 4 MB of a new transfer by CUBIC, and by BBR,
/// and of both by port 443; of both links, and the least of each link alone.
#[test]
#[ignore = "prints a table, takes minutes"]
fn table() {
    let links = std::env::var("LINKS").unwrap_or_else(|_| LINKS.join(" "));
    let seeds = std::env::var("SEEDS").map_or(5, |seeds| seeds.parse().unwrap());
    let work = std::sync::Mutex::new(links.split(' '));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(what) = work.lock().unwrap().next() else { return };
                    let wires = links_of(what);
                    let both = measured(&wires, seeds);
                    let alone =
                        wires.iter().map(|wire| measured(std::slice::from_ref(wire), seeds));
                    let alone = alone.reduce(|one, other| {
                        (
                            std::array::from_fn(|row| least(one.0[row], other.0[row])),
                            std::array::from_fn(|row| least(one.1[row], other.1[row])),
                        )
                    });
                    for (name, got) in [("both", both), ("best alone", alone.expect("a link"))] {
                        println!("{}", line(&format!("{what} {name}"), &got));
                    }
                }
            });
        }
    });
}

fn least<const N: usize>(one: [f64; N], other: [f64; N]) -> [f64; N] {
    std::array::from_fn(|column| one[column].min(other[column]))
}

fn line(name: &str, (exchanges, transfers): &Measured) -> String {
    let joined = |values: &[f64]| {
        values.iter().map(|value| format!("{value:.0}")).collect::<Vec<_>>().join(" ")
    };
    let exchanges: Vec<_> = exchanges.iter().map(|row| joined(row)).collect();
    let transfers: Vec<_> = transfers.iter().map(|row| joined(row)).collect();
    format!("{name:>46} | {} | {}", exchanges.join(" | "), transfers.join(" | "))
}
