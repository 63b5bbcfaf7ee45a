//! A `Report`: what a run means, in figures that a reader can compare with fio's.
//!
//! Made once, from the plan and the record of a run; nothing here looks at a simulator or a clock,
//! so equal runs give equal bytes. Names and shape of the JSON are fio's where fio has them.
//! Read next: `direction.rs` for latencies, `text.rs`, `csv.rs`.

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Series;
use blkmq::time::{Duration, SimTime};
use serde::Serialize;
use serde::ser::Serializer;
use serde_json::Value;
use sha2::{Digest, Sha256};

use sim::machine::Stall;
use sim::plan::{DiskPlan, Plan, ThreadPlan};
use sim::profile::MachineProfile;
use sim::recorder::{JobStats, Recorder, SwitchCounts, TaskUsage, Usage};

mod changes;
mod csv;
mod details;
mod device;
mod direction;
mod fio;
mod functions;
mod intervals;
mod locks;
mod paths;
mod rows;
mod runs;
mod seeks;
mod switches;
mod text;
mod tokens;
mod turns;
mod work;

pub use changes::{ChangeReport, SuspensionReport};
pub use details::RateDetails;
pub use details::{CounterDetails, Counts, DepthDetails, Details, LatencyDetails, LockDetails};
pub use device::{DeviceReport, DiskReport};
pub use direction::{Direction, Percentiles, Spread, Sync};
pub use fio::{DiskUtil, FioJobReport, FioRates, FioReport};
pub use functions::FunctionReport;
pub use intervals::{Interval, Intervals, PrecisionReport};
pub use locks::{Handoffs, LockCaller, LockReport};
pub use paths::PathReport;
pub use runs::{HctxRuns, RunCounts, RunsReport};
pub use seeks::{SeekDetails, SeekThread};
pub use switches::SwitchesReport;
pub use tokens::{LatencyReport, TokenReport};
pub use turns::{QueueTurns, TurnDetails};
pub use work::WorkReport;

/// Where a run came from: what the caller knows and the plan does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub version: String,
    /// Digest of the scenario's text: first 16 digits of SHA-256.
    pub scenario_hash: String,
    /// Options that changed the scenario, and fio's if there was no file, as they were written.
    pub options: Vec<String>,
    /// Names and values of what other runs of the same command have different.
    pub varied: Vec<(String, String)>,
}

/// Why a run did not get to its end.
#[derive(Clone, Copy, Debug)]
pub enum Early<'a> {
    Stall(&'a Stall),
    /// Ctrl-C or SIGTERM.
    Signal,
}

/// Figures of one run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Report {
    /// The same as fio reports it. `None` if that was not collected.
    #[serde(skip)]
    pub fio: Option<FioReport>,
    /// Input of the run, to repeat it, and how the run ended.
    pub blksim: RunReport,
    /// A member of `blksim`: jobs with their clones summed up. A job is a section of a fio file, or
    /// several with group_reporting.
    pub jobs: Vec<JobReport>,
    /// Time of all CPUs.
    pub cpus: CpuReport,
    /// Work of all CPUs by component, without lock waits; components without work are left out.
    pub work: Vec<WorkReport>,
    /// Locks by kind; kinds never taken are left out.
    pub locks: Vec<LockReport>,
    /// Runs of hardware queues. Left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunsReport>,
    /// Context switches by destination. Left out without a mapped device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<SwitchesReport>,
    /// Tokens of schedulers, by group of requests. Left out without such a scheduler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenReport>,
    /// The device, or what several devices have in common.
    pub device: DeviceReport,
    /// Each device. Left out if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DiskReport>,
    /// Each path of mapped devices, in the order of their tables. Left out without a mapped device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathReport>,
    /// Changes of the scheduler and its attributes during the run. Left out if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeReport>,
    /// Suspensions of mapped devices, in order of time. Left out if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspensions: Vec<SuspensionReport>,
    /// Messages of dmsetup that a suspended device refused. Left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused_messages: u64,
    /// Runs of the workers of bio-based devices (kmpathd, kdmflush). Left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub bio_work_runs: u64,
    /// Calls of kernel functions. Left out without `--functions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<FunctionReport>>,
    /// Decisions of schedulers with a lasting effect: which queues were merged for good, and why a
    /// device no longer idles. Left out if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<String>,
    /// Options that were accepted and have no effect, with place and reason.
    pub ignored_options: Vec<String>,
    /// What was left out of fio's jobs since it is not modelled, with place and reason. Left out if
    /// there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out_options: Vec<String>,
    /// Attributes of queue/iosched/ that the scheduler shows with another value than written
    /// (range, rounding to ticks), with place and both values. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adjusted_options: Vec<String>,
    /// Distributions and time series. Left out without `--details`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// Input of the run, to repeat it, and how the run ended.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RunReport {
    /// Version of the program.
    pub version: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Its description.
    pub description: String,
    /// Digest of its text.
    pub scenario_hash: String,
    /// Options that changed the scenario.
    pub options: Vec<String>,
    /// What other runs of the same command have different: values by option or by key of `--set`,
    /// numbers as numbers. Left out of a single run.
    #[serde(serialize_with = "as_values", skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<(String, String)>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Kernel release whose rules applied.
    pub rules: &'static str,
    /// Part of the January 2024 series. Left out for `stock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<&'static str>,
    /// DD_CPU_BUCKETS. Left out if the series has no buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dd_cpu_buckets: Option<usize>,
    /// Machine profile.
    pub machine: String,
    /// Digest of the profile's text.
    pub machine_hash: String,
    /// CPUs in use.
    pub cpus: u16,
    /// Ticks a second.
    pub hz: u32,
    /// Scheduler at the start; `several` if devices have different ones. Later changes: `changes`.
    pub scheduler: &'static str,
    /// queue/nr_requests of the first device.
    pub nr_requests: u32,
    /// queue/iosched/ of the first device, by name; empty without a scheduler.
    #[serde(serialize_with = "as_map")]
    pub iosched: Vec<(&'static str, blkmq::elevator::Value)>,
    /// `finished`, `stalled`, or `cut` by Ctrl-C or SIGTERM: all figures are then those up to
    /// there.
    pub outcome: &'static str,
    /// Reason of the stall, line by line. Left out if the run finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<Vec<String>>,
    /// Virtual time from the start of the first thread to the end.
    pub simulated_ns: u64,
    /// Measured part of it, without the ramp.
    pub measured_ns: u64,
    /// I/Os that ended, those of the ramp included.
    pub all_ios: u64,
    /// Intervals of reads, writes and trims of all jobs together, of the time in which all threads
    /// run.
    pub intervals: Intervals,
    /// What `precision` asked for. Left out if it did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub precision: Vec<PrecisionReport>,
}

