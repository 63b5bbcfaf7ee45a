//! The unfinished bios and requests of one device, and the effect of each event on them.
//!
//! Finds candidates and changes them; `matcher` counts. Merges are in `merging`, completions in
//! `completing`.
//! Kernel: block/blk-mq.c, blk-merge.c (v6.12), for the fields that a request and its bios share.

use blkmq::time::SimTime;

use super::flushes::Flushes;
use super::io::{Io, Origin};
use super::live::{Live, Stage};
use super::table::{NONE, Table};
use crate::blktrace::{Device, Event, Location};

mod completing;
mod merging;

/// See the head of the file.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) device: Device,
    pub(super) table: Table<Live>,
    pub(super) flushes: Flushes,
    pub(super) ambiguous: u64,
    pub(super) ambiguous_first: Option<Location>,
    /// Sectors of the longest request ever led: how far before a sector one can start.
    longest: u64,
    /// Unfinished bios: not their parts, not those that were only remapped so far.
    pub(super) bios: usize,
    /// Request that a bio joined last: the next one of a stream joins it too.
    hint: u32,
    scratch: Vec<u32>,
}

/// Which of several candidates of the same rank is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prefer {
    Newest,
    Oldest,
}

impl Requests {
    pub(super) fn new(device: Device) -> Requests {
        Requests {
            device,
            table: Table::new(),
            flushes: Flushes::default(),
            ambiguous: 0,
            ambiguous_first: None,
            longest: 0,
            bios: 0,
            hint: NONE,
            scratch: Vec::new(),
        }
    }

    /// Adds a bio that leads a request or is about to.
    #[inline]
    pub(super) fn enter(&mut self, live: Live) {
        self.longest = self.longest.max(live.stop - live.start);
        let id = self.table.add(live);
        self.table.attach(id, live.start);
    }

    /// The best candidate that leads a request (or is about to) starting at a sector, by rank;
    /// rank 0 is none.
    #[inline]
    fn pick(
        &mut self,
        event: &Event,
        sector: u64,
        prefer: Prefer,
        rank: impl Fn(&Live) -> u32,
    ) -> u32 {
        let mut best = (0, NONE);
        let mut equal = 0;
        let mut id = self.table.first(sector);
        while id != NONE {
            let live = self.table.get(id);
            if live.start == sector && live.same_kind(event) {
                let rank = rank(live);
                if rank > best.0 {
                    best = (rank, id);
                    equal = 0;
                } else if rank > 0 && rank == best.0 {
                    equal += 1;
                    let best_seen = self.table.get(best.1).seen;
                    let newer = live.seen > best_seen;
                    if newer == (prefer == Prefer::Newest) && live.seen != best_seen {
                        best.1 = id;
                    }
                }
            }
            id = self.table.after(id);
        }
        if equal > 0 {
            self.count_ambiguous(event);
        }
        best.1
    }

    #[cold]
    fn count_ambiguous(&mut self, event: &Event) {
        self.ambiguous += 1;
        self.ambiguous_first.get_or_insert(event.location);
    }

    #[inline]
    pub(super) fn queue(&mut self, event: &Event) {
        let sector = event.sector;
        let mut id = self.table.first(sector);
        // A chain is short, most often empty: few unfinished bios start in one region.
        while id != NONE {
            let live = self.table.get_mut(id);
            let same = live.start == sector && live.stop == event.end() && live.same_kind(event);
            if same && live.stage == Stage::Remapped {
                live.stage = Stage::Queued;
                live.q = event.time;
                self.bios += 1;
                return;
            }
            // Kernels before 5.8 or so report the remainder of a split once more.
            let own = live.pid == event.pid && live.stage == Stage::Queued;
            if same && own && live.parent != NONE {
                return;
            }
            id = self.table.after(id);
        }
        let mut live = Live::new(event, Stage::Queued, Origin::Queue);
        live.q = event.time;
        self.bios += 1;
        self.enter(live);
    }

    /// A bio without request at the start of the event's range, cut to that range if longer.
    #[inline]
    fn queued(&mut self, event: &Event) -> u32 {
        let end = event.end();
        let id = self.pick(event, event.sector, Prefer::Newest, |live| {
            if live.stage != Stage::Queued || live.stop < end {
                return 0;
            }
            1 + u32::from(live.pid == event.pid) + 2 * u32::from(live.stop == end)
        });
        if id != NONE && self.table.get(id).stop > end {
            return self.cut(id, end);
        }
        id
    }

    #[inline]
    pub(super) fn get_request(&mut self, event: &Event) {
        let id = self.queued(event);
        if id != NONE {
            let live = self.table.get_mut(id);
            live.g = event.time;
            live.stage = Stage::Waiting;
        }
    }

    pub(super) fn split_at(&mut self, event: &Event) {
        // `queued` cuts a bio that is longer; one that already ends there was cut before.
        self.queued(event);
    }

