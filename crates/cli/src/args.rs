//! The command line.
//!
//! Grammar only. The meaning of a value is checked where the value is used, so that an error about
//! it reads the same for an option and for a file. The first paragraph of a comment is the short
//! help, one line; docs/reference/commands.md is printed from all of it. Commands that make many
//! runs: `args/studies.rs`.

mod checks;
mod studies;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use clap::{Parser, Subcommand};
use trace::blkparse;
use trace::blktrace::{Categories, DeviceChoice, Format, Options};

pub(crate) use checks::{CheckArgs, DifferentialArgs, ExploreArgs, ReplayScheduleArgs};
pub(crate) use studies::{
    BisectArgs, CalibrateArgs, CompareArgs, DiffArgs, JobsArgs, PlotArgs, ReproduceArgs,
    SensitivityArgs, SweepArgs, SweepFileArgs, SweepOf, SweepPart,
};

/// Exit codes of all commands, after the help of the program.
const EXIT_CODES: &str = "\
Exit codes:
    0  done, also if simulated I/O failed (`error` in the report)
    1  a comparison failed: conform, check, diff, explore, replay-schedule, reproduce --expect
    2  bad input or usage, or an output that cannot be written
    3  the simulated run stalled: I/O is left that nothing will complete
    4  conform: no difference, but the capture cannot decide about some dispatches
  130  interrupted (Ctrl-C, SIGTERM): `run` reports what it has, marked as cut, and writes no
       traces; of several runs, `run` and `compare` report those that have ended; other commands
       write nothing

`blksim COMMAND -h` is the short help of a command, `blksim COMMAND --help` the long one.";

/// Exit codes of commands that simulate.
const RUN_CODES: &str = "\
Exit codes:
    0  done, also if simulated I/O failed (`error` in the report)
    2  bad input or usage, or an output that cannot be written
    3  the simulated run stalled: I/O is left that nothing will complete
  130  interrupted (Ctrl-C, SIGTERM): `run` reports what it has, marked as cut, and writes no
       traces; of several runs, `run` and `compare` report those that have ended; other commands
       write nothing";

const CONFORM_CODES: &str = "\
Exit codes:
    0  the model predicted every dispatch, every line of a scheduler's log and every path choice
    1  the kernel and the model differ
    2  bad input or usage, or an output that cannot be written
    4  no difference, but the capture cannot decide about some dispatches";

/// Simulator and reference model of the Linux multi-queue block layer.
#[derive(Debug, Parser)]
#[command(name = "blksim", version, after_help = EXIT_CODES, arg_required_else_help = true,
          propagate_version = true)]
