//! Changes of Kyber's state that a comparison with a recorded kernel forces, and Kyber as text.
//!
//! Nothing else runs meanwhile, so locks are taken only to satisfy their assertions.

use super::domain::{DOMAINS, Domain};
use super::hctx_data::set_token;
use super::shared::{KcqId, KyberShared};
use crate::elevator::Override;
use crate::env::Cpu;
use crate::list::QueueList;
use crate::queue::RequestQueue;
use crate::request::{HctxId, Place, RequestId, RequestPool};
use core::fmt::Write;

impl KyberShared {
    pub(super) fn force(&self, q: &RequestQueue, with: Override, cpu: &mut Cpu) {
        match with {
            Override::Remove(rq) => self.leave(q, rq, cpu),
            Override::Dispatch(rq) => self.force_dispatch(q, rq, cpu),
            Override::Resize(rq, sector, sectors) => q.with_pool(|pool| {
                pool[rq].sector = sector;
                pool[rq].sectors = sectors;
            }),
        }
    }

    /// Removes the request from all lists.
    fn leave(&self, q: &RequestQueue, rq: RequestId, cpu: &mut Cpu) {
        let (kcq, domain) = q.with_pool(|pool| {
            let of = KyberShared::kcq_of(q, pool[rq].hctx, pool[rq].ctx);
            (of, Domain::of(pool[rq].op))
        });
        if !self.leave_kcq(q, (kcq, domain), rq, cpu) {
            self.leave_hctx(q, (kcq.hctx, domain), rq, cpu);
        }
        q.with_pool(|pool| pool[rq].place = Place::Path);
    }

    fn leave_kcq(
        &self,
        q: &RequestQueue,
        (id, domain): (KcqId, Domain),
        rq: RequestId,
        cpu: &mut Cpu,
    ) -> bool {
        let kcq = self.kcq(id);
        cpu.begin_label();
        kcq.acquire(cpu);
        let mut lists = kcq.held(cpu);
        let list = &mut lists[domain.index()];
        let was = q.with_pool(|pool| remove(list, pool, rq));
        let left = !list.is_empty();
        drop(lists);
        if was && !left {
            let (word, mask) = self.map_word(id, domain);
            word.fetch_and(cpu, !mask);
        }
        kcq.release(cpu);
        cpu.begin_label();
        was
    }

    fn leave_hctx(
        &self,
        q: &RequestQueue,
        (hctx, domain): (HctxId, Domain),
        rq: RequestId,
        cpu: &mut Cpu,
    ) {
        let hctx = self.hctx(hctx);
        cpu.begin_label();
        hctx.data.acquire(cpu);
        let mut khd = hctx.data.held(cpu);
        let was = q.with_pool(|pool| remove(&mut khd.rqs[domain.index()], pool, rq));
        let left = khd.has_any();
        drop(khd);
        assert!(was, "{rq:?} is in no list");
        hctx.flushed.mirror(cpu, left);
        hctx.data.release(cpu);
        cpu.begin_label();
    }

    /// The kernel chose this request: its domain's batch continues or begins, its ctx queues are
    /// flushed as for any request, and it has a token if one is free.
    fn force_dispatch(&self, q: &RequestQueue, rq: RequestId, cpu: &mut Cpu) {
        let (of, domain) = q.with_pool(|pool| (pool[rq].hctx, Domain::of(pool[rq].op)));
        self.flush_all(q, of, domain, cpu);
        self.leave_hctx(q, (of, domain), rq, cpu);
        let token = q.tokens[domain.index()].map.take_any(cpu);
        let lock = &self.hctx(of).data;
        cpu.begin_label();
        lock.acquire(cpu);
        let mut khd = lock.held(cpu);
        if khd.cur_domain != domain || !khd.may_batch() {
            khd.cur_domain = domain;
            khd.batching = 0;
        }
        khd.batching += 1;
        drop(khd);
        lock.release(cpu);
        cpu.begin_label();
        q.with_pool(|pool| {
            pool[rq].place = Place::Path;
            set_token(pool, rq, token);
        });
    }

    /// Flushes all requests of a domain from the ctx queues of an hctx.
    fn flush_all(&self, q: &RequestQueue, of: HctxId, domain: Domain, cpu: &mut Cpu) {
        let hctx = self.hctx(of);
        cpu.begin_label();
        hctx.data.acquire(cpu);
        for bit in 0..q.hctx(of).ctxs.len() as u16 {
            let id = KcqId { hctx: of, bit };
            let kcq = self.kcq(id);
            cpu.begin_label();
            kcq.acquire(cpu);
            let mut found = core::mem::take(&mut kcq.held(cpu)[domain.index()]);
            let (word, mask) = self.map_word(id, domain);
            word.fetch_and(cpu, !mask);
            let mut khd = hctx.data.held(cpu);
            q.with_pool(|pool| khd.rqs[domain.index()].splice_back(pool, &mut found));
            drop(khd);
            kcq.release(cpu);
        }
        cpu.begin_label();
        let any = hctx.data.held(cpu).has_any();
        hctx.flushed.mirror(cpu, any);
        hctx.data.release(cpu);
        cpu.begin_label();
    }

    /// Depths, and the requests of each hctx in order.
    pub(super) fn as_text(&self, q: &RequestQueue) -> String {
        let mut text = String::new();
        for domain in Domain::ALL {
            let map = &q.tokens[domain.index()].map;
            let (name, taken, depth) = (domain.name(), map.busy_count(), map.depth());
            let _ = writeln!(text, "  {name}: {taken} of {depth} tokens are taken");
        }
        for (number, hctx) in self.hctxs.iter().enumerate() {
            let (domain, batching) = hctx.data.inspect(|khd| (khd.cur_domain, khd.batching));
            let name = domain.name();
            let _ = writeln!(
                text,
                "  hctx {number}: cur_domain {name}, batching {batching}"
            );
            for domain in Domain::ALL {
                self.show_domain(q, HctxId(number as u16), domain, &mut text);
            }
        }
        text
    }

    fn show_domain(&self, q: &RequestQueue, of: HctxId, domain: Domain, text: &mut String) {
        let at = domain.index();
        let flushed = self.hctx(of).data.inspect(|khd| khd.rqs[at]);
        let kcqs = (0..q.hctx(of).ctxs.len() as u16).map(|bit| KcqId { hctx: of, bit });
        let queued = kcqs.map(|id| (id.bit, self.kcq(id).inspect(|lists| lists[at])));
        let named = core::iter::once(("rqs".to_owned(), flushed));
        let named = named.chain(queued.map(|(bit, list)| (format!("kcq {bit}"), list)));
        for (name, list) in named.filter(|(_, list)| !list.is_empty()) {
            let _ = write!(text, "    {} {name} ({}):", domain.name(), list.len());
            q.with_pool(|pool| {
                for rq in list.iter(pool) {
                    let _ = write!(text, " {}", pool[rq]);
                }
            });
            text.push('\n');
        }
    }
}

/// Removes a request from a list, if it is there.
fn remove(list: &mut QueueList, pool: &mut RequestPool, rq: RequestId) -> bool {
    let on = list.iter(pool).any(|other| other == rq);
    if on {
        list.remove(pool, rq);
    }
    on
}

const _: () = assert!(DOMAINS == Domain::ALL.len());
