//! The assumptions of a hypothesis that no record shows, event by event.

use std::collections::BTreeMap;

use blkmq::elevator::LEVELS;
use blkmq::request::QueueId;
use blkmq::time::Jiffies;

use super::search::PICKS_MOST;
use super::{Hypotheses, Hypothesis};

/// Values that a call read outside the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    /// The tick under the lock.
    pub(crate) locked: Jiffies,
    /// Requests per level whose end was on its way and was not counted yet.
    pub(crate) uncounted: [u32; LEVELS],
}

impl Read {
    /// This tick, with every end counted.
    pub(crate) fn at(tick: Jiffies) -> Read {
        Read {
            locked: tick,
            uncounted: [0; LEVELS],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Assumption {
    /// Before the event the call with this return decides.
    Decides(usize, Read),
    /// At the return of a call it decides, and has read this.
    Reads(Read),
    /// Before the event a run on this CPU decides, and a later D shows what.
    DecidesAhead(QueueId, u16),
    /// The scheduler chooses the request of this call or D, to which no rule led.
    Forced(usize),
    /// At the event runs decide so often, and later for the others.
    Picks(u32),
    /// After the event pending runs do not run yet.
    RunsLater,
    /// After an insertion its task goes to its next offer to the driver.
    ToOffer,
    /// The task of a D has begun no run of its own.
    NoRunYet,
    /// The clock is read so many nanoseconds beside the record.
    ReadsBeside(i64),
}

#[derive(Debug, Default)]
pub(super) struct Plan(BTreeMap<usize, Vec<Assumption>>);

impl Plan {
    pub(super) fn at(&self, index: usize) -> &[Assumption] {
        self.0.get(&index).map_or(&[], Vec::as_slice)
    }

    pub(super) fn has(&self, index: usize, assumption: Assumption) -> bool {
        self.at(index).contains(&assumption)
    }

    pub(super) fn add(&mut self, assumed: &[(usize, Assumption)]) {
        for &(index, assumption) in assumed {
            self.0.entry(index).or_default().push(assumption);
        }
    }

    /// Takes the latest additions back.
    pub(super) fn undo(&mut self, assumed: &[(usize, Assumption)]) {
        for (index, _) in assumed {
            let at = self.0.get_mut(index).and_then(Vec::pop);
            debug_assert!(at.is_some(), "event {index} has an assumption");
        }
    }

    /// Before an event: planned decisions are made, in the order in which they were found, but
    /// forced ones last, and the state has what holds at the event. An error if the kernel's
    /// decision was another one.
    pub(super) fn apply(
        &self,
        hypotheses: &Hypotheses<'_>,
        state: &mut Hypothesis,
        index: usize,
    ) -> Result<(), String> {
        state.no_run_yet = false;
        let (mut picks, mut beside) = (PICKS_MOST, 0);
        (state.reads, state.forced) = (None, false);
        let mut forced = None;
        for &assumption in self.at(index) {
            match assumption {
                Assumption::Decides(answer, read) => {
                    let start = hypotheses.decide(state, answer, read);
                    let start = start.ok_or("a call decides otherwise than planned")?;
                    // Until its return it waits after the decision.
                    state.early.insert(answer, start);
                }
                Assumption::DecidesAhead(queue, cpu) => {
                    hypotheses.decide_ahead(state, index, (queue, cpu));
                }
                Assumption::Forced(of) => forced = Some(of),
                Assumption::Reads(read) => state.reads = Some(read),
                Assumption::Picks(most) => picks = most,
                Assumption::NoRunYet => state.no_run_yet = true,
                Assumption::ReadsBeside(ns) => beside = ns,
                Assumption::RunsLater | Assumption::ToOffer => {}
            }
        }
        match forced {
            Some(_) if hypotheses.calls => state.forced = true,
            Some(issue) => hypotheses.decide_instead(state, issue),
            None => {}
        }
        state.world.outside.picks = picks;
        state.reads_beside = beside;
        Ok(())
    }
}
