//! The constants of a configuration, and the block layer that they describe.

use blkmq::elevator::SchedulerKind;
use blkmq::elevator::SchedulerSettings;
use blkmq::elevator::mq_deadline::MqDeadlineSettings;
use blkmq::env::Count;
use blkmq::queue::{BlkMq, QueueSettings};
use blkmq::rules::BucketSignal::{CountAround, CountAtEntry, MarkAfter, MarkBefore};
use blkmq::rules::{
    BioPlug, DispatchGate, EmptyRun, Fix, Insertion, Pull, Rules, Series, SideWork,
};
use blkmq::time::Jiffies;

use crate::spec::constants::{self, Constant, Name};
use crate::spec::{SettingError, queues_of_one_set};

/// The most CPUs that submit.
pub(super) const CPUS_MAX: usize = 4;
/// The most requests of a configuration.
pub(super) const REQUESTS_MAX: usize = 8;

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
    /// A run without a request looks again under queue_lock: a rule of `DispatchLabels` alone.
    pub rechecks: bool,
    /// The property of quiet states that is checked.
    pub judged: Judged,
}

/// The constants of the specification, and the rule or size that each one is; the last one belongs
/// to runs only.
pub(super) const CONSTANTS: &[Constant<Setting>] = &[
    Name("Cpus").number(1, |_| CPUS_MAX as u8, |s| &mut s.cpus),
    Name("PerCpu").number(1, |s| REQUESTS_MAX as u8 / s.cpus, |s| &mut s.per_cpu),
    Name("Insertion").word(&[
        ("lock", |s| s.insertion = Insertion::UnderLock),
        ("poc", |s| s.insertion = Insertion::Buckets(CountAtEntry)),
        ("v1", |s| s.insertion = Insertion::Buckets(CountAround)),
        ("v2", |s| s.insertion = Insertion::Buckets(MarkBefore)),
        ("repaired", |s| s.insertion = Insertion::Buckets(MarkAfter)),
        ("lists", |s| s.insertion = Insertion::SideLists),
    ]),
    Name("Gating").word(&[
        ("none", |s| s.gate = DispatchGate::Open),
        ("inside", |s| s.gate = DispatchGate::OneAtATime),
        ("after", |s| s.gate = DispatchGate::ClearedAfterUnlock),
    ]),
    Name("SeesSide")
        .flag(|s, on| s.side_work = [SideWork::Unseen, SideWork::Seen][usize::from(on)]),
    Name("Reruns").flag(|s, on| s.reruns = on),
    Name("Delayed").flag(|s, on| s.delayed = on),
    Name("Rechecks").flag(|s, on| s.rechecks = on),
];

impl Setting {
    /// The setting of a run under these rules, but for sizes; NoStall is checked.
    pub(crate) fn of_rules(rules: &Rules) -> Setting {
        Setting {
            cpus: 1,
            per_cpu: 1,
            insertion: rules.series.insertion,
            gate: rules.series.dispatch,
            side_work: rules.series.side_work,
            reruns: false,
            delayed: rules.restart.pull == Pull::Batch && rules.fixes.has(Fix::DelayRun),
            rechecks: rules.empty_run == EmptyRun::RecheckUnderQueueLock,
            judged: Judged::Stall,
        }
    }

    /// Reads the constants of a run of the simulator, but for sizes.
    pub(crate) fn of_run(given: &[(String, String)]) -> Result<Setting, SettingError> {
        let setting = constants::read(CONSTANTS, Setting::of_rules(&Rules::v6_12()), given)?;
        match setting.reruns {
            false => Ok(setting),
            // The end of a request runs nothing there.
            true => Err(SettingError::Value {
                name: "Reruns",
                value: "TRUE".to_owned(),
                expected: "FALSE".to_owned(),
            }),
        }
    }

    /// The constants in the form that [`Setting::of_run`] reads.
    pub(crate) fn constants(&self) -> Vec<(String, String)> {
        constants::written(CONSTANTS, self)
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
        let mut mq = queues_of_one_set(
            (1, 1, self.processes()),
            QueueSettings::plain(rules, SchedulerKind::MqDeadline, requests),
            SchedulerSettings::MqDeadline(deadline),
            requests,
        );
        mq.queues[0].hctxs[0].dispatch_busy = Count::new(BUSY);
        mq
    }
}
