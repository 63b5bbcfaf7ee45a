//! From the recorded labels to a schedule: assigns runs to contexts, and lists what each step
//! changed.

use std::rc::Rc;

use blkmq::elevator::SchedulerKind;
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::QueueId;
use blkmq::rules::{AskAfter, Pull, PutBack, Rules, TagWait, WaitEntry, WaitRetry, WakeScan};
use blkmq::schedule::Argument;
use blkmq::schedule::view::{self, View};
use blkmq::tags::TagSet;

use super::{CONTEXT, Restart};
use crate::restart::Setting;
use crate::run_recorder::first_missing;
use crate::run_recorder::step_log::{Event, Value, number};

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

/// Decides what only the whole run shows of its steps, and returns the constants.
pub(super) fn resolve(of: &mut Restart, mq: &BlkMq) -> Vec<(String, String)> {
    let mut events = resolved(of, View { mq, hctxs: 1 });
    let contexts = set_contexts(of, &mut events);
    of.log.events = events;
    let setting = Setting {
        requests: of.names.most.max(1) as u8,
        queues: of.items.len() as u8,
        contexts: contexts as u8,
        tags: mq.sets[0].queue_depth as u8,
        ..Setting::of_rule(mq.queue(QueueId(0)).settings.rules.restart)
    };
    setting.constants()
}

/// The run that a step belongs to.
fn run_of(event: &Event) -> Option<usize> {
    match event.arguments[..] {
        [_, (CONTEXT, Argument::Number(run))] => Some(run as usize),
        _ => None,
    }
}

/// Decides which labels of runs are steps: a run that found nothing began with its first look, and
/// asked without success; if a run began, its earlier looks are no steps.
fn resolved(of: &Restart, view: View<'_>) -> Vec<Event> {
    let mut looked = vec![None; of.runs.len()];
    let mut began = vec![None; of.runs.len()];
    for (index, event) in of.log.events.iter().enumerate() {
        match (event.action, run_of(event)) {
            ("Look", Some(run)) => looked[run] = Some(index),
            ("LookEnd", Some(run)) => began[run] = looked[run],
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
        let shown = view.of_hctx(|queue, _| view::flag(pending[queue.index()]));
        event.seen[PENDING] = Rc::new(Value::Text(shown));
        if let Some(run) = run_of(&event) {
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

/// Gives each step of a run its context, which is the first idle one of its hctx. Returns the most
/// contexts of any hctx.
fn set_contexts(of: &Restart, events: &mut [Event]) -> usize {
    let mut last = vec![0; of.runs.len()];
    for (index, event) in events.iter().enumerate() {
        if let Some(run) = run_of(event) {
            last[run] = index;
        }
    }
    let mut busy: Vec<Vec<Option<usize>>> = vec![Vec::new(); of.items.len()];
    for (index, event) in events.iter_mut().enumerate() {
        let Some(run) = run_of(event) else { continue };
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
        event.arguments[1] = number(CONTEXT, place as u32 + 1);
    }
    busy.iter().map(Vec::len).max().unwrap_or(0).max(1)
}
