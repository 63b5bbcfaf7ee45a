//! The hctx that the end of a request runs, where several queues share its tags (v4.11 to v4.18).
//!
//! Kernel: blk_mq_sched_restart(), blk_mq_sched_restart_hctx() of v4.11 and v4.12 in
//! block/blk-mq-sched.c; docs/internals/verification.md names the commits.

use super::At;
use crate::env::Effect;
use crate::queue::RequestQueue;
use crate::request::{HctxId, QueueId};
use crate::rules::RestartRule;
use crate::step::Cx;
use crate::tags::TagSet;
use crate::time::Duration;
use steps::steps;

/// blk_mq_sched_restart().
#[steps(inline)]
pub(super) fn sched_restart(cx: &mut Cx<'_>, hctx: HctxId) {
    /// Is SCHED_RESTART set? Or, with tags that queues share before v4.19: is any hctx marked?
    at!(Restart);
    match marks(cx, hctx) {
        None => {
            if cx.hctx(hctx).restart.test(cx.cpu) {
                /// Clear it and run the hctx.
                at!(ClearRestart);
                cx.hctx(hctx).restart.clear(cx.cpu);
                // Pairs with the barrier between putting requests back on the dispatch list and
                // reading SCHED_RESTART.
                cx.mb();
                /// blk_queue_exit().
                at!(Exit, cx.run(hctx, true));
            }
        }
        Some(0) => {}
        Some(_) => sub!(restart_hctxs(hctx)),
    }
}

/// The hctxs of the set, or of the queue, in order; one run for the end of one request where they
/// take turns.
#[steps]
pub(super) fn restart_hctxs(cx: &mut Cx<'_>, hctx: HctxId) {
    let rule = cx.rules().restart.rule;
    if rule == RestartRule::SameQueue {
        /// Clear the flag that hctxs of the queue are marked (R0).
        at!(ClearFlag);
        cx.q.restarts.write(cx.cpu, 0);
    }
    let mut visited: u32 = 0;
    while visited < hctxs(cx) {
        /// Is this hctx of the set marked?
        at!(Visit);
        if is_marked(cx, hctx, visited) {
            let (queue, other) = nth_hctx(cx.set(), cx.q, hctx, visited);
            let ran = sub!(restart_hctx(queue, other));
            let takes_turns = !matches!(
                cx.rules().restart.rule,
                RestartRule::SameQueue | RestartRule::WholeSet
            );
            if ran && takes_turns {
                return;
            }
        }
        visited += 1;
    }
}

/// blk_mq_sched_restart_hctx() of a marked hctx: true if it has work, and is run.
#[steps]
fn restart_hctx(cx: &mut Cx<'_>, queue: QueueId, hctx: HctxId) -> bool {
    /// Clear its SCHED_RESTART.
    at!(Unmark);
    let rule = cx.rules().restart.rule;
    let other = cx.mq.queue(queue);
    let was = other.hctx(hctx).restart.test_and_clear(cx.cpu);
    if was && matches!(rule, RestartRule::QueueCount | RestartRule::MapCount) {
        /// Count the mark out (R2, R2').
        at!(Uncount);
        let set = cx.set();
        match cx.rules().restart.rule {
            RestartRule::MapCount => set.restarts[set.driver_index(hctx)].add(cx.cpu, -1),
            _ => cx.mq.queue(queue).restarts.add(cx.cpu, -1),
        }
    }
    /// Has its dispatch list leftovers?
    at!(SeesDispatch);
    let mut work: bool = cx.mq.queue(queue).hctx(hctx).dispatch_pending.test(cx.cpu);
    let mut word: u16 = 0;
    while !work && usize::from(word) < words(cx.mq.queue(queue), hctx) {
        /// Has it requests in the scheduler or in software queues?
        at!(SeesWork);
        let other = cx.mq.queue(queue);
        work = match other.has_elevator() {
            true => other.elevator.seems_to_have_work(hctx, cx.cpu),
            false => other.hctx(hctx).ctx_map[usize::from(word)].load(cx.cpu) != 0,
        };
        word += 1;
    }
    if work {
        let delay = Duration::ZERO;
        cx.cpu.outbox.push(Effect::Kick { queue, hctx, delay });
    }
    work
}

/// The number of marked hctxs, or where nothing counts them 1; none if the request's own hctx alone
/// may be run.
fn marks(cx: &mut Cx<'_>, hctx: HctxId) -> Option<i32> {
    let set = cx.set();
    match cx.rules().restart.rule {
        _ if !set.queue_shared() => None,
        RestartRule::Own => None,
        RestartRule::SameQueue | RestartRule::QueueCount => Some(cx.q.restarts.read(cx.cpu)),
        RestartRule::MapCount => Some(set.restarts[set.driver_index(hctx)].read(cx.cpu)),
        RestartRule::RoundRobin | RestartRule::WholeSet => Some(1),
    }
}

fn hctxs(cx: &Cx<'_>) -> u32 {
    let queues = match cx.rules().restart.rule {
        RestartRule::SameQueue => 1,
        _ => cx.set().queues.len(),
    };
    (queues * cx.q.hctxs.len()) as u32
}

fn is_marked(cx: &mut Cx<'_>, hctx: HctxId, visited: u32) -> bool {
    let (set, rule) = (cx.set(), cx.rules().restart.rule);
    let (queue, other) = nth_hctx(set, cx.q, hctx, visited);
    let visited = cx.mq.queue(queue).hctx(other);
    let any_map = matches!(rule, RestartRule::SameQueue | RestartRule::WholeSet);
    // `hctx->tags` comes first, and most hctxs have other ones: R0 does not check it.
    if rule != RestartRule::SameQueue {
        let hctxs = set.queues.len() * cx.q.hctxs.len();
        visited.tags_line.read_among(hctxs, cx.cpu);
    }
    let same = set.driver_index(other) == set.driver_index(hctx);
    (any_map || same) && visited.restart.test(cx.cpu)
}

/// Accesses that tell whether a scheduler, or software queues, have requests.
fn words(q: &RequestQueue, hctx: HctxId) -> usize {
    match q.has_elevator() {
        true => 1,
        false => q.hctx(hctx).ctx_map.len(),
    }
}

/// The hctx after `visited` others: those of the other queues in order, the queues in a ring that
/// begins after this one; at last its own, the ring beginning after the request's.
pub(super) fn nth_hctx(
    set: &TagSet,
    q: &RequestQueue,
    own: HctxId,
    visited: u32,
) -> (QueueId, HctxId) {
    let (visited, hctxs) = (visited as usize, q.hctxs.len());
    if q.settings.rules.restart.rule == RestartRule::SameQueue {
        return (q.id, HctxId(visited as u16));
    }
    let (turn, hctx) = (visited / hctxs + 1, visited % hctxs);
    let mine = q.id.index() - set.queues.start;
    let queue = QueueId((set.queues.start + (mine + turn) % set.queues.len()) as u16);
    let first = match queue == q.id {
        true => usize::from(own.0) + 1,
        false => 0,
    };
    (queue, HctxId(((first + hctx) % hctxs) as u16))
}
