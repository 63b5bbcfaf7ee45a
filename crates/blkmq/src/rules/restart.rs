//! What runs a hardware queue again that could not issue all its requests: v4.11 to v6.12.
//!
//! Kernel: block/blk-mq-sched.c, blk_mq_dispatch_rq_list() of the versions named. Changes from one
//! to the next: docs/internals/verification.md.

/// The axes of restarting, each of its own; kernels changed several at once.
///
/// Deviation(D15): nothing else of v4.11 to v4.19 is here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Restart {
    /// Name of the preset, for reports.
    pub name: &'static str,
    /// Whom the end of a request runs, if several queues share its tags.
    pub rule: RestartRule,
    /// Whether a run that found leftovers goes on to the scheduler.
    pub ask: AskAfter,
    /// When a run that put requests back asks for another one.
    pub recheck: Recheck,
    /// How an hctx waits for a driver tag of a set that others use, too.
    pub wait: TagWait,
    /// Whether an hctx that is woken there is run.
    pub woken: WokenRun,
    /// When the entry leaves the wait queue by itself.
    pub entry: WaitEntry,
    /// Whether the second attempt to get a tag happens under the wait queue's lock.
    pub retry: WaitRetry,
    /// What runs an hctx whose driver refused a request for lack of a resource, if the end of
    /// another one would as well.
    pub after_refusal: AfterRefusal,
    pub put_back: PutBack,
    /// How many requests a pass takes out of the scheduler.
    pub pull: Pull,
    /// Which hctxs a run of all runs.
    pub run_all: RunAll,
    /// What becomes of kblockd's item when it is asked for while it waits.
    pub waiting_item: WaitingItem,
}

/// Whom the end of a request runs, if several queues share its tags; with tags of its own a queue
/// always has [`RestartRule::Own`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RestartRule {
    /// R0, 50e1dab86aa2 (v4.11-rc): all marked hctxs of the queue, if its flag is set.
    SameQueue,
    /// R1, 6d8c6c0f97ad (v4.11): one marked hctx with work of the tag map, in turn.
    RoundRobin,
    /// R2, 8e8320c9315c (v4.12 to v4.18): the same, if the queue of the request counts a mark.
    QueueCount,
    /// R2', posted in October 2017: the same, if the tag map counts a mark.
    MapCount,
    /// R3, 358a3a6bccb7, and R4, 97889f9ac24f (v4.19 and later): its own hctx.
    Own,
    /// No kernel: all marked hctxs of the set.
    WholeSet,
}

impl RestartRule {
    /// Names in scenarios and specifications.
    pub const NAMES: [(&'static str, RestartRule); 6] = [
        ("R0", RestartRule::SameQueue),
        ("R1", RestartRule::RoundRobin),
        ("R2", RestartRule::QueueCount),
        ("R2p", RestartRule::MapCount),
        ("R4", RestartRule::Own),
        ("all", RestartRule::WholeSet),
    ];

    /// The rule of this name; R3 and R4 are one.
    pub fn by_name(name: &str) -> Option<RestartRule> {
        let name = if name == "R3" { "R4" } else { name };
        let mut names = RestartRule::NAMES.into_iter();
        names
            .find(|(known, _)| *known == name)
            .map(|(_, rule)| rule)
    }

    /// The end of a request goes over hctxs and asks each for its map of tags.
    pub const fn walks(self) -> bool {
        !matches!(self, RestartRule::Own | RestartRule::SameQueue)
    }

    /// Marks are counted, or flagged, besides the bit of the hctx.
    pub const fn counts(self) -> bool {
        matches!(
            self,
            RestartRule::SameQueue | RestartRule::QueueCount | RestartRule::MapCount
        )
    }
}

/// Whether a run that found leftovers asks the scheduler after them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AskAfter {
    /// Never (50e1dab86aa2).
    Never,
    /// If none could be issued (v4.11 to v4.14).
    NoneIssued,
    /// If one was issued (v4.15 to v4.18).
    SomeIssued,
    /// If none is left (v4.19 and later).
    NoneLeft,
}

/// When a run that put requests back asks for another one at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recheck {
    /// SCHED_RESTART is clear and the hctx is in no wait queue (v4.11 to v4.14).
    Unpromised,
    /// SCHED_RESTART is clear, or there was no tag and the hctx is in no wait queue (v4.15).
    LeftWaitQueue,
}

/// How an hctx waits for a driver tag of a set that others use, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TagWait {
    /// Not at all: SCHED_RESTART must do (50e1dab86aa2).
    Nowhere,
    /// In a wait queue, one is woken for a batch of tags. No kernel: entries are not exclusive.
    WakeOne,
    /// In a wait queue, of which all are woken (da55f2cc7841, v4.11 and later).
    WakeAll,
}

/// What a wake-up does for an hctx that waited, for a tag or for a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WokenRun {
    /// kblockd runs it, and finds out whether there is anything to do (to v4.14).
    Always,
    /// blk_mq_run_hw_queue() looks first: something has to be pending (79f720a751ca, v4.15), the
    /// queue not quiesced (24f5a90f0d13, v4.16).
    IfNeeded,
}

/// When an entry of the wait queue is taken out by its own hctx.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitEntry {
    /// Never: it waits to be woken (v4.11 to v4.14).
    Kept,
    /// When the second attempt gets a tag (v4.15 and later).
    SecondAttempt,
    /// When any attempt does. No kernel does so for driver tags; kyber does for its tokens.
    AnyAttempt,
}

