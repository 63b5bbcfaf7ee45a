//! A state of the specification as the merge code has it, and what may happen next.

use blkmq::elevator::bfq::protocol::{Created, MergeProtocol, SeenQueue};
use blkmq::schedule::{Argument, Step};

use super::setting::{PROCESSES_MAX, QUEUES_MAX, Setting};

/// One thing that can happen. Processes, queues and groups are numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// A process gets a queue.
    Create(u8, Created),
    /// It submits a request.
    Submit(u8),
    /// A request of a queue ends.
    Complete(u8),
    /// A process goes where it is planned.
    Redirect(u8),
    /// A process's queue is merged into one that is close.
    Merge(u8, u8),
    /// The time of a process's candidate has come.
    MergeLater(u8),
    /// The same where idling serves it better.
    Abort(u8),
    /// A process leaves a queue that it shares.
    Leave(u8),
    /// It is alone there, and keeps it.
    Keep(u8),
    /// A process ends.
    Exit(u8),
    /// A process changes its group.
    Move(u8, u8),
}

/// Names of the actions.
pub(super) const ACTIONS: &[&str] = &[
    "CreateLast",
    "Create",
    "CreateLater",
    "CreateMerged",
    "Submit",
    "Complete",
    "Redirect",
    "Merge",
    "MergeLater",
    "Abort",
    "Leave",
    "Keep",
    "Exit",
    "Move",
];

impl Action {
    /// Its place in `ACTIONS`.
    pub(super) fn kind(self) -> usize {
        match self {
            Action::Create(_, Created::Last) => 0,
            Action::Create(_, Created::Alone) => 1,
            Action::Create(_, Created::Later) => 2,
            Action::Create(_, Created::Merged) => 3,
            Action::Submit(_) => 4,
            Action::Complete(_) => 5,
            Action::Redirect(_) => 6,
            Action::Merge(..) => 7,
            Action::MergeLater(_) => 8,
            Action::Abort(_) => 9,
            Action::Leave(_) => 10,
            Action::Keep(_) => 11,
            Action::Exit(_) => 12,
            Action::Move(..) => 13,
        }
    }

    /// As schedules name it.
    pub(super) fn step(self) -> Step {
        let number = |name: &str, of: u8| {
            let number = Argument::Number(u32::from(of) + 1);
            (name.to_owned(), number)
        };
        let arguments = match self {
            Action::Complete(q) => vec![number("queue", q)],
            Action::Merge(p, q) => vec![number("process", p), number("close", q)],
            Action::Move(p, g) => vec![number("process", p), number("group", g)],
            Action::Create(p, _)
            | Action::Submit(p)
            | Action::Redirect(p)
            | Action::MergeLater(p)
            | Action::Abort(p)
            | Action::Leave(p)
            | Action::Keep(p)
            | Action::Exit(p) => vec![number("process", p)],
        };
        Step {
            action: ACTIONS[self.kind()].to_owned(),
            arguments,
            observed: Vec::new(),
        }
    }
}

/// A state.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) protocol: MergeProtocol,
    pub(super) side: Side,
}

/// All of a state that the merge code does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Side {
    /// Requests that a process has not submitted yet.
    pub(super) todo: [u8; PROCESSES_MAX],
    /// Processes that have exited.
    pub(super) exited: [bool; PROCESSES_MAX],
    /// The group that a process is in, or was in when it exited.
    pub(super) group: [u8; PROCESSES_MAX],
    /// Requests of a queue.
    pub(super) io: [u8; QUEUES_MAX],
    /// Queues that were created.
    pub(super) born: u8,
    /// A redirection ended where another one goes on.
    pub(super) short: bool,
    /// A freed queue was used.
    pub(super) used: bool,
}

