//! Instants and spans of simulated time, and the kernel's tick.
//!
//! Not a clock: nothing here advances. Read next: `rules.rs` for HZ.
//! Kernel: include/linux/jiffies.h, kernel/time/time.c (v6.12).

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Nanoseconds since the start of a run (or of a capture).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub u64);

/// The time since boot (ktime_get_ns()) when the clock is 0. jiffies, which begin five minutes
/// below 2^32 (INITIAL_JIFFIES), are 2^32 then.
pub const UPTIME: Duration = Duration(300_000_000_000);

/// Ticks of the scenario's HZ. Expiry in the block layer is compared in ticks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Jiffies(pub u64);

impl SimTime {
    /// The start of a run.
    pub const ZERO: SimTime = SimTime(0);
    /// Later than every event.
    pub const NEVER: SimTime = SimTime(u64::MAX);

    /// Span from `earlier` to here, zero if `earlier` is not earlier.
    pub fn since(self, earlier: SimTime) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The tick of this instant. Panics if `hz` is zero.
    pub fn jiffies(self, hz: u32) -> Jiffies {
        Jiffies(self.0 / (1_000_000_000 / u64::from(hz)))
    }

    /// The tick at which a timer of the wheel that is set now expires after `delay`: the first one
    /// at least `delay` in ticks, of at least its milliseconds, from the current one. Ticks lie at
    /// whole multiples of their length. Panics if `hz` is zero.
    pub fn tick_after(self, delay: Duration, hz: u32) -> SimTime {
        let ticks = Jiffies::from_millis(delay.0.div_ceil(1_000_000), hz);
        SimTime((self.jiffies(hz).0 + ticks.0) * (1_000_000_000 / u64::from(hz)))
    }

    /// The time at which the function of a timer of the wheel runs that is set now to expire after
    /// so many ticks: in the tick after that, and for more than 62 ticks at the end of its coarser
    /// bucket, so that it is never early (calc_index()).
    ///
    /// # Panics
    /// If `hz` is zero.
    pub fn wheel_after(self, delay: Duration, hz: u32) -> SimTime {
        let length = 1_000_000_000 / u64::from(hz);
        let (now, ticks) = (self.jiffies(hz).0, delay.0.div_ceil(length));
        // LVL_START(n) and LVL_SHIFT(n).
        let mut shift = 0;
        while ticks >= 63 << shift && shift < 24 {
            shift += 3;
        }
        let bucket = ((now + ticks) >> shift) + 1;
        SimTime((bucket << shift) * length)
    }
}

impl Duration {
    pub const ZERO: Duration = Duration(0);

    pub const fn from_micros(us: u64) -> Duration {
        Duration(us * 1_000)
    }

    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    /// Seconds to a span.
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s * 1_000_000_000)
    }
}

impl Jiffies {
    /// Ticks that last at least `ms` milliseconds, as msecs_to_jiffies() rounds. Panics if `hz`
    /// is zero.
    pub fn from_millis(ms: u64, hz: u32) -> Jiffies {
        Jiffies((ms * u64::from(hz)).div_ceil(1000))
    }
}

impl Add<Duration> for SimTime {
    type Output = SimTime;
    fn add(self, span: Duration) -> SimTime {
        SimTime(self.0.saturating_add(span.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Add for Jiffies {
    type Output = Jiffies;
    fn add(self, ticks: Jiffies) -> Jiffies {
        Jiffies(self.0.saturating_add(ticks.0))
    }
}

impl Sub for Jiffies {
    type Output = Jiffies;
    /// Saturates at zero.
    fn sub(self, ticks: Jiffies) -> Jiffies {
        Jiffies(self.0.saturating_sub(ticks.0))
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Seconds with nine decimals, as blkparse prints.
impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

impl fmt::Debug for Jiffies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}j", self.0)
    }
}
