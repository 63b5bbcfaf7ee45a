//! Generated jobs under fio 3.33 (engine `null`) and here: the same I/Os, in the same order.
//!
//! fio's I/Os are those of its write_iolog, ours those that the queues record (Q). What is not the
//! same on purpose has a name in `trace::fio::DIFFERENCES`, and a weaker comparison here. Without
//! this version of fio the comparison is skipped with a line that says so; without any, it fails
//! where CI=true.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use blkmq::env::TraceAction;
use blkmq::request::Op;
use scenario::{ProfileFacts, Scenario, profile};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::rng::Rng;
use trace::fio::DIFFERENCES;

/// Jobs of each family.
const EACH: usize = 30;
/// The version that is compared with.
const VERSION: &str = "fio-3.33";

/// A comparison of beginnings needs so many I/Os.
const FEW: usize = 20;

/// One I/O: file, direction, first byte, bytes.
type Io = (usize, char, u64, u64);

/// What must be the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Same {
    /// All I/Os in order.
    Sequence,
    /// All I/Os in order, as far as both got: a runtime ends the job.
    Beginning,
    /// Of each direction the beginning; how many I/Os there are.
    Directions,
    /// All I/Os, in any order.
    Blocks,
    /// How many I/Os there are, and their bytes.
    Counts,
    /// Bytes; the number of I/Os within 30 % and 8.
    Bytes,
    /// The number of I/Os within 30 % and 8.
    About,
}

#[derive(Clone, Debug)]
struct Job {
    options: Vec<String>,
    files: usize,
    same: Same,
}

impl Same {
    /// The difference on purpose for which no more is compared.
    fn difference(self) -> Option<&'static str> {
        match self {
            Same::Sequence | Same::Beginning => None,
            Same::Directions => Some("mix"),
            Same::Blocks | Same::Counts => Some("random positions"),
            Same::Bytes | Same::About => Some("lengths"),
        }
    }
}

/// Chooses options.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn often(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Blocks of so many bytes, and a rest.
    fn size(&mut self, block: u64, blocks: u64) -> u64 {
        let rest = self.one(&[0, 0, 512, 1, 700, 2048]);
        block * (1 + self.below(blocks)) + rest % block
    }
}

fn jobs() -> Vec<Job> {
    let mut draw = Draw(Rng::stream(53, "jobs"));
    let families: [fn(&mut Draw) -> Job; 13] = [
        sequential,
        several_files,
        trimmed,
        ranges,
        mixed,
        shuffled,
        shuffled_lengths,
        drawn,
        partly_random,
        timed,
        verified,
        strided,
        looped,
    ];
    let each = |family: fn(&mut Draw) -> Job| (0..EACH).map(move |_| family);
    families
        .into_iter()
        .flat_map(each)
        .map(|family| family(&mut draw))
        .collect()
}

fn job(files: usize, same: Same, options: Vec<String>) -> Job {
    Job {
        options,
        files,
        same,
    }
}

macro_rules! options {
    ($($text:literal),* $(,)?) => { vec![$(format!($text)),*] };
}

/// One direction, one file, blocks of one size: gaps, offsets, ends.
fn sequential(draw: &mut Draw) -> Job {
    let rw = draw.one(&["read", "write", "trim"]);
    let bs = draw.one(&[512, 1024, 4096, 12_288, 65_536]);
    let mut size = draw.size(bs, 40);
    let mut options = options!["bs={bs}"];
    let gap = match draw.below(4) {
        0 | 1 => 0,
        2 => (bs.div_ceil(1024) * 512 * (1 + draw.below(5))).cast_signed(),
        _ => -(bs * (1 + draw.below(4))).cast_signed(),
    };
    if gap < 0 {
        size -= size % 512;
    }
    options.push(match gap {
        0 => format!("rw={rw}"),
        gap => format!("rw={rw}:{gap}"),
    });
    options.extend(options!["size={size}"]);
    if draw.often() {
        let offset = 4096 * (1 + draw.below(40));
        options.extend(options!["offset={offset}"]);
    }
    match draw.below(4) {
        0 => {
            let bytes = bs + draw.below(3 * size) / 512 * 512;
            options.extend(options!["io_size={bytes}"]);
        }
        1 => {
            let percent = 20 + draw.below(81);
            options.extend(options!["io_size={percent}%"]);
        }
        _ => {}
    }
    if draw.below(3) == 0 {
        let ios = 1 + draw.below(60);
        options.extend(options!["number_ios={ios}"]);
    }
    job(1, Same::Sequence, options)
}

