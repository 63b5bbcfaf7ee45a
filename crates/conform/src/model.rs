//! The reference scheduler under replay: every change is a step, so that it can be taken back and
//! done again in another order.
//!
//! Not here: what a kernel did (`ledger.rs`) and when (`calls.rs`, `records.rs`).

use blkmq::elevator::mq_deadline::MqDeadline;
use blkmq::elevator::{
    BioMerge, DispatchTime, InsertAt, Insertion, LEVELS, Scheduler, completed_level,
};
use blkmq::merge::Merging;
use blkmq::request::{Bio, BioId, IoPrio, Op, Place, RequestId, RequestPool, Sector};
use blkmq::rules::{NoMerges, QueueLimits};
use blkmq::time::Jiffies;

use super::ledger::Entry;
use super::setup::Setup;

/// What a call of the scheduler reads outside its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The tick.
    pub(super) time: DispatchTime,
    /// Requests per level whose end was on its way and is not counted yet.
    pub(super) uncounted: [u32; LEVELS],
}

impl Call {
    /// A call that sees all that has ended.
    pub(super) fn at(time: DispatchTime) -> Call {
        Call {
            time,
            uncounted: [0; LEVELS],
        }
    }
}

/// One change of the scheduler's world, with the outcome the kernel had.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A bio gets a request of its own.
    Create { rq: RequestId, bio: Bio },
    /// A request's priority becomes known.
    Priority { rq: RequestId, ioprio: IoPrio },
    /// A bio joins a request in a plug.
    PlugMerge {
        rq: RequestId,
        bio: Bio,
        front: bool,
    },
    /// A bio joined a request of the scheduler.
    BioMerge { bio: Bio },
    /// A bio was offered to the scheduler and no request took it.
    BioRefused { bio: Bio },
    /// A request enters the scheduler, which did or did not append it to another one.
    Insert {
        rq: RequestId,
        head: bool,
        now: Jiffies,
        absorbed: bool,
    },
    /// The scheduler is asked and answers.
    Dispatch {
        call: Call,
        answer: Option<RequestId>,
        /// No rule led to the answer: it was a miss.
        forced: bool,
    },
    /// A request has left the device, or never needed it.
    Finish { rq: RequestId },
    /// The kernel's scheduler does not hold this request: another one has its sectors.
    TakeOut { rq: RequestId },
    /// The kernel's scheduler holds this request, with the range and priority of `bio`.
    PutIn {
        rq: RequestId,
        bio: Bio,
        head: bool,
        now: Jiffies,
    },
}

/// What the model made of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// As in the kernel. Requests that merging emptied have left the model.
    Agreed { emptied: Vec<RequestId> },
    /// The model would not have merged, or would have. It did not follow the kernel, except that
    /// an insertion is one, and a request that the kernel absorbed is gone.
    MergeDiffers,
    /// The model chose so; its state is as if the kernel had been right.
    Chose(Option<RequestId>),
}

impl Outcome {
    const fn agreed() -> Outcome {
        Outcome::Agreed {
            emptied: Vec::new(),
        }
    }
}

/// mq-deadline of one device, with its requests.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) dd: MqDeadline,
    pub(super) pool: RequestPool,
    completed: [u32; LEVELS],
    limits: QueueLimits,
    nomerges: NoMerges,
}

impl Model {
    /// An idle scheduler with room for so many requests and bios.
    pub(super) fn new(setup: &Setup, requests: usize, bios: usize) -> Model {
        Model {
            dd: MqDeadline::new(&setup.rules, setup.deadline),
            pool: RequestPool::new(requests, bios),
            completed: [0; LEVELS],
            limits: setup.limits,
            nomerges: setup.nomerges,
        }
    }

