//! fio's own report of a run: the members, types and units of the JSON of fio 3.33.
//!
//! One entry for each clone, or for the jobs of a group with group_reporting, after
//! __show_run_stats() in fio's stat.c. There is no wall clock: the time is the epoch. Sources of
//! the figures: `sim/recorder/fio.rs`.

use serde::Serialize;
use serde::ser::Serializer;

use super::{as_map, as_text_map, percent, ratio, round};
use blkmq::time::{Duration, SimTime};
use sim::plan::{DiskPlan, Output, Plan, ThreadPlan};
use sim::recorder::{
    FioDirection, FioStats, FioThread, Latencies, Levels, Moments, QueueStat, Recorder, StatGroup,
    SteadyStats, TaskUsage, value_of,
};

mod steady;
mod text;

use steady::FioSteady;
use text::Style;

/// The version of fio whose output this is.
const VERSION: &str = "fio-3.33";
/// Names of levels of I/Os by depth; those of calls differ in the first.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const CALLS: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Names of ranges of latencies, by their upper ends; ms have two more.
const RANGES: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];

/// The whole report.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FioReport {
    /// Version of fio whose members these are.
    #[serde(rename = "fio version")]
    version: &'static str,
    /// 0: simulated time has no date.
    timestamp: u64,
    /// 0.
    timestamp_ms: u64,
    /// The epoch.
    time: &'static str,
    /// Options of `[global]`.
    #[serde(
        rename = "global options",
        serialize_with = "as_text_map",
        skip_serializing_if = "Vec::is_empty"
    )]
    global: Vec<(String, String)>,
    /// An entry for each clone, or one for the jobs of a group with group_reporting.
    pub jobs: Vec<FioJobReport>,
    /// The disks of all jobs, with the paths of a mapped disk after it.
    pub disk_util: Vec<DiskUtil>,
    /// Rates of each group of jobs.
    #[serde(skip)]
    groups: Vec<Group>,
    /// What fio prints before the run.
    #[serde(skip)]
    head: String,
}

/// An entry of it.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FioJobReport {
    /// Name of the job; clones share it.
    pub jobname: String,
    /// Group of the job: stonewall and new_group begin one.
    pub groupid: u16,
    /// Error number of the I/O that ended a thread; 0 if none did.
    pub error: u16,
    /// 0.
    eta: u64,
    /// Length of the whole run, s, rounded up.
    elapsed: u64,
    /// Options of the job itself.
    #[serde(rename = "job options", serialize_with = "as_text_map")]
    options: Vec<(String, String)>,
    /// Reads.
    pub read: FioRates,
    /// Writes.
    pub write: FioRates,
    /// Trims.
    pub trim: FioRates,
    /// fsync(2) and fdatasync(2).
    sync: FioSync,
    /// Time of all its threads together, ms.
    job_runtime: u64,
    /// Time of its threads in user space, percent of the time from start to end.
    usr_cpu: f64,
    /// Time of its threads in the kernel, lock waits included, percent.
    sys_cpu: f64,
    /// Times that its threads were switched in.
    ctx: u64,
    /// 0: page faults are not modelled.
    majf: u64,
    /// 0.
    minf: u64,
    /// Percent of I/Os by the number in flight after their submission.
    #[serde(serialize_with = "as_map")]
    iodepth_level: Shares,
    /// Percent of submitting calls by the I/Os in each.
    #[serde(serialize_with = "as_map")]
    iodepth_submit: Shares,
    /// Percent of looks for completions by the number that each finds.
    #[serde(serialize_with = "as_map")]
    iodepth_complete: Shares,
    /// Percent of I/Os with a clat below 1 us, by upper ends of ranges.
    #[serde(serialize_with = "as_map")]
    latency_ns: Shares,
    /// The same from 1 us on.
    #[serde(serialize_with = "as_map")]
    latency_us: Shares,
    /// The same from 1 ms on.
    #[serde(serialize_with = "as_map")]
    latency_ms: Shares,
    /// I/Os that failed; in fio only with continue_on_error.
    total_err: u64,
    /// Error number of the first of them. Left out without continue_on_error.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<u16>,
    /// iodepth, or the depth that latency_target has found.
    latency_depth: u32,
    /// latency_target, ns; 0 if there is none.
    latency_target: u64,
    /// latency_percentile.
    latency_percentile: f64,
    /// latency_window, us.
    latency_window: u64,
    /// description.
    #[serde(skip_serializing_if = "String::is_empty")]
    desc: String,
    /// The steady state that it ends at. Left out without steadystate.
    #[serde(skip_serializing_if = "Option::is_none")]
    steadystate: Option<FioSteady>,
    /// Threads in it.
    #[serde(skip)]
    members: u32,
    #[serde(skip)]
    style: Style,
    /// percentile_list.
    #[serde(skip)]
    list: Vec<f64>,
}