fn several_files(draw: &mut Draw) -> Job {
    let rw = draw.one(&["read", "write"]);
    let files = 2 + draw.below(2);
    let bs = draw.one(&[1024, 4096]);
    let size = files * bs + draw.size(bs, 60);
    let service = match draw.below(3) {
        0 => "sequential".to_owned(),
        1 => "roundrobin".to_owned(),
        _ => format!("roundrobin:{}", 2 + draw.below(4)),
    };
    let mut options = options![
        "rw={rw}",
        "bs={bs}",
        "size={size}",
        "file_service_type={service}"
    ];
    if draw.below(3) == 0 {
        let bytes = size + draw.below(2 * size);
        options.extend(options!["io_size={bytes}"]);
    }
    job(files as usize, Same::Sequence, options)
}

fn trimmed(draw: &mut Draw) -> Job {
    let bs = draw.one(&[512, 4096]);
    let random = draw.often();
    let size = if random {
        bs * (1 + draw.below(60))
    } else {
        draw.size(bs, 60)
    };
    let (rw, same) = match random {
        true => ("randtrimwrite", Same::Blocks),
        false => ("trimwrite", Same::Sequence),
    };
    let mut options = options!["rw={rw}", "bs={bs}", "size={size}"];
    if !random && draw.often() {
        let ios = 1 + draw.below(40);
        options.extend(options!["number_ios={ios}"]);
    }
    job(1, same, options)
}

/// Sequential I/Os of several lengths fill the region.
fn ranges(draw: &mut Draw) -> Job {
    let rw = draw.one(&["read", "write"]);
    let size = draw.size(1024, 2000) + 400_000;
    // The rest at the end depends on the lengths if these are no multiples of the smallest.
    let (lengths, same) = draw.one(&[
        ("bsrange=1k-16k", Same::Bytes),
        ("bsrange=4k-10k", Same::About),
        ("bssplit=1k/30:4k/50:8k/20", Same::Bytes),
        ("bsrange=2k-2k", Same::Bytes),
    ]);
    job(1, same, options!["rw={rw}", "size={size}", "{lengths}"])
}

fn mixed(draw: &mut Draw) -> Job {
    let bs = draw.one(&[512, 4096]);
    let size = draw.size(bs, 200) + 40 * bs;
    let reads = draw.one(&[30, 50, 70]);
    let mut options = options!["rw=rw", "bs={bs}", "size={size}", "rwmixread={reads}"];
    if draw.often() {
        let offset = 4096 * draw.below(40);
        options.extend(options!["offset={offset}"]);
    }
    if draw.often() {
        let ios = 1 + draw.below(100);
        options.extend(options!["number_ios={ios}"]);
    }
    job(1, Same::Directions, options)
}

/// Random positions with a map: each block once, and again in further rounds.
fn shuffled(draw: &mut Draw) -> Job {
    let rw = draw.one(&["randread", "randwrite", "randtrim", "randrw"]);
    let bs = draw.one(&[512, 4096, 12_288]);
    let blocks = 1 + draw.below(200);
    let size = bs * blocks;
    let mut options = options!["rw={rw}", "bs={bs}", "size={size}"];
    if draw.often() {
        let offset = 4096 * draw.below(40);
        options.extend(options!["offset={offset}"]);
    }
    let same = match draw.below(3) {
        0 => {
            let bytes = size + draw.below(2 * size);
            options.extend(options!["io_size={bytes}"]);
            Same::Counts
        }
        1 => {
            let ios = 1 + draw.below(2 * blocks);
            options.extend(options!["number_ios={ios}"]);
            Same::Counts
        }
        _ if rw == "randrw" => Same::Counts,
        _ => Same::Blocks,
    };
    job(1, same, options)
}