pub(crate) struct Args {
    /// Print no progress and no notes to standard error, only errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario or fio jobs, also with several values of an option, and print a report
    Run(Box<RunArgs>),
    /// List the built-in scenarios, machines and drives
    List {
        /// Print JSON in place of the text
        #[arg(long)]
        json: bool,
    },
    /// Print the text of a built-in scenario, machine or drive
    Show {
        /// Name from `blksim list`
        name: String,
    },
    /// Simulate variants of a scenario with several seeds each, and print the differences
    Compare(CompareArgs),
    /// Find which differences between two kernels cause a difference of a figure
    Bisect(BisectArgs),
    /// Compare two reports, or fio's JSON with a report, figure by figure
    Diff(DiffArgs),
    /// Plot reports, or run a scenario with several values of options and plot the runs
    Plot(PlotArgs),
    /// Make the runs of a sweep, on this machine or a cluster, and write a table of them
    #[command(subcommand_value_name = "PART", subcommand_help_heading = "Parts")]
    Sweep(SweepFileArgs),
    /// Replay the arrivals of a blktrace capture and compare latencies
    Replay(Box<ReplayArgs>),
    /// Replay a capture under other schedulers and tunables, with the model's own error first
    WhatIf(Box<WhatIfArgs>),
    /// Compare each dispatch and path choice of a captured kernel with the model's
    Conform(ConformArgs),
    /// Fit a machine profile to measurements and print the residuals
    Calibrate(CalibrateArgs),
    /// Compare published tables with what the machine profiles give
    Reproduce(ReproduceArgs),
    /// Print how throughput depends on each cost of a machine profile
    Sensitivity(SensitivityArgs),
    /// Print latencies, depths, seeks and rates of a blktrace capture, as btt and iowatcher do
    #[command(visible_alias = "import-stats")]
    Analyze(AnalyzeArgs),
    /// Print the events of a blktrace capture as blkparse does, and its summary
    Dump(DumpArgs),
    /// Print the script that records a capture, or run it: blksim record FOLDER DEVICE COMMAND...
    ///
    /// The script needs root, blktrace(8) and debugfs, and no blksim: `blksim record > record.sh`.
    Record {
        /// Arguments of the script: [-s SCHEDULER] [-w NAME=VALUE]... FOLDER DEVICE COMMAND...
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run TLC on the specifications and compare verdicts and counts with the expected ones
    Check(CheckArgs),
    /// Visit all states of a variant of a specification with the model's own code, without TLC
    Explore(ExploreArgs),
    /// Replay the steps of a schedule file with the model's own code
    ReplaySchedule(ReplayScheduleArgs),
    /// Run a scheduler of a kernel tree, in its own C, beside the model's or that of another tree
    Differential(DifferentialArgs),
    /// Print a reference page: commands, devices, options of fio, kernels, schedulers
    Reference {
        /// Name of the page; without it, the list of pages
        page: Option<String>,
    },
    /// Print a script for a shell that completes commands and options
    Completions {
        /// Name of the shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of blksim or of one of its commands: blksim man run | man -l -
    Man {
        /// Name of a command
        command: Option<String>,
    },
}

/// The arguments of the process, in which `--json FILE` is the same as `--json=FILE`.
///
/// FILE is optional, so a word after `--json` may be FILE or the scenario: it is FILE if it is `-`,
/// ends in .json, or begins with /dev/. Not of `diff`, which reads such files.
pub(crate) fn joined(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let (mut off, mut has_command) = (false, false);
    for argument in arguments {
        // After the program's name. Options before the command have no value of their own.
        let is_command = !all.is_empty() && !has_command && !is_option(&argument);
        has_command |= is_command;
        // What follows are fio's arguments, the two files to compare, or a command to record.
        off |= argument == "--" || is_command && (argument == "diff" || argument == "record");
        let is_file = {
            let bytes = argument.as_encoded_bytes();
            bytes == b"-" || bytes.ends_with(b".json") || bytes.starts_with(b"/dev/")
        };
        match all.last_mut().filter(|last| *last == "--json") {
            Some(json) if is_file && !off => {
                json.push("=");
                json.push(argument);
            }
            _ => all.push(argument),
        }
    }
    all
}

fn is_option(argument: &OsString) -> bool {
    argument.as_encoded_bytes().starts_with(b"-")
}

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

/// Kernels whose rules are modelled, as an option takes them.
fn kernels() -> String {
    let (own, single) = (Rules::names_of(false), Rules::names_of(true));
    format!("{own}; of the single-queue path {single}")
}

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = RUN_CODES)]
pub(crate) struct RunArgs {
    /// A built-in scenario (see `blksim list`), FILE.toml, or fio job files
    ///
    /// A file may have any name: its content shows whether it is a job. `-` is standard input.
    /// Jobs of further files begin after the end of those before, as in fio.
    #[arg(
        value_name = "SCENARIO",
        required_unless_present = "fio",
        conflicts_with = "fio"
    )]
    pub(crate) scenario: Vec<String>,

    #[command(flatten)]
    pub(crate) sweep: SweepArgs,

    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Write the run as a capture folder (binary blktrace files) into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) blktrace: Option<PathBuf>,
    /// Add distributions and time series to the JSON report
    ///
    /// The distributions of latencies, lock waits, lock holds and device queue depth, context
    /// switches over time, the scheduler's own time series and turns, and the sectors that
    /// rotational disks were sent to: member `details`.
    #[arg(long)]
    pub(crate) details: bool,
    /// Add calls and times of the block layer's functions to the report
    #[arg(long)]
    pub(crate) functions: bool,
    /// Write a part of the run as a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_perfetto: Option<PathBuf>,
    /// Virtual time of that part, e.g. 20ms,22ms [default: 2 ms from the end of the ramp]
    #[arg(long, value_name = "FROM,TO", requires = "trace_perfetto")]
    pub(crate) trace_window: Option<String>,

    /// Write the run as steps of a specification into this file
    ///
    /// Of specs/Restart if the disks share a tag set, else, with one disk, of specs/CfqMerge under
    /// cfq, specs/BfqMerge under bfq and specs/Dispatch under other schedulers. `blksim check SPEC
    /// --run` and `blksim replay-schedule` read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,

    /// A fio command line: blksim run --device null_blk -- --name=x --bs=4k --rw=randread ...
    #[arg(last = true, value_name = "FIO OPTIONS")]
    pub(crate) fio: Vec<String>,
}

