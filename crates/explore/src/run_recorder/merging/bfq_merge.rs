//! BFQ's runs as steps of `specs/BfqMerge`.

use blkmq::elevator::Elevator;
use blkmq::elevator::bfq::{Created, Happened, SeenQueue, Told};
use blkmq::queue::BlkMq;
use blkmq::request::IoContextId;
use blkmq::rules::StableMerge;
use blkmq::schedule::view;

use super::schedule_writer::{Of, Seen};
use super::{QUEUE, ScheduleWriter, Teller};

/// A plan that nobody has followed yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// With the queue in this place, which is close.
    Close(u32),
    /// With the candidate.
    Later,
}

/// A queue by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Named {
    /// Where it is, or was.
    place: u32,
    /// Where its processes are to go: the place, and the number of the queue that was there then.
    new: Option<(u32, i32)>,
}

/// What is known of BFQ's queues.
#[derive(Debug)]
pub(crate) struct Merges {
    chain_to_tail: bool,
    puts_candidate: bool,
    groups: usize,
    queues: Vec<Named>,
    /// What becomes of the queue that is being created.
    fated: Option<Created>,
    plan: Option<Plan>,
    /// Some queue was merged at its creation.
    early: bool,
    /// Some was to be merged later.
    later: bool,
    /// The group of each process that is not in the first.
    moved: Vec<(i32, u16)>,
}

impl Teller for Merges {
    type Told = Told;
    const SPEC: &'static str = "BfqMerge";

    fn is_there(mq: &BlkMq) -> bool {
        matches!(mq.queue(QUEUE).elevator, Elevator::Bfq(_))
    }

    fn listen(mq: &BlkMq) -> Result<Merges, String> {
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
        if let Some(missing) = crate::run_recorder::first_missing(&needs) {
            return Err(missing);
        }
        shared.locked.policy.adjust(|bfq| bfq.told.listen());
        Ok(Merges {
            chain_to_tail: rules.chain_to_tail,
            puts_candidate: rules.puts_candidate,
            groups: q.settings.submitters.groups.len(),
            queues: Vec::new(),
            fated: None,
            plan: None,
            early: false,
            later: false,
            moved: Vec::new(),
        })
    }

    fn take(mq: &BlkMq) -> Option<Vec<Told>> {
        let Elevator::Bfq(shared) = &mq.queue(QUEUE).elevator else {
            return None;
        };
        shared.locked.policy.adjust(|bfq| bfq.told.take())
    }

    fn note(&mut self, told: &Told, out: &mut ScheduleWriter) -> Result<(), &'static str> {
        match told.what {
            Happened::Fated(created) => self.fated = Some(created),
            Happened::Planned(_, close) => self.plan = Some(Plan::Close(close)),
            Happened::PlannedForGood => self.plan = Some(Plan::Later),
            Happened::Got(process) => return self.gets(process, told, out),
            Happened::Took(process, q) => {
                if self.is_numbered(told, q) {
                    let number = out.number_of(process);
                    out.submits(number);
                    self.say("Submit", vec![("process", number)], told, out);
                }
            }
            Happened::Put(q) => {
                if let Some(queue) = self.number(q) {
                    self.say("Complete", vec![("queue", queue)], told, out);
                }
            }
            Happened::GaveUp(process) => self.of_process("Abort", process, told, out),
            Happened::Went(process) => self.went(process, told, out),
            Happened::Carried(process, q) => {
                if self.plan.is_some() {
                    return Err(
                        "a request went to the queue that another one is to become part \
                                of, and its process did not; the specification has no such step",
                    );
                }
                let queue = self.number(q).expect("it is a process's queue");
                let process = out.number_of(process);
                let arguments = vec![("process", process), ("queue", queue)];
                self.say("Carry", arguments, told, out);
            }
            Happened::Left(process) => {
                self.born(told.processes[process.0 as usize].slot, out);
                self.of_process("Leave", process, told, out);
            }
            Happened::Kept(process) => self.of_process("Keep", process, told, out),
            Happened::Exited(process) => {
                if let Some(number) = out.exits(process) {
                    self.moved.retain(|&(moved, _)| moved != number);
                    self.say("Exit", vec![("process", number)], told, out);
                }
            }
            Happened::Moved(process, group) => self.moves(process, group, told, out),
        }
        Ok(())
    }

    fn rules(&self) -> Vec<(&'static str, String)> {
        let text = |value: &str| format!("\"{value}\"");
        let tail = self.chain_to_tail;
        vec![
            ("Groups", self.groups.to_string()),
            ("Stable", text(if self.early { "early" } else { "later" })),
            ("Cancel", view::flag(true)),
            ("PlannedFirst", view::flag(tail)),
            ("Follow", text(if tail { "tail" } else { "link" })),
            ("KeepsPlanned", view::flag(!tail)),
            ("OwnsPlanned", view::flag(!tail)),
            ("SameGroup", view::flag(tail)),
            ("Counted", view::flag(true)),
            ("Detach", text("first")),
            ("MoveClears", view::flag(true)),
            ("PutsReplaced", view::flag(self.puts_candidate)),
            ("NotesShort", view::flag(false)),
            ("IdleClose", view::flag(true)),
            ("Carries", view::flag(true)),
            ("Record", view::flag(true)),
        ]
    }
}

