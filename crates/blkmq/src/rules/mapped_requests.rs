//! How the way of a request through a mapped queue differs between kernels.
//!
//! The way itself is in `path/map.rs` and around it.
//! Kernel: drivers/md/dm.c, dm-rq.c, block/blk-core.c of 4.5, 4.6.2, 4.12, 4.20, 6.1.192.

use super::old_top::OldTop;

crate::axes! {
    /// The way of a request through a mapped queue, and that of its clone.
    pub struct MappedRequests, const {
        V4_5 "v4.5",
        V4_6 "v4.6" = V4_5,
        V4_12 "v4.12" = V4_6,
        V4_20 "v4.20" = V4_12,
        V6_1 "v6.1" = V4_20,
    }

    /// queue_rq finds its target in the live table, for each request, or knows it
    /// (dm_mq_queue_rq()).
    target: TargetLookUp { V4_5 => Table "table", V4_6 => Known "known" }
    /// No driver of a path's blk-mq queue can say that it is busy, or the target asks it
    /// (blk_lld_busy(), blk_mq_ops.busy, 5.0); only those of SCSI answer, since only they have
    /// budgets.
    busy_paths: BusyPaths { V4_5 => Unheard, V6_1 => Asked }
    /// The target keeps its data of an I/O (struct dm_mpath_io) in an object of a mempool, or after
    /// the request in memory (591ddcfc4bfa).
    io_data: IoData { V4_5 => Mempool "mempool", V4_6 => InRequest "in-request" }
    /// Requests in flight are counted in md->pending, for each direction, or the tags show them
    /// (5.0).
    in_flight: InFlight { V4_5 => Counted, V6_1 => Tags }
    /// Where a clone goes (blk_insert_cloned_request()).
    insertion: CloneInsertion {
        V4_5 => InBackground "in-background" /// To its software queue, which kblockd runs.
        V4_6 => AtOnce "at-once" /// To its software queue, which is run at once (6acfe68bac7e).
        V4_12 => Scheduler "scheduler"
            /// To the scheduler of its queue, if that has one, otherwise the same (4.11 to 4.13).
        V4_20 => Direct "direct" /// To the driver, whose answer is used (396eaf21ee17, 4.16).
    }
    /// The second completion goes on in the softirq of the CPU that is there
    /// (blk_complete_request()), or as any completion (6acfe68bac7e).
    second_end: SecondEnd { V4_5 => Softirq "softirq", V4_6 => Placed "placed" }
    /// Each bio of a clone that ends completes data of the request above, and traces a C, or only
    /// the last one does (blk_update_request() in end_clone_bio()).
    bio_updates: BioUpdates { V4_5 => Each, V4_20 => Last }
    /// The end of a request runs all hctxs of the mapped queue, by kblockd, or nothing
    /// (rq_completed(), 6acfe68bac7e).
    end_run: EndRun { V4_5 => Hctxs "hctxs", V4_6 => Nothing "nothing" }
    /// A request that could not be mapped runs nothing, since the device is busy (4.10, 4.16), or
    /// its hctx, 100 ms later (4.11 to 4.15).
    refused_run: RefusedRun { V4_5 | V4_20 => Nothing, V4_12 => Later }
    /// A suspension keeps requests from being mapped: it stops the hctxs, or waits for the runs
    /// under way as well, or quiesces the queue (dm_stop_queue()).
    suspension: Suspension { V4_5 => Stops, V4_12 => StopsAndWaits, V4_20 => Quiesces }
    /// Tags of the mapped queue, unless dm_mq_queue_depth says otherwise.
    queue_depth: u16 [V4_5 => 128, V4_6 => 2048]
    /// The mapped queue with use_blk_mq=N, which is the default where there is such a queue; none:
    /// the kernel has no such queue any more.
    old_top: (Option<OldTop>) [
        V4_5 => Some(OldTop::V4_5),
        V4_12 => Some(OldTop::V4_12),
        V4_20 => None,
    ]
}
