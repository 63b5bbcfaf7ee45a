//! Arguments of the commands that make many runs.

use std::path::PathBuf;

use super::{RUN_CODES, ReportArgs, drives, kernels, runtime, schedulers, seed};
use crate::without::mechanisms;

const SWEEP_CODES: &str = "\
Exit codes:
    0  done; of `status`: no point is missing
    1  `status`: points are missing
    2  bad input or usage, or an output that cannot be written
    3  done, and a run stalled: column `outcome`
  130  interrupted (Ctrl-C, SIGTERM); the points that have ended are kept, and the same command
       makes the others";

/// A sweep, or one of its parts.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true,
          subcommand_negates_reqs = true, after_help = SWEEP_CODES)]
pub(crate) struct SweepFileArgs {
    #[command(subcommand)]
    pub(crate) part: Option<SweepPart>,
    #[command(flatten)]
    pub(crate) of: Option<SweepOf>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum SweepPart {
    /// Check all points and print how many there are, and how long they take
    Plan {
        #[command(flatten)]
        of: SweepOf,
        #[command(flatten)]
        jobs: JobsArgs,
    },
    /// Make the points of one shard that are not there yet
    Run {
        #[command(flatten)]
        of: SweepOf,
        /// Shard I of N: 1/8 to 8/8 [default: of SLURM_ARRAY_TASK_ID, else 1/1]
        ///
        /// Every N-th point. Shards of one N can run at the same time, on machines with a common
        /// folder; when they have ended, a sweep can go on with another N. In a task of a Slurm
        /// array the default is the task's part of the array.
        #[arg(long, value_name = "I/N")]
        shard: Option<String>,
        #[command(flatten)]
        jobs: JobsArgs,
    },
    /// Write results.parquet and results.csv from the points of all shards
    Merge(SweepOf),
    /// Print how many points are done and missing, by shard
    Status(SweepOf),
}

/// Which sweep.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SweepOf {
    /// The sweep: scenarios, keys and their values, as docs/reference/formats.md has them
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Folder of the results [default: FILE.sweep, beside FILE.toml]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Where the runs are made.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Where the runs are made: on the cores of this machine, or in a job array of Slurm
    ///
    /// `slurm` writes and submits the array, waits for it, submits tasks that failed again, and
    /// merges. If it is interrupted the array goes on; the same command waits for it again.
    #[arg(long, value_name = "NAME", default_value = "local", value_parser = ["local", "slurm"])]
    pub(crate) engine: String,
    /// With slurm: number of tasks [default: so many that each has a minute of work]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) shards: Option<u32>,
    /// With slurm: options for sbatch, e.g. --sbatch='--partition=short --time=1:00:00'
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub(crate) sbatch: String,
}

const REPRODUCE_CODES: &str = "\
Exit codes:
    0  all figures were compared
    1  with --expect: a figure of the list is out of its tolerance
    2  bad input or usage
  130  interrupted (Ctrl-C, SIGTERM)";

