//! Captures that contradict themselves: `conform` gives a verdict or an error, never a panic.
//!
//! Seeded and repeatable. A longer run over all captures:
//! `FUZZ_ROUNDS=30 FUZZ_SEED=1 cargo test -p blksim-conform --test conformance fuzz::`
//! (FUZZ_ONLY=dd for those whose names contain it).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use conform::{self, Mode, Options};
use tempfile::TempDir;
use trace::blktrace::{self, Reader, Writer, WriterOptions};
use trace::capture::CaptureDir;
use trace::text::Lines;

/// Captures whose merges, priorities, flushes, shared tags and schedulers differ; enough for the
/// short runs.
const SHORT: [&str; 12] = [
    "bf07-classes",
    "bf11-one",
    "dd05-prio-aging",
    "dd07-merges",
    "dd08-nofront",
    "dd10-bigsizes",
    "dd23-k612-merges",
    "ky01-burst",
    "m4-shared3-mq-deadline",
    "no02-waves",
    "sd-fua-mq-deadline",
    "sd-fua-none",
];

/// Where a change is made, and which: splitmix64.
struct Rng(u64);

impl Rng {
    fn stream(seed: u64, name: &str) -> Rng {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Rng(name.bytes().fold(seed, mix))
    }

    /// A number below `below`, which is not zero.
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn traces(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(name)
}

/// A number below `below`; 0 if there is none.
fn pick(rng: &mut Rng, below: usize) -> usize {
    rng.below(below.max(1) as u64) as usize
}

/// Lines of a file, unpacked.
fn lines_of(path: &Path) -> Vec<String> {
    let mut lines = Lines::open(path).unwrap();
    let mut all = Vec::new();
    while lines.advance().unwrap() {
        all.push(lines.line().to_owned());
    }
    all
}

/// Drops, doubles, moves or alters some entries of a list, mostly near each other.
fn mutate<T: Clone>(rng: &mut Rng, list: &mut Vec<T>, alter: impl Fn(&mut Rng, &mut T, &T)) {
    for _ in 0..=pick(rng, 4) {
        if list.is_empty() {
            return;
        }
        let at = pick(rng, list.len());
        let near = match pick(rng, 3) {
            0 => pick(rng, list.len()),
            _ => (at + 1 + pick(rng, 8)).min(list.len() - 1),
        };
        match pick(rng, 6) {
            0 => {
                list.remove(at);
            }
            1 => {
                let double = list[at].clone();
                list.insert(near, double);
            }
            2 => list.swap(at, near),
            _ => {
                let other = list[near].clone();
                alter(rng, &mut list[at], &other);
            }
        }
    }
}

/// Alters one number of a line: another line's at the same place, a neighbour, an extreme; or a
/// letter of its operation, or its task.
fn alter_line(rng: &mut Rng, line: &mut String, other: &str) {
    if pick(rng, 4) == 0 {
        for (from, to) in [
            (" R ", " W "),
            (" WS ", " R "),
            (" W ", " D "),
            (" RA ", " FF "),
        ] {
            if line.contains(from) {
                *line = line.replacen(from, to, 1);
                return;
            }
        }
    }
    let words: Vec<&str> = line.split(' ').collect();
    let others: Vec<&str> = other.split(' ').collect();
    let numeric = |word: &str| word.bytes().any(|b| b.is_ascii_digit());
    let numbers: Vec<usize> = (0..words.len()).filter(|&i| numeric(words[i])).collect();
    if numbers.is_empty() {
        return;
    }
    let at = numbers[pick(rng, numbers.len())];
    let word = words[at];
    let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let (head, tail) = word.split_at(digits);
    let end = tail
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(tail.len());
    let (number, rest) = tail.split_at(end);
    let value: u64 = number.parse().unwrap_or(0);
    let changed = match pick(rng, 6) {
        0 => value.wrapping_add(8).to_string(),
        1 => value.saturating_sub(8).to_string(),
        2 => ["0", "1", "4294967295", "18446744073709551615"][pick(rng, 4)].to_owned(),
        3 => (value / 2).to_string(),
        _ => others.get(at).map_or_else(String::new, |&word| {
            word.trim_start_matches(|c: char| !c.is_ascii_digit())
                .to_owned()
        }),
    };
    let changed = format!("{head}{changed}{rest}");
    let mut words: Vec<&str> = words.clone();
    words[at] = &changed;
    *line = words.join(" ");
}

/// Alters one field of an event; the time stays.
fn alter_event(rng: &mut Rng, event: &mut blktrace::Event, other: &blktrace::Event) {
    match pick(rng, 12) {
        0 => event.sector = event.sector.wrapping_add(8),
        1 => event.sector = other.sector,
        2 => event.sector = [0, 8, u64::MAX, u64::MAX - 7, 1 << 62][pick(rng, 5)],
        3 => event.bytes = other.bytes,
        4 => event.bytes = [0, 512, 1 << 20, u32::MAX][pick(rng, 4)],
        5 => event.bytes = event.bytes.wrapping_add(4096),
        6 => event.categories.0 ^= 1 << pick(rng, 16),
        7 => event.categories = other.categories,
        8 => event.pid = other.pid,
        9 => event.action = other.action,
        10 => event.extra = [0, 1, 2, u64::MAX][pick(rng, 4)],
        _ => {
            let (time, cpu) = (event.time, event.cpu);
            *event = *other;
            (event.time, event.cpu) = (time, cpu);
        }
    }
}

/// An event, and the text of a message.
type Record = (blktrace::Event, Option<Vec<u8>>);

/// The same of a record; of a message a letter more often.
fn alter_record(rng: &mut Rng, record: &mut Record, other: &Record) {
    match &mut record.1 {
        Some(text) if !text.is_empty() && pick(rng, 3) > 0 => {
            let at = pick(rng, text.len());
            text[at] = b"0129 -:Sx\xff"[pick(rng, 10)];
        }
        _ => alter_event(rng, &mut record.0, &other.0),
    }
}

/// The changed part of a capture, in memory.
struct Source {
    name: String,
    dir: CaptureDir,
    ftrace: Option<Vec<String>>,
    /// Events and task names of each device.
    blktrace: BTreeMap<String, (Vec<Record>, BTreeMap<u32, String>)>,
}

impl Source {
    fn read(name: &str) -> Source {
        let dir = CaptureDir::open(&traces(name)).unwrap();
        let mut blktrace = BTreeMap::new();
        for device in &dir.devices {
            let files: Vec<&PathBuf> = device.blktrace.values().collect();
            let mut reader = Reader::open(&files, blktrace::Options::default()).unwrap();
            let (mut events, mut names) = (Vec::new(), BTreeMap::new());
            while let Some(event) = reader.next().unwrap() {
                if let Some(name) = reader.process_name(event.pid) {
                    names.insert(event.pid, name.to_owned());
                }
                let is_message = event.action == blktrace::Action::Message;
                events.push((event, is_message.then(|| reader.pdu().to_vec())));
            }
            blktrace.insert(device.name.clone(), (events, names));
        }
        Source {
            name: name.to_owned(),
            ftrace: dir.files.get("ftrace.txt").map(|path| lines_of(path)),
            blktrace,
            dir,
        }
    }

