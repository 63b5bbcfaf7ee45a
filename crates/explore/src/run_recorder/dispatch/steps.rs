//! The variables of a step, in the syntax of `specs/Dispatch`, and the schedule.

use blkmq::elevator::SchedulerKind;
use blkmq::elevator::series::shared::{BUCKETS, DISPATCHING, INSERTING};
use blkmq::list::QueueList;
use blkmq::queue::BlkMq;
use blkmq::request::{Place, RequestPool};
use blkmq::rules::{Insertion, SideWork};
use blkmq::schedule::view::{self, DISPATCH as OBSERVED};

use super::QUEUE;
use crate::dispatch::deadline;
use crate::run_recorder::names::Names;
use crate::run_recorder::{Value, first_missing};

/// The most CPUs, and buckets, of a run.
const CPUS_MAX: u32 = 64;

/// The variables read off the block layer, by the names of [`OBSERVED`]. The machine knows whether
/// a work item is queued and which process has the lock.
pub(super) fn look(
    mq: &BlkMq,
    names: &Names,
    (cpus, owner, armed): (u32, u32, bool),
) -> Result<Vec<Value>, &'static str> {
    let q = mq.queue(QUEUE);
    let dd = deadline(q);
    if dd
        .series()
        .inserted
        .inspect(|lists| !lists.at_head.is_empty())
    {
        return Err("a request was inserted at the head; the specification has none");
    }
    if names.unknown(mq) {
        return Err("a request waits that no step submitted");
    }
    let number = |rq| names.of(QUEUE, rq).unwrap_or(0);
    let numbers = |pool: &RequestPool, list: &QueueList| {
        view::tuple(list.iter(pool).map(|rq| number(rq).to_string()))
    };
    let bits = dd.series().run_state.peek();
    let of_cpu = |cpu: u32| {
        let bucket = dd.series().buckets.get(cpu as usize);
        bucket.map_or("<<>>".to_owned(), |bucket| {
            q.with_pool(|pool| bucket.list.inspect(|list| numbers(pool, list)))
        })
    };
    let mut device = q.with_pool(|pool| {
        let there = pool.iter().filter(|(_, rq)| rq.place == Place::Device);
        there.map(|(rq, _)| number(rq)).collect::<Vec<u32>>()
    });
    device.sort_unstable();
    let seen: [String; OBSERVED.len()] = [
        owner.to_string(),
        names.scheduled(q),
        view::tuple((0..cpus).map(of_cpu)),
        q.with_pool(|pool| {
            dd.series()
                .inserted
                .inspect(|lists| numbers(pool, &lists.at_tail))
        }),
        dd.series().insert_seq.peek().to_string(),
        view::flag(bits & DISPATCHING != 0),
        view::flag(bits & INSERTING != 0),
        view::flag(bits & BUCKETS != 0),
        view::flag(armed),
        view::set(device.into_iter().map(|number| number.to_string())),
    ];
    Ok(seen.map(Value::Text).into())
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
