//! Distributions and time series of a report, for plots. Collected only if requested.

use blkmq::env::{CounterForm, CounterUnit};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde::ser::Serializer;

use super::seeks::SeekDetails;
use super::tokens::device_of;
use super::turns::TurnDetails;
use sim::plan::Plan;
use sim::recorder::{DIRECTIONS, LATENCY_MAX, LockSpread, Rate, Recorder, SwitchTo, Track};

/// Distributions and time series. Values of distributions keep two digits; time series have at most
/// 512 steps.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Details {
    /// Latencies of all jobs together, by direction; directions without I/O are left out.
    pub latency_ns: Vec<LatencyDetails>,
    /// Locks by kind; kinds never taken are left out.
    pub locks: Vec<LockDetails>,
    /// Requests with the device over the measured time.
    pub device_depth: DepthDetails,
    /// I/Os over the measured time by job and direction, at most 64 of these.
    pub rates: Vec<RateDetails>,
    /// Context switches of all CPUs over the measured time.
    pub switches: SwitchDetails,
    /// Time series of the scheduler over the whole run, at most 256. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduler: Vec<CounterDetails>,
    /// Turns of queues with schedulers that serve one queue at a time (cfq), over the whole run.
    /// Left out without such a scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnDetails>,
    /// Commands of rotational disks in the measured time. Left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeks: Option<SeekDetails>,
}

/// A time series of a scheduler, of one group of requests.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct CounterDetails {
    /// Name of the device.
    pub device: String,
    /// Name of the time series.
    pub name: String,
    /// Group of requests: a queue of the scheduler by pid and kind (S or A), as the kernel writes
    /// it to blktrace, after its cgroup's path.
    pub group: String,
    /// `level`: a value holds until the next one; `sample`: a value of its moment; `count`: values
    /// add up.
    pub form: &'static str,
    /// `number`, `sectors`, `ns`, or `target`: parts of the scheduler's target.
    pub unit: &'static str,
    /// Time series that this one is the target of. Left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<&'static str>,
    /// Length of a step, from the start of the run.
    pub step_ns: u64,
    /// A value for each step, or null: of a level the value at the end of the step, of samples the
    /// mean, of counts the sum.
    pub values: Vec<Option<f64>>,
}

/// I/Os of one direction of a job in each step of the measured time.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RateDetails {
    /// Name of the job.
    pub jobname: String,
    /// `read`, `write`, `trim` or `sync`.
    pub direction: &'static str,
    /// Length of a step; the last one may be shorter.
    pub step_ns: u64,
    /// Number of I/Os that ended.
    pub ios: Vec<u32>,
    /// Their bytes.
    pub bytes: Vec<u64>,
    /// Their mean latency.
    pub latency_ns: Vec<Option<f64>>,
}

/// Context switches in each step of the measured time, by destination.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SwitchDetails {
    /// Length of a step.
    pub step_ns: u64,
    /// To ksoftirqd.
    pub ksoftirqd: Vec<u64>,
    /// To workers of kblockd, or of a mapped device (kmpathd, kdmflush).
    pub kworker: Vec<u64>,
    /// To threads that map requests of a mapped device (kdmwork).
    pub kdmwork: Vec<u64>,
    /// To all other tasks, those back from ksoftirqd included.
    pub task: Vec<u64>,
    /// To the idle task (swapper).
    pub idle: Vec<u64>,
}

/// Latencies of one direction.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LatencyDetails {
    /// `read`, `write`, `trim` or `sync`.
    pub direction: &'static str,
    /// Pairs of latency, ns, and number of I/Os; the latency ends when the thread sees the
    /// completion.
    pub counts: Counts,
}

/// Locks of one kind.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LockDetails {
    /// As in `locks` of the report.
    pub name: &'static str,
    /// Pairs of wait, ns, and number of waits; only waits above 0.
    pub wait_ns: Counts,
    /// Pairs of hold, ns, and number of holds.
    pub hold_ns: Counts,
}

/// Requests with the device, or with all devices together, over time.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct DepthDetails {
    /// Length of a step; the last one may be shorter.
    pub step_ns: u64,
    /// Mean of each step.
    pub mean: Vec<f64>,
    /// Largest number in each step.
    pub max: Vec<u32>,
}

/// Values and how often each was seen, ascending; two digits of the values are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Vec<(u64, u64)>);

