//! The constants of a configuration, and the block layer that they describe.

use blkmq::elevator::SchedulerKind;
use blkmq::elevator::SchedulerSettings;
use blkmq::elevator::mq_deadline::MqDeadlineSettings;
use blkmq::env::Count;
use blkmq::queue::{BlkMq, QueueConfig, QueueSettings};
use blkmq::rules::{BioPlug, BucketSignal, DispatchGate, Fix, Insertion, Rules, Series, SideWork};
use blkmq::tags::{CpuTopology, HctxCounts, TagSetConfig};
use blkmq::time::Jiffies;

use crate::spec::{Constants, SettingError, flag, word};

/// The most CPUs that submit.
pub(super) const CPUS_MAX: usize = 4;
/// The most requests of a configuration.
pub(super) const REQUESTS_MAX: usize = 8;

/// The most CPUs of a run, and the most requests at once.
const RUN_CPUS_MAX: u8 = 64;
const RUN_REQUESTS_MAX: u8 = 192;

/// A constant that only `DispatchLabels` has.
pub(crate) const RECHECKS: &str = "Rechecks";

/// Ticks a second; no tick passes.
const HZ: u32 = 250;

/// The moving average of refusals right after the first one. With it a pass picks one request, as
/// in the specification. It decays once per list; no configuration has enough lists to end it.
const BUSY: i32 = 16;

/// The property that is checked in a state in which nothing runs and nothing will.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Judged {
    /// NoStall: every submitted request is done.
    Stall,
    /// NoneLeft: the same after all submissions.
    Left,
    /// NeverAllDone: to be violated.
    AllDone,
}

const CONSTANTS: [&str; 7] = [
    "Cpus",
    "PerCpu",
    "Insertion",
    "Gating",
    "SeesSide",
    "Reruns",
    "Delayed",
];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// CPUs that submit, each with its own bucket.
    pub cpus: u8,
    /// Requests that each CPU submits, in order.
    pub per_cpu: u8,
    pub insertion: Insertion,
    pub gate: DispatchGate,
    /// Lists that has_work checks besides the scheduler.
    pub side_work: SideWork,
    /// The driver runs the queue after each completion, as SCSI does.
    pub reruns: bool,
    /// A run without a request arms a delayed run.
    pub delayed: bool,
    /// The property of quiet states that is checked.
    pub judged: Judged,
}

const INSERTIONS: [(&str, Insertion); 6] = [
    ("\"lock\"", Insertion::UnderLock),
    ("\"poc\"", Insertion::Buckets(BucketSignal::CountAtEntry)),
    ("\"v1\"", Insertion::Buckets(BucketSignal::CountAround)),
    ("\"v2\"", Insertion::Buckets(BucketSignal::MarkBefore)),
    ("\"repaired\"", Insertion::Buckets(BucketSignal::MarkAfter)),
    ("\"lists\"", Insertion::SideLists),
];
const GATES: [(&str, DispatchGate); 3] = [
    ("\"none\"", DispatchGate::Open),
    ("\"inside\"", DispatchGate::OneAtATime),
    ("\"after\"", DispatchGate::ClearedAfterUnlock),
];

impl Setting {
    /// Reads the constants of a configuration or of a schedule; NoStall is checked.
    pub(super) fn of_constants(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        let c = Constants::among(constants, &CONSTANTS)?;
        Setting::sized(&c, CPUS_MAX as u8, REQUESTS_MAX as u8)
    }

    /// Checks the constants of a run of the simulator, which may be larger than an explored
    /// configuration.
    pub(crate) fn check_run(constants: &[(String, String)]) -> Result<(), SettingError> {
        let mut names = CONSTANTS.to_vec();
        names.push(RECHECKS);
        let constants = Constants::among(constants, &names)?;
        // In runs of the simulator the end of a request runs nothing.
        constants.choice("Reruns", &[("FALSE", ())])?;
        constants.flag(RECHECKS)?;
        Setting::sized(&constants, RUN_CPUS_MAX, RUN_REQUESTS_MAX)?;
        Ok(())
    }

