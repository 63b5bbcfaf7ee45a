//! `cargo xtask speed`: instructions of one simulated I/O, against benches/baseline.toml.
//!
//! Counted under callgrind in two runs that differ only in their length: the difference is I/O,
//! without start, ramp and report. Seconds vary on a shared machine; these counts repeat to the
//! last digit, so that 3 % is a change of the code. All are of mq-deadline; for other schedulers a
//! ratio to it is the limit.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, thread};

use serde::Deserialize;

use crate::build::Build;
use crate::step::{Failure, Outcome, Result, Run};
use crate::{paths, results, step};

/// Tolerance in percent above an I/O's baseline. A gain larger than this is reported.
const TOLERANCE: f64 = 3.0;
/// Lengths of the two runs.
const RUNTIMES: [&str; 2] = ["5ms", "15ms"];
/// The scheduler that others are compared with.
const REFERENCE: &str = "mq-deadline";
/// The scenario of a mapped device.
const MAPPED: &str = "dm-null";
/// Where the figures are.
const BASELINE: &str = "benches/baseline.toml";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counted {
    instructions: u64,
    ios: u64,
}

/// Counts of the dist build against its baseline, and those of other schedulers against them.
pub(crate) fn run() -> Result {
    if !paths::has_program("valgrind") {
        return step::missing_tool("valgrind is missing");
    }
    let blksim = Build::Dist.blksim()?;
    let baseline = Baseline::read()?;
    let (measured, mut dearer) = against_baseline(&blksim, &baseline, Build::Dist)?;
    for (scenario, schedulers) in &baseline.times {
        let reference = match measured.get(scenario) {
            Some(reference) => *reference,
            None => per_io(&blksim, scenario, REFERENCE)?,
        };
        dearer.extend(compared(&blksim, scenario, reference, schedulers)?);
    }
    none_of(&dearer)
}

/// Counts of the release build against its baseline.
pub(crate) fn quick() -> Result {
    if !paths::has_program("valgrind") {
        return step::missing_tool("valgrind is missing");
    }
    let build = Build::Release;
    let (_, dearer) = against_baseline(&build.blksim()?, &Baseline::read()?, build)?;
    none_of(&dearer)
}

/// Counts of both builds, as the new baseline.
pub(crate) fn write() -> Result {
    if !paths::has_program("valgrind") {
        return step::missing_tool("valgrind is missing");
    }
    let mut text = text()?;
    for build in [Build::Release, Build::Dist] {
        let measured = measured(&build.blksim()?, Baseline::parse(&text)?.of(build)?)?;
        text = rewritten(&text, build, &measured);
    }
    let file = paths::root().join(BASELINE);
    fs::write(file, text).map_err(|e| Failure(format!("{BASELINE}: cannot write: {e}")))?;
    println!("{BASELINE}: written; its date and machine are yours to correct");
    Ok(Outcome::Passed)
}

/// By scenario, the instructions per I/O.
type Figures = BTreeMap<String, f64>;

fn measured(blksim: &Path, scenarios: &Figures) -> Result<Figures> {
    let one = |scenario: &String| {
        let value = per_io(blksim, scenario, REFERENCE)?;
        println!("{scenario}: {value:.0} instructions per I/O");
        Ok((scenario.clone(), value))
    };
    scenarios.keys().map(one).collect()
}

/// Measures, and returns the scenarios above their baseline.
fn against_baseline(
    blksim: &Path,
    baseline: &Baseline,
    build: Build,
) -> Result<(Figures, Vec<String>)> {
    let known = baseline.of(build)?;
    let measured = measured(blksim, known)?;
    let judged = measured
        .iter()
        .filter_map(|(scenario, now)| judge(scenario, known[scenario], *now));
    let dearer = judged.collect();
    Ok((measured, dearer))
}

fn none_of(dearer: &[String]) -> Result {
    match dearer.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(Failure(dearer.join("\n"))),
    }
}

/// I/Os through a mapped device, compared with the device without one under the same kernel's
/// rules. Minutes: a part of `ci --full`.
pub(crate) fn run_mapped() -> Result {
    if !paths::has_program("valgrind") {
        return step::missing_tool("valgrind is missing");
    }
    let bounds = Baseline::read()?.mapped;
    let blksim = Build::Dist.blksim()?;
    let alone = results::scenario("null-alone")?;
    let mut dearer = Vec::new();
    for (rules, most) in &bounds {
        let of = |name: &str, scenario: &str| {
            let args = ["run", scenario, "--rules", rules];
            per_io_of(&blksim, &format!("{name}-{rules}"), &args)
        };
        let (mapped, alone) = (of(MAPPED, MAPPED)?, of("null-alone", &alone)?);
        let ratio = mapped / alone;
        println!("{MAPPED} {rules}: {mapped:.0} instructions per I/O, {ratio:.2} times null_blk");
        if ratio > *most {
            dearer.push(format!(
                "{MAPPED} {rules}: {ratio:.2} times the instructions of only null_blk, expected \
                 at most {most}"
            ));
        }
    }
    none_of(&dearer)
}

