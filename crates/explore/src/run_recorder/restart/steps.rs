//! From the recorded labels to a schedule: assigns runs to contexts, and lists what each step
//! changed.

use blkmq::elevator::SchedulerKind;
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{HctxId, QueueId};
use blkmq::rules::{AskAfter, Pull, PutBack, Rules, TagWait, WaitEntry, WaitRetry, WakeScan};
use blkmq::schedule::view::RESTART as OBSERVED;
use blkmq::schedule::{Argument, Schedule, Step, view};
use blkmq::tags::TagSet;

use super::Restart;
use crate::restart::{RUNS, Setting};
use crate::run_recorder::{Event, first_missing};

/// The context that a step belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// A request that comes to a queue.
    Insertion {
        request: u32,
        queue: QueueId,
    },
    Run(usize),
    End(u32),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ToCome {
    /// By queue: a work item is queued, or a path will run the hctx.
    pub(super) asked: Vec<bool>,
    /// Runs that have not begun, though their first labels may have run.
    pub(super) runs: Vec<usize>,
}

impl ToCome {
    /// Whether one queue has a pending run; `began`: the run ended without work.
    fn of(&self, runs: &Restart, queue: usize, began: impl Fn(usize) -> bool) -> bool {
        let mine = |&run: &usize| runs.runs[run].queue.index() == queue && !began(run);
        self.asked[queue] || self.runs.iter().any(mine)
    }
}

/// The index of the pending runs among the observed variables.
const PENDING: usize = 2;

/// The most tags of which every queue may have all: fair shares begin above it.
const TAGS_MAX: u32 = 4;
/// The most queues: as many hctxs as the explorer has.
const QUEUES_MAX: usize = 8;

/// Why the specification has no runs of this block layer.
pub(in crate::run_recorder) fn outside(mq: &BlkMq) -> Option<String> {
    let rules = &mq.queue(QueueId(0)).settings.rules;
    let restart = rules.restart;
    let wakes_all = matches!(rules.wake_scan, WakeScan::FirstQueue | WakeScan::UntilSpent);
    let usual = SchedulerKind::default_for(true);
    let scheduled = |q: &RequestQueue| q.settings.scheduler == usual;
    let one_hctx = |set: &TagSet| set.counts.default == 1 && set.counts.read == 0;
    let checks = [
        (
            mq.sets.len() == 1 && (2..=QUEUES_MAX).contains(&mq.queues.len()),
            "2 to 8 disks that share one tag set",
        ),
        (
            mq.sets.iter().all(one_hctx),
            "one hardware queue a disk, beside polled ones",
        ),
        (
            mq.queues.iter().all(scheduled),
            "the scheduler that is the default of one hardware queue",
        ),
        (mq.sets[0].queue_depth <= TAGS_MAX, "at most 4 driver tags"),
        (
            rules.series == Rules::v6_1().series,
            "the kernel's own insertion and dispatch",
        ),
        (
            wakes_all && restart.wait != TagWait::WakeOne && restart.entry != WaitEntry::AnyAttempt,
            "a tag that wakes all who wait",
        ),
        (
            restart.ask != AskAfter::NoneLeft
                && restart.retry == WaitRetry::Unlocked
                && restart.put_back == PutBack::Head
                && restart.pull == Pull::One,
            "restarting as in v4.11 to v4.15 (queue.restart)",
        ),
    ];
    first_missing(&checks)
}

/// The schedule of the recorded steps.
pub(super) fn schedule(of: &Restart, mq: &BlkMq, stalled: bool) -> Schedule {
    let events = resolved(of);
    let (contexts, most) = contexts(of, &events);
    let steps = events.into_iter().zip(&contexts);
    let steps = steps.map(|(event, &context)| (step(of, &event, context), event.seen));
    let steps = (first(mq), steps.collect());
    of.log
        .write((RUNS, &OBSERVED), steps, constants(of, mq, most), stalled)
}

/// The variables of the specification's first state.
pub(super) fn first(mq: &BlkMq) -> Vec<String> {
    let queues = mq.queues.len();
    let of_hctx = |value: &str| of_hctxs((0..queues).map(|_| value.to_owned()));
    let of_queue = |value: &str| view::tuple((0..queues).map(|_| value.to_owned()));
    vec![
        format!("<<{}>>", mq.sets[0].queue_depth),
        of_hctx("FALSE"),
        of_hctx("FALSE"),
        "<<{}>>".to_owned(),
        of_queue("<<>>"),
        of_hctx("<<>>"),
        of_queue("0"),
        "<<0>>".to_owned(),
        "<<>>".to_owned(),
    ]
}

