//! Changes of a target without a record: activations of its groups end, paths are failed by a
//! message or a checker, and reinstated.
//!
//! Each is assumed just before the first choice that shows it: a kernel that uses a path while the
//! model waits for its group has activated that group; one that uses a failed path has reinstated
//! it. A kernel that leaves out a path which it would have to choose has failed it, or switched to
//! another group: but only if it leaves it out for a while, as any wrong choice would be explained
//! otherwise. Not here: failures that a record shows (`order.rs`).
//! Kernel: multipath_message(), pg_init_done() in drivers/md/dm-mpath.c (6.1.192).

use std::collections::VecDeque;

use blkmq::dm::multipath::{InitResult, Multipath};
use blkmq::dm::{Incoming, Mapping, PathId};
use blkmq::time::SimTime;

use super::{Atom, What};

/// A path is out of use if the model would choose it, and the kernel does not so many times in a
/// row. A wrong selector is not taken for that: none of the five over the captures of `traces/`
/// leaves out a path that often.
const LEFT_OUT: usize = 16;

/// How often something must have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// A path that had failed was reinstated.
    pub(super) reinstated: u64,
    pub(super) failed: u64,
    /// The activation of a group had ended.
    pub(super) activated: u64,
}

/// The choices of a capture, in order.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    /// By atom: how many requests were mapped before it, and how many of them to a path.
    mapped: Vec<(usize, usize)>,
    /// Paths, of the requests that were mapped to one.
    paths: Vec<PathId>,
    /// For each mapped request: it went to a path.
    to_path: Vec<bool>,
    /// For each chosen path, and at the end: no clone was left then.
    none_left: Vec<bool>,
}

impl Choices {
    pub(super) fn of(atoms: &[Atom]) -> Choices {
        let mut choices = Choices {
            mapped: Vec::with_capacity(atoms.len()),
            paths: Vec::new(),
            to_path: Vec::new(),
            none_left: Vec::new(),
        };
        let is_over = |atom: &&Atom| matches!(atom.what, What::Undo { .. } | What::End { .. });
        let mut over: Vec<SimTime> = atoms.iter().filter(is_over).map(|a| a.before).collect();
        over.sort_unstable();
        for atom in atoms {
            let before = (choices.to_path.len(), choices.paths.len());
            choices.mapped.push(before);
            if let What::Map { path, .. } = atom.what {
                choices.to_path.push(path.is_some());
                if let Some(path) = path {
                    let ended = over.partition_point(|&end| end <= atom.before);
                    choices.none_left.push(ended >= choices.paths.len());
                    choices.paths.push(path);
                }
            }
        }
        choices.none_left.push(over.len() >= choices.paths.len());
        choices
    }

    /// From this atom on a path is not chosen for a while.
    fn leave_out(&self, path: PathId, index: usize) -> bool {
        let (_, from) = self.mapped[index];
        let next = self.paths.get(from..from + LEFT_OUT);
        next.is_some_and(|next| !next.contains(&path))
    }

    /// From this atom on no path is chosen for a while, until all clones have ended: for want of
    /// tags one would be chosen when the first of them has.
    pub(super) fn none_follows(&self, index: usize) -> bool {
        let (from, next_choice) = self.mapped[index];
        let next = self.to_path.get(from..from + LEFT_OUT);
        next.is_some_and(|next| !next.contains(&true)) && self.none_left[next_choice]
    }
}

impl Changes {
    pub(super) fn total(&self) -> u64 {
        self.reinstated + self.failed + self.activated
    }

    /// Maps a request that the kernel sent to a path: after the changes that this needs, if they
    /// lead there.
    pub(super) fn map(
        &mut self,
        target: &mut Multipath,
        io: Incoming,
        path: PathId,
        (choices, index): (&Choices, usize),
    ) -> Mapping {
        if !target.is_active(path) {
            target.reinstate(path);
            self.reinstated += 1;
        }
        let mapping = self.map_activated(target, io);
        let (mut tried, mut with, mut last) = (None, *self, mapping);
        while let Mapping::To(mapped) = last {
            if mapped.path == path {
                *target = tried.unwrap_or_else(|| target.clone());
                *self = with;
                return last;
            }
            if !choices.leave_out(mapped.path, index) {
                break;
            }
            let tried = tried.get_or_insert_with(|| target.clone());
            tried.fail(mapped.path);
            with.failed += 1;
            last = with.map_activated(tried, io);
        }
        mapping
    }

    /// Maps a request that did not wait for an activation.
    fn map_activated(&mut self, target: &mut Multipath, io: Incoming) -> Mapping {
        let mapping = target.map(io);
        if matches!(mapping, Mapping::To(_)) {
            return mapping;
        }
        // It is with the kernel's path.
        target.take_held(&mut VecDeque::new());
        if !target.is_activating() {
            return mapping;
        }
        self.activated += 1;
        while let Some((path, _)) = target.take_activation() {
            if target.begin_activation(path) {
                target.init_done(path, InitResult::Ok);
            }
        }
        let mapping = target.map(io);
        if mapping == Mapping::Held {
            target.take_held(&mut VecDeque::new());
        }
        mapping
    }

    /// No path was in use.
    pub(super) fn fail_all(&mut self, target: &mut Multipath) {
        for path in (0..target.paths()).map(PathId) {
            if target.is_active(path) {
                target.fail(path);
                self.failed += 1;
            }
        }
    }

    pub(super) fn notes(&self, device: &str) -> Vec<String> {
        let all = [
            (
                self.activated,
                "the activation of a group had ended before a path of it was chosen",
            ),
            (
                self.failed,
                "a path went out of use without a record (a message or a checker)",
            ),
            (
                self.reinstated,
                "a path that had failed was reinstated before it was chosen again",
            ),
        ];
        let some = all.into_iter().filter(|(times, _)| *times > 0);
        some.map(|(times, what)| format!("{device}: {what} ({times} times)"))
            .collect()
    }
}