/// Percentages by name.
type Shares = Vec<(&'static str, f64)>;

/// Reads, writes or trims.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FioRates {
    /// Bytes.
    pub io_bytes: u64,
    /// KiB.
    io_kbytes: u64,
    /// Bytes a second.
    bw_bytes: u64,
    /// KiB a second.
    bw: u64,
    /// IOPS.
    pub iops: f64,
    /// Measured time, ms; 0 without I/O.
    runtime: u64,
    /// Number of I/Os.
    pub total_ios: u64,
    /// 0.
    short_ios: u64,
    /// 0.
    drop_ios: u64,
    /// I/Os that failed; not in fio.
    errors: u64,
    /// From the preparation of an I/O until the kernel takes it up; none of a call that waits.
    slat_ns: FioLatency,
    /// From then until the thread sees the completion.
    clat_ns: FioLatency,
    /// Both together.
    lat_ns: FioLatency,
    /// Lowest KiB a second in a `bwavgtime` in which I/Os ended; sums over the threads.
    bw_min: u64,
    /// Highest of them.
    bw_max: u64,
    /// Their mean, percent of the rate of the group.
    bw_agg: f64,
    /// Their mean.
    bw_mean: f64,
    /// Their standard deviation.
    bw_dev: f64,
    /// Number of them.
    bw_samples: u64,
    /// Lowest IOPS in an `iopsavgtime` in which I/Os ended; sums over the threads.
    iops_min: u64,
    /// Highest of them.
    iops_max: u64,
    /// Their mean.
    iops_mean: f64,
    /// Their standard deviation.
    iops_stddev: f64,
    /// Number of them.
    iops_samples: u64,
    /// Measured time.
    #[serde(skip)]
    span: Duration,
}

/// fsync(2) and fdatasync(2).
#[derive(Clone, Debug, Serialize, PartialEq)]
struct FioSync {
    /// Number of calls.
    total_ios: u64,
    /// From call to return.
    lat_ns: FioLatency,
}

/// Latencies, ns.
#[derive(Clone, Debug, Serialize, PartialEq)]
struct FioLatency {
    /// Shortest; 0 if there is none.
    min: u64,
    /// Longest.
    max: u64,
    /// Mean.
    mean: f64,
    /// Standard deviation.
    stddev: f64,
    /// Number of latencies.
    #[serde(rename = "N")]
    count: u64,
    /// By percentiles; none if these are off, or without I/O.
    #[serde(serialize_with = "named_map", skip_serializing_if = "Vec::is_empty")]
    percentile: Vec<(String, u64)>,
    /// Latencies by bucket, only in json+.
    #[serde(serialize_with = "named_map", skip_serializing_if = "Vec::is_empty")]
    bins: Vec<(u64, u64)>,
}

/// A disk in /sys/block/*/stat.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DiskUtil {
    /// Name below /dev.
    pub name: String,
    /// Requests that ended.
    read_ios: u64,
    /// The same of writes.
    write_ios: u64,
    /// Bios and requests that joined another request.
    read_merges: u64,
    /// The same of writes.
    write_merges: u64,
    /// Time of all requests, each from its allocation to its end, ms.
    read_ticks: u64,
    /// The same of writes.
    write_ticks: u64,
    /// The same of all requests, flushes and discards included.
    in_queue: u64,
    /// Percent of the time with at least one request. Exact, where a kernel samples at ticks.
    util: f64,
    /// Means of the paths of a mapped device, and the largest of their `util`.
    #[serde(flatten)]
    below: Option<Aggregate>,
}

