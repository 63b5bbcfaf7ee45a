//! A state of the specification as the paths have it, and the actions that it allows.

use core::mem::take;

use blkmq::path::{CompletePath, RunPath};
use blkmq::queue::LockId;
use blkmq::request::{HctxId, QueueId, RequestId};
use blkmq::schedule::Argument;

use super::setting::{HCTXS_MAX, REQUESTS_MAX, Setting};
use crate::spec::places;

/// An hctx of the set: its index among all, queue by queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Hctx(pub(super) u8);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// A request is inserted into the scheduler.
    InsertSched(u8, Hctx),
    /// A request is inserted at the head of the dispatch list.
    InsertBypass(u8, Hctx),
    /// A dispatch context of an hctx takes the action that its place names.
    Go(Hctx, u8),
    /// A request ends: its tag is put.
    Free(u8),
    /// The completion runs hctxs by the restart rule.
    Restart(u8),
}

places! {
    /// The place of a dispatch context: the action that it takes next.
    At { Start Ask Mark Count Issue Retry PutBack } + { InsertSched InsertBypass Free Restart }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) enum Life {
    #[default]
    New,
    Live,
    Device,
    Freed,
    Done,
}

impl Life {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Life::New => "new",
            Life::Live => "live",
            Life::Device => "device",
            Life::Freed => "freed",
            Life::Done => "done",
        }
    }
}

/// A request, as far as the pool does not know it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Request {
    pub(super) life: Life,
    /// The hctx whose tag it has or had, in the device or freed.
    pub(super) home: Hctx,
    /// Its slot while it is in the device.
    pub(super) slot: Option<RequestId>,
}

/// A dispatch context that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Running {
    pub(super) path: RunPath,
    /// The lock that its next label takes.
    pub(super) wants: Option<LockId>,
}

pub type World = crate::spec::World<Side>;

/// The part of a state that is not in the block layer.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Side {
    pub(super) running: Vec<Option<Running>>,
    /// Completions between the put of the tag and the restart rule.
    pub(super) ending: Vec<Option<CompletePath>>,
    pub(super) requests: [Request; REQUESTS_MAX],
    pub(super) pending: [bool; HCTXS_MAX],
    /// Hctxs that the driver has promised to run.
    pub(super) starved: [bool; HCTXS_MAX],
    /// Requests inserted so far; each has a higher sector than the ones before.
    pub(super) inserted: u32,
}

impl Clone for Side {
    fn clone(&self) -> Side {
        Side {
            running: self.running.clone(),
            ending: self.ending.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Side) {
        let (mut running, mut ending) = (take(&mut self.running), take(&mut self.ending));
        copy_options(&mut running, &source.running);
        copy_options(&mut ending, &source.ending);
        *self = Side {
            running,
            ending,
            ..*source
        };
    }
}

/// Most entries are empty and need no copy.
fn copy_options<T: Copy>(to: &mut [Option<T>], from: &[Option<T>]) {
    for (to, from) in to.iter_mut().zip(from) {
        match from {
            None => *to = None,
            Some(_) => *to = *from,
        }
    }
}

impl Side {
    /// Asks for a run of the hctx.
    pub(super) fn ask_run(&mut self, setting: &Setting, queue: QueueId, hctx: HctxId) {
        self.pending[usize::from(setting.hctx(queue, hctx).0)] = true;
    }
}

impl World {
    pub(super) fn life(&self, request: u8) -> Life {
        self.side.requests[usize::from(request)].life
    }

    pub(super) fn running(&self, setting: &Setting, hctx: Hctx, context: u8) -> Option<&Running> {
        self.side.running[setting.place(hctx, context)].as_ref()
    }

    /// Nothing runs, no run is asked for, and nothing is in the device.
    pub(super) fn is_quiet(&self) -> bool {
        let side = &self.side;
        let moves = |request: &Request| matches!(request.life, Life::Device | Life::Freed);
        !side.pending.contains(&true)
            && side.running.iter().all(Option::is_none)
            && !side.requests.iter().any(moves)
    }
}

impl Setting {
    pub(super) fn all_hctxs(&self) -> u8 {
        self.queues * self.hctxs
    }

    /// The index of a dispatch context among all.
    pub(super) fn place(&self, hctx: Hctx, context: u8) -> usize {
        usize::from(hctx.0 * self.contexts + context)
    }

    pub(super) fn queue_of(&self, hctx: Hctx) -> QueueId {
        QueueId(u16::from(hctx.0 / self.hctxs))
    }

    pub(super) fn index_of(&self, hctx: Hctx) -> HctxId {
        HctxId(u16::from(hctx.0 % self.hctxs))
    }

    pub(super) fn hctx(&self, queue: QueueId, index: HctxId) -> Hctx {
        Hctx(queue.0 as u8 * self.hctxs + index.0 as u8)
    }

    /// `<<queue, index>>`, both from 1.
    pub(super) fn named(&self, hctx: Hctx) -> Argument {
        let index = u32::from(self.index_of(hctx).0);
        Argument::Hctx(u32::from(self.queue_of(hctx).0) + 1, index + 1)
    }
}
