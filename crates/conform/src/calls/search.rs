//! The decision time of a call: when was the scheduler asked?
//!
//! Each time is tried by going back to a state before it and applying all events since again. If
//! none leads to the kernel's choice, that is a miss, and the kernel's choice is imposed.

use blkmq::elevator::LEVELS;

use super::{Calls, Plan, Read};
use crate::event::Kind;
use crate::hypothesis::Hypothesis;
use crate::judge::{Judge, Unjudged};

/// Ways that are tried for one answer, at most.
const TRIES_MOST: usize = 4000;

impl Calls<'_> {
    /// A decision that does not follow at its return: another moment of the call, or a miss.
    pub(super) fn settle(
        &mut self,
        state: &Hypothesis,
        index: usize,
        judge: &mut Judge,
    ) -> Hypothesis {
        // The log gives the time of a decision.
        let several = self.stream.logs.is_empty();
        if let Some(found) = several.then(|| self.explain(state, index)).flatten() {
            judge.hit();
            return found;
        }
        let entered = self.stream.other_end[index].is_some();
        self.plans.insert(index, Plan::Forced);
        let (mut before, from) = self.checkpoints.before(index);
        for event in from..index {
            // It went well the first time.
            let went = self.replayed(&mut before, event);
            debug_assert!(
                went.is_some(),
                "event {event} goes otherwise the second time"
            );
        }
        match entered {
            true => self.report(&before, index, judge),
            false => judge.unjudged(Unjudged::Probe),
        }
        let went = self.replayed(&mut before, index);
        debug_assert!(went.is_some());
        before.notes.clear();
        before
    }

    /// Looks for a moment of the call at which the model decides as the kernel did, latest first.
    /// Other calls that have not returned may have decided before.
    fn explain(&mut self, state: &Hypothesis, index: usize) -> Option<Hypothesis> {
        let asked = self.stream.other_end[index]?;
        let places = self.places(asked, index);
        let reads = self.reads(state, asked, index);
        let others = self.others();
        let mut tries = 0;
        for order in &others {
            for &place in &places {
                for &read in &reads {
                    tries += 1;
                    if tries > TRIES_MOST {
                        return None;
                    }
                    let plan = match place == index {
                        true => Plan::Then(read),
                        false => self.before(place, read),
                    };
                    if let Some(found) = self.attempt(index, plan, place, order) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// The next turn before an event.
    fn before(&mut self, event: usize, read: Read) -> Plan {
        self.turns += 1;
        let turn = self.turns;
        Plan::Before { event, turn, read }
    }

    /// The state after an answer under this plan, with all others as before.
    fn attempt(
        &mut self,
        index: usize,
        plan: Plan,
        place: usize,
        others: &[usize],
    ) -> Option<Hypothesis> {
        // Before the first plan is made: a way that is impossible leaves no plan.
        let reads: Option<Vec<(usize, Read)>> = others
            .iter()
            .map(|&other| self.read_at_return(other, place))
            .collect();
        let mut before: Vec<(usize, Option<Plan>)> = Vec::new();
        for (other, read) in reads? {
            before.push((other, self.plans.get(&other).copied()));
            let plan = self.before(place, read);
            self.plans.insert(other, plan);
        }
        let plan = match plan {
            // After the others.
            Plan::Before { event, read, .. } => self.before(event, read),
            plan => plan,
        };
        before.push((index, self.plans.get(&index).copied()));
        self.plans.insert(index, plan);
        let (mut state, from) = self.checkpoints.before(place.min(index));
        state.notes.clear();
        let went = (from..=index).all(|event| self.replayed(&mut state, event).is_some());
        if went {
            // Checkpoints of later states had another past.
            self.checkpoints.forget_after(place);
            return Some(state);
        }
        for (answer, plan) in before {
            match plan {
                Some(plan) => self.plans.insert(answer, plan),
                None => self.plans.remove(&answer),
            };
        }
        None
    }

    /// The read of another call that was entered before this event and decides then.
    fn read_at_return(&self, answer: usize, place: usize) -> Option<(usize, Read)> {
        let asked = self.stream.other_end[answer]?;
        let Kind::Answer { at, .. } = self.stream.events[answer].kind else {
            return None;
        };
        (asked < place).then_some((answer, Read::at(at)))
    }

    /// Moments of a call, latest first: before each event that can have changed the scheduler's
    /// answer.
    fn places(&self, asked: usize, index: usize) -> Vec<usize> {
        let changes = |&at: &usize| {
            matches!(
                self.stream.events[at].kind,
                Kind::Insert
                    | Kind::RequestMerge
                    | Kind::BioMerge { .. }
                    | Kind::Answer { .. }
                    | Kind::Complete { .. }
                    | Kind::Finish { .. }
                    | Kind::Get
            )
        };
        let mut places = vec![index];
        places.extend((asked + 1..index).rev().filter(changes));
        if asked + 1 < index {
            places.push(asked + 1);
            places.dedup();
        }
        places
    }

    /// Possible reads of a call outside the lock: of the second look at the tick only a range is
    /// known, and requests that another CPU is about to complete may not be counted yet.
    fn reads(&self, state: &Hypothesis, asked: usize, index: usize) -> Vec<Read> {
        let (event, entry) = (&self.stream.events[index], &self.stream.events[asked]);
        let (Kind::Answer { at: exit, .. }, Kind::Ask { at: entry, .. }) = (event.kind, entry.kind)
        else {
            return Vec::new();
        };
        let mut late = [0; LEVELS];
        for (_, &level) in state.late.iter().filter(|(cpu, _)| **cpu != event.cpu) {
            late[level] += 1;
        }
        let mut reads = Vec::new();
        for uncounted in [[0; LEVELS], late] {
            for locked in [exit, entry] {
                let read = Read { locked, uncounted };
                if !reads.contains(&read) {
                    reads.push(read);
                }
            }
        }
        reads
    }

    /// Ways in which other calls under way can have decided before: none first, then each, then
    /// each two. More than that at once has not been seen.
    fn others(&self) -> Vec<Vec<usize>> {
        let open: Vec<usize> = self
            .open
            .iter()
            .filter_map(|&asked| self.stream.other_end[asked])
            .filter(|answer| !self.plans.contains_key(answer))
            .collect();
        let mut orders = vec![Vec::new()];
        orders.extend(open.iter().map(|&one| vec![one]));
        for &first in &open {
            for &second in open.iter().filter(|&&second| second != first) {
                orders.push(vec![first, second]);
            }
        }
        orders
    }

    /// Takes an event again, with the decisions that are planned before it.
    fn replayed(&mut self, state: &mut Hypothesis, index: usize) -> Option<()> {
        // A call that is decided before an event returns after it.
        let mut due: Vec<(u64, usize, Read)> = self
            .plans
            .range(index..)
            .filter_map(|(&answer, &plan)| match plan {
                Plan::Before { event, turn, read } if event == index => Some((turn, answer, read)),
                _ => None,
            })
            .collect();
        due.sort_unstable_by_key(|&(turn, ..)| turn);
        for (_, answer, read) in due {
            // Results of a way that is only tried must not be remembered.
            let start = self.decide(state, answer, read)?;
            self.early.insert(answer, start);
            // Until its return it waits after the decision.
        }
        match self.step(state, index) {
            Ok(true) => Some(()),
            _ => None,
        }
    }
}