    /// A scheduler has written messages into it.
    fn has_log(&self) -> bool {
        let mut all = self.blktrace.values().flat_map(|(events, _)| events);
        all.any(|(_, text)| text.is_some())
    }

    /// The capture with another ftrace.txt.
    fn with_changed_lines(&self, rng: &mut Rng, to: &TempDir) -> Option<CaptureDir> {
        let mut lines = self.ftrace.clone()?;
        mutate(rng, &mut lines, |rng, line, other| {
            alter_line(rng, line, other);
        });
        let mut dir = self.dir.clone();
        let file = to.path().join("ftrace.txt");
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        dir.files.insert("ftrace.txt".to_owned(), file);
        Some(dir)
    }

    /// The capture with other records.
    fn with_changed_records(&self, rng: &mut Rng, to: &TempDir) -> CaptureDir {
        let mut dir = self.dir.clone();
        let at = pick(rng, dir.devices.len());
        let device = &mut dir.devices[at];
        let (events, names) = &self.blktrace[&device.name];
        let mut events = events.clone();
        let times: Vec<_> = events.iter().map(|(e, _)| e.time).collect();
        mutate(rng, &mut events, alter_record);
        // Moved or doubled events take the time of their new place.
        for (index, (event, _)) in events.iter_mut().enumerate() {
            event.time = times[index.min(times.len() - 1)];
        }
        let number = self.blktrace[&device.name].0[0].0.device;
        let cpus = u32::from(self.dir.meta.cpus);
        let options = WriterOptions::default();
        let mut writer = Writer::create(to.path(), &device.name, number, cpus, options).unwrap();
        for (pid, name) in names {
            writer.name_process(*pid, name);
        }
        for (event, text) in &events {
            match text {
                Some(text) => writer.write_with(event, Some(1), text).unwrap(),
                None => writer.write(event).unwrap(),
            }
        }
        writer.finish().unwrap();
        device.blktrace = (0..self.dir.meta.cpus)
            .map(|cpu| {
                (
                    cpu,
                    to.path().join(format!("{}.blktrace.{cpu}", device.name)),
                )
            })
            .filter(|(_, file)| file.exists())
            .collect();
        dir
    }

