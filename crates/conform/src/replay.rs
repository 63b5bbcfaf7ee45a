//! The kernel's side and the model's side of one device, kept in step event by event.
//!
//! Everything but the decision itself: allocation, plugs, merging, insertion, completion. Modes
//! add when the scheduler is asked. Read next: `calls.rs`.

use std::collections::BTreeMap;

use blkmq::elevator::completed_level;
use blkmq::request::{IoPrio, RequestId};
use blkmq::rules::FlushData;
use blkmq::time::Jiffies;

use super::Error;
use super::event::{Event, Kind};
use super::ledger::{At, Entry, Ledger, bio_of};
use super::model::{Model, Outcome, Step};
use super::setup::Setup;
use super::verdict::Judge;

/// Most slots that are taken without asking how many requests the queue can hold.
const SLOTS: usize = 4096;

/// What a probe, or a script, knows of a request that reaches the scheduler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Its address.
    pub(super) rq: Option<u64>,
    pub(super) ioprio: IoPrio,
}

/// One device under replay.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    pub(super) setup: &'a Setup,
    pub(super) ledger: Ledger,
    pub(super) model: Model,
    /// Steps since the oldest question that has no answer yet; empty while there is none.
    pub(super) log: Vec<Step>,
    /// Steps are kept: somebody has asked and waits.
    pub(super) logging: bool,
    /// Priority that a task's requests had last.
    priorities: BTreeMap<u32, IoPrio>,
    /// Requests that the model's merging emptied, with the task that merged: the trace shows it
    /// next.
    owed: Vec<(u32, RequestId)>,
    /// Merging, or what a decision took, may have left the two sides with different requests.
    differs: bool,
}

