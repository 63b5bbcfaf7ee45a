//! Does every request that was inserted end at last? Under the fairness of the specification:
//! whoever can go on does so, and so do completions; nobody has to insert anything.
//!
//! A behaviour that never ends a request stays at last in one strongly connected part of the states
//! in which that request lives, and is fair if each of the fair processes moves in that part or
//! cannot move somewhere in it. For small configurations: all edges are kept.

use super::Specification;
use std::collections::BTreeMap;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lived {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub edges: usize,
    /// A request that may wait for ever, counted from 1, and the states of the part that it waits
    /// in; none if all end.
    pub waits: Option<(u8, usize)>,
}

/// A step: who moves, and where to.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// Bit of a fair process; none for an insertion.
    process: Option<u8>,
    to: u32,
}

#[derive(Debug, Default)]
struct Graph {
    edges: Vec<Vec<Edge>>,
    /// Bits of the requests that live.
    live: Vec<u8>,
}

/// Visits all states of a configuration and looks for a fair behaviour in which a request never
/// ends.
pub fn liveness<S: Specification>(setting: &S) -> Lived {
    let graph = Graph::of(setting);
    let fair = setting.fair();
    let waits = (0..u8::BITS as u8)
        .find_map(|request| Some((request + 1, graph.waits_for_ever(request, fair)?)));
    Lived {
        states: graph.edges.len(),
        edges: graph.edges.iter().map(Vec::len).sum(),
        waits,
    }
}

impl Graph {
    fn of<S: Specification>(setting: &S) -> Graph {
        // Which request it is matters here.
        let setting = &setting.plain();
        let mut graph = Graph::default();
        let mut known: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let mut runner = setting.runner(false);
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
                let process = setting.process(&world, action);
                graph.edges[id as usize].push(Edge { process, to });
            }
        }
        graph
    }

    fn add(&mut self, waiting: u8) -> u32 {
        self.live.push(waiting);
        self.edges.push(Vec::new());
        self.edges.len() as u32 - 1
    }

    /// States of a fair part in which the request lives throughout.
    fn waits_for_ever(&self, request: u8, fair: u8) -> Option<usize> {
        let inside = |state: u32| self.live[state as usize] >> request & 1 == 1;
        let parts = self.parts(inside);
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (state, &part) in (0..).zip(&parts) {
            if inside(state) {
                members.entry(part).or_default().push(state);
            }
        }
        let all = (1_u32 << fair) - 1;
        let is_fair = |states: &[u32]| {
            let part = parts[states[0] as usize];
            let (mut moves, mut rests) = (0_u32, 0_u32);
            for &state in states {
                let mut enabled = 0_u32;
                for edge in &self.edges[state as usize] {
                    let bit = edge.process.map_or(0, |process| 1 << process);
                    enabled |= bit;
                    if inside(edge.to) && parts[edge.to as usize] == part {
                        moves |= bit;
                    }
                }
                rests |= all & !enabled;
            }
            moves | rests == all
        };
        let mut fair_parts = members.values().filter(|states| is_fair(states));
        fair_parts.next().map(Vec::len)
    }

    /// Number of the strongly connected part of each state, looking only at states inside: Tarjan,
    /// with a stack of its own.
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
