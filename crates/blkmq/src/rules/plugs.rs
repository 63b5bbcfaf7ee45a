//! Plugs of tasks and direct issue: what differs between kernels.
//!
//! Kernel: block/blk-mq.c, block/blk-core.c (6.1.192, 6.12.117).

/// Order in which a plug issues its requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugOrder {
    /// A stack: newest first (v6.1).
    Lifo,
    /// A queue: oldest first (v6.12 stable).
    Fifo,
}

/// The plug of a bio whose task has none. A discard has one of its ioctl in any case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BioPlug {
    /// None: bios come one by one, as specifications of insertion and dispatch have them. No kernel
    /// in all cases; v6.1 for reads.
    Never,
    /// A plug around all bios of a write to a block device: blkdev_write_iter() (v6.1). Reads and
    /// flushes have none.
    EachWrite,
    /// Each bio, around its submission: __submit_bio() (v6.12).
    EachBio,
}

impl BioPlug {
    /// All values, by name.
    pub const NAMES: [(&'static str, BioPlug); 3] = [
        ("never", BioPlug::Never),
        ("each-write", BioPlug::EachWrite),
        ("each-bio", BioPlug::EachBio),
    ];

    /// The value of this name.
    pub fn by_name(name: &str) -> Option<BioPlug> {
        let mut all = BioPlug::NAMES.into_iter();
        all.find(|(other, _)| *other == name).map(|(_, plug)| plug)
    }
}

/// Trace of the direct flush of a one-queue plug.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DirectUnplug {
    /// No U (v6.1).
    Silent,
    /// U with the number of requests (v6.12).
    Traced,
}

/// The plug of io_submit().
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AioPlug {
    /// Always (4.20).
    Always,
    /// For more than two submissions in one call (a79d40e9b0ee, 5.0).
    AboveTwo,
}

/// Which requests of a queue without scheduler are issued directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DirectIssue {
    /// Synchronous ones of a queue of several hctxs: the request of an unplugged bio, or the one in
    /// the plug when the next comes. All others, and those left in a plug at its end, are inserted
    /// into their software queues, which are run; a single one only by kblockd unless it is
    /// synchronous (4.5, 4.6: blk_sq_make_request() serves queues of one hctx).
    OfSeveral,
    /// The same; a single one is run by kblockd in any case (4.12).
    OfSeveralElseKblockd,
    /// Any of an hctx that is not busy, with the requests of the plug (6ce3dd6eec11, 4.19; plugs
    /// v5.1).
    UnlessBusy,
}

/// Direct issue on a stopped or quiesced queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StoppedIssue {
    /// Does not check: the driver gets the request (4.5, 4.6; fixed by bc27c01b5c46, 4.10).
    Unseen,
    /// Inserts and leaves it (v6.1).
    Insert,
    /// Inserts and runs the queue (v6.12 stable).
    InsertAndRun,
}

/// Direct issue of a single request without budget or driver tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StarvedIssue {
    /// Inserts it and runs the queue here (v6.1).
    RunHere,
    /// Inserts it and runs the queue, in kblockd if the request is REQ_NOWAIT (v6.12).
    NowaitInBackground,
}

/// The run of an hctx after requests of a plug that are issued directly or else inserted into a
/// software queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugRun {
    /// None if all were issued, else here (v6.1).
    IfInserted,
    /// Always; in kblockd if one that was inserted is REQ_NOWAIT (v6.12).
    Always,
}

/// A cached request whose bio is merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CachedRequest {
    /// Is freed (v6.1).
    Freed,
    /// Goes back to the plug (v6.12).
    Kept,
}
