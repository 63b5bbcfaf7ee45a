//! States of a level, derived again from the first state.
//!
//! The origins of neighbours in a level are neighbours in the level before, and mostly the same
//! state: a piece of a level is the leaves of a narrow tree. A state costs two to ten choices and
//! one copy, less than a wide level costs that is written to memory and read again.

use core::ops::ControlFlow;
use std::sync::PoisonError;

use super::worker::{Source, Worker};
use super::{Kept, Model, Origin, Shared};
use crate::resources::Halt;
use crate::seen::StateId;

/// A state of the tree.
#[derive(Clone, Copy)]
struct Node {
    /// The number of the choice in its parent.
    way: u16,
    /// The number of its last child in the next level, plus one.
    end: u32,
}

impl<M: Model> Shared<'_, M> {
    /// Calls `each` with the states in order, until it ends that.
    pub(super) fn each(
        &self,
        source: Source<M>,
        mut each: impl FnMut(&mut Worker<M>, Kept<M>) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        if (self.resources.stopped)() {
            return Err(Halt::Stopped(self.origins.len() as u64));
        }
        let workers = || self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = workers().pop();
        let mut worker = idle.unwrap_or_else(|| Worker::new(self.model));
        match source {
            Source::Kept(worlds) => {
                let _ = worlds
                    .into_iter()
                    .try_for_each(|world| each(&mut worker, world));
            }
            Source::Derived(leaves) if leaves.is_empty() => {}
            Source::Derived(leaves) => {
                let levels = self.tree(&leaves)?;
                let _ = self.walk(&levels, &mut worker, &mut each);
            }
        }
        workers().push(worker);
        Ok(())
    }

    /// The levels of the tree with these leaves, without the first state.
    fn tree(&self, leaves: &[Origin]) -> Result<Vec<Vec<Node>>, Halt> {
        let mut levels = Vec::new();
        let mut origins = leaves.to_vec();
        let mut ends = vec![0; leaves.len()];
        loop {
            let nodes = origins.iter().zip(&ends);
            let nodes = nodes.map(|(&Origin { way, .. }, &end)| Node { way, end });
            levels.push(nodes.collect());
            let mut parents: Vec<StateId> = Vec::new();
            ends.clear();
            for (end, origin) in (1..).zip(&origins) {
                if parents.last() == Some(&origin.parent) {
                    ends.pop();
                } else {
                    parents.push(origin.parent);
                }
                ends.push(end);
            }
            if parents == [0] {
                levels.reverse();
                return Ok(levels);
            }
            debug_assert!(parents.is_sorted(), "neighbours have neighbours as origins");
            origins = self.origins_of(parents.into_iter())?;
        }
    }

    /// Visits the leaves.
    fn walk(
        &self,
        levels: &[Vec<Node>],
        worker: &mut Worker<M>,
        each: &mut impl FnMut(&mut Worker<M>, Kept<M>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // A node, its level, and the state of its parent.
        let mut open: Vec<(usize, usize, Kept<M>)> = Vec::new();
        for node in (0..levels[0].len()).rev() {
            open.push((0, node, self.copy(&mut worker.spare, &worker.first)));
        }
        while let Some((mut level, mut node, mut world)) = open.pop() {
            loop {
                let nodes = &levels[level];
                worker.follow(self.model, &mut world, nodes[node].way);
                if level + 1 == levels.len() {
                    break;
                }
                let start = node
                    .checked_sub(1)
                    .map_or(0, |before| nodes[before].end as usize);
                for sibling in (start + 1..nodes[node].end as usize).rev() {
                    open.push((level + 1, sibling, self.copy(&mut worker.spare, &world)));
                }
                (level, node) = (level + 1, start);
            }
            each(worker, world)?;
        }
        ControlFlow::Continue(())
    }
}
