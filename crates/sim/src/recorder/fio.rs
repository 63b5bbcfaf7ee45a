//! What fio's own output has of each thread: latencies by part, depths, rates over time, and the
//! counts of /sys/block/*/stat that fio reads.
//!
//! Collected only if an output of fio asks for it. Buckets and limits are those of fio 3.33
//! (stat.h, io_u.c), times are the simulator's. Read next: `scenario/report/fio.rs`.

use core::ops::Range;

use blkmq::request::{Op, Request, Status};
use blkmq::time::{Duration, SimTime};

use super::IoRecord;
use super::fio_logs::{FioLogs, Rate, interval};
use crate::plan::{DiskPlan, Plan};

/// Bits of a latency that its bucket keeps after the first one (FIO_IO_U_PLAT_BITS).
const PLAT_BITS: u32 = 6;
const PLAT_VAL: usize = 1 << PLAT_BITS;
/// Number of buckets (FIO_IO_U_PLAT_NR).
pub const PLAT_NR: usize = 29 * PLAT_VAL;

/// Bounds of fio's coarse ranges of latencies, each without its upper end, in ns, us and ms.
pub const RANGES: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// Bucket of a latency (plat_val_to_idx()).
fn bucket_of(ns: u64) -> usize {
    let first = ns.checked_ilog2().unwrap_or(0);
    if first <= PLAT_BITS {
        return ns as usize;
    }
    let error_bits = first - PLAT_BITS;
    let base = (error_bits as usize + 1) << PLAT_BITS;
    (base + ((ns >> error_bits) as usize & (PLAT_VAL - 1))).min(PLAT_NR - 1)
}

/// The middle of a bucket's range, ns (plat_idx_to_val()).
pub fn value_of(bucket: usize) -> u64 {
    if bucket < 2 * PLAT_VAL {
        return bucket as u64;
    }
    let error_bits = (bucket as u32 >> PLAT_BITS) - 1;
    let place = (bucket % PLAT_VAL) as u64;
    (1 << (error_bits + PLAT_BITS)) + (place << error_bits) + (1 << (error_bits - 1))
}

/// Count, extremes and exact sums of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moments {
    pub count: u64,
    /// 0 if there are none, as `max`.
    pub min: u64,
    pub max: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    pub(crate) fn add(&mut self, value: u64) {
        self.min = match self.count {
            0 => value,
            _ => self.min.min(value),
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.squares += u128::from(value) * u128::from(value);
    }

    /// Those of all values of both.
    pub fn merge(&mut self, other: &Moments) {
        match (self.count, other.count) {
            (_, 0) => {}
            (0, _) => *self = *other,
            _ => {
                self.min = self.min.min(other.min);
                self.max = self.max.max(other.max);
                self.count += other.count;
                self.sum += other.sum;
                self.squares += other.squares;
            }
        }
    }

    /// 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Sum of squared distances from the mean.
    pub fn spread(&self) -> f64 {
        let count = u128::from(self.count.max(1));
        // Products of more than 128 bits take latencies of minutes by the billion.
        let exact = self
            .sum
            .checked_mul(self.sum)
            .zip(self.squares.checked_mul(count));
        match exact {
            Some((of_sum, of_each)) => (of_each - of_sum) as f64 / count as f64,
            None => (self.squares as f64 - self.mean() * self.sum as f64).max(0.0),
        }
    }

    /// Standard deviation of a sample; 0 of less than two values.
    pub fn stddev(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            count => (self.spread() / (count - 1) as f64).sqrt(),
        }
    }
}

/// Latencies of one kind, ns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    pub moments: Moments,
    /// Latencies in each bucket; empty if no percentiles are wanted.
    pub buckets: Vec<u64>,
}

impl Latencies {
    fn new(with_buckets: bool) -> Latencies {
        Latencies {
            moments: Moments::default(),
            buckets: if with_buckets {
                vec![0; PLAT_NR]
            } else {
                Vec::new()
            },
        }
    }

