//! Peak rate: how many sectors the device takes per microsecond when it is busy, and the largest
//! budget that follows from it.
//!
//! Rates are sectors a microsecond, shifted by 16. Kernel: bfq_update_peak_rate(),
//! bfq_update_rate_reset(), update_thr_responsiveness_params() in block/bfq-iosched.c (6.1.192,
//! 6.12.117).

use super::idling::MIN_TT;
use super::ids::QId;
use super::{Bfq, DIVISION};
use crate::request::{Request, RequestId, RequestPool};

/// BFQ_RATE_SHIFT.
const SHIFT: u32 = 16;
/// The least number of samples in an interval (BFQ_RATE_MIN_SAMPLES).
const SAMPLES_MIN: u32 = 32;
/// Shortest interval, ns (BFQ_RATE_MIN_INTERVAL).
const INTERVAL_MIN: u64 = 300_000_000;
/// Longest interval, ns (BFQ_RATE_REF_INTERVAL).
const INTERVAL: u64 = 1_000_000_000;
/// A gap of so long without a request ends the interval, ns.
const GAP: u64 = 100_000_000;
/// ref_rate of devices with seeks, and without.
pub(super) const REFERENCE: [u32; 2] = [14_000, 33_000];
/// Duration of weight raising at that rate, ms (ref_wr_duration).
pub(super) const REFERENCE_WR_MS: [u64; 2] = [7000, 2500];

/// Measurements of the current interval. Times are ns.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Rate {
    first_dispatch: u64,
    last_dispatch: u64,
    samples: u32,
    sequential: u32,
    sectors: u64,
    rq_max: u32,
    delta_from_first: u64,
}

impl Bfq {
    /// bfq_calc_max_budget().
    pub(super) fn calc_max_budget(&self) -> i32 {
        let timeout_ms = self.fixed.to_ms(self.settings.timeout_sync).cast_unsigned();
        ((u64::from(self.peak_rate) * 1000 * timeout_ms) >> SHIFT) as i32
    }

    fn reset_rate(&mut self, rq: Option<&Request>) {
        if let Some(rq) = rq {
            let now = self.read_clock();
            self.rate = Rate {
                first_dispatch: now,
                last_dispatch: now,
                samples: 1,
                sequential: 0,
                sectors: rq.sectors.0.into(),
                rq_max: rq.sectors.0,
                delta_from_first: self.rate.delta_from_first,
            };
        } else {
            self.rate.samples = 0;
        }
        let Rate {
            samples,
            sequential,
            sectors,
            ..
        } = self.rate;
        trace_device_msg!(
            self,
            "reset_rate_computation at end, sample {samples}/{sequential} tot_sects {sectors}"
        );
    }

    /// Ends an interval: its rate counts if it is long, busy and plausible.
    fn close_rate(&mut self, rq: Option<&Request>) {
        if self.rate.samples >= SAMPLES_MIN && self.rate.delta_from_first >= INTERVAL_MIN {
            self.adopt_rate();
        }
        self.reset_rate(rq);
    }

    fn adopt_rate(&mut self) {
        self.charge(8 + 4 * DIVISION);
        let since_first = self
            .last_completion_ns
            .wrapping_sub(self.rate.first_dispatch);
        let rate = &mut self.rate;
        rate.delta_from_first = rate.delta_from_first.max(since_first);
        let delta = rate.delta_from_first;
        let new = ((rate.sectors << SHIFT) / (delta / 1000)) as u32;
        let few = rate.sequential < (3 * rate.samples) >> 2;
        if few && new <= self.peak_rate || new > 20 << SHIFT {
            return;
        }
        let weight = 9 * rate.sequential / rate.samples;
        let weight = (u64::from(weight).wrapping_mul(delta) / INTERVAL) as u32;
        let divisor = 10 - weight.min(8);
        // The kernel's product has 32 bits, too.
        let old = self.peak_rate.wrapping_mul(divisor - 1) / divisor;
        self.peak_rate = old.wrapping_add(new / divisor).max(1);
        if self.settings.max_budget == 0 {
            self.max_budget = self.calc_max_budget();
            let budget = self.max_budget;
            trace_device_msg!(self, "new max_budget = {budget}");
        }
    }

    /// A request is dispatched to the driver (bfq_update_peak_rate()).
    pub(super) fn update_rate(&mut self, pool: &RequestPool, q: QId, rq: RequestId) {
        self.charge(7);
        let (now, rq) = (self.read_clock(), &pool[rq]);
        if self.rate.samples == 0 {
            trace_device_msg!(self, "update_peak_rate: goto reset, samples 0");
            self.reset_rate(Some(rq));
        } else if now.wrapping_sub(self.rate.last_dispatch) > GAP && self.in_driver_total == 0 {
            self.close_rate(Some(rq));
        } else {
            let busy =
                self.in_driver_total > 0 || now.wrapping_sub(self.last_completion_ns) < MIN_TT;
            let sequential = busy && !self.is_far(self.last_position, rq);
            let rate = &mut self.rate;
            rate.samples += 1;
            rate.sequential += u32::from(sequential);
            rate.sectors += u64::from(rq.sectors.0);
            rate.rq_max = match rate.samples % SAMPLES_MIN {
                0 => rq.sectors.0,
                _ => rate.rq_max.max(rq.sectors.0),
            };
            rate.delta_from_first = now.wrapping_sub(rate.first_dispatch);
            if rate.delta_from_first >= INTERVAL {
                self.close_rate(Some(rq));
            }
        }
        self.last_position = rq.end().0;
        if self.in_service == Some(q) {
            self.in_serv_last_pos = self.last_position;
        }
        self.rate.last_dispatch = now;
    }

    /// A long time before a completion ends the interval, as the device was not busy.
    pub(super) fn rate_at_completion(&mut self, now: u64) {
        self.charge(2 + DIVISION);
        let us = (now.wrapping_sub(self.last_completion_ns) / 1000) as u32;
        if u64::from(us) > MIN_TT / 1000 && (self.rate.rq_max << SHIFT) / us < 1 << (SHIFT - 10) {
            self.close_rate(None);
        }
    }
}
