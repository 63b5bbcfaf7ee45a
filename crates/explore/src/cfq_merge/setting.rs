//! The constants of a configuration, and the rules of the code that they name.

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
    /// Reads the constants of a configuration or of a schedule; all invariants are checked.
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
