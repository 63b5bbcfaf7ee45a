use std::time::{Duration, Instant};

use sim::cost::Component;

use super::*;
use crate::calibrate::{MeasuredRun, Shares, Symbols};

const SCRIPT_TEXT: &str = include_str!("../../../samples/perf-script.txt");
const REPORT_TEXT: &str = include_str!("../../../samples/perf-report.txt");
const FOLDED_TEXT: &str = "\
fio;td_io_queue 50
fio;do_syscall_64;io_submit_sqes;io_read;of_no_table.isra.0 30
fio;[unknown];do_syscall_64_[k];blk_mq_submit_bio_[k];dd_bio_merge.cold_[k] 10
swapper;do_idle;asm_common_interrupt;nvme_irq 8
swapper;do_idle;intel_idle_irq 100
fio;native_queued_spin_lock_slowpath 1
sshd;of_another 1
";

fn shares(text: &str) -> Shares {
    let symbols = Symbols::built_in().unwrap();
    Shares::of(&Samples::parse(text).unwrap(), &symbols)
}

/// Cycles per I/O by component, of 1000 in all.
fn cycles(text: &str) -> Vec<(String, f64)> {
    let cycles = shares(text).cycles_per_io(1000.0);
    let rounded = cycles
        .into_iter()
        .map(|(name, value)| (name, value.round()));
    rounded.collect()
}

#[test]
fn the_innermost_known_symbol_decides() {
    let of = |name: &str, value| (name.to_owned(), value);
    let want = [
        of("driver", 80.0),
        of("engine", 300.0),
        of("scheduler", 100.0),
        of("user", 500.0),
    ];
    assert_eq!(cycles(FOLDED_TEXT), want);
    let shares = shares(FOLDED_TEXT);
    assert_eq!(
        (shares.idle, shares.waiting, shares.by_caller),
        (100.0, 1.0, 80.0)
    );
    assert_eq!(
        shares.unknown.into_iter().collect::<Vec<_>>(),
        [("of_another".to_owned(), 1.0)]
    );
}

/// Samples of a recording: the report's rows by component, as summed by hand from its lines, and
/// two samples of the script in the engine's functions.
#[test]
fn recorded_samples_are_read() {
    let report = Samples::parse(REPORT_TEXT).unwrap();
    assert!((report.listed_percent - 100.24).abs() < 1e-6);
    let scheduler = cycles(REPORT_TEXT)
        .into_iter()
        .find(|(name, _)| name == "scheduler");
    // Of dd_*, __dd_*, elv_*, deadline_*, blk_mq_sched_* and __blk_mq_sched_*, by awk.
    let sum = 8.93;
    assert!((scheduler.unwrap().1 - sum / 100.24 * 1000.0).abs() <= 0.5);
    let script = Samples::parse(SCRIPT_TEXT).unwrap();
    assert_eq!((script.format, script.stacks.len()), (SCRIPT, 16));
    let exact = |stack: &Stack| (stack.weight - 1_003_009.0).abs() < 0.5;
    assert!(script.stacks.iter().all(exact));
    assert_eq!(script.stacks[1].frames[0], kernel("fget"));
    assert_eq!(script.stacks[1].frames.len(), 7);
}

/// Each row of lines.txt: a text and its first sample, or its error.
#[test]
fn forms_of_lines_and_damaged_ones() {
    let rows = include_str!("lines.txt").lines().skip(1);
    for row in rows {
        let (text, want) = row.split_once(" => ").unwrap();
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        let got = Samples::parse(&text).map(|samples| {
            let Stack { weight, frames } = &samples.stacks[0];
            let symbols: Vec<&str> = frames.iter().map(|frame| frame.symbol).collect();
            format!("{weight} {} {:?}", symbols.join(" "), frames[0].space)
        });
        let got = got.unwrap_or_else(|error| error);
        assert!(got.starts_with(want), "{row}: {got}");
    }
}

