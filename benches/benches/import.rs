//! Import of a generated blktrace: depth 64, five records an I/O (Q G I D C), page cache warm.
//!
//! Budget: matching D to C takes at most `BUDGET` times what reading and merging the same records
//! takes, side by side in one run. A shared machine cannot promise a bare time.
//! `BLKSIM_IMPORT_MB` sets the size of the trace (default 120).
#![forbid(unsafe_code)]

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blkmq::time::SimTime;
use blksim_benches::{Variant, is_smoke, least_ns};
use sim::rng::Rng;
use trace::blktrace::{Action, Categories, Device, Event, Options, Reader, Writer, WriterOptions};
use trace::matching::{Btt, Io, Latency, Matcher};
use trace::{Analysis, analyze};

/// Of the time of reading and merging.
const BUDGET: f64 = 2.0;
const DEVICE: Device = Device::new(252, 0);
/// Requests waiting, and as many with the driver.
const HALF_DEPTH: usize = 32;
const RECORDS: u64 = 5;
const RECORD_BYTES: u64 = 48;

/// What makes an I/O the same from Q to C.
#[derive(Clone, Copy)]
struct Traced {
    sector: u64,
    bytes: u32,
    direction: Categories,
    cpu: u32,
}

/// Writes events one after the other, some nanoseconds apart.
struct Generator {
    writer: Writer,
    now: u64,
    cpus: u32,
    random: Rng,
}

impl Generator {
    fn put(&mut self, io: Traced, action: Action, family: Categories, cpu: u32) {
        self.now += 100 + self.random.below(1_000);
        let event = Event {
            sector: io.sector,
            bytes: io.bytes,
            categories: io.direction.with(family),
            pid: 1_000 + cpu,
            device: DEVICE,
            cpu,
            ..Event::new(SimTime(self.now), action)
        };
        self.writer
            .write(&event)
            .expect("the temporary directory takes the trace");
    }

    fn submit(&mut self) -> Traced {
        let blocks = 1 + self.random.below(16);
        let io = Traced {
            sector: self.random.below(1 << 28) * 8,
            bytes: blocks as u32 * 4096,
            direction: [Categories::READ, Categories::WRITE][self.random.below(2) as usize],
            cpu: self.random.below(u64::from(self.cpus)) as u32,
        };
        self.put(io, Action::Queue, Categories::QUEUE, io.cpu);
        self.put(io, Action::GetRequest, Categories::QUEUE, io.cpu);
        self.put(
            io,
            Action::Insert,
            Categories::QUEUE.with(Categories::FS),
            io.cpu,
        );
        io
    }
}

/// Writes a trace of `ios` I/Os and returns its directory.
fn generate(dir: &Path, cpus: u32, ios: u64) -> PathBuf {
    let dir = dir.join(format!("cpus{cpus}"));
    std::fs::create_dir_all(&dir).expect("the temporary directory can be written");
    let writer = Writer::create(&dir, "nullb0", DEVICE, cpus, WriterOptions::default());
    let random = Rng::stream(1, "bench/import");
    let mut to = Generator {
        writer: writer.expect("it can be written"),
        now: 0,
        cpus,
        random,
    };
    let (mut waiting, mut issued) = (Vec::new(), Vec::new());
    let mut left = ios;
    while left > 0 || !waiting.is_empty() || !issued.is_empty() {
        if left > 0 && waiting.len() + issued.len() < 2 * HALF_DEPTH {
            left -= 1;
            waiting.push(to.submit());
        } else if issued.len() < HALF_DEPTH && !waiting.is_empty() {
            let io: Traced = waiting.swap_remove(to.random.below(waiting.len() as u64) as usize);
            to.put(
                io,
                Action::Issue,
                Categories::ISSUE.with(Categories::FS),
                io.cpu,
            );
            issued.push(io);
        } else {
            let io: Traced = issued.swap_remove(to.random.below(issued.len() as u64) as usize);
            let family = Categories::COMPLETE.with(Categories::FS);
            to.put(io, Action::Complete, family, io.cpu);
        }
    }
    to.writer.finish().expect("the files can be renamed");
    dir
}

