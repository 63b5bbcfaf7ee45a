//! Kernel trees for `blksim differential`, and what it is run with: schedulers in their own C
//! beside the model's, wrong shims, lines of C that are reached.
//!
//! The trees are Debian's packages linux-source-6.1 and linux-source-6.12, unpacked in part into
//! target/linux; without them the checks are skipped, except where CI=true.

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::Build;
use crate::paths;
use crate::step::{self, Failure, Outcome, Result, Run};

const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// Schedulers, and parts of the kernel that they use.
const COMPARED: [&str; 7] = [
    "mq-deadline",
    "kyber",
    "bfq",
    "sbitmap",
    "rbtree",
    "flush",
    "multipath",
];

/// Those of them whose lines must be reached.
const SCHEDULERS: [&str; 3] = ["mq-deadline", "kyber", "bfq"];

/// What a build needs of a tree.
const PARTS: [&str; 6] = [
    "Makefile",
    "block",
    "include/linux",
    "lib/rbtree.c",
    "lib/sbitmap.c",
    "drivers/md",
];

/// Unpacks what is needed of the packages' archives.
pub(crate) fn fetch() -> Result {
    for kernel in KERNELS {
        let (archive, into) = (archive(kernel), tree(kernel));
        if !archive.is_file() {
            return step::missing_tool(&format!(
                "{} is missing: apt-get install linux-source-{kernel}",
                archive.display()
            ));
        }
        // This file is written after the last part.
        if into.join("complete").is_file() {
            continue;
        }
        fs::create_dir_all(&into).map_err(|error| failed(&into, &error))?;
        let (from, to) = (archive.display().to_string(), into.display().to_string());
        let mut arguments = vec!["-xJf", &from, "-C", &to, "--strip-components=1"];
        let parts = PARTS.map(|part| format!("linux-source-{kernel}/{part}"));
        arguments.extend(parts.iter().map(String::as_str));
        Run::new("tar", &arguments).passes()?;
        let done = into.join("complete");
        fs::write(&done, "").map_err(|error| failed(&done, &error))?;
    }
    Ok(Outcome::Passed)
}

fn archive(kernel: &str) -> PathBuf {
    PathBuf::from(format!("/usr/src/linux-source-{kernel}.tar.xz"))
}

fn tree(kernel: &str) -> PathBuf {
    paths::target_dir().join("linux").join(kernel)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}

/// Every scheduler of both kernels beside the model's, on so many operations; and wrong shims, each
/// of which must show as a difference.
pub(crate) fn differential(operations: u64) -> Result {
    let fetched = fetch()?;
    if fetched != Outcome::Passed {
        return Ok(fetched);
    }
    let blksim = Build::Release.blksim()?;
    for what in COMPARED {
        for kernel in KERNELS {
            let run = compared(&blksim, what, kernel, operations);
            let printed = run.printed()?;
            let lines = printed.stdout.lines();
            for line in lines.filter(|line| !line.starts_with("  not: ")) {
                println!("{line}");
            }
            if !printed.success {
                return Err(Failure(format!(
                    "{what} of {kernel}: {}",
                    printed.stderr.trim()
                )));
            }
            if SCHEDULERS.contains(&what) {
                reached(&printed.stdout)?;
            }
        }
    }
    alike(&blksim)?;
    explored()?;
    faults(&blksim)?;
    mutants(&blksim)
}

/// At least nine in ten lines of a scheduler's files are reached: lines `FILE: SHARE % of LINES
/// lines reached`.
fn reached(printed: &str) -> Result {
    let of_file = |line: &str| {
        let (_, rest) = line.split_once(".c: ")?;
        let (share, rest) = rest.split_once(" % of ")?;
        let lines: f64 = rest.strip_suffix(" lines reached")?.parse().ok()?;
        Some((lines, share.parse::<f64>().ok()? / 100.0 * lines))
    };
    let files = printed.lines().filter_map(of_file);
    let (lines, reached) = files.fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    if lines == 0.0 || reached / lines < 0.9 {
        let text = format!("{reached:.0} of {lines} lines reached, expected 90 %");
        return Err(Failure(format!("{text}\n{printed}")));
    }
    Ok(Outcome::Passed)
}

/// The explorer over mq-deadline's C.
fn explored() -> Result {
    let run = Run::cargo("test --release --locked --package blksim --test explorer");
    run.env("BLKSIM_LINUX", paths::target_dir().join("linux"))
        .passes()
}

fn compared(blksim: &Path, what: &str, kernel: &str, operations: u64) -> Run {
    let (dir, operations) = (tree(kernel).display().to_string(), operations.to_string());
    let arguments = [
        "differential",
        what,
        "--linux",
        &dir,
        "--operations",
        &operations,
        "--coverage",
    ];
    Run::new(blksim, &arguments)
}

