//! Record of a run: counts and latencies of I/Os, by thread and direction.
//!
//! Not their interpretation (`report.rs`). Histograms keep three digits. They never grow, except
//! those of many jobs or disks, which would take too much memory at full size.

mod batches;
mod curve;
mod fio;
mod fio_logs;
mod intervals;
mod job;
mod paths;
mod rates;
mod readings;
mod runs;
mod seeks;
mod series;
mod switches;
mod timeline;
mod turns;
mod usage;
mod waits;
mod watch;

use core::ops::Range;

use blkmq::env::TracePoint;
use blkmq::request::{CpuId, Op, QueueId, Sector, Sectors, Status};
use blkmq::time::{Duration, SimTime};

use crate::cost::Spent;
use crate::plan::{DiskId, Plan};
pub use batches::{Batches, Steady};
pub use curve::Curve;
pub use fio::{
    FioDirection, FioStats, FioThread, Latencies, Levels, Moments, QueueStat, StatGroup,
    SteadyStats,
};
pub use fio::{PLAT_NR, RANGES, value_of};
pub use fio_logs::FioLogs;
pub use job::{DirectionStats, JobStats};
pub use paths::PathStats;
pub use rates::{RATES_MAX, Rate, Rates};
pub use readings::{CounterValue, GroupStats, LatencyStats, Readings, Track};
pub use runs::RunStats;
pub use seeks::{SEEKS_MAX, Seek, Seeks};
pub use series::Series;
pub use switches::{SwitchCounts, SwitchTo, Switches};
pub use timeline::{Span, SpanKind, Timeline, Window};
pub use turns::{TURNS_MAX, Turn, Turns};
pub use usage::{LockStats, TaskUsage, Usage, WorkItems};
pub use waits::{CallerStats, WaitStats};
pub use watch::LockSpread;
pub(crate) use watch::Watch;

/// Longest latency that is resolved: 10 minutes.
pub const LATENCY_MAX: u64 = 600_000_000_000;

/// Jobs and disks up to which histograms have full size: 248 KiB for each direction.
const FULL_SIZE_MAX: usize = 32;

/// One I/O that ended.
#[derive(Clone, Copy, Debug)]
pub struct IoRecord {
    /// Index of the thread in the plan.
    pub thread: usize,
    pub disk: DiskId,
    /// Operation; a flush is an fsync.
    pub op: Op,
    pub sector: Sector,
    pub sectors: Sectors,
    /// When the thread reaps it.
    pub at: SimTime,
    /// From submission until then (fio's clat).
    pub latency: Duration,
    /// From its preparation to its submission.
    pub prepared: Duration,
    /// The same as fio's slat; none of a call that waits for its I/O.
    pub slat: Option<Duration>,
    pub status: Status,
    /// It ended in the measured time.
    pub counts: bool,
    /// An fsync(2) at the end of a round, which fio does not count.
    pub closes: bool,
}

/// Kinds of I/O in a report, in fio's order.
pub const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "sync"];

#[derive(Clone, Debug)]
pub struct DiskStats {
    pub depth: Depth,
    pub directions: [DirectionStats; 4],
}

/// When a scheduler was changed; empty if the run ended before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChangeTimes {
    /// The write begins.
    pub begun: Option<SimTime>,
    /// It returns: the queue has its new scheduler, and takes I/O again.
    pub ended: Option<SimTime>,
}

/// When a mapped device was suspended; empty if the run ended before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SuspensionTimes {
    /// dmsetup suspend begins.
    pub begun: Option<SimTime>,
    /// It returns: nothing is in flight.
    pub suspended: Option<SimTime>,
    /// dmsetup resume returns.
    pub resumed: Option<SimTime>,
}

