//! From what was noted to a schedule: which run is which context, and what each step changed.

use blkmq::elevator::SchedulerKind;
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{HctxId, QueueId};
use blkmq::rules::{
    AskAfter, LineEntry, LineRetry, Pull, PutBack, Recheck, RestartRule, Rules, TagLine, WakeScan,
    WokenRun,
};
use blkmq::schedule::view::RESTART as OBSERVED;
use blkmq::schedule::{Argument, Schedule, Step, view};
use blkmq::tags::TagSet;

use super::{Binding, Seen};
use crate::run_recorder::{first_missing, show_changes};

/// What of the specification a step is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// A request that comes to a queue.
    Insertion { request: u32, queue: QueueId },
    /// A run, by its number.
    Run(usize),
    /// The end of a request.
    End(u32),
}

/// A step as it was noted.
#[derive(Clone, Debug)]
pub(super) struct Event {
    action: &'static str,
    of: Of,
    pub(super) seen: Seen,
    pub(super) to_come: ToCome,
}

impl Event {
    pub(super) fn new(action: &'static str, of: Of) -> Event {
        Event {
            action,
            of,
            seen: Seen::default(),
            to_come: ToCome::default(),
        }
    }
}

/// Runs that are to come behind a step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ToCome {
    /// By queue: a work item is to run, or a path will run the hctx.
    pub(super) asked: Vec<bool>,
    /// Runs that have not begun, though their first labels may have run.
    pub(super) runs: Vec<usize>,
}

impl ToCome {
    /// Those of one queue; `began` tells of runs that ended without a real beginning.
    fn of(&self, binding: &Binding, queue: usize, began: impl Fn(usize) -> bool) -> bool {
        let mut runs = self.runs.iter();
        let mine = |&run: &usize| binding.runs[run].queue.index() == queue && !began(run);
        self.asked[queue] || runs.any(mine)
    }
}

/// Where the runs to come stand in what is seen.
const PENDING: usize = 2;

/// Most tags of which every queue may have all: fair shares begin above it.
const TAGS_MAX: u32 = 4;
/// Most queues: as many hctxs as the explorer follows.
const QUEUES_MAX: usize = 8;

/// Why no run of this block layer is one of the specification.
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
            wakes_all && restart.line != TagLine::WakeOne && restart.entry != LineEntry::AnyAttempt,
            "a tag that wakes all who wait",
        ),
        (
            restart.ask != AskAfter::NoneLeft
                && restart.retry == LineRetry::Unlocked
                && restart.put_back == PutBack::Head
                && restart.pull == Pull::One,
            "restarting as in v4.11 to v4.15 (queue.restart)",
        ),
    ];
    first_missing(&checks)
}

/// The schedule of what was noted.
pub(super) fn schedule(binding: &Binding, mq: &BlkMq, stalled: bool) -> Schedule {
    let events = resolved(binding);
    let (contexts, most) = contexts(binding, &events);
    let mut steps = Vec::with_capacity(events.len());
    let mut before = first(binding, mq);
    for (event, context) in events.iter().zip(&contexts) {
        let mut step = event.step(binding, *context);
        show_changes(&mut step, &OBSERVED, &before, &event.seen);
        before.clone_from(&event.seen);
        steps.push(step);
    }
    Schedule {
        spec: "RestartLabels".to_owned(),
        variant: binding.name.clone(),
        shows: match stalled {
            true => "NoStall violated",
            false => "NeverAllDone violated",
        }
        .to_owned(),
        settings: constants(binding, mq, most),
        steps,
        repeats_from: None,
    }
}