/// Wrong shims: file, text, replacement.
const MUTANTS: [(&str, &str, &str); 10] = [
    // list_add_tail() adds at the head.
    (
        "linux.h",
        "shim_link(entry, head->prev, head);",
        "shim_link(entry, head, head->next);",
    ),
    // A jiffy too many.
    (
        "linux.h",
        "#define jiffies (shim_clock.ticks)",
        "#define jiffies (shim_clock.ticks + 1)",
    ),
    // A time that has just come is not after.
    (
        "linux.h",
        "((long)((a) - (b)) >= 0)",
        "((long)((a) - (b)) > 0)",
    ),
    // rb_erase() leaves the node in its tree.
    (
        "block.h",
        "#include <elevator.h>",
        "#include <elevator.h>\n\
     #if SHIM_FILE == 1\nstatic inline void shim_keep(void *n, void *r) { }\n\
     #define rb_erase shim_keep\n#endif",
    ),
    // Requests of the usual class count as real time.
    (
        "block.h",
        "#define IOPRIO_PRIO_CLASS(p) (((p) >> IOPRIO_CLASS_SHIFT) & 7)",
        "#define IOPRIO_PRIO_CLASS(p) ((((p) >> IOPRIO_CLASS_SHIFT) & 7) | 1)",
    ),
    // A merge may have one segment too many.
    (
        "block.h",
        "queue_max_segments(q) ((q)->limits.max_segments)",
        "queue_max_segments(q) ((q)->limits.max_segments + 1)",
    ),
    // A request that has been dispatched may merge again.
    (
        "block.h",
        "(RQF_STARTED | RQF_FLUSH_SEQ | RQF_SPECIAL_PAYLOAD)",
        "(RQF_FLUSH_SEQ | RQF_SPECIAL_PAYLOAD)",
    ),
    // A request at the end of its bucket of the hash is not found.
    (
        "linux.h",
        "(p) && ((n) = (p)->member.next, 1);",
        "(p) && ((n) = (p)->member.next) != NULL;",
    ),
    // The newest request of a path ends, not the oldest.
    (
        "dm.c",
        "list_add_tail(&io->list, &at->in_flight);",
        "list_add(&io->list, &at->in_flight);",
    ),
    // Nobody is asked to issue a flush.
    (
        "flush.c",
        "{ at->kicked = true; }",
        "{ at->kicked = false; }",
    ),
];

fn mutants(blksim: &Path) -> Result {
    let shim = paths::root().join("crates/kernel/shim");
    let copy = paths::target_dir().join("shim-mutant");
    for (file, text, instead) in MUTANTS {
        fs::create_dir_all(&copy).map_err(|error| failed(&copy, &error))?;
        for path in paths::files_under(&shim) {
            let name = path.file_name().expect("a file");
            fs::copy(&path, copy.join(name)).map_err(|error| failed(&path, &error))?;
        }
        let path = copy.join(file);
        let right = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        if right.matches(text).count() != 1 {
            return Err(Failure(format!("shim/{file}: expected once: {text}")));
        }
        let wrong = right.replace(text, instead);
        fs::write(&path, wrong).map_err(|error| failed(&path, &error))?;
        let what = match file {
            "dm.c" => "multipath",
            "flush.c" => "flush",
            _ => COMPARED[0],
        };
        let run = compared(blksim, what, KERNELS[1], 100_000);
        let printed = run.env("BLKSIM_SHIM", &copy).printed()?;
        let (first, _) = printed.stdout.split_once('\n').unwrap_or_default();
        if printed.success || !first.ends_with("a difference") {
            return Err(Failure(format!(
                "shim/{file} with {instead:?} instead of {text:?} is not found: {first}{}",
                printed.stderr
            )));
        }
        println!("found: {}", instead.lines().next().unwrap_or(instead));
    }
    Ok(Outcome::Passed)
}

/// Wrong schedulers: what comes in the place of a line of mq-deadline's dispatch, and the error.
const FAULTS: [(&str, &str); 5] = [
    (
        "*(int *)8 = dd->batching;",
        "access to address 0x8, where nothing is: ",
    ),
    ("BUG_ON(dd->batching == 3);", "BUG_ON(dd->batching == 3)"),
    (
        "if (dd->batching == 3) synchronize_rcu();",
        "calls synchronize_rcu(), which the shim",
    ),
    ("if (dd->batching == 3) for (;;) ;", "the call does not end"),
    (
        "if (dd->batching == 3) spin_lock(&dd->lock);",
        "of a lock that this CPU holds",
    ),
];

