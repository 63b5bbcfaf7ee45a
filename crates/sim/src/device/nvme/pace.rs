//! A rate limit in whole numbers: units pass no faster than so many a second.
//!
//! Not a token bucket: an idle time earns no burst.

use blkmq::time::{Duration, SimTime};

const SECOND: u64 = 1_000_000_000;

/// A rate limit.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// Units a second; 0: no limit.
    rate: u64,
    /// When the next unit may pass.
    open_at: SimTime,
    /// What the last division left, in 1/rate ns: no rate drifts.
    remainder: u64,
}

impl Pacer {
    /// A limit of this many units a second, or none (0).
    pub(crate) fn per_second(rate: u64) -> Pacer {
        Pacer {
            rate,
            open_at: SimTime::ZERO,
            remainder: 0,
        }
    }

    /// When the next may pass.
    pub(crate) fn open_at(&self) -> SimTime {
        self.open_at
    }

    /// Lets `units` (less than 2^33) pass now.
    pub(crate) fn charge(&mut self, units: u64, now: SimTime) {
        if self.rate == 0 {
            return;
        }
        if self.open_at < now {
            self.open_at = now;
            self.remainder = 0;
        }
        let parts = units * SECOND + self.remainder;
        self.open_at = self.open_at + Duration(parts / self.rate);
        self.remainder = parts % self.rate;
    }
}
