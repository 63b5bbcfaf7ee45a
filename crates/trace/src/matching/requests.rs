//! The unfinished bios and requests of one device, and what each event does to them.
//!
//! Finding candidates and changing them; which counter goes up is `matcher`'s business.
//! Kernel: block/blk-mq.c, blk-merge.c (v6.12), for what a request and its bios share.

use blkmq::time::SimTime;

use super::flushes::Flushes;
use super::io::{Io, Join, Origin};
use super::live::{Live, Stage};
use super::table::{NONE, Table};
use crate::blktrace::{Categories, Device, Event, Location};

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
    /// Unfinished bios: not their parts, not what was only remapped so far.
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

    /// Q.
    #[inline]
    pub(super) fn queue(&mut self, event: &Event) {
        let sector = event.sector;
        let mut id = self.table.first(sector);
        // A chain is short, most often empty: what starts here was rarely started before.
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

    /// G.
    #[inline]
    pub(super) fn get_request(&mut self, event: &Event) {
        let id = self.queued(event);
        if id != NONE {
            let live = self.table.get_mut(id);
            live.g = event.time;
            live.stage = Stage::Waiting;
        }
    }

    /// X.
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

    /// M or F: of a bio, else of a whole request.
    pub(super) fn merge(&mut self, event: &Event, join: Join) {
        let mut id = self.queued(event);
        let is_bio = id != NONE;
        if !is_bio {
            id = self.waiting_exact(event);
        }
        if id == NONE {
            return;
        }
        let leader = self.neighbour(event, join, id);
        let live = self.table.get_mut(id);
        if is_bio {
            live.m = event.time;
            live.join = join;
            live.stage = Stage::Waiting;
        }
        if leader == NONE {
            // The request's own events are missing: until its D comes, this bio leads one.
            return;
        }
        if !is_bio {
            live.absorbed = true;
            let mut member = live.first_member;
            while member != NONE {
                let live = self.table.get_mut(member);
                live.absorbed = true;
                member = live.next_member;
            }
        }
        self.join(leader, id);
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

    /// Request that ends where the event begins (M), or begins where it ends (F).
    fn neighbour(&mut self, event: &Event, join: Join, except: u32) -> u32 {
        if join == Join::Front {
            let rank = |live: &Live| match live.stage {
                Stage::Waiting => 1 + u32::from(live.pid == event.pid),
                _ => 0,
            };
            return self.pick(event, event.end(), Prefer::Newest, rank);
        }
        let fits = |live: &Live| {
            live.stage == Stage::Waiting && live.stop == event.sector && live.same_kind(event)
        };
        if self.hint != NONE && self.hint != except && fits(self.table.get(self.hint)) {
            return self.hint;
        }
        let (mut best, mut equal) = ((0, NONE), 0);
        let from = event.sector.saturating_sub(self.longest);
        self.table.near(from, event.sector, |id, live| {
            if id != except && fits(live) {
                let rank = 1 + u32::from(live.pid == event.pid);
                equal = if rank == best.0 { equal + 1 } else { equal };
                if rank > best.0 {
                    best = (rank, id);
                    equal = 0;
                }
            }
        });
        if equal > 0 {
            self.count_ambiguous(event);
        }
        self.hint = best.1;
        best.1
    }

    /// Puts a bio with all that joined it under another leader, and widens its range.
    fn join(&mut self, leader: u32, id: u32) {
        assert_ne!(leader, id);
        self.table.detach(id);
        let live = self.table.get_mut(id);
        let (start, stop) = (live.start, live.stop);
        let (first, last) = (live.first_member, live.last_member);
        live.stage = Stage::Member;
        live.next_member = first;
        (live.first_member, live.last_member) = (NONE, NONE);
        let last = if last == NONE { id } else { last };
        let head = self.table.get_mut(leader);
        let before = std::mem::replace(&mut head.last_member, last);
        if before == NONE {
            head.first_member = id;
        }
        let old_start = head.start;
        head.start = start.min(old_start);
        head.stop = stop.max(head.stop);
        let (new_start, length) = (head.start, head.stop - head.start);
        if before != NONE {
            self.table.get_mut(before).next_member = id;
        }
        self.longest = self.longest.max(length);
        if new_start != old_start {
            self.table.detach(leader);
            self.table.attach(leader, new_start);
        }
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

    /// I.
    #[inline]
    pub(super) fn insert(&mut self, event: &Event) {
        let id = self.waiting_exact(event);
        if id != NONE {
            self.each(id, |live| live.i = event.time);
        }
    }

    /// D. A request nobody announced begins its life here.
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
        self.bios += usize::from(self.table.get(id).stage == Stage::Remapped);
        self.table.get_mut(id).stage = Stage::Issued;
        self.each(id, |live| live.d = event.time);
    }

    /// Makes one request of all that lie wholly inside the event's range: the events that joined
    /// them are missing. `NONE` if there are none.
    #[cold]
    fn gather(&mut self, event: &Event, fits: impl Fn(&Live) -> bool) -> u32 {
        let (from, to) = (event.sector, event.end());
        let mut inside = std::mem::take(&mut self.scratch);
        inside.clear();
        self.table.near(from, to, |id, live| {
            let within = live.start >= from && live.stop <= to;
            if within && live.same_kind(event) && fits(live) {
                inside.push(id);
            }
        });
        inside.sort_unstable_by_key(|&id| (self.table.get(id).start, self.table.get(id).seen));
        let leader = inside.first().copied().unwrap_or(NONE);
        for &id in inside.iter().skip(1) {
            self.bios += usize::from(self.table.get(id).stage == Stage::Remapped);
            self.join(leader, id);
        }
        self.scratch = inside;
        leader
    }

    /// R.
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
            // The order of age goes by the first sight.
            let seen = live.seen;
            *live = Live {
                seen,
                ..Live::new(event, Stage::Remapped, origin)
            };
            return;
        }
        self.enter(Live::new(event, Stage::Remapped, origin));
    }

    /// C. Gives the bios that are done; says whether anything fitted.
    #[inline]
    pub(super) fn complete(&mut self, event: &Event, done: &mut Vec<Io>) -> bool {
        let end = event.end();
        let id = self.completing(event, end);
        if id == NONE {
            return false;
        }
        let Live {
            stop, first_member, ..
        } = *self.table.get(id);
        if stop > end {
            self.complete_front(id, end, event, done);
        } else if first_member == NONE {
            self.complete_bio(id, event, done);
        } else {
            self.complete_front(id, u64::MAX, event, done);
        }
        true
    }

    #[inline]
    fn completing(&mut self, event: &Event, end: u64) -> u32 {
        // Only requests say FS. A bio completes on its own if it got no request: EAGAIN for
        // want of one, or a device that has none.
        if !event.categories.any(Categories::FS) {
            let id = self.pick(event, event.sector, Prefer::Oldest, |live| {
                u32::from(live.stage == Stage::Queued && live.stop == end)
            });
            if id != NONE {
                return id;
            }
        }
        let id = self.pick(event, event.sector, Prefer::Oldest, |live| {
            if live.stage != Stage::Issued || live.stop < end {
                return 0;
            }
            1 + u32::from(live.stop == end)
        });
        if id != NONE {
            return id;
        }
        let id = self.gather(event, |live| live.stage == Stage::Issued);
        if id != NONE {
            return id;
        }
        // Its D is missing, or it failed before.
        self.pick(event, event.sector, Prefer::Oldest, |live| {
            u32::from(matches!(live.stage, Stage::Waiting | Stage::Queued) && live.stop == end)
        })
    }

    /// Completes the bios of a request up to a sector; the rest stays issued.
    #[cold]
    fn complete_front(&mut self, leader: u32, upto: u64, event: &Event, done: &mut Vec<Io>) {
        let mut bios = std::mem::take(&mut self.scratch);
        bios.clear();
        let Live {
            stop, first_member, ..
        } = *self.table.get(leader);
        bios.push(leader);
        let mut member = first_member;
        while member != NONE {
            bios.push(member);
            member = self.table.get(member).next_member;
        }
        self.table.detach(leader);
        let mut rest: u32 = NONE;
        for &id in &bios {
            if self.table.get(id).end <= upto {
                self.complete_bio(id, event, done);
                continue;
            }
            let live = self.table.get_mut(id);
            (live.first_member, live.last_member, live.next_member) = (NONE, NONE, NONE);
            live.start = upto;
            live.stop = stop;
            if rest == NONE {
                rest = id;
                self.table.get_mut(id).stage = Stage::Issued;
                self.table.attach(id, upto);
            } else {
                self.join(rest, id);
            }
        }
        self.scratch = bios;
    }

    /// Ends one bio, or one part.
    #[inline]
    fn complete_bio(&mut self, id: u32, event: &Event, done: &mut Vec<Io>) {
        if self.hint == id {
            self.hint = NONE;
        }
        let live = self.table.get(id);
        if live.parent == NONE {
            let mut io = live.io(self.device, Some(event.time));
            io.error = event.error;
            done.push(io);
            self.bios -= 1;
        } else {
            let part = *live;
            self.complete_part(&part, event, done);
        }
        self.table.remove(id);
    }

    #[cold]
    fn complete_part(&mut self, part: &Live, event: &Event, done: &mut Vec<Io>) {
        let parent = self.table.get_mut(part.parent);
        if parent.error == 0 {
            parent.error = event.error;
        }
        if part.sector == parent.sector {
            (parent.join, parent.absorbed) = (part.join, part.absorbed);
            (parent.g, parent.m, parent.i) = (part.g, part.m, part.i);
        }
        parent.d = parent.d.min(part.d);
        parent.requeues += part.requeues;
        parent.parts_left -= 1;
        if parent.parts_left == 0 {
            done.push(parent.io(self.device, Some(event.time)));
            self.table.remove(part.parent);
            self.bios -= 1;
        }
    }

    /// Gives up everything: what is a bio goes to `done` without completion.
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
