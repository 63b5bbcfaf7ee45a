//! The test of prints: states with the same print must have successors with the same prints.
//!
//! A twin is a state that differs from a visited one with its print. It is expanded, uncounted,
//! once the visited one was; up to a bound this also finds twins that only other twins lead to.

use rayon::prelude::*;

use super::worker::{How, Source};
use super::{Chunk, Found, Kept, Model, Origin, Search};
use crate::column::Column;
use crate::resources::Halt;
use crate::seen::{NONE, StateId};

/// The most twins that only other twins lead to: ever-growing counters would make any number of
/// them.
const FOLLOWED_MAX: usize = 5_000;
/// Twins that are tested between two looks at that number: the result depends on it.
const BATCH: usize = 1024;
/// Twins that a thread takes at once.
const CHUNK: usize = 64;

struct Twin<M: Model> {
    /// The visited state with the same print.
    known: StateId,
    origin: Origin,
    /// The state, if it was kept.
    world: Option<Kept<M>>,
}

pub(super) struct Twins<M: Model> {
    /// Of successors of the last level and of the one before, in the order of their origins.
    newer: Vec<Twin<M>>,
    older: Vec<Twin<M>>,
    /// Successors of other twins.
    followed: Vec<Twin<M>>,
    followed_count: usize,
    /// Digests of the successors of states.
    pub(super) digests: Column<8>,
    pub(super) tested: u64,
    /// The first state with another one that has other successors.
    pub(super) torn: Option<StateId>,
}

impl<M: Model> Twins<M> {
    pub(super) fn new(bytes: u64) -> Twins<M> {
        Twins {
            newer: Vec::new(),
            older: Vec::new(),
            followed: Vec::new(),
            followed_count: 0,
            digests: Column::new(bytes),
            tested: 0,
            torn: None,
        }
    }

    pub(super) fn push(&mut self, known: StateId, origin: Origin, world: Option<Kept<M>>) {
        self.newer.push(Twin {
            known,
            origin,
            world,
        });
    }
}

impl<M: Model> Search<'_, M> {
    /// Tests the twins that were found before the last level was expanded, and those that they lead
    /// to.
    pub(super) fn test_twins(&mut self) -> Result<(), Halt> {
        let expanded = self.twins.digests.len();
        let newer = core::mem::take(&mut self.twins.newer);
        let mut twins = core::mem::replace(&mut self.twins.older, newer);
        // After a fault not all are expanded.
        twins.retain(|twin| (twin.known as usize) < expanded);
        loop {
            for batch in twins.chunks_mut(BATCH) {
                self.test_batch(batch)?;
            }
            let ready = |twin: &mut Twin<M>| (twin.known as usize) < expanded;
            twins = self.twins.followed.extract_if(.., ready).collect();
            if twins.is_empty() || self.twins.torn.is_some() {
                return Ok(());
            }
        }
    }

    fn test_batch(&mut self, twins: &mut [Twin<M>]) -> Result<(), Halt> {
        if self.twins.torn.is_some() {
            return Ok(());
        }
        let follows = !self.over && self.twins.followed_count < FOLLOWED_MAX;
        let shared = &self.shared;
        let how = How {
            meet: follows,
            keep: follows,
            until: None,
        };
        let test = |twins: &mut [Twin<M>]| {
            let worlds: Option<Vec<Kept<M>>> = twins.iter_mut().map(|t| t.world.take()).collect();
            let origins = || twins.iter().map(|twin| twin.origin).collect();
            let source = worlds.map_or_else(|| Source::Derived(origins()), Source::Kept);
            shared.expand(0..twins.len() as StateId, source, how)
        };
        let chunks: Result<Vec<Chunk<M>>, Halt> = twins.par_chunks_mut(CHUNK).map(test).collect();
        let mut chunks = chunks?;

        let digests = chunks.iter().flat_map(|chunk| &chunk.counts.digests);
        let mut digests = digests.zip(&*twins);
        let known = twins.iter().map(|twin| twin.known as usize);
        let torn = &mut self.twins.torn;
        self.twins.digests.read(known, |expected| {
            let (digest, twin) = digests.next().expect("a digest for each");
            if *digest != u64::from_le_bytes(expected) && torn.is_none() {
                *torn = Some(twin.known);
            }
        })?;
        self.twins.tested += twins.len() as u64;
        self.over |= self.twins.torn.is_some();
        self.follow(&mut chunks)
    }

    /// Keeps those successors of twins that are twins.
    fn follow(&mut self, chunks: &mut [Chunk<M>]) -> Result<(), Halt> {
        let found = chunks.iter_mut().flat_map(|chunk| chunk.found.drain(..));
        let found: Vec<Found<M::Fault>> = found.collect();
        if found.is_empty() || self.over {
            return Ok(());
        }
        let base = self.distinct();
        let mut ids: Vec<StateId> = found.iter().map(|found| found.known).collect();
        let print = |at: usize| (found[at].known == NONE).then_some(found[at].print);
        self.shared
            .seen
            .insert(base, &mut ids, print, self.shared.resources.file)?;
        let new = self.insert_concretes(&found)?;
        assert!(ids.iter().all(|&id| id < base), "successors are visited");
        let worlds = chunks.iter_mut().flat_map(|chunk| chunk.worlds.drain(..));
        let found = ids.into_iter().zip(found).zip(worlds).zip(new);
        for (((known, found), world), _) in found.filter(|(_, new)| *new) {
            self.twins.followed_count += 1;
            self.twins.followed.push(Twin {
                known,
                origin: found.origin,
                world,
            });
        }
        Ok(())
    }
}