    /// Takes a step.
    pub(super) fn apply(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Create { rq, bio } => {
                self.finish(*rq);
                let id = self.add_bio(bio);
                self.pool.bio_to_request(*rq, id);
                self.pool[*rq].place = Place::Path;
                Outcome::agreed()
            }
            Step::Priority { rq, ioprio } => {
                for bio in self.pool.bios_of(*rq).collect::<Vec<_>>() {
                    self.pool.bio_mut(bio).ioprio = *ioprio;
                }
                self.pool[*rq].ioprio = *ioprio;
                Outcome::agreed()
            }
            Step::PlugMerge { rq, bio, front } => {
                // How many segments there are is not recorded: no more than can be counted.
                let most = u16::MAX - bio.segments;
                self.pool[*rq].segments = self.pool[*rq].segments.min(most);
                let id = self.add_bio(bio);
                if *front {
                    self.pool.prepend_bio(*rq, id);
                } else {
                    self.pool.append_bio(*rq, id);
                }
                Outcome::agreed()
            }
            Step::BioMerge { bio } => self.merge(bio),
            Step::BioRefused { bio } => self.refuse(bio),
            Step::Insert {
                rq,
                head,
                now,
                absorbed,
            } => self.insert(*rq, *head, *now, *absorbed),
            Step::Dispatch { call, answer, .. } => self.dispatch(*call, *answer),
            Step::Finish { rq } => {
                self.finish(*rq);
                Outcome::agreed()
            }
            Step::TakeOut { rq } => {
                self.take_out(*rq);
                Outcome::agreed()
            }
            Step::PutIn { rq, bio, head, now } => {
                self.put_in(*rq, bio, *head, *now);
                Outcome::agreed()
            }
        }
    }

    /// What a call would return, without making it.
    pub(super) fn would_choose(&self, call: Call) -> Option<RequestId> {
        self.clone().ask(call)
    }

    /// Asks and keeps the result. Bios are of no more use once their request is chosen.
    pub(super) fn ask(&mut self, call: Call) -> Option<RequestId> {
        let mut completed = self.completed;
        for (count, uncounted) in completed.iter_mut().zip(call.uncounted) {
            *count = count.wrapping_sub(uncounted);
        }
        let rq = self.dd.dispatch(&mut self.pool, call.time, completed)?;
        self.free_bios(rq);
        Some(rq)
    }

    /// Takes `rq` out as the kernel did.
    pub(super) fn impose(&mut self, rq: RequestId) {
        if !self.holds(rq) {
            return;
        }
        self.dd.impose(&mut self.pool, rq);
        self.free_bios(rq);
    }

    fn dispatch(&mut self, call: Call, answer: Option<RequestId>) -> Outcome {
        let before = self.clone();
        let chosen = self.ask(call);
        if chosen != answer {
            *self = before;
            if let Some(rq) = answer {
                self.impose(rq);
            }
        }
        Outcome::Chose(chosen)
    }

    fn insert(&mut self, rq: RequestId, head: bool, now: Jiffies, absorbed: bool) -> Outcome {
        let (op, start, end) = (self.pool[rq].op, self.pool[rq].sector, self.pool[rq].end());
        let before = self.touched(op, start, end).then(|| self.clone());
        let emptied = self.insert_as(rq, head, now, self.nomerges);
        if absorbed != emptied.is_empty() {
            for &gone in &emptied {
                self.finish(gone);
            }
            return Outcome::Agreed { emptied };
        }
        if let Some(before) = before {
            *self = before;
        }
        if absorbed {
            self.finish(rq);
        } else {
            self.insert_as(rq, head, now, NoMerges::Never);
        }
        Outcome::MergeDiffers
    }

    fn insert_as(
        &mut self,
        rq: RequestId,
        head: bool,
        now: Jiffies,
        nomerges: NoMerges,
    ) -> Vec<RequestId> {
        let at = if head {
            InsertAt::Head
        } else {
            InsertAt::Sorted
        };
        let limits = self.limits;
        let merging = Merging {
            limits: &limits,
            nomerges,
        };
        let mut emptied = Vec::new();
        if let Insertion::Absorbed(mut list) = self.dd.insert(&mut self.pool, rq, at, now, merging)
        {
            while let Some(gone) = list.pop_back(&mut self.pool) {
                emptied.push(gone);
            }
        }
        emptied
    }

    fn merge(&mut self, bio: &Bio) -> Outcome {
        // A merge is not traced with its priority: that of the task if it fits, else any that
        // a queued request has.
        let mut priorities = vec![bio.ioprio];
        for rq in self.queued() {
            let ioprio = self.pool[rq].ioprio;
            if !priorities.contains(&ioprio) {
                priorities.push(ioprio);
            }
        }
        for ioprio in priorities {
            let mut tried = bio.clone();
            tried.ioprio = ioprio;
            let before = self.clone();
            if let Some(emptied) = self.offer(&tried) {
                for &gone in &emptied {
                    self.finish(gone);
                }
                return Outcome::Agreed { emptied };
            }
            *self = before;
        }
        Outcome::MergeDiffers
    }

    /// Requests that the bio's merging emptied, or `None` if it found no request.
    fn offer(&mut self, bio: &Bio) -> Option<Vec<RequestId>> {
        let id = self.add_bio(bio);
        let limits = self.limits;
        let merging = Merging {
            limits: &limits,
            nomerges: self.nomerges,
        };
        match self.dd.merge_bio(&mut self.pool, id, merging) {
            BioMerge::No => {
                self.pool.free_bio(id);
                None
            }
            BioMerge::Into { absorbed, .. } => Some(absorbed.into_iter().collect()),
        }
    }

    /// A bio that found nobody leaves its mark all the same: a request that it would have made
    /// too large takes no more merges.
    fn refuse(&mut self, bio: &Bio) -> Outcome {
        if !self.touched(bio.op, bio.sector, bio.sector.end(bio.sectors)) {
            return Outcome::agreed();
        }
        let before = self.clone();
        if self.offer(bio).is_none() {
            return Outcome::agreed();
        }
        *self = before;
        Outcome::MergeDiffers
    }

    /// A queued request ends or begins where this range does.
    fn touched(&self, op: Op, start: Sector, end: Sector) -> bool {
        let discards = op == Op::Discard && self.limits.max_discard_segments > 1;
        self.queued().any(|rq| {
            let other = &self.pool[rq];
            other.op == op && (discards || other.end() == start || other.sector == end)
        })
    }

    /// finish_request(), and the slot is free.
    fn finish(&mut self, rq: RequestId) {
        // The kernel merged it away, the model did not.
        self.impose(rq);
        if let Some(level) = completed_level(self.pool[rq].elv_priv) {
            self.completed[level] = self.completed[level].wrapping_add(1);
        }
        self.free_bios(rq);
        self.pool[rq].place = Place::Free;
        self.pool.reset(rq);
    }

    /// Forgets a request that another one has swallowed.
    fn take_out(&mut self, rq: RequestId) {
        if self.holds(rq) {
            self.dd.withdraw(&mut self.pool, rq);
        }
        self.finish(rq);
    }

    /// Makes the scheduler hold `rq` with this range. One that it holds already stays where it
    /// is in the fifo.
    fn put_in(&mut self, rq: RequestId, bio: &Bio, head: bool, now: Jiffies) {
        let alike = self.pool[rq].op == bio.op && self.pool[rq].ioprio == bio.ioprio;
        if self.holds(rq) && alike {
            self.dd.reshape(&mut self.pool, rq, bio.sector, bio.sectors);
            return;
        }
        self.take_out(rq);
        let id = self.add_bio(bio);
        self.pool.bio_to_request(rq, id);
        self.pool[rq].place = Place::Path;
        self.insert_as(rq, head, now, NoMerges::Never);
    }

    /// The request is in the scheduler.
    pub(super) fn holds(&self, rq: RequestId) -> bool {
        self.pool[rq].place == Place::Elevator
    }

    /// The request is in the scheduler, as the kernel has it.
    pub(super) fn holds_as(&self, rq: RequestId, entry: &Entry) -> bool {
        let request = &self.pool[rq];
        self.holds(rq)
            && request.op == entry.op
            && request.sector == entry.sector
            && request.sectors == entry.sectors
    }

    /// Lets go of requests that the kernel does not have any more.
    pub(super) fn keep_only(&mut self, lives: impl Fn(RequestId) -> bool) {
        let stale: Vec<RequestId> = self.queued().filter(|&rq| !lives(rq)).collect();
        for rq in stale {
            self.finish(rq);
        }
    }

    /// Requests in the scheduler, by slot.
    pub(super) fn queued(&self) -> impl Iterator<Item = RequestId> + '_ {
        let in_elevator =
            |(_, rq): &(RequestId, &blkmq::request::Request)| rq.place == Place::Elevator;
        self.pool.iter().filter(in_elevator).map(|(id, _)| id)
    }

    fn add_bio(&mut self, bio: &Bio) -> BioId {
        let id = self.pool.add_bio(bio.clone());
        id.expect("the pool holds every bio that is alive at once")
    }

    fn free_bios(&mut self, rq: RequestId) {
        for bio in self.pool.bios_of(rq).collect::<Vec<_>>() {
            self.pool.free_bio(bio);
        }
        self.pool[rq].bio_first = None;
        self.pool[rq].bio_last = None;
    }
}
