//! How budget fair queueing (BFQ) differs between kernels.
//!
//! The algorithm that all share is in the scheduler's folder.
//! Kernel: block/bfq-iosched.c of 5.11, 5.13 (430a67f9d616 and 7ea96eefb009 among it), 5.14-rc5,
//! 6.1.192, 6.12.117.

use super::Rules;

crate::axes! {
    pub struct FairQueueing, const {
        /// Before stable merging.
        V5_11 "v5.11",
        /// Stable merging as it came.
        V5_13 "v5.13" = V5_11,
        V6_1 "v6.1" = V5_13,
        V6_6 "v6.6" = V6_1,
        V6_12 "v6.12" = V6_6,
        V6_18 "v6.18" = V6_12,
        V7_2 "v7.2" = V6_18,
    }

    /// When queues of processes that start together are merged (bfq_do_or_sched_stable_merge()).
    stable_merge: StableMerge {
        V5_11 => Never "never" /// Never (up to v5.12).
        V5_13 => WithinBurst "within-burst"
            /// As first posted: within 180 ms; delayed ones only within 200 ms after a split, a
            /// condition that was meant to be inverted.
        V6_1 => SinceActivation "since-activation"
            /// A first queue serves as target for 600 ms, delayed ones wait 600 ms (v5.14).
    }
    /// A waker is revealed, and a sample for the injection limit started, by an arrival to an empty
    /// queue, or by that of the only request of its process.
    sole_arrival: SoleArrival { V5_11 => EmptyQueue, V6_1 => OnlyRequest }
    /// A queue that expires idle having used little is no longer limited by I/O until 120 quick
    /// arrivals in a row; or one is that idles for less than a fifth of a moving window (IO_bound,
    /// bfq_update_io_intensity(), v5.12).
    io_bound: IoBound { V5_11 => Streak, V5_13 => Window }
    /// The think time gets a sample with each insertion, and is long above slice_idle; or when the
    /// queue is idle, and is long above half of it (bfq_update_io_thinktime(), v5.12).
    think_time: ThinkTime { V5_11 => EachInsertion, V5_13 => WhenIdle }
    /// How a process's share of the tags is limited (bfq_limit_depth()).
    depth_limit: DepthLimit {
        V5_11 => Words
            /// Depths inside a word, of asynchronous operations and synchronous writes (up to
            /// v5.16).
        V6_1 => WordsAndShare
            /// The same, and one tag for a queue that has used up its share by weight (v5.17).
        V6_12 => TotalAndShare /// Both of the whole map (6.12.y).
    }
    /// A group is pending from its activation, and any but the root makes the scenario asymmetric;
    /// or while a queue of its own has requests, and more than one does
    /// (num_groups_with_pending_reqs, v6.2).
    pending_groups: PendingGroups { V5_11 => SinceActivation, V6_6 => Exact }
    /// While the queue in service is idle, a large request lowers the limit of injection to one, or
    /// is passed over while something is with the driver (bfq_choose_bfqq_for_injection(), v6.3).
    injection_scan: InjectionScan { V5_11 => LowersLimit, V6_6 => PassesLarge }
    /// A request that is inserted is merged, in a section of its own, and traced, then it gets its
    /// queue; or it gets its queue first (bfq_insert_request(), v5.17).
    insert_order: InsertOrder { V5_11 => MergeFirst, V6_1 => QueueFirst }
    /// Saved state comes back after a split when the request has been counted, and only if the
    /// queue is the process's own then, or directly (bfq_bfqq_resume_state(), 6.12.y).
    resume_after: ResumeAfter { V5_11 => Counting, V6_12 => Split }
    /// The candidate of a stable merge that was delayed is put before the merge is set up, or after
    /// it (bfq_setup_stable_merge(), v6.3).
    stable_put: StablePut { V5_11 => BeforeMerge, V6_6 => AfterMerge }
    /// Weight raising is for queues of any weight that have one owner, part of its state is saved;
    /// or for those of default weight, stably merged ones too (v5.12).
    raising: Raising { V5_11 => AnyWeight, V5_13 => DefaultWeight }
    /// How the waker of a queue is detected, and when it is reset (bfq_check_waker()).
    waker_check: WakerCheck {
        V5_11 => AtOnce /// The first one seen, shared queues too; nothing depends on it.
        V5_13 => Confirmed
            /// The queue that preceded three times in a row. Wakers and the queues that they wake
            /// are served while the queue in service is waited for; the end of a shared queue's
            /// request is not considered.
        V6_1 => ConfirmedInTime
            /// The same within 128 times slice_idle, also for the current waker, with lines in the
            /// log; after the end of a shared queue's request there is no waker (v5.14).
    }
    /// Where there is something to dispatch besides the dispatch list (bfq_has_work()).
    work: BfqWork {
        V5_11 => BusyQueuesAndInserted
            /// A queue is busy, and a request that was inserted has not ended: of the whole device,
            /// where the kernel counts by hctx (elevator_queued).
        V5_13 => BusyQueues /// A queue is busy, be it only waited for (up to v5.14).
        V6_1 => Queued /// A request is queued (v5.15).
    }
    /// The priority level of a changed weight is computed without the factor of ten between the two
    /// (bfq_weight_to_ioprio(), up to v5.14).
    level_is_difference: bool [V5_11 => true, V6_1 => false]
    /// A queue that is to be merged is redirected to the end of its chain, and a queue in one is
    /// never recycled; before, one hop (bfq_setup_merge()).
    chain_to_tail: bool [V5_11 => false, V6_1 => true]
    /// The only busy queue idles, and one that need not idle may be preempted (v5.12).
    only_busy_idles: bool [V5_11 => false, V5_13 => true]
    /// A request goes straight to the dispatch list if its queue and the one in service wake each
    /// other and no other queue is busy.
    waker_bypass: bool [V5_11 => false, V5_13 => true, V6_1 => false]
    /// The idle timer runs the queues after it has released the lock
    /// (bfq_idle_slice_timer_body(), up to v5.18).
    timer_unlocks: bool [V5_11 => true, V6_1 => false]
    /// Limits of injection begin with the stamp of their queue's creation, not zero.
    stamp_at_creation: bool [V5_11 => false, V6_6 => true]
    /// One set of queues for each of a drive's access ranges (v6.3).
    actuators: bool [V5_11 => false, V6_6 => true]
    /// A candidate for a stable merge that another one replaces is put. No kernel does it:
    /// docs/findings/0002 proposes it.
    puts_candidate: bool [V5_11 => false]
    /// Queues of two actuators never merge. No kernel does it: docs/findings/0003 proposes it.
    merges_per_actuator: bool [V5_11 => false]
    /// A stable merge that is due is given up if the queue is sequential. No kernel does it:
    /// docs/findings/0004 proposes it.
    keeps_sequential: bool [V5_11 => false]
    /// The lists of active queues of all actuators are set up, not of two. No kernel does it:
    /// docs/findings/0005 proposes it.
    sets_up_lists: bool [V5_11 => false]
    /// The end of weight raising and a split count only queues that begin or end to be raised. No
    /// kernel does it: docs/findings/0006 proposes it.
    counts_raised: bool [V5_11 => false]
}

