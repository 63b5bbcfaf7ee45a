//! Random changes of the samples and of binary records: no panic, a clear error, events in order.
//!
//! FUZZ_SECONDS is the time for all formats together, FUZZ_SEED the first seed, FUZZ_ONLY a word of
//! the sample's name.

use std::collections::BTreeSet;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{SAMPLES, sample};
use blkmq::time::SimTime;
use trace::blktrace::{
    Action, Categories, DeviceChoice, Event, Options, Order, Reader, Version, Writer, WriterOptions,
};

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Numbers and words at the limits of fields.
const WORDS: [&[u8]; 14] = [
    b"0",
    b"-1",
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999999",
    b"9223372036854775807.999999999",
    b"\xff\xfe",
    b"\0",
    b"[",
    b"]",
    b",",
    b"\n",
    b"%",
];

/// Changes bytes or lines anywhere, as damage does.
fn scramble(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = rng.below(bytes.len());
    let end = (at + rng.below(24)).min(bytes.len());
    match rng.below(7) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        1 if at < bytes.len() => bytes[at] = rng.next() as u8,
        2 => drop(bytes.drain(at..end)),
        3 => {
            let part = bytes[at..end].to_vec();
            let to = rng.below(bytes.len());
            bytes.splice(to..to, part);
        }
        4 => {
            let word = WORDS[rng.below(WORDS.len())];
            bytes.splice(at..end, word.iter().copied());
        }
        5 => {
            // A whole line elsewhere: order of times, headers in the middle.
            let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(Into::into).collect();
            let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
            lines.swap(one, other);
            *bytes = lines.join(&b'\n');
        }
        6 if rng.below(8) == 0 => bytes.truncate(at),
        _ => {}
    }
}

/// Gives one field another value that its format may have, so that what follows is read as well:
/// the value of another field, a number near it or one at a limit.
fn replace(rng: &mut Rng, bytes: &mut Vec<u8>, binary: bool) {
    let is_part = |b: &u8| b.is_ascii_alphanumeric();
    let pick = |rng: &mut Rng| {
        let at = rng.below(bytes.len());
        if binary {
            let at = at & !3;
            return at..(at + 4).min(bytes.len());
        }
        let start = bytes[..at].iter().rposition(|b| !is_part(b));
        let end = bytes[at..].iter().position(|b| !is_part(b));
        start.map_or(0, |n| n + 1).min(at)..end.map_or(bytes.len(), |n| at + n)
    };
    let (to, other) = (pick(rng), pick(rng));
    let found = std::str::from_utf8(&bytes[to.clone()]).ok();
    let number = found.and_then(|text| text.parse::<u64>().ok());
    let near = |number: u64, rng: &mut Rng| match rng.below(5) {
        0 => number.wrapping_add(1),
        1 => number.wrapping_sub(1),
        2 => number << rng.below(40),
        3 => rng.next() >> rng.below(64),
        _ => number / 512 * 512,
    };
    let new = match (rng.below(3), number) {
        (0, _) => bytes[other].to_vec(),
        (1, _) if binary => {
            let old = bytes[to.clone()]
                .iter()
                .fold(0, |n, b| n << 8 | u64::from(*b));
            near(old, rng).to_be_bytes()[8 - to.len()..].to_vec()
        }
        (1, Some(number)) => near(number, rng).to_string().into(),
        (2, _) if !binary => WORDS[rng.below(6)].to_vec(),
        _ => return,
    };
    bytes.splice(to, new);
}

/// A good capture: every action, notes, messages, payloads.
fn records(dir: &Path, version: Version, order: Order) -> Vec<u8> {
    let device = trace::blktrace::Device::new(8, 0);
    let options = WriterOptions {
        version,
        order,
        ..WriterOptions::default()
    };
    let mut writer = Writer::create(dir, "sda", device, 1, options).expect("a directory");
    writer.name_process(7, "fio");
    for (n, action) in (0..).zip(Action::ALL.iter().cycle().take(60)) {
        let event = Event {
            sector: n / 4 * 8,
            bytes: 4096,
            extra: n % 3,
            categories: Categories::READ,
            pid: [0, 7][n as usize % 2],
            device,
            ..Event::new(SimTime(1000 * n), *action)
        };
        match action {
            Action::Message => writer.write_with(&event, Some(3), b"text"),
            _ => writer.write(&event),
        }
        .expect("written");
    }
    writer.finish().expect("written");
    std::fs::read(dir.join("sda.blktrace.0")).expect("it was written")
}

