//! Packets through the parts of the data path, for `cargo xtask perf-gate` to count the instructions of.
//!
//! `instructions CASE PACKETS` processes that many packets, in whole rounds, and prints the number;
//! `instructions list` names the cases. Only [`counted_round`] is counted: callgrind begins and
//! ends there. No case makes a system call per packet, reads a clock, or uses randomness, so that
//! counts are reproducible. Run by `cargo bench`, each case runs for a moment, to see that it
//! works.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

#[path = "../../../mpt-proto/benches/core/arrivals/mod.rs"]
mod arrivals;
mod core;
mod extended;
mod interface;
mod nowhere;
mod whole;

use std::process::ExitCode;

/// Default number of packets of each case: once through the largest reorder buffer.
const FEW: usize = 10_000;

/// A part of the data path, and packets for it.
trait Case {
    /// How many packets a round moves.
    fn packets(&self) -> usize;

    /// Makes ready what a round uses up.
    fn prepare(&mut self) {}

    /// Moves the packets.
    fn round(&mut self);

    /// Panics if the rounds did anything other than the counted work.
    fn check(&self) {}
}

/// Makes a case ready for its first round.
type Make = fn() -> Box<dyn Case>;

const CASES: [(&str, Make); 31] = [
    ("parse", core::parse),
    ("emit", core::emit),
    ("keep", core::keep),
    ("schedule_1_path", core::schedule::<1>),
    ("schedule_2_paths", core::schedule::<2>),
    ("schedule_12_paths", core::schedule::<12>),
    ("schedule_12_uneven", core::schedule_uneven),
    ("reorder_in_order", core::in_order),
    ("reorder_in_order_by_evidence", core::in_order_by_evidence),
    ("reorder_skewed", core::skewed),
    ("reorder_skewed_by_evidence", core::skewed_by_evidence),
    ("reorder_skewed_copied", core::skewed_copied),
    ("reorder_shuffled", core::shuffled),
    ("split_tcp", interface::split_tcp),
    ("split_udp", interface::split_udp),
    ("coalesce_tcp", interface::coalesce_tcp),
    ("coalesce_udp", interface::coalesce_udp),
    ("tx_1_path", whole::tx::<1>),
    ("tx_2_paths", whole::tx::<2>),
    ("rx_1_path", whole::rx_1_path),
    ("rx_2_paths", whole::rx_2_paths),
    ("tx_1_path_extended", extended::tx::<1>),
    ("tx_2_paths_extended", extended::tx::<2>),
    ("rx_1_path_extended", extended::rx::<1>),
    ("rx_2_paths_extended", extended::rx::<2>),
    ("tx_1_path_sealed", extended::tx_sealed::<1>),
    ("tx_2_paths_sealed", extended::tx_sealed::<2>),
    ("rx_1_path_sealed", extended::rx_sealed::<1>),
    ("rx_2_paths_sealed", extended::rx_sealed::<2>),
    ("forged_hello", extended::forged_hellos),
    ("forged_initiation", extended::forged_initiations),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => CASES.iter().for_each(|(name, _)| println!("{name}")),
        [] | ["--bench"] => CASES.iter().for_each(|(name, make)| tell(name, run(*make, FEW))),
        [name, packets] => {
            let case = CASES.iter().find(|(other, _)| *other == name);
            let (Some((name, make)), Ok(packets)) = (case, packets.parse()) else {
                eprintln!("instructions: no case {name}, or {packets} is no number");
                return ExitCode::from(2);
            };
            tell(name, run(*make, packets));
        }
        _ => {
            eprintln!("instructions: needs a case and a number of packets, or `list`");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn tell(name: &str, packets: usize) {
    println!("{name} {packets}");
}

/// Runs a case for at least this many packets, and returns their number.
fn run(make: Make, packets: usize) -> usize {
    let mut case = make();
    let mut moved = 0;
    while moved < packets {
        case.prepare();
        counted_round(&mut *case);
        moved += case.packets();
    }
    case.check();
    moved
}

/// What callgrind counts, by this name.
#[inline(never)]
fn counted_round(case: &mut dyn Case) {
    case.round();
}
