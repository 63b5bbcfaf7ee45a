//! Bio, Request and the fixed slab that holds them.
//!
//! Not here: who may touch a request when (that follows from its place, see [`Place`]).
//! Kernel: include/linux/blk_types.h, include/linux/blk-mq.h (v6.1, v6.12).

mod value;

use crate::list::Links;
use crate::sort::SortNode;
use crate::time::{Jiffies, SimTime};
use core::fmt;
use core::ops::{Index, IndexMut};

/// Address in units of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sector(pub u64);

/// Length in units of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sectors(pub u32);

/// A CPU of the modelled machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CpuId(pub u16);

/// A hardware context of one queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct HctxId(pub u16);

/// Slot of a request in its queue's [`RequestPool`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u32);

/// Slot of a bio in its queue's [`RequestPool`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BioId(pub u32);

/// Number of a tag within its map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag(pub u32);

impl Sector {
    /// The sector just behind `sectors` that start here.
    pub fn end(self, sectors: Sectors) -> Sector {
        Sector(self.0 + u64::from(sectors.0))
    }
}

/// What a bio or request asks for. Numbers are the kernel's `REQ_OP_*`: odd ones go to the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Op {
    /// REQ_OP_READ.
    #[default]
    Read,
    /// REQ_OP_WRITE.
    Write,
    /// REQ_OP_FLUSH: only the flush machine makes these.
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
}

impl OpFlags {
    /// op_is_flush(): carries PREFLUSH or FUA.
    pub fn is_flush(self) -> bool {
        self.preflush || self.fua
    }
}

/// ioprio class; the default is what a task without a priority has.
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
    /// Class.
    pub class: IoClass,
    /// Level within the class, 0 to 7.
    pub level: u8,
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
}

/// One submission of a user of the block layer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bio {
    /// Operation.
    pub op: Op,
    /// Switches.
    pub flags: OpFlags,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Physical segments of the data; counts against max_segments.
    pub segments: u16,
    /// Priority, already resolved to that of the task.
    pub ioprio: IoPrio,
    /// The submitter's own mark, handed back at the end.
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

/// Where a live request is. Exactly one place at any time; asserted by every container.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Place {
    /// Not in use.
    #[default]
    Free,
    /// Being set up, or in the hands of the path that runs: a local list.
    Path,
    /// A task's plug.
    Plug,
    /// A task's plug, allocated ahead and not yet used.
    PlugCache,
    /// A software queue.
    Ctx,
    /// The scheduler.
    Elevator,
    /// `hctx->dispatch`.
    Dispatch,
    /// The requeue list or flush list.
    Requeue,
    /// The device.
    Device,
    /// Completed by the device, being ended.
    Completing,
    /// A pending list of the flush machine.
    Flush,
}

/// A request. Fields that two layers share; policies add theirs in `elv_priv` and `fifo_time`.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Operation.
    pub op: Op,
    /// Switches (cmd_flags).
    pub flags: OpFlags,
    /// First sector.
    pub sector: Sector,
    /// Length of all bios.
    pub sectors: Sectors,
    /// Physical segments of all bios.
    pub segments: u16,
    /// Priority.
    pub ioprio: IoPrio,
    /// Driver tag, when it holds one.
    pub tag: Option<Tag>,
    /// Scheduler tag, when it holds one (internal_tag).
    pub internal_tag: Option<Tag>,
    /// CPU of the allocation (mq_ctx).
    pub ctx: CpuId,
    /// Hardware context of the allocation (mq_hctx).
    pub hctx: HctxId,
    /// RQF_USE_SCHED (v6.1: RQF_ELVPRIV): elevator hooks apply.
    pub use_sched: bool,
    /// RQF_STARTED: a scheduler handed it out once; not mergeable any more.
    pub started: bool,
    /// RQF_DONTPREP: a requeue goes to the dispatch list.
    pub dontprep: bool,
    /// RQF_FLUSH_SEQ: part of a flush sequence.
    pub flush_seq: bool,
    /// The whole request came through the requeue list with AT_HEAD wanted (v6.1 SOFTBARRIER).
    pub softbarrier: bool,
    /// Passthrough: not of the file system.
    pub passthrough: bool,
    /// Step of the flush sequence; meaning in `path/flush.rs`.
    pub flush_step: u8,
    /// blk_mq_start_request was called and the request is with the driver.
    pub in_flight: bool,
    /// Polled I/O.
    pub polled: bool,
    /// Counted in a policy's record of this number (`priv`; mq-deadline: priority level).
    pub elv_priv: Option<u8>,
    /// Expiry as the policy set it.
    pub fifo_time: Jiffies,
    /// Bucket of the elevator's hash of mergeable requests that it is in (RQF_HASHED).
    pub hashed: Option<u8>,
    /// Budget token, when it holds one.
    pub budget: Option<u32>,
    /// Status to end with.
    pub status: Status,
    /// Where it is.
    pub place: Place,
    /// Oldest bio.
    pub bio_first: Option<BioId>,
    /// Newest bio.
    pub bio_last: Option<BioId>,
    /// Number of bios.
    pub bio_count: u32,
    /// Allocation (G). Measured, not compared.
    pub start_time: SimTime,
    /// Issue (D). Measured, not compared.
    pub io_start_time: SimTime,
}

