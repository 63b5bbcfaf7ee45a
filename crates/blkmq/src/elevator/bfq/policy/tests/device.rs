//! A device with BFQ: it keeps requests until an action ends them, and lets timers expire.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::{Bfq, BfqSettings};
use super::{Action, Shape};
use crate::elevator::bfq::ids::QId;
use crate::elevator::{
    BioMerge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler, SchedulerKind, Submitter,
    SubmitterGroup, Submitters, TimerAsk,
};
use crate::merge::Merging;
use crate::queue::QueueSettings;
use crate::request::{
    Bio, BioId, IoClass, IoContextId, IoPrio, Place, RequestId, RequestPool, Sector, Sectors,
};
use crate::rules::{NoMerges, QueueLimits, Rules};
use crate::time::{Duration, SimTime};

pub(super) const TASKS: u32 = 6;
pub(super) const HZ: u32 = 250;
const REQUESTS: usize = 64;
const BIOS: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) rules: Rules,
    pub(super) rotational: bool,
    pub(super) arms: bool,
}

/// The change that a mutant undoes after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mutant {
    ForgetsPut,
    /// A request that arrives has no reference.
    ForgetsGet,
    /// The exit of a process leaves its reserved references.
    ExitKeepsReservation,
    /// The exit of a process leaves the reference of its candidate for a stable merge.
    ExitKeepsCandidate,
    /// A request of every twentieth call is lost.
    DropsRequest,
    CallsInVain,
    /// The first queue is not charged for its service.
    ForgetsCharge,
    IdleNever,
    KeepsQueue,
    /// Parts of a share below one sector are dropped.
    ForgetsRest,
}

pub(super) struct Device {
    pub(super) pool: RequestPool,
    pub(super) bfq: Bfq,
    limits: QueueLimits,
    pub(super) now: SimTime,
    timer: Option<(SimTime, u8)>,
    pub(super) with_driver: Vec<RequestId>,
    /// By task.
    groups: [u16; TASKS as usize + 1],
    submitted: u64,
    ended: u64,
    calls: u32,
    mutant: Option<Mutant>,
}

fn submitters() -> Submitters {
    let nice = IoPrio {
        class: IoClass::BestEffort,
        level: 4,
    };
    let task = |pid| Submitter {
        pid,
        ioprio: IoPrio::default(),
        nice,
    };
    let mut submitters = Submitters {
        tasks: (0..=TASKS as i32).map(task).collect(),
        ..Submitters::default()
    };
    for (path, parent, weight) in [("x", 0, 200), ("x/y", 1, 100)] {
        submitters.groups.push(SubmitterGroup {
            path: path.to_owned(),
            parent,
            weight,
        });
    }
    submitters
}

impl Device {
    pub(super) fn new(setup: &Setup, mutant: Option<Mutant>) -> Device {
        let access_ranges = match setup.arms {
            true => vec![0..100_000, 100_000..u64::MAX],
            false => Vec::new(),
        };
        let queue = QueueSettings {
            rotational: setup.rotational,
            rotational_when_chosen: setup.rotational,
            submitters: submitters(),
            access_ranges,
            ..QueueSettings::plain(setup.rules, SchedulerKind::Bfq, REQUESTS as u32)
        };
        Device {
            pool: RequestPool::new(REQUESTS, BIOS),
            bfq: Bfq::new(&BfqSettings::defaults(HZ, REQUESTS as u32), &queue),
            limits: QueueLimits {
                max_sectors: 1280,
                max_segments: 8,
                chunk_sectors: 0,
                discard_granularity: 0,
                max_discard_sectors: 2048,
                max_discard_segments: 1,
                write_cache: false,
                fua: false,
                ..QueueLimits::PLAIN
            },
            now: SimTime(1_000_000_000),
            timer: None,
            with_driver: Vec::new(),
            groups: [0; TASKS as usize + 1],
            submitted: 0,
            ended: 0,
            calls: 0,
            mutant,
        }
    }

    pub(super) fn mutant(&self) -> Option<Mutant> {
        self.mutant
    }

    pub(super) fn clocks(&self) -> Now {
        Now {
            time: self.now,
            tick: self.now.jiffies(HZ),
            kept: false,
        }
    }

    fn take_timer(&mut self) {
        match self.bfq.take_timer() {
            Some(TimerAsk::Arm { timer, after }) => self.timer = Some((self.now + after, timer)),
            Some(TimerAsk::Cancel { .. }) => self.timer = None,
            None => {}
        }
    }