#[expect(clippy::struct_field_names, reason = "fio's names")]
#[derive(Clone, Debug, Serialize, PartialEq)]
struct Aggregate {
    /// Mean of `read_ios` of the paths. Left out, as all of these, unless the disk is mapped.
    aggr_read_ios: u64,
    /// Of `write_ios`.
    aggr_write_ios: u64,
    /// Of `read_merges`.
    aggr_read_merges: u64,
    /// Of `write_merges`.
    aggr_write_merge: u64,
    /// Of `read_ticks`.
    aggr_read_ticks: u64,
    /// Of `write_ticks`.
    aggr_write_ticks: u64,
    /// Of `in_queue`.
    aggr_in_queue: u64,
    /// Largest `util` of the paths.
    aggr_util: f64,
}

/// Jobs between two walls (stonewall, new_group): reads, writes, trims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    directions: [GroupRates; 3],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GroupRates {
    bytes: u64,
    /// Shortest and longest measured time of an entry; zero without I/O.
    span_min: Duration,
    span_max: Duration,
    /// Lowest and highest rate of an entry, bytes a second.
    rate_min: u64,
    rate_max: u64,
}

impl GroupRates {
    fn add(&mut self, bytes: u64, span: Duration) {
        if bytes == 0 || span == Duration::ZERO {
            return;
        }
        let rate = a_second(bytes, span);
        if self.bytes == 0 {
            (self.span_min, self.rate_min) = (span, rate);
        }
        self.bytes += bytes;
        (self.span_min, self.span_max) = (self.span_min.min(span), self.span_max.max(span));
        (self.rate_min, self.rate_max) = (self.rate_min.min(rate), self.rate_max.max(rate));
    }

    /// Bytes a second of all entries.
    fn rate(&self) -> u64 {
        a_second(self.bytes, self.span_max)
    }
}

/// An entry and its figures.
struct Entry<'a> {
    output: &'a Output,
    /// Its first thread, and the number of them.
    first: &'a ThreadPlan,
    members: u32,
    stats: FioThread,
    /// Longest measured time of a thread.
    span: Duration,
    /// Samples of rates add up over threads.
    bw: [Summed; 3],
    iops: [Summed; 3],
    usage: TaskUsage,
    steady: Option<&'a SteadyStats>,
    /// Time in which its threads could use CPUs.
    cpu_span: u128,
    lived: u128,
}

/// Samples of several threads, added up as fio does (sum_stat()).
#[derive(Clone, Copy, Default)]
struct Summed {
    min: u64,
    max: u64,
    mean: f64,
    spread: f64,
    count: u64,
}

impl Summed {
    fn add(&mut self, of: &Moments) {
        self.min += of.min;
        self.max += of.max;
        self.mean += of.mean();
        self.spread += if of.count == 0 { 0.0 } else { of.spread() };
        self.count += of.count;
    }

    fn add_all(&mut self, other: &Summed) {
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.spread += other.spread;
        self.count += other.count;
    }

    fn stddev(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            count => (self.spread / (count - 1) as f64).sqrt(),
        }
    }
}

impl FioReport {
    /// `None` if it was not collected.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<FioReport> {
        let stats = recorder.fio.as_deref()?;
        let entries = entries(plan, recorder, stats);
        let mut groups = vec![Group::default(); usize::from(group_count(plan))];
        for entry in &entries {
            let group = &mut groups[usize::from(entry.output.group)].directions;
            for (rates, of) in group.iter_mut().zip(&entry.stats.directions) {
                rates.add(of.bytes, entry.span);
            }
        }
        let mut global: Vec<(String, String)> = Vec::new();
        for option in plan.outputs.iter().flat_map(|of| &of.global) {
            if !global.iter().any(|(name, _)| *name == option.0) {
                global.push(option.clone());
            }
        }
        let jobs = entries.iter().map(|entry| {
            let group = &groups[usize::from(entry.output.group)];
            FioJobReport::new(entry, group, recorder.until)
        });
        Some(FioReport {
            version: VERSION,
            timestamp: 0,
            timestamp_ms: 0,
            time: "Thu Jan  1 00:00:00 1970",
            global: as_fio_lists(&global),
            jobs: jobs.collect(),
            disk_util: DiskUtil::all(plan, stats, recorder.until),
            groups,
            head: text::head(plan),
        })
    }
}