    /// The setting, with at most so many CPUs and requests.
    fn sized(c: &Constants<'_>, cpus_max: u8, requests_max: u8) -> Result<Setting, SettingError> {
        let cpus = c.number("Cpus", 1, cpus_max)?;
        Ok(Setting {
            cpus,
            per_cpu: c.number("PerCpu", 1, requests_max / cpus)?,
            insertion: c.choice("Insertion", &INSERTIONS)?,
            gate: c.choice("Gating", &GATES)?,
            side_work: match c.flag("SeesSide")? {
                true => SideWork::Seen,
                false => SideWork::Unseen,
            },
            reruns: c.flag("Reruns")?,
            delayed: c.flag("Delayed")?,
            judged: Judged::Stall,
        })
    }

    /// The constants in the form that [`Setting::of_constants`] reads.
    pub(crate) fn constants(&self) -> Vec<(String, String)> {
        let values = [
            self.cpus.to_string(),
            self.per_cpu.to_string(),
            word(&INSERTIONS, &self.insertion),
            word(&GATES, &self.gate),
            flag(self.side_work == SideWork::Seen),
            flag(self.reruns),
            flag(self.delayed),
        ];
        let names = CONSTANTS.map(str::to_owned);
        names.into_iter().zip(values).collect()
    }

    pub(super) fn of_file(text: &str) -> Result<Setting, SettingError> {
        let mut constants = crate::tlc::settings(text);
        constants.retain(|(name, _)| name != RECHECKS);
        let mut setting = Setting::of_constants(&constants)?;
        let has = |name: &str| text.split_whitespace().any(|word| word == name);
        if has("NoneLeft") {
            setting.judged = Judged::Left;
        } else if has("NeverAllDone") {
            setting.judged = Judged::AllDone;
        }
        Ok(setting)
    }

    pub(super) fn requests(&self) -> u8 {
        self.cpus * self.per_cpu
    }

    /// The process that ends requests; it follows the CPUs that submit.
    pub(super) fn completer(&self) -> u8 {
        self.cpus
    }

    pub(super) fn kblockd(&self) -> u8 {
        self.cpus + 1
    }

    pub(super) fn processes(&self) -> u8 {
        self.cpus + 2
    }

    /// The idle block layer: one hctx, a CPU per process, tags for all requests.
    pub(super) fn build(&self) -> BlkMq {
        let series = Series {
            name: "specified",
            dispatch: self.gate,
            insertion: self.insertion,
            side_work: self.side_work,
            buckets: u16::from(self.cpus),
            ..Series::STOCK
        };
        let rules = Rules::v6_12().with_bio_plug(BioPlug::Never);
        let mut rules = rules.with_series(series);
        if !self.delayed {
            rules = rules.without(Fix::DelayRun);
        }
        let requests = u32::from(self.requests());
        let mut deadline = MqDeadlineSettings::defaults(HZ, requests);
        // FIFO order, as in the one list of the specification.
        deadline.read_expire = Jiffies(0);
        deadline.fifo_batch = 0;
        let mut mq = BlkMq::new(
            &QueueConfig {
                settings: QueueSettings::plain(rules, SchedulerKind::MqDeadline, requests),
                tags: TagSetConfig {
                    queue_depth: requests,
                    counts: HctxCounts {
                        default: 1,
                        read: 0,
                        poll: 0,
                    },
                    hctx_shared: false,
                    vectors: false,
                    waiters: 0,
                    tasks: 0,
                    wait_queues: 1,
                },
                topology: CpuTopology::flat(u16::from(self.processes())),
                elevator: SchedulerSettings::MqDeadline(deadline),
                further: Vec::new(),
                bios: requests as usize,
                mapped: None,
                above: None,
            },
            &mut || 0,
        );
        let queue = &mut mq.queues[0];
        queue.hctxs[0].dispatch_busy = Count::new(BUSY);
        for map in &mut queue.sched {
            // No task waits for a scheduler tag: every request has one.
            map.keep_wait_queues(1);
        }
        mq
    }
}
