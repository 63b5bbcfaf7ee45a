//! What runs a hardware queue again that could not issue all its requests: v4.11 to v6.12.
//!
//! Kernel: block/blk-mq-sched.c, blk_mq_dispatch_rq_list() of the versions named. Changes from one
//! to the next: docs/internals/verification.md.

crate::axes! {
    /// The axes of restarting, each of its own; kernels changed several at once.
    ///
    /// Deviation(D15): nothing else of v4.11 to v4.19 is here.
    pub struct Restart(name), const {
        /// Nothing is marked, and what is left is run again at once. The rest is that of v4.14, and
        /// of schedulers.
        V4_5 "v4.5" = V4_14,
        V4_11 "v4.11" = V4_14,
        /// v4.12 with drivers that run a queue again that they refused.
        V4_12 "v4.12" = V4_14,
        /// v4.12 to v4.14.
        V4_14 "v4.14",
        /// The same with the fix posted in October 2017: the counter moves to the tag map.
        V4_14_MAP_COUNT "v4.14-map-count" = V4_14,
        /// v4.15 to v4.18.
        V4_15 "v4.15" = V4_14,
        V4_19 "v4.19" = V4_15,
        /// v5.9 to v5.11.
        V5_9 "v5.9" = V4_19,
        /// v5.12 and later, read in 6.1.192 and 6.12.117.
        V5_12 "v5.12" = V5_9,
    }

    /// The hctxs that the end of a request runs, if several queues share its tags
    /// (blk_mq_sched_restart()); a queue with tags of its own always has [`RestartRule::Own`].
    rule: RestartRule {
        - => SameQueue "R0"
            /// All marked hctxs of the queue, if its flag is set (50e1dab86aa2, v4.11-rc).
        V4_11 => RoundRobin "R1"
            /// One marked hctx of the tag map that has work, in turn (6d8c6c0f97ad).
        V4_14 => QueueCount "R2"
            /// The same, if the queue of the request counts a mark (8e8320c9315c).
        V4_14_MAP_COUNT => MapCount "R2p" /// The same, if the tag map counts a mark.
        V4_5 | V4_19 => Own "R4" | "R3" /// Its own hctx (358a3a6bccb7, 97889f9ac24f).
        - => WholeSet "all" /// No kernel: all marked hctxs of the set.
    }
    /// Whether a run that found leftovers asks the scheduler after them
    /// (blk_mq_sched_dispatch_requests()).
    ask: AskAfter {
        - => Never /// Never (50e1dab86aa2).
        V4_14 => NoneIssued /// If none could be issued.
        V4_15 => SomeIssued /// If one was issued.
        V4_19 => NoneLeft /// If none is left.
    }
    /// What a run takes from the software queues of a queue without scheduler
    /// (blk_mq_sched_dispatch_requests()).
    software_queues: SoftwareQueues {
        V4_5 => WithDispatchList
            /// All of them at once, in one list after the dispatch list, without SCHED_RESTART
            /// (__blk_mq_run_hw_queue(), to v4.10).
        V4_12 => UnlessLeftovers
            /// All of them at once, if the dispatch list was empty (v4.11 to v4.14).
        V4_14 => OneByOneIfBusy
            /// All of them at once, or request by request if there were leftovers or the hctx has
            /// been busy (dispatch_busy, 6e768717304b, v4.19).
    }
    /// A run that put requests back asks for another run at once if SCHED_RESTART is clear and the
    /// hctx is in no wait queue; or if SCHED_RESTART is clear, or there was no tag and the hctx is
    /// in no wait queue (blk_mq_dispatch_rq_list()).
    recheck: Recheck { V4_14 => Unpromised, V4_15 => LeftWaitQueue }
    /// How an hctx waits for a driver tag of a set that others use, too (blk_mq_mark_tag_wait()).
    wait: TagWait {
        - => Nowhere /// Not at all: SCHED_RESTART must do (50e1dab86aa2).
        - => WakeOne
            /// In a wait queue, one is woken for a batch of tags. No kernel: entries are not
            /// exclusive.
        V4_14 => WakeAll /// In a wait queue, of which all are woken (da55f2cc7841, v4.11).
    }
    /// Whether an hctx that waited for a tag or a token is run when it is woken
    /// (blk_mq_dispatch_wake()).
    woken: WokenRun {
        V4_14 => Always /// kblockd runs it, and finds out whether there is anything to do.
        V4_15 => IfNeeded
            /// blk_mq_run_hw_queue() looks first: something has to be pending (79f720a751ca,
            /// v4.15), the queue not quiesced (24f5a90f0d13, v4.16).
    }
    /// When an hctx takes its own entry out of the wait queue.
    entry: WaitEntry {
        V4_14 => Kept /// Never: it waits to be woken.
        V4_15 => SecondAttempt /// When the second attempt gets a tag.
        - => AnyAttempt
            /// When any attempt does. No kernel does so for driver tags; kyber does for its tokens.
    }
    /// The second attempt to get a tag, with the entry in the wait queue, is made after the wait
    /// queue's lock is released, or under it (blk_mq_mark_tag_wait(), 5815839b3ca1).
    retry: WaitRetry { V4_14 => Unlocked, V4_19 => UnderLock }
    /// What runs an hctx after BLK_STS_RESOURCE, or BLK_MQ_RQ_QUEUE_BUSY, if the end of another
    /// request would as well.
    after_refusal: AfterRefusal {
        V4_5 => AtOnce /// kblockd, at once (to v4.10).
        V4_12 => Driver
            /// The end of another request, or the driver: that of a path after 3 ms
            /// (SCSI_QUEUE_DELAY), a mapped queue's by itself (v4.11 to v4.15).
        V4_14 => Delay
            /// kblockd, after 3 ms, besides the end of another request (86ff7c2a80cd, v4.16).
    }
    /// Requests that the driver refused go to the head of the dispatch list, or to its tail
    /// (blk_mq_dispatch_rq_list(), 01e99aeca397, v5.6).
    put_back: PutBack { V4_14 => Head, V5_9 => Tail }
    /// What a pass takes from the scheduler before it offers anything to the driver
    /// (blk_mq_do_dispatch_sched()).
    pull: Pull {
        V4_14 => One /// One request, whose driver tag is taken when it is offered.
        V5_9 => Batch
            /// As many as the hctx's state allows, each with a driver tag (6e6fcbc27e77), and none
            /// once something landed on the dispatch list (28d65729b050, v5.8).
    }
    /// Where the scheduler orders the whole queue, blk_mq_run_hw_queues() runs every hctx, or that
    /// of the calling CPU, if it is not stopped, and those with leftovers (b6e68ee82585).
    run_all: RunAll { V4_14 => Every, V5_12 => OfThisCpu }
    /// What becomes of kblockd's item of an hctx, or of requeues, if it is asked for while it waits
    /// for its time or for its worker.
    waiting_item: WaitingItem {
        V4_14 => Stays
            /// It comes where and when it would have come (queue_delayed_work_on(): 21c6e939a9f6,
            /// v4.12, says so of runs).
        V4_15 => Stolen
            /// It is cancelled, and queued again with the new delay (mod_delayed_work_on(); in
            /// v4.19 and later, the first version with it was not found).
    }
}

impl RestartRule {
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

impl WaitingItem {
    /// One that waits, for its time or for its worker, is left as it is.
    pub const fn stays(self) -> bool {
        matches!(self, WaitingItem::Stays)
    }
}

impl Restart {
    /// The presets that a scenario can name, oldest first.
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
        let mut all = Restart::PRESETS.into_iter();
        all.find(|preset| preset.name == name)
    }
}
