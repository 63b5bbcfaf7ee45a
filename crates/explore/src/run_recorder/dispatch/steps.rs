//! The variables of a step, in the syntax of `specs/Dispatch`, and the schedule.

use blkmq::elevator::SchedulerKind;
use blkmq::elevator::series::shared::{BUCKETS, DISPATCHING, INSERTING};
use blkmq::list::QueueList;
use blkmq::queue::BlkMq;
use blkmq::request::{Place, RequestPool};
use blkmq::rules::{Insertion, SideWork};
use blkmq::schedule::view::{self, DISPATCH as OBSERVED};
use blkmq::schedule::{Argument, Schedule, Step};

use super::{Dispatch, QUEUE, REQUESTS_MAX};
use crate::dispatch::{RUNS, Setting, deadline};
use crate::run_recorder::names::Names;
use crate::run_recorder::{Event, first_missing};

/// The most CPUs, and buckets, of a run.
const CPUS_MAX: u32 = 64;

/// The context that a step belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    Process(u32),
    Submission { process: u32, request: u32 },
    Request(u32),
    Machine,
}

/// The variables of the specification's first state, with so many CPUs.
pub(super) fn first(cpus: u32) -> Vec<String> {
    let none = || "<<>>".to_owned();
    let off = || view::flag(false);
    vec![
        "0".to_owned(),
        none(),
        view::tuple((0..cpus).map(|_| none())),
        none(),
        "0".to_owned(),
        off(),
        off(),
        off(),
        off(),
        view::set(core::iter::empty()),
    ]
}

/// The variables read off the block layer, by the names of [`OBSERVED`]. The machine knows whether
/// a work item is queued and which process has the lock.
pub(super) fn look(
    mq: &BlkMq,
    names: &Names,
    (cpus, owner, armed): (u32, u32, bool),
) -> Result<Vec<String>, &'static str> {
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
    Ok(seen.into())
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

/// The schedule of the recorded steps.
pub(super) fn schedule(of: &Dispatch, mq: &BlkMq, stalled: bool) -> Schedule {
    let events = of.log.events.iter();
    let steps = events.map(|event| (step(event), event.seen.clone()));
    let steps = (first(of.cpus), steps.collect());
    of.log
        .write((RUNS, &OBSERVED), steps, constants(of, mq), stalled)
}

fn step(event: &Event<Of>) -> Step {
    let named = |name: &str, number: u32| (name.to_owned(), Argument::Number(number));
    let arguments = match event.of {
        Of::Process(process) => vec![named("process", process)],
        Of::Submission { process, request } => {
            vec![named("process", process), named("request", request)]
        }
        Of::Request(request) => vec![named("request", request)],
        Of::Machine => Vec::new(),
    };
    Step {
        action: event.action.to_owned(),
        arguments,
        observed: Vec::new(),
    }
}

fn constants(of: &Dispatch, mq: &BlkMq) -> Vec<(String, String)> {
    let requests = of.names.most.clamp(1, REQUESTS_MAX);
    let setting = Setting {
        cpus: of.cpus as u8,
        per_cpu: requests.div_ceil(of.cpus) as u8,
        ..Setting::of_rules(&mq.queue(QUEUE).settings.rules)
    };
    let mut constants = setting.constants();
    constants.push(("Record".to_owned(), view::flag(true)));
    constants
}