#[derive(Clone, Debug)]
pub struct Recorder {
    pub jobs: Vec<JobStats>,
    job_of: Vec<usize>,
    /// Reads, writes and trims of all jobs over time, as one direction.
    batches: Batches,
    /// All I/Os that ended, measured or not.
    pub total_ios: u64,
    /// Measuring began.
    pub from: SimTime,
    /// It did: the run did not end before.
    pub begun: bool,
    pub until: SimTime,
    /// Time by mode of each CPU.
    pub cpus: Vec<Usage>,
    /// Time of each thread, by its index in the plan.
    pub threads: Vec<TaskUsage>,
    pub locks: Vec<LockStats>,
    /// CPU time by use, without waiting for locks.
    pub spent: Spent,
    /// Runs of hardware queues, by queue and hctx, if requested.
    pub runs: Option<Vec<Vec<RunStats>>>,
    /// Spread of waits and holds of locks, if requested.
    pub lock_spreads: Option<Vec<LockSpread>>,
    /// Spans of each CPU, if requested.
    pub timeline: Option<Timeline>,
    /// Context switches over time, if requested.
    pub switches: Option<Box<Switches>>,
    /// Values of schedulers over time, if requested.
    pub readings: Option<Box<Readings>>,
    /// Decisions of schedulers that explain figures ([`blkmq::elevator::Scheduler`]).
    pub explanations: Vec<String>,
    /// Seeks of rotational disks, if requested and there are any.
    pub seeks: Option<Box<Seeks>>,
    /// I/Os over the measured time, if requested.
    pub rates: Option<Box<Rates>>,
    /// Steady states that jobs end at, each with the index of the last thread that it is of.
    pub steady: Vec<(usize, SteadyStats)>,
    /// What fio's own output has, if requested.
    pub fio: Option<Box<FioStats>>,
    /// Requests with the devices, all together.
    pub device_depth: Depth,
    /// One entry for each disk if there are several; for one the totals are enough.
    pub disks: Vec<DiskStats>,
    /// Number of the queue of the first path.
    first_path: usize,
    /// One entry a path of each mapped device, in the order of their queues.
    pub paths: Vec<PathStats>,
    /// When the scheduler of a disk was changed, by number in the plan.
    pub changes: Vec<ChangeTimes>,
    /// When mapped devices were suspended, by number among [`Plan::suspensions`].
    pub suspensions: Vec<SuspensionTimes>,
    /// Messages that were refused during suspensions.
    pub refused_messages: u64,
    /// Times that workers of bio-based devices have run.
    pub bio_work_runs: u64,
    /// Trace points not taken yet: time, CPU, task (0: none), point.
    pub trace: Vec<(SimTime, CpuId, u32, TracePoint)>,
    /// Text of the messages among them.
    pub messages: String,
    /// By CPU, the earliest time of its next trace point.
    pub(crate) next_records: Vec<SimTime>,
}

impl Recorder {
    /// An empty record of the jobs of `plan`.
    pub fn new(plan: &Plan) -> Recorder {
        let entries = plan.threads.iter().map(|of| usize::from(of.entry) + 1);
        let grows = entries.max().unwrap_or(0) + plan.disks.len() > FULL_SIZE_MAX;
        let mut jobs: Vec<JobStats> = Vec::new();
        let mut job_of = Vec::new();
        for thread in &plan.threads {
            let job = usize::from(thread.entry);
            while jobs.len() <= job {
                jobs.push(JobStats::new(&thread.name, grows));
            }
            jobs[job].expects(thread);
            job_of.push(job);
        }
        let mut batches = Batches::new();
        batches.expect(0);
        let mut disks = Vec::new();
        if plan.disks.len() > 1 {
            disks.resize_with(plan.disks.len(), || DiskStats {
                depth: Depth::default(),
                directions: DirectionStats::all(grows),
            });
        }
        Recorder {
            jobs,
            job_of,
            batches,
            total_ios: 0,
            from: SimTime::ZERO,
            begun: false,
            until: SimTime::ZERO,
            cpus: Vec::new(),
            threads: Vec::new(),
            locks: Vec::new(),
            spent: Spent::default(),
            runs: None,
            lock_spreads: None,
            timeline: None,
            switches: None,
            readings: None,
            explanations: Vec::new(),
            seeks: None,
            rates: None,
            steady: Vec::new(),
            fio: None,
            device_depth: Depth::default(),
            disks,
            first_path: plan.disks.len(),
            paths: PathStats::all(plan),
            changes: vec![ChangeTimes::default(); plan.changes.len()],
            suspensions: vec![SuspensionTimes::default(); plan.suspensions().len()],
            refused_messages: 0,
            bio_work_runs: 0,
            trace: Vec::new(),
            messages: String::new(),
            next_records: Vec::new(),
        }
    }

    pub(crate) fn thread_started(&mut self, thread: usize, started: SimTime, count_from: SimTime) {
        if let Some(fio) = &mut self.fio {
            fio.starts(thread, started, count_from);
        }
        self.jobs[self.job_of[thread]].starts(count_from);
    }

    /// The only thread of a job counts from here on, and nothing before.
    pub(crate) fn thread_counts_anew(&mut self, thread: usize, from: SimTime) {
        if let Some(fio) = &mut self.fio {
            fio.counts_anew(thread, from);
        }
        self.jobs[self.job_of[thread]].counts_anew(from);
        self.batches.begin(from);
    }

    /// A thread has ended, and its measured time before or then.
    pub(crate) fn thread_ended(&mut self, thread: usize, measured: Range<SimTime>, at: SimTime) {
        if let Some(fio) = &mut self.fio {
            fio.ends(thread, measured.clone(), at);
        }
        // Batches are of the time in which all threads run.
        self.advance(measured.end);
        self.batches.freeze();
        self.jobs[self.job_of[thread]].ends(measured, at);
    }

    /// A failed I/O ends the thread.
    pub(crate) fn thread_failed(&mut self, thread: usize, status: Status) {
        if let Some(fio) = &mut self.fio {
            fio.fails(thread, status);
        }
        let job = &mut self.jobs[self.job_of[thread]];
        job.failed_threads += 1;
        if job.error == Status::Ok {
            job.error = status;
        }
    }