    pub(super) fn apply(&mut self, action: &Action) {
        match *action {
            Action::Submit(ref shape) => self.submit(shape, true),
            Action::Insert(ref shape) => self.submit(shape, false),
            Action::Dispatch => {
                self.dispatch();
            }
            Action::Complete(nth) if !self.with_driver.is_empty() => {
                let rq = self.with_driver.remove(nth % self.with_driver.len());
                self.finish(rq);
            }
            Action::Requeue(nth) if !self.with_driver.is_empty() => {
                let rq = self.with_driver.remove(nth % self.with_driver.len());
                let now = self.clocks();
                self.bfq.requeued(&mut self.pool, rq, now);
                self.take_timer();
                self.pool[rq].place = Place::Path;
                self.insert(rq, InsertAt::Head);
            }
            Action::Complete(_) | Action::Requeue(_) => {}
            Action::Wait(us) => self.wait(Duration::from_micros(us)),
            Action::Exit(task) => self.exit(task),
            Action::IoPrio(task, ioprio) => {
                self.bfq.submitters.tasks[task as usize].ioprio = ioprio;
            }
            Action::Group(task, group) => {
                self.groups[task as usize] = group;
            }
            Action::Store(name, value) => {
                let now = self.clocks();
                let stored = self.bfq.store(name, &value.to_string(), now);
                stored.expect("an attribute");
            }
            Action::Rotates(rotational) => self.bfq.rotates(rotational),
        }
    }

