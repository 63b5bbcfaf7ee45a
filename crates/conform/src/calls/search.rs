//! At which moment of a call was the scheduler asked?
//!
//! Each way is tried by going back to a state before it and taking all events since once more.

use blkmq::elevator::LEVELS;

use super::{Calls, Plan, Read};
use crate::event::Kind;
use crate::follow::State;

/// Ways that are tried for one answer, at most.
const TRIES_MOST: usize = 4000;

impl Calls<'_> {
    /// Looks for a moment of the call at which the model decides as the kernel did, latest first.
    /// Other calls that have not returned may have decided before.
    pub(super) fn explain(&mut self, state: &State, index: usize) -> Option<State> {
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

    /// The state behind an answer if it came about like this, and all others as before.
    fn attempt(
        &mut self,
        index: usize,
        plan: Plan,
        place: usize,
        others: &[usize],
    ) -> Option<State> {
        // Before the first plan is made: a way that cannot be leaves none behind.
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
            // Behind the others.
            Plan::Before { event, read, .. } => self.before(event, read),
            plan => plan,
        };
        before.push((index, self.plans.get(&index).copied()));
        self.plans.insert(index, plan);
        let (mut state, from) = self.kept.before(place.min(index));
        state.notes.clear();
        let went = (from..=index).all(|event| self.replayed(&mut state, event).is_some());
        if went {
            // What was kept of later states had another past.
            self.kept.forget_behind(place);
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

    /// What another call reads that has asked before this event and decides then.
    fn read_at_return(&self, answer: usize, place: usize) -> Option<(usize, Read)> {
        let asked = self.stream.other_end[answer]?;
        let Kind::Answer { at, .. } = self.stream.events[answer].kind else {
            return None;
        };
        let read = Read {
            locked: at,
            uncounted: [0; LEVELS],
        };
        (asked < place).then_some((answer, read))
    }

    /// Moments of a call, latest first: before each event that can have changed what the
    /// scheduler says.
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

    /// What a call can have read outside the lock: of the second look at the tick only a range is
    /// known, and requests whose end another CPU is about to count may not be counted yet.
    fn reads(&self, state: &State, asked: usize, index: usize) -> Vec<Read> {
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
}