/// A run with a scheduler that fails ends with one error that has its file and call, and writes
/// nothing.
fn faults(blksim: &Path) -> Result {
    let line = "\tdd->batching++;";
    let right = tree(KERNELS[1]).join("block/mq-deadline.c");
    let text = fs::read_to_string(&right).map_err(|error| failed(&right, &error))?;
    let dir = paths::target_dir().join("linux");
    let (file, report) = (dir.join("wrong.c"), dir.join("report.json"));
    let _ = fs::remove_file(&report);
    for (wrong, error) in FAULTS {
        let wrong_text = text.replacen(line, &format!("{line}\n\t{wrong}"), 1);
        fs::write(&file, wrong_text).map_err(|error| failed(&file, &error))?;
        let run = Run::words(blksim, "run mq-deadline-scaling --runtime 2ms --elevator");
        let run = run.arg(&file).arg("--linux").arg(tree(KERNELS[1]));
        let printed = run.arg("--json").arg(&report).printed()?;
        let of_call = "wrong.c: in dispatch_request: ";
        let lines = printed.stderr.lines().count();
        let said = printed.stderr.contains(of_call) && printed.stderr.contains(error);
        if printed.success || lines != 1 || !said || report.exists() {
            let stderr = printed.stderr;
            return Err(Failure(format!(
                "{wrong}: expected {error:?}, not {stderr}"
            )));
        }
        println!("reported: {wrong}");
    }
    Ok(Outcome::Passed)
}

/// Scenarios in which a scheduler's C leads to the same report as the model's and to the same
/// capture if neither a scheduler's own work nor cache lines cost anything: with a scheduler and
/// the price that is 0. Kyber's run costs nothing, as it has several locks in the model and one in
/// C, and ends before a depth is reduced: then it matters which token a request has, and in C the
/// search for a token begins elsewhere.
const ALIKE: [(&str, &str, &str); 4] = [
    (
        "mq-deadline-scaling --runtime 1ms",
        "mq-deadline",
        "container_op",
    ),
    (
        "write-starvation --runtime 400ms",
        "mq-deadline",
        "container_op",
    ),
    ("bfq-startup --runtime 400ms", "bfq", "container_op"),
    (
        "kyber-latency --runtime 400ms --set job.ramp_time=0",
        "kyber",
        "",
    ),
];

/// What reports of runs with one scheduler under two names do not have in common; those of kyber
/// have other locks, and tokens. The model alone explains its decisions.
const OWN: [(&str, &str); 5] = [
    ("/blksim", "options"),
    ("/blksim", "scheduler"),
    ("", "explanations"),
    ("", "locks"),
    ("", "tokens"),
];

fn alike(blksim: &Path) -> Result {
    for (scenario, scheduler, free) in ALIKE {
        let (run, file) = (Alike::new(blksim, scenario, free)?, file_of(scheduler));
        let model = run.with(&["--scheduler", scheduler])?;
        let in_c = run.with(&["--elevator", &file.display().to_string()])?;
        if let Some(what) = model.differs(&in_c) {
            return Err(Failure(format!("{scenario}: {scheduler} in C: {what}")));
        }
        println!("{scenario}: {scheduler} in C decides as the model's does");
    }
    // Batches of one request.
    let (scenario, scheduler, free) = ALIKE[1];
    let text = fs::read_to_string(file_of(scheduler));
    let text = text.map_err(|error| failed(&file_of(scheduler), &error))?;
    let wrong = paths::target_dir().join("linux/wrong.c");
    let text = text.replace("dd->batching < dd->fifo_batch", "dd->batching < 1");
    fs::write(&wrong, text).map_err(|error| failed(&wrong, &error))?;
    let run = Alike::new(blksim, scenario, free)?;
    let wrong = wrong.display().to_string();
    let linux = tree(KERNELS[1]).display().to_string();
    let model = run.with(&["--scheduler", scheduler])?;
    let other = run.with(&["--elevator", &wrong, "--linux", &linux])?;
    match model.differs(&other) {
        Some(what) => println!("found: another scheduler: {what}"),
        None => return Err(Failure("another scheduler decides alike".to_owned())),
    }
    cycles(blksim)
}

fn file_of(scheduler: &str) -> PathBuf {
    let name = match scheduler {
        "mq-deadline" => "mq-deadline.c".to_owned(),
        other => format!("{other}-iosched.c"),
    };
    tree(KERNELS[1]).join("block").join(name)
}

/// Runs of one scenario on a machine with free steps.
struct Alike<'a> {
    blksim: &'a Path,
    scenario: &'a str,
    machine: PathBuf,
}

