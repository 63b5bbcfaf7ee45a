//! The attributes of Kyber in queue/iosched: its two target latencies.
//!
//! Any number of 64 bits is accepted, decimal. A change affects requests that end later; samples
//! keep their buckets. Kernel: KYBER_LAT_SHOW_STORE in block/kyber-iosched.c (6.1.192, 6.12.117).

use super::ASYNC_PERCENT;
use super::domain::{Domain, MEASURED};
use crate::elevator::attribute::{Attribute, Attributes, Value, attributes};
use crate::rules::{AsyncDepth, Rules};

/// Settings of one queue's Kyber. Names are those of sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KyberSettings {
    /// Ticks per second.
    pub hz: u32,
    /// queue/nr_requests at the last call of depth_updated, as that saw it.
    pub nr_requests: u32,
    /// queue/async_depth, where there is one (v7.0).
    pub async_depth: Option<u32>,
    /// Target of reads, nanoseconds. Default 2 ms.
    pub read_lat_nsec: u64,
    /// Target of writes, nanoseconds. Default 10 ms.
    pub write_lat_nsec: u64,
}

impl KyberSettings {
    /// The kernel's defaults at `hz` ticks per second, with `nr_requests` scheduler tags.
    pub fn defaults(hz: u32, nr_requests: u32) -> KyberSettings {
        let target = |domain: Domain| domain.target_ns().expect("it is measured");
        KyberSettings {
            hz,
            nr_requests,
            async_depth: None,
            read_lat_nsec: target(Domain::Read),
            write_lat_nsec: target(Domain::Write),
        }
    }

    /// Targets of all measured domains; that of discards cannot be set.
    pub fn targets(&self) -> [u64; MEASURED] {
        let discard = Domain::Discard.target_ns().expect("it is measured");
        [self.read_lat_nsec, self.write_lat_nsec, discard]
    }
}

impl Attributes for KyberSettings {
    const SCHEDULER: &'static str = "kyber";
    const TABLE: &'static [Attribute<KyberSettings>] = attributes! {
        "read_lat_nsec" is "ns, 2000000: target latency of reads",
            |s| s.read_lat_nsec.into(), Long(|s, v| s.read_lat_nsec = v);
        "write_lat_nsec" is "ns, 10000000: target latency of writes",
            |s| s.write_lat_nsec.into(), Long(|s, v| s.write_lat_nsec = v);
        "async_depth" is "75 % of nr_requests, from v7.0 on: tags for all but synchronous reads",
            |s| s.async_depth.map_or(-1, Value::from), Long(|s, v| {
                let depth = v.clamp(1, s.nr_requests.into()) as u32;
                s.async_depth = s.async_depth.map(|_| depth);
            });
    };

    fn follow(&mut self, rules: &Rules, _rotational: bool) {
        let depth = self.nr_requests * ASYNC_PERCENT / 100;
        self.async_depth = (rules.async_depth == AsyncDepth::OfQueue).then_some(depth);
    }

    fn has(&self, name: &str) -> bool {
        name != "async_depth" || self.has_depth_of_queue()
    }

    fn has_depth_of_queue(&self) -> bool {
        self.async_depth.is_some()
    }
}
