//! Plugs of tasks and direct issue: what differs between kernels.
//!
//! Kernel: block/blk-mq.c, block/blk-core.c (6.1.192, 6.12.117).

/// Order in which a plug hands out its requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugOrder {
    /// A stack: newest first (v6.1).
    Lifo,
    /// A queue: oldest first (v6.12 stable).
    Fifo,
}

/// Who starts a plug where the task has none. A discard has one of its ioctl either way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LonePlug {
    /// Nobody: bios come one by one, as specifications of insertion and dispatch have them. No
    /// kernel in all cases; v6.1 for reads.
    Never,
    /// A write to a block device, around all that it submits: blkdev_write_iter() (v6.1). Reads and
    /// flushes have none.
    EachWrite,
    /// Each bio, around its submission: __submit_bio() (v6.12).
    EachBio,
}

impl LonePlug {
    /// All of them, by name.
    pub const NAMES: [(&'static str, LonePlug); 3] = [
        ("never", LonePlug::Never),
        ("each-write", LonePlug::EachWrite),
        ("each-bio", LonePlug::EachBio),
    ];

    /// The one of this name.
    pub fn by_name(name: &str) -> Option<LonePlug> {
        let mut all = LonePlug::NAMES.into_iter();
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

/// Direct issue on a stopped or quiesced queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StoppedIssue {
    /// Does not see it: the driver gets the request (4.5, 4.6; mended by bc27c01b5c46, 4.10).
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

/// The run of an hctx behind requests of a plug that are issued directly or else inserted into a
/// software queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlugRun {
    /// None if all were issued, else here (v6.1).
    IfInserted,
    /// Always; in kblockd if one that was inserted is REQ_NOWAIT (v6.12).
    Always,
}

/// A request allocated ahead whose bio is merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpareRequest {
    /// Is freed (v6.1).
    Freed,
    /// Goes back to the plug (v6.12).
    Kept,
}
