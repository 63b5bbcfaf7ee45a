//! The attributes of mq-deadline in queue/iosched, with the kernel's parsing and clamping.
//!
//! Times are stored in milliseconds and kept in ticks, rounded up. A change affects later decisions
//! only: the expiry of queued requests stays as it was set.
//! Kernel: block/mq-deadline.c STORE_FUNCTION (v6.1, v6.12), `attribute.rs` has the parsing.

use crate::elevator::attribute::{Attribute, Attributes, Value, attributes};
use crate::request::Direction;
use crate::rules::{AsyncDepth, Rules};
use crate::time::Jiffies;

/// Settings of one queue's mq-deadline. Names are those of sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MqDeadlineSettings {
    /// Ticks per second.
    pub hz: u32,
    /// Time after which a read goes first at the next batch boundary. Default HZ/2.
    pub read_expire: Jiffies,
    /// The same for a write. Default 5 HZ.
    pub write_expire: Jiffies,
    /// Age at which a request of level BE or IDLE overtakes higher levels. Default 10 HZ.
    pub prio_aging_expire: Jiffies,
    /// Direction decisions that writes lose against reads before they win one. Compared as
    /// unsigned: a negative value means for ever. Default 2.
    pub writes_starved: i32,
    /// The sort tree is searched for front merges. Default true.
    pub front_merges: bool,
    /// Requests of one batch; 0 and 1 both mean a decision for each. Default 16.
    pub fifo_batch: u32,
    /// Scheduler tags for operations other than reads. Default nr_requests.
    pub async_depth: u32,
    /// The most that may be written to async_depth, which is nr_requests where the attribute is
    /// the queue's; none: any number.
    pub async_depth_max: Option<u32>,
}

impl MqDeadlineSettings {
    /// The kernel's defaults at `hz` ticks per second, with `nr_requests` scheduler tags.
    pub fn defaults(hz: u32, nr_requests: u32) -> MqDeadlineSettings {
        let ticks = u64::from(hz);
        MqDeadlineSettings {
            hz,
            read_expire: Jiffies(ticks / 2),
            write_expire: Jiffies(5 * ticks),
            prio_aging_expire: Jiffies(10 * ticks),
            writes_starved: 2,
            front_merges: true,
            fifo_batch: 16,
            async_depth: nr_requests,
            async_depth_max: None,
        }
    }

    /// fifo_expire of a direction.
    pub fn expire(&self, dir: Direction) -> Jiffies {
        match dir {
            Direction::Read => self.read_expire,
            Direction::Write => self.write_expire,
        }
    }

    fn millis(&self, ticks: Jiffies) -> Value {
        Value::from(ticks.0 * 1000 / u64::from(self.hz))
    }

    fn ticks(&self, millis: i32) -> Jiffies {
        Jiffies::from_millis(not_negative(millis).into(), self.hz)
    }
}

fn not_negative(value: i32) -> u32 {
    value.max(0) as u32
}

impl Attributes for MqDeadlineSettings {
    const SCHEDULER: &'static str = "mq-deadline";
    const TABLE: &'static [Attribute<MqDeadlineSettings>] = attributes! {
        "read_expire" is "ms, 500: age at which a read goes first",
            |s| s.millis(s.read_expire), Int(|s, v| s.read_expire = s.ticks(v));
        "write_expire" is "ms, 5000: age at which a write goes first",
            |s| s.millis(s.write_expire), Int(|s, v| s.write_expire = s.ticks(v));
        "prio_aging_expire" is "ms, 10000: age at which a request of a lower class overtakes",
            |s| s.millis(s.prio_aging_expire), Int(|s, v| s.prio_aging_expire = s.ticks(v));
        "writes_starved" is "2: read batches before writes get one",
            |s| Value::from(s.writes_starved), Int(|s, v| s.writes_starved = v);
        "fifo_batch" is "16: requests in a batch",
            |s| Value::from(s.fifo_batch), Int(|s, v| s.fifo_batch = not_negative(v));
        "front_merges" is "1: look for front merges",
            |s| Value::from(s.front_merges), Int(|s, v| s.front_merges = v > 0);
        "async_depth" is "nr_requests as it was at first: tags for anything but reads, at least 1",
            |s| Value::from(s.async_depth), Int(|s, v| {
                s.async_depth = not_negative(v).max(1).min(s.async_depth_max.unwrap_or(u32::MAX));
            });
    };

    fn follow(&mut self, rules: &Rules, _rotational: bool) {
        let of_queue = rules.async_depth == AsyncDepth::OfQueue;
        self.async_depth_max = of_queue.then_some(self.async_depth);
    }

    fn has_depth_of_queue(&self) -> bool {
        self.async_depth_max.is_some()
    }
}

#[cfg(test)]
mod tests;