impl Merges {
    /// A process has got its queue.
    fn gets(
        &mut self,
        process: IoContextId,
        told: &Told,
        out: &mut ScheduleWriter,
    ) -> Result<(), &'static str> {
        let fated = self.fated.take().expect("it was told what becomes of it");
        self.plan = None;
        self.early |= fated == Created::Merged;
        self.later |= fated == Created::Later;
        if self.early && self.later {
            return Err(
                "queues that were created together were merged at once and later: what \
                        the device does was learned meanwhile; a longer ramp may help, and a \
                        device without queueing",
            );
        }
        let slot = told.processes[process.0 as usize].slot;
        // One that was merged at once is gone already.
        let gone = slot.filter(|&q| fated == Created::Merged && self.is_numbered(told, q));
        self.born(slot.filter(|_| gone.is_none()), out);
        let action = match fated {
            Created::Alone => "Create",
            Created::Last => "CreateLast",
            Created::Later => "CreateLater",
            Created::Merged => "CreateMerged",
        };
        self.of_process(action, process, told, out);
        Ok(())
    }

    /// A queue was created; none: it is gone already.
    fn born(&mut self, place: Option<u32>, out: &mut ScheduleWriter) {
        out.born += 1;
        self.queues.push(Named {
            place: place.unwrap_or(u32::MAX),
            new: None,
        });
    }

    /// A process went where it is planned.
    fn went(&mut self, process: IoContextId, told: &Told, out: &mut ScheduleWriter) {
        match self.plan.take() {
            None => self.of_process("Redirect", process, told, out),
            Some(Plan::Later) => self.of_process("MergeLater", process, told, out),
            Some(Plan::Close(close)) => {
                let close = self.number(close).expect("it is a process's queue");
                let process = out.number_of(process);
                let arguments = vec![("process", process), ("close", close)];
                self.say("Merge", arguments, told, out);
            }
        }
    }

    fn moves(&mut self, process: IoContextId, group: u16, told: &Told, out: &mut ScheduleWriter) {
        let number = out.known(process);
        let before = self.moved.iter().find(|&&(moved, _)| Some(moved) == number);
        if before.map_or(0, |&(_, group)| group) == group {
            return;
        }
        let number = out.number_of(process);
        self.moved.retain(|&(moved, _)| moved != number);
        self.moved.push((number, group));
        let arguments = vec![("process", number), ("group", i32::from(group) + 1)];
        self.say("Move", arguments, told, out);
    }

    /// The number of the queue in a place: the last one that was there.
    fn number(&self, place: u32) -> Option<i32> {
        let mut named = self.queues.iter();
        let at = named.rposition(|queue| queue.place == place)?;
        Some(at as i32 + 1)
    }

    /// A process's queue that has a number is in this place.
    fn is_numbered(&self, told: &Told, place: u32) -> bool {
        let seen = told.queues.get(place as usize).copied().flatten();
        self.number(place).is_some() && seen.is_some_and(|seen| seen.sync)
    }

    fn of_process(
        &mut self,
        action: &'static str,
        process: IoContextId,
        told: &Told,
        out: &mut ScheduleWriter,
    ) {
        let number = out.number_of(process);
        self.say(action, vec![("process", number)], told, out);
    }

    /// A live queue of a process, by its number.
    fn seen<'a>(&self, told: &'a Told, at: usize) -> Option<&'a SeenQueue> {
        let place = self.queues[at].place;
        let own = self.number(place) == Some(at as i32 + 1);
        let seen = told.queues.get(place as usize)?.as_ref()?;
        (own && seen.sync).then_some(seen)
    }

    /// Numbers of those that others are to go to, as they were when that was planned: the place may
    /// be another queue's by now.
    fn follow_plans(&mut self, told: &Told) {
        for at in 0..self.queues.len() {
            let planned = self.seen(told, at).and_then(|seen| seen.new);
            let known = self.queues[at].new.map(|(place, _)| place);
            if planned != known {
                let number = |place| Some((place, self.number(place)?));
                self.queues[at].new = planned.and_then(number);
            }
        }
    }

    fn say(
        &mut self,
        action: &'static str,
        arguments: Vec<(&'static str, i32)>,
        told: &Told,
        out: &mut ScheduleWriter,
    ) {
        self.follow_plans(told);
        let numbered = |place: Option<u32>| place.and_then(|p| self.number(p)).unwrap_or(0);
        let of_process = |name, place: &dyn Fn(IoContextId) -> Option<u32>| {
            let values = out.of_processes(|process| numbered(place(process)));
            Seen::new(name, Of::Process, values)
        };
        let of_queues = |name, value: &dyn Fn(usize, &SeenQueue) -> i32| {
            let each = 0..self.queues.len();
            let values = each.map(|at| self.seen(told, at).map_or(0, |seen| value(at, seen)));
            Seen::new(name, Of::Queue, values.collect())
        };
        let process = |process: IoContextId| told.processes.get(process.0 as usize);
        let created = told.created.iter().map(|&place| numbered(place)).collect();
        let seen = vec![
            of_process("slot", &|p| process(p)?.slot),
            of_process("candidate", &|p| process(p)?.candidate),
            Seen::new("born", Of::All, vec![self.queues.len() as i32]),
            of_queues("ref", &|_, seen| seen.references),
            of_queues("stable", &|_, seen| seen.stable),
            of_queues("new", &|at, _| {
                self.queues[at].new.map_or(0, |(_, number)| number)
            }),
            of_queues("io", &|_, seen| seen.requests),
            of_queues("owner", &|_, seen| {
                let owner = seen.owner.and_then(|p| out.known(IoContextId(p)));
                owner.unwrap_or(0)
            }),
            Seen::new("created", Of::Group(self.groups), created),
        ];
        out.push(action, arguments, seen);
    }
}
