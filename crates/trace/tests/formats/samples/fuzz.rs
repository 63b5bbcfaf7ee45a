//! Random changes of the samples and of binary records: no panic, a clear error, events in order.
//!
//! FUZZ_SECONDS is the time for all formats together, FUZZ_SEED the first seed, FUZZ_ONLY a word of
//! the sample's name.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{SAMPLES, sample};
use blkmq::time::SimTime;
use trace::blktrace::{
    Action, Categories, DeviceChoice, Event, Options, Reader, Writer, WriterOptions,
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

fn change(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(4) {
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
                let mut lines: Vec<Vec<u8>> =
                    bytes.split(|b| *b == b'\n').map(Into::into).collect();
                let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
                lines.swap(one, other);
                *bytes = lines.join(&b'\n');
            }
            6 if rng.below(8) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
}

fn records(dir: &Path) -> Vec<u8> {
    let device = trace::blktrace::Device::new(8, 0);
    let options = WriterOptions::default();
    let mut writer = Writer::create(dir, "sda", device, 1, options).expect("a directory");
    for n in 0..20_u64 {
        let action = [
            Action::Queue,
            Action::Issue,
            Action::Complete,
            Action::Unplug,
        ][n as usize % 4];
        let event = Event {
            sector: n / 4 * 8,
            bytes: 4096,
            categories: Categories::READ,
            device,
            ..Event::new(SimTime(1000 * n), action)
        };
        writer.write(&event).expect("written");
    }
    writer.finish().expect("written");
    std::fs::read(dir.join("sda.blktrace.0")).expect("it was written")
}

/// Reads to the end; what is wrong with the reading itself.
fn judge(file: &Path, options: Options) -> Result<bool, String> {
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
            false => Ok(true),
        },
        Ok(Err(error)) => {
            let text = error.to_string();
            let named = text.contains(file.to_str().expect("an ASCII path"));
            let short = text.len() < 2000 && !text.contains('\n');
            (named && short).then_some(false).ok_or(text)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the time is the test's length")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn changed_inputs_are_no_panic() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let only = std::env::var("FUZZ_ONLY").unwrap_or_default();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut inputs = vec![("records", "blktrace", records(dir.path()))];
    for (name, format) in SAMPLES {
        inputs.push((name, format, std::fs::read(sample(name)).expect("a sample")));
    }
    inputs.retain(|(name, ..)| name.contains(only.as_str()));
    let end = now() + Duration::from_secs(number("FUZZ_SECONDS", 2));
    let (mut seed, mut good, mut refused) = (number("FUZZ_SEED", 1), 0_u64, 0_u64);
    println!("seeds from {seed}");
    while now() < end {
        for (name, format, bytes) in &inputs {
            let mut rng = Rng(seed);
            let mut bytes = bytes.clone();
            change(&mut rng, &mut bytes);
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
                Ok(true) => good += 1,
                Ok(false) => refused += 1,
                Err(what) => panic!("{name} seed {seed}: {what}\n{bytes:?}"),
            }
        }
        seed += 1;
    }
    println!("up to seed {seed}: {good} read, {refused} refused");
    assert!(good > 0, "nothing was read");
    assert!(refused > 0, "nothing was refused");
}
