//! Differences of dm-multipath between kernels.
//!
//! The algorithm that all share is in `dm/`. Requests between the queues: `mapped_requests.rs`;
//! changes that can be made by themselves: `single_changes.rs`. Kernel: drivers/md/dm.c, dm-rq.c,
//! dm-mpath.c and the path selectors of 4.5, 4.6.2, 4.12, 4.20, 6.1.192 and 6.12.117.

use super::MappedRequests;

crate::axes! {
    /// dm-multipath of one kernel.
    pub struct DeviceMapper(name), const {
        V4_5 "v4.5",
        V4_6 "v4.6" = V4_5,
        V4_12 "v4.12" = V4_6,
        V4_20 "v4.20" = V4_12,
        V6_1 "v6.1" = V4_20,
        V6_6 "v6.6" = V6_1,
        V6_12 "v6.12" = V6_6,
        V6_18 "v6.18" = V6_12,
        V7_2 "v7.2" = V6_18,
    }

    /// What is done under m->lock when a path is chosen (multipath_clone_and_map()).
    target_lock: TargetLock {
        V4_5 => Whole "whole" /// All of it, and each choice becomes the current path.
        V4_12 => Changes "changes"
            /// Only changes of the group; the rest is read without it, and the current path changes
            /// only with its group (2da1610ae20e, 4.7).
    }
    /// A flag of the target that is set is read once on the way of a request, or again under
    /// m->lock (mpath_double_check_test_bit()).
    flag_read: FlagRead { V4_5 => Once, V6_1 => TwiceIfSet }
    /// How many requests in a row go to one path.
    repeat: Repeat {
        V4_5 => ByTarget
            /// As many as the table says of the path, counted by the target: until then the
            /// selector is not asked.
        V4_6 => ByRoundRobin
            /// The selector is asked for each; round-robin counts by itself, with a counter of CPUs
            /// that may be off by 32 for each of them.
        V4_12 => One /// One, whatever the table says.
    }
    /// queue-length, service-time: the first path goes to the end of the list before the list is
    /// looked through, or the chosen one goes there.
    rotation: Rotation { V4_5 => FirstBefore, V4_20 => ChosenBehind }
    /// There are round-robin, queue-length and service-time, or historical-service-time (5.8) and
    /// io-affinity (5.11) as well.
    selectors: Selectors { V4_5 => Three, V6_1 => Five }
    /// The feature `queue_mode`: there is none (4.7), or bio, rq and mq (4.8).
    queue_mode: QueueModes { V4_5 => Unknown, V4_12 => Known }
    /// How a bio of a bio-based target is mapped (__map_bio()).
    bio_map: BioMap {
        V4_5 => ReadsOnce
            /// Whether the group waits for its initialisation is read once, before the selector is
            /// asked; whether bios are held is read without m->lock (4.12).
        V4_20 => Stays
            /// The selector is asked only where there is no current path: that stays until it
            /// fails. So it is without a hardware handler; the rest as before.
        V6_1 => UnderLock
            /// The selector is asked for each bio, and what holds a bio back is read under m->lock,
            /// where the worker is called as well.
    }
    /// For a bio that flushes first, a bio-based device sends down a flush of its own, which knows
    /// nothing of the bio (md->flush_bio), or the bio without its data, with its other flags.
    flush_clone: FlushClone { V4_5 => OfDevice, V6_1 => OfBio }
    /// For a request that cannot be mapped now because no path is left, the device reports busy to
    /// the queue, or it goes to the requeue list, which is kicked later (4.9).
    no_path: Hold { V4_5 => Requeue, V4_12 => Delay }
    /// A request that waits for the initialisation of its group.
    unready: Unready {
        V4_5 => Requeue /// As [`Hold::Requeue`].
        V4_12 => DelayIfStarted
            /// It is held with a delay if an initialisation goes on, otherwise as
            /// [`Hold::Requeue`].
        V4_20 => Delay /// It is held with a delay.
    }
    /// How much later the list of delayed requests is kicked, ms: 5000 up to 4.11, then 100.
    delay_ms: u16 [V4_5 => 100]
    /// A request whose path has no tag for a clone.
    no_clone: NoClone {
        V4_5 => Requeue /// The device reports busy to the queue, whatever the reason.
        V4_12 => Delay
            /// It is held with a delay; the device reports busy only if the path's queue is dying.
        V4_20 => RequeueToMerge
            /// The device reports busy, so that the request may merge further; it is held with a
            /// delay if the path's queue is dying (4.16).
    }
    /// A target without path that holds its requests back answers that it is busy, or not: in
    /// request-based mode mapping holds them (multipath_busy()).
    pathless: Pathless { V4_5 => Busy, V4_12 => Maps }
    /// When requests of a target without path are held back (must_push_back()).
    push_back: PushBack {
        V4_5 | V4_20 => SavedDiffers
            /// queue_if_no_path, or it differs from its saved copy in a suspension without flush.
        V4_12 => FlagAlone /// queue_if_no_path, which a suspension without flush sets.
        V6_1 => Noflush /// queue_if_no_path, or a suspension without flush.
    }
    /// The saved copy of queue_if_no_path (queue_if_no_path()).
    saved: Saved {
        V4_5 => Follows
            /// Follows each message; resuming takes it as it is. Any suspension saves and clears.
        V6_1 => WhileSuspended
            /// Only while suspended with flush; resuming sets the flag or leaves it. A message that
            /// clears the flag clears it, and the saved flag is never cleared while the flag is
            /// set.
    }
    /// What a clone that ended with an error does to its request.
    end: EndRule {
        V4_5 => IoError
            /// Without a path left: EIO, but a reservation conflict is passed on where requests
            /// would be held.
        V4_12 => AsItIs
            /// Without a path left: the error as it is. A reservation conflict is no error of the
            /// path.
        V4_20 => DelayForResource
            /// The same, and an error for want of resources is retried with a delay.
    }
    /// The selector's count of a request whose clone was not issued after all leaks, or is taken
    /// back as at the end of I/O (5de719e3d01b, 5.2).
    undo: Undo { V4_5 => Forgotten, V6_1 => TakenBack }
    /// Once there is a path, or its group is ready, held requests come back by runs of the queue,
    /// as after a busy device, or the requeue list is kicked as well.
    held: Held { V4_5 => RunQueue, V4_12 => KickList }
    /// The timer of queue_if_no_path_timeout_secs.
    no_path_timer: bool [V4_5 => false, V6_1 => true]
    /// pg_init_delay_msecs of the table, or its default whatever the table says, as that is set
    /// after the table is read (alloc_multipath_stage2()).
    pg_init_delay: PgInitDelay {
        V4_5 | V6_1 | V6_12 | V7_2 => OfTable,
        V4_20 | V6_6 | V6_18 => Default,
    }
    /// retain_attached_hw_handler is a feature, or always so and not printed (7.0).
    attached_handler: AttachedHandler { V4_5 => Feature, V7_2 => Retained }
    /// What differs on the way of a request through the mapped queue.
    requests: MappedRequests [
        V4_5 => MappedRequests::V4_5,
        V4_6 => MappedRequests::V4_6,
        V4_12 => MappedRequests::V4_12,
        V4_20 => MappedRequests::V4_20,
        V6_1 => MappedRequests::V6_1,
    ]
}

impl DeviceMapper {
    /// The preset of this name ("v6.1", also without the "v").
    pub fn by_name(name: &str) -> Option<DeviceMapper> {
        let bare = name.strip_prefix('v').unwrap_or(name);
        let mut all = DeviceMapper::ALL.into_iter();
        all.find(|rules| &rules.name[1..] == bare)
    }
}
