//! The fixed slabs of a queue's requests and bios, and the CPU that touched each entry last.
//!
//! Not here: the meaning of an entry (`request.rs`), or which path may touch it.

use super::lines::{Lines, RequestLines};
use super::usage::Usage;
use super::{Bio, BioId, CpuId, PAGE_SECTORS, Place, Plugged, Request, RequestId, Sectors, Status};
use crate::list::Links;
use crate::sort::SortNode;
use core::fmt;
use core::ops::{Index, IndexMut};

/// All requests and bios of one queue: fixed slabs, allocated once.
///
/// Indexing a request mutably counts as touching its cache lines.
pub struct RequestPool {
    pub(super) bios: Vec<Bio>,
    pub(super) free_bios: Vec<BioId>,
    pub(crate) slots: Vec<Slot>,
    /// CPU that runs the current label; set by the slab when it is borrowed.
    pub toucher: CpuId,
    /// Cache lines of the entries, and their costs.
    pub lines: Lines,
    pub usage: Usage,
}

/// A request, its links in lists and trees, and its cache lines. Together, so that one index finds
/// all of it.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Slot {
    /// Links of `queuelist`: ctx, dispatch, requeue, fifo.
    pub(crate) queue: Links,
    /// Links of the merge hash.
    pub(crate) hash: Links,
    /// Node of the sort tree.
    pub(crate) sort: SortNode,
    /// `rq->rq_next`: the next request in a plug, perhaps of another queue.
    pub(crate) rq_next: Option<Plugged>,
    /// Copies of its cache lines.
    pub(crate) lines: RequestLines,
    pub(super) request: Request,
}

/// Copying over an existing slot leaves its lines. Free slots are alike: nothing reads what the
/// last user has left.
impl Clone for Slot {
    fn clone(&self) -> Slot {
        Slot {
            queue: self.queue,
            hash: self.hash,
            sort: self.sort,
            rq_next: self.rq_next,
            lines: self.lines.clone(),
            request: self.request.clone(),
        }
    }

    fn clone_from(&mut self, source: &Slot) {
        if [&*self, source].map(|slot| slot.request.place) == [Place::Free; 2] {
            return;
        }
        self.queue = source.queue;
        self.hash = source.hash;
        self.sort = source.sort;
        self.rq_next = source.rq_next;
        self.request.clone_from(&source.request);
    }
}

/// A cache line that a scheduler touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// A request's node of a tree or a hash is read.
    Visit(RequestId),
    /// It is changed.
    Sort(RequestId),
    /// A request's links of a list are changed.
    Link(RequestId),
    /// Other fields of a request are changed.
    Own(RequestId),
    /// The head of a bucket of the merge hash is read.
    Bucket(u8),
    BucketWritten(u8),
    /// `q->last_merge` is read.
    LastMerge,
    LastMergeWritten,
}

impl RequestPool {
    /// Room for `requests` requests and `bios` bios.
    pub fn new(requests: usize, bios: usize) -> RequestPool {
        RequestPool {
            bios: vec![Bio::default(); bios],
            free_bios: (0..bios as u32).rev().map(BioId).collect(),
            slots: vec![Slot::default(); requests],
            toucher: CpuId::default(),
            lines: Lines::default(),
            usage: Usage::default(),
        }
    }

    /// Records that the running CPU works on `rq`.
    #[inline]
    pub(crate) fn touch(&self, rq: RequestId) {
        self.lines
            .own(self.toucher, &self.slots[rq.0 as usize].lines);
    }

    /// Records that the running CPU touches a cache line: for a scheduler whose own code does that
    /// elsewhere.
    pub fn touched(&self, touch: Touch) {
        match touch {
            Touch::Visit(rq) => self.visit(rq),
            Touch::Sort(rq) => self
                .lines
                .resort(self.toucher, &self.slots[rq.0 as usize].lines),
            Touch::Link(rq) => self
                .lines
                .relink(self.toucher, &self.slots[rq.0 as usize].lines),
            Touch::Own(rq) => self.touch(rq),
            Touch::Bucket(bucket) => self.touch_bucket(bucket),
            Touch::BucketWritten(bucket) => self.relink_bucket(bucket),
            Touch::LastMerge => self.touch_last_merge(None),
            Touch::LastMergeWritten => self.change_last_merge(),
        }
    }

    /// Records that the running CPU reads `rq` on its way through a tree or a hash bucket.
    #[inline]
    pub(crate) fn visit(&self, rq: RequestId) {
        self.lines
            .visit(self.toucher, &self.slots[rq.0 as usize].lines);
    }

    /// Records that the running CPU reads the head of a bucket of the merge hash.
    #[inline]
    pub(crate) fn touch_bucket(&self, bucket: u8) {
        self.lines.read_hash(self.toucher, bucket);
    }