/// Where the text goes.
#[derive(Clone, Debug, Default)]
pub(crate) enum TextTo {
    /// To standard output, unless another report goes there.
    #[default]
    Stdout,
    File(PathBuf),
    Nowhere,
}

/// The formats of `--output-format`, all in one place as in fio.
#[derive(Clone, Debug, Default)]
pub(crate) struct FioFormats {
    pub(crate) terse: bool,
    pub(crate) json: bool,
    /// json+
    pub(crate) bins: bool,
    pub(crate) normal: bool,
    /// `-`: standard output.
    pub(crate) to: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Write the report as JSON to FILE, or print it in place of the text
    ///
    /// `run` with several runs writes an array with the report of each.
    ///
    /// After a space FILE must be `-`, end in .json, or begin with /dev/: `--json out.json`. Any
    /// other name follows an equals sign: `--json=out`.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as CSV: a row for each direction of each job (replay: for each column)
    ///
    /// `compare` writes a row for each measure of each variant, and of each seed of it, `analyze` a
    /// row for each span of each table.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page with tables, figures and what to look at next, for a browser
    ///
    /// One HTML file that needs no network. Of a single run it has all figures, of several runs
    /// those over time only with --details.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    // From fio's --output and --output-format.
    #[arg(skip)]
    pub(crate) text: TextTo,
    #[arg(skip)]
    pub(crate) fio: Option<FioFormats>,
}

/// Changes of one run that every command has.
#[derive(Debug, clap::Args)]
pub(crate) struct Tune {
    /// Machine profile: a name from `blksim list`, or FILE.toml
    ///
    /// `:sockets=N` after it for another number of its sockets.
    #[arg(long, value_name = "NAME|FILE.toml[:sockets=N]")]
    pub(crate) machine: Option<String>,
    #[arg(
        long,
        value_name = "KERNEL",
        help = "Kernel release whose rules apply (queue.rules)",
        long_help = format!("Kernel release whose rules apply (queue.rules): {}", kernels())
    )]
    pub(crate) rules: Option<String>,
    /// Change a value of the scenario: queue.fifo_batch=1, job.iodepth=32 (all jobs)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
}

/// A capture whose arrivals are replayed.
#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    /// Folder of the capture, its files <device>.blktrace.<cpu>, a dump or a text; `-`
    ///
    /// Also compressed (gzip, xz, zstd, bzip2); `-` is standard input. The content decides what a
    /// file is: see --format.
    #[arg(required = true, value_name = "CAPTURE")]
    pub(crate) capture: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Device: null_blk,irqmode=2,..., a drive's file, or `captured`: each request its captured D2C
    #[arg(
        long,
        value_name = "TYPE[,PARAMETER=VALUE]...|FILE.toml",
        default_value = "captured"
    )]
    pub(crate) device: String,
    #[command(flatten)]
    pub(crate) tune: Tune,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_CODES)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) captured: CaptureArgs,
    /// Events that are the arrivals: Q (submission) or D (issue, after merging)
    #[arg(long, value_name = "Q|D", default_value = "Q")]
    pub(crate) from: String,
    /// Let each process wait for its own completions instead of submitting at the captured times
    #[arg(long)]
    pub(crate) closed_loop: bool,
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        help = "Schedulers to replay under, a column each [default: the capture's]",
        long_help = format!(
            "Schedulers to replay under, a column each [default: the capture's]: {}",
            schedulers()
        )
    )]
    pub(crate) scheduler: Vec<String>,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_CODES)]
