//! The variables of a step, and the block layers whose runs `specs/Dispatch` has.

use blkmq::elevator::SchedulerKind;
use blkmq::queue::BlkMq;
use blkmq::rules::{Insertion, SideWork};

use super::QUEUE;
use crate::dispatch::deadline;
use crate::dispatch::variables::{VARIABLES, Variable, View};
use crate::run_recorder::names::Names;
use crate::run_recorder::{Value, first_missing};

/// The most CPUs, and buckets, of a run.
const CPUS_MAX: u32 = 64;

/// The variables that runs show: they use numbers of requests again, so that none stays done.
pub(super) fn shown() -> impl Iterator<Item = &'static Variable> {
    VARIABLES.iter().filter(|(name, _)| *name != "done")
}

/// Their values. The machine knows whether a work item is queued and which process
/// has the lock.
pub(super) fn look(
    mq: &BlkMq,
    names: &Names,
    (cpus, owner, armed): (u32, u32, bool),
) -> Result<Vec<Value>, &'static str> {
    let q = mq.queue(QUEUE);
    let inserted = &deadline(q).series().inserted;
    if inserted.inspect(|lists| !lists.at_head.is_empty()) {
        return Err("a request was inserted at the head; the specification has none");
    }
    if names.unknown(mq) {
        return Err("a request waits that no step submitted");
    }
    let view = View {
        mq,
        cpus,
        owner,
        armed,
        number: &|_, rq| names.of(QUEUE, rq).unwrap_or(0),
        queued: names.scheduled(q),
        done: Vec::new(),
    };
    Ok(shown().map(|(_, read)| Value::Text(read(&view))).collect())
}

/// The specification's CPUs: each has a bucket.
pub(super) fn cpus(mq: &BlkMq) -> u32 {
    let series = &mq.queue(QUEUE).settings.rules.series;
    match series.bucket_count() {
        0 => crate::run_recorder::cpus(mq),
        buckets => buckets as u32,
    }
}

/// Why the specification has no runs of this block layer.
pub(in crate::run_recorder) fn outside(mq: &BlkMq) -> Option<String> {
    let settings = &mq.queue(QUEUE).settings;
    let series = &settings.rules.series;
    let counts = mq.sets[0].counts;
    let side_lists = series.insertion == Insertion::SideLists;
    first_missing(&[
        (mq.queues.len() == 1, "one disk"),
        (
            counts.default == 1 && counts.read == 0,
            "one hardware queue, beside polled ones",
        ),
        (
            settings.scheduler == SchedulerKind::MqDeadline,
            "scheduler mq-deadline",
        ),
        (
            (crate::run_recorder::cpus(mq)..=CPUS_MAX).contains(&cpus(mq)),
            "a bucket for each CPU, and at most 64 (queue.dd_cpu_buckets)",
        ),
        (
            series.side_work == SideWork::Unseen || side_lists,
            "has_work as posted",
        ),
    ])
}
