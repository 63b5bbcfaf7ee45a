//! A state of the specification as the merge code has it, and the actions that it allows.

use blkmq::elevator::bfq::protocol::{MergeProtocol, SeenQueue};

use super::setting::Setting;
use crate::merging::{MergeSpec, PROCESSES_MAX, World, actions, tuple};

pub(super) type Code = MergeProtocol;

actions! {
    /// A process gets a queue, as the last one of its group.
    CreateLast(process: u8)
    /// It gets one that is to be merged with none.
    Create(process: u8)
    /// It gets one that is to be merged later into the last one.
    CreateLater(process: u8)
    /// Its queue is merged at once.
    CreateMerged(process: u8)
    Submit(process: u8)
    /// A request of a queue ends.
    Complete(queue: u8)
    /// A process changes to the queue that `new_bfqq` names.
    Redirect(process: u8)
    /// A request of a queue moves with a process that has left it.
    Carry(process: u8, queue: u8)
    /// The queue of a process is merged into a close one.
    Merge(process: u8, close: u8)
    /// The stable merge of a process's candidate is due.
    MergeLater(process: u8)
    /// It is due, but idling serves the queue better.
    Abort(process: u8)
    /// A process leaves a shared queue.
    Leave(process: u8)
    /// A process is the only one of its queue and keeps it.
    Keep(process: u8)
    Exit(process: u8)
    Move(process: u8, group: u8)
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

    /// A value of each queue, as TLC prints them; 0 of a freed one.
    pub(super) fn of_queues(&self, count: u8, value: impl Fn(SeenQueue) -> i32) -> String {
        tuple(count, |q| self.queue(q).map_or(0, &value))
    }

    pub(super) fn of_process(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
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
        actions.push(Action::CreateLast(p));
        if self.created(self.side.more.group[usize::from(p)]).is_none() {
            return;
        }
        if setting.later || setting.early {
            actions.push(Action::Create(p));
        }
        if setting.later {
            actions.push(Action::CreateLater(p));
        }
        if setting.early {
            actions.push(Action::CreateMerged(p));
        }
    }

    /// Merges that the look-up for a request or a bio may find.
    fn of_slot(&self, setting: &Setting, p: u8, q: u8, actions: &mut Vec<Action>) {
        if setting.carries {
            let follows = |from: &u8| *from != q && self.leads_to(*from, q);
            let busy = self.side.busy(self.side.born).filter(follows);
            actions.extend(busy.map(|from| Action::Carry(p, from)));
        }
        let planned = Setting::new_of(self, q);
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
        let chain = core::iter::successors(Some(from), |&at| Setting::new_of(self, at));
        chain
            .take(usize::from(self.side.born) + 1)
            .any(|at| at == to)
    }

    fn is_alone(&self, setting: &Setting, q: u8) -> bool {
        let unplanned = Setting::new_of(self, q).is_none() || !setting.chain_to_tail;
        unplanned && Setting::process_references(self, q) == 1
    }
}