/// Figures of one job.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct JobReport {
    /// Name of the job.
    pub jobname: String,
    /// Number of the job.
    pub groupid: usize,
    /// Threads.
    pub threads: u32,
    /// Error number of the first I/O whose failure ended its thread; 0 if none did.
    pub error: u16,
    /// Threads that ended at a failed I/O.
    pub failed_threads: u32,
    /// I/Os that failed.
    pub total_err: u64,
    /// Options as written, by name, those of `[global]` first.
    #[serde(rename = "job options", serialize_with = "as_text_map")]
    pub options: Vec<(String, String)>,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// fsync(2) and fdatasync(2).
    pub sync: Sync,
    /// Measured time, ms.
    pub job_runtime: u64,
    /// Time of a thread in user space, mean of all threads, percent of the run time.
    pub usr_cpu: f64,
    /// Time of a thread in the kernel, lock waits included, mean of all threads, percent.
    pub sys_cpu: f64,
    /// Times that its threads were switched in, after ksoftirqd as well.
    pub ctx: u64,
}

/// Time of all CPUs in use by mode, percent; the modes add up to 100.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct CpuReport {
    /// User space.
    pub user: f64,
    /// Kernel on behalf of tasks, kernel workers included, lock waits excluded.
    pub system: f64,
    /// Softirqs.
    pub softirq: f64,
    /// Hard interrupts.
    pub irq: f64,
    /// Lock waits in any mode.
    pub lock_wait: f64,
    /// Idle.
    pub idle: f64,
    /// Context switches as vmstat (`cs`) and `perf sched` count them, those to ksoftirqd and to the
    /// idle task included.
    pub ctx: u64,
    /// Time of all CPUs together that was not idle, ns.
    pub busy_ns: u64,
}