pub(crate) struct WhatIfArgs {
    #[command(flatten)]
    pub(crate) captured: CaptureArgs,
    #[arg(
        long,
        value_name = "NAME[,TUNABLE=VALUE]...,...",
        value_delimiter = ',',
        help = "Schedulers to compare, each with values of its tunables [default: all]",
        long_help = format!(
            "Schedulers to compare, each with values of its tunables, also nr_requests, after it \
             [default: all]: {}",
            schedulers()
        )
    )]
    pub(crate) scheduler: Vec<String>,
    /// Fit drive and machine to every second I/O of the capture, and judge by the others
    ///
    /// The drive: D2C by kind, size and depth. The machine: its clock, and how long requests wait
    /// after a completion.
    #[arg(long)]
    pub(crate) fit: bool,
    /// Write NAME-drive.toml and NAME-machine.toml, fitted to all I/Os
    ///
    /// For `run --drive`, `replay --device` and --machine.
    #[arg(long, value_name = "NAME", requires = "fit")]
    pub(crate) write_fit: Option<PathBuf>,
    /// Search the tunables of each scheduler, and print the trade-off of mean and 99th percentile
    #[arg(long = "tune")]
    pub(crate) search: bool,
    /// Submit at the captured times, whatever has completed until then
    #[arg(long)]
    pub(crate) open_loop: bool,
    /// Runs of each choice, a seed each
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(2..=1000)
    )]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CONFORM_CODES)]
pub(crate) struct ConformArgs {
    /// Folder of the capture: meta.txt, queue.txt, and ftrace.txt or blktrace files
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Decisions to compare: scheduler calls, D records or the scheduler's log
    ///
    /// `calls` are the calls of the scheduler's dispatch function in ftrace.txt, `records` the D
    /// records of blktrace, `log` the lines that the scheduler wrote into blktrace with the calls
    /// that these lines record. Default: calls if the capture has them, else records; the output
    /// names the mode and the reason.
    #[arg(long, value_name = "calls|records|log")]
    pub(crate) mode: Option<String>,
    /// Judge only this device of the capture; dm-0 of a multipath capture includes its paths
    #[arg(long, value_name = "DEV")]
    pub(crate) trace_device: Option<String>,
    /// Kernel release whose rules apply [default: the capture's]
    #[arg(long, value_name = "KERNEL")]
    pub(crate) rules: Option<String>,
    /// queue/rotational when the scheduler was chosen, if meta.txt does not have it
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) rotational_when_chosen: Option<u8>,
    /// Time from the decision of a dispatch call to its record, us, if no file has it
    ///
    /// Used if neither a log nor meta.txt has the time and the scheduler reads the clock.
    #[arg(long, value_name = "US")]
    pub(crate) decided_before: Option<u32>,
    /// Time from a record to the dispatch call that it causes and no record shows, us
    #[arg(long, value_name = "US")]
    pub(crate) decided_after: Option<u32>,
    /// Time from the end of a process's last I/O to its exit, ms, if no file has it
    #[arg(long, value_name = "MS")]
    pub(crate) exits_after: Option<u32>,
    /// Write the verdict as JSON to FILE, or print it in place of the text
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    pub(crate) json: Option<PathBuf>,
}

