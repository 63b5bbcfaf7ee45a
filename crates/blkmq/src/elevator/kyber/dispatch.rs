//! A dispatch call: selects the domain whose batch continues, a token for it, and a request.
//!
//! khd->lock is held for the whole call, also while it gets a token. Domains without requests or
//! tokens are skipped; the current domain is tried once more after all others. Kernel:
//! kyber_dispatch_request(), kyber_dispatch_cur_domain(), kyber_flush_busy_kcqs() in
//! block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::{DOMAINS, Domain};
use super::shared::{KcqId, KyberShared};
use crate::call::Call;
use crate::names::{Label, labels};
use crate::step::{Next, Sub, probe};

use crate::env::{Answer, Cpu};
use crate::queue::{CTXS_A_WORD, RequestQueue};
use crate::request::{HctxId, RequestId};

labels! {
    /// Labels of a dispatch call after its first one, all under khd->lock.
    pub enum At in "kyber-dispatch" {
        /// Has the current domain requests? One word of its map of ctx queues.
        Look,
        /// Was there a token? Then take the request, or look which ctx queues have some.
        Token,
        /// The next word of the map: which ctx queues have requests?
        Flush,
        /// Under the lock of a ctx queue too: take all that it has of the domain.
        Splice,
        /// Take the request.
        Take,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DispatchPath {
    /// None: the first label, which the caller names.
    at: Option<At>,
    hctx: HctxId,
    /// Number of domains after which another batch was tried.
    rotated: u8,
    /// The word of the map that is read next.
    word: u16,
    /// Bits of the last word that are still to be visited.
    seen: u8,
    /// The token of the request.
    token: Option<u32>,
}

impl DispatchPath {
    #[inline]
    pub(crate) fn label(self) -> Option<Label> {
        self.at.map(At::label)
    }

    /// The label that picks a request also returns it.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn picked(self) -> Option<RequestId> {
        None
    }

    fn to(&mut self, at: At) -> Sub<Option<RequestId>> {
        self.at = Some(at);
        Sub::Wait(Next::Step)
    }

    fn visited(&self) -> KcqId {
        let bit = self.seen.trailing_zeros() as u16;
        KcqId {
            hctx: self.hctx,
            bit: (self.word - 1) * CTXS_A_WORD as u16 + bit,
        }
    }
}

impl KyberShared {
    #[expect(
        clippy::unused_self,
        reason = "as every scheduler's shared state has it"
    )]
    pub(crate) fn start_dispatch(
        &self,
        q: &RequestQueue,
        hctx: HctxId,
        _cpu: &mut Cpu,
    ) -> (DispatchPath, Next) {
        let path = DispatchPath {
            at: None,
            hctx,
            rotated: 0,
            word: 0,
            seen: 0,
            token: None,
        };
        (path, KyberShared::khd_lock(q, hctx))
    }

    pub(crate) fn dispatch(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        match path.at {
            None => {
                let mut khd = self.hctx(path.hctx).data.held(cpu);
                if !khd.may_batch() {
                    khd.rotate();
                    path.rotated = 1;
                }
                drop(khd);
                self.look(path, q, cpu)
            }
            Some(At::Look) => self.look(path, q, cpu),
            Some(At::Token) => self.answered(path, q, cpu),
            Some(At::Flush) => self.scan(path, q, cpu),
            Some(At::Splice) => self.splice(path, q, cpu),
            Some(At::Take) => self.take(path, q, cpu),
        }
    }

    /// Has the current domain requests? If so, it needs a token.
    fn look(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let hctx = self.hctx(path.hctx);
        let khd = hctx.data.held(cpu);
        let (domain, flushed) = (khd.cur_domain, khd.has_flushed());
        drop(khd);
        let map = &hctx.kcq_map[domain.index()];
        if flushed || map[usize::from(path.word)].load(cpu) != 0 {
            path.word = 0;
            return Self::ask(path, q, domain, cpu);
        }
        path.word += 1;
        if usize::from(path.word) < map.len() {
            return path.to(At::Look);
        }
        path.word = 0;
        self.next_domain(path, cpu)
    }

    /// The current domain has no request, or no token.
    fn next_domain(&self, path: &mut DispatchPath, cpu: &mut Cpu) -> Sub<Option<RequestId>> {
        let lock = &self.hctx(path.hctx).data;
        if usize::from(path.rotated) == DOMAINS {
            lock.release(cpu);
            return Sub::Done(None);
        }
        path.rotated += 1;
        lock.held(cpu).rotate();
        path.to(At::Look)
    }

    fn ask(
        path: &mut DispatchPath,
        q: &RequestQueue,
        domain: Domain,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        path.at = Some(At::Token);
        let (queue, hctx, map) = (q.id, path.hctx, domain.index() as u8);
        Sub::Wait(Next::call(cpu, Call::GetToken { queue, hctx, map }))
    }

    /// After the attempt to get a token.
    fn answered(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let khd = self.hctx(path.hctx).data.held(cpu);
        let (domain, flushed) = (khd.cur_domain, khd.has_flushed());
        drop(khd);
        let Answer::Token(token) = core::mem::take(&mut cpu.answer) else {
            probe::throttled(q, domain.name(), cpu);
            return self.next_domain(path, cpu);
        };
        path.token = Some(token);
        match flushed {
            true => self.take(path, q, cpu),
            false => self.scan(path, q, cpu),
        }
    }

    /// Reads the next word of the map: sbitmap_for_each_set().
    fn scan(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let hctx = self.hctx(path.hctx);
        let domain = hctx.data.held(cpu).cur_domain;
        path.seen = hctx.kcq_map[domain.index()][usize::from(path.word)].load(cpu) as u8;
        path.word += 1;
        self.next_kcq(path, q)
    }

    /// The next ctx queue with requests, the next word, or the request.
    fn next_kcq(&self, path: &mut DispatchPath, q: &RequestQueue) -> Sub<Option<RequestId>> {
        if path.seen != 0 {
            path.at = Some(At::Splice);
            return Sub::Wait(self.kcq_lock(q, path.visited()));
        }
        let words = self.hctx(path.hctx).kcq_map[0].len();
        if usize::from(path.word) < words {
            return path.to(At::Flush);
        }
        path.word = 0;
        path.to(At::Take)
    }

    /// Under kcq->lock too, which it releases.
    fn splice(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let (id, hctx) = (path.visited(), self.hctx(path.hctx));
        let domain = hctx.data.held(cpu).cur_domain;
        let kcq = self.kcq(id);
        let found = core::mem::take(&mut kcq.held(cpu)[domain.index()]);
        let mut pool = q.pool.held(cpu.id);
        hctx.data.held(cpu).add(&mut pool, found);
        drop(pool);
        hctx.flushed.mirror(cpu, true);
        let (word, mask) = self.map_word(id, domain);
        word.fetch_and(cpu, !mask);
        kcq.release(cpu);
        path.seen &= path.seen - 1;
        self.next_kcq(path, q)
    }

    /// The end of a call that gives a request.
    fn take(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let hctx = self.hctx(path.hctx);
        let token = path.token.take().expect("a request needs a token");
        let mut pool = q.pool.held(cpu.id);
        let mut khd = hctx.data.held(cpu);
        let rq = khd.take(&mut pool, token);
        let left = khd.has_any();
        drop(khd);
        drop(pool);
        hctx.flushed.mirror(cpu, left);
        hctx.data.release(cpu);
        Sub::Done(Some(rq))
    }
}
