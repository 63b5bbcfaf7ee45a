//! From what was noted to a schedule: steps, what each changed, and the constants.

use blkmq::elevator::SchedulerKind;
use blkmq::queue::BlkMq;
use blkmq::request::QueueId;
use blkmq::rules::{BucketSignal, DispatchGate, EmptyRun, Fix, Insertion, Pull, SideWork};
use blkmq::schedule::view::{self, DISPATCH as OBSERVED};
use blkmq::schedule::{Argument, Schedule, Step};

use super::look::{self, Seen};
use super::{Binding, REQUESTS_MAX};
use crate::run_recorder::{first_missing, show_changes};

/// Most CPUs, and buckets, that are followed.
const CPUS_MAX: u32 = 64;

/// A step as it was noted.
#[derive(Clone, Debug)]
pub(super) struct Event {
    action: &'static str,
    process: Option<u32>,
    request: Option<u32>,
    pub(super) seen: Seen,
}

impl Event {
    pub(super) fn of_process(action: &'static str, process: u32) -> Event {
        Event {
            process: Some(process),
            ..Event::new(action)
        }
    }

    pub(super) fn submit(process: u32, request: u32) -> Event {
        Event {
            request: Some(request),
            ..Event::of_process("Submit", process)
        }
    }

    pub(super) fn complete(request: u32) -> Event {
        Event {
            request: Some(request),
            ..Event::new("Complete")
        }
    }

    pub(super) fn fire() -> Event {
        Event::new("Fire")
    }

    fn new(action: &'static str) -> Event {
        Event {
            action,
            process: None,
            request: None,
            seen: Seen::default(),
        }
    }

    fn step(&self) -> Step {
        let named = |name: &str, number: Option<u32>| {
            number.map(|number| (name.to_owned(), Argument::Number(number)))
        };
        let arguments = named("process", self.process);
        let arguments = arguments.into_iter().chain(named("request", self.request));
        Step {
            action: self.action.to_owned(),
            arguments: arguments.collect(),
            observed: Vec::new(),
        }
    }
}

/// CPUs of the specification: each has a bucket.
pub(super) fn cpus(mq: &BlkMq) -> u32 {
    let series = &mq.queue(QueueId(0)).settings.rules.series;
    match series.bucket_count() {
        0 => crate::run_recorder::cpus(mq),
        buckets => buckets as u32,
    }
}

/// Why no run of this block layer is one of the specification.
pub(in crate::run_recorder) fn outside(mq: &BlkMq) -> Option<String> {
    let settings = &mq.queue(QueueId(0)).settings;
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

/// The schedule of what was noted.
pub(super) fn schedule(binding: &Binding, mq: &BlkMq, stalled: bool) -> Schedule {
    let mut steps = Vec::with_capacity(binding.events.len());
    let first = look::first(binding.cpus);
    let mut before = &first;
    for event in &binding.events {
        let mut step = event.step();
        show_changes(&mut step, &OBSERVED, before, &event.seen);
        before = &event.seen;
        steps.push(step);
    }
    Schedule {
        spec: "DispatchLabels".to_owned(),
        variant: binding.name.clone(),
        shows: match stalled {
            true => "NoStall violated",
            false => "NeverAllDone violated",
        }
        .to_owned(),
        settings: constants(binding, mq),
        steps,
        repeats_from: None,
    }
}

/// The specification's constants.
fn constants(binding: &Binding, mq: &BlkMq) -> Vec<(String, String)> {
    let rules = &mq.queue(QueueId(0)).settings.rules;
    let series = &rules.series;
    let insertion = match series.insertion {
        Insertion::UnderLock => "\"lock\"",
        Insertion::Buckets(BucketSignal::CountAtEntry) => "\"poc\"",
        Insertion::Buckets(BucketSignal::CountAround) => "\"v1\"",
        Insertion::Buckets(BucketSignal::MarkBefore) => "\"v2\"",
        Insertion::Buckets(BucketSignal::MarkAfter) => "\"repaired\"",
        Insertion::SideLists => "\"lists\"",
    };
    let gating = match series.dispatch {
        DispatchGate::Open => "\"none\"",
        DispatchGate::OneAtATime => "\"inside\"",
        DispatchGate::ClearedAfterUnlock => "\"after\"",
    };
    let requests = binding.names.most.clamp(1, REQUESTS_MAX);
    let delayed = rules.restart.pull == Pull::Batch && rules.fixes.has(Fix::WithheldRun);
    [
        ("Cpus", binding.cpus.to_string()),
        ("PerCpu", requests.div_ceil(binding.cpus).to_string()),
        ("Insertion", insertion.to_owned()),
        ("Gating", gating.to_owned()),
        ("SeesSide", view::flag(series.side_work == SideWork::Seen)),
        ("Reruns", view::flag(false)),
        ("Delayed", view::flag(delayed)),
        (
            "Rechecks",
            view::flag(rules.empty_run == EmptyRun::RecheckUnderQueueLock),
        ),
        ("Record", view::flag(true)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