impl FairQueueing {
    /// Repairs that no kernel has, as users write them.
    pub const REPAIRS: [&str; 5] = [
        "candidate",
        "per-actuator",
        "sequential",
        "active-lists",
        "raised-count",
    ];

    /// With more access ranges than this, a kernel uses list heads that it has not set up
    /// (docs/findings/0005).
    pub const fn ranges_max(&self) -> usize {
        match self.actuators && !self.sets_up_lists {
            true => 2,
            false => usize::MAX,
        }
    }

    /// Wakers and the queues that they wake are served while the queue in service is waited for, a
    /// queue that becomes busy is the first of those, and a queue that merges passes its waker on
    /// (v5.13 and later).
    pub const fn injects_wakers(&self) -> bool {
        !matches!(self.waker_check, WakerCheck::AtOnce)
    }

    /// The priority level of a changed weight (bfq_weight_to_ioprio()).
    pub fn level_of(&self, weight: u32) -> u8 {
        let level = match self.level_is_difference {
            true => 80u32.saturating_sub(weight),
            false => 8u32.saturating_sub(weight / 10),
        };
        level as u8
    }
}

impl Rules {
    /// These rules with repairs of [`FairQueueing::REPAIRS`], joined by `+`, or with `none`. `None`
    /// if there is no repair of some name.
    pub fn with_repairs(mut self, names: &str) -> Option<Rules> {
        let rules = &mut self.fair_queueing;
        for name in names.split('+').filter(|_| names != "none") {
            *match name {
                "candidate" => &mut rules.puts_candidate,
                "per-actuator" => &mut rules.merges_per_actuator,
                "sequential" => &mut rules.keeps_sequential,
                "active-lists" => &mut rules.sets_up_lists,
                "raised-count" => &mut rules.counts_raised,
                _ => return None,
            } = true;
        }
        Some(self)
    }
}
