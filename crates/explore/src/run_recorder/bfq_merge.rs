//! Runs of BFQ as steps of `specs/BfqMerge`.

use blkmq::elevator::Elevator;
use blkmq::elevator::bfq::{CreationOutcome, MergeEvent, MergeRecord as BfqEvent, SeenQueue};
use blkmq::queue::BlkMq;
use blkmq::request::IoContextId;
use blkmq::rules::{FairQueueing, StableMerge};

use super::merging::{MergeEvents, QUEUE, Steps};
use super::step_log::{Of, Value};
use crate::bfq_merge::{RUNS, Setting};

/// A planned merge that no process has followed yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// With the close queue in this slot.
    Close(u32),
    Later,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Named {
    /// The slot that the queue has, or had.
    place: u32,
    /// The slot of `new_bfqq`, and the number of the queue that was there then.
    new: Option<(u32, i32)>,
}

/// BFQ's queues as the recorder sees them.
#[derive(Debug)]
pub(crate) struct BfqMerges {
    rules: FairQueueing,
    groups: usize,
    queues: Vec<Named>,
    /// The result of the creation that is under way.
    fate: Option<CreationOutcome>,
    plan: Option<Plan>,
    /// A queue was merged at its creation.
    early: bool,
    /// A queue was to be merged later.
    later: bool,
    /// The group of each process that has left the first one.
    moved: Vec<(i32, u16)>,
}

impl MergeEvents for BfqMerges {
    type Event = BfqEvent;
    const SPEC: (&'static str, &'static str) = ("BfqMerge", RUNS);

    fn is_there(mq: &BlkMq) -> bool {
        matches!(mq.queue(QUEUE).elevator, Elevator::Bfq(_))
    }

    fn start(mq: &BlkMq) -> Result<BfqMerges, String> {
        let q = mq.queue(QUEUE);
        let Elevator::Bfq(shared) = &q.elevator else {
            return Err("bfq as the scheduler (queue.scheduler)".to_owned());
        };
        let rules = &q.settings.rules.fair_queueing;
        let needs = [
            (mq.queues.len() == 1, "one disk (device.nr_devices)"),
            (
                rules.stable_merge != StableMerge::Never,
                "rules with stable merging (queue.rules of v5.13 or later)",
            ),
            (
                q.settings.access_ranges.len() < 2,
                "a drive with one actuator",
            ),
        ];
        if let Some(missing) = super::first_missing(&needs) {
            return Err(missing);
        }
        shared.policy.adjust(|bfq| bfq.merge_events.enable());
        Ok(BfqMerges {
            rules: *rules,
            groups: q.settings.submitters.groups.len(),
            queues: Vec::new(),
            fate: None,
            plan: None,
            early: false,
            later: false,
            moved: Vec::new(),
        })
    }

    fn take(mq: &BlkMq) -> Option<Vec<BfqEvent>> {
        let Elevator::Bfq(shared) = &mq.queue(QUEUE).elevator else {
            return None;
        };
        shared.policy.adjust(|bfq| bfq.merge_events.take())
    }

    fn note(&mut self, event: &BfqEvent, out: &mut Steps) -> Result<(), &'static str> {
        match event.what {
            MergeEvent::CreationDecided(created) => self.fate = Some(created),
            MergeEvent::Planned(_, close) => self.plan = Some(Plan::Close(close)),
            MergeEvent::PlannedForGood => self.plan = Some(Plan::Later),
            MergeEvent::Got(process) => return self.gets(process, event, out),
            MergeEvent::Took(process, q) => {
                if self.is_numbered(event, q) {
                    let number = out.number_of(process);
                    out.submits(number);
                    self.push("Submit", &[("process", number)], event, out);
                }
            }
            MergeEvent::Put(q) => {
                if let Some(queue) = self.number(q) {
                    self.push("Complete", &[("queue", queue)], event, out);
                }
            }
            MergeEvent::GaveUp(process) => self.of_process("Abort", process, event, out),
            MergeEvent::Went(process) => self.went(process, event, out),
            MergeEvent::Carried(process, q) => {
                if self.plan.is_some() {
                    return Err(
                        "a request went to the queue that another one is to become part \
                                of, and its process did not; the specification has no such step",
                    );
                }
                let queue = self.number(q).expect("it is a process's queue");
                let process = out.number_of(process);
                let arguments = &[("process", process), ("queue", queue)];
                self.push("Carry", arguments, event, out);
            }
            MergeEvent::Left(process) => {
                self.born(event.processes[process.0 as usize].slot, out);
                self.of_process("Leave", process, event, out);
            }
            MergeEvent::Kept(process) => self.of_process("Keep", process, event, out),
            MergeEvent::Exited(process) => {
                if let Some(number) = out.exits(process) {
                    self.moved.retain(|&(moved, _)| moved != number);
                    self.push("Exit", &[("process", number)], event, out);
                }
            }
            MergeEvent::Moved(process, group) => self.moves(process, group, event, out),
        }
        Ok(())
    }

    fn constants(&self) -> Vec<(String, String)> {
        let setting = Setting {
            later: !self.early,
            early: self.early,
            ..Setting::of_rules(&self.rules)
        };
        let mut constants = setting.rule_constants();
        // A run may have more groups than are explored.
        constants[0].1 = self.groups.to_string();
        constants
    }
}

