//! A state: that of the merge code, and what processes have done outside it.

use super::{MergeSpec, PROCESSES_MAX, QUEUES_MAX, Sizes};

/// A freed queue was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used;

#[derive(Clone, Debug)]
pub struct World<S: MergeSpec> {
    pub(crate) code: S::Code,
    pub(crate) side: Side<S::More>,
}

/// The part of a state that the merge code does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Side<M> {
    /// Requests that a process has not submitted yet.
    pub(crate) todo: [u8; PROCESSES_MAX],
    pub(crate) exited: [bool; PROCESSES_MAX],
    /// Requests of a queue. Some queues belong to no process.
    pub(crate) io: [u8; QUEUES_MAX + 2],
    /// The number of queues that processes created.
    pub(crate) born: u8,
    pub(crate) used: bool,
    pub(crate) more: M,
}

impl<S: MergeSpec> World<S> {
    pub(super) fn new(setting: &S) -> World<S> {
        let (code, more) = setting.first();
        World {
            code,
            side: Side {
                todo: [setting.sizes().requests; PROCESSES_MAX],
                exited: [false; PROCESSES_MAX],
                io: [0; QUEUES_MAX + 2],
                born: 0,
                used: false,
                more,
            },
        }
    }

    /// All processes have exited, and nothing is under way.
    pub(super) fn is_quiet(&self, sizes: Sizes) -> bool {
        let exited = &self.side.exited[..usize::from(sizes.processes)];
        exited.iter().all(|&exited| exited) && self.side.io.iter().all(|&io| io == 0)
    }

    /// No queue of a process is left.
    pub(super) fn all_freed(&self, sizes: Sizes) -> bool {
        !self.side.used && (0..sizes.own).all(|q| S::references(self, q) <= 0)
    }
}

impl<M> Side<M> {
    /// The process submits nothing any more.
    pub(crate) fn exits(&mut self, p: u8) {
        self.exited[usize::from(p)] = true;
        self.todo[usize::from(p)] = 0;
    }

    /// The queues among the first `queues` that have a request.
    pub(crate) fn busy(&self, queues: u8) -> impl Iterator<Item = u8> {
        let io = self.io;
        (0..queues).filter(move |q| io[usize::from(*q)] > 0)
    }

    /// Processes that have not exited.
    pub(crate) fn present(&self, processes: u8) -> impl Iterator<Item = u8> {
        let exited = self.exited;
        (0..processes).filter(move |p| !exited[usize::from(*p)])
    }
}
