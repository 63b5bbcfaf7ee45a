//! A thread's part of a batch: states are expanded, and successors that may be new are returned.

use core::ops::{ControlFlow, Range};

use super::{KINDS, Kept, Model, Origin, Shared};
use crate::resources::Halt;
use crate::seen::{NONE, StateId};

/// What a thread needs to expand states; no result depends on it.
pub(super) struct Worker<M: Model> {
    pub(super) first: M::World,
    pub(super) runner: M::Runner,
    choices: Vec<M::Choice>,
    pub(super) spare: Vec<Kept<M>>,
    /// Prints of the chunk that were unknown, as far as no later one has their place; each with the
    /// chunk's mark added, so that those of other chunks are others.
    fresh: Vec<u128>,
    mark: u128,
}

/// Prints of a chunk that are kept in mind.
const FRESH: usize = 1 << 10;
const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// How states are expanded.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Return successors that may be new.
    pub(super) meet: bool,
    /// And keep them as states.
    pub(super) keep: bool,
    /// Only up to this choice.
    pub(super) until: Option<Origin>,
}

/// Where states come from.
pub(super) enum Source<M: Model> {
    Kept(Vec<Kept<M>>),
    /// Parents, which are neighbours, and choices there.
    Derived(Vec<Origin>),
}

/// A successor that is not known to be visited, or differs from all states with its print.
pub(super) struct Found<F> {
    pub(super) print: u128,
    /// None: it is not tested.
    pub(super) concrete: Option<u128>,
    pub(super) known: StateId,
    pub(super) origin: Origin,
    pub(super) ends: bool,
    pub(super) fault: Option<Box<F>>,
}

/// What was found from neighbouring states of a level.
pub(super) struct Chunk<M: Model> {
    pub(super) part: Range<StateId>,
    pub(super) found: Vec<Found<M::Fault>>,
    /// The states that were found, if they are kept.
    pub(super) worlds: Vec<Option<Kept<M>>>,
    pub(super) counts: Counts<M::Fault>,
}

pub(super) struct Counts<F> {
    pub(super) generated: u64,
    pub(super) taken: [u64; KINDS],
    /// Digests of the successors, for each state.
    pub(super) digests: Vec<u64>,
    /// Steps to visited states, and states without choices, if the graph is kept.
    pub(super) steps: Vec<(StateId, StateId)>,
    pub(super) stops: Vec<StateId>,
    /// A state, or a choice there, at which the chunk ends.
    pub(super) fault: Option<(Box<F>, StateId, Option<u16>)>,
}

impl<M: Model> Chunk<M> {
    pub(super) fn new(part: Range<StateId>) -> Chunk<M> {
        Chunk {
            part,
            found: Vec::new(),
            worlds: Vec::new(),
            counts: Counts {
                generated: 0,
                taken: [0; KINDS],
                digests: Vec::new(),
                steps: Vec::new(),
                stops: Vec::new(),
                fault: None,
            },
        }
    }

    fn ends_at(&mut self, fault: M::Fault, id: StateId, way: Option<u16>) -> ControlFlow<()> {
        self.counts.fault = Some((Box::new(fault), id, way));
        ControlFlow::Break(())
    }
}

impl<M: Model> Shared<'_, M> {
    /// Expands states with these numbers.
    pub(super) fn expand(
        &self,
        part: Range<StateId>,
        source: Source<M>,
        how: How,
    ) -> Result<Chunk<M>, Halt> {
        let mut chunk = Chunk::new(part.clone());
        let mut ids = part.clone();
        self.each(source, |worker, world| {
            if ids.start == part.start {
                worker.mark = worker.mark.wrapping_add(ODD);
            }
            let id = ids.next().expect("a number for each state");
            worker.expand(self, (id, world), how, &mut chunk)
        })?;
        Ok(chunk)
    }
}

impl<M: Model> Shared<'_, M> {
    /// A copy of a state, in the place of a spare one if there is any.
    #[expect(clippy::unnecessary_box_returns, reason = "states are kept in boxes")]
    pub(super) fn copy(&self, own: &mut Vec<Kept<M>>, world: &M::World) -> Kept<M> {
        if own.is_empty() {
            let mut spare = self.spare();
            let rest = spare.len().saturating_sub(64);
            own.extend(spare.drain(rest..));
        }
        match own.pop() {
            Some(mut spare) => {
                (*spare).clone_from(world);
                spare
            }
            None => Box::new(world.clone()),
        }
    }
}

