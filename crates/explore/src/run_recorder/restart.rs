//! A run as a schedule of `specs/Restart`, label by label: what happens to tags, marks and lists.
//!
//! Read first: specs/Restart/README.md, which says which label is which step.

mod kinds;
mod steps;

use blkmq::drive::{Follower, Ran, Who};
use blkmq::env::Cpu;
use blkmq::path::label::TagPut;
use blkmq::path::{Call, Frame, Next, RunPath, TagStage};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{Place, QueueId, RequestPool};
use blkmq::rules::RestartRule;
use blkmq::sbitmap::Sbitmap;
use blkmq::schedule::Schedule;
use blkmq::schedule::view::{self, RESTART as OBSERVED, View};

use super::names::Names;
use super::{FOLLOWED, STEPS_MAX, TOO_LONG, cpus};
use kinds::{Kind, Kinds};
pub(super) use steps::outside;
use steps::{Event, Of, ToCome};

/// Most requests that may be under way at once: as many as the explorer follows.
const REQUESTS_MAX: u32 = 8;

/// Values of [`OBSERVED`].
type Seen = [String; OBSERVED.len()];

/// What a level of a CPU is about.
#[derive(Clone, Debug, Default)]
struct LaneState {
    /// Hctxs that a path of it will run, by queue.
    owes: Vec<QueueId>,
    /// Runs under way: depth and number.
    runs: Vec<(usize, usize)>,
    /// The request whose end it is in.
    ending: Option<u32>,
}

/// A run of an hctx.
#[derive(Clone, Copy, Debug)]
struct Run {
    queue: QueueId,
    /// It has taken the dispatch list.
    started: bool,
}

/// A recording under way.
#[derive(Debug)]
pub(crate) struct Binding {
    kinds: Kinds,
    lanes: Vec<LaneState>,
    /// Work items that are to run, by queue.
    items: Vec<bool>,
    runs: Vec<Run>,
    names: Names,
    events: Vec<Event>,
    /// The last event lacks what it shows.
    open: bool,
    /// Free tags before the label.
    before: u32,
    /// Hctxs in line before it.
    waiting: usize,
    /// The end of a request walks over the hctxs of its queue alone (R0).
    flagged: bool,
    /// The schedule's variant.
    name: String,
    refused: Option<String>,
}

impl Binding {
    pub(super) fn new(mq: &BlkMq, name: &str) -> Binding {
        let disks = mq.queues.len();
        let rule = mq.queue(QueueId(0)).settings.rules.restart.rule;
        Binding {
            kinds: Kinds::new(),
            lanes: vec![LaneState::default(); cpus(mq) as usize * 3],
            items: vec![false; disks],
            runs: Vec::new(),
            names: Names::new(disks, REQUESTS_MAX),
            events: Vec::new(),
            open: false,
            before: 0,
            waiting: 0,
            flagged: rule == RestartRule::SameQueue,
            name: name.to_owned(),
            refused: None,
        }
    }

    /// The schedule of the whole run. `stalled`: how it ended.
    pub(super) fn schedule(&mut self, mq: &BlkMq, stalled: bool) -> Result<Schedule, String> {
        self.settle(mq);
        match &self.refused {
            Some(why) => Err(why.clone()),
            None => Ok(steps::schedule(self, mq, stalled)),
        }
    }

    fn refuse(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
        self.events = Vec::new();
    }

    /// Before a label: what the last one and its effects left is complete now.
    fn settle(&mut self, mq: &BlkMq) {
        if self.refused.is_some() {
            return;
        }
        if core::mem::take(&mut self.open) {
            let (seen, to_come) = (self.look(mq), self.to_come());
            if let Some(event) = self.events.last_mut() {
                event.seen = seen;
                event.to_come = to_come;
            }
        }
        self.before = free_tags(mq);
        self.waiting = mq.sets[0].waiting_count();
    }

    fn say(&mut self, action: &'static str, of: Of) {
        if self.open {
            self.refuse("a label was two steps");
        }
        if self.events.len() == STEPS_MAX {
            return self.refuse(TOO_LONG);
        }
        self.events.push(Event::new(action, of));
        self.open = true;
    }

    /// A request came into a list that others see.
    fn inserted(&mut self, mq: &BlkMq, who: Who, was: &Frame, scheduled: bool) {
        let Some(rq) = was.inserts() else {
            return self.refuse("requests were inserted from a plug; the specification has none");
        };
        let queue = was.queue();
        let (expected, action) = match scheduled {
            true => (Place::Elevator, "InsertSched"),
            false => (Place::Dispatch, "InsertBypass"),
        };
        let (place, hctx) = mq
            .queue(queue)
            .with_pool(|pool| (pool[rq].place, pool[rq].hctx));
        if hctx != FOLLOWED {
            return self.refuse("a request went to another hardware queue than the first");
        }
        if place != expected {
            return self.refuse("requests were merged; the specification has no merging");
        }
        let Some(request) = self.names.give(queue, rq, scheduled) else {
            return self.refuse("more than 8 requests were under way at once");
        };
        self.say(action, Of::Insertion { request, queue });
        self.lanes[who.context].owes.push(queue);
    }

