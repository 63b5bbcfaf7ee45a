//! How long a drive takes for one command on its own.
//!
//! A read is the controller's time, the slowest of its pages in the flash, and the way of its data;
//! a write ends in the drive's buffer. Without jitter, a command takes its latency. Read first:
//! docs/explanation/model.md, for where figures are from and what is missing.

use crate::device::jittered;
use crate::plan::{DIE_SECTORS, Jitter, NvmePlan, OpLatency};
use crate::rng::Rng;
use blkmq::request::{Op, Sectors};
use blkmq::time::{Duration, SimTime};

#[derive(Debug)]
pub(super) struct Service {
    latency: OpLatency,
    jitter_percent: u64,
    flash: Option<Flash>,
    die_time: Duration,
    /// When each die is free.
    dies: Vec<SimTime>,
    random: Rng,
}

/// Times of a drive with flash of three bits a cell.
#[derive(Debug)]
struct Flash {
    /// The part of a read's latency that is not the array's.
    controller: Duration,
    /// Times of the array for the three kinds of pages.
    pages: [Between; 3],
    write: Between,
    trim: Between,
    flush: Between,
    /// Sectors a second over the link to the host; 0: at once.
    link: u64,
}

/// A time between two limits, each value equally likely.
#[derive(Clone, Copy, Debug)]
struct Between {
    least: u64,
    span: u64,
}

/// Threshold voltages that are sensed for a page, by its place in the cell. Eight states have seven
/// thresholds between them, and neighbours differ in one bit, so that each threshold belongs to one
/// of three pages: most evenly two, three and two.
const SENSINGS: [u64; 3] = [2, 3, 2];

/// The array's part of a read's latency, unless `die_ns` gives it: 45 us, as Samsung announced for
/// its sixth V-NAND (August 2019), of 60 us.
const ARRAY: (u64, u64) = (3, 4);

/// One time differs from others of its kind by up to so many percent: an assumption. Cells at the
/// top of a stack are wider than at its bottom; the controller's firmware looks at dies in turn.
const VARIATION_PERCENT: u64 = 10;

/// A channel between flash and controller, bytes a second: 1.4 Gbit/s on each of eight lines
/// (Toggle DDR 4.0, Samsung's fifth V-NAND, July 2018).
const FLASH_CHANNEL: u64 = 1_400_000_000;

/// Latencies are those of commands up to this size; a drive reads no less from its flash.
const SMALL: u32 = 8;

const SECOND: u64 = 1_000_000_000;

impl Service {
    pub(super) fn new(plan: &NvmePlan, random: Rng) -> Service {
        let (jitter_percent, flash) = match plan.jitter {
            Jitter::Percent(percent) => (u64::from(percent), None),
            Jitter::Flash => (0, Some(Flash::new(plan))),
        };
        assert!(jitter_percent <= 100, "a service time is not negative");
        Service {
            latency: plan.latency,
            jitter_percent,
            flash,
            die_time: plan.die_time,
            dies: vec![SimTime::ZERO; plan.dies as usize],
            random,
        }
    }

    /// Time of a command that a channel takes now.
    pub(super) fn time(&mut self, op: Op, sectors: Sectors, now: SimTime) -> Duration {
        let Some(flash) = &self.flash else {
            return self.plain(op, sectors, now);
        };
        match op {
            Op::Read => {
                let mut array = Duration::ZERO;
                for _ in 0..pages(sectors) {
                    let takes = flash.page(&mut self.random);
                    let waits = wait_for_die(&mut self.dies, takes, now, &mut self.random);
                    array = array.max(waits + takes);
                }
                let flash_channel = Sectors(sectors.0.min(DIE_SECTORS));
                flash.controller
                    + array
                    + beyond_small(flash_channel, FLASH_CHANNEL >> 9)
                    + beyond_small(sectors, flash.link)
            }
            Op::Write => flash.write.draw(&mut self.random) + beyond_small(sectors, flash.link),
            Op::Flush => flash.flush.draw(&mut self.random),
            // Neither moves data.
            Op::Discard | Op::WriteZeroes => flash.trim.draw(&mut self.random),
        }
    }

    /// The latency, evenly spread or not at all.
    fn plain(&mut self, op: Op, sectors: Sectors, now: SimTime) -> Duration {
        let mean = match op {
            Op::Read => self.latency.read,
            Op::Write => self.latency.write,
            Op::Flush => self.latency.flush,
            Op::Discard | Op::WriteZeroes => self.latency.trim,
        };
        let mut waits = Duration::ZERO;
        if op == Op::Read && !self.dies.is_empty() {
            for _ in 0..pages(sectors) {
                let die = wait_for_die(&mut self.dies, self.die_time, now, &mut self.random);
                waits = waits.max(die);
            }
        }
        waits + jittered(mean, self.jitter_percent, &mut self.random)
    }
}

impl Flash {
    fn new(plan: &NvmePlan) -> Flash {
        let latency = plan.latency;
        let array = if plan.dies > 0 {
            plan.die_time.0
        } else {
            latency.read.0 / ARRAY.1 * ARRAY.0
        };
        let all: u64 = SENSINGS.iter().sum();
        Flash {
            controller: Duration(latency.read.0 - array),
            pages: SENSINGS.map(|sensings| Between::around(array * 3 * sensings / all)),
            write: Between::around(latency.write.0),
            trim: Between::around(latency.trim.0),
            flush: Between::around(latency.flush.0),
            // The link is at least as fast as the fastest limit.
            link: u64::from(plan.read_mbps.max(plan.write_mbps).max(plan.mbps)) << 11,
        }
    }

    /// Time of the array for a page, whose kind is drawn: the mapping is the drive's.
    fn page(&self, random: &mut Rng) -> Duration {
        // The high half of a product is the kind, the low half is as evenly spread as a draw.
        let drawn = u128::from(random.next_u64()) * SENSINGS.len() as u128;
        self.pages[(drawn >> 64) as usize].at(drawn as u64)
    }
}

impl Between {
    /// Around a mean.
    fn around(mean: u64) -> Between {
        let swing = mean / 100 * VARIATION_PERCENT;
        Between {
            least: mean - swing,
            span: 2 * swing,
        }
    }

    fn draw(self, random: &mut Rng) -> Duration {
        self.at(random.next_u64())
    }

    /// The value at this of 2^64 equal parts.
    fn at(self, part: u64) -> Duration {
        let above = (u128::from(self.span + 1) * u128::from(part)) >> 64;
        Duration(self.least + above as u64)
    }
}

/// Pages of 16 KiB of a read, each on a die of its own.
fn pages(sectors: Sectors) -> u32 {
    sectors.0.div_ceil(DIE_SECTORS)
}

/// A read waits until the die with a page of it is free, and keeps it busy. The mapping of sectors
/// to dies is the drive's, so the die is drawn.
fn wait_for_die(dies: &mut [SimTime], takes: Duration, now: SimTime, random: &mut Rng) -> Duration {
    if dies.is_empty() {
        return Duration::ZERO;
    }
    let die = random.below(dies.len() as u64) as usize;
    let begins = dies[die].max(now);
    dies[die] = begins + takes;
    begins.since(now)
}

/// Time of what a command moves beyond a small one, at this rate of sectors a second.
fn beyond_small(sectors: Sectors, rate: u64) -> Duration {
    if sectors.0 <= SMALL || rate == 0 {
        return Duration::ZERO;
    }
    Duration(u64::from(sectors.0 - SMALL) * SECOND / rate)
}