    fn clear(&mut self) {
        self.moments = Moments::default();
        self.buckets.fill(0);
    }

    fn add(&mut self, latency: Duration) {
        self.moments.add(latency.0);
        if let Some(bucket) = self.buckets.get_mut(bucket_of(latency.0)) {
            *bucket += 1;
        }
    }

    /// Those of both.
    pub fn merge(&mut self, other: &Latencies) {
        self.moments.merge(&other.moments);
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
    }
}

/// Reads, writes or trims of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FioDirection {
    pub ios: u64,
    pub bytes: u64,
    pub errors: u64,
    /// From the preparation of an I/O to its submission; none of a call that waits for its I/O.
    pub slat: Latencies,
    /// From submission to completion.
    pub clat: Latencies,
    /// From preparation to completion.
    pub lat: Latencies,
    /// KiB a second in each `bwavgtime` in which an I/O ended.
    pub bw: Moments,
    /// IOPS in each `iopsavgtime` in which an I/O ended.
    pub iops: Moments,
    counted_bytes: u64,
    counted_ios: u64,
}

/// Intervals of one length, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pace {
    every: Duration,
    ends: SimTime,
}

impl Pace {
    /// The end of an interval, if that is over; then the next one is that which holds `now`.
    fn over(&mut self, now: SimTime) -> Option<SimTime> {
        if now < self.ends {
            return None;
        }
        let ended = self.ends;
        let whole = now.since(ended).0 / self.every.0;
        self.ends = ended + Duration((whole + 1) * self.every.0);
        Some(ended)
    }

    fn a_second(&self, count: u64) -> u64 {
        (u128::from(count) * 1_000_000_000 / u128::from(self.every.0)) as u64
    }
}

/// The last checks of a steady state.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SteadyStats {
    pub attained: bool,
    /// IOPS, and bytes a second, of the last seconds, the oldest first.
    pub seconds: Vec<[u64; 2]>,
    /// Largest distance from their mean, or slope of their line, whichever is looked at; 0 before
    /// there are enough seconds.
    pub deviation: f64,
    pub slope: f64,
    /// The same, in percent of the mean if that is what the limit is of.
    pub criterion: f64,
}

/// Shares of calls by the I/Os that they handle, or of I/Os by depth: 7 levels.
pub type Levels = [u64; 7];

/// A thread, or several together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioThread {
    pub directions: [FioDirection; 3],
    /// Calls of fsync(2) and fdatasync(2).
    pub sync: Latencies,
    pub sync_errors: u64,
    /// How the I/O ended that ended the thread, and the first one that failed.
    pub error: Status,
    pub first_error: Status,
    /// I/Os by clat, in each of [`RANGES`] and above: below 1 us, below 1 ms, and longer.
    pub ns: [u64; 10],
    pub us: [u64; 10],
    pub ms: [u64; 12],
    /// I/Os by the number that was in flight after their submission.
    pub depths: Levels,
    /// Calls that submit, by the I/Os that each submits.
    pub submits: Levels,
    /// Looks for completions, by the number that each finds.
    pub completes: Levels,
    /// I/Os that may be in flight at its end: iodepth, unless latency_target has changed it.
    pub depth: u32,
    /// First and last instant of the thread; the same if it has not ended, `SimTime::NEVER` if it
    /// has not started.
    pub lived: Range<SimTime>,
    /// Measured time.
    pub measured: Range<SimTime>,
    bw: Option<Pace>,
    iops: Option<Pace>,
    /// Lines of its log files, if it writes any.
    pub logs: Option<Box<FioLogs>>,
}