    /// Cuts a bio or part in two at a sector inside it. Returns the front.
    fn cut(&mut self, id: u32, at: u64) -> u32 {
        let whole = *self.table.get(id);
        assert!(whole.sector < at);
        assert!(at < whole.end);
        let mut rest = Live {
            sector: at,
            start: at,
            parent: whole.parent,
            ..whole
        };
        if whole.parent != NONE {
            let front = self.table.get_mut(id);
            front.end = at;
            front.stop = at;
            let parent = self.table.get_mut(whole.parent);
            parent.parts += 1;
            parent.parts_left += 1;
            self.enter(rest);
            return id;
        }
        // The bio itself keeps its place in the order of age.
        self.table.detach(id);
        let parent = self.table.get_mut(id);
        parent.stage = Stage::Parted;
        parent.parts = 2;
        parent.parts_left = 2;
        rest.parent = id;
        let front = Live {
            end: at,
            stop: at,
            parent: id,
            ..whole
        };
        self.enter(rest);
        let front_id = self.table.add(front);
        self.table.attach(front_id, front.start);
        front_id
    }

    /// Request that is not with the driver and has exactly the event's range.
    #[inline]
    fn waiting_exact(&mut self, event: &Event) -> u32 {
        let end = event.end();
        self.pick(event, event.sector, Prefer::Newest, |live| {
            if live.stage != Stage::Waiting || live.stop != end {
                return 0;
            }
            1 + u32::from(live.pid == event.pid) + 2 * u32::from(live.i == SimTime::NEVER)
        })
    }

    /// Changes the leader and all that joined it.
    #[inline]
    fn each(&mut self, leader: u32, mut change: impl FnMut(&mut Live)) {
        let live = self.table.get_mut(leader);
        change(live);
        let mut member = live.first_member;
        while member != NONE {
            let live = self.table.get_mut(member);
            change(live);
            member = live.next_member;
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, event: &Event) {
        let id = self.waiting_exact(event);
        if id != NONE {
            self.each(id, |live| live.i = event.time);
        }
    }

    /// D. A request without earlier events begins its life here.
    #[inline]
    pub(super) fn issue(&mut self, event: &Event) {
        let end = event.end();
        let mut id = self.pick(event, event.sector, Prefer::Oldest, |live| {
            if !live.may_issue() || live.stop != end {
                return 0;
            }
            let waiting = live.stage == Stage::Waiting;
            1 + 2 * u32::from(waiting) + u32::from(live.i != SimTime::NEVER)
        });
        if id == NONE {
            id = self.gather(event, Live::may_issue);
        }
        if id == NONE {
            let mut live = Live::new(event, Stage::Issued, Origin::Issue);
            live.d = event.time;
            self.bios += 1;
            self.enter(live);
            return;
        }
        let live = self.table.get_mut(id);
        self.bios += usize::from(live.stage == Stage::Remapped);
        live.stage = Stage::Issued;
        self.each(id, |live| live.d = event.time);
    }

    pub(super) fn requeue(&mut self, event: &Event) {
        let end = event.end();
        let id = self.pick(event, event.sector, Prefer::Newest, |live| {
            u32::from(live.stage == Stage::Issued && live.stop == end)
        });
        if id != NONE {
            self.table.get_mut(id).stage = Stage::Waiting;
            self.each(id, |live| {
                live.requeues += 1;
                live.d = SimTime::NEVER;
            });
        }
    }

    /// A. A path that is busy sends the same request again: one life, not two.
    pub(super) fn remap(&mut self, event: &Event) {
        let end = event.end();
        let origin = Origin::Remap {
            from: event.from,
            sector: event.extra,
        };
        let again = self.pick(event, event.sector, Prefer::Newest, |live| {
            let same = live.stop == end && live.origin == origin;
            u32::from(same && live.stage == Stage::Remapped)
        });
        if again != NONE {
            let live = self.table.get_mut(again);
            // Age is the order of first events.
            let seen = live.seen;
            *live = Live {
                seen,
                ..Live::new(event, Stage::Remapped, origin)
            };
            return;
        }
        self.enter(Live::new(event, Stage::Remapped, origin));
    }

    /// Drops everything: bios go to `done` without completion.
    pub(super) fn abandon(&mut self, done: &mut Vec<Io>) {
        let mut id = self.table.oldest();
        while id != NONE {
            let live = self.table.get(id);
            if live.parent == NONE && live.stage != Stage::Remapped {
                done.push(live.io(self.device, None));
            }
            id = self.table.newer(id);
        }
        let flushes = self.flushes.waiting.drain(..);
        done.extend(flushes.map(|live| live.io(self.device, None)));
        self.table = Table::new();
        self.bios = 0;
        self.hint = NONE;
    }
}
