//! The `blksim` binary. All of it is in `lib.rs`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    blksim::main(std::env::args_os())
}
