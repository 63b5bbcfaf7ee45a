//! A state of the specification as the merge code has it, and the actions that it allows.

use blkmq::elevator::bfq::protocol::{CreationOutcome, MergeProtocol, SeenQueue};

use super::setting::Setting;
use crate::merging::{Act, PROCESSES_MAX, World};

pub(super) type Code = MergeProtocol;

/// An action. Processes, queues and groups are numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    Create(u8, CreationOutcome),
    Submit(u8),
    /// A request of a queue ends.
    Complete(u8),
    /// A process changes to the queue that `new_bfqq` names.
    Redirect(u8),
    /// A request of a queue moves with a process that has left it.
    Carry(u8, u8),
    /// The queue of a process is merged into a close one.
    Merge(u8, u8),
    /// The stable merge of a process's candidate is due.
    MergeLater(u8),
    /// It is due, but idling serves the queue better.
    Abort(u8),
    /// A process leaves a shared queue.
    Leave(u8),
    /// A process is the only one of its queue and keeps it.
    Keep(u8),
    Exit(u8),
    Move(u8, u8),
}

pub(super) const ACTIONS: &[&str] = &[
    "CreateLast",
    "Create",
    "CreateLater",
    "CreateMerged",
    "Submit",
    "Complete",
    "Redirect",
    "Carry",
    "Merge",
    "MergeLater",
    "Abort",
    "Leave",
    "Keep",
    "Exit",
    "Move",
];

impl Act for Action {
    fn kind(self) -> usize {
        match self {
            Action::Create(_, CreationOutcome::Last) => 0,
            Action::Create(_, CreationOutcome::Alone) => 1,
            Action::Create(_, CreationOutcome::Later) => 2,
            Action::Create(_, CreationOutcome::Merged) => 3,
            Action::Submit(_) => 4,
            Action::Complete(_) => 5,
            Action::Redirect(_) => 6,
            Action::Carry(..) => 7,
            Action::Merge(..) => 8,
            Action::MergeLater(_) => 9,
            Action::Abort(_) => 10,
            Action::Leave(_) => 11,
            Action::Keep(_) => 12,
            Action::Exit(_) => 13,
            Action::Move(..) => 14,
        }
    }

    fn arguments(self) -> Vec<(&'static str, u8)> {
        match self {
            Action::Complete(q) => vec![("queue", q)],
            Action::Carry(p, q) => vec![("process", p), ("queue", q)],
            Action::Merge(p, q) => vec![("process", p), ("close", q)],
            Action::Move(p, g) => vec![("process", p), ("group", g)],
            Action::Create(p, _)
            | Action::Submit(p)
            | Action::Redirect(p)
            | Action::MergeLater(p)
            | Action::Abort(p)
            | Action::Leave(p)
            | Action::Keep(p)
            | Action::Exit(p) => vec![("process", p)],
        }
    }
}

/// Groups and redirections, recorded outside the merge code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Moved {
    /// The group that a process is in, or was in at its exit.
    pub(super) group: [u8; PROCESSES_MAX],
    /// A redirection ended before the end of its chain.
    pub(super) short: bool,
}

impl World<Setting> {
    pub(super) fn slot(&self, p: u8) -> Option<u8> {
        self.code.slot(u32::from(p)).map(|q| q as u8)
    }

    pub(super) fn candidate(&self, p: u8) -> Option<u8> {
        self.code.candidate(u32::from(p)).map(|q| q as u8)
    }

    pub(super) fn created(&self, group: u8) -> Option<u8> {
        let last = self.code.last_created(u16::from(group));
        last.map(|q| q as u8)
    }

    pub(super) fn queue(&self, q: u8) -> Option<SeenQueue> {
        self.code.queue(u32::from(q))
    }

    /// The queue that `new_bfqq` of a queue names.
    pub(super) fn new_of(&self, q: u8) -> Option<u8> {
        self.queue(q)?.new.map(|q| q as u8)
    }

    pub(super) fn process_references(&self, q: u8) -> i32 {
        let seen = self.queue(q);
        seen.map_or(0, |s| s.references - s.requests - s.stable)
    }

    /// All actions of a state. Each entry is one way in which the specification's `Next` holds.
    pub(super) fn actions(&self, setting: &Setting, actions: &mut Vec<Action>) {
        for p in self.side.present(setting.processes) {
            self.of_process(setting, p, actions);
        }
        actions.extend(self.side.busy(self.side.born).map(Action::Complete));
    }

    fn of_process(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
        let may_create = self.side.born < setting.queues;
        let submits = self.side.todo[usize::from(p)] > 0;
        match self.slot(p) {
            None if may_create && submits => self.creations(setting, p, actions),
            None => {}
            Some(q) => {
                if submits {
                    actions.push(Action::Submit(p));
                }
                self.of_slot(setting, p, q, actions);
                let stably = self.code.merged_for_good(u32::from(p));
                let shared = self.queue(q).is_some_and(|seen| seen.shared);
                if shared && !stably {
                    let kept = self.is_alone(setting, q);
                    if kept {
                        actions.push(Action::Keep(p));
                    } else if may_create {
                        actions.push(Action::Leave(p));
                    }
                }
            }
        }
        actions.push(Action::Exit(p));
        let others = (0..setting.groups).filter(|&g| g != self.side.more.group[usize::from(p)]);
        actions.extend(others.map(|g| Action::Move(p, g)));
    }

    fn creations(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
        actions.push(Action::Create(p, CreationOutcome::Last));
        if self.created(self.side.more.group[usize::from(p)]).is_none() {
            return;
        }
        if setting.later || setting.early {
            actions.push(Action::Create(p, CreationOutcome::Alone));
        }
        if setting.later {
            actions.push(Action::Create(p, CreationOutcome::Later));
        }
        if setting.early {
            actions.push(Action::Create(p, CreationOutcome::Merged));
        }
    }

    /// Merges that the look-up for a request or a bio may find.
    fn of_slot(&self, setting: &Setting, p: u8, q: u8, actions: &mut Vec<Action>) {
        if setting.carries {
            let follows = |from: &u8| *from != q && self.leads_to(*from, q);
            let busy = self.side.busy(self.side.born).filter(follows);
            actions.extend(busy.map(|from| Action::Carry(p, from)));
        }
        let planned = self.new_of(q);
        match planned {
            Some(new) if new != q => actions.push(Action::Redirect(p)),
            Some(_) => {}
            None => {
                let found = |n: u8| match setting.idle_close {
                    true => self.queue(n).is_some(),
                    false => self.side.io[usize::from(n)] > 0,
                };
                let close = |n: &u8| *n != q && found(*n);
                let close = (0..self.side.born).filter(close);
                actions.extend(close.map(|n| Action::Merge(p, n)));
            }
        }
        if self.candidate(p).is_some() && (planned.is_none() || !setting.chain_to_tail) {
            actions.extend([Action::MergeLater(p), Action::Abort(p)]);
        }
    }

    fn leads_to(&self, from: u8, to: u8) -> bool {
        let chain = core::iter::successors(Some(from), |&at| self.new_of(at));
        chain
            .take(usize::from(self.side.born) + 1)
            .any(|at| at == to)
    }

    fn is_alone(&self, setting: &Setting, q: u8) -> bool {
        let unplanned = self.new_of(q).is_none() || !setting.chain_to_tail;
        unplanned && self.process_references(q) == 1
    }
}
