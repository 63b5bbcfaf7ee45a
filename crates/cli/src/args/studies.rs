//! Arguments of the commands that make many runs.

use std::path::PathBuf;

use super::{EXIT_CODES, ReportArgs, kernels, schedulers, seed};
use crate::without::mechanisms;

/// Arguments of `blksim reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// Ten milliseconds of each run instead of its whole length
    #[arg(long)]
    pub(crate) quick: bool,
    /// Fail only if a figure of this list (`table | row | figure` a line) is out of its tolerance
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    #[arg(
        long,
        value_name = "MECHANISM",
        help = format!(
            "Switch a mechanism of the model off and fit the profiles anew to one thread: {}",
            mechanisms()
        )
    )]
    pub(crate) without: Option<String>,
    /// All figures without each mechanism, side by side
    #[arg(long, conflicts_with_all = ["without", "expect"])]
    pub(crate) ablations: bool,
    /// Threads.
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// Arguments of `blksim sensitivity`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct SensitivityArgs {
    /// A built-in machine profile
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: String,
    /// Measured time of each run
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub(crate) runtime: String,
    /// Seeds of each run, of which the mean is taken
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Threads.
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// Arguments of `blksim calibrate`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct CalibrateArgs {
    /// Measurements (docs/formats.md): cycles per I/O by component, throughput
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Where the new profile goes; `--machine` of other commands takes it. Default: nowhere
    #[arg(long, short, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
    /// Threads.
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// How many threads make the runs.
#[derive(Debug, clap::Args)]
pub(crate) struct JobsArgs {
    /// Runs at a time; the output is the same for any number. Default: one a core, or
    /// RAYON_NUM_THREADS
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// What runs are made of a scenario, and what they all have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct SweepArgs {
    #[arg(
        long,
        visible_alias = "schedulers",
        value_name = "NAME,...",
        value_delimiter = ',',
        help = format!(
            "Schedulers, a run with each: {}; NAME+v3 is one with the January 2024 series \
             (queue.series), where it changes that one",
            schedulers()
        )
    )]
    pub(crate) scheduler: Vec<String>,
    #[arg(
        long,
        value_name = "KERNEL,...",
        value_delimiter = ',',
        help = format!(
            "Kernels whose rules apply, a run with each: {}. Of several a scheduler runs with \
             those that have it",
            kernels()
        )
    )]
    pub(crate) rules: Vec<String>,
    /// Machine profiles, a run with each
    #[arg(long, value_name = "NAME|FILE.toml,...", value_delimiter = ',')]
    pub(crate) machine: Vec<String>,
    /// The device, in place of the scenario's
    #[arg(long, value_name = "TYPE[,PARAMETER=VALUE]...")]
    pub(crate) device: Option<String>,
    /// Measured time of each job, with fio's units: 100ms, 2s
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Time before that which does not count
    #[arg(long, value_name = "TIME")]
    pub(crate) ramp_time: Option<String>,
    /// Change one value of the scenario: queue.fifo_batch=1, job.iodepth=32 (all jobs); a run with
    /// each of several: job.iodepth=1,8,64. A comma of a value stands in quotes: job.bs="4k,8k"
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub(crate) set: Vec<String>,
    /// Threads.
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// Arguments of `blksim plot`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct PlotArgs {
    /// Reports of `run --details --json=FILE.json`, or scenarios to run
    #[arg(required = true, value_name = "REPORT.json|SCENARIO")]
    pub(crate) inputs: Vec<String>,
    /// Directory for the pictures; made if it is not there
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    // Not known any more: what to do instead is said.
    #[arg(long, hide = true)]
    pub(crate) png: bool,
    /// Run with each of these numbers of threads (numjobs of all jobs): 1,2,4,8 or 1..8
    #[arg(long, value_name = "N,...")]
    pub(crate) threads: Option<String>,
    /// Seed of all random streams
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// The runs.
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
}

/// Arguments of `blksim compare`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct CompareArgs {
    /// Scenarios; the first one, under the first scheduler, kernel and machine, is what the others
    /// are compared with
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// Runs of each, with seeds that follow each other
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) seeds: u16,
    /// The first seed
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
    /// The runs.
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
    /// Where the table goes.
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}
