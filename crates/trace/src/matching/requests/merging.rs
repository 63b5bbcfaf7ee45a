//! M and F: merges of bios and of whole requests.
//!
//! The kernel has already applied the rules of merging.
//! Kernel: bio_attempt_back_merge(), attempt_merge() in block/blk-merge.c (v6.12).

use super::{Prefer, Requests};
use crate::blktrace::Event;
use crate::matching::io::Join;
use crate::matching::live::{Live, Stage};
use crate::matching::table::NONE;

impl Requests {
    /// M or F: of a bio, else of a whole request.
    pub(in crate::matching) fn merge(&mut self, event: &Event, join: Join) {
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
            // The request's own events are missing: until its D, this bio leads one.
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
    pub(super) fn join(&mut self, leader: u32, id: u32) {
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

    /// Makes one request of all that lie wholly inside the event's range: the events that joined
    /// them are missing. `NONE` if there are none.
    #[cold]
    pub(super) fn gather(&mut self, event: &Event, fits: impl Fn(&Live) -> bool) -> u32 {
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
}
