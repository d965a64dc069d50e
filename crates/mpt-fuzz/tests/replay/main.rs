//! Every target with its whole corpus, and with random variations of it that are the same every time.
//!
//! One file is replayed alone with `MPT_FUZZ_INPUT=FILE cargo test -p mpt-fuzz NAME`. More variations
//! than usual are tried with `MPT_FUZZ_VARIATIONS=N`, others with `MPT_FUZZ_SEED=N`.

mod corpus;
mod variation;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{env, fs};

use mpt_fuzz::{TARGETS, Target};

use variation::Variations;

/// How many variations of its corpus each target is given: all targets together take a few seconds
/// without optimisation.
const VARIATIONS: usize = 4000;

macro_rules! replay {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

replay! {
    command command_port config control_request endpoint extended flow fragment gre icmp import inner keepalive mss parity sealed status_reply super_packet
}

#[test]
fn every_target_has_its_program_and_its_corpus() {
    let manifest = fs::read_to_string(corpus::fuzz().join("Cargo.toml")).expect("the manifest");
    for Target { name, .. } in TARGETS {
        let program = corpus::fuzz().join(format!("fuzz_targets/{name}.rs"));
        let text = fs::read_to_string(&program).expect("a program for cargo fuzz");
        assert!(text.contains("mpt_fuzz::") && text.contains(name), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} in fuzz/Cargo.toml");
        assert!(corpus::stored(name).len() > 1, "{name} has a corpus");
    }
}

/// It is part of every clone and replayed by every test run.
#[test]
fn the_corpus_stays_small() {
    let files = TARGETS.iter().flat_map(|target| corpus::stored(target.name));
    let bytes: usize = files.map(|input| input.bytes.len()).sum();
    assert!(bytes < 1 << 20, "{bytes} bytes: minimise it with `cargo fuzz cmin`");
}

fn replay(name: &str) {
    let target = TARGETS.into_iter().find(|target| target.name == name).expect("a target");
    if let Ok(file) = env::var("MPT_FUZZ_INPUT") {
        let bytes = fs::read(&file).expect("a file that can be read");
        return run(target, &bytes, || file);
    }
    let inputs = corpus::inputs(name);
    for input in &inputs {
        run(target, &input.bytes, || input.origin.clone());
    }
    let (seed, count) = (number("MPT_FUZZ_SEED", 1), number("MPT_FUZZ_VARIATIONS", VARIATIONS));
    let mut variations = Variations::new(&inputs, name, seed as u64);
    for _ in 0..count {
        let bytes = variations.next();
        run(target, &bytes, || format!("a variation, seed {seed}"));
    }
}

fn number(variable: &str, default: usize) -> usize {
    env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs a target. If it panics, says with what, so that it can be made a file of the corpus.
fn run(target: Target, bytes: &[u8], origin: impl FnOnce() -> String) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))) else { return };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    panic!(
        "{}: {}\ninput: {}\nto keep it: printf %s {hex} | xxd -r -p > fuzz/corpus/{}/NAME",
        target.name,
        message(&*panic),
        origin(),
        target.name,
    );
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}
