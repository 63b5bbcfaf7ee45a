//! A state of the specification as the merge code has it, and what may happen next.

use blkmq::elevator::cfq::merge::{FALLBACK, QId, Ties};
use blkmq::request::IoContextId;
use blkmq::schedule::{Argument, Step};

use super::setting::{Async, Leaving, Oom, PROCESSES_MAX, QUEUES_MAX, Setting, Table};

/// One thing that can happen. Processes and queues are numbered from 0, behind the queues of
/// processes the asynchronous one and the fallback.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// A process gets a queue, and a request of it.
    Create(u8),
    /// There is no memory for one.
    Fallback(u8),
    /// A request of the queue that it has.
    Submit(u8),
    /// It goes where it is planned, and gets a request there.
    Redirect(u8),
    /// It leaves a queue that it shares, for a request of its own.
    Leave(u8),
    /// An asynchronous request.
    SubmitAsync(u8),
    /// The same without memory for a queue.
    FallbackAsync(u8),
    /// The same of one that is planned to go elsewhere.
    RedirectAsync(u8),
    /// A request of a queue ends.
    Complete(u8),
    /// A process ends.
    Exit(u8),
    /// A process changes its group.
    Move(u8),
    /// The active queue finds another one close.
    Merge(u8, u8),
}

/// Names of the actions.
pub(super) const ACTIONS: &[&str] = &[
    "Create",
    "Fallback",
    "Submit",
    "Redirect",
    "Leave",
    "SubmitAsync",
    "FallbackAsync",
    "RedirectAsync",
    "Complete",
    "Exit",
    "Move",
    "Merge",
];

impl Action {
    /// Its place in `ACTIONS`.
    pub(super) fn kind(self) -> usize {
        match self {
            Action::Create(_) => 0,
            Action::Fallback(_) => 1,
            Action::Submit(_) => 2,
            Action::Redirect(_) => 3,
            Action::Leave(_) => 4,
            Action::SubmitAsync(_) => 5,
            Action::FallbackAsync(_) => 6,
            Action::RedirectAsync(_) => 7,
            Action::Complete(_) => 8,
            Action::Exit(_) => 9,
            Action::Move(_) => 10,
            Action::Merge(..) => 11,
        }
    }

    /// It is a process's request.
    pub(super) fn submits(self) -> bool {
        self.kind() < 8
    }

    /// As schedules name it.
    pub(super) fn step(self) -> Step {
        let number = |name: &str, of: u8| {
            let number = Argument::Number(u32::from(of) + 1);
            (name.to_owned(), number)
        };
        let arguments = match self {
            Action::Complete(q) => vec![number("queue", q)],
            Action::Merge(c, n) => vec![number("current", c), number("close", n)],
            Action::Create(p)
            | Action::Fallback(p)
            | Action::Submit(p)
            | Action::Redirect(p)
            | Action::Leave(p)
            | Action::SubmitAsync(p)
            | Action::FallbackAsync(p)
            | Action::RedirectAsync(p)
            | Action::Exit(p)
            | Action::Move(p) => vec![number("process", p)],
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
    pub(super) ties: Ties,
    pub(super) side: Side,
}

/// All of a state that the merge code does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Side {
    /// Requests that a process has not submitted yet.
    pub(super) todo: [u8; PROCESSES_MAX],
    /// Processes that have exited.
    pub(super) exited: [bool; PROCESSES_MAX],
    /// The code's number of each queue that was created.
    pub(super) numbers: [Option<QId>; QUEUES_MAX + 2],
    /// Requests of a queue.
    pub(super) io: [u8; QUEUES_MAX + 2],
    /// The group of the process that created it, from 1.
    pub(super) group: [u8; QUEUES_MAX + 2],
    /// Queues that processes created.
    pub(super) born: u8,
    /// A freed queue was used.
    pub(super) used: bool,
}

/// A process's number in the code.
pub(super) fn process(p: u8) -> IoContextId {
    IoContextId(u32::from(p))
}

impl World {
    pub(super) fn new(setting: &Setting) -> World {
        let mut ties = Ties::new(setting.rules(), 1);
        ties.walked = true;
        let mut numbers = [None; QUEUES_MAX + 2];
        if let Some(at) = setting.oom_queue() {
            numbers[usize::from(at)] = Some(FALLBACK);
        }
        if let Some(at) = setting.async_queue()
            && setting.table == Table::First
        {
            // Somebody asked for it, and has gone.
            let nobody = process(setting.processes);
            let (q, _) = ties.give(nobody, Some(0), true).expect("nothing is wrong");
            ties.exit(nobody, false).expect("it has the queue");
            numbers[usize::from(at)] = Some(q);
        }
        ties.wrong = setting.wrong;
        World {
            ties,
            side: Side {
                todo: [setting.requests; PROCESSES_MAX],
                exited: [false; PROCESSES_MAX],
                numbers,
                io: [0; QUEUES_MAX + 2],
                group: [0; QUEUES_MAX + 2],
                born: 0,
                used: false,
            },
        }
    }

