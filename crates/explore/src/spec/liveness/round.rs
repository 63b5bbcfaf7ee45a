//! A way into a fair component, and one round in it: the behaviour in which a request waits for
//! ever.

use super::{Edge, Graph};
use crate::spec::Fairness;
use std::collections::{BTreeMap, VecDeque};

/// The fairness conditions that a round has still to meet.
#[derive(Clone, Copy, Debug)]
struct Owed {
    /// Bits of actions to be taken, or to be impossible in a state of the round.
    weak: u32,
    strong: u32,
}

impl Owed {
    fn is_paid(self) -> bool {
        self.weak | self.strong == 0
    }

    /// The round visited a state in which only these actions are possible.
    fn visit(&mut self, enabled: u32) {
        self.weak &= enabled;
    }

    fn take(&mut self, bits: u32) {
        self.weak &= !bits;
        self.strong &= !bits;
    }

    /// Whether a state meets an open condition.
    fn wants_state(self, enabled: u32) -> bool {
        self.weak & !enabled != 0
    }

    fn wants(self, bits: u32) -> bool {
        (self.weak | self.strong) & bits != 0
    }
}

impl<A: Copy> Graph<A> {
    /// Actions into the component and around in it, and the number, from 1, of the action that
    /// follows the last one; none if nothing moves in the component.
    pub(super) fn round(&self, part: &[u32], fair: Fairness) -> (Vec<A>, Option<usize>) {
        let inside = |state: u32| part.binary_search(&state).is_ok();
        let way = self.way(0, |_| true, inside);
        let mut actions: Vec<A> = way.iter().map(|edge| edge.action).collect();
        let start = way.last().map_or(0, |edge| edge.to);
        let before = actions.len();
        let possible = part.iter().map(|&state| self.enabled(state));
        let mut owed = Owed {
            weak: fair.weak,
            strong: fair.strong & possible.fold(0, |all, bits| all | bits),
        };
        owed.visit(self.enabled(start));
        let mut at = start;
        let mut go = |at: &mut u32, owed: &mut Owed, edge: Edge<A>| {
            owed.take(edge.bits);
            owed.visit(self.enabled(edge.to));
            actions.push(edge.action);
            *at = edge.to;
        };
        while !owed.is_paid() {
            let paying = |edge: &&Edge<A>| {
                let pays = owed.wants(edge.bits) || owed.wants_state(self.enabled(edge.to));
                inside(edge.to) && pays
            };
            let pays = |state: u32| self.edges[state as usize].iter().any(|edge| paying(&edge));
            let way = self.way(at, inside, pays);
            let last = way.last().map_or(at, |edge| edge.to);
            let found = self.edges[last as usize].iter().find(paying);
            let edge = *found.expect("a fair part pays for all");
            for edge in way.into_iter().chain([edge]) {
                go(&mut at, &mut owed, edge);
            }
        }
        for edge in self.way(at, inside, |state| state == start) {
            go(&mut at, &mut owed, edge);
        }
        let moves = actions.len() > before;
        (actions, moves.then_some(before + 1))
    }

    /// Bits of the actions that are possible in a state.
    fn enabled(&self, state: u32) -> u32 {
        let edges = self.edges[state as usize].iter();
        edges.fold(0, |all, edge| all | edge.bits)
    }

    /// A shortest way to a goal over allowed states. Panics if there is none: components are
    /// strongly connected, and every state is reached from the first.
    fn way(
        &self,
        from: u32,
        allowed: impl Fn(u32) -> bool,
        goal: impl Fn(u32) -> bool,
    ) -> Vec<Edge<A>> {
        let mut came: BTreeMap<u32, Option<(u32, Edge<A>)>> = BTreeMap::from([(from, None)]);
        let mut open = VecDeque::from([from]);
        while let Some(state) = open.pop_front() {
            if goal(state) {
                let mut way = Vec::new();
                let mut at = state;
                while let Some((before, edge)) = came[&at] {
                    way.push(edge);
                    at = before;
                }
                way.reverse();
                return way;
            }
            for &edge in &self.edges[state as usize] {
                if allowed(edge.to) && !came.contains_key(&edge.to) {
                    came.insert(edge.to, Some((state, edge)));
                    open.push_back(edge.to);
                }
            }
        }
        unreachable!("the goal is reached from everywhere in its part")
    }
}
