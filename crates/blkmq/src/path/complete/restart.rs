//! The hctx that the end of a request runs, where several queues share its tags (v4.11 to v4.18).
//!
//! Kernel: blk_mq_sched_restart(), blk_mq_sched_restart_hctx() of v4.11 and v4.12 in
//! block/blk-mq-sched.c; docs/internals/verification.md names the commits.

use super::{At, CompletePath};
use crate::env::{Cpu, Effect};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, QueueId};
use crate::rules::RestartRule;
use crate::step::{Cx, Next};
use crate::tags::TagSet;
use crate::time::Duration;

/// Position of the walk over the hctxs of a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Scan {
    /// Number of hctxs visited, which is the number of the current one.
    visited: u32,
    /// The word of the ctx map to be read.
    word: u16,
}

impl CompletePath {
    /// The first check: of the counter that gates the walk, or of the hctx's own bit.
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>) -> Next {
        let set = cx.set();
        let marks = match cx.rules().restart.rule {
            _ if !set.queue_shared() => None,
            RestartRule::Own => None,
            RestartRule::SameQueue | RestartRule::QueueCount => Some(cx.q.restarts.read(cx.cpu)),
            RestartRule::MapCount => Some(set.restarts[set.driver_index(self.hctx)].read(cx.cpu)),
            // Without a counter as gate the first label of the walk reads the first bit.
            RestartRule::RoundRobin | RestartRule::WholeSet => Some(1),
        };
        match marks {
            None => match cx.hctx(self.hctx).restart.test(cx.cpu) {
                true => self.to(At::ClearRestart),
                false => self.after_restart(cx),
            },
            Some(0) => self.after_restart(cx),
            Some(_) if cx.rules().restart.rule == RestartRule::SameQueue => self.to(At::ClearFlag),
            Some(_) => self.to(At::Visit),
        }
    }

    /// The hctx that the walk is at, as queue and number in it; none at other labels.
    pub(in crate::path) fn walks_at(&self, mq: &BlkMq) -> Option<(QueueId, HctxId)> {
        let walks = matches!(
            self.at,
            At::Visit | At::Unmark | At::Uncount | At::SeesDispatch | At::SeesWork
        );
        walks.then(|| self.visited(mq.set_of(self.queue), mq.queue(self.queue)))
    }

    pub(super) fn walk(&mut self, cx: &mut Cx<'_>) -> Next {
        let set = cx.set();
        let rule = cx.rules().restart.rule;
        if self.at == At::ClearFlag {
            cx.q.restarts.write(cx.cpu, 0);
            return self.to(At::Visit);
        }
        let (queue, hctx) = self.visited(set, cx.q);
        let other = cx.mq.queue(queue);
        let visited = other.hctx(hctx);
        match self.at {
            At::Visit => {
                let any_map = matches!(rule, RestartRule::SameQueue | RestartRule::WholeSet);
                let same = set.driver_index(hctx) == set.driver_index(self.hctx);
                // `hctx->tags` comes first, and most hctxs have other ones: R0 does not check it.
                if rule != RestartRule::SameQueue {
                    let hctxs = set.queues.len() * cx.q.hctxs.len();
                    visited.tags_line.read_among(hctxs, cx.cpu);
                }
                match (any_map || same) && visited.restart.test(cx.cpu) {
                    true => self.to(At::Unmark),
                    false => self.onward(cx, set),
                }
            }
            At::Unmark => {
                let was = visited.restart.test_and_clear(cx.cpu);
                let counted = matches!(rule, RestartRule::QueueCount | RestartRule::MapCount);
                self.to(match was && counted {
                    true => At::Uncount,
                    false => At::SeesDispatch,
                })
            }
            At::Uncount => {
                match rule {
                    RestartRule::MapCount => set.restarts[set.driver_index(hctx)].add(cx.cpu, -1),
                    _ => other.restarts.add(cx.cpu, -1),
                }
                self.to(At::SeesDispatch)
            }
            At::SeesDispatch => match visited.dispatch_pending.test(cx.cpu) {
                true => self.run(cx, set, queue, hctx),
                false => self.to(At::SeesWork),
            },
            _ => match self.sees_work(other, hctx, cx.cpu) {
                None => Next::Step,
                Some(true) => self.run(cx, set, queue, hctx),
                Some(false) => self.onward(cx, set),
            },
        }
    }

    /// The scheduler's lists, or the words of the ctx map one after another.
    fn sees_work(&mut self, other: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) -> Option<bool> {
        if other.has_elevator() {
            return Some(other.elevator.seems_to_have_work(hctx, cpu));
        }
        let visited = other.hctx(hctx);
        let any = visited.ctx_map[usize::from(self.scan.word)].load(cpu) != 0;
        self.scan.word += 1;
        let last = usize::from(self.scan.word) == visited.ctx_map.len();
        if any || last {
            self.scan.word = 0;
        }
        (any || last).then_some(any)
    }

    /// The hctx of that queue has work: one run for the end of one request, where hctxs take turns.
    fn run(&mut self, cx: &mut Cx<'_>, set: &TagSet, queue: QueueId, hctx: HctxId) -> Next {
        cx.cpu.outbox.push(Effect::Kick {
            queue,
            hctx,
            delay: Duration::ZERO,
        });
        match cx.rules().restart.rule {
            RestartRule::SameQueue | RestartRule::WholeSet => self.onward(cx, set),
            _ => {
                self.scan = Scan::default();
                self.after_restart(cx)
            }
        }
    }

    /// The next hctx, or the end of the walk.
    fn onward(&mut self, cx: &mut Cx<'_>, set: &TagSet) -> Next {
        self.scan.visited += 1;
        let queues = match cx.rules().restart.rule {
            RestartRule::SameQueue => 1,
            _ => set.queues.len(),
        };
        if self.scan.visited as usize == queues * cx.q.hctxs.len() {
            self.scan = Scan::default();
            return self.after_restart(cx);
        }
        self.to(At::Visit)
    }

    /// The current hctx: those of the other queues in order, the queues in a ring that begins after
    /// this one; at last its own, the ring beginning after the request's.
    fn visited(&self, set: &TagSet, q: &RequestQueue) -> (QueueId, HctxId) {
        let (visited, hctxs) = (self.scan.visited as usize, q.hctxs.len());
        if q.settings.rules.restart.rule == RestartRule::SameQueue {
            return (q.id, HctxId(visited as u16));
        }
        let (turn, hctx) = (visited / hctxs + 1, visited % hctxs);
        let mine = q.id.index() - set.queues.start;
        let queue = QueueId((set.queues.start + (mine + turn) % set.queues.len()) as u16);
        let first = match queue == q.id {
            true => usize::from(self.hctx.0) + 1,
            false => 0,
        };
        (queue, HctxId(((first + hctx) % hctxs) as u16))
    }
}
