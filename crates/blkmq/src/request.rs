//! Bio, Request and the fixed slab that holds them.
//!
//! Not here: when a path may access a request (that follows from its place, see [`Place`]). Kernel:
//! include/linux/blk_types.h, include/linux/blk-mq.h (v6.1, v6.12).

mod value;

mod lines;
mod pool;
mod usage;

pub use lines::{Lines, RequestLines};
pub use pool::{RequestPool, Slot, Touch};
pub use usage::Usage;

use core::fmt;

use crate::time::{Jiffies, SimTime};

/// Address in units of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sector(pub u64);

/// Length in units of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sectors(pub u32);

/// Sectors of a page of memory (PAGE_SIZE on x86).
pub const PAGE_SECTORS: u32 = 8;

/// A CPU of the modelled machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CpuId(pub u16);

/// A hardware context of one queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct HctxId(pub u16);

/// A request queue of one `BlkMq`. Not a disk and not a device: one device may own several queues,
/// and a queue below a mapped one has no disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct QueueId(pub u16);

/// A tag set of one `BlkMq`: that of one queue, or shared by several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SetId(pub u16);

impl QueueId {
    /// Index into a list of all queues.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl SetId {
    /// Index into a list of all tag sets.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RequestId(pub u32);

/// A request in a plug, and its queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Plugged {
    pub queue: QueueId,
    pub rq: RequestId,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BioId(pub u32);

/// The I/O context of a task (io_context), by which schedulers attribute requests. Number 0: no
/// task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct IoContextId(pub u32);

/// Number of a tag within its map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag(pub u32);

impl Sector {
    /// The first sector after `sectors` that start here.
    pub fn end(self, sectors: Sectors) -> Sector {
        Sector(self.0 + u64::from(sectors.0))
    }
}

/// The operation of a bio or request. Numbers are the kernel's `REQ_OP_*`: odd ones go to the
/// device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Op {
    /// REQ_OP_READ.
    #[default]
    Read,
    /// REQ_OP_WRITE.
    Write,
    /// REQ_OP_FLUSH: created only by the flush machine.
    Flush,
    /// REQ_OP_DISCARD.
    Discard,
    /// REQ_OP_WRITE_ZEROES.
    WriteZeroes,
}

/// Direction as schedulers see it: everything with an odd operation number is a write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Data from the device.
    Read,
    /// Data to the device, discards and write-zeroes included.
    Write,
}

impl Op {
    /// Direction as mq-deadline and blktrace derive it (op number AND 1).
    pub fn direction(self) -> Direction {
        match self {
            Op::Read | Op::Flush => Direction::Read,
            Op::Write | Op::Discard | Op::WriteZeroes => Direction::Write,
        }
    }
}

/// Switches of a bio or request, the kernel's `REQ_*` of the same names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OpFlags {
    /// REQ_SYNC.
    pub sync: bool,
    /// REQ_META.
    pub meta: bool,
    /// REQ_RAHEAD.
    pub rahead: bool,
    /// REQ_PREFLUSH.
    pub preflush: bool,
    /// REQ_FUA.
    pub fua: bool,
    /// REQ_NOMERGE.
    pub nomerge: bool,
    /// REQ_NOWAIT.
    pub nowait: bool,
    /// REQ_POLLED.
    pub polled: bool,
    /// The submitter sends nothing close soon: REQ_NOIDLE up to v4.9, later a synchronous write
    /// without REQ_IDLE. Only schedulers of the single-queue path use it.
    pub noidle: bool,
}

impl OpFlags {
    pub fn is_flush(self) -> bool {
        self.preflush || self.fua
    }
}

/// ioprio class; the default is that of a task without a priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum IoClass {
    /// IOPRIO_CLASS_NONE.
    #[default]
    None,
    /// IOPRIO_CLASS_RT.
    RealTime,
    /// IOPRIO_CLASS_BE.
    BestEffort,
    /// IOPRIO_CLASS_IDLE.
    Idle,
}

/// ioprio: class and level (0 highest, 7 lowest).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IoPrio {
    pub class: IoClass,
    /// Level within the class, 0 to 7.
    pub level: u8,
}