/// Decides which labels of runs are steps: a run that found nothing began with its first look, and
/// asked without success; if a run began, its earlier looks are no steps.
fn resolved(of: &Restart) -> Vec<Event<Of>> {
    let mut looked = vec![None; of.runs.len()];
    let mut began = vec![None; of.runs.len()];
    for (index, event) in of.log.events.iter().enumerate() {
        match (event.action, event.of) {
            ("Look", Of::Run(run)) => looked[run] = Some(index),
            ("LookEnd", Of::Run(run)) => began[run] = looked[run],
            _ => {}
        }
    }
    let mut events = Vec::with_capacity(of.log.events.len());
    for (index, (event, to_come)) in of.log.events.iter().zip(&of.to_come).enumerate() {
        let mut event = event.clone();
        let since = |run: usize| began[run].is_some_and(|from| from <= index);
        let pending: Vec<bool> = (0..of.items.len())
            .map(|queue| to_come.of(of, queue, since))
            .collect();
        event.seen[PENDING] = of_hctxs(pending.iter().map(|&pending| view::flag(pending)));
        if let Of::Run(run) = event.of {
            match event.action {
                "Look" if began[run].is_none() => continue,
                "Look" => event.action = "Start",
                "LookEnd" => event.action = "Ask",
                _ => {}
            }
            if event.action == "Start" && pending[of.runs[run].queue.index()] {
                event.action = "StartOne";
            }
        }
        events.push(event);
    }
    events
}

/// Values of the queues' hctxs, as a TLA+ function.
fn of_hctxs(values: impl Iterator<Item = String>) -> String {
    let each = values.enumerate();
    let each = each.map(|(queue, value)| {
        let name = view::hctx_name(QueueId(queue as u16), HctxId(0));
        format!("{name} :> {value}")
    });
    format!("({})", each.collect::<Vec<_>>().join(" @@ "))
}

/// The context of each event, which is the first idle one of its hctx, and the most contexts of any
/// hctx.
fn contexts(of: &Restart, events: &[Event<Of>]) -> (Vec<u32>, u32) {
    let mut last = vec![0; of.runs.len()];
    for (index, event) in events.iter().enumerate() {
        if let Of::Run(run) = event.of {
            last[run] = index;
        }
    }
    let mut busy: Vec<Vec<Option<usize>>> = vec![Vec::new(); of.items.len()];
    let (mut contexts, mut most) = (Vec::with_capacity(events.len()), 1);
    for (index, event) in events.iter().enumerate() {
        let Of::Run(run) = event.of else {
            contexts.push(0);
            continue;
        };
        let of_hctx = &mut busy[of.runs[run].queue.index()];
        let known = of_hctx.iter().position(|holder| *holder == Some(run));
        let place = known.unwrap_or_else(|| {
            let idle = of_hctx.iter().position(Option::is_none);
            idle.unwrap_or_else(|| {
                of_hctx.push(None);
                of_hctx.len() - 1
            })
        });
        of_hctx[place] = (last[run] != index).then_some(run);
        contexts.push(place as u32 + 1);
        most = most.max(place as u32 + 1);
    }
    (contexts, most)
}

fn step(of: &Restart, event: &Event<Of>, context: u32) -> Step {
    let number = |name: &str, number| (name.to_owned(), Argument::Number(number));
    let hctx = |queue: QueueId| ("hctx".to_owned(), Argument::Hctx(u32::from(queue.0) + 1, 1));
    let arguments = match event.of {
        Of::Insertion { request, queue } => vec![number("request", request), hctx(queue)],
        Of::Run(run) => vec![hctx(of.runs[run].queue), number("context", context)],
        Of::End(request) => vec![number("request", request)],
    };
    Step {
        action: event.action.to_owned(),
        arguments,
        observed: Vec::new(),
    }
}

fn constants(of: &Restart, mq: &BlkMq, contexts: u32) -> Vec<(String, String)> {
    let setting = Setting {
        requests: of.names.most.max(1) as u8,
        queues: of.items.len() as u8,
        contexts: contexts as u8,
        tags: mq.sets[0].queue_depth as u8,
        ..Setting::of_rule(mq.queue(QueueId(0)).settings.rules.restart)
    };
    let mut constants = setting.constants();
    constants.push(("Record".to_owned(), view::flag(true)));
    constants
}
