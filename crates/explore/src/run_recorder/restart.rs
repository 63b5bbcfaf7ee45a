//! A run as a schedule of `specs/Restart`, label by label: tags, marks and lists.
//!
//! Read first: specs/Restart/README.md, which maps labels to steps; next: `restart/steps.rs`, which
//! turns labels into steps after the run.

mod steps;

use blkmq::drive::{Ran, Who};
use blkmq::env::Cpu;
use blkmq::path::label::TagPut;
use blkmq::path::{Call, Frame, Next, RunPath};
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{HctxId, Place, QueueId, RequestId, RequestPool};
use blkmq::rules::RestartRule;
use blkmq::sbitmap::Sbitmap;
use blkmq::schedule::Argument;
use blkmq::schedule::labels::{REFUSED, Row};
use blkmq::schedule::view::{self, View};

use super::names::Names;
use super::{FOLLOWED, Recorder, StepLog, Value, cpus, number};
use crate::restart::variables::{Beside, VARIABLES};
use crate::restart::{RUNS, TABLE};
use steps::ToCome;
pub(super) use steps::outside;

/// The most requests under way at once, as in the explorer.
const REQUESTS_MAX: u32 = 8;

/// The work of a level of a CPU.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Hctxs that one of its paths will run, by queue.
    owes: Vec<QueueId>,
    /// Runs under way: depth and number.
    runs: Vec<(usize, usize)>,
    ending: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    queue: QueueId,
    /// The run has taken the dispatch list.
    started: bool,
}

#[derive(Debug)]
pub(super) struct Restart {
    log: StepLog,
    /// Pending runs after each step.
    to_come: Vec<ToCome>,
    levels: Vec<Level>,
    /// Queued work items, by queue.
    items: Vec<bool>,
    runs: Vec<Run>,
    names: Names,
    /// Free tags before the label.
    free_before: u32,
    /// Hctxs that wait for a tag before the label.
    waiting_before: usize,
    /// The end of a request walks over the hctxs of its own queue only (R0).
    flagged: bool,
}

/// The row of the next label; a path at its end has none.
fn row_after(next: Next, is: &Frame) -> &'static Row {
    static NONE: Row = Row {
        action: None,
        step: None,
        shown: None,
        why: None,
    };
    match next {
        Next::Done => &NONE,
        _ => TABLE.row(is.label()),
    }
}

impl Restart {
    pub(super) fn new(mq: &BlkMq, name: &str) -> Restart {
        let disks = mq.queues.len();
        let rule = mq.queue(QueueId(0)).settings.rules.restart.rule;
        let names = Names::new(disks, REQUESTS_MAX);
        let first = look(mq, &names).expect("nothing waits before the run");
        let shown = VARIABLES.iter().map(|(_, shown, _)| *shown);
        Restart {
            log: StepLog::new((RUNS, name), shown.zip(first)),
            to_come: Vec::new(),
            levels: vec![Level::default(); cpus(mq) as usize * 3],
            items: vec![false; disks],
            runs: Vec::new(),
            names,
            free_before: 0,
            waiting_before: 0,
            flagged: rule == RestartRule::SameQueue,
        }
    }