impl Request {
    /// The sector just behind it.
    pub fn end(&self) -> Sector {
        self.sector.end(self.sectors)
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

/// What one label touched, for the cost model: lines that were last touched by another CPU.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    /// CPUs that touched an entry last, each entry once; only the first `TOUCH_LIMIT` are kept.
    pub remote: [CpuId; TOUCH_LIMIT],
    /// Number of `remote` that count.
    pub remote_count: u8,
    /// Remote touches that did not fit.
    pub overflow: u32,
}

/// Remote touches kept by name in one label.
pub const TOUCH_LIMIT: usize = 16;

impl Touches {
    /// Notes that an entry last touched by `last` is now touched by `now`.
    pub fn note(&mut self, last: CpuId, now: CpuId) {
        if last == now {
            return;
        }
        if usize::from(self.remote_count) < TOUCH_LIMIT {
            self.remote[usize::from(self.remote_count)] = last;
            self.remote_count += 1;
        } else {
            self.overflow += 1;
        }
    }

    /// Nothing came from another CPU.
    pub fn is_empty(&self) -> bool {
        self.remote_count == 0
    }

    /// The remote touches that were kept.
    pub fn remote(&self) -> &[CpuId] {
        &self.remote[..usize::from(self.remote_count)]
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.remote_count = 0;
        self.overflow = 0;
    }
}

/// All requests and bios of one queue: fixed slabs, allocated once.
///
/// Indexing a request mutably counts as touching its cache lines.
pub struct RequestPool {
    requests: Vec<Request>,
    bios: Vec<Bio>,
    free_bios: Vec<BioId>,
    /// Links of `queuelist`: plug, ctx, dispatch, requeue, fifo.
    pub(crate) queue_links: Vec<Links>,
    /// Links of the merge hash.
    pub(crate) hash_links: Vec<Links>,
    /// Nodes of the sort trees.
    pub(crate) sort_nodes: Vec<SortNode>,
    last: Vec<CpuId>,
    /// CPU that runs the current label; set by the slab when it is borrowed.
    pub toucher: CpuId,
    /// What the current label touched; drained by the driver.
    pub touches: Touches,
}

impl RequestPool {
    /// Room for `requests` requests and `bios` bios.
    pub fn new(requests: usize, bios: usize) -> RequestPool {
        RequestPool {
            requests: vec![Request::default(); requests],
            bios: vec![Bio::default(); bios],
            free_bios: (0..bios as u32).rev().map(BioId).collect(),
            queue_links: vec![Links::default(); requests],
            hash_links: vec![Links::default(); requests],
            sort_nodes: vec![SortNode::default(); requests],
            last: vec![CpuId::default(); requests],
            toucher: CpuId::default(),
            touches: Touches::default(),
        }
    }

    /// Notes that the running CPU touches the cache lines of `rq`.
    pub(crate) fn touch(&mut self, rq: RequestId) {
        let slot = rq.0 as usize;
        self.touches.note(self.last[slot], self.toucher);
        self.last[slot] = self.toucher;
    }

    /// Number of request slots.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// True if there is no slot at all.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// All slots in order, free ones included.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.requests
            .iter()
            .enumerate()
            .map(|(i, rq)| (RequestId(i as u32), rq))
    }

    /// Takes a bio slot and fills it. `None` when all are in use.
    pub fn add_bio(&mut self, bio: Bio) -> Option<BioId> {
        let id = self.free_bios.pop()?;
        self.bios[id.0 as usize] = bio;
        Some(id)
    }

    /// Gives a bio slot back.
    pub fn free_bio(&mut self, id: BioId) {
        debug_assert!(!self.free_bios.contains(&id), "bio freed twice");
        self.free_bios.push(id);
    }

    /// Number of bios in use.
    pub fn bios_in_use(&self) -> usize {
        self.bios.len() - self.free_bios.len()
    }

    /// The bio.
    pub fn bio(&self, id: BioId) -> &Bio {
        &self.bios[id.0 as usize]
    }

    /// The bio, to change it.
    pub fn bio_mut(&mut self, id: BioId) -> &mut Bio {
        &mut self.bios[id.0 as usize]
    }

    /// bio_split(): cuts the first `sectors` off `bio` as a piece of its own, which never merges.
    /// `None` when no bio slot is free. Panics if nothing would be left.
    pub fn split_bio(&mut self, bio: BioId, sectors: Sectors) -> Option<BioId> {
        let whole = self.bio(bio).clone();
        assert!(
            whole.sectors > sectors,
            "a split leaves something on both sides"
        );
        let share = u64::from(whole.segments) * u64::from(sectors.0);
        let segments = share.div_ceil(u64::from(whole.sectors.0)).max(1) as u16;
        let mut flags = whole.flags;
        flags.nomerge = true;
        let front = Bio {
            sectors,
            segments,
            flags,
            parent: Some(bio),
            pieces: 0,
            ..whole
        };
        let front = self.add_bio(front)?;
        let rest = self.bio_mut(bio);
        rest.sector = rest.sector.end(sectors);
        rest.sectors.0 -= sectors.0;
        rest.segments = (rest.segments - segments.min(rest.segments)).max(1);
        rest.pieces += 1;
        Some(front)
    }

