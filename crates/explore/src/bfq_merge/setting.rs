//! The constants of a configuration, and the rules of blkmq that they name.

use blkmq::rules::{FairQueueing, Rules, StableMerge};

use super::run::Wrong;
use crate::merging::{PROCESSES_MAX, QUEUES_MAX, all_but_last};
use crate::spec::constants::{self, Constant, Name};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub processes: u8,
    /// The most queues that processes create.
    pub queues: u8,
    /// Requests that each process submits, in order.
    pub requests: u8,
    /// Groups; all processes begin in the first.
    pub groups: u8,
    /// Queues that were created together are merged later (a stable merge).
    pub later: bool,
    /// Queues that were created together are merged at once.
    pub early: bool,
    /// A redirection takes precedence over a candidate, is followed to the tail, and is never kept
    /// or owned.
    pub chain_to_tail: bool,
    /// A candidate that replaces another one puts that one's reference; no kernel has this rule.
    pub puts_replaced: bool,
    /// The specification records that a redirection ended before the end of its chain.
    pub notes_short: bool,
    /// A queue without requests may be merged into.
    pub idle_close: bool,
    /// A request of a process that changes its queue may move with it.
    pub carries: bool,
    /// The setting has a rule that the code does not have.
    pub only_specified: bool,
    /// Bits of the invariants that are checked.
    pub judged: u16,
    /// The miscount that a check must find.
    pub wrong: Option<Wrong>,
}

/// Another value than that of the code.
const ONLY_SPECIFIED: fn(&mut Setting) = |s| s.only_specified = true;

/// The constants of the specification, and the rule or size that each one is; sizes come first. The
/// code has some of these rules only together, or always; the test of groups came with the one of
/// chains.
pub(super) const CONSTANTS: &[Constant<Setting>] = &[
    Name("Processes").number(1, |_| PROCESSES_MAX as u8, |s| &mut s.processes),
    Name("Queues").number(1, |_| QUEUES_MAX as u8, |s| &mut s.queues),
    Name("Requests").number(1, |_| u8::MAX, |s| &mut s.requests),
    Name("Groups").number(1, |_| 2, |s| &mut s.groups),
    Name("Stable").word(&[
        ("later", |s| (s.later, s.early) = (true, false)),
        ("early", |s| (s.later, s.early) = (false, true)),
        ("never", |s| (s.later, s.early) = (false, false)),
    ]),
    Name("Cancel").follows(|_| true, ONLY_SPECIFIED),
    Name("PlannedFirst").follows(|s| s.chain_to_tail, ONLY_SPECIFIED),
    Name("Follow").word(&[
        ("link", |s| s.chain_to_tail = false),
        ("tail", |s| s.chain_to_tail = true),
        ("jump", ONLY_SPECIFIED),
    ]),
    Name("KeepsPlanned").follows(|s| !s.chain_to_tail, ONLY_SPECIFIED),
    Name("OwnsPlanned").follows(|s| !s.chain_to_tail, ONLY_SPECIFIED),
    Name("SameGroup").follows(|s| s.chain_to_tail, ONLY_SPECIFIED),
    Name("Counted").follows(|_| true, ONLY_SPECIFIED),
    Name("Detach").word(&[
        ("never", ONLY_SPECIFIED),
        ("first", |_| ()),
        ("late", ONLY_SPECIFIED),
    ]),
    Name("MoveClears").follows(|_| true, ONLY_SPECIFIED),
    Name("PutsReplaced").flag(|s, on| s.puts_replaced = on),
    Name("NotesShort").flag(|s, on| s.notes_short = on),
    Name("IdleClose").flag(|s, on| s.idle_close = on),
    Name("Carries").flag(|s, on| s.carries = on),
];

impl Setting {
    /// The setting of a run under these rules, but for sizes; all invariants are checked.
    pub(crate) fn of_rules(rules: &FairQueueing) -> Setting {
        Setting {
            processes: 1,
            queues: 1,
            requests: 1,
            groups: 1,
            later: true,
            early: false,
            chain_to_tail: rules.chain_to_tail,
            puts_replaced: rules.puts_candidate,
            notes_short: false,
            idle_close: true,
            carries: true,
            only_specified: false,
            judged: all_but_last::<Setting>(),
            wrong: None,
        }
    }

    /// The constants but for sizes, as `of_constants` reads them.
    pub(crate) fn rule_constants(&self) -> Vec<(String, String)> {
        constants::written(&CONSTANTS[3..], self)
    }

    /// The rules of blkmq that the setting names.
    pub(super) fn rules(&self) -> Rules {
        let mut rules = Rules::v6_1();
        rules.fair_queueing.chain_to_tail = self.chain_to_tail;
        rules.fair_queueing.puts_candidate = self.puts_replaced;
        if !self.later && !self.early {
            rules = rules.with_stable_merge(StableMerge::Never);
        }
        rules
    }
}