    fn push<const N: usize>(&mut self, action: &'static str, of: [(&'static str, Argument); N]) {
        if self.log.open {
            self.log.refuse("a label was two steps");
        }
        self.log.push(action, of);
    }

    /// A step of a run. The end of all decides which context runs it.
    fn push_run(&mut self, action: &'static str, run: usize) {
        let of = [hctx_of(self.runs[run].queue), number(CONTEXT, run as u32)];
        self.push(action, of);
    }

    /// A request was inserted into a shared list.
    fn inserted(&mut self, mq: &BlkMq, who: Who, was: &Frame, action: &'static str) {
        let Some(rq) = was.inserts() else {
            let what = "requests were inserted from a plug; the specification has none";
            return self.log.refuse(what);
        };
        let queue = was.queue();
        let scheduled = action == "InsertSched";
        let expected = match scheduled {
            true => Place::Elevator,
            false => Place::Dispatch,
        };
        let (place, hctx) = mq
            .queue(queue)
            .with_pool(|pool| (pool[rq].place, pool[rq].hctx));
        if hctx != FOLLOWED {
            let what = "a request went to another hardware queue than the first";
            return self.log.refuse(what);
        }
        if place != expected {
            let what = "requests were merged; the specification has no merging";
            return self.log.refuse(what);
        }
        let Some(request) = self.names.give(queue, rq, scheduled) else {
            let what = "more than 8 requests were under way at once";
            return self.log.refuse(what);
        };
        self.push(action, [number("request", request), hctx_of(queue)]);
        self.levels[who.context].owes.push(queue);
    }

    /// The end of a request begins. A flush that used the tag of another request has no number.
    fn ends(&mut self, who: Who, was: &Frame) {
        if let Some(rq) = was.ends()
            && let Some(number) = self.names.of(was.queue(), rq)
        {
            self.levels[who.context].ending = Some(number);
        }
    }

    fn run_label(
        &mut self,
        mq: &BlkMq,
        who: Who,
        (before, path): (&RunPath, &RunPath),
        (row, after): (&'static Row, &'static Row),
        (next, cpu): (Next, &Cpu),
    ) {
        let queue = Frame::Run(*before).queue();
        let run = self.run_of(who, queue);
        let step = row.step.unwrap_or_default();
        let shown = row.shown.unwrap_or_default();
        match shown {
            "looks-dispatch" if after.shown == Some("looks-work") => self.push_run("Look", run),
            "looks-work" if next == Next::Done => self.push_run("LookEnd", run),
            "peeks-dispatch" if after.shown != Some("takes-dispatch") => self.starts(run),
            "takes-dispatch" => self.starts(run),
            "step" => self.push_run(step, run),
            "tries" => self.tried(mq, before, (step, run), after == row),
            "ahead" if free_tags(mq) < self.free_before => self.push_run(step, run),
            "has-work" if after.shown != Some("picks") => self.push_run(step, run),
            "picks" => {
                let picked = path.owned().list.first();
                self.names.picked(queue, picked);
                self.push_run(step, run);
            }
            _ => {}
        }
        if next == Next::Done {
            let cut = matches!(shown, "" | "step") && !cpu.outbox.is_empty();
            if cut && self.runs[run].started {
                let what = "a run was cut short; the specification's go on to their end";
                self.log.refuse(what);
            }
            self.levels[who.context]
                .runs
                .retain(|&(_, known)| known != run);
        }
    }

    fn starts(&mut self, run: usize) {
        self.runs[run].started = true;
        self.push_run("Start", run);
    }

    /// A label of an attempt to get a tag for the head of the list; `searching`: the attempt
    /// continues.
    fn tried(
        &mut self,
        mq: &BlkMq,
        before: &RunPath,
        (action, run): (&'static str, usize),
        searching: bool,
    ) {
        if free_tags(mq) < self.free_before {
            return self.push_run(action, run);
        }
        let head = before.owned().list.first();
        let q = mq.queue(Frame::Run(*before).queue());
        let has_tag = head.is_some_and(|rq| q.with_pool(|pool| pool[rq].tag.is_some()));
        if !searching && !has_tag {
            // The second attempt is one step, with or without a tag.
            self.push_run(if action == "Issue" { "Miss" } else { action }, run);
        }
    }

    /// The run of this frame; the first label of a frame begins a run.
    fn run_of(&mut self, who: Who, queue: QueueId) -> usize {
        let level = &mut self.levels[who.context];
        let known = level.runs.iter().find(|&&(depth, _)| depth == who.depth);
        if let Some(&(_, run)) = known {
            return run;
        }
        let run = self.runs.len();
        level.runs.push((who.depth, run));
        if let Some(at) = level.owes.iter().position(|&owed| owed == queue) {
            level.owes.remove(at);
        }
        self.runs.push(Run {
            queue,
            started: false,
        });
        run
    }

    /// A label of the end of a request; `over`: the next label is no longer part of it.
    fn completion_label(
        &mut self,
        mq: &BlkMq,
        who: Who,
        queue: QueueId,
        (row, over): (&'static Row, bool),
    ) {
        let free = free_tags(mq);
        let ending = self.levels[who.context].ending;
        let walks = row.shown == Some("walk");
        let action = match row.shown {
            Some("puts-tag") if free > self.free_before => "Free",
            Some("puts-tag") if ending.is_some_and(|number| self.names.is_freed(number)) => {
                match mq.sets[0].waiting_count() < self.waiting_before {
                    true => "Wake",
                    false => "Waking",
                }
            }
            Some("walk") => row.step.unwrap_or_default(),
            _ => return,
        };
        let Some(request) = ending else {
            let what = "a request was merged, or a flush ended several sequences";
            return self.log.refuse(what);
        };
        if action == "Free" {
            self.names.freed(request, queue);
        }
        self.push(action, [number("request", request)]);
        if walks && over {
            self.names.done(request);
            self.levels[who.context].ending = None;
        }
    }

    /// The pending runs: those of whole queues, and those that have not begun.
    fn runs_to_come(&self) -> ToCome {
        let owed = |queue: QueueId| self.levels.iter().any(|level| level.owes.contains(&queue));
        let queues = (0..self.items.len() as u16).map(QueueId);
        let asked = queues.map(|queue| self.items[queue.index()] || owed(queue));
        let runs = self.levels.iter().flat_map(|level| &level.runs);
        let runs = runs.map(|&(_, run)| run);
        ToCome {
            asked: asked.collect(),
            runs: runs.filter(|&run| !self.runs[run].started).collect(),
        }
    }
}

impl Recorder for Restart {
    fn log(&mut self) -> &mut StepLog {
        &mut self.log
    }

    fn settle(&mut self, mq: &BlkMq) {
        if self.log.open {
            self.to_come.push(self.runs_to_come());
        }
        self.log.settle(|| look(mq, &self.names));
        self.free_before = free_tags(mq);
        self.waiting_before = mq.sets[0].waiting_count();
    }

    fn ran(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        let Ran { who, was, is, next } = ran;
        let (row, after) = (TABLE.row(was.label()), row_after(next, is));
        match (row.shown.unwrap_or_default(), was, is) {
            (REFUSED, _, _) => self.log.refuse(row.why.unwrap_or_default()),
            ("inserts", _, _) => self.inserted(mq, who, was, row.step.unwrap_or_default()),
            ("ends", _, _) => self.ends(who, was),
            ("picks", Frame::Run(before), _) if before.hctx() != FOLLOWED => {
                let what = "another hardware queue than the first was run";
                self.log.refuse(what);
            }
            (_, Frame::Run(before), _) if before.hctx() != FOLLOWED => {}
            (_, Frame::Run(before), Frame::Run(path)) => {
                self.run_label(mq, who, (before, path), (row, after), (next, cpu));
            }
            (_, Frame::Complete(_), _) if other_hctx(was, mq) || counts_out(was) => {}
            (_, Frame::Complete(_), _) => {
                // With several hctxs the walk of R0 ends at others.
                let over = after.shown != Some("walk") || self.flagged && other_hctx(is, mq);
                self.completion_label(mq, who, was.queue(), (row, over));
            }
            _ => {}
        }
        if let (Next::Call, Some(Call::Run { queue, hctx, .. })) = (next, cpu.call)
            && hctx == FOLLOWED
        {
            if let Frame::Submit(_) | Frame::Execute(_) = was {
                let what = "a task waited for a scheduler tag (queue.nr_requests)";
                self.log.refuse(what);
            }
            if !self.levels[who.context].owes.contains(&queue) {
                self.levels[who.context].owes.push(queue);
            }
        }
        if next == Next::Done && who.depth == 0 {
            self.levels[who.context].owes.clear();
        }
    }

    fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        self.items[queue.index()] = true;
        if delayed {
            let what = "a run was asked for after a delay; the specification has none";
            self.log.refuse(what);
        }
    }

    fn item_begins(&mut self, _mq: &BlkMq, context: usize, queue: QueueId) {
        self.items[queue.index()] = false;
        self.levels[context].owes.push(queue);
    }

    fn end(&mut self, mq: &BlkMq) -> Result<Vec<(String, String)>, String> {
        Ok(steps::resolve(self, mq))
    }
}

