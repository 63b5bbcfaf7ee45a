//! The constants of a configuration, and the rules of blkmq that they name.

use blkmq::rules::{Rules, StableMerge};

use super::run::Wrong;
use crate::merging::{PROCESSES_MAX, QUEUES_MAX, all_but_last};
use crate::spec::{Constants, SettingError, flag, word};

const CONSTANTS: [&str; 18] = [
    "Processes",
    "Queues",
    "Requests",
    "Groups",
    "Stable",
    "Cancel",
    "PlannedFirst",
    "Follow",
    "KeepsPlanned",
    "OwnsPlanned",
    "SameGroup",
    "Counted",
    "Detach",
    "MoveClears",
    "PutsReplaced",
    "NotesShort",
    "IdleClose",
    "Carries",
];

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

const STABLE: [(&str, u8); 3] = [("\"later\"", 0), ("\"early\"", 1), ("\"never\"", 2)];
const FOLLOW: [(&str, u8); 3] = [("\"link\"", 0), ("\"tail\"", 1), ("\"jump\"", 2)];
const DETACH: [(&str, u8); 3] = [("\"never\"", 0), ("\"first\"", 1), ("\"late\"", 2)];

/// Rules that the code has only together, or always; the test of groups came with the one of
/// chains.
fn of_code(chain_to_tail: bool) -> [(&'static str, bool); 7] {
    [
        ("PlannedFirst", chain_to_tail),
        ("KeepsPlanned", !chain_to_tail),
        ("OwnsPlanned", !chain_to_tail),
        ("SameGroup", chain_to_tail),
        ("Cancel", true),
        ("Counted", true),
        ("MoveClears", true),
    ]
}

impl Setting {
    /// Reads the constants of a configuration or of a schedule; all invariants are checked.
    pub(super) fn read(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        let c = Constants::among(constants, &CONSTANTS)?;
        let stable = c.choice("Stable", &STABLE)?;
        let follow = c.choice("Follow", &FOLLOW)?;
        let detach = c.choice("Detach", &DETACH)?;
        let groups = c.number("Groups", 1, 2)?;
        let chain_to_tail = follow == 1;
        let mut differs = detach != 1 || follow == 2;
        for (name, value) in of_code(chain_to_tail) {
            differs |= c.flag(name)? != value;
        }
        Ok(Setting {
            processes: c.number("Processes", 1, PROCESSES_MAX as u8)?,
            queues: c.number("Queues", 1, QUEUES_MAX as u8)?,
            requests: c.number("Requests", 1, u8::MAX)?,
            groups,
            later: stable == 0,
            early: stable == 1,
            chain_to_tail,
            puts_replaced: c.flag("PutsReplaced")?,
            notes_short: c.flag("NotesShort")?,
            idle_close: c.flag("IdleClose")?,
            carries: c.flag("Carries")?,
            only_specified: differs,
            judged: all_but_last::<Setting>(),
            wrong: None,
        })
    }

    /// The constants but for sizes, as [`Setting::read`] reads them.
    pub(crate) fn rule_constants(&self) -> Vec<(&'static str, String)> {
        let stable = match (self.later, self.early) {
            (true, _) => 0,
            (_, true) => 1,
            _ => 2,
        };
        let rules = of_code(self.chain_to_tail);
        let value = |name: &str| match name {
            "Groups" => self.groups.to_string(),
            "Stable" => word(&STABLE, &stable),
            "Follow" => word(&FOLLOW, &u8::from(self.chain_to_tail)),
            "Detach" => word(&DETACH, &1),
            "PutsReplaced" => flag(self.puts_replaced),
            "NotesShort" => flag(self.notes_short),
            "IdleClose" => flag(self.idle_close),
            "Carries" => flag(self.carries),
            rule => flag(rules.iter().any(|&(name, holds)| name == rule && holds)),
        };
        let names = CONSTANTS[3..].iter();
        names.map(|&name| (name, value(name))).collect()
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
