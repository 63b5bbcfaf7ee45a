//! The constants of a configuration, and the block layer that they describe.

use blkmq::elevator::SchedulerKind;
use blkmq::queue::{BlkMq, QueueSettings};
use blkmq::rules::{
    AskAfter, BioPlug, Recheck, Restart, RestartRule, Rules, TagWait, WaitEntry, WokenRun,
};

use crate::spec::constants::{self, Constant, Name};
use crate::spec::queues_of_one_set;

/// The most requests of a configuration.
pub(super) const REQUESTS_MAX: usize = 8;
/// The most hctxs of all queues.
pub(super) const HCTXS_MAX: usize = 8;

/// Ticks a second; no tick passes.
const HZ: u32 = 250;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub requests: u8,
    /// Request queues on the tag set.
    pub queues: u8,
    /// Hardware queues of each queue; the k-th ones share tag map k.
    pub hctxs: u8,
    pub contexts: u8,
    /// Driver tags of each map.
    pub tags: u8,
    /// Requests that the device holds at once; 0: any number.
    pub limit: u8,
    pub restart: Restart,
    /// The increment of the counter is a step of its own after the bit.
    pub mark_split: bool,
    /// When a request ends, the driver runs the hctxs that it refused.
    pub driver_reruns: bool,
    pub lowest_first: bool,
    /// TLC may permute the requests: the configuration has `SYMMETRY`.
    pub symmetry: bool,
    /// Only NeverAllDone is checked, which must be violated.
    pub judges_end: bool,
}

/// The constants of the specification, and the rule or size that each one is.
pub(super) const CONSTANTS: &[Constant<Setting>] = &[
    Name("Requests").set(REQUESTS_MAX as u8, |s| &mut s.requests),
    Name("Queues").number(1, |_| HCTXS_MAX as u8, |s| &mut s.queues),
    Name("Hctxs").number(1, |s| HCTXS_MAX as u8 / s.queues, |s| &mut s.hctxs),
    Name("Contexts").number(1, |_| 4, |s| &mut s.contexts),
    Name("Tags").number(1, |_| 8, |s| &mut s.tags),
    Name("Limit").number(0, |_| 8, |s| &mut s.limit),
    Name("RestartRule").word(&[
        ("R0", |s| s.restart.rule = RestartRule::SameQueue),
        ("R1", |s| s.restart.rule = RestartRule::RoundRobin),
        ("R2", |s| s.restart.rule = RestartRule::QueueCount),
        ("R2p", |s| s.restart.rule = RestartRule::MapCount),
        ("R4", |s| s.restart.rule = RestartRule::Own),
        ("all", |s| s.restart.rule = RestartRule::WholeSet),
    ]),
    Name("Policy").word(&[
        ("strict", |s| s.restart.ask = AskAfter::Never),
        ("rc4", |s| s.restart.ask = AskAfter::NoneIssued),
        ("later", |s| s.restart.ask = AskAfter::SomeIssued),
    ]),
    Name("WaitRule").word(&[
        ("none", |s| s.restart.wait = TagWait::Nowhere),
        ("one", |s| s.restart.wait = TagWait::WakeOne),
        ("all", |s| s.restart.wait = TagWait::WakeAll),
    ]),
    Name("EntryRule").word(&[
        ("kept", |s| s.restart.entry = WaitEntry::Kept),
        ("second", |s| s.restart.entry = WaitEntry::SecondAttempt),
        ("any", |s| s.restart.entry = WaitEntry::AnyAttempt),
    ]),
    Name("Recheck").word(&[
        ("4.14", |s| s.restart.recheck = Recheck::Unpromised),
        ("4.15", |s| s.restart.recheck = Recheck::LeftWaitQueue),
    ]),
    Name("WokenRun").word(&[
        ("always", |s| s.restart.woken = WokenRun::Always),
        ("needed", |s| s.restart.woken = WokenRun::IfNeeded),
    ]),
    Name("MarkSplit").flag(|s, on| s.mark_split = on),
    Name("DriverReruns").flag(|s, on| s.driver_reruns = on),
    Name("LowestFirst").flag(|s, on| s.lowest_first = on),
];

impl Setting {
    /// The setting of a run under this rule, but for sizes.
    pub(crate) fn of_rule(restart: Restart) -> Setting {
        Setting {
            requests: 1,
            queues: 1,
            hctxs: 1,
            contexts: 1,
            tags: 1,
            limit: 0,
            restart,
            mark_split: restart.rule.counts(),
            driver_reruns: false,
            lowest_first: false,
            symmetry: false,
            judges_end: false,
        }
    }

    /// The constants in the form that `parse` reads.
    pub(crate) fn constants(&self) -> Vec<(String, String)> {
        constants::written(CONSTANTS, self)
    }

    /// The idle block layer: a CPU per hctx.
    pub(super) fn build(&self) -> BlkMq {
        // v6.12: a driver tag is taken only for the request that is dispatched next.
        let rules = Rules::v6_12().with_restart(self.restart);
        // The specification inserts without a run of the queue; a worker runs it.
        let rules = rules.with_bio_plug(BioPlug::Never);
        let nr_requests = u32::from(self.requests);
        let scheduler = SchedulerKind::default_for(true);
        queues_of_one_set(
            (self.queues, self.hctxs, self.hctxs),
            QueueSettings::plain(rules, scheduler, nr_requests),
            scheduler.defaults(HZ, nr_requests),
            self.tags.into(),
        )
    }
}
