//! The explored configuration: a small machine, and the choices left open.
//!
//! Not here: the steps (`world.rs`). Sizes are meant to be tiny; the table in
//! `tests/explorer/exhaustive.rs` shows what they cost.

mod mapped;

pub use mapped::Paths;

use blkmq::elevator::{Custom, SchedulerKind, SchedulerSettings, Submitter, Submitters};
use blkmq::env::Cpu;
use blkmq::path::ThenUnplug;
use blkmq::queue::{
    BlkMq, EndRuns, QueueConfig, QueueSettings, SingleSettings, UNPLUG_TIMER, nr_requests_for,
};
use blkmq::request::{CpuId, HctxId, IoClass, IoPrio, Op, QueueId};
use blkmq::rules::{BioPlug, NoMerges, QueueLimits, Rules};
use blkmq::sbitmap::Sbitmap;
use blkmq::tags::{CpuTopology, HctxCounts, TagSetConfig};

/// Ticks a second; no tick passes while exploring.
const HZ: u32 = 250;

/// Queues of one tag set, their device, and the tasks that use them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub name: String,
    pub rules: Rules,
    /// queue/scheduler.
    pub scheduler: SchedulerKind,
    /// The scheduler itself, if it is one that the program brings (`Custom`).
    pub own: Option<Custom>,
    /// Values that another task writes to queue/scheduler of each queue, in order, at any time.
    pub changes: Vec<SchedulerKind>,
    /// CPUs; tasks and the other contexts are spread over them.
    pub cpus: u16,
    /// Queues on the tag set, all alike.
    pub queues: u8,
    /// If set, the one queue is a mapped one over these.
    pub paths: Option<Paths>,
    /// Hardware queues of each queue, at most one per CPU.
    pub hctxs: u16,
    /// Driver tags of each hctx.
    pub tags: u32,
    /// All hctxs draw from one map of driver tags, and one of scheduler tags.
    pub shared_tags: bool,
    /// Scheduler tags of each hctx; without a scheduler its driver tags.
    pub nr_requests: u32,
    /// queue/nomerges. Default none: bios that do not touch cannot be merged.
    pub nomerges: NoMerges,
    pub tasks: Vec<Task>,
    /// So many of the first tasks have submitted all their bios, in order, before the exploration
    /// begins.
    pub prefilled: usize,
    /// So many of the prefilled tasks have ended, too: their queues are users of the tags that hold
    /// none.
    pub ended: usize,
    /// Queues, one bit each, whose timeout timer may run as soon as it is armed: a queue with
    /// nothing in flight then stops being a user of the tags.
    pub timeouts: u8,
    /// Tasks start in order; if all are alike, no behaviour is lost.
    pub in_order: bool,
    /// Work items of kblockd run one after another, as on one CPU whose worker does not sleep;
    /// otherwise in any order.
    pub one_worker: bool,
    /// Contexts that end requests; each takes any request that the device has.
    pub completers: u8,
    /// Requests that the device takes at once; a further one is refused with `when_full`.
    pub device_limit: u32,
    /// The answer of a full device; BLK_STS_DEV_RESOURCE only where `promises` allows it.
    pub when_full: Refusal,
    /// How often the device may refuse though it is not full: BLK_STS_RESOURCE always,
    /// BLK_STS_DEV_RESOURCE where `promises` allows it.
    pub refusals: u8,
    /// The event that unplugs a single-queue one after a bio. Default: only the timer.
    pub then: ThenUnplug,
    /// How often the driver may give a request back and answer BLK_STS_OK.
    pub requeues: u8,
    /// When the driver answers BLK_STS_DEV_RESOURCE, which promises another run.
    pub promises: Promises,
    /// When the driver stops the hctx; the end of a request starts it again and runs it.
    pub stops: Stops,
    /// Requests that hold a budget at once (scsi: device queue depth). A run that gets no budget is
    /// repeated when one comes back.
    pub budgets: Option<u32>,
    /// The device refuses everything else until it has taken a passthrough request.
    pub needs_passthrough: bool,
    /// Requests that the device may take while a passthrough request is on the dispatch list.
    pub overtakes_max: Option<u8>,
    /// From every state there must be a way to one where all bios have ended.
    pub must_end: bool,
    /// A woken task continues wherever the scheduler likes, not only where it slept.
    pub migrates: bool,
    /// Only tags are explored: a request that has its tag is with the device, and no path calls
    /// another one. With runs of the queue the state spaces are a hundred times as large.
    pub tags_alone: bool,
    /// Wait queues of a tag map, 1 to 8 (`SBQ_WAIT_QUEUES`).
    pub wait_queues: usize,
    /// Tags freed per wake-up. `None`: as the kernel computes it for so many wait queues.
    pub wake_batch: Option<u32>,
    /// At the beginning all driver tags are in the `cleared` words: given back, not yet merged
    /// back.
    pub freed: bool,
    /// So many tasks sleep for a tag at the beginning; each batch of frees must wake one of them,
    /// and woken tasks stay on their CPU. 0: the check is off.
    pub sleepers: u32,
    /// The 3 ms runs exist and may happen at any time. Without them a stall cannot be a delay.
    pub delayed_runs: bool,
    /// The most tokens of each kind that the scheduler has; `None`: as many as it sets.
    pub tokens: Option<u32>,
    /// Every label is a step of its own, also one that touches nothing shared.
    pub every_label: bool,
    /// A defect that the exploration must find.
    pub mutant: Option<Mutant>,
    /// Distinct states after which the exploration gives up.
    pub states_max: usize,
}

