//! A dispatch call: selects the domain whose batch continues, a token for it, and a request.
//!
//! khd->lock is held for the whole call, also while it gets a token. Domains without requests or
//! tokens are skipped; the current domain is tried once more after all others. Kernel:
//! kyber_dispatch_request(), kyber_dispatch_cur_domain(), kyber_flush_busy_kcqs() in
//! block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::DOMAINS;
use super::hctx_data::HctxData;
use super::shared::{KcqId, KyberShared};
use crate::call::Call;
use crate::env::Answer;
use crate::queue::CTXS_A_WORD;
use crate::request::{HctxId, RequestId};
use crate::step::{Cx, labels, probe};
use core::ops::DerefMut;
use steps::steps;

/// kyber_dispatch_request(). The caller names the first label; the others are under khd->lock too.
#[steps]
pub(crate) fn dispatch_request(cx: &mut Cx<'_>, hctx: HctxId) -> Option<RequestId> {
    lock!(_, KyberShared::khd_lock(cx.q, hctx));
    let mut rotated: u8 = 0;
    if !khd(cx, hctx).may_batch() {
        khd(cx, hctx).rotate();
        rotated = 1;
    }
    loop {
        let rq = sub!(dispatch_cur_domain(hctx));
        if rq.is_some() || usize::from(rotated) == DOMAINS {
            KyberShared::of(cx).hctx(hctx).data.release(cx.cpu);
            return rq;
        }
        khd(cx, hctx).rotate();
        rotated += 1;
        at!(Look);
    }
}

/// kyber_dispatch_cur_domain().
#[steps]
fn dispatch_cur_domain(cx: &mut Cx<'_>, hctx: HctxId) -> Option<RequestId> {
    let mut word: u16 = 0;
    while !khd(cx, hctx).has_flushed() && load(cx, hctx, word) == 0 {
        word += 1;
        if word == words(cx, hctx) {
            return None;
        }
        /// Has the current domain requests? One word of its map of ctx queues.
        at!(Look);
    }
    let (queue, map) = (cx.q.id, khd(cx, hctx).cur_domain.index() as u8);
    /// Was there a token? Then take the request, or look which ctx queues have some.
    let answer = ask!(Token, cx.call(Call::GetToken { queue, hctx, map }));
    let Answer::Token(number) = answer else {
        let domain = khd(cx, hctx).cur_domain;
        probe::throttled(cx.q, domain.name(), cx.cpu);
        return None;
    };
    let token: u32 = number;
    if !khd(cx, hctx).has_flushed() {
        // kyber_flush_busy_kcqs(): sbitmap_for_each_set()
        let mut word: u16 = 0;
        let mut seen: u8 = load(cx, hctx, word) as u8;
        'flush: loop {
            while seen == 0 {
                word += 1;
                if word == words(cx, hctx) {
                    break 'flush;
                }
                /// The next word of the map: which ctx queues have requests?
                at!(Flush);
                seen = load(cx, hctx, word) as u8;
            }
            let bit = word * CTXS_A_WORD as u16 + seen.trailing_zeros() as u16;
            let kcq: KcqId = KcqId { hctx, bit };
            /// Under the lock of a ctx queue too: take all that it has of the domain.
            lock!(Splice, KyberShared::of(cx).kcq_lock(cx.q, kcq));
            flush_busy_kcq(cx, kcq);
            seen &= seen - 1;
        }
        /// Take the request.
        at!(Take);
    }
    Some(take(cx, hctx, token))
}

labels! {
    pub enum At in "kyber-dispatch" of dispatch_request dispatch_cur_domain
}

/// State of the hctx, under khd->lock.
fn khd<'a>(cx: &'a mut Cx<'_>, hctx: HctxId) -> impl DerefMut<Target = HctxData> + 'a {
    KyberShared::of(cx).hctx(hctx).data.held(cx.cpu)
}

/// Words of a domain's map of ctx queues.
fn words(cx: &Cx<'_>, hctx: HctxId) -> u16 {
    KyberShared::of(cx).hctx(hctx).kcq_map[0].len() as u16
}

/// A word of the current domain's map.
fn load(cx: &mut Cx<'_>, hctx: HctxId, word: u16) -> u64 {
    let domain = khd(cx, hctx).cur_domain.index();
    KyberShared::of(cx).hctx(hctx).kcq_map[domain][usize::from(word)].load(cx.cpu)
}

/// Under kcq->lock too, which it releases (flush_busy_kcq()).
fn flush_busy_kcq(cx: &mut Cx<'_>, id: KcqId) {
    let shared = KyberShared::of(cx);
    let (hctx, kcq) = (shared.hctx(id.hctx), shared.kcq(id));
    let domain = khd(cx, id.hctx).cur_domain;
    let found = core::mem::take(&mut kcq.held(cx.cpu)[domain.index()]);
    let mut pool = cx.pool();
    hctx.data.held(cx.cpu).add(&mut pool, found);
    drop(pool);
    hctx.flushed.mirror(cx.cpu, true);
    let (word, mask) = shared.map_word(id, domain);
    word.fetch_and(cx.cpu, !mask);
    kcq.release(cx.cpu);
}

/// The oldest request of the current domain, with its token.
fn take(cx: &mut Cx<'_>, hctx: HctxId, token: u32) -> RequestId {
    let shared = KyberShared::of(cx);
    let mut pool = cx.pool();
    let mut khd = khd(cx, hctx);
    let rq = khd.take(&mut pool, token);
    let left = khd.has_any();
    drop(khd);
    drop(pool);
    shared.hctx(hctx).flushed.mirror(cx.cpu, left);
    rq
}