impl FioThread {
    fn note(&mut self, io: &IoRecord) {
        if self.first_error == Status::Ok {
            self.first_error = io.status;
        }
        let direction = match io.op {
            Op::Read => 0,
            Op::Write | Op::WriteZeroes => 1,
            Op::Discard => 2,
            Op::Flush if io.closes => return,
            Op::Flush => {
                self.sync.add(io.latency);
                self.sync_errors += u64::from(io.status != Status::Ok);
                return;
            }
        };
        self.pass(io.at);
        let of = &mut self.directions[direction];
        if self.bw.is_none() {
            let bytes = u64::from(io.sectors.0) * 512;
            of.bw
                .add((bytes * 1_000_000).checked_div(io.latency.0).unwrap_or(0));
        }
        if self.iops.is_none() {
            of.iops.add(1);
        }
        of.ios += 1;
        of.bytes += u64::from(io.sectors.0) * 512;
        of.errors += u64::from(io.status != Status::Ok);
        if let Some(slat) = io.slat {
            of.slat.add(slat);
        }
        of.clat.add(io.latency);
        of.lat.add(io.latency + io.prepared);
        if let Some(logs) = &mut self.logs {
            logs.io(io, direction, of);
        }
        let ns = io.latency.0;
        let range = |value: u64| RANGES.partition_point(|&bound| bound <= value);
        match ns {
            0..1_000 => self.ns[range(ns)] += 1,
            1_000..1_000_000 => self.us[range(ns / 1_000)] += 1,
            _ => self.ms[range(ns / 1_000_000)] += 1,
        }
    }

    /// Drops all figures (reset_io_stats()).
    fn clear(&mut self) {
        for of in &mut self.directions {
            let [slat, clat, lat] = [&mut of.slat, &mut of.clat, &mut of.lat];
            [slat, clat, lat].into_iter().for_each(Latencies::clear);
            (of.ios, of.bytes, of.errors) = (0, 0, 0);
            (of.counted_ios, of.counted_bytes) = (0, 0);
            (of.bw, of.iops) = (Moments::default(), Moments::default());
        }
        self.sync.clear();
        self.sync_errors = 0;
        (self.ns, self.us, self.ms) = ([0; 10], [0; 10], [0; 12]);
        (self.depths, self.submits, self.completes) = ([0; 7], [0; 7], [0; 7]);
        if let Some(logs) = &mut self.logs {
            logs.clear();
        }
    }

    /// Adds those of another thread; rates over time are left out.
    pub fn merge(&mut self, other: &FioThread) {
        for (of, more) in self.directions.iter_mut().zip(&other.directions) {
            of.ios += more.ios;
            of.bytes += more.bytes;
            of.errors += more.errors;
            of.slat.merge(&more.slat);
            of.clat.merge(&more.clat);
            of.lat.merge(&more.lat);
        }
        self.sync.merge(&other.sync);
        self.sync_errors += other.sync_errors;
        for (own, more) in [
            (&mut self.error, other.error),
            (&mut self.first_error, other.first_error),
        ] {
            if *own == Status::Ok {
                *own = more;
            }
        }
        add(&mut self.ns, &other.ns);
        add(&mut self.us, &other.us);
        add(&mut self.ms, &other.ms);
        add(&mut self.depths, &other.depths);
        add(&mut self.submits, &other.submits);
        add(&mut self.completes, &other.completes);
    }

    /// Notes the rates of intervals that are over.
    fn pass(&mut self, now: SimTime) {
        let mut log = |ended: SimTime, direction: usize, value: u64, of: Rate| {
            if let Some(logs) = &mut self.logs {
                logs.rate(ended, direction, value, of);
            }
        };
        if let Some(pace) = &mut self.bw
            && let Some(ended) = pace.over(now)
        {
            for (direction, of) in self.directions.iter_mut().enumerate() {
                let bytes = of.bytes - of.counted_bytes;
                of.counted_bytes = of.bytes;
                if bytes > 0 {
                    let rate = pace.a_second(bytes) / 1024;
                    of.bw.add(rate);
                    log(ended, direction, rate, Rate::Bandwidth);
                }
            }
        }
        if let Some(pace) = &mut self.iops
            && let Some(ended) = pace.over(now)
        {
            for (direction, of) in self.directions.iter_mut().enumerate() {
                let ios = of.ios - of.counted_ios;
                of.counted_ios = of.ios;
                if ios > 0 {
                    let rate = pace.a_second(ios);
                    of.iops.add(rate);
                    log(ended, direction, rate, Rate::Iops);
                }
            }
        }
    }

