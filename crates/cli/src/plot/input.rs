//! A run as plots see it: figures of a report's JSON, from a file or from memory.

mod rates;

use std::path::Path;

use scenario::report::{Interval, Report};
use serde_json::Value;
use sim::estimate::Estimate;

use crate::error::Error;
use crate::text::read_written;

/// Parts of the CPUs' time, percent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Times {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) lock_wait: f64,
    pub(crate) softirq: f64,
    pub(crate) irq: f64,
    pub(crate) idle: f64,
}

/// Values in ascending order, and how often each was seen.
pub(crate) type Counts = Vec<(f64, f64)>;

/// Lower and upper end of an interval.
pub(crate) type Ends = [f64; 2];

/// Latencies of one direction in the job that has most I/Os of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) ios: f64,
    /// Percentile and latency, ascending.
    pub(crate) percentiles: Vec<(f64, f64)>,
    /// Percentile and ends of its interval, of those that have one.
    pub(crate) intervals: Vec<(f64, Ends)>,
}

/// Waits, holds and hand-offs of a kind of lock.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Lock {
    pub(crate) name: String,
    pub(crate) wait_ns: Counts,
    pub(crate) hold_ns: Counts,
    /// By distance, nearest first.
    pub(crate) handoffs: [f64; 5],
}

/// Requests with the device over time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Depth {
    pub(crate) step_ns: f64,
    pub(crate) mean: Vec<f64>,
    pub(crate) max: Vec<f64>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Switches {
    pub(crate) step_ns: f64,
    /// In each step: to tasks, to kworkers, to kdmwork, to ksoftirqd, to swapper.
    pub(crate) counts: [Vec<f64>; 5],
}

/// Meaning of a value for the time around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// It holds until the next one.
    Level,
    /// It holds for its moment.
    Sample,
    Count,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CounterUnit {
    Number,
    Sectors,
    Bytes,
    Nanoseconds,
    /// Parts of the scheduler's target.
    Target,
}

/// A value of a scheduler over time, of one group of requests.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Counter {
    pub(crate) name: String,
    /// With its device, if there are several.
    pub(crate) group: String,
    pub(crate) form: Form,
    pub(crate) unit: CounterUnit,
    /// Name of the gauge that it is drawn beside, as its aim.
    pub(crate) beside: Option<String>,
    pub(crate) step_ns: f64,
    /// For each step from the beginning of the run.
    pub(crate) values: Vec<Option<f64>>,
}

impl Counter {
    pub(crate) fn at(&self, step: usize) -> f64 {
        self.step_ns * step as f64
    }

    pub(crate) fn end(&self) -> f64 {
        self.at(self.values.len())
    }
}

