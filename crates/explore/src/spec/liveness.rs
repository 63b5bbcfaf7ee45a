//! Does every inserted request end at last? The fairness of the specification applies: contexts and
//! completions that can continue do so; insertions need not happen.
//!
//! A behaviour that never ends a request stays at last in one strongly connected component of the
//! states in which that request lives. It is fair if each action with weak fairness happens in that
//! component or is impossible in some state of it, and each action with strong fairness happens in
//! it or is impossible in all states of it. For small configurations: all edges are kept.

mod round;

use super::search::showing;
use super::{Fairness, Runner, Specification};
use blkmq::schedule::{Schedule, Step};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lived {
    pub states: usize,
    pub edges: usize,
    /// A request that may wait for ever; none if all requests end.
    pub waits: Option<Waits>,
}

/// How a request waits for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waits {
    /// The number of the request, from 1.
    pub request: u8,
    /// The number of states of the component in which it waits.
    pub states: usize,
    /// Steps into that component and around in it, with what each changed.
    pub steps: Vec<Step>,
    /// The number of the step that follows the last one, for ever. None: nothing moves after the
    /// last step.
    pub repeats_from: Option<usize>,
}

impl Waits {
    pub fn schedule_file<S: Specification>(
        &self,
        variant: &str,
        constants: &[(String, String)],
        observed: &[String],
    ) -> Schedule {
        Schedule {
            spec: S::NAME.to_owned(),
            variant: variant.to_owned(),
            shows: "liveness violated".to_owned(),
            settings: constants.to_vec(),
            steps: showing(&self.steps, observed),
            repeats_from: self.repeats_from,
        }
    }
}

/// A step: its fairness bits, and its target.
#[derive(Clone, Copy, Debug)]
struct Edge<A> {
    action: A,
    /// Bits of the sets that the action belongs to.
    bits: u32,
    to: u32,
}

#[derive(Debug)]
struct Graph<A> {
    edges: Vec<Vec<Edge<A>>>,
    /// Bits of the requests that live.
    live: Vec<u8>,
}

/// Visits all states of a configuration and looks for a fair behaviour in which a request never
/// ends.
pub fn liveness<S: Specification>(setting: &S) -> Lived {
    // This property distinguishes requests.
    let setting = &setting.plain();
    let graph = Graph::of(setting);
    let fair = setting.fairness();
    let waits = (0..u8::BITS as u8).find_map(|request| {
        let part = graph.waits_for_ever(request, fair)?;
        let (actions, repeats_from) = graph.round(&part, fair);
        Some(Waits {
            request: request + 1,
            states: part.len(),
            steps: super::replay::steps(setting, &actions),
            repeats_from,
        })
    });
    Lived {
        states: graph.edges.len(),
        edges: graph.edges.iter().map(Vec::len).sum(),
        waits,
    }
}

impl<A: Copy> Graph<A> {
    fn of<S: Specification<Action = A>>(setting: &S) -> Graph<A> {
        let mut graph = Graph {
            edges: Vec::new(),
            live: Vec::new(),
        };
        let mut known: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let mut runner = Runner::new(false);
        let (mut actions, mut projection) = (Vec::new(), Vec::new());
        let first = setting.first();
        setting.project(&first, &mut projection);
        known.insert(projection.clone(), graph.add(setting.waiting(&first)));
        let mut open = vec![(0, first)];
        while let Some((id, world)) = open.pop() {
            setting.actions(&world, &mut actions);
            for &action in &actions {
                let mut next = world.clone();
                setting.take(&mut runner, &mut next, action);
                projection.clear();
                setting.project(&next, &mut projection);
                let to = match known.get(&projection) {
                    Some(&to) => to,
                    None => {
                        let to = graph.add(setting.waiting(&next));
                        known.insert(projection.clone(), to);
                        open.push((to, next));
                        to
                    }
                };
                let bits = setting.fair_bits(&world, action);
                graph.edges[id as usize].push(Edge { action, bits, to });
            }
        }
        graph
    }

    fn add(&mut self, waiting: u8) -> u32 {
        self.live.push(waiting);
        self.edges.push(Vec::new());
        self.edges.len() as u32 - 1
    }

    /// States of a fair component in which the request lives throughout.
    fn waits_for_ever(&self, request: u8, fair: Fairness) -> Option<Vec<u32>> {
        let lives = self.live.iter().map(|bits| bits >> request & 1 == 1);
        self.fair_part(&lives.collect::<Vec<bool>>(), fair)
    }

    /// States of a fair component of the states `inside`.
    fn fair_part(&self, inside: &[bool], fair: Fairness) -> Option<Vec<u32>> {
        let parts = self.parts(|state| inside[state as usize]);
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (state, &part) in (0..).zip(&parts) {
            if inside[state as usize] {
                members.entry(part).or_default().push(state);
            }
        }
        for (part, states) in members {
            let here = |state: u32| inside[state as usize] && parts[state as usize] == part;
            let (mut moves, mut rests, mut possible) = (0_u32, 0_u32, 0_u32);
            for &state in &states {
                let mut enabled = 0;
                for edge in &self.edges[state as usize] {
                    enabled |= edge.bits;
                    if here(edge.to) {
                        moves |= edge.bits;
                    }
                }
                rests |= !enabled;
                possible |= enabled;
            }
            if fair.weak & !(moves | rests) != 0 {
                continue;
            }
            let denied = fair.strong & possible & !moves;
            if denied == 0 {
                return Some(states);
            }
            // A behaviour that never takes an action with strong fairness keeps to states in which
            // it is impossible.
            let mut fewer = vec![false; inside.len()];
            for &state in &states {
                let enabled = self.edges[state as usize].iter().map(|edge| edge.bits);
                fewer[state as usize] = enabled.fold(0, |all, bits| all | bits) & denied == 0;
            }
            if let Some(part) = self.fair_part(&fewer, fair) {
                return Some(part);
            }
        }
        None
    }

    /// The number of the strongly connected component of each state, for states inside only:
    /// Tarjan's algorithm with an explicit stack.
    fn parts(&self, inside: impl Fn(u32) -> bool) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let count = self.edges.len();
        let (mut order, mut low) = (vec![NONE; count], vec![NONE; count]);
        let (mut part, mut stack, mut next) = (vec![NONE; count], Vec::new(), 0);
        for root in (0..count as u32).filter(|&state| inside(state)) {
            if order[root as usize] != NONE {
                continue;
            }
            let mut path = vec![(root, 0_usize)];
            while let Some((state, at)) = path.last_mut() {
                let here = *state as usize;
                if *at == 0 {
                    (order[here], low[here]) = (next, next);
                    next += 1;
                    stack.push(*state);
                }
                let Some(edge) = self.edges[here].get(*at) else {
                    let done = *state;
                    path.pop();
                    if let Some(&(before, _)) = path.last() {
                        low[before as usize] = low[before as usize].min(low[here]);
                    }
                    if low[here] == order[here] {
                        while let Some(member) = stack.pop() {
                            part[member as usize] = done;
                            if member == done {
                                break;
                            }
                        }
                    }
                    continue;
                };
                *at += 1;
                let to = edge.to as usize;
                if !inside(edge.to) {
                    continue;
                }
                if order[to] == NONE {
                    path.push((edge.to, 0));
                } else if part[to] == NONE {
                    low[here] = low[here].min(order[to]);
                }
            }
        }
        part
    }
}
