//! When the rate of a direction allows its next I/O.
//!
//! After fio 3.33 backend.c usec_for_io(). Counted from the start, so that a late stream catches
//! up.

use crate::plan::{RateProcess, ThreadPlan};
use crate::rng::Rng;
use blkmq::time::Duration;

/// The limits of a stream, by direction: 0 reads, 1 writes, 2 trims.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    // Settings.
    process: RateProcess,
    /// 0: no limit.
    bytes_a_second: [u64; 3],
    /// Mean gap, us: fio's whole number of them.
    mean_us: [u64; 3],
    block_bytes: [u64; 3],

    // State.
    next: [Duration; 3],
    issued_bytes: [u64; 3],
    gaps: Rng,
    /// `gaps` of the first round.
    gaps_first: Rng,
}

impl Pace {
    pub(super) fn new(plan: &ThreadPlan, gaps: Rng) -> Pace {
        let (rate, block) = (plan.rate_bytes, plan.block);
        let mean = |rate: u64, sectors: u32| {
            let ios = rate / (u64::from(sectors) * 512);
            1_000_000_u64.checked_div(ios).unwrap_or(1_000_000)
        };
        Pace {
            process: plan.rate_process,
            bytes_a_second: [rate.read, rate.write, rate.trim],
            mean_us: [
                mean(rate.read, block.read.min_sectors),
                mean(rate.write, block.write.min_sectors),
                mean(rate.trim, block.trim.min_sectors),
            ],
            block_bytes: [block.read, block.write, block.trim]
                .map(|block| u64::from(block.min_sectors) * 512),
            next: [Duration::ZERO; 3],
            issued_bytes: [0; 3],
            gaps_first: gaps.clone(),
            gaps,
        }
    }

    /// The same gaps again; a rate counts on.
    pub(super) fn start_over(&mut self) {
        self.gaps = self.gaps_first.clone();
    }

    /// When the next I/O of a direction may go, from the first I/O of the stream on.
    pub(super) fn open_at(&self, direction: usize) -> Duration {
        self.next[direction]
    }

    /// A pause does not count: what would have been done in it is done, but for a block
    /// (rate_ignore_thinktime in handle_thinktime()).
    pub(super) fn skips(&mut self, direction: usize, pause: Duration) {
        let rate = self.bytes_a_second[direction];
        if rate == 0 {
            return;
        }
        let us = pause.0 / 1000;
        let missed = (u128::from(rate) * u128::from(us) / 1_000_000) as u64;
        let block = self.block_bytes[direction];
        let over = if block * 1_000_000 / rate <= us {
            block
        } else {
            0
        };
        // In fio's unsigned arithmetic, a rate of less than a block in the pause counts back.
        let issued = &mut self.issued_bytes[direction];
        *issued = (*issued + missed).saturating_sub(over);
        if self.process == RateProcess::Poisson {
            self.next[direction] += Duration::from_micros(us);
        }
    }

    /// An I/O of a direction is issued.
    pub(super) fn goes(&mut self, direction: usize, sectors: u64) {
        let rate = self.bytes_a_second[direction];
        if rate == 0 {
            return;
        }
        self.issued_bytes[direction] += sectors * 512;
        self.next[direction] = match self.process {
            RateProcess::Linear => {
                let issued = u128::from(self.issued_bytes[direction]);
                Duration((issued * 1_000_000_000 / u128::from(rate)) as u64)
            }
            RateProcess::Poisson => {
                let gap = self.gaps.exponential(self.mean_us[direction] * 1000);
                // fio counts whole microseconds.
                self.next[direction] + Duration::from_micros(gap / 1000)
            }
        };
    }
}

#[cfg(test)]
mod tests;