/// Reads to the end; the error if there was one. Err: what is wrong with the reading itself.
fn judge(file: &Path, options: Options) -> Result<Option<String>, String> {
    let read = || {
        let mut reader = Reader::open(&[file], options)?;
        let (mut last, mut count, mut back) = (SimTime::ZERO, 0_u64, None);
        while let Some(event) = reader.next()? {
            let step = last.0.saturating_sub(event.time.0);
            back = back.or((step >= 1_000_000).then_some(event.time));
            (last, count) = (event.time, count + 1);
        }
        Ok::<_, trace::Error>((count, back))
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Err(_) => Err("a panic".to_owned()),
        Ok(Ok((_, Some(at)))) => Err(format!("time goes back to {at}")),
        Ok(Ok((count, None))) => match count > 10_000 {
            true => Err(format!("{count} events")),
            false => Ok(None),
        },
        Ok(Err(error)) => {
            let text = error.to_string();
            let named = text.contains(file.to_str().expect("an ASCII path"));
            let short = text.len() < 2000 && !text.contains('\n');
            match named && short {
                true => Ok(Some(text)),
                false => Err(text),
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the time is the test's length")]
fn now() -> Instant {
    Instant::now()
}

/// The samples and binary records, plain and compressed: name, format, bytes.
fn inputs(dir: &Path) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let plain = records(dir, Version::V1, Order::Little);
    let (gz, xz) = (
        super::super::damage::gzip(&plain),
        super::super::damage::xz(&plain),
    );
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&plain).expect("to memory");
    let bz2 = bz2.finish().expect("to memory");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zst = ruzstd::encoding::compress_to_vec(&plain[..], level);
    let mut inputs = vec![
        ("records-1", "blktrace", plain),
        (
            "records-2",
            "blktrace",
            records(dir, Version::V2, Order::Big),
        ),
        ("records.gz", "blktrace", gz),
        ("records.xz", "blktrace", xz),
        ("records.bz2", "blktrace", bz2),
        ("records.zst", "blktrace", zst),
    ];
    for (name, format) in SAMPLES {
        inputs.push((name, format, std::fs::read(sample(name)).expect("a sample")));
    }
    inputs
}

/// Where an error leads: its text without what it found.
fn kind(error: &str, file: &Path) -> String {
    let text = error.replace(file.to_str().expect("an ASCII path"), "");
    let outside = text.split('`').step_by(2).collect::<String>();
    outside.replace(|c: char| c.is_ascii_digit(), "")
}

#[test]
fn changed_inputs_are_no_panic() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let only = std::env::var("FUZZ_ONLY").unwrap_or_default();
    // Writing a file there takes a fiftieth of the time.
    let memory = tempfile::tempdir_in("/dev/shm");
    let dir = memory.or_else(|_| tempfile::tempdir());
    let dir = dir.expect("a temporary directory");
    let mut inputs = inputs(dir.path());
    inputs.retain(|(name, ..)| name.contains(only.as_str()));
    let end = now() + Duration::from_secs(number("FUZZ_SECONDS", 2));
    let mut seed = number("FUZZ_SEED", 1);
    let mut read = vec![0_u64; inputs.len()];
    let mut kinds = vec![BTreeSet::new(); inputs.len()];
    println!("seeds from {seed}");
    let first = seed;
    while now() < end {
        for (at, (name, format, bytes)) in inputs.iter().enumerate() {
            let mut rng = Rng(seed);
            let mut bytes = bytes.clone();
            let is_binary = *format == "blktrace";
            for _ in 0..=rng.below(4) {
                match rng.below(4) {
                    0 => scramble(&mut rng, &mut bytes),
                    _ => replace(&mut rng, &mut bytes, is_binary),
                }
            }
            let file = dir.path().join(name);
            std::fs::write(&file, &bytes).expect("it can be written");
            let options = Options {
                device: DeviceChoice::All,
                format: (rng.below(2) == 0).then(|| format.parse().expect("a format")),
                salvage: rng.below(4) == 0,
                window: [1, 8, 1 << 17][rng.below(3)],
                ..Options::default()
            };
            match judge(&file, options) {
                Ok(None) => read[at] += 1,
                Ok(Some(error)) => drop(kinds[at].insert(kind(&error, &file))),
                Err(what) => panic!("{name} seed {seed}: {what}\n{bytes:?}"),
            }
        }
        seed += 1;
    }
    for ((name, ..), (read, kinds)) in inputs.iter().zip(read.iter().zip(&kinds)) {
        let (runs, errors) = (seed - first, kinds.len());
        println!("{name}: {runs} runs, {read} read, {errors} errors, up to seed {seed}");
        assert!(*read > 0, "nothing of {name} was read");
        assert!(errors > 1, "{name}: {kinds:?}");
    }
}