impl Counts {
    fn new(histogram: &Histogram<u64>) -> Counts {
        let recorded = histogram.iter_recorded();
        let counts = recorded.map(|v| (v.value_iterated_to(), v.count_at_value()));
        Counts(counts.collect())
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|(value, count)| (value.to_string(), count)),
        )
    }
}

impl LockDetails {
    fn new(spread: &LockSpread) -> LockDetails {
        LockDetails {
            name: spread.name,
            wait_ns: Counts::new(&spread.wait),
            hold_ns: Counts::new(&spread.hold),
        }
    }
}

impl Details {
    /// `None` if the run did not collect them.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<Details> {
        let locks = recorder.lock_spreads.as_ref()?;
        let series = recorder.device_depth.series.as_ref()?;
        let switches = recorder.switches.as_ref()?;
        let (mut mean, mut max) = (Vec::new(), Vec::new());
        for (thousandths, most) in series.steps() {
            mean.push(thousandths as f64 / 1000.0);
            max.push(most);
        }
        let rates = recorder.rates.iter().flat_map(|rates| &rates.all);
        Some(Details {
            latency_ns: latencies(recorder),
            locks: locks.iter().map(LockDetails::new).collect(),
            device_depth: DepthDetails {
                step_ns: series.step().0,
                mean,
                max,
            },
            rates: rates.map(|rate| RateDetails::new(recorder, rate)).collect(),
            switches: SwitchDetails {
                step_ns: switches.step().0,
                ksoftirqd: switches.counts(SwitchTo::Ksoftirqd),
                kworker: switches.counts(SwitchTo::Kworker),
                kdmwork: switches.counts(SwitchTo::Kdmwork),
                task: switches.counts(SwitchTo::Task),
                idle: switches.counts(SwitchTo::Idle),
            },
            scheduler: counters(plan, recorder),
            turns: TurnDetails::new(plan, recorder),
            seeks: SeekDetails::new(plan, recorder),
        })
    }
}

impl RateDetails {
    fn new(recorder: &Recorder, rate: &Rate) -> RateDetails {
        let bytes = rate.bytes.values();
        RateDetails {
            jobname: recorder.jobs[rate.job].name.clone(),
            direction: DIRECTIONS[rate.direction],
            step_ns: rate.latency.step().0,
            ios: rate.latency.counts().collect(),
            bytes: bytes.map(|sum| sum.unwrap_or(0.0) as u64).collect(),
            latency_ns: rate.latency.values().collect(),
        }
    }
}

fn counters(plan: &Plan, recorder: &Recorder) -> Vec<CounterDetails> {
    let tracks = recorder
        .readings
        .iter()
        .flat_map(|readings| &readings.tracks);
    tracks
        .map(|track| CounterDetails::new(plan, track))
        .collect()
}

impl CounterDetails {
    fn new(plan: &Plan, track: &Track) -> CounterDetails {
        let values = track.curve.values();
        CounterDetails {
            device: device_of(plan, track.queue),
            name: track.sample.name(),
            group: track.sample.group_name(&plan.groups),
            form: match track.curve.form {
                CounterForm::Level => "level",
                CounterForm::Sample => "sample",
                CounterForm::Count => "count",
                CounterForm::Turn => "turn",
            },
            unit: match track.sample.unit {
                CounterUnit::Number => "number",
                CounterUnit::Sectors => "sectors",
                CounterUnit::Nanoseconds => "ns",
                CounterUnit::OfTarget => "target",
            },
            beside: track.sample.beside,
            step_ns: track.curve.step().0,
            values: values
                .map(|value| Some(track.sample.scaled(value?)))
                .collect(),
        }
    }
}

fn latencies(recorder: &Recorder) -> Vec<LatencyDetails> {
    let mut all = Vec::new();
    for (index, direction) in DIRECTIONS.into_iter().enumerate() {
        let jobs = recorder.jobs.iter();
        let of_jobs = jobs.map(|job| &job.directions[index].latency);
        let mut sum: Option<Histogram<u64>> = None;
        for histogram in of_jobs.filter(|h| !h.is_empty()) {
            let coarse = sum.get_or_insert_with(|| {
                Histogram::new_with_bounds(1, LATENCY_MAX, 2).expect("bounds and digits are valid")
            });
            coarse
                .add(histogram)
                .expect("no histogram of latencies goes beyond the longest one");
        }
        if let Some(sum) = sum {
            let counts = Counts::new(&sum);
            all.push(LatencyDetails { direction, counts });
        }
    }
    all
}
