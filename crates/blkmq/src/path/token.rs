//! Tokens of a scheduler: allocation, waiting for one, free, and a change of their number.
//!
//! Called by a scheduler's dispatch under the lock that protects the hctx's entry (khd->lock), and
//! by hooks without. The scheduler decides which map is used, and which request gets the token.
//! Kernel: kyber_get_domain_token(), kyber_domain_wake(), rq_clear_domain_token() in
//! block/kyber-iosched.c, sbitmap_add_wait_queue(), sbitmap_del_wait_queue() in lib/sbitmap.c
//! (6.1.192, 6.12.117).

use super::sbitmap::{Counted, Put, TagMap, put_tag, sbitmap_get, sbitmap_queue_resize};
use crate::call::Token;
use crate::env::{Answer, Cpu};
use crate::queue::TokenWait;
use crate::request::{CpuId, HctxId};
use crate::sbitmap::Sbitmap;
use crate::step::{Cx, labels};
use crate::waiter::Waiter;
use steps::steps;

pub use get_token::State as GetToken;
pub use put_token::State as PutToken;
pub use resize_tokens::State as ResizeTokens;

/// A token of this map for a request that this hctx would dispatch. Answers in the CPU:
/// `Answer::Token` or `NoToken`.
#[steps(path)]
pub fn get_token(cx: &mut Cx<'_>, hctx: HctxId, map: u8) {
    let number = sub!(get_domain_token(hctx, map));
    cx.cpu.answer = number.map_or(Answer::NoToken, Answer::Token);
}

/// kyber_get_domain_token(). Without a token the hctx waits, and its wake-up runs it.
#[steps]
fn get_domain_token(cx: &mut Cx<'_>, hctx: HctxId, map: u8) -> Option<u32> {
    /// Take one.
    at!(Get);
    let hint = tokens(cx, map).hint_before(cx.cpu);
    let mut number: Option<u32> = sub!(Get, sbitmap_get(TagMap::Token(map), hint, None));
    if number.is_none() {
        /// None is free: is the hctx in a wait queue already?
        at!(Waits);
        if wait(cx, hctx, map).queued.test(cx.cpu) {
            return None;
        }
        /// Count it among the waiters.
        at!(Count);
        tokens(cx, map).ws_active.add(cx.cpu, 1);
        // sbq_wait_ptr()
        let wait_index = &wait(cx, hctx, map).wait_index;
        let ws_index: u32 = wait_index.get();
        wait_index.put((ws_index + 1) % tokens(cx, map).wait.len() as u32);
        /// Under the lock of a wait queue: add the entry.
        lock!(Line, TagMap::Token(map).wait_lock(cx, ws_index));
        add_wait_queue(cx, hctx, map, ws_index);
        // Pairs with the barrier between freeing a token and looking for waiters.
        cx.mb();
        /// Take one that was freed before the entry was added.
        at!(Retry);
        let hint = tokens(cx, map).hint_before(cx.cpu);
        number = sub!(Retry, sbitmap_get(TagMap::Token(map), hint, None));
        if number.is_none() {
            return None;
        }
    }
    /// With a token: is the hctx in a wait queue?
    at!(Stale);
    if wait(cx, hctx, map).queued.test(cx.cpu) {
        let ws_index: u32 = wait(cx, hctx, map).ws_index.get();
        /// Under the lock of the wait queue: remove the entry, so that the wake-up goes to another.
        lock!(Leave, TagMap::Token(map).wait_lock(cx, ws_index));
        let ws = &tokens(cx, map).wait[ws_index as usize];
        if ws.remove(cx.cpu, entry(cx, hctx)) {
            dequeued(wait(cx, hctx, map), cx.cpu);
            tokens(cx, map).ws_active.add(cx.cpu, -1);
        }
        ws.queue.release(cx.cpu);
    }
    number
}

/// Frees a token, whose request was allocated on CPU `owner`: sbitmap_queue_clear(), and for each
/// hctx that it wakes kyber_domain_wake().
#[steps(path)]
pub fn put_token(cx: &mut Cx<'_>, token: Token, owner: CpuId) {
    /// Free one, and wake its waiters.
    at!(Put);
    let put = Put {
        bit: token.number,
        owner,
        counted: Counted::No,
    };
    sub!(Put, put_tag(TagMap::Token(token.map), put));
}

/// Changes the number of tokens.
#[steps(path)]
pub fn resize_tokens(cx: &mut Cx<'_>, map: u8, depth: u32) {
    /// Change the number of tokens.
    at!(Resize);
    sub!(Resize, sbitmap_queue_resize(TagMap::Token(map), depth));
}

labels! {
    pub enum At in "token" of get_token get_domain_token put_token resize_tokens
}

fn tokens<'a>(cx: &Cx<'a>, map: u8) -> &'a Sbitmap {
    &cx.q.tokens[usize::from(map)].map
}

fn wait<'a>(cx: &Cx<'a>, hctx: HctxId, map: u8) -> &'a TokenWait {
    &cx.q.tokens[usize::from(map)].waits[usize::from(hctx.0)]
}

/// add_wait_queue(), under the lock of the wait queue, which it releases: not exclusive, at the
/// head.
///
/// Deviation(D19): the barrier after it is an addition. Kernels have none between the entry and the
/// second read; where spin_lock() of swap_lock is none either, that read could miss a token.
fn add_wait_queue(cx: &mut Cx<'_>, hctx: HctxId, map: u8, ws_index: u32) {
    let ws = &tokens(cx, map).wait[ws_index as usize];
    let entry = entry(cx, hctx);
    ws.edit(cx.cpu, |entries| entries.insert(0, entry));
    let wait = wait(cx, hctx, map);
    wait.ws_index.put(ws_index);
    wait.queued.set(cx.cpu);
    ws.queue.release(cx.cpu);
}

fn entry(cx: &Cx<'_>, hctx: HctxId) -> Waiter {
    Waiter::Hctx {
        queue: cx.q.id,
        hctx,
        exclusive: false,
    }
}

/// Clears the mark of the entry. Under the lock of its wait queue.
pub(super) fn dequeued(wait: &TokenWait, cpu: &mut Cpu) {
    wait.ws_index.put(0);
    wait.queued.clear(cpu);
}

#[cfg(test)]
mod tests;
