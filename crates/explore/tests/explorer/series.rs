//! The January 2024 series on mq-deadline and bfq: which of its protocols lose requests.
//!
//! Without 3 ms runs, so that a lost request is for ever and not only late. Counts as in
//! `exhaustive.rs`; expected verdicts: reference models of the series, one step per access.

use crate::clean::exhaustive;
use crate::counts::compare;
use blkmq::elevator::SchedulerKind;
use blkmq::rules::{DispatchGate, NoMerges, Rules, Series};
use explore::{Config, Report, Task, Verdict};
use rayon::prelude::*;

/// `tasks` reads from as many CPUs, two buckets.
fn reads(name: &str, series: Series, tasks: u16) -> Config {
    reads_under(SchedulerKind::MqDeadline, name, series, tasks)
}

/// The same under another scheduler with the series.
fn reads_under(scheduler: SchedulerKind, name: &str, series: Series, tasks: u16) -> Config {
    let series = Series {
        buckets: 2,
        ..series
    };
    let rules = Rules::v6_12().with_series(series);
    let mut config = Config::new(name, rules, scheduler, 0);
    config.tasks = (0..tasks).map(Task::read).collect();
    config.cpus = tasks;
    config.tags = u32::from(tasks);
    config.nr_requests = 4;
    config
}

fn line(report: &Report) -> String {
    format!(
        "{:<32}{:<7}{:>8} generated {:>7} distinct  depth {}\n",
        report.name,
        report.verdict.word(),
        report.generated,
        report.distinct,
        report.depth
    )
}

/// Verdicts of two submitters with a read each.
const TWO: [(&str, &str); 8] = [
    ("stock", "clean"),
    ("poc", "stall"),
    ("v1", "stall"),
    ("v2", "stall"),
    ("v2-repaired", "clean"),
    ("v3", "clean"),
    ("serialise-only", "clean"),
    ("skip-merge", "clean"),
];

#[test]
fn every_preset_with_two_submitters() {
    let mut table = String::new();
    for (name, verdict) in TWO {
        let series = Series::by_name(name).expect("a preset");
        let mut config = reads(name, series, 2);
        config.nomerges = NoMerges::All;
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), verdict, "{report}");
        table += &line(&report);
    }
    assert_eq!(TWO.len(), Series::ALL.len());
    compare("series.txt", &table);
}

/// The series' paths are the same under BFQ, but the lock guards other data.
#[test]
#[ignore = "half a minute of an optimised build: cargo xtask ci --full"]
fn every_preset_on_bfq() {
    let lines = TWO.par_iter().map(|(name, verdict)| {
        let series = Series::by_name(name).expect("a preset");
        let mut config = reads_under(SchedulerKind::Bfq, name, series, 2);
        config.nomerges = NoMerges::All;
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), *verdict, "{report}");
        line(&report)
    });
    compare("series-bfq.txt", &lines.collect::<String>());
}

/// The lost request is in a bucket: no bit shows it, and no later step looks there.
#[test]
fn a_request_is_left_in_a_bucket() {
    for name in ["poc", "v1", "v2"] {
        let series = Series::by_name(name).expect("a preset");
        let report = exhaustive(&reads(name, series, 2));
        let Verdict::Stall(why) = &report.verdict else {
            panic!("{report}");
        };
        assert_eq!(why.matches("in Side").count(), 1, "{name}: {why}");
        let shown: Vec<String> = report.schedule.iter().map(ToString::to_string).collect();
        let fills = shown.iter().any(|step| step.contains("series-insert.fill"));
        assert!(fills, "{report}");
    }
}

/// DD_DISPATCHING cleared after the unlock: a CPU may give up because another CPU dispatches, which
/// has already picked its last request; the first CPU's request is then left. Each submitter
/// flushes a plug of one, as such a flush runs the queue itself.
#[test]
fn the_gate_opens_inside_the_lock() {
    let mut table = String::new();
    for (name, dispatch, bios, verdict) in [
        ("cleared inside", DispatchGate::OneAtATime, [1, 1], "clean"),
        (
            "cleared after",
            DispatchGate::ClearedAfterUnlock,
            [1, 1],
            "clean",
        ),
        (
            "cleared after",
            DispatchGate::ClearedAfterUnlock,
            [1, 2],
            "stall",
        ),
    ] {
        let series = Series {
            dispatch,
            ..Series::STOCK
        };
        let name = format!("{name}, {} + {} bios", bios[0], bios[1]);
        let mut config = reads(&name, series, 2);
        for (task, bios) in config.tasks.iter_mut().zip(bios) {
            (task.plugged, task.bios) = (1, bios);
        }
        config.tags = config.bios();
        let report = exhaustive(&config);
        table += &line(&report);
        assert_eq!(report.verdict.word(), verdict, "{report}");
    }
    compare("series-gate.txt", &table);
}
