//! `cargo xtask mutants`: wrong changes of every `#[steps]` function, each of which a test must
//! catch.
//!
//! One build has all changes (`crates/steps/src/mutants.rs`); the environment of a test chooses
//! one. First each test runs alone and says which places it reaches; then each change runs with the
//! tests that reach it, the quickest first, until one fails.

#![expect(
    clippy::disallowed_methods,
    reason = "a test that does not end must be stopped"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

/// Changes that no test catches, with the reasons: no test can; or a test is still to be written,
/// `open:`, of at most so many.
const SURVIVING: &str = "crates/xtask/surviving-mutants.txt";
const OPEN_MAX: usize = 2;

/// The packages whose tests run paths, and those of loom.
const BUILDS: [(&str, &str); 2] = [
    (
        "--cfg mutants",
        "test --release --locked --package blkmq --package blksim-explore --package blksim-conform \
         --package blksim-sim --package blksim-scenario --package blksim",
    ),
    (
        "--cfg mutants --cfg loom",
        "test --locked --package blkmq --test loom",
    ),
];

/// So many tests are tried first.
const LAST: usize = 20;

/// KiB of memory of a test: a change may make it ask for more and more.
const MEMORY: u64 = 4 << 20;

#[derive(clap::Args, Debug)]
pub(crate) struct MutantsArgs {
    /// Those whose number is this, or whose line has this text: a file, a function, a kind
    #[arg(long)]
    only: Vec<String>,
    /// One of so many, by their numbers
    #[arg(long, default_value_t = 1)]
    one_in: u32,
    /// Tests that run at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Leave out tests that take longer than so many seconds
    #[arg(long, default_value_t = f64::INFINITY)]
    seconds: f64,
    /// Only list them
    #[arg(long)]
    list: bool,
}

/// A change, as its list has it.
struct Mutant {
    number: u32,
    line: String,
}

struct Test {
    program: usize,
    name: String,
    seconds: f64,
    reaches: BTreeSet<u32>,
}

/// A program of tests, and the folder that it runs in.
struct Program {
    path: PathBuf,
    folder: PathBuf,
}

/// One of sixteen.
pub(crate) fn some() -> Result {
    run(&MutantsArgs {
        only: Vec::new(),
        one_in: 16,
        jobs: 2,
        seconds: f64::INFINITY,
        list: false,
    })
}

pub(crate) fn run(args: &MutantsArgs) -> Result {
    let mut programs = Vec::new();
    for (flags, command) in BUILDS {
        programs.extend(build(flags, command)?);
    }
    let mut mutants = list(&programs)?;
    let known = if args.list {
        BTreeSet::new()
    } else {
        known(&mutants)?
    };
    let wanted = |mutant: &Mutant| {
        let is_it = |only: &String| {
            mutant.number.to_string() == *only || mutant.line.contains(only.as_str())
        };
        let is_named = args.only.is_empty() || args.only.iter().any(is_it);
        is_named && mutant.number.is_multiple_of(args.one_in.max(1))
    };
    mutants.retain(wanted);
    if mutants.is_empty() {
        return Err(Failure("no mutant is meant by that".to_owned()));
    }
    if args.list {
        for Mutant { number, line } in &mutants {
            println!("{number}\t{line}");
        }
        return Ok(Outcome::Passed);
    }
    let mut tests = tests(&programs, args.jobs)?;
    tests.retain(|test| test.seconds <= args.seconds);
    let cost = |test: &Test| test.seconds * test.reaches.len() as f64;
    tests.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let last = Mutex::new(VecDeque::new());
    let survivors = each(&mutants, args.jobs, |mutant| {
        let caught = caught_by(mutant, &programs, &tests, &last);
        let verdict = caught.as_deref().unwrap_or("SURVIVES");
        println!("{}\t{}\t{verdict}", mutant.number, mutant.line);
        caught.is_none().then_some(mutant.number)
    });
    let survivors = survivors.into_iter().flatten().collect();
    judge(&mutants, &survivors, &known)
}