/// A task that submits its bios in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    pub cpu: u16,
    /// The queue that the task submits to.
    pub queue: QueueId,
    pub bios: u32,
    /// So many bios go through one plug, which is then flushed; 0: no plug.
    pub plugged: u32,
    pub op: Op,
    /// Each bio is a FUA write with a preflush.
    pub flush: bool,
    /// Each bio is a passthrough request, inserted at the head.
    pub passthrough: bool,
    /// The I/O priority, for schedulers that look at processes.
    pub ioprio: IoPrio,
}

impl Task {
    pub const fn read(cpu: u16) -> Task {
        Task {
            cpu,
            queue: QueueId(0),
            bios: 1,
            plugged: 0,
            op: Op::Read,
            flush: false,
            passthrough: false,
            ioprio: IoPrio {
                class: IoClass::None,
                level: 0,
            },
        }
    }
}

/// How a full device refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    Resource,
    DevResource,
}

/// When a driver stops an hctx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stops {
    Never,
    /// When the device is full with the request that it takes.
    WhenFilled,
    /// When it refuses a request, with BLK_STS_DEV_RESOURCE.
    WhenRefusing,
}

/// The condition on which a driver answers BLK_STS_DEV_RESOURCE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promises {
    /// A request of the same hctx is in flight: its end finds SCHED_RESTART.
    SameHctx,
    /// Any request is in flight; when one ends the driver runs the hctx that it refused. Wrong:
    /// the end may come before the refused request is put back (SCSI before v5.10, 673235f91531).
    AnyHctx,
}

/// A defect in the machine around the paths; each must be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// SCHED_RESTART is set again together with the put-back, too late for a completion.
    LateMark,
    /// The run that the re-check after the put-back asks for does not happen.
    NoRecheck,
    /// A completion clears SCHED_RESTART but runs nothing; a single-queue completion runs nothing.
    NoRestartRun,
    /// A task that waits for a tag or a request is not woken.
    NoWake,
    /// A waker does not see that a wait queue for tags has entries.
    UnseenLine,
    /// The wait entry of a task that waits for a tag is lost.
    ForgottenEntry,
    /// The wait entry of an hctx that waits for a tag of a shared map is lost.
    ForgottenLine,
    /// A driver tag that is put stays taken.
    LeakedTag,
    /// The device completes a request twice.
    CompletedTwice,
    /// A change of the scheduler does not wait for the users of the queue, or a suspension for what
    /// is in flight.
    NoDrain,
    /// A change of the scheduler or a suspension does not keep runs of hardware queues away.
    NoQuiesce,
    /// A change of the scheduler or a suspension does not wait for runs that are under way.
    NoGrace,
    /// A change of the scheduler does not wake tasks that wait for the thaw.
    NoThawWake,
    /// A scheduler's token that is put back wakes no hctx that waits for one.
    NoTokenWake,
    /// An hctx that waits for a token does not try again after it was added to the wait queue.
    NoTokenRetry,
    /// The token of a request that ends is not put back.
    LostToken,
    /// A token that was taken can be taken again.
    DoubledToken,
    /// A timer that a scheduler or a plug arms never expires.
    LostTimer,
    /// The queue run that a scheduler's timer or another hook asks for does not happen.
    NoHookRun,
    /// The requeue list of a mapped queue is not kicked.
    NoRequeueKick,
    /// The delayed kick of the requeue list does not happen.
    LostDelay,
    /// The path selector counts a clone that has ended once more.
    CountedTwice,
    /// The tag of a clone stays taken when it is freed.
    LeakedClone,
    /// A clone is freed twice.
    FreedTwice,
    /// A path error counts as an error of the disk: no other path is tried.
    NoFailover,
    /// Held requests stay on their list when a path comes back, when they must fail, or when their
    /// priority group is initialised.
    NoBringBack,
    /// The end of an activation is not reported.
    LostActivation,
    /// A resumed device runs nothing: neither its queue nor the requeue list, either of which would
    /// do.
    NoResumeRun,
    /// The worker of a bio-based device loses the first bio that it takes.
    LostBio,
    /// Bios of a suspended bio-based device are mapped, as if the device were not suspended.
    NotBlocked,
    /// A suspension does not look at the tags: it completes with requests in flight.
    NoTagsLook,
    /// The bio of a write with a postflush is gone after the end of its data's clone.
    EarlyBioEnd,
}

