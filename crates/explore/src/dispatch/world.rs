//! A state of the specification as the paths have it, and the actions that it allows.
//!
//! Grant and release of dd->lock and insert_lock are steps of the specification, but blkmq has them
//! in the first and the last label of a section. So the world keeps the owners of these two locks;
//! in blkmq a process takes them only for the time of an action.

use std::sync::LazyLock;

use blkmq::elevator::mq_deadline::MqDeadline;
use blkmq::elevator::{Elevator, Locked};
use blkmq::path::{Frame, Label};
use blkmq::queue::{IrqClass, LockId, RequestQueue};
use blkmq::request::{QueueId, RequestId};

use super::TABLE;
use super::setting::{CPUS_MAX, REQUESTS_MAX, Setting};
use crate::spec::{by_label, places};

/// dd->lock.
pub(crate) const ELEVATOR: LockId = LockId::of_elevator(QueueId(0), 0, IrqClass::Plain, 0);
/// insert_lock.
pub(super) const INSERTED: LockId = LockId::of_elevator(QueueId(0), 2, IrqClass::Plain, 0);

/// The scheduler that the specification describes.
pub(crate) fn deadline(q: &RequestQueue) -> &Locked<MqDeadline> {
    let Elevator::MqDeadline(dd) = &q.elevator else {
        unreachable!("the scheduler is mq-deadline");
    };
    dd
}

/// Frames of a process between two actions: a plug's flush, and what it calls.
pub(super) const FRAMES: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// A process takes the action that its place names.
    Go(u8),
    Fire,
    Complete(u8),
}

places! {
    /// The place of a process: the action that it takes next. `Submit`: it has nothing under way,
    /// and a CPU may submit.
    At {
        Submit SideLock AppendSide SideUnlock Note TryLock Busy Count Marked Mark Fill Recount Still
        Lock Begin Insert Filled Claim Look Collect End Again Unlock LateEnd
        HasWork Gate ShutGate PickLock TakeSide Pick OpenGate PickUnlock Offer DelayRuns
    } + { Fire Complete }
}

/// Actions by the label at which they begin, if the process does not wait for one of the two locks.
/// A run looks for work at its beginning and in each pass: the first look belongs to that of the
/// first pass.
static FIRST: LazyLock<[Option<At>; Label::COUNT]> = LazyLock::new(|| by_label(&TABLE, At::named));

/// The action that begins at this label. Without delayed runs the label that arms one does nothing
/// and belongs to the action before.
pub(super) fn begins_at(label: Label, setting: &Setting) -> Option<At> {
    let at = FIRST[usize::from(label.0)];
    at.filter(|&at| at != At::DelayRuns || setting.delayed)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Life {
    #[default]
    New,
    Live,
    Device,
    Done,
}

/// A request, as far as the pool does not know it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Request {
    pub(super) life: Life,
    /// Its slot while it is in the device.
    pub(super) slot: Option<RequestId>,
}

/// The event that a process waits for before its next label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Wants {
    #[default]
    Nothing,
    Lock(LockId),
    Try,
}

/// A submitter, the completer, or the process that takes delayed runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Process {
    pub(super) frames: [Option<Frame>; FRAMES],
    pub(super) wants: Wants,
    /// A section ended; the release of its lock is the next step.
    pub(super) leaving: bool,
}

pub type World = crate::spec::World<Side>;

/// The part of a state that is not in the block layer.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Side {
    pub(super) processes: Vec<Process>,
    pub(super) requests: [Request; REQUESTS_MAX],
    /// Requests that each CPU has submitted.
    pub(super) submitted: [u8; CPUS_MAX],
    /// The owner of dd->lock.
    pub(super) owner: Option<u8>,
    pub(super) insert_owner: Option<u8>,
    pub(super) armed: bool,
}

impl Clone for Side {
    fn clone(&self) -> Side {
        Side {
            processes: self.processes.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Side) {
        let mut processes = core::mem::take(&mut self.processes);
        processes.clone_from(&source.processes);
        *self = Side {
            processes,
            ..*source
        };
    }
}

impl Process {
    pub(super) fn frame(&self) -> Option<&Frame> {
        self.frames.iter().rev().flatten().next()
    }

    fn label(&self) -> Option<Label> {
        self.frame().map(Frame::label)
    }
}

impl World {
    pub(super) fn process(&self, process: u8) -> &Process {
        &self.side.processes[usize::from(process)]
    }

    pub(super) fn life(&self, request: u8) -> Life {
        self.side.requests[usize::from(request)].life
    }

    /// The process has nothing under way.
    pub(super) fn is_idle(&self, process: u8) -> bool {
        let process = self.process(process);
        process.frame().is_none() && !process.leaving
    }

    pub(super) fn at(&self, setting: &Setting, number: u8) -> At {
        let process = self.process(number);
        if process.leaving {
            // The path may have left its section's frame already.
            return match self.side.owner == Some(number) {
                false => At::SideUnlock,
                true if matches!(process.frame(), Some(Frame::Run(_))) => At::PickUnlock,
                true => At::Unlock,
            };
        }
        let Some(label) = process.label() else {
            return At::Submit;
        };
        if let Wants::Lock(id) = process.wants {
            let inserts = !matches!(process.frame(), Some(Frame::Run(_)));
            match id {
                ELEVATOR if inserts => return At::Lock,
                ELEVATOR => return At::PickLock,
                INSERTED if inserts => return At::SideLock,
                _ => {}
            }
        }
        begins_at(label, setting)
            .unwrap_or_else(|| unreachable!("{} begins no action", label.name()))
    }

    pub(super) fn can_go(&self, setting: &Setting, process: u8) -> bool {
        match self.at(setting, process) {
            At::Submit => {
                let submits = process < setting.cpus;
                submits && self.side.submitted[usize::from(process)] < setting.per_cpu
            }
            At::Lock | At::PickLock => self.side.owner.is_none(),
            At::SideLock | At::TakeSide => self.side.insert_owner.is_none(),
            _ => true,
        }
    }

    /// Nothing runs and nothing will.
    pub(super) fn is_quiet(&self, setting: &Setting) -> bool {
        let in_device = |request: &Request| request.life == Life::Device;
        (0..setting.processes()).all(|process| self.is_idle(process))
            && !self.side.requests.iter().any(in_device)
            && !self.side.armed
    }
}