    pub(super) fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some((at, timer)) = self.timer.filter(|&(at, _)| at <= until) {
            self.timer = None;
            self.now = at;
            let now = self.clocks();
            self.bfq.timer(&mut self.pool, timer, now);
            self.take_timer();
        }
        self.now = until;
    }

    fn exit(&mut self, task: u32) {
        let reserved = self.reserved_for(task);
        let candidate = self.candidate_of(task);
        let now = self.clocks();
        self.bfq.exits(&mut self.pool, IoContextId(task), now);
        self.take_timer();
        if let Some(q) = candidate.filter(|_| self.mutant == Some(Mutant::ExitKeepsCandidate)) {
            self.bfq.queues[q].references += 1;
            self.bfq.queues[q].stable_references += 1;
        }
        if let Some(q) = reserved.filter(|_| self.mutant == Some(Mutant::ExitKeepsReservation)) {
            self.bfq.queues[q].references += 1;
        }
    }

    /// The queue that the process's queue will be merged into.
    fn reserved_for(&self, task: u32) -> Option<QId> {
        let q = self.bfq.slot(IoContextId(task), true, 0)?;
        self.bfq.queues[q].new
    }

    /// The queue for a stable merge that is due after more I/O than a burst.
    fn candidate_of(&self, task: u32) -> Option<QId> {
        let q = self.bfq.processes.get(task as usize)?.saved[0].stable_candidate?;
        (self.bfq.queues[q].references > 1).then_some(q)
    }

    fn submit(&mut self, shape: &Shape, offered: bool) {
        let mut all = self.pool.iter();
        let free = all.find(|(_, rq)| rq.place == Place::Free);
        let free = free.map(|(rq, _)| rq);
        drop(all);
        let mut bio = Bio {
            op: shape.op,
            sector: Sector(shape.sector),
            sectors: Sectors(shape.sectors),
            segments: 1,
            io_context: IoContextId(shape.task),
            group: self.groups[shape.task as usize],
            ..Bio::default()
        };
        bio.ioprio = self.bfq.submitters.tasks[shape.task as usize].ioprio;
        bio.flags.sync = shape.sync;
        bio.flags.meta = shape.meta;
        let Some(rq) = free else { return };
        let Some(bio) = self.pool.add_bio(bio) else {
            return;
        };
        self.submitted += u64::from(shape.sectors);
        let now = self.clocks();
        let merging = Merging {
            limits: &self.limits,
            nomerges: NoMerges::All,
        };
        if offered && !shape.bare {
            let merge = self.bfq.merge_bio(&mut self.pool, bio, now, merging);
            self.take_timer();
            if let BioMerge::Into { absorbed, .. } = merge {
                if let Some(absorbed) = absorbed {
                    self.finish(absorbed);
                }
                return;
            }
        }
        self.make_request(rq, bio, shape.bare);
    }

    fn make_request(&mut self, rq: RequestId, bio: BioId, bare: bool) {
        self.pool.reset(rq);
        self.pool.bio_to_request(rq, bio);
        self.pool[rq].place = Place::Path;
        self.pool[rq].use_sched = !bare;
        self.insert(rq, InsertAt::Sorted);
    }

    fn insert(&mut self, rq: RequestId, at: InsertAt) {
        let now = self.clocks();
        let merging = Merging {
            limits: &self.limits,
            nomerges: NoMerges::All,
        };
        let insertion = self.bfq.insert(&mut self.pool, rq, at, now, merging);
        self.take_timer();
        if let Insertion::Absorbed(mut absorbed) = insertion {
            while let Some(rq) = absorbed.pop_front(&mut self.pool) {
                self.finish(rq);
            }
        } else if self.mutant == Some(Mutant::ForgetsGet)
            && let Some(q) = super::super::queue_of(&self.pool[rq])
        {
            self.bfq.queues[q].references -= 1;
        }
    }

    /// Whether there are requests; has_work must agree under all rules.
    pub(super) fn has_work(&self) -> bool {
        let has = self.bfq.queued > 0 || !self.bfq.dispatch_list.is_empty();
        assert!(!has || self.bfq.has_work(), "requests and no work");
        has
    }

    /// One call: true if it returned a request.
    pub(super) fn dispatch(&mut self) -> bool {
        self.calls += 1;
        if self.mutant == Some(Mutant::CallsInVain) && self.calls.is_multiple_of(10) {
            return false;
        }
        let now = DispatchTime::at(self.clocks());
        let rq = self.bfq.dispatch(&mut self.pool, now, [0; LEVELS]);
        self.take_timer();
        let Some(rq) = rq else { return false };
        assert!(
            self.pool[rq].started,
            "{rq:?} is dispatched and not started"
        );
        self.pool[rq].place = Place::Device;
        assert!(
            !self.with_driver.contains(&rq),
            "{rq:?} is dispatched twice"
        );
        if self.mutant != Some(Mutant::DropsRequest) || !self.calls.is_multiple_of(20) {
            self.with_driver.push(rq);
        }
        true
    }

    /// A request ends: with its bios, or empty because another one absorbed it.
    pub(super) fn finish(&mut self, rq: RequestId) {
        let q = super::super::queue_of(&self.pool[rq]);
        let now = self.clocks();
        self.bfq.finished(&mut self.pool, rq, now);
        self.take_timer();
        if let Some(q) = q.filter(|_| self.mutant == Some(Mutant::ForgetsPut))
            && self.bfq.queues[q].references > 0
        {
            self.bfq.queues[q].references += 1;
        }
        for bio in self.pool.bios_of(rq).collect::<Vec<BioId>>() {
            self.ended += u64::from(self.pool.bio(bio).sectors.0);
            self.pool.free_bio(bio);
        }
        self.pool[rq].place = Place::Free;
        self.pool.reset(rq);
    }

    pub(super) fn check(&self) {
        self.bfq.check(&self.pool);
    }

    /// No new bios: every request must be dispatched and end.
    pub(super) fn drain(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..40 * REQUESTS {
            if !self.has_work() && self.with_driver.is_empty() {
                break;
            }
            if !self.dispatch() {
                if let Some(rq) = self.with_driver.pop() {
                    self.finish(rq);
                } else {
                    self.wait(Duration::from_millis(500));
                }
            }
            self.check();
        }
        let left = || self.bfq.show(&self.pool);
        prop_assert!(!self.has_work(), "a request is stranded:\n{}", left());
        let free = self.pool.iter().all(|(_, rq)| rq.place == Place::Free);
        prop_assert!(free, "a request never came back");
        prop_assert_eq!(self.pool.bios_in_use(), 0);
        prop_assert_eq!(self.ended, self.submitted);
        Ok(())
    }

    /// All processes exit, and entities in idle trees are forgotten as at a change of the scheduler
    /// (bfq_exit_queue()): only asynchronous queues remain, each with only its group's reference.
    pub(super) fn leave(&mut self) -> Result<(), TestCaseError> {
        for task in 1..=TASKS {
            self.exit(task);
            self.check();
        }
        // The call passes over a queue that was kept busy while empty.
        prop_assert!(!self.dispatch(), "a request out of nothing");
        // The longest possible slice_idle.
        self.wait(Duration::from_secs(5));
        for q in self.bfq.idle_list.clone() {
            self.bfq.deactivate(q, false, false);
        }
        self.check();
        for (q, queue) in self.bfq.queues.iter() {
            // A replaced candidate keeps its reference, as in the kernel; so does a replaced plan
            // in v5.13.
            let kept = queue.lost_references + queue.lost_candidates;
            let pinned = i32::from(!queue.flags.sync);
            prop_assert!(
                queue.references == kept + pinned,
                "{:?} remains:\n{}",
                q,
                self.bfq.show(&self.pool)
            );
        }
        Ok(())
    }
}