fn shuffled_lengths(draw: &mut Draw) -> Job {
    let size = 1_048_576 * (2 + draw.below(5));
    let (lengths, same) = draw.one(&[
        ("bsrange=1k-16k", Same::Bytes),
        ("bsrange=4k-32k", Same::Bytes),
        ("bssplit=2k/30:4k/50:16k/20", Same::Bytes),
        ("bs=4k,8k", Same::About),
    ]);
    let rw = draw.one(&["randread", "randwrite"]);
    let mut options = options!["size={size}", "{lengths}"];
    // Later, such a job ends by chance: when it draws a write and only reads are left.
    match same {
        Same::About => options.extend(options!["rw=randrw", "number_ios=100"]),
        _ => options.extend(options!["rw={rw}"]),
    }
    job(1, same, options)
}

/// Random positions without a map.
fn drawn(draw: &mut Draw) -> Job {
    let bs = draw.one(&[512, 4096]);
    let mut size = draw.size(bs, 300) + 30 * bs;
    let way = draw.one(&[
        "norandommap",
        "random_distribution=zipf:1.2",
        "random_distribution=pareto:0.2",
        "random_distribution=normal:20",
        "random_distribution=zoned:60/10:30/20:10/70",
    ]);
    if way.contains("random_distribution") {
        // A difference on purpose: "rest".
        size -= size % bs;
    }
    let rw = draw.one(&["randread", "randwrite"]);
    let mut options = options!["rw={rw}", "bs={bs}", "size={size}", "{way}"];
    if draw.often() {
        let bytes = bs + draw.below(3 * size);
        options.extend(options!["io_size={bytes}"]);
    }
    job(1, Same::Counts, options)
}

fn partly_random(draw: &mut Draw) -> Job {
    let size = 4096 * (20 + draw.below(200));
    let way = match draw.below(3) {
        0 => {
            let percent = draw.below(101);
            options!["rw=randread", "percentage_random={percent}"]
        }
        1 => {
            let every = 2 + draw.below(6);
            options!["rw=randread:{every}"]
        }
        _ => {
            let every = 2 + draw.below(6);
            options!["rw=randread:{every}", "rw_sequencer=identical"]
        }
    };
    let mut options = options!["bs=4k", "size={size}"];
    options.extend(way);
    job(1, Same::Counts, options)
}

/// Reads of what was written: after each round, or some of them between the writes.
fn verified(draw: &mut Draw) -> Job {
    let bs = draw.one(&[512, 4096]);
    let files = 1 + draw.below(2);
    let (rw, same) = draw.one(&[
        ("write", Same::Sequence),
        ("write:4k", Same::Sequence),
        ("write:-8k", Same::Sequence),
        ("randwrite", Same::Blocks),
        ("randwrite:3", Same::Blocks),
    ]);
    let files = if rw.contains(":4k") || rw.contains(":-8k") {
        1
    } else {
        files
    };
    let size = files * bs * (4 + draw.below(40));
    let mut options = options!["rw={rw}", "bs={bs}", "size={size}", "verify=null"];
    if draw.below(4) == 0 {
        let offset = 4096 * draw.below(40);
        options.extend(options!["offset={offset}"]);
    }
    if draw.often() {
        let backlog = 1 + draw.below(12);
        options.extend(options!["verify_backlog={backlog}"]);
        if draw.often() {
            let batch = 1 + draw.below(12);
            options.extend(options!["verify_backlog_batch={batch}"]);
        }
    }
    let mut same = same;
    match draw.below(6) {
        0 => options.extend(options!["do_verify=0"]),
        1 => options.extend(options!["loops=2"]),
        2 => {
            let ios = 1 + draw.below(60);
            options.extend(options!["number_ios={ios}"]);
            same = if rw.starts_with("rand") {
                Same::Counts
            } else {
                same
            };
        }
        3 => {
            let bytes = size + draw.below(2 * size) / bs * bs;
            options.extend(options!["io_size={bytes}"]);
            same = if rw.starts_with("rand") {
                Same::Counts
            } else {
                same
            };
        }
        _ => {}
    }
    if rw == "randwrite:3" {
        same = Same::Counts;
    }
    job(files as usize, same, options)
}