    /// Intervals begin here.
    fn measures_from(&mut self, from: SimTime) {
        self.measured = from..from;
        for pace in [&mut self.bw, &mut self.iops].into_iter().flatten() {
            pace.ends = from + pace.every;
        }
    }
}

fn add(counts: &mut [u64], more: &[u64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more;
    }
}

/// Level of a number of I/Os in one call (__io_u_mark_map()).
fn level_of_call(count: u32) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// Level of a depth (io_u_mark_depth()).
fn level_of_depth(depth: u32) -> usize {
    (depth.max(1).ilog2() as usize).min(6)
}

/// Requests of one direction of a queue, as /sys/block/*/stat counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatGroup {
    pub ios: u64,
    /// Bios and requests that joined another request.
    pub merges: u64,
    /// Time from allocation to completion, all requests together.
    pub time: Duration,
}

/// A request queue in /sys/block/*/stat, over the whole run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueStat {
    pub read: StatGroup,
    pub write: StatGroup,
    /// Time of discards and flushes.
    pub other: Duration,
    /// Time with at least one request.
    pub busy: Duration,
    /// The last disjoint spans of it, in order.
    spans: Vec<Range<SimTime>>,
}

/// Spans that are kept: a request that began before the first of them counts from its end.
const SPANS_MAX: usize = 64;

impl QueueStat {
    /// A request has ended, with so many bios.
    fn add(&mut self, op: Op, span: Range<SimTime>, bios: u64) {
        let time = span.end.since(span.start);
        match op {
            Op::Flush | Op::Discard | Op::WriteZeroes => self.other += time,
            Op::Read | Op::Write => {
                let group = if op == Op::Read {
                    &mut self.read
                } else {
                    &mut self.write
                };
                group.ios += 1;
                group.merges += bios.saturating_sub(1);
                group.time += time;
            }
        }
        self.is_busy(span);
    }

    fn is_busy(&mut self, mut span: Range<SimTime>) {
        let mut all = self.busy.0;
        while let Some(last) = self.spans.pop_if(|last| last.end >= span.start) {
            all -= last.end.since(last.start).0;
            span = span.start.min(last.start)..span.end.max(last.end);
        }
        if self.spans.len() == SPANS_MAX {
            self.spans.remove(0);
        }
        all += span.end.since(span.start).0;
        self.busy = Duration(all);
        self.spans.push(span);
    }
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioStats {
    /// By index in the plan.
    pub threads: Vec<FioThread>,
    /// By number of the queue: disks, then paths.
    pub queues: Vec<QueueStat>,
    /// Disks without requests, whose bios are counted.
    bio_based: Vec<bool>,
}

impl FioStats {
    /// Allocates all memory that it needs.
    pub(crate) fn new(plan: &Plan, queues: usize) -> FioStats {
        let threads = plan.threads.iter().map(|thread| {
            let output = plan.output_of(thread.job);
            let mix = thread.mix;
            let verifies = thread.writes.verify.is_some();
            let uses = [
                mix.read_percent > 0 || verifies,
                mix.write_percent > 0,
                mix.trim_percent > 0,
            ];
            let direction = |used: bool| FioDirection {
                slat: Latencies::new(used && output.slat_percentiles),
                clat: Latencies::new(used && output.clat_percentiles),
                lat: Latencies::new(used && output.lat_percentiles),
                ..FioDirection::default()
            };
            let syncs = thread.fsync > 0 || thread.fdatasync > 0;
            let pace = |own: Duration, is_logged: bool| {
                let every = interval(own, is_logged, &output.logs)?;
                let ends = SimTime::NEVER;
                Some(Pace { every, ends })
            };
            FioThread {
                directions: uses.map(direction),
                sync: Latencies::new(syncs && (output.clat_percentiles || output.lat_percentiles)),
                sync_errors: 0,
                error: Status::Ok,
                first_error: Status::Ok,
                ns: [0; 10],
                us: [0; 10],
                ms: [0; 12],
                depths: [0; 7],
                submits: [0; 7],
                completes: [0; 7],
                depth: thread.iodepth,
                lived: SimTime::NEVER..SimTime::NEVER,
                measured: SimTime::ZERO..SimTime::ZERO,
                bw: pace(output.bw_avg_time, output.logs.bw.is_some()),
                iops: pace(output.iops_avg_time, output.logs.iops.is_some()),
                logs: FioLogs::of(output, thread.priority),
            }
        });
        FioStats {
            threads: threads.collect(),
            queues: vec![
                QueueStat {
                    spans: Vec::with_capacity(SPANS_MAX),
                    ..QueueStat::default()
                };
                queues
            ],
            bio_based: plan.disks.iter().map(DiskPlan::maps_bios).collect(),
        }
    }