impl IoPrio {
    /// ioprio_best(): the better one; none is best effort, level 4, unless both have none.
    pub fn best(self, other: IoPrio) -> IoPrio {
        let usual = |prio: IoPrio| match prio.class {
            IoClass::None => IoPrio {
                class: IoClass::BestEffort,
                level: 4,
            },
            _ => prio,
        };
        if self == other {
            return self;
        }
        usual(self).min(usual(other))
    }
}

/// How an I/O ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Status {
    /// BLK_STS_OK.
    #[default]
    Ok,
    /// BLK_STS_IOERR.
    IoError,
    /// BLK_STS_TIMEOUT.
    Timeout,
    /// BLK_STS_AGAIN: a NOWAIT bio that would have had to wait.
    Again,
    /// BLK_STS_NOTSUPP.
    NotSupported,
    /// BLK_STS_RESOURCE.
    Resource,
    /// BLK_STS_TRANSPORT: the way to the device failed.
    Transport,
    /// BLK_STS_TARGET: the device rejects it.
    Target,
    /// BLK_STS_NEXUS: a reservation of another host.
    Nexus,
    /// BLK_STS_MEDIUM: the data cannot be read.
    Medium,
    /// BLK_STS_PROTECTION: the data does not fit its checksum.
    Protection,
    /// BLK_STS_NOSPC.
    NoSpace,
}

impl Status {
    /// Error number as user space and traces have it (blk_status_to_errno()); 0 if all is well.
    pub fn errno(self) -> u16 {
        match self {
            Status::Ok => 0,
            Status::IoError => 5,
            Status::Again => 11,
            Status::NotSupported => 95,
            Status::Timeout => 110,
            Status::Resource => 12,
            Status::Transport => 67,
            Status::Target => 121,
            Status::Nexus => 52,
            Status::Medium => 61,
            Status::Protection => 84,
            Status::NoSpace => 28,
        }
    }
}

/// One submission of a user of the block layer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bio {
    pub op: Op,
    pub flags: OpFlags,
    /// First sector.
    pub sector: Sector,
    pub sectors: Sectors,
    /// Physical segments of the data; counts against max_segments. More than one: each is (part of)
    /// a page of its own. Saturates at `u16::MAX`.
    pub segments: u16,
    /// Sectors from the start of the data's first page to the data.
    pub page_offset: u8,
    /// Priority, already resolved to that of the task.
    pub ioprio: IoPrio,
    /// The I/O context of its task.
    pub io_context: IoContextId,
    /// Its cgroup (bi_blkg): index in `Submitters::groups`.
    pub group: u16,
    /// The submitter's own mark, returned at the end.
    pub owner: u32,
    /// Next bio of the same request.
    pub(crate) next: Option<BioId>,
    /// The bio that this piece was split from.
    pub(crate) parent: Option<BioId>,
    /// Pieces split from this bio that have not ended.
    pub(crate) pieces: u16,
    /// Its own last part has ended.
    pub(crate) ended: bool,
    /// First error of any piece.
    pub(crate) status: Status,
}

impl Bio {
    /// Marks each page of its data as a segment of its own, as pages of user memory are scattered.
    pub fn scatter(&mut self) {
        let pages = self.sectors.0.div_ceil(PAGE_SECTORS);
        self.segments = u16::try_from(pages).unwrap_or(u16::MAX);
    }

    /// A bio with the same data, for a clone of its request.
    pub(crate) fn copied(&self) -> Bio {
        Bio {
            next: None,
            parent: None,
            pieces: 0,
            ended: false,
            status: Status::Ok,
            ..self.clone()
        }
    }

    /// Segments of a part that begins `offset` sectors after the start of a page.
    pub(crate) fn segments_of(&self, offset: u8, part: Sectors) -> u16 {
        if self.segments <= 1 {
            return self.segments;
        }
        let pages = (u32::from(offset) + part.0).div_ceil(PAGE_SECTORS);
        u16::try_from(pages).unwrap_or(u16::MAX)
    }
}

/// The place of a live request. Exactly one at any time; asserted by every container.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Place {
    /// Not in use.
    #[default]
    Free,
    /// Being set up, or owned by the running path: a local list.
    Path,
    /// A task's plug.
    Plug,
    /// A task's plug, allocated ahead and not yet used.
    PlugCache,
    Ctx,
    Elevator,
    /// `hctx->dispatch`.
    Dispatch,
    /// The requeue list or flush list.
    Requeue,
    Device,
    /// Completed by the device, being ended.
    Completing,
    /// A pending list of the flush machine.
    Flush,
    /// Beside the scheduler, not inserted yet: a bucket or side list (January 2024 series).
    Side,
}

