//! Settings and configuration of a queue.

use core::ops::Range;

use super::mapped::MappedConfig;
use super::single::SingleSettings;
use crate::elevator::{SchedulerKind, SchedulerSettings, Submitters};
use crate::request::QueueId;
use crate::rules::{NoMerges, QueueLimits, Rules, RunAll};
use crate::tags::{CpuTopology, TagSetConfig};
use crate::time::Jiffies;

/// Most access ranges of a drive that a scheduler distinguishes (BFQ_MAX_ACTUATORS, v6.12).
pub const ACCESS_RANGES_MAX: usize = 8;

/// Constant while a queue runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueueSettings {
    pub rules: Rules,
    pub limits: QueueLimits,
    pub scheduler: SchedulerKind,
    /// queue/nr_requests: scheduler tags of each hctx, or the driver's depth without scheduler; of
    /// a single-queue one requests of each kind.
    pub nr_requests: u32,
    /// Its first value, for which tag maps were created; resized when it was written.
    pub nr_requests_first: u32,
    /// queue/nomerges.
    pub nomerges: NoMerges,
    /// queue/rq_affinity: 0, 1 (SAME_COMP) or 2 (SAME_FORCE too).
    pub rq_affinity: u8,
    /// Ticks a second.
    pub hz: u32,
    /// queue/io_timeout, in ticks.
    pub io_timeout: Jiffies,
    /// The driver has queue_rqs: it takes a whole plug.
    pub driver_queue_rqs: bool,
    /// The driver has commit_rqs.
    pub driver_commit_rqs: bool,
    /// The driver has get_budget.
    pub driver_budget: bool,
    /// queue_rq may sleep (BLK_MQ_F_BLOCKING).
    pub blocking: bool,
    /// BLK_MQ_F_SHOULD_MERGE.
    pub should_merge: bool,
    /// A submission that inserts a request runs the hctx itself. No kernel does:
    /// blk_mq_submit_bio() leaves that run to kblockd. Measurements with a patched kernel need it.
    pub inline_runs: bool,
    /// Slots of the pool for each map of identifying tags.
    pub slots_per_map: u32,
    /// queue/rotational.
    pub rotational: bool,
    /// The same when the scheduler was selected: some read it only then.
    pub rotational_when_chosen: bool,
    /// Sectors that each arm of the drive reaches (queue/independent_access_ranges); none: one for
    /// all.
    pub access_ranges: Vec<Range<u64>>,
    /// The submitters, as schedulers see them.
    pub submitters: Submitters,
    /// The messages of schedulers in blktrace are recorded.
    pub log: bool,
    /// A queue of the single-queue kind; none: of blk-mq.
    pub single: Option<SingleSettings>,
}

impl QueueSettings {
    /// A queue for checkers: 250 ticks a second, rq_affinity 1, no request merged, a driver without
    /// any operation but queue_rq.
    pub fn plain(rules: Rules, scheduler: SchedulerKind, nr_requests: u32) -> QueueSettings {
        QueueSettings {
            rules,
            limits: QueueLimits::PLAIN,
            scheduler,
            nr_requests,
            nr_requests_first: nr_requests,
            nomerges: NoMerges::Never,
            rq_affinity: 1,
            hz: 250,
            io_timeout: Jiffies(30 * 250),
            driver_queue_rqs: false,
            driver_commit_rqs: false,
            driver_budget: false,
            blocking: false,
            should_merge: false,
            inline_runs: false,
            slots_per_map: nr_requests,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            submitters: Submitters::default(),
            log: false,
            single: None,
        }
    }

    /// The scheduler orders the whole queue, whichever hctx runs (BLK_MQ_F/QUEUE_FLAG SQ_SCHED).
    pub fn sq_sched(&self) -> bool {
        self.scheduler.info().is_some_and(|info| info.single_queue)
    }

    /// A run of all hctxs is one of this CPU's, besides those with leftovers
    /// (blk_mq_get_sq_hctx()).
    pub(crate) fn runs_one_for_all(&self) -> bool {
        self.rules.restart.run_all == RunAll::OfThisCpu && self.sq_sched()
    }
}

/// The configuration of a queue on its own tag set.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    pub settings: QueueSettings,
    pub tags: TagSetConfig,
    pub topology: CpuTopology,
    /// The scheduler, which is that of the settings.
    pub elevator: SchedulerSettings,
    /// Schedulers that may be written to queue/scheduler while it runs, usually none: capacity is
    /// allocated for each of them.
    pub further: Vec<SchedulerSettings>,
    /// Bios that can be alive; of 0 the queue has no room for requests either.
    pub bios: usize,
    /// The targets of its requests, if they are mapped.
    pub mapped: Option<MappedConfig>,
    /// The mapped queue of which it is a path.
    pub above: Option<Above>,
}

impl QueueConfig {
    /// A queue on so many CPUs, apart from each other: the scheduler with its defaults, room for
    /// eight bios, no device above or below.
    pub fn plain(settings: QueueSettings, tags: TagSetConfig, cpus: u16) -> QueueConfig {
        QueueConfig {
            tags,
            topology: CpuTopology::flat(cpus),
            elevator: settings
                .scheduler
                .defaults(settings.hz, settings.nr_requests),
            further: Vec::new(),
            bios: 8,
            mapped: None,
            above: None,
            settings,
        }
    }
}

/// The clones of the mapped queue above the queue of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Above {
    /// Clones of requests of this queue.
    Requests(QueueId),
    /// Clones of bios of this queue (queue_mode bio).
    Bios(QueueId),
}