impl Report {
    /// Figures of a run that has been settled (`Simulator::settle`). `early`: why it did
    /// not get to its end.
    pub fn new(
        origin: Origin,
        plan: &Plan,
        profile: &MachineProfile,
        recorder: &Recorder,
        early: Option<Early<'_>>,
    ) -> Report {
        let cpus = CpuReport::new(&recorder.cpus);
        let jobs = recorder.jobs.iter().enumerate();
        Report {
            fio: FioReport::new(plan, recorder),
            blksim: RunReport::new(origin, plan, profile, recorder, early),
            jobs: jobs
                .map(|(index, job)| JobReport::new(index, job, plan, (recorder, early)))
                .collect(),
            work: WorkReport::all(recorder, profile.clock_mhz),
            locks: recorder
                .locks
                .iter()
                .map(|lock| LockReport::new(lock, cpus.busy_ns))
                .collect(),
            cpus,
            runs: RunsReport::new(plan, recorder),
            context_switches: SwitchesReport::new(plan, recorder),
            tokens: TokenReport::all(plan, recorder),
            device: DeviceReport::new(plan, recorder),
            devices: DiskReport::all(plan, recorder, span(recorder)),
            paths: PathReport::all(plan, recorder),
            changes: ChangeReport::all(plan, recorder),
            suspensions: SuspensionReport::all(plan, recorder),
            refused_messages: recorder.refused_messages,
            bio_work_runs: recorder.bio_work_runs,
            functions: None,
            explanations: recorder.explanations.clone(),
            ignored_options: plan.ignored.clone(),
            left_out_options: plan.left_out.clone(),
            adjusted_options: plan.adjusted.clone(),
            details: Details::new(plan, recorder),
        }
    }

    /// The report as JSON, with a line feed at the end.
    ///
    /// Its first members are those of fio, if these were collected; the jobs with their clones
    /// summed up are then in `blksim`.
    pub fn to_json(&self) -> String {
        let why = "the report has string keys, and no figure is divided by zero";
        let mut json = serde_json::to_string_pretty(&self.to_value()).expect(why);
        json.push('\n');
        json
    }

    /// The same as a value.
    pub fn to_value(&self) -> Value {
        let value = match &self.fio {
            None => serde_json::to_value(self),
            Some(fio) => self.after(fio),
        };
        value.expect("the report has string keys")
    }

    /// The members of fio's report, then all others.
    fn after(&self, fio: &FioReport) -> serde_json::Result<Value> {
        let (mut all, mut own) = (serde_json::to_value(fio)?, serde_json::to_value(self)?);
        if let Some(own) = own.as_object_mut()
            && let Some(jobs) = own.shift_remove("jobs")
        {
            own["blksim"]["jobs"] = jobs;
            if let Some(all) = all.as_object_mut() {
                all.append(own);
            }
        }
        Ok(all)
    }
}

impl RunReport {
    fn new(
        origin: Origin,
        plan: &Plan,
        profile: &MachineProfile,
        recorder: &Recorder,
        early: Option<Early<'_>>,
    ) -> RunReport {
        let disk = plan.disks.first().expect("a plan has a disk");
        let queue = &disk.queue;
        let series = queue.rules.series;
        let alike = |other: &DiskPlan| other.queue.scheduler.kind() == queue.scheduler.kind();
        RunReport {
            version: origin.version,
            scenario: plan.name.clone(),
            description: plan.description.clone(),
            scenario_hash: origin.scenario_hash,
            options: origin.options,
            varied: origin.varied,
            seed: plan.seed,
            rules: queue.rules.name,
            series: Some(series.name).filter(|_| series != Series::STOCK),
            dd_cpu_buckets: Some(series.bucket_count()).filter(|&count| count > 0),
            machine: plan.machine.profile.clone(),
            machine_hash: profile.hash.clone(),
            cpus: plan.machine.cpus,
            hz: plan.machine.hz,
            scheduler: if plan.disks.iter().all(alike) {
                queue.scheduler.kind().name()
            } else {
                device::SEVERAL
            },
            nr_requests: queue.nr_requests,
            iosched: queue.scheduler.shown(),
            outcome: match early {
                None => "finished",
                Some(Early::Stall(_)) => "stalled",
                Some(Early::Signal) => "cut",
            },
            stall: match early {
                Some(Early::Stall(stall)) => {
                    Some(stall.to_string().lines().map(str::to_owned).collect())
                }
                Some(Early::Signal) | None => None,
            },
            simulated_ns: recorder.until.0,
            measured_ns: if recorder.begun {
                recorder.until.since(recorder.from).0
            } else {
                0
            },
            all_ios: recorder.total_ios,
            intervals: Intervals::of_all(recorder),
            precision: PrecisionReport::all(plan, recorder),
        }
    }

    /// The scheduler, and its part of the January 2024 series.
    fn scheduler_and_series(&self) -> String {
        match self.series {
            Some(series) => format!("{} with series {series}", self.scheduler),
            None => self.scheduler.to_owned(),
        }
    }

    /// True if a scheduler runs.
    pub fn is_scheduled(&self) -> bool {
        self.scheduler != SchedulerKind::None.name()
    }
}