    /// The capture with other settings, if they can be read at all.
    fn with_changed_settings(&self, rng: &mut Rng, to: &TempDir) -> Option<CaptureDir> {
        let mut dir = self.dir.clone();
        let mut lines = lines_of(&self.dir.files["queue.txt"]);
        mutate(rng, &mut lines, |rng, line, other| {
            alter_line(rng, line, other);
        });
        let file = to.path().join("queue.txt");
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        dir.before = trace::queue_txt::QueueTxt::open(&file).ok()?;
        Some(dir)
    }
}

/// How often each end was reached, with an example of each panic.
#[derive(Debug, Default)]
struct Ends {
    verdicts: u32,
    errors: u32,
    unreadable: u32,
    panics: BTreeMap<String, (u32, String)>,
}

impl Ends {
    fn run(&mut self, source: &Source, seed: u64, mode: Mode, kind: usize) {
        let to = tempfile::tempdir().unwrap();
        let mut rng = Rng::stream(seed, &format!("{}/{kind}", source.name));
        let dir = match kind {
            0 => source.with_changed_lines(&mut rng, &to),
            1 => Some(source.with_changed_records(&mut rng, &to)),
            _ => source.with_changed_settings(&mut rng, &to),
        };
        let Some(dir) = dir else {
            self.unreadable += 1;
            return;
        };
        let options = Options {
            mode: Some(mode),
            ..Options::default()
        };
        match catch_unwind(AssertUnwindSafe(|| conform::run(&dir, &options))) {
            Ok(Ok(_)) => self.verdicts += 1,
            Ok(Err(error)) => {
                assert!(!error.to_string().contains('\n'), "one line: {error}");
                self.errors += 1;
            }
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
                let place = PLACE.with(RefCell::take);
                let text = format!("{place}: {}", text.unwrap_or_default());
                let kind_of = place.clone();
                let example = format!("{} seed {seed} kind {kind} {mode:?}: {text}", source.name);
                self.panics.entry(kind_of).or_insert((0, example)).0 += 1;
            }
        }
    }

    fn add(&mut self, other: Ends) {
        self.verdicts += other.verdicts;
        self.errors += other.errors;
        self.unreadable += other.unreadable;
        for (place, (count, example)) in other.panics {
            self.panics.entry(place).or_insert((0, example)).0 += count;
        }
    }

    fn assert_clean(&self) {
        let mut text = String::new();
        for (count, example) in self.panics.values() {
            text.push_str(&format!("{count} times: {example}\n"));
        }
        drop(std::panic::take_hook());
        assert!(self.panics.is_empty(), "{text}");
        assert!(self.verdicts > 0, "nothing was compared: {self:?}");
        assert!(self.errors > 0, "nothing was refused: {self:?}");
    }
}

thread_local! {
    /// Where the latest panic of this thread was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics are counted, not shown as they come.
fn keep_places() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        PLACE.with(|kept| *kept.borrow_mut() = place.unwrap_or_default());
    }));
}

/// All of these captures, on two threads.
fn rounds(names: &[String], first: u64, count: u64) -> Ends {
    keep_places();
    let (one, other) = names.split_at(names.len() / 2);
    let (mut ends, more) = std::thread::scope(|scope| {
        let more = scope.spawn(|| rounds_of(other, first, count));
        (
            rounds_of(one, first, count),
            more.join().expect("panics are counted"),
        )
    });
    ends.add(more);
    ends
}

fn rounds_of(names: &[String], first: u64, count: u64) -> Ends {
    let mut ends = Ends::default();
    for name in names {
        let source = Source::read(name);
        // Every line of a log is compared: fewer rounds cost as much.
        let count = if source.has_log() {
            count.div_ceil(3)
        } else {
            count
        };
        for seed in first..first + count {
            // Lines decide nothing but priorities in mode records, records nothing in mode calls.
            ends.run(&source, seed, Mode::Calls, 0);
            ends.run(&source, seed, Mode::Records, 0);
            ends.run(&source, seed, Mode::Records, 1);
            ends.run(&source, seed, Mode::Calls, 2);
            ends.run(&source, seed, Mode::Records, 2);
            if source.has_log() {
                ends.run(&source, seed, Mode::Log, 0);
                ends.run(&source, seed, Mode::Log, 1);
                ends.run(&source, seed, Mode::Log, 2);
            }
        }
    }
    ends
}

/// With FUZZ_ROUNDS the captures of every scheduler that is modelled take part, and FUZZ_SEED is
/// the first seed.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn captures_that_contradict_themselves_are_no_panic() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let long = std::env::var_os("FUZZ_ROUNDS").is_some();
    let only = std::env::var("FUZZ_ONLY").unwrap_or_default();
    let mut names: Vec<String> = fs::read_dir(traces(""))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| long || SHORT.contains(&name.as_str()))
        .filter(|name| name.contains(only.as_str()))
        .collect();
    names.sort();
    let (first, count) = (number("FUZZ_SEED", 1), number("FUZZ_ROUNDS", 2));
    println!("seeds {first} to {}", first + count - 1);
    let ends = rounds(&names, first, count);
    println!(
        "{} verdicts, {} errors, {} not readable",
        ends.verdicts, ends.errors, ends.unreadable
    );
    ends.assert_clean();
}