/// Commands of one thread to one rotational disk.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seeks {
    pub(crate) device: String,
    /// Empty if no thread's.
    pub(crate) thread: String,
    /// Time from the end of the ramp in ns, and first sector.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Turns of one queue of a scheduler, out of one of its trees.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Turns {
    /// With its device, if there are several.
    pub(crate) group: String,
    pub(crate) tree: String,
    /// From, to, and whether the device waited meanwhile.
    pub(crate) spans: Vec<(f64, f64, bool)>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Details {
    /// Latencies of reads, writes and trims together, ns.
    pub(crate) latency_ns: Counts,
    pub(crate) locks: Vec<Lock>,
    pub(crate) depth: Depth,
    pub(crate) switches: Switches,
    pub(crate) counters: Vec<Counter>,
    /// IOPS, bandwidth and mean latency of each job and direction, one after the other.
    pub(crate) rates: Vec<[Counter; 3]>,
    /// The first commands of rotational disks; none of others.
    pub(crate) seeks: Vec<Seeks>,
    pub(crate) seek_count: f64,
    /// The first turns that schedulers gave; none of those that give none.
    pub(crate) turns: Vec<Turns>,
    pub(crate) turn_count: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Run {
    /// Where it came from: a file's name, or nothing.
    pub(crate) file: String,
    /// Version of the program.
    pub(crate) version: String,
    pub(crate) scenario: String,
    pub(crate) scheduler: String,
    pub(crate) rules: String,
    pub(crate) machine: String,
    pub(crate) device: String,
    /// Other options that changed the scenario.
    pub(crate) options: String,
    /// Keys and values of `--set` among them.
    pub(crate) sets: Vec<(String, String)>,
    /// The rest of them.
    pub(crate) others: String,
    pub(crate) cpus: f64,
    pub(crate) seed: u64,
    pub(crate) threads: f64,
    pub(crate) iops: f64,
    pub(crate) iops_interval: Option<Ends>,
    pub(crate) ios: f64,
    pub(crate) times: Times,
    /// Of reads, writes and trims.
    pub(crate) latencies: [Latencies; 3],
    pub(crate) details: Option<Details>,
}

impl Run {
    /// Value of a key of `--set`.
    pub(crate) fn value_of(&self, key: &str) -> Option<&str> {
        let set = self.sets.iter().find(|(of, _)| of == key);
        set.map(|(_, value)| value.as_str())
    }

    /// IOPS with their interval.
    pub(crate) fn iops_around(&self) -> Estimate {
        around(self.iops, self.iops_interval)
    }

    /// Latency of a direction at a percentile that fio reports, with its interval; 0 without I/O.
    pub(crate) fn latency_at(&self, direction: usize, percent: f64) -> Estimate {
        let latencies = &self.latencies[direction];
        let found = latencies.percentiles.iter().find(|(of, _)| *of >= percent);
        let mut intervals = latencies.intervals.iter();
        let ends =
            intervals.find(|(of, _)| found.is_some_and(|(found, _)| of.total_cmp(found).is_eq()));
        around(
            found.map_or(0.0, |(_, value)| *value),
            ends.map(|(_, ends)| *ends),
        )
    }

    /// Waiting for locks as a part of the time that was not idle, percent.
    pub(crate) fn lock_share(&self) -> f64 {
        let busy = 100.0 - self.times.idle;
        if busy > 0.0 {
            100.0 * self.times.lock_wait / busy
        } else {
            0.0
        }
    }

    /// The runs of a file: one, or an array of several.
    pub(crate) fn read(file: &Path) -> Result<Vec<Run>, Error> {
        let text = read_written(file)?;
        let refuse = |what| Error::input(file, what);
        let value = serde_json::from_str(&text).map_err(|error| {
            refuse(format!(
                "no JSON: {error}; expected a report of `run --json`"
            ))
        })?;
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut runs = Vec::new();
        for value in &values {
            let mut run = Run::parse(value).map_err(refuse)?;
            run.file = stem.clone().into_owned();
            runs.push(run);
        }
        Ok(runs)
    }

    pub(crate) fn of(report: &Report) -> Result<Run, String> {
        Run::parse(&report.to_value())
    }

    pub(crate) fn parse(value: &Value) -> Result<Run, String> {
        let root = Place(value, String::new());
        let about = root.at("blksim")?;
        let cpus = root.at("cpus")?;
        let times = Times {
            user: cpus.number("user")?,
            system: cpus.number("system")?,
            lock_wait: cpus.number("lock_wait")?,
            softirq: cpus.number("softirq")?,
            irq: cpus.number("irq")?,
            idle: cpus.number("idle")?,
        };
        let list = about.list("options")?;
        let written = || list.iter().filter_map(|option| option.0.as_str());
        let mut run = Run {
            file: String::new(),
            version: about.text("version")?,
            scenario: about.text("scenario")?,
            scheduler: scheduler(
                &about.text("scheduler")?,
                about.0.get("series").and_then(Value::as_str),
            ),
            rules: about.text("rules")?,
            machine: about.text("machine")?,
            device: root.at("device")?.text("type")?,
            options: options(written()),
            sets: sets(written()),
            others: options(written().filter(|option| !option.starts_with("--set "))),
            cpus: about.number("cpus")?,
            seed: about.number("seed")? as u64,
            threads: 0.0,
            iops: 0.0,
            iops_interval: match about.0.get("intervals") {
                Some(_) => ends(&about.at("intervals")?.at("iops")?)?,
                None => None,
            },
            ios: 0.0,
            times,
            latencies: Default::default(),
            details: None,
        };
        let summed = about.list("jobs").or_else(|_| root.list("jobs"))?;
        for job in summed {
            run.threads += job.number("threads")?;
            for (direction, of) in ["read", "write", "trim"].iter().zip(&mut run.latencies) {
                let direction = job.at(direction)?;
                let ios = direction.number("total_ios")?;
                run.ios += ios;
                run.iops += direction.number("iops")?;
                // Percentiles do not add up: those of the job with most I/Os are shown.
                if ios > of.ios {
                    of.ios = ios;
                    of.percentiles = percentiles(&direction.at("clat_ns")?)?;
                    of.intervals = intervals(&direction)?;
                }
            }
        }
        if value.get("details").is_some() {
            run.details = Some(details(&root)?);
        }
        Ok(run)
    }
}

/// The scheduler with its series, as `--scheduler` takes both.
pub(super) fn scheduler(name: &str, series: Option<&str>) -> String {
    match series {
        None | Some("stock") => name.to_owned(),
        Some(series) => format!("{name}+{series}"),
    }
}

/// Options with a field of their own.
const KNOWN: [&str; 10] = [
    "--scheduler ",
    "--rules ",
    "--machine ",
    "--seed ",
    "--runtime ",
    "--ramp-time ",
    "queue.scheduler=",
    "queue.series=",
    "job.numjobs=",
    "job.randrepeat=",
];

fn unknown(option: &str) -> bool {
    !KNOWN.iter().any(|known| option.starts_with(known))
}

/// Options but those that have a field of their own.
pub(super) fn options<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let options = all.map(|option| option.trim_start_matches("--set "));
    let options: Vec<&str> = options.filter(|option| unknown(option)).collect();
    options.join(" ")
}

