//! Constants of a configuration, and the rules of the code that they stand for.

use blkmq::elevator::cfq::merge::Account;
use blkmq::rules::{Current, MergeDirection, QueueMerge, RedirectedSlot, Split, Unreferenced};

use crate::merging::{PROCESSES_MAX, QUEUES_MAX, all_but_last};
use crate::spec::{Constants, SettingError, flag, word};

const CONSTANTS: [&str; 12] = [
    "Processes",
    "Queues",
    "Requests",
    "Async",
    "Direction",
    "ZeroChecks",
    "Split",
    "Regroup",
    "Oom",
    "Table",
    "Groups",
    "SameGroup",
];

/// The queue that asynchronous requests of all processes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Async {
    /// Nobody submits any.
    None,
    /// It may look for a cooperator.
    Current,
    /// It may not.
    Never,
}

/// What becomes of a process's references where it leaves a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    /// Nobody does.
    None,
    /// That on the queue is put.
    Queue,
    /// Those along the chain, too.
    Chain,
}

/// The queue for want of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oom {
    /// There is always memory.
    None,
    /// Its reference is lost by who gets a queue at last.
    Lost,
    Put,
}

/// The table of asynchronous queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Filled from the start.
    First,
    /// By whoever asks first, also with the queue for want of memory.
    Any,
    /// Never with that one.
    Own,
}

/// A configuration of `specs/CfqMerge`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub processes: u8,
    /// Queues that they can create.
    pub queues: u8,
    /// Requests that each process submits, one after another.
    pub requests: u8,
    /// Asynchronous requests.
    pub r#async: Async,
    /// Towards the queue with more references of processes.
    pub direction: bool,
    /// No merge of a queue without them.
    pub zero_checks: bool,
    pub split: Leaving,
    /// By a change of the group.
    pub regroup: Leaving,
    /// Want of memory.
    pub oom: Oom,
    pub table: Table,
    /// Groups that processes belong to, in turn.
    pub groups: u8,
    /// No merge across groups.
    pub same_group: bool,
    /// Bits of the invariants that are judged.
    pub judged: u16,
    /// So many references more, or fewer, where this account is touched: to see it found out.
    pub wrong: Option<(Account, i32)>,
}

const ASYNCS: [(&str, Async); 3] = [
    ("\"none\"", Async::None),
    ("\"current\"", Async::Current),
    ("\"never\"", Async::Never),
];
const OOMS: [(&str, Oom); 3] = [
    ("\"none\"", Oom::None),
    ("\"lost\"", Oom::Lost),
    ("\"put\"", Oom::Put),
];
const TABLES: [(&str, Table); 3] = [
    ("\"first\"", Table::First),
    ("\"any\"", Table::Any),
    ("\"own\"", Table::Own),
];
const LEAVINGS: [(&str, Leaving); 3] = [
    ("\"none\"", Leaving::None),
    ("\"queue\"", Leaving::Queue),
    ("\"chain\"", Leaving::Chain),
];

impl Setting {
    /// Reads the constants of a configuration or of a schedule; judges all invariants.
    pub(super) fn read(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        let c = Constants::among(constants, &CONSTANTS)?;
        Ok(Setting {
            processes: c.number("Processes", 1, PROCESSES_MAX as u8)?,
            queues: c.number("Queues", 1, QUEUES_MAX as u8)?,
            requests: c.number("Requests", 1, u8::MAX)?,
            r#async: c.choice("Async", &ASYNCS)?,
            direction: c.flag("Direction")?,
            zero_checks: c.flag("ZeroChecks")?,
            split: c.choice("Split", &LEAVINGS)?,
            regroup: c.choice("Regroup", &LEAVINGS)?,
            oom: c.choice("Oom", &OOMS)?,
            table: c.choice("Table", &TABLES)?,
            groups: c.number("Groups", 1, 4)?,
            same_group: c.flag("SameGroup")?,
            judged: all_but_last::<Setting>(),
            wrong: None,
        })
    }

    /// Of a run under these rules; `asynchronous`: the processes share an asynchronous queue.
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

    /// The constants but for sizes, as [`Setting::read`] reads them.
    pub(crate) fn rule_constants(&self) -> Vec<(&'static str, String)> {
        let values = [
            word(&ASYNCS, &self.r#async),
            flag(self.direction),
            flag(self.zero_checks),
            word(&LEAVINGS, &self.split),
            word(&LEAVINGS, &self.regroup),
            word(&OOMS, &self.oom),
            word(&TABLES, &self.table),
            self.groups.to_string(),
            flag(self.same_group),
        ];
        CONSTANTS[3..].iter().copied().zip(values).collect()
    }

    /// The rules of blkmq that it stands for.
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

    /// Queues of the specification: those of processes, the asynchronous one, the fallback.
    pub(super) fn all_queues(&self) -> u8 {
        self.queues + u8::from(self.r#async != Async::None) + u8::from(self.oom != Oom::None)
    }

    /// Number of the asynchronous queue from 0, if there is one.
    pub(super) fn async_queue(&self) -> Option<u8> {
        (self.r#async != Async::None).then_some(self.queues)
    }

    /// That of the queue for want of memory.
    pub(super) fn oom_queue(&self) -> Option<u8> {
        (self.oom != Oom::None).then(|| self.all_queues() - 1)
    }
}
