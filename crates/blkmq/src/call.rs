//! Calls of other paths, and the arguments of paths.
//!
//! A path that needs another one puts a [`Call`] into the CPU; the driver puts that path on the
//! stack, and it runs to its end first. Only numbers and plain data, since the CPU keeps it:
//! `path/frame.rs` makes the path of a call.

use crate::dm::PathId;
use crate::dm::multipath::{InitResult, Message};
use crate::request::{BioId, CpuId, HctxId, IoContextId, QueueId, RequestId, Status};
use crate::time::Duration;

/// A path to be started. Small, since every layer of a step returns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// blk_mq_run_hw_queue(): [`RunPath`](crate::path::RunPath).
    Run {
        queue: QueueId,
        hctx: HctxId,
        /// kblockd runs it.
        in_background: bool,
    },
    /// blk_mq_run_hw_queues(), blk_mq_delay_run_hw_queues():
    /// [`RunQueuesPath`](crate::path::RunQueuesPath).
    RunQueues { queue: QueueId, how: RunHow },
    /// blk_mq_end_request(): [`CompletePath`](crate::path::CompletePath).
    End {
        queue: QueueId,
        rq: RequestId,
        status: Status,
    },
    /// One request of blk_mq_end_request_batch(), up to its tag, which it keeps:
    /// [`CompletePath`](crate::path::CompletePath).
    EndBatched { queue: QueueId, rq: RequestId },
    /// blk_mq_free_request(): [`CompletePath`](crate::path::CompletePath).
    Free { queue: QueueId, rq: RequestId },
    /// blk_insert_flush(): [`FlushPath`](crate::path::FlushPath).
    Flush { queue: QueueId, rq: RequestId },
    /// blk_mq_insert_request(), blk_mq_request_bypass_insert():
    /// [`InsertPath`](crate::path::InsertPath).
    Insert(Inserts),
    /// __blk_flush_plug() of the running task's plug: [`PlugPath`](crate::path::PlugPath).
    Unplug { queue: QueueId, why: Unplug },
    /// A hook of the queue's scheduler (struct elevator_mq_ops):
    /// [`HookFrame`](crate::path::HookFrame).
    Hook { queue: QueueId, hook: Hook },
    /// kyber_get_domain_token(), for a request that an hctx would dispatch:
    /// [`GetToken`](crate::path::GetToken).
    GetToken {
        queue: QueueId,
        /// The hctx whose entry waits if there is none.
        hctx: HctxId,
        map: u8,
    },
    /// rq_clear_domain_token(): [`PutToken`](crate::path::PutToken).
    PutToken {
        queue: QueueId,
        token: Token,
        /// The CPU on which its request was allocated.
        owner: CpuId,
    },
    /// sbitmap_queue_resize() of the tokens: [`ResizeTokens`](crate::path::ResizeTokens).
    ResizeTokens {
        queue: QueueId,
        map: u8,
        /// The new number of tokens.
        depth: u32,
    },
    /// wait_event() at a wait queue of the queue: [`WaitPath`](crate::path::WaitPath).
    Wait { queue: QueueId, event: Event },
    /// wake_up_all(): [`WakeUpPath`](crate::path::WakeUpPath).
    WakeUp { queue: QueueId, which: WaitQueue },
    /// A call of the target of a mapped queue (struct target_type of dm-mpath):
    /// [`TargetPath`](crate::path::TargetPath).
    Target { queue: QueueId, what: ToTarget },
    /// blk_mq_try_issue_directly(): [`IssuePath`](crate::path::IssuePath).
    Issue { queue: QueueId, rq: RequestId },
    /// blk_mq_alloc_request() of a clone in the queue of a path, without waiting:
    /// [`AllocateClone`](crate::path::AllocateClone).
    AllocateClone { queue: QueueId, above: RequestId },
    /// blk_insert_cloned_request(): [`IssueClone`](crate::path::IssueClone).
    IssueClone {
        queue: QueueId,
        rq: RequestId,
        hctx: HctxId,
    },
    /// blk_mq_requeue_request(), with the list kicked after a delay:
    /// [`RequeueRequest`](crate::path::RequeueRequest).
    GiveBack {
        queue: QueueId,
        rq: RequestId,
        /// Zero: at once.
        after: Duration,
    },
    /// submit_bio() of a clone in the queue of a path: [`SubmitPath`](crate::path::SubmitPath), or
    /// [`SingleSubmit`](crate::path::SingleSubmit) of a single-queue one.
    Submit {
        queue: QueueId,
        bio: BioId,
        /// On a single-queue one: when its plug is removed.
        then: Option<ThenUnplug>,
    },
    /// __map_bio() of a deferred or held bio of a bio-based device:
    /// [`MapBio`](crate::path::MapBio).
    MapBio {
        /// The device's queue.
        queue: QueueId,
        bio: BioId,
        comes: BioFrom,
    },
    /// clone_endio() and dm_io_dec_pending() of a bio of a bio-based device:
    /// [`BioEnd`](crate::path::BioEnd).
    BioEnd {
        /// The device's queue.
        queue: QueueId,
        bio: BioId,
        of: BioEndOf,
    },
    /// __blk_run_queue(), __generic_unplug_device() of a single-queue one:
    /// [`SingleRun`](crate::path::SingleRun).
    SingleRun { queue: QueueId, by: RunBy },
    /// blk_end_request_all(), or its requeue by the driver:
    /// [`SingleEnd`](crate::path::SingleEnd).
    SingleEnd {
        queue: QueueId,
        rq: RequestId,
        how: SingleEndHow,
    },
}