/// An argument of a step of a run; its number is that of the run until all steps are there.
const CONTEXT: &str = "context";

fn hctx_of(queue: QueueId) -> (&'static str, Argument) {
    ("hctx", Argument::Hctx(u32::from(queue.0) + 1, 1))
}

/// The next step takes a request off the count of active requests, which the specification leaves
/// out.
fn counts_out(frame: &Frame) -> bool {
    frame.stage() == Some(TagPut::Uncount.name())
}

/// The walk is at an hctx without requests.
fn other_hctx(frame: &Frame, mq: &BlkMq) -> bool {
    frame.walks_at(mq).is_some_and(|(_, hctx)| hctx != FOLLOWED)
}

fn free_tags(mq: &BlkMq) -> u32 {
    let maps = mq.sets[0].driver.iter();
    maps.map(|map| map.depth() - map.busy_count()).sum()
}

/// The variables that runs show.
fn look(mq: &BlkMq, names: &Names) -> Result<Vec<Value>, &'static str> {
    if names.unknown(mq) {
        return Err("a request waits that no step inserted");
    }
    let view = View { mq, hctxs: 1 };
    let values = VARIABLES.iter();
    let values = values.map(|(_, _, read)| read(&view, &Recorded { mq, names }));
    Ok(values.map(Value::Text).collect())
}

struct Recorded<'a> {
    mq: &'a BlkMq,
    names: &'a Names,
}

impl Beside for Recorded<'_> {
    fn number(&self, queue: QueueId, _pool: &RequestPool, rq: RequestId) -> u32 {
        self.names.of(queue, rq).unwrap_or(0)
    }

    /// Before the run. Later only the ends of runs show which of them have begun.
    fn pending(&self, _queue: QueueId, _hctx: HctxId) -> bool {
        false
    }

    /// In order of their numbers.
    fn waiters(&self, map: &Sbitmap) -> String {
        let mut waiting = Vec::new();
        view::waiting(map, |queue, hctx| waiting.push((queue, hctx)));
        waiting.sort_unstable();
        let names = waiting.into_iter();
        view::set(names.map(|(queue, hctx)| view::hctx_name(queue, hctx)))
    }

    fn scheduled(&self, q: &RequestQueue) -> Vec<u32> {
        self.names.scheduled(q)
    }

    fn states(&self) -> Vec<(u32, &'static str)> {
        self.names.states(self.mq)
    }
}
