//! The volume of a path, as its link and its two ends count it.

use crate::links::{at, bulk, plan, wire};
use mpt_proto::{FramingConfig, PathId};
use mpt_sim::world::pair::Pair;
use mpt_sim::world::{Direction, HostId};

/// Bytes of IP packets that came by a path, by the count of their receiver.
fn counted(pair: &Pair, host: HostId, path: u8) -> u64 {
    let stats = pair.connection(host).path(PathId(path)).stats;
    let (inner, control) = (stats.received, stats.control_received);
    inner.bytes + control.bytes + 28 * (inner.packets + control.packets)
}

#[test]
fn a_receiver_counts_all_that_a_link_delivers() {
    for framing in [FramingConfig::Plain, FramingConfig::Extended] {
        let mut plan = plan(&[wire(20, 10), wire(20, 30)]);
        plan.connection.framing = framing;
        let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
        bulk(&mut pair);
        let ends = [(pair.right, Direction::There), (pair.left, Direction::Back)];
        let volumes = |pair: &Pair| -> Vec<[u64; 2]> {
            let of = |path: u8, (host, direction)| {
                let link = pair.world.link(pair.wires[usize::from(path)], direction);
                [link.stats().delivered.bytes, counted(pair, host, path)]
            };
            [0, 1].into_iter().flat_map(|path| ends.map(|end| of(path, end))).collect()
        };
        // Hellos are no path's yet.
        pair.world.run_until(at(2000));
        let before = volumes(&pair);
        pair.world.run_until(at(8000));
        for (after, before) in volumes(&pair).into_iter().zip(before) {
            let [link, end] = [0, 1].map(|which| after[which] - before[which]);
            assert!(link > 10_000, "{link} bytes");
            assert_eq!(link, end, "{framing:?}");
        }
    }
}