impl Config {
    /// One CPU, one hctx, `tasks` reads, and no limit reached: the settings that others change.
    pub fn new(name: &str, rules: Rules, scheduler: SchedulerKind, tasks: usize) -> Config {
        Config {
            name: name.to_owned(),
            rules,
            scheduler,
            own: None,
            changes: Vec::new(),
            cpus: 1,
            queues: 1,
            paths: None,
            hctxs: 1,
            tags: 1,
            shared_tags: false,
            nr_requests: if scheduler == SchedulerKind::None {
                1
            } else {
                2
            },
            nomerges: NoMerges::Never,
            tasks: vec![Task::read(0); tasks],
            prefilled: 0,
            ended: 0,
            timeouts: 0,
            in_order: true,
            one_worker: false,
            completers: 1,
            device_limit: u32::MAX,
            when_full: Refusal::DevResource,
            refusals: 0,
            then: ThenUnplug::Nobody,
            requeues: 0,
            promises: Promises::SameHctx,
            stops: Stops::Never,
            budgets: None,
            needs_passthrough: false,
            overtakes_max: None,
            must_end: false,
            migrates: false,
            tags_alone: false,
            wait_queues: 8,
            wake_batch: None,
            freed: false,
            sleepers: 0,
            delayed_runs: false,
            tokens: None,
            every_label: false,
            mutant: None,
            states_max: 20_000_000,
        }
    }

    /// One map of `tags` driver tags and tasks that take one each; the first tasks hold all tags.
    /// Two wait queues, one tag freed per wake-up, two contexts that free tags.
    pub fn tags_alone(name: &str, rules: Rules, tags: u32, tasks: usize) -> Config {
        Config {
            tags,
            prefilled: tasks.min(tags as usize),
            completers: 2,
            tags_alone: true,
            wait_queues: 2,
            wake_batch: Some(1),
            ..Config::new(name, rules, SchedulerKind::None, tasks)
        }
    }

    /// The same with a scheduler that the program brings.
    pub fn of_own(name: &str, rules: Rules, own: Custom, tasks: usize) -> Config {
        let scheduler = SchedulerKind::Custom(own.info());
        Config {
            own: Some(own),
            ..Config::new(name, rules, scheduler, tasks)
        }
    }

    /// Schedulers that each queue is changed to.
    fn further(&self) -> Vec<SchedulerSettings> {
        let made = |&kind: &SchedulerKind| match &self.own {
            Some(own) if kind == SchedulerKind::Custom(own.info()) => {
                SchedulerSettings::Custom(own.clone())
            }
            _ => kind.defaults(HZ, nr_requests_for(kind, self.tags)),
        };
        self.changes.iter().map(made).collect()
    }

    /// Timers of each queue: those of its scheduler, and that of the plug.
    pub(crate) fn timers(&self) -> usize {
        self.timer_numbers().count()
    }

    pub(crate) fn timer_numbers(&self) -> impl Iterator<Item = u8> + use<> {
        let own = self.scheduler.info().map_or(0, |info| info.timers.len());
        let unplug = self.rules.single_queue.map(|_| UNPLUG_TIMER);
        (0..own as u8).chain(unplug)
    }

    /// The index of a timer among those of all queues.
    pub(crate) fn timer_place(&self, queue: QueueId, timer: u8) -> usize {
        let place = self.timer_numbers().position(|number| number == timer);
        queue.index() * self.timers() + place.expect("the queue has this timer")
    }

