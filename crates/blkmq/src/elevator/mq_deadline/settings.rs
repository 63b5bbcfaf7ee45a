//! The attributes of mq-deadline in queue/iosched, with the kernel's parsing and clamping.
//!
//! Times are stored in milliseconds and kept in ticks, rounded up. A change acts on later
//! decisions only: the expiry of queued requests stays as it was set.
//! Kernel: block/mq-deadline.c STORE_FUNCTION (v6.1, v6.12), lib/kstrtox.c.

use crate::request::Direction;
use crate::time::Jiffies;
use core::fmt;

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
    /// Whether the sort tree is asked for front merges. Default true.
    pub front_merges: bool,
    /// Requests of one batch; 0 and 1 both mean a decision for each. Default 16.
    pub fifo_batch: u32,
    /// Scheduler tags that anything but reads may use. Default nr_requests.
    pub async_depth: u32,
}

/// Why a store into an attribute was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// There is no attribute of this name.
    UnknownAttribute {
        /// The name.
        name: String,
    },
    /// The text is not an integer: decimal, 0x hexadecimal or 0 octal, with a sign or without.
    NotANumber {
        /// Attribute.
        name: &'static str,
        /// What was written.
        text: String,
    },
    /// The number is no 32-bit signed integer. (Those that are get clamped silently.)
    OutOfRange {
        /// Attribute.
        name: &'static str,
        /// What was written.
        text: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::UnknownAttribute { name } => {
                write!(f, "mq-deadline has no attribute {name:?}; it has ")?;
                f.write_str(&MqDeadlineSettings::ATTRIBUTES.join(", "))
            }
            StoreError::NotANumber { name, text } => {
                write!(f, "{name}: {text:?} is not an integer")
            }
            StoreError::OutOfRange { name, text } => {
                write!(f, "{name}: {text:?} is outside -2147483648 to 2147483647")
            }
        }
    }
}

impl core::error::Error for StoreError {}

impl MqDeadlineSettings {
    /// All attributes.
    pub const ATTRIBUTES: [&'static str; 7] = [
        "read_expire",
        "write_expire",
        "prio_aging_expire",
        "writes_starved",
        "front_merges",
        "fifo_batch",
        "async_depth",
    ];

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
        }
    }

    /// fifo_expire of a direction.
    pub fn expire(&self, dir: Direction) -> Jiffies {
        match dir {
            Direction::Read => self.read_expire,
            Direction::Write => self.write_expire,
        }
    }

    /// Writes `text` to the attribute `name`, as a write to sysfs would.
    pub fn store(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let Some(name) = MqDeadlineSettings::ATTRIBUTES
            .into_iter()
            .find(|&n| n == name)
        else {
            return Err(StoreError::UnknownAttribute {
                name: name.to_owned(),
            });
        };
        let value = parse_int(name, text)?;
        let not_negative = value.max(0) as u32;
        let ticks = Jiffies::from_millis(u64::from(not_negative), self.hz);
        match name {
            "read_expire" => self.read_expire = ticks,
            "write_expire" => self.write_expire = ticks,
            "prio_aging_expire" => self.prio_aging_expire = ticks,
            "writes_starved" => self.writes_starved = value,
            "front_merges" => self.front_merges = value > 0,
            "fifo_batch" => self.fifo_batch = not_negative,
            "async_depth" => self.async_depth = not_negative.max(1),
            _ => unreachable!("{name} is in ATTRIBUTES"),
        }
        Ok(())
    }

    /// What reading the attribute `name` shows: times in milliseconds. `None`: no such attribute.
    pub fn show(&self, name: &str) -> Option<i64> {
        let millis = |ticks: Jiffies| (ticks.0 * 1000 / u64::from(self.hz)) as i64;
        Some(match name {
            "read_expire" => millis(self.read_expire),
            "write_expire" => millis(self.write_expire),
            "prio_aging_expire" => millis(self.prio_aging_expire),
            "writes_starved" => i64::from(self.writes_starved),
            "front_merges" => i64::from(self.front_merges),
            "fifo_batch" => i64::from(self.fifo_batch),
            "async_depth" => i64::from(self.async_depth),
            _ => return None,
        })
    }
}

/// kstrtoint() with base 0.
fn parse_int(name: &'static str, text: &str) -> Result<i32, StoreError> {
    let bare = text.strip_suffix('\n').unwrap_or(text);
    let (negative, digits) = match bare.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let (base, digits) = match hex {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    // A second sign, which from_str_radix would take, is none for the kernel.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(StoreError::NotANumber {
            name,
            text: bare.to_owned(),
        });
    }
    let out_of_range = || StoreError::OutOfRange {
        name,
        text: bare.to_owned(),
    };
    let size = i64::from_str_radix(digits, base).map_err(|_| out_of_range())?;
    i32::try_from(if negative { -size } else { size }).map_err(|_| out_of_range())
}

#[cfg(test)]
mod tests;
