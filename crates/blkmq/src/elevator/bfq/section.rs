//! One section under the lock: its clock, its tick, and what it costs.
//!
//! What a section does besides work in containers is counted here, in operations like one inside a
//! container; so are the lines of memory that it changes. Prices are the machine's.

use super::Bfq;
use super::queue::QId;
use crate::elevator::hook::After;
use crate::elevator::scheduler::Now;
use crate::time::Duration;

/// A field of ticks that starts at zero: jiffies begin five minutes below 2^32.
pub(super) const ZERO: i64 = -(1 << 32);

/// Before all that there was (bfq_smallest_from_now()).
#[inline]
pub(super) fn far_past(tick: i64) -> i64 {
    tick - (i64::MAX >> 1) + 1
}

/// A division of 64 bits takes as long as so many operations inside a container.
pub(super) const DIVISION: u32 = 6;
/// So does reading the clock.
const CLOCK: u32 = 7;
/// Nobody reads the clock twice and sees the same time. How long it takes between two readings is
/// not known here.
const READING: Duration = Duration(1);
/// So far readings may have run ahead of the sections they were in, ns.
const READINGS_AHEAD: u64 = 100_000;
/// Lines of struct bfq_data that a section changes.
const LINES: u32 = 5;
/// Of them: changed by dispatches and completions only.
const LINES_OF_SERVICE: u32 = 2;
/// Queues whose lines are told apart; more share some.
const QUEUE_LINES: u32 = 24;
pub(super) const LINES_ALL: u8 = (LINES + QUEUE_LINES) as u8;

impl Bfq {
    /// A section begins. Its jiffies stand still; its clock does in a plug, and elsewhere moves
    /// from one reading to the next, as a kernel's log tells or by [`READING`].
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

    /// Notes what a function does besides work in containers: a branch, a field, each for one.
    #[inline]
    pub(super) fn charge(&mut self, operations: u32) {
        self.operations += operations;
    }

    /// Notes that a queue's lines are changed.
    #[inline]
    pub(super) fn touch(&mut self, q: QId) {
        self.touched |= 1 << (LINES + q.0 % QUEUE_LINES);
    }

    /// Notes that what is measured and who is in service may change.
    #[inline]
    pub(super) fn serves(&mut self) {
        self.touched |= (1 << LINES) - 1;
    }

    /// ktime_get_ns().
    #[inline]
    pub(super) fn read_clock(&mut self) -> u64 {
        self.charge(CLOCK);
        let of_log = if self.log.listens {
            self.log.time()
        } else {
            None
        };
        match of_log {
            Some(time) => time.max(self.now).0,
            None if self.clock_kept => self.now.0,
            None => {
                let now = self.now;
                self.now = now + READING;
                now.0
            }
        }
    }

    pub(super) fn after(&mut self) -> After {
        match core::mem::take(&mut self.runs) {
            true => After::RunQueues,
            false => After::Nothing,
        }
    }
}
