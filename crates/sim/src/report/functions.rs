//! How often the functions of the block layer were called and how long they took, as the kernel's
//! function profiler (trace_stat) shows it.
//!
//! From the times of labels: what a function asks of the machine (queueing work, waiting for a
//! lock, the driver's queue_rq) is not in its time, and interrupts that cut it short are not.

use std::fmt;

use blkmq::path::Label;
use serde::Serialize;

use crate::recorder::Recorder;

/// Calls of one function on all CPUs.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FunctionReport {
    /// Its name.
    pub function: &'static str,
    /// Calls.
    pub hits: u64,
    /// Time of all of them.
    pub time_ns: u64,
    /// Time of one, mean.
    pub mean_ns: f64,
}

/// A function: its name, the label that each call passes once, and whether a label belongs to it.
struct Function {
    name: &'static str,
    entry: &'static str,
    owns: fn(path: &str, at: &str) -> bool,
}

/// In the order in which a request meets them. Runs have no row: those that others ask for are not
/// labels of their own.
const FUNCTIONS: [Function; 4] = [
    Function {
        name: "blk_mq_submit_bio",
        entry: "submit.enter",
        owns: |path, _| path == "submit",
    },
    Function {
        name: "blk_mq_sched_dispatch_requests",
        entry: "run.peek-dispatch",
        owns: |path, at| matches!(path, "pass" | "ctx" | "list") || path == "run" && dispatches(at),
    },
    Function {
        name: "blk_mq_end_request",
        entry: "complete.end",
        owns: |path, at| path == "complete" && !restarts(at),
    },
    Function {
        name: FunctionReport::SCHED_RESTART,
        entry: "complete.restart",
        owns: |path, at| path == "complete" && restarts(at),
    },
];

/// Labels of a run that are not its entry.
fn dispatches(at: &str) -> bool {
    matches!(
        at,
        "peek-dispatch" | "take-dispatch" | "mark-restart" | "count-mark" | "busy" | "leftovers"
    )
}

/// Labels between the freed tag and the hctx that is run.
fn restarts(at: &str) -> bool {
    let walk = ["visit", "unmark", "uncount", "sees-dispatch", "sees-work"];
    walk.contains(&at) || matches!(at, "restart" | "clear-restart" | "clear-flag")
}

impl FunctionReport {
    /// Name of the function that looks for an hctx to run again when a request has ended.
    pub const SCHED_RESTART: &'static str = "blk_mq_sched_restart";

    /// All functions that were called.
    pub fn all(recorder: &Recorder) -> Vec<FunctionReport> {
        let labels: Vec<_> = recorder.spent.labels().collect();
        let of = |function: &Function| {
            let name = |label: Label| label.name();
            let entered = labels
                .iter()
                .find(|(label, _)| name(*label) == function.entry);
            let hits = entered.map_or(0, |(_, sum)| sum.count);
            let own = labels.iter().filter(|(label, _)| {
                let name = name(*label);
                let (path, at) = name.split_once('.').unwrap_or((&name, ""));
                (function.owns)(path, at)
            });
            let ps: u64 = own.map(|(_, sum)| sum.ps).sum();
            FunctionReport {
                function: function.name,
                hits,
                time_ns: ps / 1000,
                mean_ns: ps as f64 / 1000.0 / hits.max(1) as f64,
            }
        };
        let all = FUNCTIONS.iter().map(of);
        all.filter(|function| function.hits > 0).collect()
    }

    /// The table, as trace_stat prints it.
    pub(super) fn write_all(all: &[FunctionReport], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: f64| format!("{:.3} us", ns / 1000.0);
        let line = |f: &mut fmt::Formatter<'_>, cells: [&str; 4]| {
            let [function, hit, time, avg] = cells;
            writeln!(f, "  {function:<32} {hit:>10} {time:>18} {avg:>14}")
        };
        writeln!(
            f,
            "Functions, all CPUs (own labels; those of passes and lists are \
             blk_mq_sched_dispatch_requests')"
        )?;
        line(f, ["Function", "Hit", "Time", "Avg"])?;
        line(f, ["--------", "---", "----", "---"])?;
        for one in all {
            let (time, mean) = (us(one.time_ns as f64), us(one.mean_ns));
            line(f, [one.function, &one.hits.to_string(), &time, &mean])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;
    use blkmq::path::Label;

    #[test]
    fn functions_know_their_labels() {
        let names: Vec<String> = Label::all().map(Label::name).collect();
        for function in &FUNCTIONS {
            let (path, at) = function.entry.split_once('.').unwrap();
            assert!(names.iter().any(|name| name == function.entry));
            assert!((function.owns)(path, at), "{}", function.entry);
        }
        for name in &names {
            let (path, at) = name.split_once('.').unwrap();
            let owners = FUNCTIONS.iter().filter(|f| (f.owns)(path, at)).count();
            assert!(owners <= 1, "{name}");
        }
        for at in [
            "visit",
            "unmark",
            "uncount",
            "sees-dispatch",
            "sees-work",
            "clear-flag",
        ] {
            assert!(names.contains(&format!("complete.{at}")), "{at}");
        }
        for at in [
            "take-dispatch",
            "mark-restart",
            "count-mark",
            "busy",
            "leftovers",
        ] {
            assert!(names.contains(&format!("run.{at}")), "{at}");
        }
    }
}
