//! Attributes in the policy's unit: ticks or nanoseconds, as in the kernel's clock.
//!
//! Not here: their names and ranges (`settings.rs`). Kernel: struct cfq_data, block/cfq-iosched.c
//! (2.6.32 to 4.20).

use super::settings::CfqSettings;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tuned {
    pub(super) fifo_expire: [i64; 2],
    pub(super) slice: [i64; 2],
    pub(super) slice_idle: i64,
    pub(super) group_idle: i64,
    pub(super) target_latency: i64,
}

impl Tuned {
    pub(super) fn new(settings: &CfqSettings) -> Tuned {
        Tuned {
            fifo_expire: settings.fifo_expire.map(|span| settings.span(span)),
            slice: settings.slice.map(|span| settings.span(span)),
            slice_idle: settings.span(settings.slice_idle),
            group_idle: settings.span(settings.group_idle),
            target_latency: settings.span(settings.target_latency),
        }
    }
}
