//! The commands of `blksim`: arguments in, reports out. The program is `main.rs`.
//!
//! The only place that prints, reads arguments and knows exit codes; the libraries decide the
//! meaning. Read next: `args.rs` for the commands, `run.rs` for one of them.
#![forbid(unsafe_code)]

mod amount;
mod analyze;
mod args;
mod bisect;
mod builtin;
mod calibrate;
mod capture;
mod changes;
mod check;
mod combinations;
mod compare;
mod conform;
mod diff;
mod differential;
mod drive;
mod dump;
mod elevator;
mod error;
mod explore;
mod fio_logs;
mod fleet;
mod html;
mod inside;
mod interrupt;
mod list;
mod output;
mod outputs;
mod perfetto;
mod plot;
mod progress;
mod record;
mod reference;
mod replay;
mod reproduce;
mod run;
mod scenario;
mod sensitivity;
mod shell;
mod spec_tree;
mod sweep;
mod text;
mod trace_out;
mod traces;
mod what_if;
mod without;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser as _;
use error::Error;

pub use inside::{Done, inside};
pub use study::fleet::Stop;

/// The answer is there, and it is the expected one.
const OK: u8 = 0;
/// The kernel and the model differ, or a verdict is another than expected.
const DIFFERENT: u8 = 1;
/// `conform`: nothing differs, but the capture cannot decide about some dispatches.
const UNJUDGED: u8 = 4;
/// Bad input or usage, or an output that cannot be written.
const BAD_INPUT: u8 = 2;
const STALLED: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Does what the arguments of the process say, of which the first one is its name.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(args::joined(arguments));
    if args.quiet {
        output::be_quiet();
    }
    ExitCode::from(run_command(args.command))
}

/// Does it, and prints its error. The exit code.
fn run_command(command: Command) -> u8 {
    let result = caught(|| result_of(command));
    match result {
        Ok(code) => code,
        // The reader has seen enough (`blksim list | head -1`).
        Err(Error::Output { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => OK,
        Err(error) => failed(&error),
    }
}

/// A scheduler in C may end a run in the middle of a call.
fn caught(run: impl FnOnce() -> Result<u8, Error>) -> Result<u8, Error> {
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    ran.unwrap_or_else(|payload| match payload.downcast::<kernel::Fault>() {
        Ok(fault) => Err(Error::Scheduler(fault.text)),
        Err(other) => std::panic::resume_unwind(other),
    })
}

fn result_of(command: Command) -> Result<u8, Error> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::List { json } => list::list(json),
        Command::Show { name } => list::show(&name),
        Command::Compare(args) => compare::compare(&args),
        Command::Bisect(args) => bisect::bisect(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::WhatIf(args) => what_if::what_if(&args),
        Command::Conform(args) => conform::conform(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Sensitivity(args) => sensitivity::sensitivity(&args),
        Command::Analyze(args) => analyze::analyze(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Record { arguments } => record::record(&arguments),
        Command::Check(args) => check::check(&args),
        Command::Explore(args) => explore::explore(&args),
        Command::ReplaySchedule(args) => explore::replay_schedule(&args),
        Command::Differential(args) => differential::differential(&args),
        Command::Reference { page } => reference::reference(page.as_deref()),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { command } => shell::man(command.as_deref()),
    }
}

/// Prints an error. The exit code.
fn failed(error: &Error) -> u8 {
    for line in error.to_string().lines() {
        output::print_stderr(&format!("error: {line}\n"));
    }
    if let Error::Jobs { unmodelled, .. } = error {
        output::print_stderr(&format!(
            "hint: `blksim run --ignore-unmodelled` leaves out what is not modelled, \
             {unmodelled} of these\n"
        ));
    }
    match error {
        Error::Interrupted | Error::InterruptedRuns { .. } | Error::InterruptedSearch(_) => {
            INTERRUPTED
        }
        Error::Stalled(_) => STALLED,
        _ => BAD_INPUT,
    }
}