#[derive(Debug, clap::Args)]
#[command(after_help = REPRODUCE_CODES)]
pub(crate) struct ReproduceArgs {
    /// Simulate ten milliseconds of each run instead of its whole length
    #[arg(long)]
    pub(crate) quick: bool,
    /// Fail if a figure of this list is out of its tolerance
    ///
    /// A line of the list is `table | row | figure`, as the output has them; `#` begins a comment.
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    #[arg(
        long,
        value_name = "MECHANISM",
        help = "Switch a mechanism off and fit the profiles to one thread again",
        long_help = format!(
            "Switch a mechanism of the machine model off and fit the profiles to one thread \
             again: {}",
            mechanisms()
        )
    )]
    pub(crate) without: Option<String>,
    /// Print all figures without each mechanism, side by side
    #[arg(long, conflicts_with_all = ["without", "expect"])]
    pub(crate) ablations: bool,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct SensitivityArgs {
    /// A built-in machine profile
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: String,
    /// Measured time of each run
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = runtime)]
    pub(crate) runtime: String,
    /// Number of seeds for each run; the mean is printed
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct CalibrateArgs {
    /// Measurements: cycles per I/O by component, throughput; or samples that perf printed
    ///
    /// TOML: `base = "PROFILE"`, and for each measured run a table `[[run]]` with `name`,
    /// `scenario`, `iops`, and a table `[run.cycles_per_io]` or `perf = "FILE"`. A FILE of perf is
    /// the text of `perf script`, of `perf report --stdio --no-children`, or folded stacks; with
    /// --base, --run and --iops it is all that is needed.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// FILE is perf's: the profile to begin with, a built-in one or FILE.toml
    #[arg(long, value_name = "PROFILE", requires_all = ["scenario", "iops"])]
    pub(crate) base: Option<String>,
    /// FILE is perf's: the scenario or fio job that ran
    #[arg(
        long = "run",
        id = "scenario",
        value_name = "SCENARIO",
        requires = "base"
    )]
    pub(crate) scenario: Option<String>,
    /// FILE is perf's: set a key of the scenario, as of `run`
    #[arg(long, value_name = "KEY=VALUE", requires = "base")]
    pub(crate) set: Vec<String>,
    /// FILE is perf's: I/Os per second while it recorded
    #[arg(long, value_name = "N", requires = "base")]
    pub(crate) iops: Option<f64>,
    /// FILE is perf's: CPUs that were busy on average [default: 1]
    #[arg(long, value_name = "N", requires = "base")]
    pub(crate) busy_cpus: Option<f64>,
    /// Clock of the CPUs [default: that of the base]
    #[arg(long, value_name = "N")]
    pub(crate) clock_mhz: Option<u64>,
    /// Name of the new profile [default: that of the measurements or of the base]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// More symbols of the kernel for perf's samples, by component
    ///
    /// TOML: `driver = ["my_queue_rq", "my_*"]`, with the components that the output names, and
    /// `waiting` and `idle`. An entry replaces the built-in one of the same spelling.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) symbols: Option<PathBuf>,
    /// Write the new profile into this file, for `--machine`
    #[arg(long, short, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
    /// Write the residuals as CSV: a row for each figure of each run
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct JobsArgs {
    /// Number of runs at a time [default: RAYON_NUM_THREADS, else one a core]
    ///
    /// The output does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// The runs of a scenario that a command makes: one with each combination of the values of options
/// that take several, and the options that all of them share. The same for `run`, `compare` and
/// `plot`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SweepArgs {
    #[arg(
        long,
        visible_alias = "schedulers",
        value_name = "NAME,...",
        value_delimiter = ',',
        help = "I/O schedulers (queue.scheduler), a run with each",
        long_help = format!(
            "I/O schedulers (queue.scheduler), a run with each: {}; NAME+v3 is the scheduler with \
             the January 2024 series (queue.series), if the series changes that scheduler",
            schedulers()
        )
    )]
    pub(crate) scheduler: Vec<String>,
    /// Schedulers in C, a run with each: files of a kernel tree as they are, mq-deadline.c and such
    ///
    /// A C compiler is needed; what the file calls is compiled with it, from the same tree. In
    /// columns beside those of --scheduler.
    #[arg(long, value_name = "FILE.c,...", value_delimiter = ',')]
    pub(crate) elevator: Vec<String>,
    /// The kernel tree for --elevator [default: the one that the file is in]
    #[arg(long, value_name = "DIR", requires = "elevator")]
    pub(crate) linux: Option<PathBuf>,
    #[arg(
        long,
        value_name = "KERNEL,...",
        value_delimiter = ',',
        help = "Kernel releases whose rules apply (queue.rules), a run with each",
        long_help = format!(
            "Kernel releases whose rules apply (queue.rules), a run with each: {}. A scheduler \
             only runs with the releases that have it",
            kernels()
        )
    )]
    pub(crate) rules: Vec<String>,
    /// Machine profiles, a run with each: names from `blksim list`, or FILE.toml
    ///
    /// `:sockets=N` after one for another number of its sockets.
    #[arg(
        long,
        value_name = "NAME|FILE.toml[:sockets=N],...",
        value_delimiter = ','
    )]
    pub(crate) machine: Vec<String>,
    /// Numbers of threads (numjobs of all jobs), a run with each: 1,2,4,8 or 1..8
    #[arg(long, value_name = "N,...")]
    pub(crate) threads: Option<String>,
    /// Change a value of the scenario; of several values, a run with each: job.iodepth=1,8,64
    ///
    /// Also 1..8. job.OPTION changes all jobs. A value with a comma is quoted, and all of it once
    /// more for the shell: --set 'job.bs="4k,8k"'.
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub(crate) set: Vec<String>,
    /// Number of consecutive seeds, a run with each [default: 1; compare: 5]
    ///
    /// With several seeds, positions follow the seed (randrepeat=0), unless
    /// `--set job.randrepeat=1`.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) seeds: Option<u16>,
    /// Seed of all random streams; with --seeds, the first one
    ///
    /// [default: the scenario's; with several seeds 1]
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Replace the device of the scenario, e.g. null_blk,irqmode=2,completion_nsec=100000
    #[arg(long, value_name = "TYPE[,PARAMETER=VALUE]...")]
    pub(crate) device: Option<String>,
    #[arg(
        long,
        value_name = "NAME|FILE.toml",
        help = "Replace the parameters of the scenario's drive",
        long_help = format!("Replace the parameters of the scenario's drive: {}", drives())
    )]
    pub(crate) drive: Option<String>,
    /// Measured time of each job, with fio's units: 100ms, 2s
    #[arg(long, value_name = "TIME", value_parser = runtime)]
    pub(crate) runtime: Option<String>,
    /// Time at the start of each job that is not measured
    #[arg(long, value_name = "TIME")]
    pub(crate) ramp_time: Option<String>,
    /// End each run when its 95 % intervals are as narrow: 1%, or iops=1%,p99=5%
    ///
    /// Percent of the figure on either side of it: of IOPS, or of each of a list with the names
    /// iops, bw, mean (latency), p50, p99.9 and the other percentiles of a report. IOPS, bandwidth
    /// and the mean are of all jobs together, a percentile is of each direction of each job. A run
    /// never lasts longer than its jobs do without this option: --runtime 10s lets it. The report
    /// says what was reached, and if it was not, how long a run would have to be.
    #[arg(long, value_name = "PERCENT|NAME=PERCENT,...")]
    pub(crate) precision: Option<String>,
    #[arg(
        long,
        value_name = "MECHANISM,...",
        value_delimiter = ',',
        help = "Switch mechanisms of the machine model off",
        long_help = format!(
            "Switch mechanisms of the machine model off, in all runs: {}",
            mechanisms()
        )
    )]
    pub(crate) without: Vec<String>,
    /// Run fio's jobs without what is not modelled of them, and list that in the report
    ///
    /// Options that are not modelled are left out, an engine is replaced by the nearest one, jobs
    /// that read and write no device are left out, and buffered I/O that is not modelled runs with
    /// direct=1.
    #[arg(long)]
    pub(crate) ignore_unmodelled: bool,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = RUN_CODES)]