impl<'a> Replay<'a> {
    /// Idle, with room for what the events need.
    pub(super) fn new(setup: &'a Setup, events: &[Event]) -> Replay<'a> {
        let count = |kind| events.iter().filter(|e| e.kind == kind).count();
        let maps = setup.hctxs.len() + 1;
        let bound = SLOTS.max(maps * setup.nr_requests as usize + 64);
        let requests = (count(Kind::Get) + count(Kind::Insert) + 1).min(bound);
        let bios = bios_at_once(events);
        Replay {
            setup,
            ledger: Ledger::new(requests),
            model: Model::new(setup, requests, bios),
            log: Vec::new(),
            logging: false,
            priorities: BTreeMap::new(),
            owed: Vec::new(),
            differs: false,
        }
    }

    /// Takes a step and keeps it while somebody waits for an answer.
    pub(super) fn apply(&mut self, step: Step) -> Outcome {
        let outcome = self.model.apply(&step);
        if self.logging {
            self.log.push(step);
        }
        outcome
    }

    /// G: a bio gets a request.
    pub(super) fn get(&mut self, event: &Event) -> Result<RequestId, String> {
        let ioprio = event.ioprio.unwrap_or_else(|| self.priority_of(event.pid));
        let bio = bio_of(event, ioprio);
        self.apply(Step::BioRefused { bio: bio.clone() });
        let open = self.ledger.open(event, ioprio);
        let rq = open.ok_or("more requests at once than the queue has tags")?;
        self.apply(Step::Create { rq, bio });
        Ok(rq)
    }

    /// Priority of a task's latest request.
    fn priority_of(&self, pid: u32) -> IoPrio {
        self.priorities.get(&pid).copied().unwrap_or_default()
    }

    /// M or F of a bio: in the task's plug, or in the scheduler.
    pub(super) fn bio_merge(
        &mut self,
        event: &Event,
        front: bool,
        judge: &mut Judge,
    ) -> Result<(), String> {
        let ioprio = event.ioprio.unwrap_or_else(|| self.priority_of(event.pid));
        let bio = bio_of(event, ioprio);
        if let Some(rq) = self.ledger.in_plug(event, front, &self.setup.limits) {
            self.ledger.grow(rq, event, front)?;
            self.apply(Step::PlugMerge { rq, bio, front });
            return Ok(());
        }
        match self.ledger.queued_beside(event, front) {
            Some(rq) => self.ledger.grow(rq, event, front)?,
            None => self.note("a bio merged with nothing that the trace shows", judge),
        }
        match self.apply(Step::BioMerge { bio }) {
            Outcome::MergeDiffers => self.note("the model would not have merged a bio", judge),
            Outcome::Agreed { emptied } => self.owes(event.pid, emptied),
            Outcome::Chose(_) => unreachable!("a merge chooses nothing"),
        }
        Ok(())
    }

    fn owes(&mut self, pid: u32, emptied: Vec<RequestId>) {
        self.owed.extend(emptied.into_iter().map(|rq| (pid, rq)));
    }

    /// The two sides differ, though no dispatch has.
    fn note(&mut self, what: &str, judge: &mut Judge) {
        judge.note(what);
        self.differs = true;
    }

    /// The two sides may hold different requests from here on.
    pub(super) fn has_differed(&mut self) {
        self.differs = true;
    }

    /// A merge of requests is traced right behind the merge of the bio that closed the gap. If
    /// the task does something else, the kernel did not merge them.
    pub(super) fn overdue(&mut self, event: &Event, judge: &mut Judge) {
        let by_task = matches!(
            event.kind,
            Kind::Queue | Kind::Get | Kind::BioMerge { .. } | Kind::Insert | Kind::Unplug { .. }
        );
        if by_task && self.owed.iter().any(|&(pid, _)| pid == event.pid) {
            self.owed.retain(|&(pid, _)| pid != event.pid);
            self.note("the model would have merged two requests", judge);
        }
    }

    /// After a difference the model goes on from what the kernel's scheduler holds. `chosen` are
    /// requests that the model gave out and the trace has not shown.
    pub(super) fn resync(&mut self, now: Jiffies, chosen: impl Fn(RequestId) -> bool) {
        if !self.differs || !self.is_settled() {
            return;
        }
        self.differs = false;
        let ledger = &self.ledger;
        let queued =
            |rq: RequestId| ledger.is_live(rq) && ledger.entry(rq).at == At::Queued && !chosen(rq);
        let stray: Vec<RequestId> = self.model.queued().filter(|&rq| !queued(rq)).collect();
        let missing: Vec<RequestId> = ledger
            .iter()
            .filter(|&(rq, entry)| queued(rq) && !self.model.holds_as(rq, entry))
            .map(|(rq, _)| rq)
            .collect();
        for rq in stray {
            self.apply(Step::TakeOut { rq });
        }
        for rq in missing {
            let entry = self.ledger.entry(rq);
            let (bio, head) = (entry.as_bio(), self.goes_to_head(entry));
            self.apply(Step::PutIn { rq, bio, head, now });
        }
    }

    /// v6.12 sends the data of a flush sequence, once it is its turn, to the head.
    fn goes_to_head(&self, entry: &Entry) -> bool {
        entry.flush && entry.flags.preflush && self.setup.rules.flush_data == FlushData::Scheduler
    }

    /// I, or M of a request that was just allocated: it reaches the scheduler.
    pub(super) fn insert(
        &mut self,
        event: &Event,
        arrival: Option<Arrival>,
        now: Jiffies,
        judge: &mut Judge,
    ) -> Result<(), String> {
        let rq = match self.ledger.fresh(event) {
            Some(rq) => rq,
            None => self.get(event)?,
        };
        let entry = self.ledger.entry_mut(rq);
        if let Some(arrival) = arrival {
            entry.rq = arrival.rq;
            entry.ioprio = arrival.ioprio;
        }
        let (ioprio, pid) = (entry.ioprio, entry.pid);
        let head = self.goes_to_head(self.ledger.entry(rq));
        if arrival.is_some() {
            self.priorities.insert(pid, ioprio);
            self.apply(Step::Priority { rq, ioprio });
        }
        let absorbed = event.kind == Kind::RequestMerge;
        let outcome = self.apply(Step::Insert {
            rq,
            head,
            now,
            absorbed,
        });
        match outcome {
            Outcome::Agreed { emptied } => self.owes(event.pid, emptied),
            Outcome::MergeDiffers => {
                self.note("the model would have merged a request otherwise", judge);
            }
            Outcome::Chose(_) => unreachable!("an insertion chooses nothing"),
        }
        if absorbed {
            self.absorb(event, Some(rq), judge)?;
        } else {
            let age = self.ledger.next_age();
            let entry = self.ledger.entry_mut(rq);
            entry.at = At::Queued;
            entry.age = age;
        }
        Ok(())
    }

    /// M of a request: a fresh one, or one that its neighbour swallowed after a bio merge.
    pub(super) fn request_merge(
        &mut self,
        event: &Event,
        arrival: Option<Arrival>,
        now: Jiffies,
        judge: &mut Judge,
    ) -> Result<(), String> {
        if self.ledger.fresh(event).is_some() {
            return self.insert(event, arrival, now, judge);
        }
        self.absorb(event, None, judge)
    }

    /// The kernel's side of a request merge: the length goes to the request before. `arrived` is
    /// the request if it was just allocated.
    fn absorb(
        &mut self,
        event: &Event,
        arrived: Option<RequestId>,
        judge: &mut Judge,
    ) -> Result<(), String> {
        let is = |rq: RequestId| self.ledger.is_live(rq) && self.ledger.entry(rq).is(event);
        let promised = self.owed.iter().position(|&(_, rq)| is(rq));
        let gone = match promised {
            Some(at) => Some(self.owed.remove(at).1),
            None => {
                self.note("the model would not have merged two requests", judge);
                let queued = || self.ledger.oldest(At::Queued, |e| e.is(event));
                arrived.or_else(queued)
            }
        };
        let Some(gone) = gone else {
            self.note("a request merged that the trace does not show", judge);
            return Ok(());
        };
        if self.model.holds(gone) {
            self.apply(Step::TakeOut { rq: gone });
        }
        self.close(gone);
        let survivor = self
            .ledger
            .oldest(At::Queued, |e| e.op == event.op && e.end() == event.sector);
        match survivor {
            Some(rq) => self.ledger.grow(rq, event, false)?,
            None => self.note("a request merged with nothing that the trace shows", judge),
        }
        Ok(())
    }

    /// The slot is free; nothing is expected of its request any more.
    fn close(&mut self, rq: RequestId) {
        self.ledger.close(rq);
        self.owed.retain(|&(_, other)| other != rq);
    }

    /// The kernel's side knows all that the model's side has done.
    pub(super) fn is_settled(&self) -> bool {
        self.owed.is_empty()
    }

    /// C: the request that has left the device with this event.
    pub(super) fn complete(&mut self, event: &Event) -> Option<RequestId> {
        match self.ledger.completing(event) {
            Some(rq) => self.ledger.complete(rq, event.sectors).then_some(rq),
            // A bare flush never goes to the device itself.
            None => self.ledger.oldest(At::Fresh, |e| e.flush && e.is(event)),
        }
    }

    /// C of a request whose D is still to come: the trace contradicts itself.
    pub(super) fn complete_early(&mut self, event: &Event) -> Option<RequestId> {
        let early = |e: &Entry| e.is(event) && !e.ended_early;
        let rq = self.ledger.oldest(At::Queued, early)?;
        self.ledger.entry_mut(rq).ended_early = true;
        Some(rq)
    }

    /// The scheduler is told that a request is done, and the slot is free. The level that counts
    /// it, if it was in the scheduler.
    pub(super) fn finish(&mut self, rq: RequestId) -> Option<usize> {
        let level = completed_level(self.model.pool[rq].elv_priv);
        self.apply(Step::Finish { rq });
        self.close(rq);
        level
    }

    /// An error that names the event.
    pub(super) fn contradiction(&self, capture: &str, event: &Event, what: String) -> Error {
        event.contradiction(capture, &self.setup.device, what)
    }
}

/// Bios that wait in plugs and in the scheduler at once, from above: the sectors that were
/// submitted and not issued, over the length of the shortest bio.
fn bios_at_once(events: &[Event]) -> usize {
    let makes_bio = |e: &&Event| {
        matches!(
            e.kind,
            Kind::Get | Kind::Insert | Kind::RequestMerge | Kind::BioMerge { .. }
        )
    };
    let all = events.iter().filter(makes_bio).count() + 1;
    if all <= 2 * SLOTS {
        return all;
    }
    let queued = |e: &&Event| matches!(e.kind, Kind::Queue) && e.sectors.0 > 0;
    let shortest = events.iter().filter(queued).map(|e| e.sectors.0).min();
    let shortest = u64::from(shortest.unwrap_or(1));
    let (mut waiting, mut most) = (0_u64, 0_u64);
    let mut empty = 0;
    for event in events {
        let sectors = u64::from(event.sectors.0);
        match event.kind {
            Kind::Queue => waiting += sectors,
            Kind::Issue => waiting = waiting.saturating_sub(sectors),
            Kind::Requeue => waiting += sectors,
            Kind::Get if sectors == 0 => empty += 1,
            _ => {}
        }
        most = most.max(waiting);
    }
    let splits = events
        .iter()
        .filter(|e| matches!(e.kind, Kind::Split { .. }))
        .count();
    (most / shortest) as usize + empty + splits + 64
}
