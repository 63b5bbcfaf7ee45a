//! Allocation of the tag that identifies a request, and waiting for one.
//!
//! Kernel: blk_mq_get_tag(), sbitmap_prepare_to_wait(), sbitmap_finish_wait() (6.1.192, 6.12.117).

use super::{At, Depth, SubmitPath};
use crate::call::{Call, Unplug};
use crate::elevator::Wanted;
use crate::env::Cpu;
use crate::path::OwnedTags;
use crate::path::sbitmap::TagMap;
use crate::path::tag::{self, Search, identity_index, identity_map, search_identity};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, Place};
use crate::rules::Fix;
use crate::sbitmap::Put;
use crate::step::{Cx, Next, Steps as _, Sub};
use crate::waiter::Waiter;

impl SubmitPath {
    /// Labels of the allocation of the tag, and of waiting for it.
    pub(super) fn tag_wait(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Tag | At::TagBatch | At::WaitRetry | At::WaitLast => self.search(cx),
            At::WouldBlock => self.would_block(cx),
            At::WaitRun => {
                self.search = Search::No;
                self.at = At::WaitRetry;
                cx.run(self.hctx, false)
            }
            At::WaitCount => {
                identity_map(cx.mq, cx.q, self.hctx)
                    .ws_active
                    .add(cx.cpu, 1);
                self.waiting = true;
                self.want_wait_queue(cx, At::WaitAdd)
            }
            At::WaitAdd => {
                // The entry of a task that only tries again (`look_again`) is in the queue already.
                let ws = &identity_map(cx.mq, cx.q, self.hctx).wait[self.ws as usize];
                let waiter = Waiter::Task(cx.cpu.task);
                ws.edit(cx.cpu, |entries| {
                    if !entries.contains(&waiter) {
                        entries.push(waiter);
                    }
                });
                cx.mq.task_waits(cx.cpu.task).set(cx.cpu);
                ws.queue.release(cx.cpu);
                // Pairs with the barrier between freeing a tag and looking for waiters.
                cx.mb();
                self.search = Search::No;
                self.to(At::WaitLast)
            }
            At::WaitSleep => {
                // Cached requests are freed, too, whether the plug has others or not.
                if !cx.cpu.plug.is_empty() {
                    return cx.call(Call::Unplug {
                        queue: cx.cpu.plug.queue(),
                        why: Unplug::Schedule,
                    });
                }
                self.at = At::WaitFinish;
                Next::Park
            }
            // __set_current_state(TASK_RUNNING) and list_empty_careful() of finish_wait(): one
            // here, since the entry of a running task is not removed between the two.
            At::WaitFinish => match cx.mq.task_waits(cx.cpu.task).test_and_clear(cx.cpu) {
                true => self.want_wait_queue(cx, At::WaitLeave),
                // The wake-up has removed the entry.
                false => self.to(At::WaitUncount),
            },
            At::WaitLeave => {
                let ws = &identity_map(cx.mq, cx.q, self.hctx).wait[self.ws as usize];
                let stood = ws.remove(cx.cpu, Waiter::Task(cx.cpu.task));
                assert!(stood, "a task that runs was taken out of its line");
                ws.queue.release(cx.cpu);
                self.to(At::WaitUncount)
            }
            At::WaitUncount => self.uncount(cx),
            At::WaitPassOn => self.pass_on(cx),
            at => unreachable!("{at:?} does not wait for a tag"),
        }
    }

    /// The entry is removed: with a tag the request starts, without one everything is tried again,
    /// perhaps on another CPU.
    fn uncount(&mut self, cx: &mut Cx<'_>) -> Next {
        identity_map(cx.mq, cx.q, self.hctx)
            .ws_active
            .add(cx.cpu, -1);
        self.waiting = false;
        if self.rq.is_some() {
            return self.start(cx);
        }
        let (op, polled) = cx.q.with_pool(|pool| {
            let bio = pool.bio(self.bio);
            (bio.op, bio.flags.polled)
        });
        let left = self.hctx;
        self.hctx = cx.set().hctx_for(cx.cpu.id, op, polled);
        self.choose_queue(cx.mq);
        let stays = identity_index(cx.mq, cx.q, left) == identity_index(cx.mq, cx.q, self.hctx);
        if stays || !cx.rules().fixes.has(Fix::PassedOnWake) {
            return self.to(At::WaitRun);
        }
        // It was woken for a tag of a map that it will not use: the wake-up is passed to the next
        // waiter there.
        self.left = left;
        self.put = Some(Put::wake(1));
        self.to(At::WaitPassOn)
    }

    /// The wake-up goes to another waiter of the queue where this task waited.
    fn pass_on(&mut self, cx: &mut Cx<'_>) -> Next {
        let map = TagMap::of_requests(cx.q, self.left);
        let put = self.put.as_mut().expect("a wake-up is passed on");
        if let Some(next) = tag::step_put(put, cx.mq, self.queue, map, cx.cpu) {
            return next;
        }
        self.put = None;
        self.left = HctxId(0);
        self.to(At::WaitRun)
    }

    /// bt_wait_ptr(): the hctx's next wait queue.
    fn choose_queue(&mut self, mq: &BlkMq) {
        let q = mq.queue(self.queue);
        let queues = identity_map(mq, q, self.hctx).wait.len() as u32;
        let index = &q.hctx(self.hctx).wait_index;
        self.ws = index.get();
        index.put((self.ws + 1) % queues);
    }

    pub(in crate::path) fn stage(&self) -> Option<&'static str> {
        let put = self.put.map(|put| put.stage().name());
        self.search.stage().or(put)
    }

    /// A driver tag that was found in a set that queues share, not yet stored in a request.
    pub(in crate::path) fn owned_tag(&self) -> Option<OwnedTags> {
        self.search.owned_tag(self.hctx)
    }

    pub(super) fn search(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut search = match self.search {
            Search::Identity(search) => search,
            Search::Batch(mut search) => {
                let step = search.step(cx);
                self.search = match step {
                    Sub::Wait(_) => Search::Batch(search),
                    Sub::Done(_) => Search::No,
                };
                return match step {
                    Sub::Wait(next) => next,
                    Sub::Done(Some((first, bits))) => {
                        self.adopt_run(cx, first, bits);
                        self.start(cx)
                    }
                    Sub::Done(None) => self.full(cx),
                };
            }
            Search::No => {
                let (shallow, again) = (self.shallow(cx.q), self.at != At::Tag);
                search_identity::State::new(self.hctx, None, shallow, again)
            }
        };
        let step = search.step(cx);
        self.search = match step {
            Sub::Wait(_) => Search::Identity(search),
            Sub::Done(_) => Search::No,
        };
        match step {
            Sub::Wait(next) => next,
            Sub::Done(Some(bit)) => {
                self.rq = Some(tag::adopt(cx, self.hctx, bit));
                self.got(cx)
            }
            Sub::Done(None) => self.full(cx),
        }
    }

    /// A sleeping task tries again, `limited` by limit_depth() or for any tag: for a trace check,
    /// whose capture does not show which tags were taken. False: it does not sleep, or its tags
    /// have no such limit.
    pub fn look_again(&mut self, mq: &BlkMq, limited: bool, cpu: &mut Cpu) -> bool {
        let cx = &mut Cx::of(mq, self.queue, cpu);
        if self.at != At::WaitFinish || self.rq.is_some() || !cx.q.has_elevator() {
            return false;
        }
        self.moved(cx.mq, cx.cpu);
        let shallow = if limited { self.shallow(cx.q) } else { None };
        let hint = Some(identity_map(cx.mq, cx.q, self.hctx).hint_before(cx.cpu));
        let search = search_identity::State::new(self.hctx, hint, shallow, true);
        self.search = Search::Identity(search);
        self.at = At::WaitRetry;
        true
    }

    /// A task without a tag has slept and is on another CPU now, whose hctx it uses: for a trace
    /// check that has read both CPUs from the capture. No effect on a task in a wait queue if that
    /// hctx has another map of tags: its path goes there itself.
    pub fn moved(&mut self, mq: &BlkMq, cpu: &Cpu) {
        let q = mq.queue(self.queue);
        if self.rq.is_some() {
            return;
        }
        let (op, polled) = q.with_pool(|pool| {
            let bio = pool.bio(self.bio);
            (bio.op, bio.flags.polled)
        });
        let here = mq.set_of(self.queue).hctx_for(cpu.id, op, polled);
        if !self.waiting || identity_index(mq, q, here) == identity_index(mq, q, self.hctx) {
            self.hctx = here;
        }
    }

    /// The scheduler's limit_depth.
    pub(super) fn shallow(&self, q: &RequestQueue) -> Option<u32> {
        match self.depth {
            Some(Depth(depth)) => depth,
            None => q.elevator.limit_depth(self.wanted(q)?),
        }
    }

    /// The limit_depth() arguments; none if the request will not enter the scheduler.
    pub(super) fn wanted(&self, q: &RequestQueue) -> Option<Wanted> {
        if !q.has_elevator() || self.passthrough.is_some() {
            return None;
        }
        let whose = q.with_pool(|pool| {
            let bio = pool.bio(self.bio);
            (bio.op, bio.flags, bio.io_context)
        });
        tag::wanted(q, whose)
    }

    fn got(&mut self, cx: &mut Cx<'_>) -> Next {
        if self.waiting {
            return self.to(At::WaitFinish);
        }
        self.start(cx)
    }

    /// A label under the lock of the wait queue.
    fn want_wait_queue(&mut self, cx: &mut Cx<'_>, at: At) -> Next {
        self.at = at;
        TagMap::of_requests(cx.q, self.hctx).wait_lock(cx, self.ws)
    }

    fn full(&mut self, cx: &mut Cx<'_>) -> Next {
        if self.batch {
            // No run of free tags: a single one will do.
            self.batch = false;
            return self.to(At::Tag);
        }
        if cx.pool().bio(self.bio).flags.nowait {
            return self.to(At::WouldBlock);
        }
        match self.at {
            At::Tag => {
                self.choose_queue(cx.mq);
                self.to(At::WaitRun)
            }
            At::WaitRetry if self.waiting => self.want_wait_queue(cx, At::WaitAdd),
            At::WaitRetry => self.to(At::WaitCount),
            _ => self.to(At::WaitSleep),
        }
    }

    /// Tags of a batch: the highest is used first, the others wait in the plug.
    fn adopt_run(&mut self, cx: &mut Cx<'_>, first: u32, bits: u64) {
        self.batch = false;
        cx.cpu.plug.cached_queue = self.queue;
        let flags = cx.q.with_pool(|pool| pool.bio(self.bio).flags);
        cx.pool().get_queue(bits.count_ones() - 1);
        let now = cx.cpu.now();
        let mut left = bits;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let rq = tag::adopt(cx, self.hctx, first + bit);
            if left == 0 {
                self.rq = Some(rq);
                break;
            }
            let mut pool = cx.pool();
            pool[rq].place = Place::PlugCache;
            pool[rq].start_time = now;
            pool[rq].flags = flags;
            cx.cpu.plug.cached.push_front(&mut pool, rq);
        }
    }
}

#[cfg(test)]
mod tests;
