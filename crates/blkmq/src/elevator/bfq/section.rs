//! One section under the lock: its clock, its tick, and its costs.
//!
//! Work besides that in containers is counted here, in operations as expensive as one inside a
//! container, and so are the cache lines that the section changes. The machine has the prices.

use super::Bfq;
use super::ids::QId;
use crate::elevator::hook::After;
use crate::elevator::scheduler::{Now, Scheduler as _};
use crate::time::{Duration, UPTIME};

/// Initial value of a field in ticks: jiffies are 2^32 when the clock is 0.
pub(super) const ZERO: i64 = -(1 << 32);

/// A tick before all others (bfq_smallest_from_now()).
#[inline]
pub(super) fn far_past(tick: i64) -> i64 {
    tick - (i64::MAX >> 1) + 1
}

/// The cost of a 64-bit division, in operations inside a container.
pub(super) const DIVISION: u32 = 6;
/// The cost of reading the clock.
const CLOCK: u32 = 7;
/// Two readings of the clock never give the same time. The time between two readings is not known
/// here.
const READING: Duration = Duration(1);
/// The most by which readings may be ahead of their section, ns.
const READINGS_AHEAD: u64 = 100_000;
/// Cache lines of struct bfq_data that a section changes.
const LINES: u32 = 5;
/// The part of these that only dispatches and completions change.
const LINES_OF_SERVICE: u32 = 2;
/// Queues with a line of their own; further ones share these lines.
const QUEUE_LINES: u32 = 24;
pub(super) const LINES_ALL: u8 = (LINES + QUEUE_LINES) as u8;

impl Bfq {
    /// Begins a section. Its jiffies advance only where a kernel's log shows that. Its clock does
    /// not advance in a plug, and otherwise advances from one reading to the next, as a kernel's
    /// log shows or by [`READING`].
    pub(super) fn begin(&mut self, now: Now) {
        // Sections at one instant follow one another.
        let ahead = self.now.0.wrapping_sub(now.time.0);
        if now.kept || ahead > READINGS_AHEAD {
            self.now = now.time;
        }
        self.clock_kept = now.kept;
        self.tick = now.tick.0.cast_signed();
        self.runs = false;
        self.shown = None;
        self.touched |= (1 << (LINES - LINES_OF_SERVICE)) - 1;
    }

    /// Counts the operations of a function besides those in containers: one per branch and field.
    #[inline]
    pub(super) fn charge(&mut self, operations: u32) {
        self.operations += operations;
    }

    /// Records that a queue's cache lines change.
    #[inline]
    pub(super) fn touch(&mut self, q: QId) {
        self.touched |= 1 << (LINES + q.0 % QUEUE_LINES);
    }

    /// Records that the lines of measurements and of the queue in service change.
    #[inline]
    pub(super) fn serves(&mut self) {
        self.touched |= (1 << LINES) - 1;
    }

    /// jiffies: another CPU may count a tick in a section.
    #[inline]
    pub(super) fn jiffies(&self) -> i64 {
        match self.log.next() {
            Some(line) => line.tick.0.cast_signed().max(self.tick),
            None => self.tick,
        }
    }

    /// ktime_get_ns().
    #[inline]
    pub(super) fn read_clock(&mut self) -> u64 {
        self.charge(CLOCK);
        let of_log = self.log.next().filter(|line| !line.kept);
        let of_log = of_log.map(|line| line.time);
        let now = of_log.map_or(self.now, |time| time.max(self.now));
        if of_log.is_none() && !self.clock_kept {
            self.now = now + READING;
        }
        (now + UPTIME).0
    }

    pub(super) fn after(&mut self) -> After {
        match self.take_run() {
            true => After::RunQueues,
            false => After::Nothing,
        }
    }
}