impl<M: Model> Worker<M> {
    pub(super) fn new(model: &M) -> Worker<M> {
        Worker {
            first: model.first(),
            runner: model.runner(),
            choices: Vec::new(),
            spare: Vec::new(),
            fresh: vec![0; FRESH],
            mark: 0,
        }
    }

    /// Takes the choice with this number, which was taken in this state before.
    pub(super) fn follow(&mut self, model: &M, world: &mut M::World, way: u16) {
        let right = model.choices(world, &mut self.choices);
        let choice = self.choices[usize::from(way)];
        let right = right.and_then(|()| model.take(&mut self.runner, world, choice));
        assert!(right.is_ok(), "a choice that was right is right again");
    }

    /// Takes all choices of a state, unless one of them is wrong.
    fn expand(
        &mut self,
        shared: &Shared<'_, M>,
        (id, world): (StateId, Kept<M>),
        how: How,
        chunk: &mut Chunk<M>,
    ) -> ControlFlow<()> {
        let model = shared.model;
        let mut choices = core::mem::take(&mut self.choices);
        if let Err(fault) = model.choices(&world, &mut choices) {
            return chunk.ends_at(fault, id, None);
        }
        if shared.limits.graph && choices.is_empty() {
            chunk.counts.stops.push(id);
        }
        let tests = shared.limits.test_one_in > 0;
        let (last, mut digest) = (choices.len(), 0_u64);
        let mut source = Some(world);
        for (way, &choice) in (0..).zip(&choices) {
            let world = source.as_ref().expect("the last choice takes it");
            chunk.counts.generated += 1;
            chunk.counts.taken[model.kind(world, choice)] += 1;
            // The last choice may reuse the state itself.
            let mut next = match usize::from(way) + 1 == last {
                true => source.take().expect("it was there"),
                false => shared.copy(&mut self.spare, world),
            };
            if let Err(fault) = model.take(&mut self.runner, &mut next, choice) {
                return chunk.ends_at(fault, id, Some(way));
            }
            let print = model.print(&mut self.runner, &next);
            if tests {
                digest = digest.wrapping_add(model.digest(choice, print));
            }
            let origin = Origin { parent: id, way };
            self.meet(shared, (next, print), origin, how, chunk);
            if how.until == Some(origin) {
                return ControlFlow::Break(());
            }
        }
        self.spare.extend(source);
        self.choices = choices;
        if tests {
            chunk.counts.digests.push(digest);
        }
        ControlFlow::Continue(())
    }

    /// Returns a state with the chunk if it may be new.
    pub(super) fn meet(
        &mut self,
        shared: &Shared<'_, M>,
        (world, print): (Kept<M>, u128),
        origin: Origin,
        how: How,
        chunk: &mut Chunk<M>,
    ) {
        let (model, one_in) = (shared.model, shared.limits.test_one_in);
        let known = shared.seen.recent(print);
        if let Some(to) = known
            && shared.limits.graph
        {
            chunk.counts.steps.push((origin.parent, to));
        }
        let concrete = (how.meet && one_in > 0).then(|| model.concrete(&world));
        let concrete = concrete.filter(|print| (*print as u64).is_multiple_of(one_in));
        let differs = concrete.is_some_and(|print| shared.concretes.recent(print).is_none());
        let (fresh, marked) = (
            &mut self.fresh[print as usize % FRESH],
            print.wrapping_add(self.mark),
        );
        let old = known.is_some() || core::mem::replace(fresh, marked) == marked;
        // Its step needs the number of the state.
        let wanted = known.is_none() && shared.limits.graph;
        if !how.meet || (old && !differs && !wanted) {
            return self.spare.push(world);
        }
        let (fault, ends) = match old {
            false => (model.judge(&world).err(), model.ends_well(&world)),
            true => (None, false),
        };
        chunk.found.push(Found {
            print,
            concrete,
            known: known.unwrap_or(NONE),
            origin,
            ends,
            fault: fault.map(Box::new),
        });
        let kept = match how.keep && (!old || differs) {
            true => Some(world),
            false => {
                self.spare.push(world);
                None
            }
        };
        chunk.worlds.push(kept);
    }
}
