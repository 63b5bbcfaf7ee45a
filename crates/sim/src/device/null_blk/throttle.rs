//! null_blk's bandwidth limit: a budget of bytes, refilled fifty times a second.
//!
//! Not a token bucket: the rest of a tick is lost, and so is a deficit. A request larger than a
//! tick's budget is refused for ever, as in the kernel. Kernel: null_handle_throttled(),
//! nullb_bwtimer_fn() in drivers/block/null_blk/main.c.

use crate::device::{Action, Actions};
use blkmq::request::Sectors;
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};

pub(super) const BANDWIDTH_TICK: u64 = 0;

/// TICKS_PER_SEC.
const TICKS_PER_SECOND: i64 = 50;

/// TIMER_INTERVAL.
const INTERVAL: Duration = Duration::from_millis(20);

/// When the limit is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThrottlePoint {
    /// In the handling of the started command; not to polled ones (v6.1).
    AfterStart,
    /// Before the request is started (v6.12).
    BeforeStart,
}

impl ThrottlePoint {
    /// The release that got queue_rqs also moved the test.
    pub fn of(rules: &Rules) -> ThrottlePoint {
        if rules.null_blk_queue_rqs {
            ThrottlePoint::BeforeStart
        } else {
            ThrottlePoint::AfterStart
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Throttle {
    // Settings.
    /// mb_per_tick(), bytes.
    bytes_per_tick: i64,

    // State.
    /// cur_bytes.
    bytes_left: i64,
    ticking: bool,
    /// When it expires, or would have.
    tick_at: SimTime,
}

impl Throttle {
    /// A full budget; its timer has stopped for lack of I/O.
    pub(super) fn new(mbps: u32) -> Throttle {
        let bytes_per_tick = (1 << 20) / TICKS_PER_SECOND * i64::from(mbps);
        Throttle {
            bytes_per_tick,
            bytes_left: bytes_per_tick,
            ticking: false,
            tick_at: SimTime::ZERO,
        }
    }

    /// Charges a command, also a refused one; false stops the queues.
    pub(super) fn admit(&mut self, length: Sectors, out: &mut Actions) -> bool {
        if !self.ticking {
            // hrtimer_restart() keeps the expiry at which the timer stopped, which has passed: it
            // expires at once, and the command that woke it is charged to a budget that is refilled
            // afterwards.
            self.ticking = true;
            out.push(Action::Timer {
                after: Duration::ZERO,
                mark: BANDWIDTH_TICK,
            });
        }
        self.bytes_left -= i64::from(length.0) * 512;
        if self.bytes_left < 0 {
            out.push(Action::StopQueues);
            return false;
        }
        true
    }

    pub(super) fn tick(&mut self, now: SimTime, out: &mut Actions) {
        assert!(self.ticking, "a stopped timer expired");
        if now >= self.tick_at {
            if self.bytes_left == self.bytes_per_tick {
                self.ticking = false;
                return;
            }
            self.bytes_left = self.bytes_per_tick;
            out.push(Action::StartQueues);
            // hrtimer_forward_now(): ticks stay on one grid, however late one was.
            self.tick_at = SimTime((now.0 / INTERVAL.0 + 1) * INTERVAL.0);
        }
        // Before its time only where CPUs disagree on it.
        out.push(Action::Timer {
            after: self.tick_at.since(now),
            mark: BANDWIDTH_TICK,
        });
    }

    pub(super) fn describe(&self) -> String {
        let timer = if self.ticking { "armed" } else { "stopped" };
        format!(
            "bandwidth budget {} of {} bytes, tick {timer}",
            self.bytes_left, self.bytes_per_tick
        )
    }
}