    pub fn bios(&self) -> u32 {
        self.tasks.iter().map(|task| task.bios).sum()
    }

    /// Contexts that may wait for a tag: tasks, then the workers of a bio-based device.
    fn waiters_most(&self) -> usize {
        let bios = self.paths.as_ref().is_some_and(Paths::maps_bios);
        self.tasks.len() + if bios { 16 } else { 0 }
    }

    /// The number of all queues, those of paths included.
    pub(crate) fn all_queues(&self) -> usize {
        let below = self.paths.as_ref().map_or(0, Paths::count);
        usize::from(self.queues) + below
    }

    pub(crate) fn all_hctxs(&self) -> usize {
        self.all_queues() * usize::from(self.hctxs)
    }

    /// The index of an hctx among those of all queues.
    pub(crate) fn place(&self, queue: QueueId, hctx: HctxId) -> usize {
        queue.index() * usize::from(self.hctxs) + usize::from(hctx.0)
    }

    /// The idle block layer of this configuration.
    pub(crate) fn build(&self) -> BlkMq {
        let scheduled = self.scheduler != SchedulerKind::None;
        let nr_requests = if scheduled {
            self.nr_requests
        } else {
            self.tags
        };
        let elevator = match &self.own {
            Some(own) => SchedulerSettings::Custom(own.clone()),
            None => self.scheduler.defaults(HZ, nr_requests),
        };
        let config = QueueConfig {
            settings: self.settings(nr_requests),
            tags: TagSetConfig {
                queue_depth: self.tags,
                counts: HctxCounts {
                    default: self.hctxs,
                    read: 0,
                    poll: 0,
                },
                hctx_shared: self.shared_tags,
                vectors: false,
                waiters: self.tasks.len(),
                tasks: self.waiters_most(),
                wait_queues: self.wait_queues,
            },
            topology: CpuTopology::flat(self.cpus),
            elevator,
            further: self.further(),
            bios: self.bios() as usize,
            mapped: None,
            above: None,
        };
        let sets = match &self.paths {
            None => vec![vec![config; usize::from(self.queues)]],
            Some(paths) => paths.sets(self, config),
        };
        let mut mq = BlkMq::with_sets(&sets, &mut || 0);
        for tokens in mq.queues.iter_mut().flat_map(|queue| &mut queue.tokens) {
            if let Some(depth) = self.tokens {
                tokens.map.reduce(depth);
            }
            // A driver that never gives back a request after it has put data into it needs no such
            // tokens.
            tokens.map.given_twice = false;
        }
        for map in mq.sets.iter_mut().flat_map(|set| &mut set.driver) {
            match self.wake_batch {
                Some(batch) => map.set_wake_batch(batch),
                None => map.batch_queues = self.wait_queues as u32,
            }
            if self.freed {
                give_back_all(map);
            }
        }
        mq
    }

    /// The tasks in the form that schedulers use.
    fn submitters(&self) -> Submitters {
        let nice = IoPrio {
            class: IoClass::BestEffort,
            level: 4,
        };
        let submitter = |(index, task): (usize, &Task)| Submitter {
            pid: index as i32 + 1,
            ioprio: task.ioprio,
            nice,
        };
        let known = self.tasks.iter().enumerate().map(submitter);
        Submitters {
            tasks: [Submitter::default()].into_iter().chain(known).collect(),
            ..Submitters::default()
        }
    }

    fn settings(&self, nr_requests: u32) -> QueueSettings {
        // The configuration says which tasks plug.
        let rules = self.rules.with_bio_plug(BioPlug::Never);
        QueueSettings {
            limits: QueueLimits {
                write_cache: true,
                ..QueueLimits::PLAIN
            },
            nomerges: self.nomerges,
            hz: HZ,
            driver_budget: self.budgets.is_some(),
            submitters: self.submitters(),
            rotational: rules.single_queue.is_some(),
            single: rules.single_queue.map(|_| SingleSettings {
                depth: self.tags,
                end_runs: EndRuns::Always,
            }),
            ..QueueSettings::plain(rules, self.scheduler, nr_requests)
        }
    }
}

/// Frees all tags of a map; the words still need the merge of `cleared`.
fn give_back_all(map: &Sbitmap) {
    let cpu = &mut Cpu::new(CpuId(0));
    for (index, word) in map.words.iter().enumerate() {
        let all = u64::MAX >> (64 - map.bits_of(index));
        for bits in [&word.word, &word.cleared] {
            cpu.begin_label();
            bits.fetch_or(cpu, all);
        }
    }
}
