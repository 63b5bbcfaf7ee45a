//! All variables of the specification, as bytes.
//!
//! Two states with the same projection have the same future; `search.rs` tests that.

use blkmq::queue::RequestQueue;
use blkmq::request::{HctxId, Place, QueueId, RequestId, RequestPool};
use blkmq::rules::{Recheck, TagWait};
use blkmq::sbitmap::Sbitmap;
use blkmq::schedule::view::{self, View};

use super::setting::{HCTXS_MAX, REQUESTS_MAX, Setting};
use super::variables::{Beside, VARIABLES};
use super::world::{At, Hctx, Life, World};
use crate::spec::owner;

/// Marks the end of a list.
const END: u8 = 0xff;

#[derive(Debug)]
struct Sink<'a> {
    bytes: &'a mut Vec<u8>,
    alike: bool,
}

impl Sink<'_> {
    fn value(&mut self, value: u8) {
        self.bytes.push(value);
    }

    fn request(&mut self, request: u8) {
        self.bytes.push(if self.alike { 0 } else { request });
    }
}

impl World {
    /// The variables of the specification, in a fixed order: lists with an end mark.
    pub(super) fn project(&self, setting: &Setting, bytes: &mut Vec<u8>) {
        let alike = setting.symmetry;
        let out = &mut Sink { bytes, alike };
        for hctx in (0..setting.all_hctxs()).map(Hctx) {
            self.project_hctx(setting, hctx, out);
        }
        for queue in 0..setting.queues {
            let q = self.mq.queue(QueueId(queue.into()));
            q.with_pool(|pool| scheduled(q, pool, |rq| out.request(rq)));
            out.value(END);
            out.value(q.restarts.peek() as u8);
        }
        let set = &self.mq.sets[0];
        for (map, count) in set.driver.iter().zip(&set.restarts) {
            out.value((map.depth() - map.busy_count()) as u8);
            out.value(count.peek() as u8);
            waiters(setting, map, |hctx| out.value(hctx.0));
            out.value(END);
        }
        if setting.symmetry {
            return self.project_alike(out);
        }
        for life in [Life::Device, Life::Freed, Life::Done] {
            for request in 0..setting.requests {
                let entry = &self.side.requests[usize::from(request)];
                if entry.life == life {
                    out.request(request);
                    if life != Life::Done {
                        out.value(entry.home.0);
                    }
                }
            }
            out.value(END);
        }
    }

    /// Requests are interchangeable: the projection counts how many are in each place. With lists
    /// of which only the length counts, each orbit is one state.
    fn project_alike(&self, out: &mut Sink<'_>) {
        for life in [Life::Device, Life::Freed] {
            let mut homes = [END; REQUESTS_MAX];
            for (home, entry) in homes.iter_mut().zip(&self.side.requests) {
                if entry.life == life {
                    *home = entry.home.0;
                }
            }
            homes.sort_unstable();
            out.bytes.extend_from_slice(&homes);
        }
        let done = |entry: &&super::world::Request| entry.life == Life::Done;
        let done = self.side.requests.iter().filter(done).count();
        out.value(done as u8);
    }

    fn project_hctx(&self, setting: &Setting, hctx: Hctx, out: &mut Sink<'_>) {
        let q = self.mq.queue(setting.queue_of(hctx));
        let h = q.hctx(setting.index_of(hctx));
        let side = &self.side;
        let flags = u8::from(h.restart.peek())
            | u8::from(side.pending[usize::from(hctx.0)]) << 1
            | u8::from(side.starved[usize::from(hctx.0)]) << 2;
        out.value(flags);
        q.with_pool(|pool| {
            h.dispatch.inspect(|list| {
                for rq in list.iter(pool) {
                    out.request(owner(pool, rq));
                }
            });
            out.value(END);
            for context in 0..setting.contexts {
                let at = self.at(setting, hctx, context);
                let Some(running) = self.running(setting, hctx, context) else {
                    out.value(at as u8);
                    continue;
                };
                let hand = running.path.owned();
                // State that no later action reads is left out.
                let held = at != At::Ask;
                let moved = held && hand.leftovers && hand.moved;
                let no_tag = at == At::PutBack
                    && hand.no_tag
                    && setting.restart.recheck == Recheck::LeftWaitQueue;
                let flags = u8::from(held && hand.leftovers) << 3
                    | u8::from(moved) << 4
                    | u8::from(no_tag) << 5;
                out.value(at as u8 | flags);
                if held {
                    for rq in hand.list.iter(pool) {
                        out.request(owner(pool, rq));
                    }
                    out.value(END);
                }
            }
        });
    }

    /// The variables that schedules show.
    pub(super) fn observed(&self, setting: &Setting) -> Vec<(&'static str, String)> {
        let view = View {
            mq: &self.mq,
            hctxs: u16::from(setting.hctxs),
        };
        let world = self;
        let beside = Explored { setting, world };
        let each = VARIABLES.iter();
        each.map(|(name, _, read)| (*name, read(&view, &beside)))
            .collect()
    }
}

struct Explored<'a> {
    setting: &'a Setting,
    world: &'a World,
}

impl Beside for Explored<'_> {
    fn number(&self, _queue: QueueId, pool: &RequestPool, rq: RequestId) -> u32 {
        u32::from(owner(pool, rq)) + 1
    }

    fn pending(&self, queue: QueueId, hctx: HctxId) -> bool {
        self.world.side.pending[usize::from(self.setting.hctx(queue, hctx).0)]
    }

    fn waiters(&self, map: &Sbitmap) -> String {
        let mut line = Vec::new();
        waiters(self.setting, map, |h| {
            let queue = self.setting.queue_of(h);
            line.push(view::hctx_name(queue, self.setting.index_of(h)));
        });
        view::tuple(line.into_iter())
    }

    fn scheduled(&self, q: &RequestQueue) -> Vec<u32> {
        let mut requests = Vec::new();
        q.with_pool(|pool| scheduled(q, pool, |rq| requests.push(u32::from(rq) + 1)));
        requests
    }

    fn states(&self) -> Vec<(u32, &'static str)> {
        let requests = 0..self.setting.requests;
        let state = |r| (u32::from(r) + 1, self.world.life(r).name());
        requests.map(state).collect()
    }
}

/// The hctxs in the wait queue of a map, in the order of their wake-ups.
fn waiters(setting: &Setting, map: &Sbitmap, mut each: impl FnMut(Hctx)) {
    let mut line = [Hctx(0); HCTXS_MAX];
    let mut count = 0;
    view::waiting(map, |queue, hctx| {
        line[count] = setting.hctx(queue, hctx);
        count += 1;
    });
    let line = &line[..count];
    // If every wake-up wakes all entries, their order is reversed.
    match setting.restart.wait {
        TagWait::WakeOne => line.iter().for_each(|&hctx| each(hctx)),
        TagWait::Nowhere | TagWait::WakeAll => line.iter().rev().for_each(|&hctx| each(hctx)),
    }
}

/// Requests in a queue's scheduler, in dispatch order (by sector).
fn scheduled(q: &RequestQueue, pool: &RequestPool, mut each: impl FnMut(u8)) {
    debug_assert!(q.has_elevator());
    let mut found = [(u64::MAX, 0); REQUESTS_MAX];
    let mut count = 0;
    for (id, rq) in pool.iter() {
        if rq.place == Place::Elevator {
            found[count] = (rq.sector.0, owner(pool, id));
            count += 1;
        }
    }
    found[..count].sort_unstable();
    found[..count].iter().for_each(|&(_, owner)| each(owner));
}