/// The second attempt to get a tag, with the entry in the wait queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitRetry {
    /// After the wait queue's lock is released (before v4.19).
    Unlocked,
    /// Under it (5815839b3ca1, v4.19 and later).
    UnderLock,
}

/// What runs an hctx after BLK_STS_RESOURCE, or BLK_MQ_RQ_QUEUE_BUSY.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AfterRefusal {
    /// kblockd, at once (to v4.10).
    AtOnce,
    /// The end of another request, or the driver (v4.11 to v4.15).
    Driver,
    /// kblockd, after 3 ms, beside the end of another request (86ff7c2a80cd, v4.16).
    Delay,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PutBack {
    /// To the head of the dispatch list.
    Head,
    /// To its tail (01e99aeca397, v5.6 and later).
    Tail,
}

/// What a pass over the scheduler takes before it offers it to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pull {
    /// One request, whose driver tag is taken when it is offered.
    One,
    /// As many as the hctx's state allows, each with a driver tag (6e6fcbc27e77, v5.9 and later),
    /// and none once something landed on the dispatch list (28d65729b050, v5.8).
    Batch,
}

/// Which hctxs blk_mq_run_hw_queues() runs, where the scheduler orders the whole queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunAll {
    /// Every one (before v5.12).
    Every,
    /// That of the calling CPU, if it is not stopped, and those with leftovers (b6e68ee82585, v5.12
    /// and later).
    OfThisCpu,
}

/// kblockd's item of an hctx, or of requeues, that is asked for while it waits, for its time or for
/// its worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitingItem {
    /// It comes where and when it would have come (queue_delayed_work_on(): 21c6e939a9f6, v4.12,
    /// says so of runs; to v4.14).
    Stays,
    /// It is cancelled, and queued again with the new delay (mod_delayed_work_on(); in v4.19 and
    /// later, the first version with it was not found).
    Stolen,
}

impl WaitingItem {
    /// One that waits, for its time or for its worker, is left as it is.
    pub const fn stays(self) -> bool {
        matches!(self, WaitingItem::Stays)
    }
}

impl Restart {
    /// v4.5: nothing is marked, and what is left is run again at once. The rest is that of v4.14,
    /// and does not matter to a queue without scheduler.
    pub const V4_5: Restart = Restart {
        name: "v4.5",
        rule: RestartRule::Own,
        after_refusal: AfterRefusal::AtOnce,
        ..Restart::V4_14
    };

    /// v4.12 with drivers that run a queue again that they refused.
    pub const V4_12: Restart = Restart {
        name: "v4.12",
        after_refusal: AfterRefusal::Driver,
        ..Restart::V4_14
    };

    /// v4.11.
    pub const V4_11: Restart = Restart {
        name: "v4.11",
        rule: RestartRule::RoundRobin,
        ..Restart::V4_14
    };

    /// v4.12 to v4.14.
    pub const V4_14: Restart = Restart {
        name: "v4.14",
        rule: RestartRule::QueueCount,
        ask: AskAfter::NoneIssued,
        recheck: Recheck::Unpromised,
        wait: TagWait::WakeAll,
        woken: WokenRun::Always,
        entry: WaitEntry::Kept,
        retry: WaitRetry::Unlocked,
        after_refusal: AfterRefusal::Delay,
        put_back: PutBack::Head,
        pull: Pull::One,
        run_all: RunAll::Every,
        waiting_item: WaitingItem::Stays,
    };

    /// v4.12 to v4.14 with the fix posted in October 2017: the counter moves to the tag map.
    pub const V4_14_MAP_COUNT: Restart = Restart {
        name: "v4.14-map-count",
        rule: RestartRule::MapCount,
        ..Restart::V4_14
    };

    /// v4.15 to v4.18.
    pub const V4_15: Restart = Restart {
        name: "v4.15",
        ask: AskAfter::SomeIssued,
        recheck: Recheck::LeftWaitQueue,
        woken: WokenRun::IfNeeded,
        entry: WaitEntry::SecondAttempt,
        waiting_item: WaitingItem::Stolen,
        ..Restart::V4_14
    };

    /// v4.19.
    pub const V4_19: Restart = Restart {
        name: "v4.19",
        rule: RestartRule::Own,
        ask: AskAfter::NoneLeft,
        retry: WaitRetry::UnderLock,
        ..Restart::V4_15
    };

    /// v5.9 to v5.11.
    pub const V5_9: Restart = Restart {
        name: "v5.9",
        put_back: PutBack::Tail,
        pull: Pull::Batch,
        ..Restart::V4_19
    };

    /// v5.12 and later, read in 6.1.192 and 6.12.117.
    pub const V5_12: Restart = Restart {
        name: "v5.12",
        run_all: RunAll::OfThisCpu,
        ..Restart::V5_9
    };

    /// All presets, oldest first.
    pub const PRESETS: [Restart; 7] = [
        Restart::V4_11,
        Restart::V4_14,
        Restart::V4_14_MAP_COUNT,
        Restart::V4_15,
        Restart::V4_19,
        Restart::V5_9,
        Restart::V5_12,
    ];

    /// The preset of this name.
    pub fn by_name(name: &str) -> Option<Restart> {
        Restart::PRESETS
            .into_iter()
            .find(|preset| preset.name == name)
    }
}