/// Keys and values of `--set` among them.
fn sets<'a>(all: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let sets = all.filter_map(|option| option.strip_prefix("--set "));
    let pairs = sets
        .filter(|set| unknown(set))
        .filter_map(|set| set.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    pairs.collect()
}

fn percentiles(spread: &Place) -> Result<Vec<(f64, f64)>, String> {
    let mut all = vec![(0.0, spread.number("min")?)];
    for (percent, _) in spread.at("percentile")?.members()? {
        let value = spread.at("percentile")?.number(percent)?;
        let percent = percent
            .parse()
            .map_err(|_| format!("{}: {percent}", spread.1))?;
        all.push((percent, value));
    }
    all.push((100.0, spread.number("max")?));
    Ok(all)
}

/// Of percentiles; none of a report of an older version.
fn intervals(direction: &Place) -> Result<Vec<(f64, Ends)>, String> {
    let mut all = Vec::new();
    if direction.0.get("intervals").is_some() {
        let of = direction.at("intervals")?.at("percentile")?;
        for (percent, _) in of.members()? {
            let known: Option<f64> = percent.parse().ok();
            if let (Some(percent), Some(ends)) = (known, ends(&of.at(percent)?)?) {
                all.push((percent, ends));
            }
        }
    }
    Ok(all)
}

/// Of an interval, unless the run was too short for one.
fn ends(interval: &Place) -> Result<Option<Ends>, String> {
    match interval.0.get("low") {
        Some(_) => Ok(Some([interval.number("low")?, interval.number("high")?])),
        None => Ok(None),
    }
}

/// A figure with the interval of its run, as the report has them.
fn around(mean: f64, ends: Option<Ends>) -> Estimate {
    let interval = Interval::with(ends.map(|[low, high]| (low, high)));
    interval.about(mean)
}

fn details(root: &Place) -> Result<Details, String> {
    let details = root.at("details")?;
    let mut latency: Vec<(f64, f64)> = Vec::new();
    for direction in details.list("latency_ns")? {
        if direction.text("direction")? != "sync" {
            latency.extend(direction.counts("counts")?);
        }
    }
    latency.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut locks = Vec::new();
    for lock in details.list("locks")? {
        let name = lock.text("name")?;
        locks.push(Lock {
            handoffs: handoffs(root, &name)?,
            wait_ns: lock.counts("wait_ns")?,
            hold_ns: lock.counts("hold_ns")?,
            name,
        });
    }
    let depth = details.at("device_depth")?;
    let (seek_count, seeks) = seeks(&details)?;
    let (turn_count, turns) = turns(&details)?;
    Ok(Details {
        latency_ns: latency,
        locks,
        depth: Depth {
            step_ns: depth.number("step_ns")?,
            mean: depth.numbers("mean")?,
            max: depth.numbers("max")?,
        },
        switches: switches(&details)?,
        counters: counters(&details)?,
        rates: rates::of(&details)?,
        seeks,
        seek_count,
        turns,
        turn_count,
    })
}