    pub(crate) fn begin(&mut self, now: SimTime) {
        self.from = now;
        self.begun = true;
        self.batches.begin(now);
        self.device_depth.begin(now);
        if let Some(readings) = &mut self.readings {
            readings.begin();
        }
        if let Some(seeks) = &mut self.seeks {
            seeks.begin();
        }
        if let Some(rates) = &mut self.rates {
            rates.begin(now);
        }
        for disk in &mut self.disks {
            disk.depth.begin(now);
        }
        for path in &mut self.paths {
            path.begin(now);
        }
    }

    /// A disk's device has one request more, or one less; of a mapped disk the device of the path
    /// with this queue.
    pub(crate) fn depth_changes(
        &mut self,
        (disk, queue): (DiskId, QueueId),
        now: SimTime,
        more: bool,
    ) {
        self.device_depth.change(now, more);
        if let Some(disk) = self.disks.get_mut(disk.index()) {
            disk.depth.change(now, more);
        }
        if let Some(path) = self.path_mut(queue) {
            path.depth_changes(now, more);
        }
    }

    /// A request has ended with an error; of a path it counts.
    pub(crate) fn failed_below(&mut self, queue: QueueId) {
        if let Some(path) = self.path_mut(queue) {
            path.errors += 1;
        }
    }

    /// A path goes out of use, or comes back.
    pub(crate) fn path_changes(&mut self, queue: QueueId, now: SimTime, failed: bool) {
        let path = self.path_mut(queue);
        path.expect("it is a path's queue").changes(now, failed);
    }

    /// Queues of paths come after those of disks.
    fn path_mut(&mut self, queue: QueueId) -> Option<&mut PathStats> {
        let path = queue.index().checked_sub(self.first_path)?;
        self.paths.get_mut(path)
    }

    /// One I/O ended.
    pub(crate) fn io(&mut self, io: &IoRecord) {
        self.total_ios += 1;
        if !io.counts {
            return;
        }
        let direction = match io.op {
            Op::Read => 0,
            Op::Write | Op::WriteZeroes => 1,
            Op::Discard => 2,
            Op::Flush => 3,
        };
        let job = self.job_of[io.thread];
        if io.at >= self.batches.until {
            self.advance(io.at);
        }
        self.jobs[job].add(direction, io);
        if let Some(rates) = &mut self.rates {
            rates.add((job, direction), io);
        }
        if let Some(disk) = self.disks.get_mut(io.disk.index()) {
            disk.directions[direction].add(io);
        }
        if let Some(fio) = &mut self.fio {
            fio.io(io);
        }
    }

    pub(crate) fn finish(
        &mut self,
        now: SimTime,
        cpus: Vec<Usage>,
        threads: Vec<TaskUsage>,
        locks: Vec<LockStats>,
        spent: Spent,
    ) {
        self.until = now;
        self.advance_all(now);
        self.device_depth.settle(now);
        if let Some(readings) = &mut self.readings {
            readings.finish(now);
        }
        if let Some(rates) = &mut self.rates {
            rates.finish(now);
        }
        for disk in &mut self.disks {
            disk.depth.settle(now);
        }
        for path in &mut self.paths {
            path.settle(now);
        }
        self.cpus = cpus;
        self.threads = threads;
        self.locks = locks;
        self.spent = spent;
    }
}

/// A number of things over time.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Most at once.
    pub max: u32,
    count: u32,
    from: SimTime,
    changed: SimTime,
    area: u128,
    /// Over time, if requested.
    pub series: Option<Box<Series>>,
}

impl Depth {
    /// Mean over the measured time, in thousandths.
    pub fn mean_milli(&self) -> u64 {
        let span = u128::from(self.changed.since(self.from).0).max(1);
        (self.area * 1000 / span) as u64
    }

    /// One more, or one less. CPUs that run ahead do not take time back.
    pub(crate) fn change(&mut self, now: SimTime, more: bool) {
        self.settle(now);
        if more {
            self.count += 1;
            self.max = self.max.max(self.count);
            if let Some(series) = &mut self.series {
                series.reach(self.changed, self.count);
            }
        } else {
            self.count -= 1;
        }
    }

    fn settle(&mut self, now: SimTime) {
        self.area += u128::from(now.since(self.changed).0) * u128::from(self.count);
        if let Some(series) = &mut self.series {
            series.add(self.changed, now, self.count);
        }
        self.changed = self.changed.max(now);
    }

    fn begin(&mut self, now: SimTime) {
        self.settle(now);
        let series = self.series.take().map(|_| {
            let mut series = Series::new(now);
            series.reach(now, self.count);
            Box::new(series)
        });
        *self = Depth {
            count: self.count,
            max: self.count,
            from: now,
            changed: now,
            area: 0,
            series,
        };
    }
}
