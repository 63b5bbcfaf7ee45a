//! Every state of a model, breadth first, on several threads and with little memory.
//!
//! Of a visited state only its fingerprint, its parent and the way from there are kept; the states
//! of a wide level are derived again from the first one, a piece of the level at a time
//! (`tree.rs`). Threads expand pieces of a batch (`worker.rs`), then the shards of the table take
//! the successors, each in the order of a single thread. So counts, verdicts and paths depend
//! neither on the number of threads nor on memory, which only decides what goes to files
//! (`seen.rs`, `column.rs`).

mod tree;
mod twins;
mod worker;

use core::fmt::Debug;
use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::column::Column;
use crate::resources::{Halt, Progress, Resources};
use crate::seen::{NONE, Seen, StateId};
use twins::Twins;
use worker::{Chunk, Counts, Found, How, Source, Worker};

/// A state that a search may keep.
type Kept<M> = Box<<M as Model>::World>;

/// States of a level, and the states themselves if they are kept.
type Part<M> = (Range<StateId>, Option<Vec<Kept<M>>>);

/// What is searched.
pub(crate) trait Model: Sync + Debug {
    /// A state. `clone_from` should allocate nothing.
    type World: Clone + Send;
    /// A way to go on from a state.
    type Choice: Copy + Send;
    /// Takes choices; no state contains it.
    type Runner: Send;
    /// Why a state or a choice is wrong.
    type Fault: Clone + Send + Sync;

    fn first(&self) -> Self::World;
    fn runner(&self) -> Self::Runner;
    /// All choices of a state, in a fixed order; an error ends the search here.
    fn choices(
        &self,
        world: &Self::World,
        choices: &mut Vec<Self::Choice>,
    ) -> Result<(), Self::Fault>;
    /// The number of the choice's kind, less than [`KINDS`].
    fn kind(&self, world: &Self::World, choice: Self::Choice) -> usize;
    /// An error ends the search here.
    fn take(
        &self,
        runner: &mut Self::Runner,
        world: &mut Self::World,
        choice: Self::Choice,
    ) -> Result<(), Self::Fault>;
    /// What makes states the same.
    fn print(&self, runner: &mut Self::Runner, world: &Self::World) -> u128;
    /// A hash of all of a state, for the test of projections.
    fn concrete(&self, world: &Self::World) -> u128;
    /// A choice in the digest of the successors of a state.
    fn digest(&self, choice: Self::Choice, print: u128) -> u64;
    /// Judges a new state.
    fn judge(&self, world: &Self::World) -> Result<(), Self::Fault>;
    fn ends_well(&self, world: &Self::World) -> bool;
}

/// Kinds of choices that are counted.
pub(crate) const KINDS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Continue after a wrong state.
    pub(crate) whole: bool,
    /// Give up at so many distinct states.
    pub(crate) states_max: usize,
    /// Keep the steps between states, and the states without choices.
    pub(crate) graph: bool,
    /// One in so many states that differ from a visited one with the same print is tested: it must
    /// have the same successors. 0: none.
    pub(crate) test_one_in: u64,
}

/// The choices to a place, each by its number in the state before.
pub(crate) type Path = Vec<u16>;

#[derive(Debug)]
pub(crate) enum End<F> {
    /// All was visited.
    All,
    /// The first fault, and the path to it.
    Fault(F, Path),
    /// The path to a state that has other successors than a state with the same print.
    Torn(Path),
    /// There are more states than wanted.
    Unfinished,
}

#[derive(Debug)]
pub(crate) struct Searched<F> {
    pub(crate) end: End<F>,
    /// The first state, and every choice of every state.
    pub(crate) generated: u64,
    pub(crate) distinct: u64,
    /// States on the longest of the shortest paths.
    pub(crate) depth: u64,
    pub(crate) taken: [u64; KINDS],
    /// States expanded for the test of projections.
    pub(crate) tested: u64,
    /// Some state ends well.
    pub(crate) ends: bool,
    /// States from which no step leads to a state without choices, and the path to the first one;
    /// if the graph was kept.
    pub(crate) lost: Option<(u64, Path)>,
}