    /// Records that the running CPU reads `q->last_merge`, and the request if there is one.
    #[inline]
    pub(crate) fn touch_last_merge(&self, rq: Option<RequestId>) {
        self.lines.read_last_merge(self.toucher);
        if let Some(rq) = rq {
            self.visit(rq);
        }
    }

    /// blk_try_enter_queue(): adds a user. False: the queue is frozen.
    pub(crate) fn enter_queue(&mut self) -> bool {
        self.touch_queue();
        self.usage.enter()
    }

    /// Adds so many users, besides an existing one.
    pub(crate) fn get_queue(&mut self, more: u32) {
        self.touch_queue();
        self.usage.get(more);
    }

    /// blk_queue_exit(): removes a user. True: the waiters for the last one must be woken.
    pub(crate) fn exit_queue(&mut self) -> bool {
        self.touch_queue();
        self.usage.exit()
    }

    /// Records that the running CPU reads q_usage_counter, on the line of last_merge.
    #[inline]
    pub(crate) fn touch_queue(&self) {
        self.lines.read_queue(self.toucher);
    }

    /// Records that the running CPU changes `q->last_merge`.
    #[inline]
    pub(crate) fn change_last_merge(&self) {
        self.lines.write_last_merge(self.toucher);
    }

    /// Records that the running CPU changes the head of a bucket of the merge hash.
    #[inline]
    pub(crate) fn relink_bucket(&self, bucket: u8) {
        self.lines.write_hash(self.toucher, bucket);
    }

    /// The request after `rq` in a plug.
    pub(crate) fn next_plugged(&self, rq: RequestId) -> Option<Plugged> {
        self.slots[rq.0 as usize].rq_next
    }

    pub(crate) fn set_next_plugged(&mut self, rq: RequestId, next: Option<Plugged>) {
        self.touch(rq);
        self.slots[rq.0 as usize].rq_next = next;
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there is no slot at all.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All slots in order, free ones included.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.slots
            .iter()
            .enumerate()
            .map(|(i, slot)| (RequestId(i as u32), &slot.request))
    }

    /// Takes a bio slot and fills it. `None` when all are in use.
    pub fn add_bio(&mut self, bio: Bio) -> Option<BioId> {
        self.fill_bio(|slot| *slot = bio)
    }

    /// The same for a bio that is written in its slot, which still has the data of its former user.
    pub fn fill_bio(&mut self, fill: impl FnOnce(&mut Bio)) -> Option<BioId> {
        let id = self.free_bios.pop()?;
        fill(&mut self.bios[id.0 as usize]);
        Some(id)
    }

    pub fn free_bio(&mut self, id: BioId) {
        debug_assert!(!self.free_bios.contains(&id), "bio freed twice");
        self.free_bios.push(id);
    }

    pub fn bios_in_use(&self) -> usize {
        self.bios.len() - self.free_bios.len()
    }

    pub fn bio(&self, id: BioId) -> &Bio {
        &self.bios[id.0 as usize]
    }

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
        let mut flags = whole.flags;
        flags.nomerge = true;
        let front = Bio {
            sectors,
            segments: whole.segments_of(whole.page_offset, sectors),
            flags,
            parent: Some(bio),
            pieces: 0,
            ..whole
        };
        let front = self.add_bio(front)?;
        let rest = self.bio_mut(bio);
        rest.sector = rest.sector.end(sectors);
        rest.sectors.0 -= sectors.0;
        if whole.segments > 1 {
            rest.page_offset = ((u32::from(whole.page_offset) + sectors.0) % PAGE_SECTORS) as u8;
        }
        rest.segments = whole.segments_of(rest.page_offset, rest.sectors);
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

    /// Makes `rq` the request of only `bio`: operation, address, priority come from the bio.
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
        r.io_context = b.io_context;
        r.group = b.group;
        r.polled = b.flags.polled;
        r.bio_first = Some(bio);
        r.bio_last = Some(bio);
        r.bio_count = 1;
    }

    /// Removes the bios of `rq`, which ends, or never began, without them.
    pub(crate) fn take_bios(&mut self, rq: RequestId) {
        let r = &mut self[rq];
        r.bio_first = None;
        r.bio_last = None;
        r.bio_count = 0;
    }

    /// Appends `bio` after the data of `rq`.
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

    /// Appends all bios of `absorbed` to those of `rq` and adds its length. `absorbed` is left
    /// without bios; the earlier start time survives.
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
        assert!(r.place == Place::Free, "request slot reused while in use");
        *r = Request::default();
    }
}

impl Index<RequestId> for RequestPool {
    type Output = Request;
    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id.0 as usize].request
    }
}

impl IndexMut<RequestId> for RequestPool {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        let slot = &mut self.slots[id.0 as usize];
        self.lines.own(self.toucher, &slot.lines);
        &mut slot.request
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
