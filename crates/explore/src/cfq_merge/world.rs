//! A state of the specification as the merge code has it, and the actions that it allows.

use blkmq::elevator::cfq::merge::{FALLBACK, QId, Ties};
use blkmq::request::IoContextId;

use super::setting::{Async, Leaving, Oom, Setting, Table};
use crate::merging::{MergeSpec, QUEUES_MAX, World, actions};

pub(super) type Code = Ties;

// The asynchronous queue and the fallback follow the queues of processes.
actions! {
    /// A process gets a queue, and a request in it.
    Create(process: u8)
    /// A process gets the fallback queue, as no memory is left.
    Fallback(process: u8)
    /// A process gets a request in the queue that it has.
    Submit(process: u8)
    /// A process changes to the queue that `new_cfqq` names, and gets a request there.
    Redirect(process: u8)
    /// A process leaves a shared queue for one of its own, and gets a request there.
    Leave(process: u8)
    SubmitAsync(process: u8)
    /// An asynchronous request; no memory is left for its queue.
    FallbackAsync(process: u8)
    /// An asynchronous request after `new_cfqq` was set for its queue.
    RedirectAsync(process: u8)
    /// A request of a queue ends.
    Complete(queue: u8)
    Exit(process: u8)
    Move(process: u8)
    /// The active queue finds a close one.
    Merge(current: u8, close: u8)
}

/// Queues, recorded outside the merge code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Named {
    /// The code's number of each queue that was created.
    pub(super) numbers: [Option<QId>; QUEUES_MAX + 2],
    /// The group of the process that created it, from 1.
    pub(super) group: [u8; QUEUES_MAX + 2],
}

/// A process's number in the code.
pub(super) fn process(p: u8) -> IoContextId {
    IoContextId(u32::from(p))
}

/// The state before all actions.
pub(super) fn first(setting: &Setting) -> (Ties, Named) {
    let mut ties = Ties::new(setting.rules(), 1);
    ties.walked = true;
    let mut numbers = [None; QUEUES_MAX + 2];
    if let Some(at) = setting.oom_queue() {
        numbers[usize::from(at)] = Some(FALLBACK);
    }
    if let Some(at) = setting.async_queue()
        && setting.table == Table::First
    {
        // A process that has already exited asked for the queue.
        let nobody = process(setting.processes);
        let (q, _) = ties.give(nobody, Some(0), true).expect("nothing is wrong");
        ties.exit(nobody, false).expect("it has the queue");
        numbers[usize::from(at)] = Some(q);
    }
    ties.wrong = setting.wrong;
    let group = [0; QUEUES_MAX + 2];
    (ties, Named { numbers, group })
}

impl World<Setting> {
    /// The specification's number of a queue of the code.
    pub(super) fn number(&self, q: QId) -> u8 {
        let at = self.side.more.numbers.iter().position(|&n| n == Some(q));
        at.expect("the queue was created here") as u8
    }

    pub(super) fn slot(&self, p: u8, sync: bool) -> Option<u8> {
        self.code.slot(process(p), sync).map(|q| self.number(q))
    }

    /// The queue that the table has.
    pub(super) fn table(&self) -> Option<u8> {
        self.code.table()[0].map(|q| self.number(q))
    }

    pub(super) fn is_live(&self, q: u8) -> bool {
        Setting::references(self, q) > 0
    }

    pub(super) fn requests(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
        let may_create = self.side.born < setting.queues;
        let slot = self.slot(p, true);
        let Some(q) = slot.filter(|&q| Some(q) != setting.oom_queue()) else {
            if may_create {
                actions.push(Action::Create(p));
            }
            if slot.is_none() && setting.oom != Oom::None {
                actions.push(Action::Fallback(p));
            }
            return;
        };
        actions.push(match Setting::new_of(self, q) {
            None => Action::Submit(p),
            Some(_) => Action::Redirect(p),
        });
        let shared = Setting::process_references(self, q) > 1;
        if setting.split != Leaving::None && shared && may_create {
            actions.push(Action::Leave(p));
        }
    }

    pub(super) fn async_requests(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
        if setting.r#async == Async::None {
            return;
        }
        let slot = self.slot(p, false);
        let of_its_own = slot.filter(|&q| Some(q) != setting.oom_queue());
        actions.push(match of_its_own.and_then(|q| Setting::new_of(self, q)) {
            None => Action::SubmitAsync(p),
            Some(_) => Action::RedirectAsync(p),
        });
        if slot.is_none() && self.table().is_none() && setting.oom != Oom::None {
            actions.push(Action::FallbackAsync(p));
        }
    }

    pub(super) fn merges(&self, setting: &Setting, actions: &mut Vec<Action>) {
        let own = 0..self.side.born;
        let shared = setting.async_queue();
        let shared = shared.filter(|_| setting.r#async == Async::Current);
        for c in own.clone().chain(shared) {
            if !self.is_live(c) || Setting::new_of(self, c).is_some() {
                continue;
            }
            let group = |q: u8| self.side.more.group[usize::from(q)];
            let found = |n: &u8| {
                *n != c
                    && self.is_live(*n)
                    && self.side.io[usize::from(*n)] > 0
                    && (!setting.same_group || group(c) == group(*n))
            };
            actions.extend(own.clone().filter(found).map(|n| Action::Merge(c, n)));
        }
    }
}