/// What the specification's first state shows.
fn first(binding: &Binding, mq: &BlkMq) -> Seen {
    let queues = binding.items.len();
    let of_hctx = |value: &str| of_hctxs((0..queues).map(|_| value.to_owned()));
    let of_queue = |value: &str| view::tuple((0..queues).map(|_| value.to_owned()));
    [
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

/// What the labels of runs come to: one that looked and found nothing began with the first look and
/// asked in vain; of one that began, the look before was no step.
fn resolved(binding: &Binding) -> Vec<Event> {
    let mut looked = vec![None; binding.runs.len()];
    let mut began = vec![None; binding.runs.len()];
    for (index, event) in binding.events.iter().enumerate() {
        match (event.action, event.of) {
            ("Look", Of::Run(run)) => looked[run] = Some(index),
            ("LookEnd", Of::Run(run)) => began[run] = looked[run],
            _ => {}
        }
    }
    let mut events = Vec::with_capacity(binding.events.len());
    for (index, event) in binding.events.iter().enumerate() {
        let mut event = event.clone();
        let since = |run: usize| began[run].is_some_and(|from| from <= index);
        let pending: Vec<bool> = (0..binding.items.len())
            .map(|queue| event.to_come.of(binding, queue, since))
            .collect();
        event.seen[PENDING] = of_hctxs(pending.iter().map(|&pending| view::flag(pending)));
        if let Of::Run(run) = event.of {
            match event.action {
                "Look" if began[run].is_none() => continue,
                "Look" => event.action = "Start",
                "LookEnd" => event.action = "Ask",
                _ => {}
            }
            if event.action == "Start" && pending[binding.runs[run].queue.index()] {
                event.action = "StartOne";
            }
        }
        events.push(event);
    }
    events
}

/// Values of the queues' hctxs, as a function.
fn of_hctxs(values: impl Iterator<Item = String>) -> String {
    let each = values.enumerate();
    let each = each.map(|(queue, value)| {
        let name = view::hctx_name(QueueId(queue as u8), HctxId(0));
        format!("{name} :> {value}")
    });
    format!("({})", each.collect::<Vec<_>>().join(" @@ "))
}

/// The context of each event, the first idle one of its hctx, and how many an hctx has at most.
fn contexts(binding: &Binding, events: &[Event]) -> (Vec<u32>, u32) {
    let mut last = vec![0; binding.runs.len()];
    for (index, event) in events.iter().enumerate() {
        if let Of::Run(run) = event.of {
            last[run] = index;
        }
    }
    let mut busy: Vec<Vec<Option<usize>>> = vec![Vec::new(); binding.items.len()];
    let (mut contexts, mut most) = (Vec::with_capacity(events.len()), 1);
    for (index, event) in events.iter().enumerate() {
        let Of::Run(run) = event.of else {
            contexts.push(0);
            continue;
        };
        let of_hctx = &mut busy[binding.runs[run].queue.index()];
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

impl Event {
    fn step(&self, binding: &Binding, context: u32) -> Step {
        let number = |name: &str, number| (name.to_owned(), Argument::Number(number));
        let hctx = |queue: QueueId| ("hctx".to_owned(), Argument::Hctx(u32::from(queue.0) + 1, 1));
        let arguments = match self.of {
            Of::Insertion { request, queue } => vec![number("request", request), hctx(queue)],
            Of::Run(run) => vec![hctx(binding.runs[run].queue), number("context", context)],
            Of::End(request) => vec![number("request", request)],
        };
        Step {
            action: self.action.to_owned(),
            arguments,
            observed: Vec::new(),
        }
    }
}

/// The specification's constants.
fn constants(binding: &Binding, mq: &BlkMq, contexts: u32) -> Vec<(String, String)> {
    let restart = mq.queue(QueueId(0)).settings.rules.restart;
    let rule = RestartRule::NAMES
        .into_iter()
        .find(|(_, rule)| *rule == restart.rule);
    let policy = match restart.ask {
        AskAfter::Never => "strict",
        AskAfter::NoneIssued => "rc4",
        AskAfter::SomeIssued | AskAfter::NoneLeft => "later",
    };
    let wait = match restart.line {
        TagLine::Nowhere => "none",
        TagLine::WakeOne => "one",
        TagLine::WakeAll => "all",
    };
    let entry = match restart.entry {
        LineEntry::Kept => "kept",
        LineEntry::SecondAttempt => "second",
        LineEntry::AnyAttempt => "any",
    };
    let recheck = match restart.recheck {
        Recheck::Unpromised => "4.14",
        Recheck::LeftLine => "4.15",
    };
    let woken = match restart.woken {
        WokenRun::Always => "always",
        WokenRun::IfNeeded => "needed",
    };
    let requests: Vec<String> = (1..=binding.names.most.max(1))
        .map(|r| r.to_string())
        .collect();
    let text = |value: &str| format!("\"{value}\"");
    [
        ("Requests", format!("{{{}}}", requests.join(", "))),
        ("Queues", binding.items.len().to_string()),
        ("Hctxs", "1".to_owned()),
        ("Contexts", contexts.to_string()),
        ("Tags", mq.sets[0].queue_depth.to_string()),
        ("Limit", "0".to_owned()),
        ("RestartRule", text(rule.map_or("", |(name, _)| name))),
        ("Policy", text(policy)),
        ("WaitRule", text(wait)),
        ("EntryRule", text(entry)),
        ("Recheck", text(recheck)),
        ("WokenRun", text(woken)),
        ("MarkSplit", view::flag(restart.rule.counts())),
        ("DriverReruns", view::flag(false)),
        ("LowestFirst", view::flag(false)),
        ("Record", view::flag(true)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