/// As many steps of each kind.
fn switches(details: &Place) -> Result<Switches, String> {
    let object = details.at("switches")?;
    let task = object.numbers("task")?;
    let expected = task.len();
    // Older reports have none.
    let later = |name| match object.0.get(name) {
        Some(_) => object.numbers(name),
        None => Ok(vec![0.0; expected]),
    };
    let counts = [
        task,
        object.numbers("kworker")?,
        later("kdmwork")?,
        object.numbers("ksoftirqd")?,
        later("idle")?,
    ];
    let names = ["kworker", "kdmwork", "ksoftirqd", "idle"];
    for (name, of) in names.into_iter().zip(&counts[1..]) {
        if of.len() != expected {
            let (path, has) = (object.path(name), of.len());
            return Err(format!(
                "`{path}`: {has} values; expected {expected}, as of task"
            ));
        }
    }
    Ok(Switches {
        step_ns: object.number("step_ns")?,
        counts,
    })
}

/// Turns in all, and the first of them; none of a scheduler that gives none.
fn turns(details: &Place) -> Result<(f64, Vec<Turns>), String> {
    if details.0.get("turns").is_none() {
        return Ok((0.0, Vec::new()));
    }
    let object = details.at("turns")?;
    let list = object.list("queues")?;
    let mut devices = Vec::new();
    for queue in &list {
        devices.push(queue.text("device")?);
    }
    let several = devices.iter().any(|device| *device != devices[0]);
    let mut turns = Vec::new();
    for (queue, device) in list.iter().zip(&devices) {
        let from = queue.numbers("from_ns")?;
        let mut columns = Vec::new();
        for name in ["to_ns", "awaited"] {
            let column = queue.numbers(name)?;
            if column.len() != from.len() {
                let (path, has, expected) = (queue.path(name), column.len(), from.len());
                return Err(format!(
                    "`{path}`: {has} values; expected {expected}, as of from_ns"
                ));
            }
            columns.push(column);
        }
        let group = queue.text("group")?;
        let spans = from.iter().zip(columns[0].iter().zip(&columns[1]));
        turns.push(Turns {
            group: match several {
                true => format!("{device} {group}"),
                false => group,
            },
            tree: queue.text("tree")?,
            spans: spans
                .map(|(&from, (&to, &awaited))| (from, to, awaited > 0.0))
                .collect(),
        });
    }
    Ok((object.number("count")?, turns))
}

/// Commands in all, and the first of them; none without a rotational disk.
fn seeks(details: &Place) -> Result<(f64, Vec<Seeks>), String> {
    if details.0.get("seeks").is_none() {
        return Ok((0.0, Vec::new()));
    }
    let object = details.at("seeks")?;
    let mut seeks = Vec::new();
    for thread in object.list("threads")? {
        let (times, sectors) = (thread.numbers("time_ns")?, thread.numbers("sector")?);
        if times.len() != sectors.len() {
            let path = thread.path("sector");
            let (has, expected) = (sectors.len(), times.len());
            return Err(format!(
                "`{path}`: {has} values; expected {expected}, as of time_ns"
            ));
        }
        seeks.push(Seeks {
            device: thread.text("device")?,
            thread: thread.text("thread")?,
            points: times.into_iter().zip(sectors).collect(),
        });
    }
    Ok((object.number("commands")?, seeks))
}