/// States of a level that are kept instead of derived, if it has no more: they and their
/// successors fit into a cache.
const KEPT_MAX: u64 = 512;
/// What a state takes at most, roughly.
const WORLD_BYTES: u64 = 1 << 14;
/// States that a thread takes at once.
const CHUNK: usize = 256;
/// Pieces of a batch for each thread: at its end threads wait for each other.
const CHUNKS_OF_THREAD: usize = 32;
/// What a state of a batch takes, with its successors, roughly.
const BATCH_BYTES: u64 = 256;
/// The most states of a batch.
const BATCH_MAX: u64 = 1 << 24;

/// Visits all states.
pub(crate) fn search<M: Model>(
    model: &M,
    limits: Limits,
    resources: &Resources<'_>,
) -> Result<Searched<M::Fault>, Halt> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(resources.jobs);
    let pool = pool.build().map_err(|e| Halt::Threads(e.to_string()))?;
    pool.install(|| {
        let mut search = Search::new(model, limits, resources);
        search.run()?;
        search.report()
    })
}

/// What all threads read.
struct Shared<'a, M: Model> {
    model: &'a M,
    limits: Limits,
    resources: &'a Resources<'a>,
    seen: Seen,
    /// Concrete states with the prints of visited ones, if they are tested.
    concretes: Seen,
    /// Parent of each state, and the number of the choice there.
    origins: Column<6>,
    workers: Mutex<Vec<Worker<M>>>,
    /// States that were kept, to be used again.
    spare: Mutex<Vec<Kept<M>>>,
}

struct Search<'a, M: Model> {
    shared: Shared<'a, M>,
    /// The number of concrete states.
    concretes: StateId,
    /// Steps between states, and states without choices.
    steps: Column<8>,
    stops: Vec<StateId>,
    twins: Twins<M>,
    /// The states of the next level, if they are kept.
    kept: Option<Vec<Kept<M>>>,
    generated: u64,
    depth: u64,
    taken: [u64; KINDS],
    ends: bool,
    /// The first fault, the state there or before it, and the choice.
    fault: Option<(M::Fault, StateId, Option<u16>)>,
    unfinished: bool,
    /// Nothing more is expanded.
    over: bool,
}

/// The parent of a state, and the number of the choice there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Origin {
    parent: StateId,
    way: u16,
}

impl Origin {
    fn bytes(self) -> [u8; 6] {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.parent.to_le_bytes());
        bytes[4..].copy_from_slice(&self.way.to_le_bytes());
        bytes
    }

    fn of(bytes: [u8; 6]) -> Origin {
        let (parent, way) = bytes.split_at(4);
        Origin {
            parent: u32::from_le_bytes(parent.try_into().expect("four bytes")),
            way: u16::from_le_bytes(way.try_into().expect("two bytes")),
        }
    }
}