    /// The end of a request begins. A flush that only lent its tag to another has no number.
    fn ends(&mut self, who: Who, was: &Frame) {
        if let Some(rq) = was.ends()
            && let Some(number) = self.names.of(was.queue(), rq)
        {
            self.lanes[who.context].ending = Some(number);
        }
    }

    /// A label of a run.
    fn run_label(
        &mut self,
        mq: &BlkMq,
        who: Who,
        (before, path): (&RunPath, &RunPath),
        (kind, after): (Kind, Kind),
        (next, cpu): (Next, &Cpu),
    ) {
        let queue = Frame::Run(*before).queue();
        let run = self.run_of(who, queue);
        let of = Of::Run(run);
        match kind {
            Kind::LooksDispatch if after == Kind::LooksWork => self.say("Look", of),
            Kind::LooksWork if next == Next::Done => self.say("LookEnd", of),
            Kind::PeeksDispatch if after != Kind::TakesDispatch => self.starts(run),
            Kind::TakesDispatch => self.starts(run),
            Kind::Step(action) => self.say(action, of),
            Kind::Tries(action) => self.tried(mq, before, (action, of), after == kind),
            Kind::Ahead if free_tags(mq) < self.before => self.say("Issue", of),
            Kind::HasWork if after != Kind::Picks => self.say("Ask", of),
            Kind::Picks => {
                let picked = path.in_hand().list.first();
                self.names.picked(queue, picked);
                self.say("Ask", of);
            }
            _ => {}
        }
        if next == Next::Done {
            let cut = matches!(kind, Kind::Nothing | Kind::Step(_)) && !cpu.outbox.is_empty();
            if cut && self.runs[run].started {
                self.refuse("a run was cut short; the specification's go on to their end");
            }
            self.lanes[who.context]
                .runs
                .retain(|&(_, known)| known != run);
        }
    }

    fn starts(&mut self, run: usize) {
        self.runs[run].started = true;
        self.say("Start", Of::Run(run));
    }

    /// A label of an attempt to get a tag for the head of the list; `searching`: it goes on.
    fn tried(
        &mut self,
        mq: &BlkMq,
        before: &RunPath,
        (action, of): (&'static str, Of),
        searching: bool,
    ) {
        if free_tags(mq) < self.before {
            return self.say(action, of);
        }
        let head = before.in_hand().list.first();
        let q = mq.queue(Frame::Run(*before).queue());
        let has_tag = head.is_some_and(|rq| q.with_pool(|pool| pool[rq].tag.is_some()));
        if !searching && !has_tag {
            // The second attempt is one step, however it ends.
            self.say(if action == "Issue" { "Miss" } else { action }, of);
        }
    }

    /// The run of this frame; the first label of a frame begins one.
    fn run_of(&mut self, who: Who, queue: QueueId) -> usize {
        let lane = &mut self.lanes[who.context];
        let known = lane.runs.iter().find(|&&(depth, _)| depth == who.depth);
        if let Some(&(_, run)) = known {
            return run;
        }
        let run = self.runs.len();
        lane.runs.push((who.depth, run));
        if let Some(at) = lane.owes.iter().position(|&owed| owed == queue) {
            lane.owes.remove(at);
        }
        self.runs.push(Run {
            queue,
            started: false,
        });
        run
    }

    /// A label of the end of a request.
    fn completion_label(
        &mut self,
        mq: &BlkMq,
        who: Who,
        queue: QueueId,
        (kind, over): (Kind, bool),
    ) {
        let free = free_tags(mq);
        let ending = self.lanes[who.context].ending;
        let action = match kind {
            Kind::PutsTag if free > self.before => "Free",
            Kind::PutsTag if ending.is_some_and(|number| self.names.is_freed(number)) => {
                match mq.sets[0].waiting_count() < self.waiting {
                    true => "Wake",
                    false => "Waking",
                }
            }
            Kind::Walk(action) => action,
            _ => return,
        };
        let Some(request) = ending else {
            return self.refuse("a request was merged, or a flush ended several sequences");
        };
        if action == "Free" {
            self.names.freed(request, queue);
        }
        self.say(action, Of::End(request));
        if matches!(kind, Kind::Walk(_)) && over {
            self.names.done(request);
            self.lanes[who.context].ending = None;
        }
    }

    /// What the block layer shows now.
    fn look(&mut self, mq: &BlkMq) -> Seen {
        let view = View { mq, hctxs: 1 };
        let names = &self.names;
        let number = |queue, _: &RequestPool, rq| names.of(queue, rq).unwrap_or(0);
        let set = &mq.sets[0];
        let seen = [
            view.tags(),
            view.restart(),
            // Which runs have begun is known when they are over.
            String::new(),
            view::tuple(set.driver.iter().take(1).map(line)),
            view::tuple(mq.queues.iter().map(|q| names.scheduled(q))),
            view.dispatch(number),
            view.queue_counts(),
            view.map_counts(),
            view::states(names.states(mq).into_iter()),
        ];
        if names.unknown(mq) {
            self.refuse("a request waits that no step inserted");
        }
        seen
    }

    /// The runs that are to come: for whole queues, and those that have not begun.
    fn to_come(&self) -> ToCome {
        let owed = |queue: QueueId| self.lanes.iter().any(|lane| lane.owes.contains(&queue));
        let queues = (0..self.items.len() as u8).map(QueueId);
        let asked = queues.map(|queue| self.items[queue.index()] || owed(queue));
        let runs = self.lanes.iter().flat_map(|lane| &lane.runs);
        let runs = runs.map(|&(_, run)| run);
        ToCome {
            asked: asked.collect(),
            runs: runs.filter(|&run| !self.runs[run].started).collect(),
        }
    }
}

impl Follower for Binding {
    fn before(&mut self, mq: &BlkMq, _frame: &Frame) {
        self.settle(mq);
    }