impl FioReport {
    /// The same as json has it: without the buckets of json+.
    pub fn drop_bins(&mut self) {
        for job in &mut self.jobs {
            job.sync.lat_ns.bins.clear();
            for rates in [&mut job.read, &mut job.write, &mut job.trim] {
                for latency in [&mut rates.slat_ns, &mut rates.clat_ns, &mut rates.lat_ns] {
                    latency.bins.clear();
                }
            }
        }
    }
}

/// fio lists only options with a value.
fn as_fio_lists(options: &[(String, String)]) -> Vec<(String, String)> {
    let with_value = options.iter().filter(|(_, value)| !value.is_empty());
    with_value.cloned().collect()
}

fn group_count(plan: &Plan) -> u16 {
    plan.outputs
        .iter()
        .map(|of| of.group + 1)
        .max()
        .unwrap_or(1)
}

fn entries<'a>(plan: &'a Plan, recorder: &'a Recorder, stats: &FioStats) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for (index, (thread, of)) in plan.threads.iter().zip(&stats.threads).enumerate() {
        let output = plan.output_of(thread.job);
        let joins = |last: &&mut Entry<'_>| output.is_grouped && last.output.group == output.group;
        let mut of = of.clone();
        if of.lived.start == SimTime::NEVER {
            of.lived = SimTime::ZERO..SimTime::ZERO;
        } else if of.lived.end == of.lived.start {
            // A stall or Ctrl-C left it running.
            of.lived.end = recorder.until.max(of.lived.start);
            of.measured.end = recorder.until.max(of.measured.start);
        }
        let (began, ended) = (of.lived.start.max(recorder.from), of.lived.end);
        let cpu_span = u128::from(ended.since(began.min(ended)).0);
        let lived = u128::from(of.lived.end.since(of.measured.start).0);
        let usage = recorder.threads.get(index).copied().unwrap_or_default();
        let mut steady = recorder.steady.iter();
        let mut entry = Entry {
            steady: steady.find_map(|(last, of)| (*last == index).then_some(of)),
            output,
            first: thread,
            members: 1,
            span: of.measured.end.since(of.measured.start),
            bw: [Summed::default(); 3],
            iops: [Summed::default(); 3],
            stats: of,
            usage,
            cpu_span,
            lived,
        };
        for (direction, of) in entry.stats.directions.iter().enumerate() {
            entry.bw[direction].add(&of.bw);
            entry.iops[direction].add(&of.iops);
        }
        match entries.last_mut().filter(joins) {
            Some(last) => last.merge(&entry),
            None => entries.push(entry),
        }
    }
    entries
}

impl<'a> Entry<'a> {
    fn merge(&mut self, other: &Entry<'a>) {
        for direction in 0..3 {
            self.bw[direction].add_all(&other.bw[direction]);
            self.iops[direction].add_all(&other.iops[direction]);
        }
        self.stats.merge(&other.stats);
        self.members += other.members;
        self.span = self.span.max(other.span);
        self.usage.user_ps += other.usage.user_ps;
        self.usage.system_ps += other.usage.system_ps;
        self.usage.switches += other.usage.switches;
        self.cpu_span += other.cpu_span;
        self.lived += other.lived;
        self.steady = other.steady.or(self.steady);
    }
}