impl Call {
    /// blk_mq_run_hw_queue().
    pub(crate) fn run(queue: QueueId, hctx: HctxId, in_background: bool) -> Call {
        Call::Run {
            queue,
            hctx,
            in_background,
        }
    }
}

/// blk_mq_run_hw_queues() or its delayed form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RunHow {
    /// In the calling context (`async` = false).
    #[default]
    Here,
    /// By kblockd (`async` = true).
    Background,
    /// The same of each hctx, whatever the scheduler (blk_mq_start_stopped_hw_queues()).
    Started,
    /// By kblockd after this time, unless its work item is pending: does not check for work
    /// (blk_mq_delay_run_hw_queues()).
    Later(Duration),
}

/// Action after the insertion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ThenRun {
    /// Nothing: the caller runs the queue.
    #[default]
    No,
    /// blk_mq_run_hw_queue(async = false).
    Here,
    /// blk_mq_run_hw_queue(async = true).
    Background,
}

/// An insertion of one request. Small, since it is part of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inserts {
    pub(crate) queue: QueueId,
    pub(crate) rq: RequestId,
    pub(crate) head: bool,
    pub(crate) bypass: bool,
    pub(crate) run: ThenRun,
}

impl Inserts {
    /// blk_mq_insert_request().
    pub(crate) fn new(queue: QueueId, rq: RequestId, head: bool, run: ThenRun) -> Inserts {
        Inserts {
            queue,
            rq,
            head,
            bypass: false,
            run,
        }
    }

    /// blk_mq_request_bypass_insert(): to the head or tail of the dispatch list.
    pub(crate) fn bypass(queue: QueueId, rq: RequestId, head: bool, run: ThenRun) -> Inserts {
        Inserts {
            bypass: true,
            ..Inserts::new(queue, rq, head, run)
        }
    }

    /// The same to the tail, without a run: for a request that its driver has refused in a run.
    pub fn left_over(queue: QueueId, rq: RequestId) -> Inserts {
        Inserts::bypass(queue, rq, false, ThenRun::No)
    }
}

/// Why a plug is flushed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unplug {
    /// blk_finish_plug().
    Finish,
    /// The task goes to sleep.
    Schedule,
    /// The plug is full: cached requests are kept.
    Full,
}

/// A hook and its argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hook {
    /// All bios of a request have ended (completed_request).
    Completed(RequestId),
    /// Its driver gives a request back (requeue_request).
    Requeued(RequestId),
    /// A request is about to be freed (finish_request).
    Finished(RequestId),
    /// The last task of an I/O context has exited (exit_icq).
    Exits(IoContextId),
    /// The timer of this number has expired.
    Timer(u8),
}

/// Where a path keeps none any more.
impl Default for Hook {
    fn default() -> Hook {
        Hook::Timer(0)
    }
}