/// Builds the tests and returns their programs.
fn build(flags: &str, command: &str) -> Result<Vec<Program>> {
    let folder = paths::target_dir().join(flags.replace("--cfg ", "").replace(' ', "-"));
    let run = Run::cargo(command).args("--no-run --message-format json-render-diagnostics");
    let run = run.arg("--target-dir").arg(&folder).env("RUSTFLAGS", flags);
    let run = run.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    // Loom's threads have small stacks.
    let run = run.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    let messages = String::from_utf8_lossy(&run.stdout()?).into_owned();
    let messages = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"] == true;
        let path = message["executable"].as_str().filter(|_| is_test)?.into();
        let folder = Path::new(message["manifest_path"].as_str()?)
            .parent()?
            .into();
        Some(Program { path, folder })
    });
    Ok(messages.collect())
}

/// All changes, as a test of each function prints them.
fn list(programs: &[Program]) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for program in programs {
        let run = Run::words(&program.path, "mutants_of_ --nocapture --test-threads 1");
        let printed = String::from_utf8_lossy(&run.stdout()?).into_owned();
        for line in printed.lines() {
            let Some((_, line)) = line.split_once("mutant\t") else {
                continue;
            };
            let (number, line) = line.split_once('\t').expect("a number and its line");
            let (number, line) = (number.parse().expect("a number"), line.to_owned());
            mutants.push(Mutant { number, line });
        }
    }
    Ok(mutants)
}

/// The numbers of the changes that are known to survive.
fn known(mutants: &[Mutant]) -> Result<BTreeSet<u32>> {
    let text = fs::read_to_string(paths::root().join(SURVIVING)).unwrap_or_default();
    let (mut numbers, mut open) = (BTreeSet::new(), 0);
    for (at, line) in text.lines().enumerate() {
        let number = line.split('\t').next().and_then(|word| word.parse().ok());
        let is_one = |number: &u32| {
            line.contains(": ") && mutants.iter().any(|mutant| mutant.number == *number)
        };
        numbers.insert(number.filter(is_one).ok_or_else(|| {
            let wanted =
                "expected a mutant's number (cargo xtask mutants --list), place and reason";
            Failure(format!("{SURVIVING}:{}: {wanted}", at + 1))
        })?);
        open += usize::from(line.contains(": open: "));
    }
    if open > OPEN_MAX {
        let text = format!("{SURVIVING}: {open} are open, {OPEN_MAX} at most");
        return Err(Failure(text));
    }
    eprintln!("{open} of {} have no test yet", mutants.len());
    Ok(numbers)
}

/// Every test with what it reaches.
fn tests(programs: &[Program], jobs: usize) -> Result<Vec<Test>> {
    let mut all = Vec::new();
    for (program, Program { path, .. }) in programs.iter().enumerate() {
        let names = Run::words(path, "--list --format terse").stdout()?;
        let names = String::from_utf8_lossy(&names).into_owned();
        let ignored = Run::words(path, "--list --format terse --ignored").stdout()?;
        let ignored = String::from_utf8_lossy(&ignored).into_owned();
        let names = names
            .lines()
            .filter(|line| !ignored.lines().any(|other| other == *line));
        let names = names.filter_map(|line| line.strip_suffix(": test"));
        let names = names.filter(|name| !name.contains("mutants_of_"));
        all.extend(names.map(|name| (program, name.to_owned())));
    }
    let tests = each(&all, jobs, |(program, name)| {
        reach(&programs[*program], *program, name)
    });
    Ok(tests.into_iter().flatten().collect())
}