/// How the files of a capture are read.
#[derive(Debug, clap::Args)]
pub(crate) struct ReadingArgs {
    /// Read only this device of the capture: sda, /dev/sda, 8,0 or 8:0
    #[arg(long, value_name = "DEV")]
    pub(crate) trace_device: Option<String>,
    /// Format of files that are not named <device>.blktrace.<cpu> [default: by their content]
    ///
    /// blktrace (records), blkparse (its default text), `blkparse:SPEC` (text of `blkparse -f
    /// SPEC`), ftrace (also `trace-cmd report` and `perf script`), iolog (of fio), biosnoop (of
    /// bcc and bpftrace), msr (MSR Cambridge) or systor (SYSTOR '17).
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<Format>,
    /// Use the records before a damage in the middle of a file
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Make every warning an error
    #[arg(long, conflicts_with = "salvage")]
    pub(crate) strict: bool,
}

impl ReadingArgs {
    pub(crate) fn options(&self) -> Options {
        Options {
            device: match &self.trace_device {
                Some(name) => DeviceChoice::Named(name.clone()),
                None => DeviceChoice::Only,
            },
            strict: self.strict,
            salvage: self.salvage,
            format: self.format.clone(),
            ..Options::default()
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnalyzeArgs {
    /// Files <device>.blktrace.<cpu>, their folder, a dump, or a text such as blkparse's; `-`
    ///
    /// Also compressed (gzip, xz, zstd, bzip2); `-` is standard input. The content decides what a
    /// file is: see --format.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Write a Parquet file with a row for each bio: its times, process, CPU, place, size, error
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Write the pictures of --html as SVG files: offsets, throughput, IOPS, latency, depth, seeks
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
}

/// TOML, which scenarios are written in, has signed numbers of 64 bits.
fn seed(text: &str) -> Result<u64, String> {
    let seed = text
        .parse()
        .ok()
        .filter(|seed| i64::try_from(*seed).is_ok());
    seed.ok_or_else(|| format!("expected a whole number from 0 to {}", i64::MAX))
}

/// Specifiers of `dump -f`.
fn specifiers() -> String {
    let lines =
        blkparse::Format::specifiers().map(|(letter, meaning)| format!("{letter} {meaning}"));
    lines.collect::<Vec<_>>().join("; ")
}

#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    /// Files <device>.blktrace.<cpu>, their folder, a dump, or a text such as blkparse's; `-`
    ///
    /// Also compressed (gzip, xz, zstd, bzip2); `-` is standard input. The content decides what a
    /// file is: see --format.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,
    #[arg(
        short = 'f',
        value_name = "FORMAT",
        help = "Format of all events, such as '%T.%9t %a %S + %n\\n'",
        long_help = format!(
            "Format of all events, such as '%T.%9t %a %S + %n\\n'\n\nText, \\b, \\n, \\r, \\t, %% \
             and fields with a width: %8S, to the left %-8S. Fields: {}. Messages keep their form.",
            specifiers()
        )
    )]
    pub(crate) text_format: Option<String>,
    /// Format of one action, such as 'C,%S %e\n', before that of all
    #[arg(short = 'F', long = "format-spec", value_name = "ACTION,FORMAT")]
    pub(crate) action_format: Vec<String>,
    /// Print only events of a category, such as issue or complete
    #[arg(short, long = "act-mask", value_name = "CATEGORY", value_parser = category)]
    pub(crate) action: Vec<Categories>,
    /// The same as the bits of blktrace_api.h, in hex: 40 is issue, c0 is issue or complete
    #[arg(short = 'A', long, value_name = "HEX", value_parser = mask, conflicts_with = "action")]
    pub(crate) set_mask: Option<Categories>,
    /// Leave out events outside of this time since the first one
    #[arg(short = 'w', long, value_name = "[START:]END", value_parser = stopwatch)]
    pub(crate) stopwatch: Option<RangeInclusive<u64>>,
    /// Print the time since G (in I), I (in D) and D (in C), in nanoseconds
    #[arg(short, long = "track-ios")]
    pub(crate) track: bool,
    /// Print a summary of each process too
    #[arg(short = 's', long = "per-program-stats")]
    pub(crate) programs: bool,
    /// In that summary, count processes of one name together (blkparse's -h)
    #[arg(long)]
    pub(crate) hash_by_name: bool,
    /// Print messages with a cgroup id too, such as bfq's log, as blkparse 1.3 does
    #[arg(long)]
    pub(crate) messages: bool,
    /// Of blkparse only.
    #[arg(short = 'd', short_aliases = ['b', 'D', 'i', 'I', 'o', 'O', 'v', 'M'], hide = true)]
    #[arg(num_args = 0..=1, default_missing_value = "", value_parser = refuse)]
    pub(crate) others: Option<()>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

fn refuse(_: &str) -> Result<(), String> {
    Err(
        "of blkparse's options, -d, -b, -D, -i, -I, -M, -o, -O and -v are not supported; \
         expected files without -i, and lines on standard output"
            .to_owned(),
    )
}

fn mask(text: &str) -> Result<Categories, String> {
    let hex = text.strip_prefix("0x").unwrap_or(text);
    let bits = u16::from_str_radix(hex, 16).ok().filter(|bits| *bits > 0);
    let bits = bits.ok_or_else(|| "expected 1 to ffff, a bit for each category".to_owned())?;
    Ok(Categories(bits.into()))
}

fn stopwatch(text: &str) -> Result<RangeInclusive<u64>, String> {
    let ns = |text: &str| {
        let seconds = text.parse::<f64>().ok().filter(|n| (0.0..=1e9).contains(n));
        seconds.map(|seconds| (seconds * 1e9) as u64)
    };
    let (start, end) = text.split_once(':').unwrap_or(("0", text));
    let times = ns(start).zip(ns(end)).filter(|(start, end)| start < end);
    let times = times.ok_or("expected END or START:END in seconds, START below END");
    times.map(|(start, end)| start..=end).map_err(str::to_owned)
}

fn category(name: &str) -> Result<Categories, String> {
    let names = || Categories::NAMES.iter().map(|(name, _)| *name);
    let named = Categories::NAMES
        .iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(name));
    named
        .map(|(_, category)| *category)
        .ok_or_else(|| format!("expected one of {}", names().collect::<Vec<_>>().join(", ")))
}