impl FioJobReport {
    fn new(entry: &Entry<'_>, group: &Group, until: SimTime) -> FioJobReport {
        let (output, stats) = (entry.output, &entry.stats);
        let [read, write, trim] = [0, 1, 2]
            .map(|direction| FioRates::new(entry, direction, &group.directions[direction]));
        let errors = stats.directions.iter().map(|of| of.errors);
        let continues = entry.first.survives_read || entry.first.survives_write;
        let all: u64 = stats.directions.iter().map(|of| of.ios).sum();
        let cpu_ps = entry.cpu_span * 1000;
        let of_ranges = |counts: &[u64]| {
            let share = |count: &u64| match ratio(u128::from(*count), u128::from(all)) * 100.0 {
                share if *count > 0 => round(share.max(0.01)),
                _ => 0.0,
            };
            RANGES.into_iter().zip(counts.iter().map(share)).collect()
        };
        FioJobReport {
            jobname: entry.first.name.clone(),
            groupid: output.group,
            error: stats.error.errno(),
            eta: 0,
            elapsed: until.0.div_ceil(1_000_000_000),
            options: as_fio_lists(&output.own),
            read,
            write,
            trim,
            sync: FioSync {
                total_ios: stats.sync.moments.count,
                lat_ns: FioLatency::new(&stats.sync, output),
            },
            job_runtime: (entry.lived / 1_000_000) as u64,
            usr_cpu: percent(u128::from(entry.usage.user_ps), cpu_ps),
            sys_cpu: percent(u128::from(entry.usage.system_ps), cpu_ps),
            ctx: entry.usage.switches,
            majf: 0,
            minf: 0,
            iodepth_level: levels(DEPTHS, &stats.depths),
            iodepth_submit: levels(CALLS, &stats.submits),
            iodepth_complete: levels(CALLS, &stats.completes),
            latency_ns: of_ranges(&stats.ns),
            latency_us: of_ranges(&stats.us),
            latency_ms: of_ranges(&stats.ms),
            total_err: errors.sum::<u64>() + stats.sync_errors,
            first_error: continues.then(|| stats.first_error.errno()),
            latency_depth: stats.depth,
            latency_target: output.latency_target.0,
            latency_percentile: output.latency_percentile.to_f64(),
            latency_window: output.latency_window.0 / 1000,
            desc: output.description.clone(),
            steadystate: FioSteady::of(entry),
            members: entry.members,
            style: Style::of(output),
            list: output
                .percentile_list
                .iter()
                .map(|of| of.to_f64())
                .collect(),
        }
    }

    /// Reads, writes and trims.
    pub fn directions(&self) -> [&FioRates; 3] {
        [&self.read, &self.write, &self.trim]
    }
}

