//! The program `mpt`. Everything it does is in the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    mpt::run(std::env::args_os())
}