/// A time in fio's words. Its unit is judged where the job's `runtime` is set.
fn runtime(text: &str) -> Result<String, String> {
    let number: String = text.chars().take_while(char::is_ascii_digit).collect();
    if number.parse() == Ok(0u64) {
        return Err("expected a time above 0, such as 20ms or 1s".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Args, joined};

    #[test]
    fn a_file_after_json_is_its_value() {
        let of = |line: &str| {
            let words = format!("blksim {line}");
            let all = joined(words.split(' ').map(Into::into));
            all[1..].join(" ".as_ref())
        };
        assert_eq!(of("run --json a.json x"), "run --json=a.json x");
        assert_eq!(of("run x --json -"), "run x --json=-");
        assert_eq!(of("run --json /dev/null x"), "run --json=/dev/null x");
        assert_eq!(of("run --json x"), "run --json x");
        assert_eq!(
            of("run --json -- --json a.json"),
            "run --json -- --json a.json"
        );
        assert_eq!(of("run --json=a.json b.json"), "run --json=a.json b.json");
        for line in ["diff", "-q diff", "record"].map(|line| format!("{line} --json a.json b")) {
            assert_eq!(of(&line), line.as_str());
        }
        for line in ["analyze record", "-q run diff"] {
            let (given, want) = (
                format!("{line} --json a.json"),
                format!("{line} --json=a.json"),
            );
            assert_eq!(of(&given), want.as_str());
        }
    }

    #[test]
    fn the_grammar_is_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    /// `-h` has a line for each argument: longer text belongs to `--help`.
    #[test]
    fn short_help_fits_a_line() {
        use clap::CommandFactory as _;
        for command in Args::command().get_subcommands() {
            let about = [("", command.get_about())];
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            let arguments = shown.map(|arg| (arg.get_id().as_str(), arg.get_help()));
            for (name, help) in about.into_iter().chain(arguments) {
                let help = help.map(ToString::to_string).unwrap_or_default();
                let place = format!("{} {name}: {help}", command.get_name());
                assert!((10..=94).contains(&help.len()), "{}: {place}", help.len());
            }
        }
    }
}
