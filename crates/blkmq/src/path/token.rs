//! Tokens of a scheduler: allocation, waiting for one, free, and a change of their number.
//!
//! A frame of its own, called by a scheduler's dispatch under the lock that protects the hctx's
//! entry (khd->lock), and by a hook without. The scheduler decides which map is used, and which
//! request gets the token. Kernel: kyber_get_domain_token(), kyber_domain_wake(),
//! rq_clear_domain_token() in block/kyber-iosched.c, sbitmap_add_wait_queue(),
//! sbitmap_del_wait_queue() in lib/sbitmap.c (6.1.192, 6.12.117).

use super::run::wake;
use super::sbitmap::{TagMap, sbitmap_get};
use crate::call::Token;
use crate::env::{Answer, Cpu};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, RequestQueue, TokenMap, TokenWait, WORDS_MAX};
use crate::request::{CpuId, HctxId, QueueId};
use crate::sbitmap::{Put, PutStep, Resize, ResizeStep, WAIT_QUEUES};
use crate::step::{Cx, Next, Steps as _, Sub, lock};
use crate::tags::Waiter;

labels! {
    pub enum At in "token" {
        /// Take one.
        Get,
        /// None is free: is the hctx in a wait queue already?
        Waits,
        /// Count it among the waiters.
        Count,
        /// Under the lock of a wait queue: add the entry.
        Line,
        /// Take one that was freed before the entry was added.
        Retry,
        /// With a token: is the hctx in a wait queue?
        Stale,
        /// Under the lock of the wait queue: remove the entry, so that the wake-up goes to another.
        Leave,
        /// Free one, and wake its waiters.
        Put,
        /// Change the number of tokens.
        Resize,
    }
}

/// Allocation or free of a token. The allocation answers in the CPU: `Answer::Token` or `NoToken`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokenPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    map: u8,
    /// The hctx whose entry waits.
    hctx: HctxId,
    /// The current wait queue.
    ws_index: u32,
    /// The token that is being allocated or freed.
    number: Option<u32>,
    way: Way,
}

/// Position within the map's operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Way {
    /// Before its begin, or after its end.
    No,
    To(sbitmap_get::State),
    Back(Put),
    Size(Resize),
}

impl TokenPath {
    /// A token of this map for a request that this hctx would dispatch.
    pub(super) fn get(queue: QueueId, hctx: HctxId, map: u8) -> TokenPath {
        TokenPath {
            at: At::Get,
            queue,
            map,
            hctx,
            ws_index: 0,
            number: None,
            way: Way::No,
        }
    }

    /// Frees this token; its request was allocated on CPU `owner`.
    pub(super) fn put(queue: QueueId, token: Token, owner: CpuId) -> TokenPath {
        TokenPath {
            at: At::Put,
            way: Way::Back(Put::one(token.number, owner)),
            ..TokenPath::get(queue, HctxId(0), token.map)
        }
    }

    /// Changes the number of the map's tokens.
    pub(super) fn resize(queue: QueueId, map: u8, depth: u32) -> TokenPath {
        TokenPath {
            at: At::Resize,
            way: Way::Size(Resize::to(depth)),
            ..TokenPath::get(queue, HctxId(0), map)
        }
    }