/// Runs one test without a change; none, and a line of the output, if it fails.
fn reach(program: &Program, number: usize, name: &str) -> Option<Test> {
    let file = paths::target_dir().join(format!(
        "mutants/reached-{number}-{}",
        name.replace("::", "-")
    ));
    let _ = fs::remove_file(&file);
    let started = Instant::now();
    let env = ("BLKSIM_MUTANTS_REACHED", &*file);
    let passes = passes(program, name, env, 600);
    let seconds = started.elapsed().as_secs_f64();
    let text = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(&file);
    if !passes {
        println!(
            "left out, fails without a change: {} {name}",
            program.path.display()
        );
        return None;
    }
    let reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
    let name = name.to_owned();
    Some(Test {
        program: number,
        name,
        seconds,
        reaches,
    })
}

/// The first test that fails with this change: those that caught the last changes come first, then
/// those that are quick and reach little else.
fn caught_by(
    mutant: &Mutant,
    programs: &[Program],
    tests: &[Test],
    last: &Mutex<VecDeque<usize>>,
) -> Option<String> {
    let number = PathBuf::from(mutant.number.to_string());
    let all = Vec::from(last.lock().expect("no job panics").clone());
    let others = (0..tests.len()).filter(|at| !all.contains(at));
    let mut all = all.iter().copied().chain(others);
    let caught = all.find(|&at| {
        let test = &tests[at];
        let (program, env) = (&programs[test.program], ("BLKSIM_MUTANT", &*number));
        test.reaches.contains(&mutant.number)
            && !passes(program, &test.name, env, 3 + (20.0 * test.seconds) as u64)
    })?;
    let mut last = last.lock().expect("no job panics");
    last.retain(|&at| at != caught);
    last.push_front(caught);
    last.truncate(LAST);
    let Test { program, name, .. } = &tests[caught];
    let program = programs[*program].path.file_stem()?.to_string_lossy();
    Some(format!("{program} {name}"))
}

/// Runs a test with at most so many seconds of CPU; without an end it fails.
fn passes(program: &Program, name: &str, env: (&str, &Path), seconds: u64) -> bool {
    let limits = format!("ulimit -v {MEMORY}; ulimit -t {seconds}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limits]).arg(&program.path);
    command.args([name, "--exact", "--test-threads", "1"]);
    command.current_dir(&program.folder).env(env.0, env.1);
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    command.env("INSTA_UPDATE", "no").process_group(0);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("a shell can be started");
    // On a busy machine, and where it waits for what never comes.
    let limit = Duration::from_secs(60 + 10 * seconds);
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if started.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
            _ => {
                kill(&mut child);
                return false;
            }
        }
    }
}

/// With the programs that it started.
fn kill(child: &mut Child) {
    let _ = Command::new("kill")
        .args(["-9", "--", &format!("-{}", child.id())])
        .status();
    let _ = child.wait();
}

/// What `of` says of each, some at a time, in their order.
fn each<T: Sync, R: Send>(all: &[T], jobs: usize, of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (
        Mutex::new(all.iter().enumerate()),
        Mutex::new(BTreeMap::new()),
    );
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().expect("no job panics").next();
                    let Some((at, one)) = taken else { break };
                    let result = of(one);
                    done.lock().expect("no job panics").insert(at, result);
                }
            });
        }
    });
    done.into_inner()
        .expect("no job panics")
        .into_values()
        .collect()
}

fn judge(mutants: &[Mutant], survivors: &BTreeSet<u32>, known: &BTreeSet<u32>) -> Result {
    let mut wrong = Vec::new();
    for Mutant { number, line } in mutants {
        match (survivors.contains(number), known.contains(number)) {
            (true, false) => wrong.push(format!("survives: {number}\t{line}")),
            (false, true) => wrong.push(format!("is caught, though {SURVIVING} has it: {number}")),
            _ => {}
        }
    }
    let (count, all) = (survivors.len(), mutants.len());
    println!(
        "{count} of {all} survive, {} of them new",
        survivors.difference(known).count()
    );
    match wrong.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(Failure(wrong.join("\n"))),
    }
}