    fn behind(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        let Ran { who, was, is, next } = ran;
        if self.refused.is_some() {
            return;
        }
        let kind = self.kinds.of(was.label());
        // Behind its last label a path stands nowhere.
        let after = match next {
            Next::Done => Kind::Nothing,
            _ => self.kinds.of(is.label()),
        };
        match (kind, was, is) {
            (Kind::Refused(why), _, _) => self.refuse(why),
            (Kind::Inserts { scheduled }, _, _) => self.inserted(mq, who, was, scheduled),
            (Kind::Ends, _, _) => self.ends(who, was),
            (Kind::Picks, Frame::Run(before), _) if before.hctx() != FOLLOWED => {
                self.refuse("another hardware queue than the first was run");
            }
            (_, Frame::Run(before), _) if before.hctx() != FOLLOWED => {}
            (_, Frame::Run(before), Frame::Run(path)) => {
                self.run_label(mq, who, (before, path), (kind, after), (next, cpu));
            }
            (_, Frame::Complete(_), _) if other_hctx(was, mq) || counts_out(was) => {}
            (_, Frame::Complete(_), _) => {
                // With several hctxs R0's walk ends at others.
                let over = !matches!(after, Kind::Walk(_)) || self.flagged && other_hctx(is, mq);
                self.completion_label(mq, who, was.queue(), (kind, over));
            }
            _ => {}
        }
        if let (Next::Call, Some(Call::Run { queue, hctx, .. })) = (next, cpu.call)
            && hctx == FOLLOWED
        {
            if let Frame::Submit(_) = was {
                self.refuse("a task waited for a scheduler tag (queue.nr_requests)");
            }
            if !self.lanes[who.context].owes.contains(&queue) {
                self.lanes[who.context].owes.push(queue);
            }
        }
        if next == Next::Done && who.depth == 0 {
            self.lanes[who.context].owes.clear();
        }
    }

    fn granted(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}

    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}

    fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        self.items[queue.index()] = true;
        if delayed {
            self.refuse("a run was asked for after a delay; the specification has none");
        }
    }

    fn item_begins(&mut self, _mq: &BlkMq, context: usize, queue: QueueId) {
        self.items[queue.index()] = false;
        self.lanes[context].owes.push(queue);
    }
}

/// The next step takes a request off the count of those with tags: who counts is not in the
/// specification.
fn counts_out(frame: &Frame) -> bool {
    frame.tag_stage() == Some(TagStage::Put(TagPut::Uncount))
}

/// The walk is at an hctx that has no requests.
fn other_hctx(frame: &Frame, mq: &BlkMq) -> bool {
    frame.walks_at(mq).is_some_and(|(_, hctx)| hctx != FOLLOWED)
}

/// Free driver tags.
fn free_tags(mq: &BlkMq) -> u32 {
    let maps = mq.sets[0].driver.iter();
    maps.map(|map| map.depth() - map.busy_count()).sum()
}

/// Who waits for a tag of a map, in order of their numbers.
fn line(map: &Sbitmap) -> String {
    let mut line = Vec::new();
    view::waiting(map, |queue, hctx| line.push((queue, hctx)));
    line.sort_unstable();
    view::set(
        line.into_iter()
            .map(|(queue, hctx)| view::hctx_name(queue, hctx)),
    )
}