pub(crate) struct PlotArgs {
    /// Reports of `run --details --json=FILE.json`, tables of `sweep`, or scenarios to run
    #[arg(required = true, value_name = "REPORT.json|TABLE.parquet|SCENARIO")]
    pub(crate) inputs: Vec<String>,
    /// Directory for the plots; created if it is missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    // No longer an option: the error names the replacement.
    #[arg(long, hide = true)]
    pub(crate) png: bool,
    /// Of a table: the column on the horizontal axis
    #[arg(long, value_name = "KEY")]
    pub(crate) x: Option<String>,
    /// Of a table: columns, a curve for each of their values
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Of a table: the columns that are drawn [default: IOPS, latencies, waiting for locks]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) y: Vec<String>,
    /// Draw only these figures, by the names of their files: scaling,latency
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) figures: Vec<String>,
    /// Draw no axis on a logarithmic scale
    ///
    /// Else latencies are on one, curves that differ tenfold, and swept values that are powers.
    #[arg(long)]
    pub(crate) linear: bool,
    /// Mark the figures that were published for the scenarios, as `blksim reproduce` has them
    #[arg(long)]
    pub(crate) published: bool,
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
}

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = RUN_CODES)]
pub(crate) struct CompareArgs {
    /// Scenarios; the first variant of the first one is the base of all differences
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

const BISECT_CODES: &str = "\
Exit codes:
    0  the condition holds under --to, and the axes that cause it are printed
    1  it does not hold
    2  bad input or usage";

#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = BISECT_CODES)]
pub(crate) struct BisectArgs {
    /// A scenario
    pub(crate) scenario: String,
    /// The kernel whose figure is 1
    #[arg(long, value_name = "KERNEL")]
    pub(crate) from: String,
    /// The kernel under which the condition holds
    #[arg(long, value_name = "KERNEL")]
    pub(crate) to: String,
    /// The condition: a figure of `compare` as a share of that under --from, e.g. 'iops < 0.9'
    #[arg(long, value_name = "CONDITION")]
    pub(crate) when: String,
    /// Print JSON in place of the text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
}

const DIFF_CODES: &str = "\
A figure differs if it does by more than --threshold percent and, where the files show how far runs
vary, by more than --deviations standard deviations.
Exit codes:
    0  no figure differs, and both have the same jobs and directions
    1  a figure differs, or one of them has a job or a direction that the other lacks
    2  bad input or usage, or an output that cannot be written";

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = DIFF_CODES)]
pub(crate) struct DiffArgs {
    /// Report of `run --json=FILE`, also of several seeds, or of fio --output-format=json
    #[arg(value_name = "A.json")]
    pub(crate) a: PathBuf,
    /// The report that is compared with it
    #[arg(value_name = "B.json")]
    pub(crate) b: PathBuf,
    /// Least difference, percent of A; of shares of CPU time, points
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = from_zero)]
    pub(crate) threshold: f64,
    /// Least difference in standard deviations, where seeds or samples show them
    ///
    /// Of runs with several seeds: standard deviations of the difference of their means; a single
    /// run beside them is taken to vary as one of them. Else of fio's samples of IOPS and
    /// bandwidth over time. Deviations of I/Os are those of a single latency; they are printed, but
    /// do not decide, as the mean of a run varies less.
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = from_zero)]
    pub(crate) deviations: f64,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

fn from_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number from 0 on".to_owned())
}