/// A report, and the bytes of its capture.
struct Recorded {
    report: serde_json::Value,
    capture: Vec<(String, Vec<u8>)>,
}

impl Alike<'_> {
    /// `free`: the price that is 0, or all of them.
    fn new<'a>(blksim: &'a Path, scenario: &'a str, free: &str) -> Result<Alike<'a>> {
        let profile = paths::root().join("crates/sim/profiles/dell-r7525.toml");
        let text = fs::read_to_string(&profile).map_err(|error| failed(&profile, &error))?;
        let mut priced = false;
        let line = |line: &str| {
            if line.starts_with('[') {
                priced = ["[cycles]", "[labels]"].contains(&line);
            }
            match line.split_once(" = ") {
                Some((name, _)) if priced && (free.is_empty() || name == free) => {
                    format!("{name} = 0\n")
                }
                _ => format!("{line}\n"),
            }
        };
        let text: String = text.lines().map(line).collect();
        let machine = paths::target_dir().join("linux/free.toml");
        fs::write(&machine, text).map_err(|error| failed(&machine, &error))?;
        Ok(Alike {
            blksim,
            scenario,
            machine,
        })
    }

    fn with(&self, scheduler: &[&str]) -> Result<Recorded> {
        let folder = paths::target_dir().join("linux/capture");
        let _ = fs::remove_dir_all(&folder);
        let words = format!("run {} --without lines --json - --machine", self.scenario);
        let run = Run::words(self.blksim, &words).arg(&self.machine);
        let run = scheduler.iter().fold(run, Run::arg);
        let text = run.arg("--blktrace").arg(&folder).stdout()?;
        let mut report: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|error| Failure(format!("{}: no JSON: {error}", self.scenario)))?;
        for (part, key) in OWN {
            let part = report
                .pointer_mut(part)
                .and_then(|part| part.as_object_mut());
            part.map(|part| part.remove(key));
        }
        let mut capture = Vec::new();
        for path in paths::files_under(&folder) {
            let name = path.file_name().expect("a file").to_string_lossy();
            if name.contains(".blktrace.") {
                let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
                capture.push((name.into_owned(), bytes));
            }
        }
        capture.sort();
        Ok(Recorded { report, capture })
    }
}

impl Recorded {
    /// The first part in which they differ.
    fn differs(&self, other: &Recorded) -> Option<String> {
        if self.capture.is_empty() {
            return Some("no capture".to_owned());
        }
        let mut files = self.capture.iter().zip(&other.capture);
        if let Some(((name, _), _)) = files.find(|(one, other)| one != other) {
            return Some(format!("the capture differs: {name}"));
        }
        if self.capture.len() != other.capture.len() {
            return Some("the captures have other files".to_owned());
        }
        let parts = [self, other].map(|of| of.report.as_object().cloned().unwrap_or_default());
        let mut keys = parts.iter().flat_map(serde_json::Map::keys);
        let key = keys.find(|key| self.report.get(key) != other.report.get(key));
        key.map(|key| format!("the report differs: {key}"))
    }
}

/// The cycles of mq-deadline itself, within a tenth; and two runs with C are the same bytes.
fn cycles(blksim: &Path) -> Result {
    let run = |elevator: &[&str]| -> Result<(String, f64)> {
        let words = "run mq-deadline-scaling --runtime 20ms --json";
        let mut run = Run::words(blksim, words);
        for word in elevator {
            run = run.arg(word);
        }
        let text = String::from_utf8_lossy(&run.stdout()?).into_owned();
        let report: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| Failure(format!("{words}: no JSON: {error}")))?;
        let parts = report["work"].as_array().cloned().unwrap_or_default();
        let part = parts.iter().find(|part| part["component"] == "scheduler");
        let cycles = part.and_then(|part| part["cycles_per_io"].as_f64());
        let cycles = cycles.ok_or_else(|| Failure(format!("{words}: no cycles")))?;
        Ok((text, cycles))
    };
    let file = tree(KERNELS[1])
        .join("block/mq-deadline.c")
        .display()
        .to_string();
    let (once, ours) = run(&["--elevator", &file])?;
    let (again, _) = run(&["--elevator", &file])?;
    let (_, models) = run(&["--scheduler", "mq-deadline"])?;
    println!("cycles of the scheduler per I/O: {ours:.0} in C, {models:.0} of the model");
    if once != again {
        return Err(Failure("two runs with one C file differ".to_owned()));
    }
    if (ours / models - 1.0).abs() > 0.1 {
        return Err(Failure(format!(
            "{ours:.0} cycles, expected {models:.0} within 10 %"
        )));
    }
    Ok(Outcome::Passed)
}
