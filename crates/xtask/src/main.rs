//! Every developer command: `cargo xtask ci` is all of them.
//!
//! Not part of the product and depends on none of its crates. Read next: `ci.rs` for the order,
//! `step.rs` for passing, failing and skipping, `tidy.rs` for the house rules.
#![forbid(unsafe_code)]

mod bench_explore;
mod btt;
mod build;
mod checks;
mod ci;
mod deny;
mod determinism;
mod growth;
mod kernel;
mod mutants;
mod paths;
mod reference;
mod reproduce;
mod results;
mod specs;
mod speed;
mod step;
mod sweeps;
mod tidy;
mod wheel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer commands of blksim.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Everything below, in order; stops at the first failure
    Ci {
        /// Also the long steps: all variants of the specifications, the tests of the explorer that
        /// are ignored, random exploration, the explorer against TLC
        #[arg(long)]
        full: bool,
        /// Only the step of this name, from the table of the steps; may be repeated
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
    /// House rules that no compiler checks
    Tidy,
    /// Unit tests, debug build; then all other tests, release build
    Test,
    /// The program to install: optimised across crates and stripped
    Dist,
    /// Same scenario, same bytes: debug against release and one run against the next
    Determinism,
    /// Build and run the programs that use the library
    Examples,
    /// Scheduler scripts
    Scripts {
        /// Write the schedulers' present results as the new expectation
        #[arg(long)]
        rewrite: bool,
    },
    /// Thread interleavings of the step machines under loom
    Loom,
    /// Specifications under TLC, compared with their promises
    Specs {
        /// Also the variants that take minutes
        #[arg(long)]
        full: bool,
        /// The quick variants and the mutants, whether specs/ changed or not; writes its digest
        #[arg(long, conflicts_with = "full")]
        write: bool,
        /// Only wrong specifications: TLC must find out all of them
        #[arg(long, conflicts_with_all = ["full", "write"])]
        mutants: bool,
    },
    /// Wrong changes of the paths, one after the other: a test must fail with each; takes an hour
    Mutants(mutants::MutantsArgs),
    /// Kernel trees for the next command
    Kernel {
        #[command(subcommand)]
        what: KernelCommand,
    },
    /// Schedulers in the C of kernel trees beside the model's, and wrong shims
    Differential {
        /// Commands of scripts for each scheduler and kernel
        #[arg(long, default_value_t = 1_000_000)]
        operations: u64,
    },
    /// Published tables, against the list of figures that are within their tolerance
    Reproduce,
    /// Writes the figures of README.md and docs/ from the runs that give them
    Results(results::ResultsArgs),
    /// Pages of docs/reference that the program prints, from the tables that it works by
    Reference {
        /// Fail if a page is stale, and write nothing
        #[arg(long)]
        check: bool,
    },
    /// The pages under docs/ as a site in target/book, made by mdbook
    Book,
    /// Licences, bans, sources, advisories of the dependencies
    Deny,
    /// Benchmarks
    Bench {
        /// `explore`: the explorer against TLC. Default: all of benches/
        what: Option<BenchOf>,
        /// Run each once, to see that it works and keeps its ratios
        #[arg(long)]
        smoke: bool,
    },
    /// Instructions of one simulated I/O, against benches/baseline.toml
    Speed {
        /// Write the measurements as the new baseline
        #[arg(long)]
        write: bool,
        /// I/Os through a mapped device, compared with the device without one; takes minutes
        #[arg(long, conflicts_with = "write")]
        mapped: bool,
    },
    /// Instructions of one simulated I/O and memory of a run, by the number of CPUs, hctxs and
    /// devices; takes minutes
    Growth {
        /// Write the measurements into benches/growth.toml
        #[arg(long)]
        write: bool,
    },
    /// Compare the import's statistics with those of btt
    Btt,
    /// Kill a sweep at random moments: nothing is lost, nothing is made twice
    Kills,
    /// Sweeps in the job arrays of a Slurm on this machine; needs root and Debian's packages
    Slurm,
    /// The Python package as a wheel, optimised across crates
    Wheel {
        /// Test it in an environment of its own, with the notebooks and a cluster: a release build
        #[arg(long)]
        test: bool,
        /// Only fetch what the tests of every change use
        #[arg(long, conflicts_with = "test")]
        fetch: bool,
    },
    /// Long random exploration; runs until it fails or is stopped
    Soak {
        /// First seed; each round takes the next one
        #[arg(long)]
        seed: u64,
        /// Stop after this many rounds
        #[arg(long)]
        rounds: Option<u64>,
    },
}

#[derive(Subcommand, Debug)]
enum KernelCommand {
    /// Unpack into target/linux what is needed of Debian's packages of kernel sources
    Fetch,
}

/// Measurements apart from benches/.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum BenchOf {
    /// The explorer against TLC.
    Explore,
}

fn main() -> ExitCode {
    let command = Args::parse().command;
    let result = match command {
        Command::Ci { full, only } => return ci::run(full, &only),
        Command::Tidy => tidy::run(),
        Command::Test => checks::test().and_then(|_| checks::integration()),
        Command::Dist => build::dist(),
        Command::Determinism => determinism::run(250),
        Command::Examples => checks::examples(),
        Command::Scripts { rewrite } => checks::scripts(rewrite),
        Command::Loom => checks::loom(),
        Command::Specs { write: true, .. } => specs::write(),
        Command::Specs { mutants: true, .. } => specs::mutants(true),
        Command::Specs { full, .. } => specs::check(full),
        Command::Mutants(args) => mutants::run(&args),
        Command::Kernel {
            what: KernelCommand::Fetch,
        } => kernel::fetch(),
        Command::Differential { operations } => kernel::differential(operations),
        Command::Reproduce => reproduce::run(),
        Command::Results(args) => results::run(&args),
        Command::Reference { check } => reference::run(check),
        Command::Book => checks::book(),
        Command::Deny => deny::run(),
        Command::Bench {
            what: Some(BenchOf::Explore),
            ..
        } => bench_explore::run(),
        Command::Bench { smoke, what: None } => checks::bench(smoke),
        Command::Speed { mapped: true, .. } => speed::run_mapped(),
        Command::Speed { write: true, .. } => speed::write(),
        Command::Speed { .. } => speed::run(),
        Command::Growth { write } => growth::run(write),
        Command::Btt => btt::run(),
        Command::Kills => sweeps::kills(200, 1000),
        Command::Slurm => sweeps::slurm(),
        Command::Wheel { fetch: true, .. } => wheel::fetch(),
        Command::Wheel { test: true, .. } => wheel::test(true),
        Command::Wheel { .. } => wheel::dist(),
        Command::Soak { seed, rounds } => checks::soak(seed, rounds),
    };
    match result {
        Ok(step::Outcome::Passed) => ExitCode::SUCCESS,
        Ok(step::Outcome::Skipped(reason)) => {
            println!("skip: {reason}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("failed: {failure}");
            ExitCode::FAILURE
        }
    }
}
