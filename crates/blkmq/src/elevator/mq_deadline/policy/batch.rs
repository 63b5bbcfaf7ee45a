//! Batch: requests of one direction in sector order, until there have been enough, one is too old,
//! or there is none.
//!
//! Kernel: __dd_dispatch_request() in block/mq-deadline.c (6.1.192, 6.12.117).

use super::MqDeadline;
use super::level::Position;
use crate::request::{Direction, RequestId, RequestPool};
use crate::rules::HeadInsert;
use crate::time::Jiffies;

impl MqDeadline {
    /// The best request of one level, unless it was inserted after `latest_start`.
    /// As in the kernel, a decision about direction is kept even if no request is returned.
    pub(super) fn select(
        &mut self,
        pool: &mut RequestPool,
        level: usize,
        latest_start: i64,
        now: Jiffies,
    ) -> Option<RequestId> {
        if self.head_insert == HeadInsert::PerPriority
            && let Some(rq) = self.at_head[level].first()
        {
            if self.start_time(pool, rq) > latest_start {
                return None;
            }
            self.at_head[level].remove(pool, rq);
            return Some(self.start_from_head(pool, rq));
        }
        let rq = match self.next_in_sector_order(pool, level, self.last_dir) {
            Some(rq) if self.batching < self.settings.fifo_batch => rq,
            _ => self.begin_batch(pool, level, now)?,
        };
        if self.start_time(pool, rq) > latest_start {
            return None;
        }
        self.batching += 1;
        self.remember_position(pool, level, rq);
        self.remove(pool, level, rq);
        Some(self.start(pool, rq))
    }

    /// Decides about the direction of a new batch and finds its first request.
    fn begin_batch(&mut self, pool: &RequestPool, level: usize, now: Jiffies) -> Option<RequestId> {
        let dir = self.choose_direction(level)?;
        let oldest = self.levels[level].fifo[dir as usize].first()?;
        let expired = pool[oldest].fifo_time <= now;
        let next = self
            .next_in_sector_order(pool, level, dir)
            .filter(|_| !expired);
        self.last_dir = dir;
        self.batching = 0;
        Some(next.unwrap_or(oldest))
    }

    /// Reads before writes, until writes have lost `writes_starved` times. Expiry plays no part.
    fn choose_direction(&mut self, level: usize) -> Option<Direction> {
        let [reads, writes] = &self.levels[level].fifo;
        if !reads.is_empty() {
            if writes.is_empty() {
                return Some(Direction::Read);
            }
            // Compared as unsigned, so a negative setting is never reached.
            let writes_win = self.starved >= self.settings.writes_starved as u32;
            self.starved = self.starved.wrapping_add(1);
            if !writes_win {
                return Some(Direction::Read);
            }
        } else if writes.is_empty() {
            return None;
        }
        self.starved = 0;
        Some(Direction::Write)
    }

    /// The next request of the sector order in a direction.
    pub(super) fn next_in_sector_order(
        &mut self,
        pool: &RequestPool,
        level: usize,
        dir: Direction,
    ) -> Option<RequestId> {
        let level = &mut self.levels[level];
        match level.position[dir as usize] {
            Position::Next(rq) => rq,
            Position::Latest(sector) => {
                let sort = &mut level.sort[dir as usize];
                if sort.is_empty() {
                    return None;
                }
                let rq = sort.first_at_or_after(pool, sector);
                self.visits.0 += sort.take_touched();
                rq
            }
        }
    }

    /// Sector order continues after `rq`, which will be dispatched from its tree.
    pub(super) fn remember_position(&mut self, pool: &RequestPool, level: usize, rq: RequestId) {
        let dir = pool[rq].op.direction() as usize;
        let level = &mut self.levels[level];
        level.position[dir] = match level.position[dir] {
            Position::Next(_) => Position::Next(level.sort[dir].next(pool, rq)),
            Position::Latest(_) => Position::Latest(pool[rq].sector),
        };
    }

    /// The tick of insertion, as far as it is known: after a change of the expire setting, and for
    /// head insertions, it is off by the difference. May be before tick 0.
    fn start_time(&self, pool: &RequestPool, rq: RequestId) -> i64 {
        let expire = self.settings.expire(pool[rq].op.direction());
        ticks(pool[rq].fifo_time) - ticks(expire)
    }
}

/// Signed ticks: the kernel's wrap, these may fall below zero.
pub(super) fn ticks(jiffies: Jiffies) -> i64 {
    jiffies.0 as i64
}