/// Excesses over the limit under these schedulers, compared with [`REFERENCE`].
fn compared(
    blksim: &Path,
    scenario: &str,
    reference: f64,
    schedulers: &Figures,
) -> Result<Vec<String>> {
    let mut dearer = Vec::new();
    for (scheduler, most) in schedulers {
        let value = per_io(blksim, scenario, scheduler)?;
        let ratio = value / reference;
        println!("{scenario} under {scheduler}: {value:.0} instructions per I/O, {ratio:.2} times");
        if ratio > *most {
            dearer.push(format!(
                "{scenario} under {scheduler}: {ratio:.2} times the instructions of {REFERENCE}, \
                 expected at most {most}"
            ));
        }
    }
    Ok(dearer)
}

/// The content of the baseline's file.
fn text() -> Result<String> {
    let text = fs::read_to_string(paths::root().join(BASELINE));
    text.map_err(|e| Failure(format!("{BASELINE}: cannot read: {e}")))
}

/// The content of the baseline's file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Baseline {
    #[serde(rename = "date")]
    _date: String,
    #[serde(rename = "machine")]
    _machine: String,
    /// By build and scenario, the instructions per I/O.
    instructions: BTreeMap<String, Figures>,
    /// By scenario and scheduler, how many times the instructions of [`REFERENCE`] it may take.
    times: BTreeMap<String, Figures>,
    /// By kernel, the limit of an I/O through a mapped device, as a multiple of the instructions
    /// of an I/O to the device without one.
    mapped: Figures,
}

impl Baseline {
    fn read() -> Result<Baseline> {
        Baseline::parse(&text()?)
    }

    fn parse(text: &str) -> Result<Baseline> {
        let wrong = |what: &str| Failure(format!("{BASELINE}: {what}"));
        let read: Baseline = toml::from_str(text).map_err(|e| wrong(&e.to_string()))?;
        let above = |all: &Figures, limit| !all.is_empty() && all.values().all(|one| *one > limit);
        let ratios = read.times.values().chain([&read.mapped]);
        if !ratios.into_iter().all(|all| above(all, 1.0)) {
            return Err(wrong("times, mapped: expected numbers over 1"));
        }
        if !read.instructions.values().all(|all| above(all, 0.0)) {
            return Err(wrong("instructions: expected numbers"));
        }
        Ok(read)
    }

    fn of(&self, build: Build) -> Result<&Figures> {
        let profile = build.profile();
        let missing = || Failure(format!("{BASELINE}: [instructions.{profile}] is missing"));
        self.instructions.get(profile).ok_or_else(missing)
    }
}

/// The complaint about a scenario that became dearer than the tolerance.
fn judge(scenario: &str, known: f64, now: f64) -> Option<String> {
    let percent = 100.0 * (now / known - 1.0);
    if percent < -TOLERANCE {
        println!("{scenario}: {percent:+.1} %: write it down with `cargo xtask speed --write`");
    }
    (percent > TOLERANCE).then(|| {
        format!(
            "{scenario}: {now:.0} instructions per I/O, {known:.0} in {BASELINE}: {percent:+.1} %, \
             expected at most +{TOLERANCE} %"
        )
    })
}