    /// It starts, and is measured from a later time on.
    pub(super) fn starts(&mut self, thread: usize, started: SimTime, from: SimTime) {
        let thread = &mut self.threads[thread];
        thread.lived = started..started;
        if let Some(logs) = &mut thread.logs {
            logs.starts(started);
        }
        thread.measures_from(from);
    }

    pub(super) fn ends(&mut self, thread: usize, measured: Range<SimTime>, at: SimTime) {
        let thread = &mut self.threads[thread];
        thread.pass(measured.end);
        thread.lived.end = at;
        if let Some(logs) = &mut thread.logs {
            logs.ends(at);
        }
        thread.measured = measured;
    }

    /// A thread counts from here on, and nothing before.
    pub(super) fn counts_anew(&mut self, thread: usize, from: SimTime) {
        let thread = &mut self.threads[thread];
        thread.clear();
        thread.lived.start = from;
        thread.measures_from(from);
    }

    /// The depth of a thread has changed.
    pub(crate) fn depth_is(&mut self, thread: usize, depth: u32) {
        self.threads[thread].depth = depth;
    }

    pub(super) fn fails(&mut self, thread: usize, status: Status) {
        self.threads[thread].error = status;
    }

    #[cold]
    pub(super) fn io(&mut self, io: &IoRecord) {
        self.threads[io.thread].note(io);
        let disk = io.disk.index();
        if self.bio_based[disk] {
            let began = SimTime(io.at.0 - io.latency.0);
            self.queues[disk].add(io.op, began..io.at, 1);
        }
    }

    /// A call submits so many I/Os, with which `depth` are in flight.
    #[cold]
    pub(crate) fn submits(&mut self, thread: usize, at: SimTime, count: u32, depth: u32) {
        let thread = &mut self.threads[thread];
        if at >= thread.measured.start {
            thread.submits[level_of_call(count)] += 1;
            thread.depths[level_of_depth(depth)] += u64::from(count);
        }
    }

    /// An I/O of an engine that counts no calls begins (null with an iodepth of 1).
    #[cold]
    pub(crate) fn begins(&mut self, thread: usize, at: SimTime) {
        let thread = &mut self.threads[thread];
        if at >= thread.measured.start {
            thread.depths[level_of_depth(1)] += 1;
        }
    }

    /// A look for completions finds so many.
    #[cold]
    pub(crate) fn completes(&mut self, thread: usize, at: SimTime, count: u32) {
        let thread = &mut self.threads[thread];
        if at >= thread.measured.start {
            thread.completes[level_of_call(count)] += 1;
        }
    }

    /// A request of a queue has ended.
    #[cold]
    pub(crate) fn request_ends(&mut self, queue: usize, rq: &Request, at: SimTime, bios: u64) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.add(rq.op, rq.start_time.min(at)..at, bios);
        }
    }
}
