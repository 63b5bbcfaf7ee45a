//! Spans of time that no attribute sets, in ticks of the kernel's HZ.
//!
//! Kernel: constants and bfq_init_queue() in block/bfq-iosched.c (6.1.192, 6.12.117; 5.13).

use crate::rules::{FairQueueing, StableMerge};
use crate::time::Jiffies;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Fixed {
    hz: i64,
    /// BFQ_CL_IDLE_TIMEOUT.
    pub(super) idle_class_timeout: i64,
    /// bfq_merge_time_limit.
    pub(super) merge_time_limit: i64,
    /// bfq_timeout, ms: the time charged, independent of timeout_sync.
    pub(super) charge_timeout_ms: u64,
    /// bfq_burst_interval.
    pub(super) burst_interval: i64,
    /// Bursts are not detected for so long after a split.
    pub(super) burst_after_split: i64,
    /// A queue that was idle for so long is removed from its burst.
    pub(super) burst_forgotten: i64,
    /// bfq_activation_stable_merging.
    pub(super) stable_merge_activation: i64,
    /// bfq_late_stable_merging.
    pub(super) stable_merge_late: i64,
    /// bfq_wr_rt_max_time.
    pub(super) wr_rt_max_time: i64,
    /// Shortest and longest weight raising of interactive queues.
    pub(super) wr_time_min: i64,
    pub(super) wr_time_max: i64,
    /// bfq_wr_min_idle_time.
    pub(super) wr_min_idle_time: i64,
    /// bfq_wr_min_inter_arr_async.
    pub(super) wr_min_inter_arr_async: i64,
    /// Injection limits are reset after so long, ...
    pub(super) inject_reset: i64,
    /// ... sooner if the think time has changed, ...
    pub(super) inject_reset_short: i64,
    /// ... and are evaluated so long after they were lowered.
    pub(super) inject_sample: i64,
}

impl Fixed {
    pub(super) fn new(hz: u32, rules: &FairQueueing) -> Fixed {
        let ms = |ms| Jiffies::from_millis(ms, hz).0.cast_signed();
        let hz = i64::from(hz);
        let within_burst = rules.stable_merge == StableMerge::WithinBurst;
        let mut fixed = Fixed {
            hz,
            idle_class_timeout: hz / 5,
            merge_time_limit: hz / 10,
            charge_timeout_ms: 0,
            burst_interval: ms(180),
            burst_after_split: ms(10),
            burst_forgotten: ms(10_000),
            stable_merge_activation: ms(600),
            stable_merge_late: ms(if within_burst { 200 } else { 600 }),
            wr_rt_max_time: ms(300),
            wr_time_min: ms(3000),
            wr_time_max: ms(25_000),
            wr_min_idle_time: ms(2000),
            wr_min_inter_arr_async: ms(500),
            inject_reset: ms(1000),
            inject_reset_short: ms(100),
            inject_sample: ms(10),
        };
        fixed.charge_timeout_ms = fixed.to_ms(hz / 8).max(1).cast_unsigned();
        fixed
    }

    /// jiffies_to_msecs(): rounds up.
    pub(super) fn to_ms(&self, ticks: i64) -> i64 {
        match 1000 % self.hz {
            0 => ticks.wrapping_mul(1000 / self.hz),
            _ => -(i128::from(ticks) * -1000).div_euclid(i128::from(self.hz)) as i64,
        }
    }
}
