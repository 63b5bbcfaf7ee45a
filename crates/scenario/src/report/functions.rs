//! How often the functions of the block layer were called and how long they took, as the kernel's
//! function profiler (trace_stat) shows it.
//!
//! From the times of labels: what a function asks of the machine (queueing work, waiting for a
//! lock, the driver's queue_rq) is not in its time, and interrupts that cut it short are not.

use std::fmt;

use blkmq::path::Label;
use blkmq::path::label::{Complete, Run, Submit};
use serde::Serialize;

use sim::recorder::Recorder;

/// Calls of one function on all CPUs.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FunctionReport {
    /// Name of the function.
    pub function: &'static str,
    /// Number of calls.
    pub hits: u64,
    /// Total time of the calls, ns.
    pub time_ns: u64,
    /// Mean time of a call, ns.
    pub mean_ns: f64,
}

/// Functions and the label that each call passes once, in the order in which a request meets them.
/// Runs have no row: their callers are not labels of their own.
const FUNCTIONS: [(&str, Label); 4] = [
    (SUBMIT_BIO, Submit::Enter.label()),
    (DISPATCH, Run::PeekDispatch.label()),
    (END_REQUEST, Complete::End.label()),
    (FunctionReport::SCHED_RESTART, Complete::Restart.label()),
];

const SUBMIT_BIO: &str = "blk_mq_submit_bio";
const DISPATCH: &str = "blk_mq_sched_dispatch_requests";
const END_REQUEST: &str = "blk_mq_end_request";

/// The function that a label belongs to.
fn owner(label: Label) -> Option<&'static str> {
    match path(label) {
        "submit" => Some(SUBMIT_BIO),
        "pass" | "ctx" | "list" => Some(DISPATCH),
        "complete" if restarts(label) => Some(FunctionReport::SCHED_RESTART),
        "complete" => Some(END_REQUEST),
        _ => dispatches(label).then_some(DISPATCH),
    }
}

fn path(label: Label) -> &'static str {
    label.parts().0
}

/// Labels of a run, without its entry.
fn dispatches(label: Label) -> bool {
    let own = [
        Run::PeekDispatch,
        Run::TakeDispatch,
        Run::MarkRestart,
        Run::SetRestart,
        Run::CountMark,
        Run::Busy,
    ];
    own.iter().any(|at| at.label() == label)
}

/// Labels between the freed tag and the hctx that is run.
fn restarts(label: Label) -> bool {
    let own = [
        Complete::Restart,
        Complete::ClearRestart,
        Complete::ClearFlag,
        Complete::Visit,
        Complete::Unmark,
        Complete::Uncount,
        Complete::SeesDispatch,
        Complete::SeesWork,
    ];
    own.iter().any(|at| at.label() == label)
}

impl FunctionReport {
    /// Name of the function that looks for an hctx to restart at the end of a request.
    pub const SCHED_RESTART: &'static str = "blk_mq_sched_restart";

    pub fn all(recorder: &Recorder) -> Vec<FunctionReport> {
        let labels: Vec<_> = recorder.spent.labels().collect();
        let of = |&(function, entry): &(&'static str, Label)| {
            assert_eq!(owner(entry), Some(function));
            let entered = labels.iter().find(|(label, _)| *label == entry);
            let hits = entered.map_or(0, |(_, sum)| sum.count);
            let own = labels
                .iter()
                .filter(|(label, _)| owner(*label) == Some(function));
            let ps: u64 = own.map(|(_, sum)| sum.ps).sum();
            FunctionReport {
                function,
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
