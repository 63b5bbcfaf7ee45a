//! Every state of a configuration, breadth first.

use crate::config::Config;
use crate::fingerprint::{Seen, StateId, fingerprint};
use crate::guard::guarded;
use crate::oracle;
use crate::report::{Report, Verdict, schedule};
use crate::world::{Choice, Fixed, World};

/// How a state was first reached.
#[derive(Clone, Copy, Debug)]
struct Origin {
    parent: StateId,
    choice: Choice,
}

/// Visits every state of `config` and stops at the first violation.
pub fn exhaustive(config: &Config) -> Report {
    let mut search = Search::new(config);
    let verdict = search.run();
    let schedule = match verdict {
        Verdict::Clean | Verdict::Unfinished => Vec::new(),
        _ => {
            let path = search.path();
            schedule(&mut search.fixed, &path, u64::MAX)
        }
    };
    Report {
        name: config.name.clone(),
        seed: None,
        verdict,
        generated: search.generated,
        distinct: search.seen.len(),
        depth: search.depth,
        schedule,
    }
}

#[derive(Debug)]
struct Search {
    fixed: Fixed,
    seen: Seen,
    origins: Vec<Origin>,
    /// The origin of the state that is being expanded.
    last: Option<Origin>,
    generated: u64,
    depth: u32,
    /// Steps between states, and states without choices; kept only if every state must have a way
    /// to one of the latter.
    steps: Vec<(StateId, StateId)>,
    ends: Vec<StateId>,
}

impl Search {
    fn new(config: &Config) -> Search {
        Search {
            fixed: Fixed::new(config),
            seen: Seen::new(),
            origins: Vec::new(),
            last: None,
            generated: 1,
            depth: 0,
            steps: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn run(&mut self) -> Verdict {
        let first = self.fixed.first();
        self.seen.insert(fingerprint(&first));
        let nowhere = Choice { context: 0, way: 0 };
        self.origins.push(Origin {
            parent: StateId::MAX,
            choice: nowhere,
        });
        let mut scratch = first.clone();
        let mut spare: Vec<World> = Vec::new();
        let mut level = vec![(0, first)];
        while !level.is_empty() {
            self.depth += 1;
            let mut next = Vec::new();
            for (id, world) in level.drain(..) {
                if let Err(verdict) = self.expand(id, &world, &mut scratch, &mut spare, &mut next) {
                    return verdict;
                }
                spare.push(world);
            }
            level = next;
        }
        match self.fixed.config.must_end {
            true => self.ways_out(),
            false => Verdict::Clean,
        }
    }

    fn expand(
        &mut self,
        id: StateId,
        world: &World,
        scratch: &mut World,
        spare: &mut Vec<World>,
        next: &mut Vec<(StateId, World)>,
    ) -> Result<(), Verdict> {
        self.last = Some(self.origins[id as usize]);
        let mut choices = Vec::new();
        world.choices(&self.fixed, &mut choices);
        oracle::rest(world, &self.fixed, &choices)?;
        let must_end = self.fixed.config.must_end;
        if must_end && choices.is_empty() {
            self.ends.push(id);
        }
        let mut log = Vec::new();
        for &choice in &choices {
            scratch.clone_from(world);
            self.generated += 1;
            let origin = Origin { parent: id, choice };
            self.last = Some(origin);
            let fixed = &self.fixed;
            guarded(|| scratch.apply(fixed, choice, &mut log)).map_err(Verdict::Panic)?;
            let print = fingerprint(scratch);
            let new = self.seen.insert(print);
            if must_end && let Some(to) = new.or_else(|| self.seen.find(print)) {
                self.steps.push((id, to));
            }
            let Some(new) = new else { continue };
            self.origins.push(origin);
            guarded(|| oracle::check(scratch)).map_err(Verdict::Broken)??;
            if new as usize >= self.fixed.config.states_max {
                return Err(Verdict::Unfinished);
            }
            let mut kept = spare.pop().unwrap_or_else(|| scratch.clone());
            kept.clone_from(scratch);
            next.push((new, kept));
        }
        Ok(())
    }

    /// After all states were visited: is there a way from each to an end? Reports the first state
    /// without one.
    fn ways_out(&mut self) -> Verdict {
        self.steps.sort_unstable_by_key(|&(_, to)| to);
        let mut leads = vec![false; self.seen.len()];
        let mut open = core::mem::take(&mut self.ends);
        while let Some(state) = open.pop() {
            if core::mem::replace(&mut leads[state as usize], true) {
                continue;
            }
            let first = self.steps.partition_point(|&(_, to)| to < state);
            let back = self.steps[first..]
                .iter()
                .take_while(|&&(_, to)| to == state);
            open.extend(back.map(|&(from, _)| from));
        }
        let Some(lost) = leads.iter().position(|&leads| !leads) else {
            return Verdict::Clean;
        };
        self.last = Some(self.origins[lost]);
        let lost = leads.iter().filter(|&&leads| !leads).count();
        Verdict::NoWayOut(format!("from {lost} states no step leads to an end"))
    }

    /// Choices from the first state to the one where the search stopped.
    fn path(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut at = self.last;
        while let Some(origin) = at {
            if origin.parent == StateId::MAX {
                break;
            }
            choices.push(origin.choice);
            at = Some(self.origins[origin.parent as usize]);
        }
        choices.reverse();
        choices
    }
}
