//! The attributes of BFQ in queue/iosched.
//!
//! Kernel: STORE_FUNCTION, bfq_max_budget_store() and their like in block/bfq-iosched.c (6.1.192,
//! 6.12.117).

use crate::elevator::attribute::{Attribute, Attributes, attributes};
use crate::rules::{AsyncDepth, Rules};
use crate::time::Jiffies;

const MS: u64 = 1_000_000;
const US: u64 = 1000;
/// INT_MAX.
const INT_MAX: u64 = i32::MAX as u64;
/// bfq_slice_idle.
const SLICE_IDLE: u64 = 8 * MS;
/// The least slice_idle with strict guarantees.
const SLICE_STRICT: u64 = SLICE_IDLE;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BfqSettings {
    /// Ticks per second.
    pub hz: u32,
    /// queue/nr_requests at the last notice to the scheduler, as depth_updated saw it.
    pub nr_requests: u32,
    /// queue/async_depth, where there is one (v7.0), and the same as bfq_depth_updated() saw it
    /// last: at first that of the queue before, which is taken to be nr_requests.
    pub async_depth: Option<[u32; 2]>,
    /// Deadline of asynchronous and of synchronous requests, ns.
    pub fifo_expire_ns: [u64; 2],
    /// Longest seek backward, KiB. Default 16384.
    pub back_seek_max: u32,
    /// Cost of a backward sector relative to a forward one. Default 2.
    pub back_seek_penalty: u32,
    /// How long the device idles for the queue in service. Default 8 ms.
    pub slice_idle_ns: u64,
    /// The most sectors in a slot; 0: derived from the peak rate. Default 0.
    pub max_budget: u32,
    /// The most ticks in a slot. Default: an eighth of a second.
    pub timeout_sync: i64,
    /// One request with the driver at a time, and always idle. Default false.
    pub strict_guarantees: bool,
    /// Weight raising. Default true.
    pub low_latency: bool,
}

impl BfqSettings {
    /// The kernel's defaults at `hz` ticks per second, with `nr_requests` scheduler tags.
    pub fn defaults(hz: u32, nr_requests: u32) -> BfqSettings {
        BfqSettings {
            hz,
            nr_requests,
            async_depth: None,
            fifo_expire_ns: [250 * MS, 125 * MS],
            back_seek_max: 16 * 1024,
            back_seek_penalty: 2,
            slice_idle_ns: SLICE_IDLE,
            max_budget: 0,
            timeout_sync: i64::from(hz / 8),
            strict_guarantees: false,
            low_latency: true,
        }
    }
}

fn int(value: u64, least: u64) -> u64 {
    value.clamp(least, INT_MAX)
}

/// bfq_slice_idle has 32 bits: a value above 4.29 s is truncated.
fn truncated(ns: u64) -> u64 {
    u64::from(ns as u32)
}

impl Attributes for BfqSettings {
    const SCHEDULER: &'static str = "bfq";
    const TABLE: &'static [Attribute<BfqSettings>] = attributes! {
        "fifo_expire_sync" is "ms, 125: age at which a synchronous request may go first",
            |s| (s.fifo_expire_ns[1] / MS).into(),
            Long(|s, v| s.fifo_expire_ns[1] = int(v, 1) * MS);
        "fifo_expire_async" is "ms, 250: the same of an asynchronous one",
            |s| (s.fifo_expire_ns[0] / MS).into(),
            Long(|s, v| s.fifo_expire_ns[0] = int(v, 1) * MS);
        "back_seek_max" is "KiB, 16384: longest backward seek that is considered",
            |s| s.back_seek_max.into(), Long(|s, v| s.back_seek_max = int(v, 0) as u32);
        "back_seek_penalty" is "2: cost of a backward sector in forward sectors",
            |s| s.back_seek_penalty.into(), Long(|s, v| s.back_seek_penalty = int(v, 1) as u32);
        "slice_idle" is "ms, 8: how long the device is idle for a queue; 0: never",
            |s| (s.slice_idle_ns / MS).into(),
            Long(|s, v| s.slice_idle_ns = truncated(int(v, 0) * MS));
        "slice_idle_us" is "us, 8000: the same",
            |s| (s.slice_idle_ns / US).into(),
            Long(|s, v| s.slice_idle_ns = truncated(v.min(u64::from(u32::MAX)) * US));
        "max_budget" is "sectors, 0: most service of a queue in a turn; 0: from the peak rate",
            |s| s.max_budget.into(), Long(|s, v| s.max_budget = int(v, 0) as u32);
        "timeout_sync" is "ms, HZ / 8: longest turn of a queue",
            |s| (s.timeout_sync as u64 * 1000).div_ceil(u64::from(s.hz)).into(), Long(|s, v| {
                let ticks = Jiffies::from_millis(int(v, 1), s.hz);
                s.timeout_sync = ticks.0 as i64;
            });
        "strict_guarantees" is "0: 1 dispatches one request at a time and always idles",
            |s| s.strict_guarantees.into(), Long(|s, v| {
                if !s.strict_guarantees && v > 0 {
                    s.slice_idle_ns = s.slice_idle_ns.max(SLICE_STRICT);
                }
                s.strict_guarantees = v > 0;
            });
        "low_latency" is "1: raise the weight of interactive and soft real-time queues",
            |s| s.low_latency.into(), Long(|s, v| s.low_latency = v > 0);
        "async_depth" is "nr_requests * 3 / 4, from v7.0 on: tags for synchronous writes",
            |s| s.async_depth.map_or(-1, |[now, _]| now.into()), Long(|s, v| {
                let depth = v.clamp(1, s.nr_requests.into()) as u32;
                s.async_depth = s.async_depth.map(|_| [depth; 2]);
            });
    };

    fn follow(&mut self, rules: &Rules, _rotational: bool) {
        let depth = [self.nr_requests * 3 / 4, self.nr_requests];
        self.async_depth = (rules.async_depth == AsyncDepth::OfQueue).then_some(depth);
    }

    /// bfq_depth_updated() after bfq_init_queue().
    fn depth_was_updated(&mut self) {
        self.async_depth = self.async_depth.map(|[now, _]| [now; 2]);
    }

    fn has(&self, name: &str) -> bool {
        name != "async_depth" || self.has_depth_of_queue()
    }

    fn has_depth_of_queue(&self) -> bool {
        self.async_depth.is_some()
    }
}
