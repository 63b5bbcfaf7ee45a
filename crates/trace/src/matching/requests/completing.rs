//! C: which bios are done, of a whole request, a part of one, or without any.
//!
//! Kernel: blk_update_request() in block/blk-mq.c, bio_endio() in block/bio.c (v6.12).

use super::{Prefer, Requests};
use crate::blktrace::{Categories, Event};
use crate::matching::io::Io;
use crate::matching::live::{Live, Stage};
use crate::matching::table::NONE;

impl Requests {
    /// C. Passes on the bios that are done; returns true if any fitted.
    #[inline]
    pub(in crate::matching) fn complete(&mut self, event: &Event, done: &mut Vec<Io>) -> bool {
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
        // Only requests have FS. A bio completes on its own if it got no request: EAGAIN for want
        // of one, or a device that has none.
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
}
