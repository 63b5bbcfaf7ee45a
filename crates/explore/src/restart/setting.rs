//! The constants of a configuration, and the block layer that they describe.

use blkmq::elevator::SchedulerKind;
use blkmq::queue::{BlkMq, QueueConfig, QueueSettings};
use blkmq::rules::{
    AfterRefusal, AskAfter, BioPlug, Pull, PutBack, Recheck, Restart, RestartRule, Rules, RunAll,
    TagWait, WaitEntry, WaitRetry, WaitingItem, WokenRun,
};
use blkmq::tags::{CpuTopology, HctxCounts, TagSetConfig};

use crate::spec::{Constants, SettingError, flag, word};

/// The most requests of a configuration.
pub(super) const REQUESTS_MAX: usize = 8;
/// The most hctxs of all queues.
pub(super) const HCTXS_MAX: usize = 8;

/// Ticks a second; no tick passes.
const HZ: u32 = 250;

const CONSTANTS: [&str; 15] = [
    "Requests",
    "Queues",
    "Hctxs",
    "Contexts",
    "Tags",
    "Limit",
    "RestartRule",
    "Policy",
    "WaitRule",
    "EntryRule",
    "Recheck",
    "WokenRun",
    "MarkSplit",
    "DriverReruns",
    "LowestFirst",
];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    pub requests: u8,
    /// Request queues on the tag set.
    pub queues: u8,
    /// Hardware queues of each queue; the k-th ones share tag map k.
    pub hctxs: u8,
    pub contexts: u8,
    /// Driver tags of each map.
    pub tags: u32,
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

const RULES: [(&str, RestartRule); 6] = [
    ("\"R0\"", RestartRule::SameQueue),
    ("\"R1\"", RestartRule::RoundRobin),
    ("\"R2\"", RestartRule::QueueCount),
    ("\"R2p\"", RestartRule::MapCount),
    ("\"R4\"", RestartRule::Own),
    ("\"all\"", RestartRule::WholeSet),
];
const POLICIES: [(&str, AskAfter); 3] = [
    ("\"strict\"", AskAfter::Never),
    ("\"rc4\"", AskAfter::NoneIssued),
    ("\"later\"", AskAfter::SomeIssued),
];
const WAITS: [(&str, TagWait); 3] = [
    ("\"none\"", TagWait::Nowhere),
    ("\"one\"", TagWait::WakeOne),
    ("\"all\"", TagWait::WakeAll),
];
const ENTRIES: [(&str, WaitEntry); 3] = [
    ("\"kept\"", WaitEntry::Kept),
    ("\"second\"", WaitEntry::SecondAttempt),
    ("\"any\"", WaitEntry::AnyAttempt),
];
const RECHECKS: [(&str, Recheck); 2] = [
    ("\"4.14\"", Recheck::Unpromised),
    ("\"4.15\"", Recheck::LeftWaitQueue),
];
const WOKEN: [(&str, WokenRun); 2] = [
    ("\"always\"", WokenRun::Always),
    ("\"needed\"", WokenRun::IfNeeded),
];

/// The restart rule that the constants name.
fn restart(c: &Constants<'_>) -> Result<Restart, SettingError> {
    Ok(Restart {
        name: "specified",
        after_refusal: AfterRefusal::Delay,
        rule: c.choice("RestartRule", &RULES)?,
        ask: c.choice("Policy", &POLICIES)?,
        recheck: c.choice("Recheck", &RECHECKS)?,
        woken: c.choice("WokenRun", &WOKEN)?,
        wait: c.choice("WaitRule", &WAITS)?,
        entry: c.choice("EntryRule", &ENTRIES)?,
        retry: WaitRetry::Unlocked,
        put_back: PutBack::Head,
        run_all: RunAll::Every,
        waiting_item: WaitingItem::Stays,
        pull: Pull::One,
    })
}

impl Setting {
    /// Reads the constants of a configuration or of a schedule.
    pub(super) fn of_constants(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        let c = Constants::among(constants, &CONSTANTS)?;
        let restart = restart(&c)?;
        let queues = c.number("Queues", 1, HCTXS_MAX as u8)?;
        Ok(Setting {
            requests: c.set("Requests", REQUESTS_MAX)?,
            queues,
            hctxs: c.number("Hctxs", 1, HCTXS_MAX as u8 / queues)?,
            contexts: c.number("Contexts", 1, 4)?,
            tags: u32::from(c.number("Tags", 1, 8)?),
            limit: c.number("Limit", 0, 8)?,
            restart,
            mark_split: c.flag("MarkSplit")?,
            driver_reruns: c.flag("DriverReruns")?,
            lowest_first: c.flag("LowestFirst")?,
            symmetry: false,
            judges_end: false,
        })
    }

    /// The constants in the form that [`Setting::of_constants`] reads.
    pub(crate) fn constants(&self) -> Vec<(String, String)> {
        let requests: Vec<String> = (1..=self.requests).map(|r| r.to_string()).collect();
        let restart = &self.restart;
        let values = [
            format!("{{{}}}", requests.join(", ")),
            self.queues.to_string(),
            self.hctxs.to_string(),
            self.contexts.to_string(),
            self.tags.to_string(),
            self.limit.to_string(),
            word(&RULES, &restart.rule),
            word(&POLICIES, &restart.ask),
            word(&WAITS, &restart.wait),
            word(&ENTRIES, &restart.entry),
            word(&RECHECKS, &restart.recheck),
            word(&WOKEN, &restart.woken),
            flag(self.mark_split),
            flag(self.driver_reruns),
            flag(self.lowest_first),
        ];
        let names = CONSTANTS.map(str::to_owned);
        names.into_iter().zip(values).collect()
    }

    pub(super) fn of_file(text: &str) -> Result<Setting, SettingError> {
        let mut setting = Setting::of_constants(&crate::tlc::settings(text))?;
        setting.symmetry = text.lines().any(|line| line.trim().starts_with("SYMMETRY"));
        setting.judges_end = text.split_whitespace().any(|word| word == "NeverAllDone");
        Ok(setting)
    }

    /// The idle block layer: queues of one set, a CPU per hctx, one wait queue per map.
    pub(super) fn build(&self) -> BlkMq {
        // v6.12: a driver tag is taken only for the request that is dispatched next.
        let rules = Rules::v6_12().with_restart(self.restart);
        // The specification inserts without a run of the queue; a worker runs it.
        let rules = rules.with_bio_plug(BioPlug::Never);
        let nr_requests = u32::from(self.requests);
        let scheduler = SchedulerKind::default_for(true);
        let queue = QueueConfig {
            settings: QueueSettings::plain(rules, scheduler, nr_requests),
            tags: TagSetConfig {
                queue_depth: self.tags,
                counts: HctxCounts {
                    default: u16::from(self.hctxs),
                    read: 0,
                    poll: 0,
                },
                hctx_shared: false,
                vectors: false,
                waiters: 0,
                tasks: 0,
                wait_queues: 1,
            },
            topology: CpuTopology::flat(u16::from(self.hctxs)),
            elevator: scheduler.defaults(HZ, nr_requests),
            further: Vec::new(),
            bios: usize::from(self.requests),
            mapped: None,
            above: None,
        };
        let mut mq = BlkMq::with_sets(&[vec![queue; usize::from(self.queues)]], &mut || 0);
        for queue in &mut mq.queues {
            // Tasks never wait for a scheduler tag: every request has one.
            for map in &mut queue.sched {
                map.keep_wait_queues(1);
            }
        }
        mq
    }
}