/// I/Os stay in a zone, then go to the next one.
fn strided(draw: &mut Draw) -> Job {
    let bs = draw.one(&[512, 4096]);
    let range = bs * (1 + draw.below(8));
    let skip = bs * draw.below(6);
    let share = match draw.below(3) {
        0 => range,
        1 => bs * (1 + draw.below(20)),
        _ => 1 + draw.below(20 * bs),
    };
    let random = draw.below(3) == 0;
    let files = 1 + draw.below(2);
    let (rw, same) = match random {
        // Which of the last zone's blocks are in the region is known if all of them are.
        true => ("randread", Same::Counts),
        false => {
            let rw = draw.one(&["read", "write", "trim", "read:4k", "write:-8k"]);
            (rw, Same::Sequence)
        }
    };
    let size = match random {
        true => files * (range + skip) * (2 + draw.below(8)),
        false => files * draw.size(bs, 90),
    };
    let size = size - size % (512 * files);
    let mut options = options![
        "rw={rw}",
        "bs={bs}",
        "size={size}",
        "zonesize={share}",
        "zoneskip={skip}",
        "zonemode=strided"
    ];
    if share != range || draw.often() {
        options.extend(options!["zonerange={range}"]);
    }
    if draw.below(3) == 0 {
        let offset = 4096 * (1 + draw.below(40));
        options.extend(options!["offset={offset}"]);
    }
    match draw.below(4) {
        0 => {
            let bytes = (bs + draw.below(3 * size)).next_multiple_of(512);
            options.extend(options!["io_size={bytes}"]);
        }
        1 => {
            let ios = 1 + draw.below(60);
            options.extend(options!["number_ios={ios}"]);
        }
        _ => {}
    }
    job(files as usize, same, options)
}

/// Rounds of jobs that a number of I/Os or bytes ends.
fn looped(draw: &mut Draw) -> Job {
    let rw = draw.one(&["read", "write", "read:4k", "write:-8k", "randread"]);
    let bs = draw.one(&[512, 4096]);
    let files = if rw == "read" { 1 + draw.below(2) } else { 1 };
    let size = files * bs * (2 + draw.below(30));
    let loops = 2 + draw.below(4);
    let mut options = options!["rw={rw}", "bs={bs}", "size={size}", "loops={loops}"];
    if draw.often() {
        let ios = 1 + draw.below(60);
        options.extend(options!["number_ios={ios}"]);
    }
    if draw.often() {
        let bytes = (bs + draw.below(2 * size)).next_multiple_of(512);
        options.extend(options!["io_size={bytes}"]);
    }
    let same = match rw {
        "randread" => Same::Counts,
        _ => Same::Sequence,
    };
    job(files as usize, same, options)
}

/// A runtime ends these: what they do at the end of the region.
fn timed(draw: &mut Draw) -> Job {
    let rw = draw.one(&["read", "write"]);
    let files = 1 + draw.below(2);
    let bs = 4096;
    let size = files * bs + draw.size(bs, 12);
    let gap = draw.one(&["", ":4k", ":12k", ":-8k"]);
    let size = if gap == ":-8k" {
        size - size % (512 * files)
    } else {
        size
    };
    let mut options = options!["rw={rw}{gap}", "bs={bs}", "size={size}"];
    options.extend(options![
        "time_based",
        "runtime=1",
        "rate_iops=60",
        "number_ios=7"
    ]);
    if draw.often() {
        options.extend(options!["offset=16k"]);
    }
    job(files as usize, Same::Beginning, options)
}

/// The version of fio that is compared with is there. If not, it prints that.
pub(super) fn is_fio_here() -> bool {
    let version = Command::new("fio").arg("--version").output().ok();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    if version.as_deref() != Some(VERSION) {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(version.is_some() || !ci, "fio is missing");
        println!("skipped: {VERSION} is wanted, there is {version:?}");
    }
    version.as_deref() == Some(VERSION)
}

/// I/Os of all jobs under fio; `None` without that version of it.
fn by_fio(jobs: &[Job]) -> Option<Vec<Vec<Io>>> {
    if !is_fio_here() {
        return None;
    }
    let (timed, others): (Vec<_>, Vec<_>) =
        (0..jobs.len()).partition(|number| jobs[*number].same == Same::Beginning);
    let mut all = vec![Vec::new(); jobs.len()];
    let mut keep = |numbers: &[usize]| {
        let ran = ran_by_fio(jobs, numbers);
        let enough = ran.iter().all(|ios| ios.len() >= FEW);
        for (number, ios) in numbers.iter().zip(ran) {
            all[*number] = ios;
        }
        enough
    };
    keep(&others);
    // A busy machine may give some of these no time.
    let _ = (0..5).any(|_| keep(&timed));
    Some(all)
}