/// None of a scheduler that recorded nothing.
fn counters(details: &Place) -> Result<Vec<Counter>, String> {
    if details.0.get("scheduler").is_none() {
        return Ok(Vec::new());
    }
    let list = details.list("scheduler")?;
    let mut devices = Vec::new();
    for counter in &list {
        devices.push(counter.text("device")?);
    }
    let several = devices.iter().any(|device| *device != devices[0]);
    let mut counters = Vec::new();
    for (counter, device) in list.iter().zip(&devices) {
        let group = counter.text("group")?;
        counters.push(Counter {
            name: counter.text("name")?,
            group: match several {
                true => format!("{device} {group}"),
                false => group,
            },
            form: counter.one_of("form", &FORMS)?,
            unit: counter.one_of("unit", &UNITS)?,
            beside: match counter.0.get("beside") {
                Some(_) => Some(counter.text("beside")?),
                None => None,
            },
            step_ns: counter.number("step_ns")?,
            values: counter.numbers_and_gaps("values")?,
        });
    }
    Ok(counters)
}

const FORMS: [(&str, Form); 3] = [
    ("level", Form::Level),
    ("sample", Form::Sample),
    ("count", Form::Count),
];
const UNITS: [(&str, CounterUnit); 4] = [
    ("number", CounterUnit::Number),
    ("sectors", CounterUnit::Sectors),
    ("ns", CounterUnit::Nanoseconds),
    ("target", CounterUnit::Target),
];

/// Hand-offs of the locks of this name; none if the report has no such.
fn handoffs(root: &Place, name: &str) -> Result<[f64; 5], String> {
    for lock in root.list("locks")? {
        if lock.text("name")? == name {
            let far = lock.at("handoffs")?;
            return Ok([
                far.number("same_cpu")?,
                far.number("sibling")?,
                far.number("same_cache")?,
                far.number("same_socket")?,
                far.number("other_socket")?,
            ]);
        }
    }
    Ok([0.0; 5])
}

/// A value and how it is reached, for errors.
struct Place<'a>(&'a Value, String);

impl<'a> Place<'a> {
    fn at(&self, name: &str) -> Result<Place<'a>, String> {
        let path = self.path(name);
        let value = self.0.get(name);
        let value = value.ok_or_else(|| {
            format!("`{path}` is missing; expected a report of `run --json` of this version")
        })?;
        Ok(Place(value, path))
    }

    fn path(&self, name: &str) -> String {
        if self.1.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.1)
        }
    }

    fn number(&self, name: &str) -> Result<f64, String> {
        let place = self.at(name)?;
        place.as_number()
    }

    fn as_number(&self) -> Result<f64, String> {
        let number = self.0.as_f64().filter(|n| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| format!("`{}`: expected a number from 0 on", self.1))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let place = self.at(name)?;
        let text = place.0.as_str();
        let text = text.ok_or_else(|| format!("`{}`: expected a text", place.1))?;
        Ok(text.to_owned())
    }

    /// The meaning of one of these words.
    fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, means)| *means).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let expected = words.join(", ");
            format!(
                "`{}`: `{text}`; expected one of {expected}",
                self.path(name)
            )
        })
    }

    /// Numbers, with null where there is none.
    fn numbers_and_gaps(&self, name: &str) -> Result<Vec<Option<f64>>, String> {
        let items = self.list(name)?.into_iter();
        let value = |item: Place| match item.0.is_null() {
            true => Ok(None),
            false => item.as_number().map(Some),
        };
        items.map(value).collect()
    }

    fn list(&self, name: &str) -> Result<Vec<Place<'a>>, String> {
        let place = self.at(name)?;
        let list = place.0.as_array();
        let list = list.ok_or_else(|| format!("`{}`: expected a list", place.1))?;
        let items = list.iter().enumerate();
        Ok(items
            .map(|(i, v)| Place(v, format!("{}[{i}]", place.1)))
            .collect())
    }

    fn members(&self) -> Result<Vec<(&'a str, &'a Value)>, String> {
        let members = self.0.as_object();
        let members = members.ok_or_else(|| format!("`{}`: expected an object", self.1))?;
        Ok(members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect())
    }

    fn numbers(&self, name: &str) -> Result<Vec<f64>, String> {
        self.list(name)?.iter().map(Place::as_number).collect()
    }

    fn counts(&self, name: &str) -> Result<Counts, String> {
        let place = self.at(name)?;
        let mut counts = Vec::new();
        for (value, _) in place.members()? {
            let number = value.parse::<u64>();
            let number = number.map_err(|_| format!("`{}`: {value} is no number", place.1))?;
            counts.push((number as f64, place.number(value)?));
        }
        Ok(counts)
    }
}