/// The reference: reads all files of the directory in one go each and adds up their words.
fn read_and_sum(dir: &Path) -> u64 {
    let mut buffer = vec![0; 256 << 10];
    let mut sum = 0_u64;
    for entry in std::fs::read_dir(dir).expect("it was generated") {
        let path = entry.expect("it can be read").path();
        let mut file = File::open(path).expect("it can be read");
        loop {
            let count = file.read(&mut buffer).expect("it can be read");
            if count == 0 {
                break;
            }
            for word in buffer[..count].chunks_exact(8) {
                let word = word.try_into().expect("a chunk has eight bytes");
                sum = sum.wrapping_add(u64::from_le_bytes(word));
            }
        }
    }
    sum
}

fn reader(dir: &Path) -> Reader {
    Reader::open(&[dir], Options::default()).expect("it was generated")
}

fn read_only(dir: &Path) -> u64 {
    let mut reader = reader(dir);
    let mut sum = 0;
    while reader.advance().expect("it is not damaged") {
        sum ^= reader.event().sector;
    }
    sum
}

fn matched(dir: &Path) -> Latency {
    let (mut reader, mut matcher) = (reader(dir), Matcher::new());
    let mut d2c = Latency::default();
    while reader.advance().expect("it is not damaged") {
        for io in matcher.add(reader.event()) {
            if let (Some(issued), Some(completed)) = (io.issued, io.completed) {
                d2c.add(completed.since(issued));
            }
        }
    }
    d2c
}

fn analyzed(dir: &Path) -> Analysis {
    let each = |_: &Io, _: Option<&str>, _| Ok::<(), trace::Error>(());
    analyze(&[dir], Options::default(), each).expect("it was generated")
}

fn as_btt(dir: &Path) -> Btt {
    let (mut reader, mut btt) = (reader(dir), Btt::new());
    while reader.advance().expect("it is not damaged") {
        btt.add(reader.event());
    }
    btt
}

/// Measures one trace; says whether it was within the budget.
fn measure(dir: &Path, cpus: u32, ios: u64, rounds: u32) -> bool {
    let dir = generate(dir, cpus, ios);
    let stats = analyzed(&dir);
    assert_eq!(stats.events, ios * RECORDS);
    assert_eq!(stats.completed, ios);
    assert_eq!(stats.latencies.d2c.count, ios);
    assert_eq!(matched(&dir), stats.latencies.d2c);
    let ours: (&str, Box<dyn FnMut()>) = (
        "read, merge, match D2C",
        Box::new(|| {
            black_box(matched(&dir));
        }),
    );
    let mut variants: [Variant<'_>; 5] = [
        (
            "read and add up",
            Box::new(|| {
                black_box(read_and_sum(&dir));
            }),
        ),
        ours,
        (
            "read and merge",
            Box::new(|| {
                black_box(read_only(&dir));
            }),
        ),
        (
            "as btt defines it",
            Box::new(|| {
                black_box(as_btt(&dir));
            }),
        ),
        (
            "analyze: all of it",
            Box::new(|| {
                black_box(analyzed(&dir));
            }),
        ),
    ];
    let events = u32::try_from(ios * RECORDS).expect("a trace of less than 200 GB");
    let times = least_ns(&mut variants, rounds, events);
    println!(
        "{cpus} CPU file(s), {} MB, {events} events",
        stats.bytes / 1_000_000
    );
    for ((name, _), ns) in variants.iter().zip(&times) {
        let (rate, ratio) = (1e3 / ns, ns / times[2]);
        println!(
            "  {name:<22} {ns:7.2} ns/event {rate:7.1} M events/s  {ratio:5.2} x read and merge"
        );
    }
    times[1] <= BUDGET * times[2]
}

fn main() -> ExitCode {
    let smoke = is_smoke();
    let megabytes = std::env::var("BLKSIM_IMPORT_MB")
        .ok()
        .and_then(|mb| mb.parse().ok());
    let megabytes: u64 = if smoke { 1 } else { megabytes.unwrap_or(120) };
    let ios = megabytes * 1_000_000 / (RECORD_BYTES * RECORDS);
    let dir = std::env::temp_dir().join(format!("blksim-import-{}", std::process::id()));
    let within: Vec<bool> = [1, 4]
        .into_iter()
        .map(|cpus| measure(&dir, cpus, ios, if smoke { 1 } else { 7 }))
        .collect();
    std::fs::remove_dir_all(&dir).expect("it is ours");
    if smoke || within.iter().all(|&within| within) {
        return ExitCode::SUCCESS;
    }
    eprintln!("over budget: more than {BUDGET} times reading and merging");
    ExitCode::FAILURE
}