#[test]
fn tables_of_symbols_are_checked_and_added() {
    let mut symbols = Symbols::built_in().unwrap();
    let work =
        |symbols: &Symbols, name: &str| symbols.class(name).map(|class| format!("{class:?}"));
    assert_eq!(work(&symbols, "nvme_queue_rq").unwrap(), "Work(Driver)");
    assert_eq!(work(&symbols, "blk_mq_get_tag").unwrap(), "Work(Tags)");
    assert_eq!(
        work(&symbols, "blk_mq_run_hw_queue").unwrap(),
        "Work(BlkMq)"
    );
    assert_eq!(work(&symbols, "my_symbol"), None);
    symbols
        .add("clock = [\"my_*\", \"blk_mq_get_tag*\"]\nidle = [\"nvme_queue_rq\"]")
        .unwrap();
    assert_eq!(work(&symbols, "my_symbol").unwrap(), "Work(Clock)");
    assert_eq!(work(&symbols, "blk_mq_get_tag").unwrap(), "Work(Clock)");
    assert_eq!(work(&symbols, "nvme_queue_rq").unwrap(), "Idle");
    let cases = [
        (
            "clocks = [\"x\"]",
            "clocks: no such component; there are: user",
        ),
        ("clock = [\"*\"]", "clock: \"*\": must be a symbol"),
        ("clock = [\"a*b\"]", "clock: \"a*b\": must be a symbol"),
        (
            "clock = [\"x\"]\ntags = [\"x\"]",
            "tags: \"x\" is also in clock",
        ),
        ("clock = \"x\"", "expected a sequence"),
    ];
    for (text, what) in cases {
        let error = symbols.add(text).unwrap_err();
        assert!(error.contains(what), "{text}: {error}");
    }
}

/// Shares of a CPU: 1.5 CPUs of 2 GHz for 1 million I/Os are 3000 cycles an I/O, of which these
/// samples give 500 in a thousand to fio.
#[test]
fn shares_become_cycles() {
    let mut run = MeasuredRun::of_perf("p".to_owned(), "s".to_owned());
    (run.iops, run.busy_cpus) = (Some(1e6), Some(1.5));
    run.sampled(&shares(FOLDED_TEXT), 2000).unwrap();
    let measured = run.measured().unwrap();
    assert_eq!(measured.cycles_of(Component::User), Some(1500.0));
    assert_eq!(measured.cycles_of(Component::Preempt), None);
    let twice = run.sampled(&shares(FOLDED_TEXT), 2000).unwrap_err();
    assert!(twice.contains("perf and cycles_per_io"), "{twice}");
    let mut run = MeasuredRun::of_perf("p".to_owned(), "s".to_owned());
    let error = run.sampled(&shares(FOLDED_TEXT), 2000).unwrap_err();
    assert!(error.contains("perf needs iops"), "{error}");
    run.iops = Some(1.0);
    for text in ["swapper;do_idle 5", "a;b 5"] {
        let error = run.sampled(&shares(text), 2000).unwrap_err();
        assert!(error.contains("no sample is of a known symbol"), "{error}");
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as usize
}

#[expect(clippy::disallowed_methods, reason = "the time is the test's length")]
fn now() -> Instant {
    Instant::now()
}

/// Changed samples are read or refused in one line that names a line, and never a panic; shares
/// add up.
#[test]
fn fuzz() {
    const WORDS: [&str; 12] = [
        "",
        "-1",
        "99999999999999999999",
        "%",
        "101%",
        "[k] ",
        "\t",
        "\n\n",
        ";",
        "_[k]",
        "é",
        ")",
    ];
    let seconds = std::env::var("FUZZ_SECONDS").map_or(1, |text| text.parse().unwrap());
    let symbols = Symbols::built_in().unwrap();
    let (end, mut seed, mut read, mut refused) =
        (now() + Duration::from_secs(seconds), 0_u64, 0_u64, 0_u64);
    while now() < end {
        for text in [SCRIPT_TEXT, REPORT_TEXT, FOLDED_TEXT] {
            seed += 1;
            let (mut state, mut text) = (seed, text.to_owned());
            for _ in 0..=next(&mut state) % 3 {
                let mut places = [0; 2].map(|_| next(&mut state) % (text.len() + 1));
                places[1] = (places[0] + places[1] % 20).min(text.len());
                let places = places.map(|place| text.floor_char_boundary(place));
                let word = WORDS[next(&mut state) % WORDS.len()];
                text.replace_range(places[0]..places[1], word);
            }
            match Samples::parse(&text) {
                Ok(samples) => {
                    let shares = Shares::of(&samples, &symbols);
                    let all = samples.stacks.iter().map(|stack| stack.weight).sum::<f64>();
                    let sum = shares.busy() + shares.idle;
                    assert!(
                        (sum / all - 1.0).abs() < 1e-9,
                        "seed {seed}: {sum} of {all}"
                    );
                    read += 1;
                }
                Err(what) => {
                    let named = ["line ", "the rows add up", "there is no", "all samples"];
                    let named = named.iter().any(|begins| what.starts_with(begins));
                    assert!(named && !what.contains('\n'), "seed {seed}: {what}");
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 0, "nothing was read");
    assert!(refused > 0, "nothing was refused");
}
