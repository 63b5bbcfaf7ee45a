//! A rate limit in whole numbers: at most so many units pass in a second.
//!
//! Without slack, idle time is not saved for a later burst: not a token bucket.

use blkmq::time::{Duration, SimTime};

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// Units a second; 0: no limit.
    rate: u64,
    /// Units of so long may pass ahead of their time.
    slack: Duration,
    /// When the next unit may pass that is not ahead of its time.
    due: SimTime,
    /// Remainder of the last division, in 1/rate ns: the rate does not drift.
    remainder: u64,
}

impl Pacer {
    /// A limit of this many units a second, or none (0).
    pub(crate) fn per_second(rate: u64) -> Pacer {
        Pacer::with_slack(rate, Duration::ZERO)
    }

    /// The same over long times; at once at most as many units as pass in `slack`, and one more.
    pub(crate) fn with_slack(rate: u64, slack: Duration) -> Pacer {
        Pacer {
            rate,
            slack,
            due: SimTime::ZERO,
            remainder: 0,
        }
    }

    /// When the next unit may pass.
    pub(crate) fn open_at(&self) -> SimTime {
        SimTime(self.due.0.saturating_sub(self.slack.0))
    }

    /// Lets `units` (less than 2^33) pass now.
    pub(crate) fn charge(&mut self, units: u64, now: SimTime) {
        if self.rate == 0 {
            return;
        }
        if self.due < now {
            self.due = now;
            self.remainder = 0;
        }
        let parts = units * SECOND + self.remainder;
        self.due = self.due + Duration(parts / self.rate);
        self.remainder = parts % self.rate;
    }
}
