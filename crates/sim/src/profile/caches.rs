//! Capacity of caches, and the price of a read that misses them.
//!
//! Only a walk over a table of many objects uses it (`env/line.rs`, `load_among`): all other lines
//! that a CPU has read stay in its own cache.

use serde::{Deserialize, Serialize};

/// Caches of a core and of a die, and the memory below them. None includes another, and each holds
/// a line of the CPUs that share it once.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// A core's own, which its threads share (second level).
    pub own: Cache,
    /// The last-level cache, which the cores of a die share.
    pub last_level: Cache,
    /// A read that only the last-level cache has, picoseconds.
    pub last_level_ps: u64,
    /// A read that none has, picoseconds: the mean over the nodes whose memory it may be.
    pub memory_ps: u64,
}

/// One cache.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// What it holds, KiB.
    pub kib: u32,
    /// Lines of 64 bytes in a set.
    pub ways: u32,
}

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Longest read, picoseconds: 10 us.
const READ_MAX: u64 = 10_000_000;

impl Caches {
    /// Caches have whole sets, and the farther a read goes, the longer it takes. An error comes
    /// with its key.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, cache) in [("own", self.own), ("last_level", self.last_level)] {
            if cache.sets().is_none() {
                let what = format!(
                    "caches.{key}: kib = {}, ways = {}: expected whole sets of lines of 64 bytes",
                    cache.kib, cache.ways
                );
                return Err((key, what));
            }
        }
        let (near, far) = (self.last_level_ps, self.memory_ps);
        if !(1..=READ_MAX).contains(&near) {
            let what = format!("caches.last_level_ps = {near}: expected 1 to {READ_MAX}");
            return Err(("last_level_ps", what));
        }
        if !(near..=READ_MAX).contains(&far) {
            let what =
                format!("caches.memory_ps = {far}: expected {near} (last_level_ps) to {READ_MAX}");
            return Err(("memory_ps", what));
        }
        Ok(())
    }
}

impl Cache {
    /// Sets; `None` if the number is not whole.
    fn sets(self) -> Option<u64> {
        let (bytes, ways) = (u64::from(self.kib) * 1024, u64::from(self.ways));
        let set = ways * LINE;
        (set > 0 && bytes > 0 && bytes.is_multiple_of(set)).then(|| bytes / set)
    }

    /// How many lines fit that lie `stride` bytes apart: they share sets if the stride and the sets
    /// have a common factor. Physical addresses are assumed to be as regular as virtual ones.
    pub fn lines(self, stride: u64) -> u32 {
        let sets = self.sets().unwrap_or(1);
        let step = (stride / LINE).max(1);
        let reached = sets / gcd(sets, step);
        u32::try_from(reached * u64::from(self.ways)).unwrap_or(u32::MAX)
    }
}

/// Greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}
