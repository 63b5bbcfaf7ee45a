//! Every state of a configuration, breadth first.

use super::{State, TagWait};
use crate::fingerprint::{Seen, StateId, fingerprint};
use crate::guard::guarded;
use crate::report::{Report, Step, Verdict};

/// How a state was first reached: its parent, which task moved, and how.
type Origin = (StateId, u8, u8);

/// Visits every state of `config` and stops at the first violation.
pub fn tag_waits(config: &TagWait) -> Report {
    let mut search = Search {
        seen: Seen::new(),
        origins: Vec::new(),
        generated: 1,
        depth: 0,
        at: 0,
    };
    let verdict = search.run(config);
    let schedule = match verdict {
        Verdict::Clean | Verdict::Unfinished => Vec::new(),
        _ => search.schedule(config),
    };
    Report {
        name: config.name.to_owned(),
        seed: None,
        verdict: verdict.clone(),
        generated: search.generated,
        distinct: search.seen.len(),
        depth: search.depth,
        schedule,
    }
}

#[derive(Debug)]
struct Search {
    seen: Seen,
    origins: Vec<Origin>,
    generated: u64,
    depth: u32,
    /// State that is looked at.
    at: StateId,
}

impl Search {
    fn run(&mut self, config: &TagWait) -> Verdict {
        let first = State::first(config);
        self.seen.insert(fingerprint(&first));
        self.origins.push((StateId::MAX, 0, 0));
        let mut scratch = first.clone();
        let mut level = vec![(0, first)];
        while !level.is_empty() {
            self.depth += 1;
            let mut next = Vec::new();
            for (id, state) in &level {
                if let Err(verdict) = self.expand(config, *id, state, &mut scratch, &mut next) {
                    return verdict;
                }
            }
            level = next;
        }
        Verdict::Clean
    }

    /// All successors of one state.
    fn expand(
        &mut self,
        config: &TagWait,
        id: StateId,
        state: &State,
        scratch: &mut State,
        next: &mut Vec<(StateId, State)>,
    ) -> Result<(), Verdict> {
        self.at = id;
        for task in 0..state.tasks.len() {
            for way in 0..state.ways(config, task) {
                scratch.clone_from(state);
                self.generated += 1;
                guarded(|| scratch.apply(config, task, way)).map_err(Verdict::Panic)?;
                let Some(new) = self.seen.insert(fingerprint(scratch)) else {
                    continue;
                };
                self.origins.push((id, task as u8, way));
                self.at = new;
                scratch.check(config)?;
                if new as usize >= config.states_max {
                    return Err(Verdict::Unfinished);
                }
                next.push((new, scratch.clone()));
            }
        }
        if state.rests(config) {
            self.at = id;
            state.rest(config)?;
        }
        Ok(())
    }

    /// Steps from the first state to the one that was looked at last.
    fn schedule(&self, config: &TagWait) -> Vec<Step> {
        let mut moves = Vec::new();
        let mut at = self.at;
        while at != 0 {
            let (parent, task, way) = self.origins[at as usize];
            moves.push((task, way));
            at = parent;
        }
        let mut state = State::first(config);
        let tell = |&(task, way): &(u8, u8)| {
            let what = state.tasks[usize::from(task)].tells();
            state.apply(config, usize::from(task), way);
            let who = format!("task {task}");
            Step { who, what }
        };
        moves.iter().rev().map(tell).collect()
    }
}