impl<M: Model> Shared<'_, M> {
    fn spare(&self) -> MutexGuard<'_, Vec<Kept<M>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// States of a level, which are given if they were kept.
    fn source(
        &self,
        part: &Range<StateId>,
        worlds: Option<Vec<Kept<M>>>,
    ) -> Result<Source<M>, Halt> {
        Ok(match worlds {
            Some(worlds) => Source::Kept(worlds),
            None if part.start == 0 => Source::Kept(vec![Box::new(self.model.first())]),
            None => Source::Derived(self.origins_of(part.clone())?),
        })
    }

    /// Counts again, up to the choice that ends the search.
    fn counts_up_to(
        &self,
        part: Range<StateId>,
        until: Option<Origin>,
    ) -> Result<Counts<M::Fault>, Halt> {
        let how = How {
            meet: false,
            keep: false,
            until,
        };
        let source = self.source(&part, None)?;
        Ok(self.expand(part, source, how)?.counts)
    }

    fn origins_of(&self, ids: impl Iterator<Item = StateId>) -> Result<Vec<Origin>, Halt> {
        let mut origins = Vec::with_capacity(ids.size_hint().0);
        let ids = ids.map(|id| id as usize);
        self.origins
            .read(ids, |bytes| origins.push(Origin::of(bytes)))?;
        Ok(origins)
    }

    fn path(&self, to: StateId) -> Result<Path, Halt> {
        let mut path = Vec::new();
        let mut at = to;
        while at > 0 {
            let Origin { parent, way } = Origin::of(self.origins.get(at as usize)?);
            path.push(way);
            at = parent;
        }
        path.reverse();
        Ok(path)
    }
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M, limits: Limits, resources: &'a Resources<'a>) -> Search<'a, M> {
        let part = resources.memory / 16;
        let of_tables = match limits.test_one_in {
            0 => 12 * part,
            _ => 6 * part,
        };
        Search {
            shared: Shared {
                model,
                limits,
                resources,
                seen: Seen::new(of_tables),
                concretes: Seen::new(of_tables),
                origins: Column::new(part),
                workers: Mutex::new(Vec::new()),
                spare: Mutex::new(Vec::new()),
            },
            concretes: 0,
            steps: Column::new(part),
            stops: Vec::new(),
            twins: Twins::new(part),
            kept: None,
            generated: 1,
            depth: 0,
            taken: [0; KINDS],
            ends: false,
            fault: None,
            unfinished: false,
            over: false,
        }
    }

    fn run(&mut self) -> Result<(), Halt> {
        self.begin()?;
        let mut level = 0..self.distinct();
        while !level.is_empty() && !self.over {
            self.depth += 1;
            self.expand_level(level.clone())?;
            level = level.end..self.distinct();
            self.test_twins()?;
        }
        // Those of the last levels; also after a fault.
        self.test_twins()?;
        self.test_twins()
    }

    fn distinct(&self) -> StateId {
        self.shared.origins.len() as StateId
    }

    /// Records the first state.
    fn begin(&mut self) -> Result<(), Halt> {
        let model = self.shared.model;
        let mut worker = Worker::new(model);
        let mut chunk = Chunk::new(0..0);
        let first = Box::new(model.first());
        let print = model.print(&mut worker.runner, &first);
        let nowhere = Origin { parent: 0, way: 0 };
        let how = How {
            meet: true,
            keep: true,
            until: None,
        };
        worker.meet(&self.shared, (first, print), nowhere, how, &mut chunk);
        self.merge(vec![chunk], true)
    }

    fn expand_level(&mut self, mut level: Range<StateId>) -> Result<(), Halt> {
        let resources = self.shared.resources;
        let keep = level.len() as u64 <= (resources.memory / 16 / WORLD_BYTES).min(KEPT_MAX);
        let mut worlds = self.kept.take().map(Vec::into_iter);
        while !level.is_empty() && !self.over {
            let most = match worlds {
                // Successors that are not new are soon there for others.
                Some(_) => (CHUNK * rayon::current_num_threads()) as StateId,
                None => self.batch_max(),
            };
            let batch = level.start..level.end.min(level.start.saturating_add(most));
            level.start = batch.end;
            let worlds = worlds.as_mut().map(|w| w.take(batch.len()).collect());
            self.expand(batch, worlds, keep)?;
            (resources.progress)(Progress {
                states: u64::from(self.distinct()),
                depth: self.depth,
                open: level.len() as u64,
            });
        }
        Ok(())
    }

    /// States of a batch: more if visited states are in files, since a batch reads much of them.
    fn batch_max(&self) -> StateId {
        let least = CHUNK * CHUNKS_OF_THREAD * rayon::current_num_threads();
        let most = match self.shared.seen.has_runs() {
            true => self.shared.resources.memory / 16 / BATCH_BYTES,
            false => 0,
        };
        most.clamp(least as u64, BATCH_MAX) as StateId
    }

    /// Expands states of the level, which are given if they are kept; keeps their successors.
    fn expand(
        &mut self,
        batch: Range<StateId>,
        worlds: Option<Vec<Kept<M>>>,
        keep: bool,
    ) -> Result<(), Halt> {
        let size = match worlds {
            Some(_) if rayon::current_num_threads() > 1 => {
                batch.len() / (8 * rayon::current_num_threads())
            }
            _ => CHUNK,
        };
        let size = size.clamp(1, CHUNK);
        let mut worlds = worlds.map(Vec::into_iter);
        let starts = batch.clone().step_by(size);
        let parts = starts.map(|start| {
            let part = start..batch.end.min(start + size as StateId);
            let worlds = worlds.as_mut().map(|w| w.take(part.len()).collect());
            (part, worlds)
        });
        let parts: Vec<Part<M>> = parts.collect();
        let shared = &self.shared;
        let how = How {
            meet: true,
            keep,
            until: None,
        };
        let expand = |(part, worlds): Part<M>| {
            let source = shared.source(&part, worlds)?;
            shared.expand(part, source, how)
        };
        let chunks: Result<Vec<Chunk<M>>, Halt> = parts.into_par_iter().map(expand).collect();
        self.merge(chunks?, keep)
    }

    /// Records what was found in a batch, in the order of a single thread.
    fn merge(&mut self, mut chunks: Vec<Chunk<M>>, keep: bool) -> Result<(), Halt> {
        let open = self.shared.resources.file;
        let found = chunks.iter_mut().flat_map(|chunk| chunk.found.drain(..));
        let found: Vec<Found<M::Fault>> = found.collect();
        let base = self.distinct();
        let mut ids: Vec<StateId> = found.iter().map(|found| found.known).collect();
        let print = |at: usize| (found[at].known == NONE).then_some(found[at].print);
        self.shared.seen.insert(base, &mut ids, print, open)?;
        let concrete = self.insert_concretes(&found)?;

        let mut numbers = vec![NONE; found.len()];
        let mut kept = self.kept.take().unwrap_or_default();
        let mut spare = Vec::new();
        let mut at = 0;
        for chunk in chunks {
            let mut cut = None;
            for world in chunk.worlds {
                let (id, found, origin) = (ids[at], &found[at], found[at].origin);
                let new = id == base + at as StateId;
                let to = match id {
                    _ if new => self.distinct(),
                    id if id < base => id,
                    id => numbers[(id - base) as usize],
                };
                if self.shared.limits.graph && self.depth > 0 {
                    self.steps.push(step(origin.parent, to), open)?;
                }
                if new {
                    numbers[at] = to;
                    self.shared.origins.push(origin.bytes(), open)?;
                    kept.extend(world);
                    self.ends |= found.ends;
                    cut = self.cuts(to, found).then_some(origin);
                } else if concrete[at] {
                    self.twins.push(to, origin, world);
                } else {
                    spare.extend(world);
                }
                at += 1;
                if cut.is_some() {
                    break;
                }
            }
            let counts = match cut {
                Some(_) => self.shared.counts_up_to(chunk.part, cut)?,
                None => chunk.counts,
            };
            self.count(counts)?;
            if self.over {
                break;
            }
        }
        self.shared.seen.number(base, &numbers);
        self.shared.spare().append(&mut spare);
        self.kept = keep.then_some(kept);
        Ok(())
    }

    /// Inserts concrete states, if they are tested. Those that were not there are true.
    fn insert_concretes(&mut self, found: &[Found<M::Fault>]) -> Result<Vec<bool>, Halt> {
        let mut new = vec![false; found.len()];
        if self.shared.limits.test_one_in > 0 {
            let base = self.concretes;
            let mut ids = vec![NONE; found.len()];
            let open = self.shared.resources.file;
            let print = |at: usize| found[at].concrete;
            self.shared.concretes.insert(base, &mut ids, print, open)?;
            let mut numbers = vec![NONE; found.len()];
            for (at, id) in ids.into_iter().enumerate() {
                if id == base + at as StateId {
                    new[at] = true;
                    numbers[at] = self.concretes;
                    self.concretes += 1;
                }
            }
            self.shared.concretes.number(base, &numbers);
        }
        Ok(new)
    }

    /// Whether a new state ends the search.
    fn cuts(&mut self, id: StateId, found: &Found<M::Fault>) -> bool {
        let limits = &self.shared.limits;
        if let Some(fault) = &found.fault
            && self.fault.is_none()
        {
            self.fault = Some(((**fault).clone(), id, None));
            self.over = !limits.whole;
        }
        if !self.over && id as usize >= limits.states_max {
            self.unfinished = true;
            self.over = true;
        }
        self.over
    }

    fn count(&mut self, counts: Counts<M::Fault>) -> Result<(), Halt> {
        let open = self.shared.resources.file;
        self.generated += counts.generated;
        for (all, of_chunk) in self.taken.iter_mut().zip(counts.taken) {
            *all += of_chunk;
        }
        for digest in counts.digests {
            self.twins.digests.push(digest.to_le_bytes(), open)?;
        }
        for (from, to) in counts.steps {
            self.steps.push(step(from, to), open)?;
        }
        self.stops.extend(counts.stops);
        if let Some((fault, id, way)) = counts.fault {
            self.over = true;
            self.fault = Some((*fault, id, way));
        }
        Ok(())
    }

    fn report(mut self) -> Result<Searched<M::Fault>, Halt> {
        let end = if let Some(known) = self.twins.torn {
            End::Torn(self.shared.path(known)?)
        } else if let Some((fault, id, way)) = self.fault.take() {
            let mut path = self.shared.path(id)?;
            path.extend(way);
            End::Fault(fault, path)
        } else if self.unfinished {
            End::Unfinished
        } else {
            End::All
        };
        let lost = match end {
            End::All if self.shared.limits.graph => self.without_way_out()?,
            _ => None,
        };
        Ok(Searched {
            end,
            generated: self.generated,
            distinct: u64::from(self.distinct()),
            depth: self.depth,
            taken: self.taken,
            tested: self.twins.tested,
            ends: self.ends,
            lost,
        })
    }

    /// States from which no step leads to a state without choices.
    fn without_way_out(&self) -> Result<Option<(u64, Path)>, Halt> {
        let mut leads = vec![false; self.distinct() as usize];
        for &stop in &self.stops {
            leads[stop as usize] = true;
        }
        let mut changed = true;
        while changed {
            changed = false;
            // Most steps lead to a state with a higher number.
            self.steps.read((0..self.steps.len()).rev(), |bytes| {
                let (from, to) = (u64::from_le_bytes(bytes) >> 32, u64::from_le_bytes(bytes));
                let (from, to) = (from as usize, to as u32 as usize);
                if leads[to] && !leads[from] {
                    leads[from] = true;
                    changed = true;
                }
            })?;
        }
        let Some(first) = leads.iter().position(|&leads| !leads) else {
            return Ok(None);
        };
        let count = leads.iter().filter(|&&leads| !leads).count();
        Ok(Some((count as u64, self.shared.path(first as StateId)?)))
    }
}

fn step(from: StateId, to: StateId) -> [u8; 8] {
    (u64::from(from) << 32 | u64::from(to)).to_le_bytes()
}

/// The choices of a path.
pub(crate) fn choices_of<M: Model>(model: &M, path: &[u16]) -> Vec<M::Choice> {
    let (mut world, mut runner) = (model.first(), model.runner());
    let (mut choices, mut taken) = (Vec::new(), Vec::new());
    for (nth, &way) in path.iter().enumerate() {
        // Only the last choice may be wrong, and it is not taken.
        let _ = model.choices(&world, &mut choices);
        let choice = choices[usize::from(way)];
        taken.push(choice);
        if nth + 1 < path.len() {
            let _ = model.take(&mut runner, &mut world, choice);
        }
    }
    taken
}

#[cfg(test)]
mod tests;