/// Shares of levels; one above 0 is at least 0.1 (stat_calc_dist()).
fn levels(names: [&'static str; 7], of: &Levels) -> Shares {
    let all: u64 = of.iter().sum();
    let share = |count: &u64| match ratio(u128::from(*count), u128::from(all)) * 100.0 {
        share if *count > 0 => round(share.max(0.1)),
        _ => 0.0,
    };
    names.into_iter().zip(of.iter().map(share)).collect()
}

impl FioRates {
    fn new(entry: &Entry<'_>, direction: usize, group: &GroupRates) -> FioRates {
        let (of, output): (&FioDirection, _) = (&entry.stats.directions[direction], entry.output);
        let span = match of.ios {
            0 => Duration::ZERO,
            _ => entry.span,
        };
        let bw_bytes = a_second(of.bytes, span);
        let ios = u128::from(of.ios) * 1_000_000_000;
        let (bw, iops) = (&entry.bw[direction], &entry.iops[direction]);
        let share = |mean: f64| match group.rate() {
            0..=1024 => 100.0,
            all => round((mean.trunc() * 102_400.0 / all as f64).min(100.0)),
        };
        FioRates {
            io_bytes: of.bytes,
            io_kbytes: of.bytes / 1024,
            bw_bytes,
            bw: bw_bytes / 1024,
            iops: round(ratio(ios, u128::from(span.0))),
            runtime: whole_ms(span),
            total_ios: of.ios,
            short_ios: 0,
            drop_ios: 0,
            errors: of.errors,
            slat_ns: FioLatency::new(&of.slat, output),
            clat_ns: FioLatency::new(&of.clat, output),
            lat_ns: FioLatency::new(&of.lat, output),
            bw_min: bw.min,
            bw_max: bw.max,
            bw_agg: if bw.count > 0 { share(bw.mean) } else { 0.0 },
            bw_mean: round(bw.mean),
            bw_dev: round(bw.stddev()),
            bw_samples: bw.count,
            iops_min: iops.min,
            iops_max: iops.max,
            iops_mean: round(iops.mean),
            iops_stddev: round(iops.stddev()),
            iops_samples: iops.count,
            span,
        }
    }
}

/// fio rounds up, from whole microseconds.
fn whole_ms(span: Duration) -> u64 {
    (span.0 / 1000).div_ceil(1000)
}

fn a_second(count: u64, span: Duration) -> u64 {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(u128::from(span.0));
    rate.unwrap_or(0) as u64
}

impl FioLatency {
    fn new(of: &Latencies, output: &Output) -> FioLatency {
        let Moments {
            count, min, max, ..
        } = of.moments;
        let mut latency = FioLatency {
            min,
            max,
            mean: round(of.moments.mean()),
            stddev: round(of.moments.stddev()),
            count,
            percentile: Vec::new(),
            bins: Vec::new(),
        };
        if count == 0 || of.buckets.is_empty() {
            return latency;
        }
        let list = output.percentile_list.iter().map(|of| of.to_f64());
        latency.percentile = percentiles(&of.buckets, count, list);
        let buckets = of
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        latency.bins = buckets
            .map(|(bucket, count)| (value_of(bucket), *count))
            .collect();
        latency
    }
}

/// Latency at each percentile of a list in ascending order: that of the first bucket with which the
/// share is reached (calc_clat_percentiles()).
fn percentiles(buckets: &[u64], count: u64, list: impl Iterator<Item = f64>) -> Vec<(String, u64)> {
    // A product with a power of two is exact, so that ties are those of fio.
    let fixed = |share: f64| (share * 2_f64.powi(64)) as u128;
    let (mut sum, mut reached) = (u128::from(buckets[0]), 0);
    let at = |share: f64| {
        while (sum * 100) << 64 < fixed(share) * u128::from(count) && reached + 1 < buckets.len() {
            reached += 1;
            sum += u128::from(buckets[reached]);
        }
        (format!("{share:.6}"), value_of(reached))
    };
    list.map(at).collect()
}

impl DiskUtil {
    /// The disks that jobs use, in the order of use, with the paths of each mapped one after it.
    fn all(plan: &Plan, stats: &FioStats, until: SimTime) -> Vec<DiskUtil> {
        let (mut all, mut seen) = (Vec::new(), Vec::new());
        for file in plan.threads.iter().flat_map(|thread| &thread.files) {
            if seen.contains(&file.disk) {
                continue;
            }
            seen.push(file.disk);
            let disk = &plan.disks[file.disk.index()];
            let below: Vec<DiskUtil> = plan
                .queues_below(file.disk)
                .into_iter()
                .zip(disk.below())
                .map(|(queue, lower)| DiskUtil::new(lower, &stats.queues[queue.index()], until))
                .collect();
            all.push(DiskUtil {
                below: Aggregate::of(&below),
                ..DiskUtil::new(disk, &stats.queues[file.disk.index()], until)
            });
            all.extend(below);
        }
        all
    }

    fn new(disk: &DiskPlan, stat: &QueueStat, until: SimTime) -> DiskUtil {
        let QueueStat { read, write, .. } = stat;
        let ms = |time: Duration| time.0 / 1_000_000;
        let ticks = |of: &StatGroup| ms(of.time);
        DiskUtil {
            name: disk.device.name.clone(),
            read_ios: read.ios,
            write_ios: write.ios,
            read_merges: read.merges,
            write_merges: write.merges,
            read_ticks: ticks(read),
            write_ticks: ticks(write),
            in_queue: ticks(read) + ticks(write) + ms(stat.other),
            util: percent(u128::from(stat.busy.0), u128::from(until.0)).min(100.0),
            below: None,
        }
    }
}

impl Aggregate {
    fn of(below: &[DiskUtil]) -> Option<Aggregate> {
        let count = below.len() as u64;
        let mean = |of: fn(&DiskUtil) -> u64| below.iter().map(of).sum::<u64>().checked_div(count);
        Some(Aggregate {
            aggr_read_ios: mean(|of| of.read_ios)?,
            aggr_write_ios: mean(|of| of.write_ios)?,
            aggr_read_merges: mean(|of| of.read_merges)?,
            aggr_write_merge: mean(|of| of.write_merges)?,
            aggr_read_ticks: mean(|of| of.read_ticks)?,
            aggr_write_ticks: mean(|of| of.write_ticks)?,
            aggr_in_queue: mean(|of| of.in_queue)?,
            aggr_util: below.iter().map(|of| of.util).fold(0.0, f64::max),
        })
    }
}

fn named_map<S: Serializer, N: ToString>(
    list: &[(N, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(name, value)| (name.to_string(), value)))
}