    /// The specification's number of a queue of the code.
    fn number(&self, q: QId) -> u8 {
        let at = self.side.numbers.iter().position(|&n| n == Some(q));
        at.expect("the queue was created here") as u8
    }

    pub(super) fn slot(&self, p: u8, sync: bool) -> Option<u8> {
        self.ties.slot(process(p), sync).map(|q| self.number(q))
    }

    /// The queue that the table has.
    pub(super) fn table(&self) -> Option<u8> {
        self.ties.table()[0].map(|q| self.number(q))
    }

    pub(super) fn references(&self, q: u8) -> i32 {
        let tie = self.side.numbers[usize::from(q)].and_then(|q| self.ties.tie(q).ok());
        tie.map_or(0, |tie| tie.references)
    }

    pub(super) fn is_live(&self, q: u8) -> bool {
        self.references(q) > 0
    }

    /// Where processes of a queue are to go.
    pub(super) fn new_of(&self, q: u8) -> Option<u8> {
        let tie = self.ties.tie(self.side.numbers[usize::from(q)]?).ok()?;
        tie.new.map(|q| self.number(q))
    }

    /// References of processes.
    pub(super) fn process_references(&self, q: u8) -> i32 {
        self.references(q) - i32::from(self.side.io[usize::from(q)])
    }

    /// Everything that can happen next. Each entry is one way in which the specification's `Next`
    /// holds.
    pub(super) fn actions(&self, setting: &Setting, actions: &mut Vec<Action>) {
        actions.clear();
        if self.side.used {
            return;
        }
        for p in 0..setting.processes {
            if self.side.exited[usize::from(p)] {
                continue;
            }
            if self.side.todo[usize::from(p)] > 0 {
                self.requests(setting, p, actions);
                self.async_requests(setting, p, actions);
            }
            actions.push(Action::Exit(p));
            if setting.regroup != Leaving::None && self.slot(p, true).is_some() {
                actions.push(Action::Move(p));
            }
        }
        let busy = |q: &u8| self.side.io[usize::from(*q)] > 0;
        actions.extend((0..setting.all_queues()).filter(busy).map(Action::Complete));
        self.merges(setting, actions);
    }

    fn requests(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
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
        actions.push(match self.new_of(q) {
            None => Action::Submit(p),
            Some(_) => Action::Redirect(p),
        });
        let shared = self.process_references(q) > 1;
        if setting.split != Leaving::None && shared && may_create {
            actions.push(Action::Leave(p));
        }
    }

    fn async_requests(&self, setting: &Setting, p: u8, actions: &mut Vec<Action>) {
        if setting.r#async == Async::None {
            return;
        }
        let slot = self.slot(p, false);
        let of_its_own = slot.filter(|&q| Some(q) != setting.oom_queue());
        actions.push(match of_its_own.and_then(|q| self.new_of(q)) {
            None => Action::SubmitAsync(p),
            Some(_) => Action::RedirectAsync(p),
        });
        if slot.is_none() && self.table().is_none() && setting.oom != Oom::None {
            actions.push(Action::FallbackAsync(p));
        }
    }

    fn merges(&self, setting: &Setting, actions: &mut Vec<Action>) {
        let own = 0..self.side.born;
        let shared = setting.async_queue();
        let shared = shared.filter(|_| setting.r#async == Async::Current);
        for c in own.clone().chain(shared) {
            if !self.is_live(c) || self.new_of(c).is_some() {
                continue;
            }
            let group = |q: u8| self.side.group[usize::from(q)];
            let found = |n: &u8| {
                *n != c
                    && self.is_live(*n)
                    && self.side.io[usize::from(*n)] > 0
                    && (!setting.same_group || group(c) == group(*n))
            };
            actions.extend(own.clone().filter(found).map(|n| Action::Merge(c, n)));
        }
    }

    /// Everybody has exited, and nothing is under way.
    pub(super) fn is_quiet(&self, setting: &Setting) -> bool {
        let exited = &self.side.exited[..usize::from(setting.processes)];
        exited.iter().all(|&exited| exited) && self.side.io.iter().all(|&io| io == 0)
    }

    /// No queue of a process is left.
    pub(super) fn all_freed(&self, setting: &Setting) -> bool {
        !self.side.used && (0..setting.queues).all(|q| !self.is_live(q))
    }
}