/// A token of a scheduler: a bit of one of its maps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Token {
    pub map: u8,
    /// Bit of the map.
    pub number: u32,
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The queue is not frozen.
    Thaw,
    /// The queue has no user.
    LastLeft,
    /// A mapped device counts nothing in flight.
    NothingInFlight,
    /// No path of its target is being activated.
    NothingActivated,
}

/// A wait queue of tasks that a request queue has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitQueue {
    /// mq_freeze_wq: until the queue is not frozen, or has no user.
    Freeze,
    /// md->wait, of a mapped queue.
    InFlight,
    /// m->pg_init_wait, of its target.
    Activation,
}

impl WaitQueue {
    /// In the order of their numbers.
    pub const ALL: [WaitQueue; 3] = [
        WaitQueue::Freeze,
        WaitQueue::InFlight,
        WaitQueue::Activation,
    ];
}

/// A call of the target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ToTarget {
    /// By dmsetup. A suspended device refuses it (EBUSY, here `Answer::Resource`).
    Message(Message),
    /// The work item of a path's activation runs. The answer is whether the device is activated.
    Activate(PathId),
    Activated(PathId, InitResult),
    /// The timer of held requests expires.
    TimerExpires,
    /// A suspension begins.
    Suspend {
        /// Held I/O stays where it is.
        noflush: bool,
    },
    /// Nothing is in flight.
    #[default]
    Suspended,
    /// Allows no more activations of paths. The answer is whether one is in progress.
    StopActivations,
    AllowActivations,
    Resume,
}

impl From<Message> for ToTarget {
    fn from(what: Message) -> ToTarget {
        ToTarget::Message(what)
    }
}

/// Where a bio of a bio-based device comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum BioFrom {
    #[default]
    New,
    /// It waited until the device resumed, or its flush has ended.
    Deferred,
    /// It was held, and the device counts it already.
    Held,
}

/// A bio of a bio-based device that ends, or its clone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum BioEndOf {
    /// bio_endio() of its clone in the queue of a path of the device.
    Clone {
        /// The queue of the path.
        below: QueueId,
        /// The bio in that queue.
        clone: BioId,
        status: Status,
    },
    /// The same of a held bio that gets no path.
    #[default]
    Held,
    /// A bio that the target has not mapped; `Status::Again`: it must not end, if the device is
    /// about to be suspended without flush.
    Unmapped(Status),
}

/// The workers of a bio-based device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BioWork {
    /// process_queued_bios (kmpathd): bios that the target holds.
    Held,
    /// md->work (kdmflush): bios that wait for the device.
    Deferred,
}

impl BioWork {
    pub const ALL: [BioWork; 2] = [BioWork::Held, BioWork::Deferred];
}

/// The event that unplugs the queue after a bio.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ThenUnplug {
    /// Nothing: buffered reads, and writeback.
    #[default]
    Nobody,
    /// The bio itself, under the lock that it is inserted with (BIO_RW_UNPLUG).
    Bio,
    /// Its task, before it waits or returns from its call (blk_run_address_space(), direct I/O).
    Task,
}

/// The caller of the driver's function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RunBy {
    /// blk_unplug_timeout(): does not call it yet.
    Timer,
    /// __blk_run_queue() under a lock that the caller holds.
    Holder,
    /// __generic_unplug_device() under a lock that the caller holds.
    HolderUnplugs,
    /// blk_run_queue(): also the work of kblockd for a scheduler.
    #[default]
    Run,
    /// generic_unplug_device(): kblockd after the timer, or a task.
    Unplug,
}

impl RunBy {
    /// The caller holds the lock, and keeps it.
    pub(crate) fn holds(self) -> bool {
        matches!(self, RunBy::Holder | RunBy::HolderUnplugs)
    }

    /// __blk_run_queue().
    pub(crate) fn runs(self) -> bool {
        matches!(self, RunBy::Holder | RunBy::Run)
    }
}

/// Why a request leaves the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SingleEndHow {
    /// The driver has completed it.
    Completed(Status),
    /// The driver refused it, for good, while its function runs.
    Refused(Status),
    /// The driver requeues it.
    #[default]
    Requeued,
}