/// A request. Fields that two layers share; policies store theirs in `elv_priv` and `fifo_time`.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub op: Op,
    pub flags: OpFlags,
    pub sector: Sector,
    pub sectors: Sectors,
    pub segments: u16,
    pub ioprio: IoPrio,
    /// Driver tag, when it holds one.
    pub tag: Option<Tag>,
    /// It has its driver tag, of a set that queues share, and does not count among the requests
    /// with tags yet (no RQF_MQ_INFLIGHT, v6.1).
    pub uncounted: bool,
    /// Scheduler tag, when it holds one (internal_tag).
    pub internal_tag: Option<Tag>,
    /// CPU of the allocation (mq_ctx).
    pub ctx: CpuId,
    /// Hardware context of the allocation (mq_hctx).
    pub hctx: HctxId,
    /// RQF_USE_SCHED (v6.1: RQF_ELVPRIV): elevator hooks apply.
    pub use_sched: bool,
    /// RQF_STARTED: a scheduler dispatched it once; not mergeable any more.
    pub started: bool,
    /// RQF_DONTPREP: a requeue goes to the dispatch list.
    pub dontprep: bool,
    /// RQF_FLUSH_SEQ: part of a flush sequence.
    pub flush_seq: bool,
    /// The whole request came through the requeue list with AT_HEAD set (v6.1 SOFTBARRIER).
    pub softbarrier: bool,
    /// Passthrough: not of the file system.
    pub passthrough: bool,
    /// Step of the flush sequence; meaning in `path/flush.rs`.
    pub flush_step: u8,
    /// blk_mq_start_request was called and the request is with the driver.
    pub in_flight: bool,
    /// Polled I/O.
    pub polled: bool,
    /// The I/O context of its first bio.
    pub io_context: IoContextId,
    /// The cgroup of the bio that it was allocated for.
    pub group: u16,
    /// Private data of its scheduler (`elv.priv`), initially zero; the first is one plus the level
    /// by which schedulers with one lock count finished requests.
    pub elv_priv: [u32; 2],
    /// Expiry as the policy set it.
    pub fifo_time: Jiffies,
    /// Its bucket of the elevator's hash of mergeable requests (RQF_HASHED).
    pub hashed: Option<u8>,
    /// Budget token, when it holds one.
    pub budget: Option<u32>,
    /// Its deadline, on a queue that shares its tags. Measured, not compared.
    pub deadline: Jiffies,
    /// Status to end with.
    pub status: Status,
    pub place: Place,
    pub bio_first: Option<BioId>,
    /// Newest bio.
    pub bio_last: Option<BioId>,
    pub bio_count: u32,
    /// Allocation (G). Measured, not compared.
    pub start_time: SimTime,
    /// Issue (D). Measured, not compared.
    pub io_start_time: SimTime,
}

/// Operation, sector and length: `w 800+8`.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            Op::Read => "r",
            Op::Write => "w",
            Op::Flush => "f",
            Op::Discard => "d",
            Op::WriteZeroes => "z",
        };
        write!(f, "{op} {}+{}", self.sector.0, self.sectors.0)
    }
}

impl Request {
    /// The first sector after it.
    pub fn end(&self) -> Sector {
        self.sector.end(self.sectors)
    }

    /// blk_mq_request_started(): it was started, and is neither requeued nor freed.
    pub fn is_started(&self) -> bool {
        self.in_flight || self.place == Place::Completing
    }

    /// rq_mergeable(): another bio or request may still join. `None` of a started, flush-sequence
    /// or passthrough request, and only operations that carry mergeable data.
    pub fn is_mergeable(&self) -> bool {
        let op_merges = !matches!(self.op, Op::Flush | Op::WriteZeroes);
        let flags_merge = !self.flags.nomerge && !self.flags.is_flush();
        let untouched = !self.started && !self.flush_seq && !self.passthrough && !self.softbarrier;
        op_merges && flags_merge && untouched
    }
}
