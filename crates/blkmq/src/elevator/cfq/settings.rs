//! The attributes of CFQ in queue/iosched.
//!
//! Defaults depend on the kernel's rules, so `None` is a value that was not set. Kernel:
//! STORE_FUNCTION, USEC_STORE_FUNCTION in block/cfq-iosched.c (2.6.32 to 4.20).

use crate::elevator::attribute::{Attribute, Attributes, Value, attributes};
use crate::rules::{Rules, SliceAttributes, SliceClock, TimeSlices};
use crate::time::Jiffies;

const US_OF_MS: u64 = 1000;
const NS_OF_US: u64 = 1000;
const NS_OF_S: i64 = 1_000_000_000;
const UINT_MAX: u64 = u32::MAX as u64;

/// A span: the value set, in us, or the default, a fraction of a second.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    pub us: Option<u64>,
    /// Numerator and denominator of the default.
    pub default: (i64, i64),
}

impl Span {
    const fn of(numerator: i64, denominator: i64) -> Span {
        Span {
            us: None,
            default: (numerator, denominator),
        }
    }

    fn set(&mut self, us: u64) {
        self.us = Some(us);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CfqSettings {
    /// Ticks per second.
    pub hz: u32,
    /// Unit of spans, by the rules; ticks before the rules are known.
    pub clock: SliceClock,
    /// Attributes that exist, by the rules; all before the rules are known.
    pub attributes: Option<SliceAttributes>,
    /// The most requests of a queue with the driver. Default 4, from 2.6.34 on 8.
    pub quantum: Option<u32>,
    /// Deadline of a request, for asynchronous and synchronous ones. Default a fourth and an eighth
    /// of a second.
    pub fifo_expire: [Span; 2],
    /// Longest seek backward, KiB. Default 16384.
    pub back_seek_max: u32,
    /// Cost of a backward sector relative to a forward one. Default 2.
    pub back_seek_penalty: u32,
    /// Slice of a queue of level 4, asynchronous and synchronous. Default 40 and 100 ms.
    pub slice: [Span; 2],
    /// Limits the requests of an asynchronous queue in one slice. Default 2.
    pub slice_async_rq: u32,
    /// How long the device idles for a queue. Default 8 ms.
    pub slice_idle: Span,
    /// How long the device idles for a group (v4.20). Default 8 ms.
    pub group_idle: Span,
    /// Depth of asynchronous queues grows slowly, and slices shrink with the number of queues.
    /// Default true.
    pub low_latency: bool,
    /// Time in which each queue should be served once; constant before v4.20. Default 300 ms.
    pub target_latency: Span,
    /// Queues without idling stay in their group (2.6.33 to 2.6.37). Default false.
    pub group_isolation: bool,
}

impl CfqSettings {
    /// The kernel's defaults at `hz` ticks per second.
    pub fn defaults(hz: u32, _nr_requests: u32) -> CfqSettings {
        CfqSettings {
            hz,
            clock: SliceClock::Ticks,
            attributes: None,
            quantum: None,
            fifo_expire: [Span::of(1, 4), Span::of(1, 8)],
            back_seek_max: 16 * 1024,
            back_seek_penalty: 2,
            slice: [Span::of(1, 25), Span::of(1, 10)],
            slice_async_rq: 2,
            slice_idle: Span::of(1, 125),
            group_idle: Span::of(1, 125),
            low_latency: true,
            target_latency: Span::of(3, 10),
            group_isolation: false,
        }
    }

    /// The settings by these rules, for a rotational or other drive.
    pub(super) fn by(mut self, rules: &TimeSlices, rotational: bool) -> CfqSettings {
        self.clock = rules.clock;
        self.attributes = Some(rules.attributes);
        self.quantum = self.quantum.or(Some(rules.quantum));
        if rules.charges_requests && !rotational && self.slice_idle.us.is_none() {
            // cfq_registered_queue(): no idling on a non-rotational drive.
            self.slice_idle.us = Some(0);
        }
        self
    }

    pub(super) fn second(&self) -> i64 {
        match self.clock {
            SliceClock::Ticks => i64::from(self.hz),
            SliceClock::Nanoseconds => NS_OF_S,
        }
    }

    /// A span in the unit of the clock. Defaults are rounded down, to at least one tick; values
    /// that were set are rounded up (msecs_to_jiffies()).
    pub(super) fn span(&self, span: Span) -> i64 {
        match (span.us, self.clock) {
            (None, _) => (self.second() * span.default.0 / span.default.1).max(1),
            (Some(us), SliceClock::Ticks) => {
                Jiffies::from_millis(us.div_ceil(US_OF_MS), self.hz).0 as i64
            }
            (Some(us), SliceClock::Nanoseconds) => (us * NS_OF_US) as i64,
        }
    }

    /// The value in sysfs, us (jiffies_to_msecs()).
    fn shown_us(&self, span: Span) -> Value {
        let span = Value::from(self.span(span));
        match self.clock {
            SliceClock::Ticks => {
                let hz = Value::from(self.hz);
                ((span * 1000 + hz - 1) / hz) * Value::from(US_OF_MS)
            }
            SliceClock::Nanoseconds => span / Value::from(NS_OF_US),
        }
    }

    fn shown_ms(&self, span: Span) -> Value {
        self.shown_us(span) / Value::from(US_OF_MS)
    }
}

/// The kernel's clamp of an unsigned int, from ms or us to us.
fn clamped(value: u64, least: u64, unit: u64) -> u64 {
    value.clamp(least, UINT_MAX) * unit
}

/// Attributes that only some kernels have.
const OF_SOME: [(&str, SliceAttributes); 8] = [
    ("group_isolation", SliceAttributes::Isolation),
    ("slice_sync_us", SliceAttributes::Targets),
    ("slice_async_us", SliceAttributes::Targets),
    ("slice_idle_us", SliceAttributes::Targets),
    ("group_idle", SliceAttributes::Targets),
    ("group_idle_us", SliceAttributes::Targets),
    ("target_latency", SliceAttributes::Targets),
    ("target_latency_us", SliceAttributes::Targets),
];

impl Attributes for CfqSettings {
    const SCHEDULER: &'static str = "cfq";

    fn follow(&mut self, rules: &Rules, rotational: bool) {
        *self = self.by(&rules.time_slices, rotational);
    }

    fn has(&self, name: &str) -> bool {
        let of = OF_SOME.iter().find(|(known, _)| *known == name);
        match (of, self.attributes) {
            (Some(&(_, of)), Some(own)) => of == own,
            _ => true,
        }
    }

    const TABLE: &'static [Attribute<CfqSettings>] = attributes! {
        "quantum" is "4, from 2.6.34 on 8: most requests of a queue with the driver",
            |s| s.quantum.map_or(-1, Value::from),
            Long(|s, v| s.quantum = Some(clamped(v, 1, 1) as u32));
        "fifo_expire_sync" is "ms, HZ / 8: age at which a synchronous request goes first",
            |s| s.shown_ms(s.fifo_expire[1]),
            Long(|s, v| s.fifo_expire[1].set(clamped(v, 1, US_OF_MS)));
        "fifo_expire_async" is "ms, HZ / 4: the same of an asynchronous one",
            |s| s.shown_ms(s.fifo_expire[0]),
            Long(|s, v| s.fifo_expire[0].set(clamped(v, 1, US_OF_MS)));
        "back_seek_max" is "KiB, 16384: longest backward seek that is considered",
            |s| s.back_seek_max.into(), Long(|s, v| s.back_seek_max = clamped(v, 0, 1) as u32);
        "back_seek_penalty" is "2: cost of a backward sector in forward sectors",
            |s| s.back_seek_penalty.into(),
            Long(|s, v| s.back_seek_penalty = clamped(v, 1, 1) as u32);
        "slice_sync" is "ms, 100: slice of a synchronous queue of level 4",
            |s| s.shown_ms(s.slice[1]), Long(|s, v| s.slice[1].set(clamped(v, 1, US_OF_MS)));
        "slice_sync_us" is "us, 100000: the same (v4.20)",
            |s| s.shown_us(s.slice[1]), Long(|s, v| s.slice[1].set(clamped(v, 1, 1)));
        "slice_async" is "ms, 40: slice of an asynchronous queue of level 4",
            |s| s.shown_ms(s.slice[0]), Long(|s, v| s.slice[0].set(clamped(v, 1, US_OF_MS)));
        "slice_async_us" is "us, 40000: the same (v4.20)",
            |s| s.shown_us(s.slice[0]), Long(|s, v| s.slice[0].set(clamped(v, 1, 1)));
        "slice_async_rq" is
            "2: an asynchronous queue of level 4 has 8 times as many requests a slice",
            |s| s.slice_async_rq.into(), Long(|s, v| s.slice_async_rq = clamped(v, 1, 1) as u32);
        "slice_idle" is "ms, 8: how long the device is idle for a queue; 0: never",
            |s| s.shown_ms(s.slice_idle), Long(|s, v| s.slice_idle.set(clamped(v, 0, US_OF_MS)));
        "slice_idle_us" is "us, 8000: the same (v4.20)",
            |s| s.shown_us(s.slice_idle), Long(|s, v| s.slice_idle.set(clamped(v, 0, 1)));
        "group_idle" is "ms, 8: how long it is idle for a group (v4.20); 0: never",
            |s| s.shown_ms(s.group_idle), Long(|s, v| s.group_idle.set(clamped(v, 0, US_OF_MS)));
        "group_idle_us" is "us, 8000: the same (v4.20)",
            |s| s.shown_us(s.group_idle), Long(|s, v| s.group_idle.set(clamped(v, 0, 1)));
        "low_latency" is
            "1: asynchronous depth grows slowly, slices shrink with the number of queues",
            |s| s.low_latency.into(), Long(|s, v| s.low_latency = v > 0);
        "target_latency" is "ms, 300: time in which all queues have a turn (settable in v4.20)",
            |s| s.shown_ms(s.target_latency),
            Long(|s, v| s.target_latency.set(clamped(v, 1, US_OF_MS)));
        "target_latency_us" is "us, 300000: the same (v4.20)",
            |s| s.shown_us(s.target_latency), Long(|s, v| s.target_latency.set(clamped(v, 1, 1)));
        "group_isolation" is "0: queues that do not idle go to the root group (2.6.33 to 2.6.37)",
            |s| s.group_isolation.into(), Long(|s, v| s.group_isolation = v > 0);
    };
}