/// I/Os of the jobs with these numbers, all at once.
fn ran_by_fio(jobs: &[Job], numbers: &[usize]) -> Vec<Vec<Io>> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut text = "[global]\nioengine=null\ndirect=1\nthread\n".to_owned();
    for &number in numbers {
        let job = &jobs[number];
        let names: Vec<String> = (0..job.files).map(|file| format!("f{file}")).collect();
        let (names, options) = (names.join(":"), job.options.join("\n"));
        write!(
            text,
            "[j{number}]\nfilename={names}\n{options}\nwrite_iolog=log{number}\n"
        )
        .expect("a string");
    }
    let file = place.path().join("all.fio");
    std::fs::write(&file, text).expect("a file");
    let ran = Command::new("fio")
        .args([
            "--eta=never",
            "--output-format=json",
            "--output=all.json",
            "all.fio",
        ])
        .current_dir(place.path())
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "fio: {said}");
    let json = std::fs::read_to_string(place.path().join("all.json")).expect("a report");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let of = |(place_of, number): (usize, &usize)| {
        let ios = logged(&place.path().join(format!("log{number}")));
        let report = &json["jobs"][place_of];
        let total = |key: &str| {
            let each = ["read", "write", "trim"].map(|way| report[way][key].as_u64());
            each.into_iter().flatten().sum::<u64>()
        };
        assert_eq!(total("total_ios"), ios.len() as u64, "{report}");
        ios
    };
    numbers.iter().enumerate().map(of).collect()
}

fn logged(file: &Path) -> Vec<Io> {
    let text = std::fs::read_to_string(file).expect("a log");
    let mut ios = Vec::new();
    for line in text.lines() {
        if let [_, file, action @ ("read" | "write" | "trim"), first, bytes] =
            line.split(' ').collect::<Vec<_>>()[..]
        {
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let file = number(file.trim_start_matches('f')) as usize;
            let way = action.chars().next().expect("a letter");
            ios.push((file, way, number(first), number(bytes)));
        }
    }
    ios
}