/// The text with other figures of this build; comments stay.
fn rewritten(text: &str, build: Build, measured: &Figures) -> String {
    let header = format!("[instructions.{}]", build.profile());
    let mut inside = false;
    let line = |line: &str| {
        if line.starts_with('[') {
            inside = line == header;
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        match measured.get(key).filter(|_| inside) {
            Some(value) => format!("{key} = {value:.0}\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Instructions per I/O under `scheduler`.
fn per_io(blksim: &Path, scenario: &str, scheduler: &str) -> Result<f64> {
    let name = format!("{scenario}-{scheduler}");
    per_io_of(blksim, &name, &["run", scenario, "--scheduler", scheduler])
}

/// Instructions of an I/O of these command lines: the two runs side by side, one a core.
fn per_io_of(blksim: &Path, name: &str, args: &[&str]) -> Result<f64> {
    let [short, long] = thread::scope(|scope| {
        RUNTIMES
            .map(|runtime| {
                let name = format!("{name}-{runtime}");
                scope.spawn(move || counted(blksim, &name, args, &["--runtime", runtime]))
            })
            .map(|run| {
                run.join()
                    .unwrap_or_else(|_| Err(Failure("a thread ended".to_owned())))
            })
    });
    slope(short?, long?).ok_or_else(|| Failure(format!("{name}: the longer run has no more I/Os")))
}

/// Instructions for each I/O that the longer run has more.
pub(crate) fn slope(short: Counted, long: Counted) -> Option<f64> {
    let ios = long.ios.checked_sub(short.ios).filter(|ios| *ios > 0)?;
    let instructions = long.instructions.checked_sub(short.instructions)?;
    Some(instructions as f64 / ios as f64)
}

/// Counts of a run; `name` is that of its profile.
pub(crate) fn counted(blksim: &Path, name: &str, args: &[&str], more: &[&str]) -> Result<Counted> {
    let folder = paths::target_dir().join("speed");
    fs::create_dir_all(&folder).map_err(|e| Failure(format!("{}: {e}", folder.display())))?;
    let profile = folder.join(format!("{name}.callgrind"));
    let run = Run::new("valgrind", &["--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(blksim);
    let run = args.iter().chain(more).fold(run, Run::arg);
    let run = run.arg("--csv").arg("-");
    let printed = run.printed()?;
    let counts = instructions(&printed.stderr).zip(ios(&printed.stdout));
    match counts.filter(|_| printed.success) {
        Some((instructions, ios)) => Ok(Counted { instructions, ios }),
        None => Err(Failure(format!("{name}: not counted:\n{}", printed.stderr))),
    }
}

/// `==123== Collected : 456`.
fn instructions(stderr: &str) -> Option<u64> {
    let line = stderr.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Sum of the column `ios`.
fn ios(csv: &str) -> Option<u64> {
    let mut rows = csv.lines().map(|row| row.split(','));
    let column = rows.next()?.position(|name| name == "ios")?;
    rows.map(|mut row| row.nth(column)?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_percent_are_allowed_and_no_more() {
        assert_eq!(judge("a", 1000.0, 1029.0), None);
        assert_eq!(judge("a", 1000.0, 500.0), None);
        let dearer = judge("a", 1000.0, 1031.0).unwrap();
        assert!(
            dearer.contains("a: 1031") && dearer.contains("+3.1 %"),
            "{dearer}"
        );
    }

    #[test]
    fn only_the_surplus_of_the_longer_run_counts() {
        let of = |instructions, ios| Counted { instructions, ios };
        assert_eq!(slope(of(1_000, 10), of(4_000, 20)), Some(300.0));
        assert_eq!(slope(of(1_000, 10), of(4_000, 10)), None);
        assert_eq!(slope(of(4_000, 10), of(1_000, 20)), None);
    }

    #[test]
    fn counts_are_read_from_the_programs_output() {
        let stderr = "==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(instructions(stderr), Some(1_234_567));
        assert_eq!(instructions("no"), None);
        assert_eq!(ios("job,ios,bytes\na,3,9\nb,4,9\n"), Some(7));
        assert_eq!(ios("job,bytes\na,3\n"), None);
    }

    #[test]
    fn the_baseline_is_a_table_and_keeps_its_comments() {
        let text = "# why\ndate = \"today\"\nmachine = \"x\"\n\
                    [instructions.release]\na = 10\nb = 20\n\n\
                    [instructions.dist]\na = 11\nb = 21\n\
                    [times.a]\nbfq = 1.5\n[mapped]\nv1 = 2.0\n";
        let read = Baseline::parse(text).unwrap();
        let known = [("a".to_owned(), 10.0), ("b".to_owned(), 20.0)];
        assert_eq!(*read.of(Build::Release).unwrap(), Figures::from(known));
        let now = Figures::from([("b".to_owned(), 31.4)]);
        let written = rewritten(text, Build::Release, &now);
        assert_eq!(written, text.replace("20", "31"));
        let written = rewritten(text, Build::Dist, &now);
        assert_eq!(written, text.replace("21", "31"));
        for (from, to) in [
            ("date = \"today\"\n", ""),
            ("machine", "machines"),
            ("a = 10", "a = 0"),
            ("a = 11\nb = 21\n", ""),
            ("1.5", "\"c\""),
            ("1.5", "0.5"),
            ("2.0", "1.0"),
            ("v1 = 2.0\n", ""),
        ] {
            Baseline::parse(&text.replace(from, to)).expect_err(to);
        }
        let without = text.replace("release", "debug");
        let failure = Baseline::parse(&without)
            .unwrap()
            .of(Build::Release)
            .unwrap_err();
        assert!(
            failure.0.contains("[instructions.release] is missing"),
            "{failure}"
        );
        let ours = Baseline::read().unwrap();
        for build in [Build::Release, Build::Dist] {
            assert_eq!(ours.of(build).unwrap().len(), 2);
        }
        assert!(ours.times.len() >= 3 && ours.mapped.contains_key("v6.1"));
    }
}