impl World {
    pub(super) fn new(setting: &Setting) -> World {
        let groups = u16::from(setting.groups);
        let protocol = MergeProtocol::new(setting.rules(), u32::from(setting.processes), groups);
        World {
            protocol,
            side: Side {
                todo: [setting.requests; PROCESSES_MAX],
                exited: [false; PROCESSES_MAX],
                group: [0; PROCESSES_MAX],
                io: [0; QUEUES_MAX],
                born: 0,
                short: false,
                used: false,
            },
        }
    }

    pub(super) fn slot(&self, p: u8) -> Option<u8> {
        self.protocol.slot(u32::from(p)).map(|q| q as u8)
    }

    pub(super) fn candidate(&self, p: u8) -> Option<u8> {
        self.protocol.candidate(u32::from(p)).map(|q| q as u8)
    }

    pub(super) fn created(&self, group: u8) -> Option<u8> {
        let last = self.protocol.last_created(u16::from(group));
        last.map(|q| q as u8)
    }

    pub(super) fn queue(&self, q: u8) -> Option<SeenQueue> {
        self.protocol.queue(u32::from(q))
    }

    /// Where processes of a queue are to go.
    pub(super) fn new_of(&self, q: u8) -> Option<u8> {
        self.queue(q)?.new.map(|q| q as u8)
    }

    /// References of processes.
    pub(super) fn process_references(&self, q: u8) -> i32 {
        let seen = self.queue(q);
        seen.map_or(0, |s| s.references - s.requests - s.stable)
    }

    /// Everything that can happen next. Each entry is one way in which the specification's `Next`
    /// holds.
    pub(super) fn actions(&self, setting: &Setting, actions: &mut Vec<Action>) {
        actions.clear();
        if self.side.used {
            return;
        }
        for p in 0..setting.processes {
            if !self.side.exited[usize::from(p)] {
                self.of_process(setting, p, actions);
            }
        }
        let busy = |q: &u8| self.side.io[usize::from(*q)] > 0;
        actions.extend((0..self.side.born).filter(busy).map(Action::Complete));
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
                let stably = self.protocol.merged_for_good(u32::from(p));
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
        let others = (0..setting.groups).filter(|&g| g != self.side.group[usize::from(p)]);
        actions.extend(others.map(|g| Action::Move(p, g)));
    }

    fn creations(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
        actions.push(Action::Create(p, Created::Last));
        if self.created(self.side.group[usize::from(p)]).is_none() {
            return;
        }
        if setting.later || setting.early {
            actions.push(Action::Create(p, Created::Alone));
        }
        if setting.later {
            actions.push(Action::Create(p, Created::Later));
        }
        if setting.early {
            actions.push(Action::Create(p, Created::Merged));
        }
    }

    /// What a request or a bio may find.
    fn of_slot(&self, setting: &Setting, p: u8, q: u8, actions: &mut Vec<Action>) {
        let planned = self.new_of(q);
        match planned {
            Some(new) if new != q => actions.push(Action::Redirect(p)),
            Some(_) => {}
            None => {
                let close = |n: &u8| *n != q && self.side.io[usize::from(*n)] > 0;
                let close = (0..self.side.born).filter(close);
                actions.extend(close.map(|n| Action::Merge(p, n)));
            }
        }
        if self.candidate(p).is_some() && (planned.is_none() || !setting.chain_to_tail) {
            actions.extend([Action::MergeLater(p), Action::Abort(p)]);
        }
    }

    fn is_alone(&self, setting: &Setting, q: u8) -> bool {
        let unplanned = self.new_of(q).is_none() || !setting.chain_to_tail;
        unplanned && self.process_references(q) == 1
    }

    /// Everybody has exited, and nothing is under way.
    pub(super) fn is_quiet(&self, setting: &Setting) -> bool {
        let exited = &self.side.exited[..usize::from(setting.processes)];
        exited.iter().all(|&exited| exited) && self.side.io.iter().all(|&io| io == 0)
    }

    /// No queue is left.
    pub(super) fn all_freed(&self, setting: &Setting) -> bool {
        !self.side.used && (0..setting.queues).all(|q| self.queue(q).is_none())
    }
}