    pub(super) fn stage(&self) -> Option<&'static str> {
        match &self.way {
            Way::No => None,
            Way::To(get) => get.stage(),
            Way::Back(put) => Some(put.stage().name()),
            Way::Size(resize) => Some(resize.stage().name()),
        }
    }

    /// The token that no request has yet, or any more, while its bit is set.
    fn owned(&self) -> Option<Token> {
        let number = match &self.way {
            Way::Back(put) => put.owned_bit(),
            Way::No | Way::To(_) | Way::Size(_) => self.number,
        };
        let map = self.map;
        number.map(|number| Token { map, number })
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let at = self.at;
        let has = matches!(at, At::Stale | At::Leave);
        assert_eq!(self.number.is_some(), has, "{at:?}: owns a token");
        let way = match self.way {
            Way::No => !matches!(at, At::Put | At::Resize),
            Way::To(_) => matches!(at, At::Get | At::Retry),
            Way::Back(_) => at == At::Put,
            Way::Size(_) => at == At::Resize,
        };
        assert!(way, "{at:?} with {:?}", self.way);
        let tokens = self.tokens(mq.queue(self.queue));
        let lines = tokens.map.wait.len();
        assert!((self.ws_index as usize) < lines, "{at:?}: no such line");
        if let Some(Token { number, .. }) = self.owned() {
            let busy = tokens.map.is_busy(number) || tokens.map.given_twice;
            assert!(busy, "{at:?}: {number} is free");
        }
    }

    pub(super) fn check_over(&self) {
        assert!(!matches!(self.way, Way::To(_)), "it searches for a token");
        assert_eq!(self.number, None, "owns a token");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Get | At::Retry => self.search(cx),
            At::Waits => {
                if self.wait(cx.q).queued.test(cx.cpu) {
                    return none(cx.cpu);
                }
                self.at = At::Count;
                Next::Step
            }
            At::Count => self.count(cx),
            At::Line => self.enqueue(cx),
            At::Stale => {
                let wait = self.wait(cx.q);
                if !wait.queued.test(cx.cpu) {
                    return self.got(cx.cpu);
                }
                self.ws_index = wait.ws_index.get();
                self.at = At::Leave;
                self.ws_lock()
            }
            At::Leave => self.leave(cx),
            At::Put => self.give_back(cx.mq, cx.cpu),
            At::Resize => {
                let Way::Size(resize) = &mut self.way else {
                    unreachable!("the map is resized");
                };
                let map = usize::from(self.map);
                match resize.step(&cx.q.tokens[map].map, cx.cpu) {
                    ResizeStep::Step => Next::Step,
                    ResizeStep::Lock(word) => {
                        let index = u32::from(self.map) * WORDS_MAX + word;
                        cx.lock(LockKind::TokenSwap, index)
                    }
                    ResizeStep::Done => Next::Done,
                }
            }
        }
    }

    fn tokens<'a>(&self, q: &'a RequestQueue) -> &'a TokenMap {
        &q.tokens[usize::from(self.map)]
    }

    fn wait<'a>(&self, q: &'a RequestQueue) -> &'a TokenWait {
        &self.tokens(q).waits[usize::from(self.hctx.0)]
    }

    fn ws_lock(&self) -> Next {
        let first = usize::from(self.map) * WAIT_QUEUES;
        lock(
            self.queue,
            LockKind::TokenWait,
            first as u32 + self.ws_index,
        )
    }

    /// __sbitmap_queue_get().
    fn search(&mut self, cx: &mut Cx<'_>) -> Next {
        let map = &self.tokens(cx.q).map;
        let mut get = match self.way {
            Way::To(get) => get,
            _ => sbitmap_get::State::new(TagMap::Token(self.map), map.hint_before(cx.cpu), None),
        };
        let step = get.step(cx);
        self.way = Way::No;
        match step {
            Sub::Wait(next) => {
                self.way = Way::To(get);
                next
            }
            Sub::Done(Some(bit)) => {
                self.number = Some(bit);
                self.at = At::Stale;
                Next::Step
            }
            Sub::Done(None) if self.at == At::Retry => none(cx.cpu),
            Sub::Done(None) => {
                self.at = At::Waits;
                Next::Step
            }
        }
    }

    /// sbq_wait_ptr(), and the count of sbitmap_add_wait_queue(), which comes before the lock.
    fn count(&mut self, cx: &mut Cx<'_>) -> Next {
        let map = &self.tokens(cx.q).map;
        map.ws_active.add(cx.cpu, 1);
        let index = &self.wait(cx.q).wait_index;
        self.ws_index = index.get();
        index.put((self.ws_index + 1) % map.wait.len() as u32);
        self.at = At::Line;
        self.ws_lock()
    }

    /// add_wait_queue(): not exclusive, at the head.
    ///
    /// Deviation(D19): the barrier is an addition. Kernels have none between the entry and the
    /// second read; where spin_lock() of swap_lock is none either, that read could miss a token.
    fn enqueue(&mut self, cx: &mut Cx<'_>) -> Next {
        let ws = &self.tokens(cx.q).map.wait[self.ws_index as usize];
        let entry = self.entry();
        ws.edit(cx.cpu, |entries| entries.insert(0, entry));
        let wait = self.wait(cx.q);
        wait.ws_index.put(core::mem::take(&mut self.ws_index));
        wait.queued.set(cx.cpu);
        ws.queue.release(cx.cpu);
        // Pairs with the barrier between freeing a token and looking for waiters.
        cx.mb();
        self.at = At::Retry;
        Next::Step
    }

    fn leave(&mut self, cx: &mut Cx<'_>) -> Next {
        let map = &self.tokens(cx.q).map;
        let ws = &map.wait[core::mem::take(&mut self.ws_index) as usize];
        if ws.remove(cx.cpu, self.entry()) {
            dequeued(self.wait(cx.q), cx.cpu);
            map.ws_active.add(cx.cpu, -1);
        }
        ws.queue.release(cx.cpu);
        self.got(cx.cpu)
    }

    fn entry(&self) -> Waiter {
        Waiter::Hctx {
            queue: self.queue,
            hctx: self.hctx,
            exclusive: false,
        }
    }

    fn got(&mut self, cpu: &mut Cpu) -> Next {
        let number = self.number.take().expect("the path owns a token");
        cpu.answer = Answer::Token(number);
        Next::Done
    }

    /// sbitmap_queue_clear(), and for each hctx that it wakes kyber_domain_wake().
    fn give_back(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let Way::Back(put) = &mut self.way else {
            unreachable!("a token goes back");
        };
        let map = usize::from(self.map);
        let q = mq.queue(self.queue);
        let out = |cpu: &mut Cpu, waiter| {
            let Waiter::Hctx { queue, hctx, .. } = waiter else {
                unreachable!("tasks wait for no token");
            };
            let wait = &mq.queue(queue).tokens[map].waits[usize::from(hctx.0)];
            dequeued(wait, cpu);
            wake(mq.queue(queue), hctx, cpu)
        };
        match put.step(&q.tokens[map].map, q.settings.rules.wake_scan, cpu, out) {
            PutStep::Step => Next::Step,
            PutStep::Lock(ws_index) => {
                let index = (map * WAIT_QUEUES) as u32 + ws_index;
                lock(self.queue, LockKind::TokenWait, index)
            }
            PutStep::Done => Next::Done,
        }
    }
}

/// Clears the mark of the entry. Under the lock of its wait queue.
fn dequeued(wait: &TokenWait, cpu: &mut Cpu) {
    wait.ws_index.put(0);
    wait.queued.clear(cpu);
}

/// No token: the hctx waits, and its wake-up runs it.
fn none(cpu: &mut Cpu) -> Next {
    cpu.answer = Answer::NoToken;
    Next::Done
}