impl BfqMerges {
    /// A process has got its queue.
    fn gets(
        &mut self,
        process: IoContextId,
        event: &BfqEvent,
        out: &mut Steps,
    ) -> Result<(), &'static str> {
        let fate = self.fate.take().expect("its creation was recorded before");
        self.plan = None;
        self.early |= fate == CreationOutcome::Merged;
        self.later |= fate == CreationOutcome::Later;
        if self.early && self.later {
            return Err(
                "queues that were created together were merged at once and later: what \
                        the device does was learned meanwhile; a longer ramp may help, and a \
                        device without queueing",
            );
        }
        let slot = event.processes[process.0 as usize].slot;
        // A queue that was merged at its creation is already freed.
        let gone = slot.filter(|&q| fate == CreationOutcome::Merged && self.is_numbered(event, q));
        self.born(slot.filter(|_| gone.is_none()), out);
        let action = match fate {
            CreationOutcome::Alone => "Create",
            CreationOutcome::Last => "CreateLast",
            CreationOutcome::Later => "CreateLater",
            CreationOutcome::Merged => "CreateMerged",
        };
        self.of_process(action, process, event, out);
        Ok(())
    }

    /// A queue was created; none: it is already freed.
    fn born(&mut self, place: Option<u32>, out: &mut Steps) {
        out.born += 1;
        self.queues.push(Named {
            place: place.unwrap_or(u32::MAX),
            new: None,
        });
    }

    /// A process changed to the queue that `new_bfqq` names.
    fn went(&mut self, process: IoContextId, event: &BfqEvent, out: &mut Steps) {
        match self.plan.take() {
            None => self.of_process("Redirect", process, event, out),
            Some(Plan::Later) => self.of_process("MergeLater", process, event, out),
            Some(Plan::Close(close)) => {
                let close = self.number(close).expect("it is a process's queue");
                let process = out.number_of(process);
                let arguments = &[("process", process), ("close", close)];
                self.push("Merge", arguments, event, out);
            }
        }
    }

    fn moves(&mut self, process: IoContextId, group: u16, event: &BfqEvent, out: &mut Steps) {
        let number = out.known(process);
        let before = self.moved.iter().find(|&&(moved, _)| Some(moved) == number);
        if before.map_or(0, |&(_, group)| group) == group {
            return;
        }
        let number = out.number_of(process);
        self.moved.retain(|&(moved, _)| moved != number);
        self.moved.push((number, group));
        let arguments = &[("process", number), ("group", i32::from(group) + 1)];
        self.push("Move", arguments, event, out);
    }

    /// The number of the last queue in a slot.
    fn number(&self, place: u32) -> Option<i32> {
        let mut named = self.queues.iter();
        let at = named.rposition(|queue| queue.place == place)?;
        Some(at as i32 + 1)
    }

    /// A queue of a process with a number is in this slot.
    fn is_numbered(&self, event: &BfqEvent, place: u32) -> bool {
        let seen = event.queues.get(place as usize).copied().flatten();
        self.number(place).is_some() && seen.is_some_and(|seen| seen.sync)
    }

    fn of_process(
        &mut self,
        action: &'static str,
        process: IoContextId,
        event: &BfqEvent,
        out: &mut Steps,
    ) {
        let number = out.number_of(process);
        self.push(action, &[("process", number)], event, out);
    }

    /// A live queue of a process, by its number.
    fn seen<'a>(&self, event: &'a BfqEvent, at: usize) -> Option<&'a SeenQueue> {
        let place = self.queues[at].place;
        let own = self.number(place) == Some(at as i32 + 1);
        let seen = event.queues.get(place as usize)?.as_ref()?;
        (own && seen.sync).then_some(seen)
    }

    /// Numbers of the queues that `new_bfqq` names, as they were when it was set: the slot may hold
    /// another queue by now.
    fn follow_plans(&mut self, event: &BfqEvent) {
        for at in 0..self.queues.len() {
            let planned = self.seen(event, at).and_then(|seen| seen.new);
            let known = self.queues[at].new.map(|(place, _)| place);
            if planned != known {
                let number = |place| Some((place, self.number(place)?));
                self.queues[at].new = planned.and_then(number);
            }
        }
    }

    fn push(
        &mut self,
        action: &'static str,
        arguments: &[(&'static str, i32)],
        event: &BfqEvent,
        out: &mut Steps,
    ) {
        self.follow_plans(event);
        let numbered = |place: Option<u32>| place.and_then(|p| self.number(p)).unwrap_or(0);
        let of_process = |place: &dyn Fn(IoContextId) -> Option<u32>| {
            let values = out.of_processes(|process| numbered(place(process)));
            Value::Numbers(Of::Process, values, 0)
        };
        let of_queues = |value: &dyn Fn(usize, &SeenQueue) -> i32| {
            let each = 0..self.queues.len();
            let values = each.map(|at| self.seen(event, at).map_or(0, |seen| value(at, seen)));
            Value::Numbers(Of::Queue, values.collect(), 0)
        };
        let process = |process: IoContextId| event.processes.get(process.0 as usize);
        let created = event.created.iter().map(|&place| numbered(place));
        let seen = vec![
            ("slot", of_process(&|p| process(p)?.slot)),
            ("candidate", of_process(&|p| process(p)?.candidate)),
            (
                "born",
                Value::Numbers(Of::All, vec![self.queues.len() as i32], 0),
            ),
            ("ref", of_queues(&|_, seen| seen.references)),
            ("stable", of_queues(&|_, seen| seen.stable)),
            (
                "new",
                of_queues(&|at, _| self.queues[at].new.map_or(0, |(_, number)| number)),
            ),
            ("io", of_queues(&|_, seen| seen.requests)),
            (
                "owner",
                of_queues(&|_, seen| {
                    let owner = seen.owner.and_then(|p| out.known(IoContextId(p)));
                    owner.unwrap_or(0)
                }),
            ),
            (
                "created",
                Value::Numbers(Of::Group(self.groups), created.collect(), 0),
            ),
        ];
        out.push(action, arguments, seen);
    }
}
