//! The constants of a configuration, and the rules of the code that they name.

use blkmq::elevator::cfq::merge::Account;
use blkmq::rules::{Current, MergeDirection, QueueMerge, RedirectedSlot, Split, Unreferenced};

use crate::merging::{PROCESSES_MAX, QUEUES_MAX, all_but_last};
use crate::spec::constants::{self, Constant, Name};

/// The queue that asynchronous requests of all processes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Async {
    /// No process submits asynchronous requests.
    None,
    /// The queue may look for a cooperator.
    Current,
    /// The queue may not look for a cooperator.
    Never,
}

/// The references of a process that leaves a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    /// No process leaves one.
    None,
    /// The reference on the queue is put.
    Queue,
    /// The references along the chain are put as well.
    Chain,
}

/// The fallback queue when no memory is left (`oom_cfqq`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oom {
    /// Memory never runs out.
    None,
    /// Its reference is lost when the process gets a queue of its own.
    Lost,
    Put,
}

/// The table of asynchronous queues (`async_cfqq`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// It is full from the start.
    First,
    /// The first caller fills the entry, with the fallback queue as well.
    Any,
    /// The fallback queue is never entered.
    Own,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub processes: u8,
    /// The most queues that processes create.
    pub queues: u8,
    /// Requests that each process submits, in order.
    pub requests: u8,
    pub r#async: Async,
    /// A merge goes towards the queue with more process references.
    pub direction: bool,
    /// A queue without process references is not merged.
    pub zero_checks: bool,
    pub split: Leaving,
    /// When a process changes its group.
    pub regroup: Leaving,
    pub oom: Oom,
    pub table: Table,
    /// Groups; processes are spread over them in turn.
    pub groups: u8,
    /// Queues of different groups are not merged.
    pub same_group: bool,
    /// Bits of the invariants that are checked.
    pub judged: u16,
    /// A miscount that a check must find: how many references this account gets too many or too
    /// few.
    pub wrong: Option<(Account, i32)>,
}

/// The constants of the specification, and the rule or size that each one is; sizes come first.
pub(super) const CONSTANTS: &[Constant<Setting>] = &[
    Name("Processes").number(1, |_| PROCESSES_MAX as u8, |s| &mut s.processes),
    Name("Queues").number(1, |_| QUEUES_MAX as u8, |s| &mut s.queues),
    Name("Requests").number(1, |_| u8::MAX, |s| &mut s.requests),
    Name("Async").word(&[
        ("none", |s| s.r#async = Async::None),
        ("current", |s| s.r#async = Async::Current),
        ("never", |s| s.r#async = Async::Never),
    ]),
    Name("Direction").flag(|s, on| s.direction = on),
    Name("ZeroChecks").flag(|s, on| s.zero_checks = on),
    Name("Split").word(&[
        ("none", |s| s.split = Leaving::None),
        ("queue", |s| s.split = Leaving::Queue),
        ("chain", |s| s.split = Leaving::Chain),
    ]),
    Name("Regroup").word(&[
        ("none", |s| s.regroup = Leaving::None),
        ("queue", |s| s.regroup = Leaving::Queue),
        ("chain", |s| s.regroup = Leaving::Chain),
    ]),
    Name("Oom").word(&[
        ("none", |s| s.oom = Oom::None),
        ("lost", |s| s.oom = Oom::Lost),
        ("put", |s| s.oom = Oom::Put),
    ]),
    Name("Table").word(&[
        ("first", |s| s.table = Table::First),
        ("any", |s| s.table = Table::Any),
        ("own", |s| s.table = Table::Own),
    ]),
    Name("Groups").number(1, |_| 4, |s| &mut s.groups),
    Name("SameGroup").flag(|s, on| s.same_group = on),
];

impl Setting {
    /// The constants but for sizes, as `of_constants` reads them.
    pub(crate) fn rule_constants(&self) -> Vec<(String, String)> {
        constants::written(&CONSTANTS[3..], self)
    }

    /// The setting of a run under these rules; `asynchronous`: the processes share an asynchronous
    /// queue.
    pub(crate) fn of_rules(rules: &QueueMerge, asynchronous: bool) -> Setting {
        let leaves = |drops_chain| match drops_chain {
            true => Leaving::Chain,
            false => Leaving::Queue,
        };
        Setting {
            processes: 1,
            queues: 1,
            requests: 1,
            r#async: match (asynchronous, rules.current) {
                (false, _) => Async::None,
                (true, Current::Any | Current::AnyServed) => Async::Current,
                (true, _) => Async::Never,
            },
            direction: rules.direction == MergeDirection::ToMoreProcesses,
            zero_checks: rules.unreferenced == Unreferenced::AllChecked,
            split: match rules.split {
                Split::Never => Leaving::None,
                Split::AfterSecond | Split::AtExpiry => leaves(rules.split_drops_chain),
            },
            regroup: leaves(rules.group_change_drops_chain),
            oom: Oom::None,
            table: Table::Own,
            groups: 1,
            same_group: false,
            judged: all_but_last::<Setting>(),
            wrong: None,
        }
    }

    /// The rules of blkmq that the setting names.
    pub(super) fn rules(&self) -> QueueMerge {
        let (direction, unreferenced, split) = (
            match self.direction {
                true => MergeDirection::ToMoreProcesses,
                false => MergeDirection::ToCandidate,
            },
            match self.zero_checks {
                true => Unreferenced::AllChecked,
                false => Unreferenced::CurrentChecked,
            },
            match self.split {
                Leaving::None => Split::Never,
                Leaving::Queue | Leaving::Chain => Split::AtExpiry,
            },
        );
        QueueMerge {
            direction,
            unreferenced,
            split,
            redirected_slot: RedirectedSlot::Own,
            split_drops_chain: self.split == Leaving::Chain,
            group_change_drops_chain: self.regroup == Leaving::Chain,
            puts_fallback: self.oom == Oom::Put,
            fallback_is_nobodys: self.table != Table::Any,
            ..QueueMerge::POSTED
        }
    }

    /// The number of queues in the specification: those of processes, the asynchronous one, the
    /// fallback.
    pub(super) fn all_queues(&self) -> u8 {
        self.queues + u8::from(self.r#async != Async::None) + u8::from(self.oom != Oom::None)
    }

    /// Number of the asynchronous queue from 0, if there is one.
    pub(super) fn async_queue(&self) -> Option<u8> {
        (self.r#async != Async::None).then_some(self.queues)
    }

    /// Number of the fallback queue from 0, if there is one.
    pub(super) fn oom_queue(&self) -> Option<u8> {
        (self.oom != Oom::None).then(|| self.all_queues() - 1)
    }
}