fn plan(job: &Job, profile: &MachineProfile) -> Plan {
    let names: Vec<String> = (0..job.files)
        .map(|file| format!("/dev/nullb{file}"))
        .collect();
    let (names, options) = (names.join(":"), job.options.join("\n"));
    let text = format!("[j]\ndirect=1\nfilename={names}\n{options}\n");
    let device = "null_blk,nr_devices=3,memory_backed=1,discard=1,gb=1,irqmode=0";
    let scenario = Scenario::from_fio(Path::new("j.fio"), &text);
    let scenario = scenario.and_then(|scenario| scenario.set_device(device));
    let facts = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    let plan = scenario.and_then(|scenario| scenario.plan(&[facts]));
    plan.unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// I/Os of a plan as its queues record them, which the report counts.
fn here(plan: &Plan, profile: &MachineProfile) -> Vec<Io> {
    let mut simulator = Simulator::new(plan, profile).expect("a machine");
    simulator.trace();
    let outcome = simulator.run(|_| true);
    assert!(matches!(outcome, Outcome::Finished));
    simulator.settle();
    let points = simulator.take_trace().into_iter().map(|(.., point)| point);
    let queued = points.filter(|point| point.action == TraceAction::Queue);
    let ios: Vec<Io> = queued
        .map(|point| {
            let way = match point.op {
                Op::Read => 'r',
                Op::Discard => 't',
                _ => 'w',
            };
            let bytes = u64::from(point.sectors.0) * 512;
            (point.queue.index(), way, point.sector.0 * 512, bytes)
        })
        .collect();
    let counted = simulator.recorder().jobs[0].directions.iter();
    let counted = counted.map(|way| (way.ios, way.bytes));
    let (count, bytes) = counted.fold((0, 0), |sum, way| (sum.0 + way.0, sum.1 + way.1));
    assert_eq!((count, bytes), (ios.len() as u64, sum(&ios)), "counted");
    ios
}

fn sum(ios: &[Io]) -> u64 {
    ios.iter().map(|io| io.3).sum()
}

/// How two runs of a job differ.
fn difference(job: &Job, theirs: &[Io], ours: &[Io]) -> Option<String> {
    let counts = (theirs.len(), ours.len());
    let alike = counts.0.min(counts.1);
    let close = counts.0.abs_diff(counts.1) <= 8 + counts.0 * 3 / 10;
    let bytes = (sum(theirs), sum(ours));
    let starts_alike = |theirs: &[Io], ours: &[Io]| {
        let pairs = theirs.iter().zip(ours).enumerate();
        let wrong = pairs.into_iter().find(|(_, (theirs, ours))| theirs != ours);
        wrong.map(|(at, (theirs, ours))| format!("I/O {at}: fio {theirs:?}, here {ours:?}"))
    };
    let of = |way: char, ios: &[Io]| -> Vec<Io> {
        ios.iter().copied().filter(|io| io.1 == way).collect()
    };
    let sorted = |ios: &[Io]| {
        let mut ios = ios.to_vec();
        ios.sort_unstable();
        ios
    };
    let exact = (counts.0 != counts.1 || bytes.0 != bytes.1)
        .then(|| format!("I/Os {counts:?}, bytes {bytes:?}"));
    match job.same {
        Same::Sequence => starts_alike(theirs, ours).or(exact),
        Same::Beginning if alike < FEW => Some(format!("only {counts:?} I/Os")),
        Same::Beginning => starts_alike(theirs, ours),
        Same::Directions => {
            let each = ['r', 'w'].map(|way| starts_alike(&of(way, theirs), &of(way, ours)));
            each.into_iter().flatten().next().or(exact)
        }
        Same::Blocks => starts_alike(&sorted(theirs), &sorted(ours)).or(exact),
        Same::Counts => exact,
        Same::Bytes if bytes.0 != bytes.1 => Some(format!("bytes {bytes:?}")),
        Same::Bytes | Same::About => (!close).then(|| format!("I/Os {counts:?}")),
    }
}

#[test]
fn jobs_do_what_fio_does() {
    let profile = profile::built_in("ryzen-7950x").expect("a built-in profile");
    let jobs = jobs();
    let Some(theirs) = by_fio(&jobs) else {
        return;
    };
    let (mut wrong, mut compared) = (Vec::new(), BTreeMap::new());
    let (mut tried, mut caught) = (0, 0);
    for (job, theirs) in jobs.iter().zip(&theirs) {
        let mut plan = plan(job, &profile);
        let ours = here(&plan, &profile);
        if let Some(what) = difference(job, theirs, &ours) {
            wrong.push(format!("{:?} {}: {what}", job.same, job.options.join(" ")));
        }
        if let Some(name) = job.same.difference() {
            let listed = DIFFERENCES.iter().any(|(known, _)| *known == name);
            assert!(listed, "{name} is not among the differences");
        }
        *compared.entry(format!("{:?}", job.same)).or_insert(0) += 1;
        // The comparison sees an end that comes too early: a region that is a block shorter, and a
        // count that is less by one.
        let thread = &mut plan.threads[0];
        let block = u64::from(thread.block.read.min_sectors);
        let file = &mut thread.files[0];
        match job.same {
            _ if thread.writes.verify.is_some_and(|verify| !verify.after) => continue,
            _ if thread.writes.verify.is_some() => thread.writes.verify = None,
            Same::Beginning if thread.gap_sectors == 0 && file.region_sectors >= 2 * block => {
                file.region_sectors -= block;
            }
            Same::Sequence | Same::Counts if ours.len() > 1 => {
                thread.number_ios = ours.len() as u64 - 1;
            }
            _ => continue,
        }
        tried += 1;
        caught += usize::from(difference(job, theirs, &here(&plan, &profile)).is_some());
    }
    println!(
        "{} jobs: {compared:?}; {caught} of {tried} mutants caught",
        jobs.len()
    );
    let all = wrong.join("\n");
    assert!(wrong.is_empty(), "{} of {}\n{all}", wrong.len(), jobs.len());
    assert_eq!(caught, tried, "mutants");
    assert!(tried > 4 * EACH, "{tried} mutants");
}
