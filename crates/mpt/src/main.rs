//! The program `mpt`. Everything it does is in the library of the same name.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mpt_io::memory::Allocator = mpt_io::memory::Allocator;

fn main() -> ExitCode {
    mpt::run(std::env::args_os())
}