    /// bio_endio(): one piece has ended. The whole bio with the first error of all its pieces
    /// when it was the last one.
    pub fn end_piece(&mut self, piece: BioId, status: Status) -> Option<(BioId, Status)> {
        let whole = self.bio(piece).parent.unwrap_or(piece);
        if whole == piece {
            self.bio_mut(whole).ended = true;
        } else {
            self.free_bio(piece);
            self.bio_mut(whole).pieces -= 1;
        }
        let bio = self.bio_mut(whole);
        if bio.status == Status::Ok {
            bio.status = status;
        }
        (bio.ended && bio.pieces == 0).then_some((whole, bio.status))
    }

    /// Bios of `rq`, oldest address first.
    pub fn bios_of(&self, rq: RequestId) -> impl Iterator<Item = BioId> + '_ {
        let mut next = self[rq].bio_first;
        core::iter::from_fn(move || {
            let id = next?;
            next = self.bio(id).next;
            Some(id)
        })
    }

    /// Makes `rq` the request of `bio` alone: operation, address, priority come from the bio.
    pub fn bio_to_request(&mut self, rq: RequestId, bio: BioId) {
        let b = self.bios[bio.0 as usize].clone();
        self.bios[bio.0 as usize].next = None;
        let r = &mut self[rq];
        r.op = b.op;
        r.flags = b.flags;
        r.sector = b.sector;
        r.sectors = b.sectors;
        r.segments = b.segments;
        r.ioprio = b.ioprio;
        r.polled = b.flags.polled;
        r.bio_first = Some(bio);
        r.bio_last = Some(bio);
        r.bio_count = 1;
    }

    /// Appends `bio` behind the data of `rq`.
    pub fn append_bio(&mut self, rq: RequestId, bio: BioId) {
        let (sectors, segments) = (self.bio(bio).sectors, self.bio(bio).segments);
        self.bio_mut(bio).next = None;
        match self[rq].bio_last {
            Some(last) => self.bio_mut(last).next = Some(bio),
            None => self[rq].bio_first = Some(bio),
        }
        let r = &mut self[rq];
        r.bio_last = Some(bio);
        r.bio_count += 1;
        r.sectors.0 += sectors.0;
        r.segments += segments;
    }

    /// Puts `bio` before the data of `rq`, which then starts at the bio's sector.
    pub fn prepend_bio(&mut self, rq: RequestId, bio: BioId) {
        let (sector, sectors, segments) = (
            self.bio(bio).sector,
            self.bio(bio).sectors,
            self.bio(bio).segments,
        );
        let first = self[rq].bio_first;
        self.bio_mut(bio).next = first;
        let r = &mut self[rq];
        if first.is_none() {
            r.bio_last = Some(bio);
        }
        r.bio_first = Some(bio);
        r.bio_count += 1;
        r.sector = sector;
        r.sectors.0 += sectors.0;
        r.segments += segments;
    }

    /// Moves all bios of `absorbed` behind those of `rq` and adds its length.
    /// `absorbed` is left without bios; the earlier start time survives.
    pub fn absorb(&mut self, rq: RequestId, absorbed: RequestId) {
        let gone = self[absorbed].clone();
        if let (Some(last), Some(first)) = (self[rq].bio_last, gone.bio_first) {
            self.bio_mut(last).next = Some(first);
        }
        let r = &mut self[rq];
        r.bio_first = r.bio_first.or(gone.bio_first);
        r.bio_last = gone.bio_last.or(r.bio_last);
        r.bio_count += gone.bio_count;
        r.sectors.0 += gone.sectors.0;
        r.segments += gone.segments;
        r.start_time = r.start_time.min(gone.start_time);
        let a = &mut self[absorbed];
        a.bio_first = None;
        a.bio_last = None;
        a.bio_count = 0;
    }

    /// Resets a slot for its next user. Panics if it is still in use.
    pub fn reset(&mut self, rq: RequestId) {
        let r = &mut self[rq];
        assert_eq!(r.place, Place::Free, "request slot reused while in use");
        *r = Request::default();
    }
}

impl Index<RequestId> for RequestPool {
    type Output = Request;
    fn index(&self, id: RequestId) -> &Request {
        &self.requests[id.0 as usize]
    }
}

impl IndexMut<RequestId> for RequestPool {
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        self.touch(id);
        &mut self.requests[id.0 as usize]
    }
}

impl fmt::Debug for RequestPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = self.iter().filter(|(_, rq)| rq.place != Place::Free);
        f.debug_map()
            .entries(live.map(|(id, rq)| (id.0, rq)))
            .finish()
    }
}