impl JobReport {
    fn new(
        index: usize,
        job: &JobStats,
        plan: &Plan,
        (recorder, early): (&Recorder, Option<Early<'_>>),
    ) -> JobReport {
        let of_job = |thread: &ThreadPlan| usize::from(thread.entry) == index;
        let ramp = plan
            .threads
            .iter()
            .filter(|t| of_job(t))
            .map(|t| t.ramp_time.0)
            .max();
        // A job that a stall or Ctrl-C left running has no end of its own; one that has not started
        // has no time at all.
        let cut = matches!(early, Some(Early::Signal)) && job.running > 0;
        let span = match job.until {
            _ if cut => recorder.until.since(job.from),
            SimTime::ZERO if job.running == 0 => Duration::ZERO,
            SimTime::ZERO => recorder.until.since(job.from),
            _ => job.runtime,
        };
        // CPU time counts from the end of the first phase's ramp until the last thread has ended,
        // I/Os in their own measured time.
        let started = SimTime(job.from.0.saturating_sub(ramp.unwrap_or(0)));
        let ended = match job.running {
            0 => job.ended,
            _ => recorder.until,
        };
        let cpu_span = ended.since(started.max(recorder.from));
        let mut usage = TaskUsage::default();
        let threads = plan.threads.iter().zip(&recorder.threads);
        for (_, thread) in threads.filter(|(thread, _)| of_job(thread)) {
            usage.user_ps += thread.user_ps;
            usage.system_ps += thread.system_ps;
            usage.switches += thread.switches;
        }
        let time_ps = u128::from(cpu_span.0) * 1000 * u128::from(job.threads);
        let [read, write, trim, sync] = &job.directions;
        let of = |direction| Some(Intervals::of(job, direction, recorder));
        JobReport {
            jobname: job.name.clone(),
            groupid: index,
            threads: job.threads,
            error: job.error.errno(),
            failed_threads: job.failed_threads,
            total_err: job
                .directions
                .iter()
                .map(|direction| direction.errors)
                .sum(),
            options: plan.job_options.get(index).cloned().unwrap_or_default(),
            read: Direction::new(read, span, of(0)),
            write: Direction::new(write, span, of(1)),
            trim: Direction::new(trim, span, of(2)),
            sync: Sync::new(sync, of(3)),
            job_runtime: span.0 / 1_000_000,
            usr_cpu: percent(u128::from(usage.user_ps), time_ps),
            sys_cpu: percent(u128::from(usage.system_ps), time_ps),
            ctx: usage.switches,
        }
    }

    /// Reads, writes and trims with their names.
    pub fn directions(&self) -> [(&'static str, &Direction); 3] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
        ]
    }
}

impl CpuReport {
    fn new(cpus: &[Usage]) -> CpuReport {
        let sum = |of: fn(&Usage) -> u64| cpus.iter().map(|cpu| u128::from(of(cpu))).sum::<u128>();
        let (user, system) = (sum(|cpu| cpu.user), sum(|cpu| cpu.system));
        let (softirq, irq) = (sum(|cpu| cpu.softirq), sum(|cpu| cpu.irq));
        let (spin, idle) = (sum(|cpu| cpu.spin), sum(|cpu| cpu.idle));
        let busy = user + system + softirq + irq + spin;
        let all = busy + idle;
        CpuReport {
            user: percent(user, all),
            system: percent(system, all),
            softirq: percent(softirq, all),
            irq: percent(irq, all),
            lock_wait: percent(spin, all),
            idle: percent(idle, all),
            ctx: SwitchCounts::sum(cpus.iter().map(|cpu| cpu.switches)).all(),
            busy_ns: (busy / 1000) as u64,
        }
    }
}

/// From the first job's measured time to the end of the last.
fn span(recorder: &Recorder) -> Duration {
    let from = recorder.jobs.iter().map(|job| job.from).min();
    let until = recorder.jobs.iter().map(|job| job.until).max();
    let until = until.filter(|&until| until != SimTime::ZERO);
    until
        .unwrap_or(recorder.until)
        .since(from.unwrap_or(recorder.from))
}

/// Digest of a scenario's text: the first 16 hexadecimal digits of its SHA-256, as for profiles.
pub fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let head = digest.first_chunk().expect("a SHA-256 has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*head))
}

fn as_map<S: Serializer, V: Serialize>(
    list: &[(&'static str, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(name, value)| (name, value)))
}

fn as_text_map<S: Serializer>(list: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(name, value)| (name, value)))
}

/// Texts that are JSON numbers become numbers.
fn as_values<S: Serializer>(list: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(name, text)| (name, value_of(text))))
}

/// A number, or else the text.
pub fn value_of(text: &str) -> serde_json::Value {
    match serde_json::from_str(text) {
        Ok(number @ serde_json::Value::Number(_)) => number,
        _ => text.into(),
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Zero if there is nothing to divide by.
fn ratio(part: u128, whole: u128) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn percent(part: u128, whole: u128) -> f64 {
    round(ratio(part, whole) * 100.0)
}

/// Six digits after the point, as fio prints.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
