//! A report as `diff` reads it: JSON of `run`, of one run or an array, or fio's.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::spread::{Of, Spread};
use crate::amount::Unit;
use crate::error::Error;
use crate::text::read_written;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Iops,
    Bandwidth,
    Latency,
    /// The latency of a single I/O: shown, but no reason to differ.
    Longest,
    /// Part of a time, percent.
    Share,
}

impl Kind {
    pub(super) fn unit(self) -> Unit {
        match self {
            Kind::Iops => Unit::Number,
            Kind::Bandwidth => Unit::Bytes,
            Kind::Latency | Kind::Longest => Unit::Time,
            Kind::Share => Unit::Percent,
        }
    }

    pub(super) fn is_judged(self) -> bool {
        self != Kind::Longest
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Figure {
    /// As in JSON and CSV, with the unit last.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: Kind,
    pub(super) value: f64,
    pub(super) spread: Option<Spread>,
}

/// Where figures are of: a direction of a job, its CPU time, all CPUs, a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Empty if of no job.
    pub(super) job: String,
    pub(super) what: String,
}

impl Place {
    pub(super) fn new(job: &str, what: impl Into<String>) -> Place {
        Place {
            job: job.to_owned(),
            what: what.into(),
        }
    }

    pub(super) fn text(&self) -> String {
        match self.job.as_str() {
            "" => self.what.clone(),
            job => format!("{job} {}", self.what),
        }
    }
}

/// An option of a job, or what the whole run has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Setting {
    /// Empty if of the run.
    pub(super) job: String,
    pub(super) name: String,
    pub(super) value: String,
    /// Written without a value: fio's report does not list it.
    pub(super) is_switch: bool,
}

/// Runs that differ in their seeds only.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Run {
    /// What other runs of the file have different.
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
    /// Also switches are among them.
    pub(super) lists_switches: bool,
    pub(super) jobs: Vec<String>,
    /// Figures of each direction of each job that did I/O, and of each job; then of all CPUs and
    /// locks, which fio does not report.
    pub(super) places: Vec<(Place, Vec<Figure>)>,
    /// So many of them are of jobs.
    of_jobs: usize,
    seeds: usize,
}

impl Run {
    /// Names of the places that the other side must have as well.
    pub(super) fn of_jobs(&self) -> impl Iterator<Item = &Place> {
        self.places[..self.of_jobs].iter().map(|(place, _)| place)
    }

    pub(super) fn called(&self) -> String {
        match self.name.as_str() {
            "" => "the run".to_owned(),
            name => name.to_owned(),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Side {
    file: String,
    program: String,
    pub(super) runs: Vec<Run>,
}

const EXPECTED: &str = "expected a report of `run --json` or of fio --output-format=json";

impl Side {
    pub(super) fn read(file: &Path) -> Result<Side, Error> {
        let refuse = |what: String| Error::input(file, what);
        let text = read_written(file)?;
        let values = match json(&text).map_err(refuse)? {
            Value::Array(values) => values,
            value => vec![value],
        };
        let Some(first) = values.first() else {
            return Err(refuse(format!("no run; {EXPECTED}")));
        };
        let program = match (first.pointer("/blksim/version"), first.get("fio version")) {
            (Some(version), _) => format!("blksim {}", version.as_str().unwrap_or_default()),
            (None, Some(version)) => version.as_str().unwrap_or_default().to_owned(),
            (None, None) => return Err(refuse(EXPECTED.to_owned())),
        };
        let mut groups: Vec<(String, Vec<One>)> = Vec::new();
        for value in &values {
            let one = One::new(value).map_err(refuse)?;
            let name = name(value);
            match groups.iter_mut().find(|(of, _)| *of == name) {
                Some((_, group)) => group.push(one),
                None => groups.push((name, vec![one])),
            }
        }
        Ok(Side {
            file: file.display().to_string(),
            program,
            runs: groups
                .into_iter()
                .map(|(name, of)| run(name, &of))
                .collect(),
        })
    }

    pub(super) fn describe(&self) -> String {
        let seeds = self.runs.iter().map(|run| run.seeds).max().unwrap_or(1);
        let seeds = match seeds {
            1 => String::new(),
            seeds => format!(", {seeds} seeds"),
        };
        format!("{} ({}{seeds})", self.file, self.program)
    }
}

/// The last JSON value: with `--status-interval` fio writes those of interim reports before it. It
/// may print notes between them.
fn json(text: &str) -> Result<Value, String> {
    let mut last = None;
    let mut rest = text;
    while let Some(from) = begin(rest) {
        rest = &rest[from..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        match values.next() {
            Some(Ok(value)) => last = Some(value),
            Some(Err(error)) => return Err(format!("no JSON: {error}; {EXPECTED}")),
            None => break,
        }
        rest = &rest[values.byte_offset()..];
    }
    last.ok_or_else(|| format!("no JSON in it; {EXPECTED}"))
}

/// Where the first line with a value begins.
fn begin(text: &str) -> Option<usize> {
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with(['{', '[']) {
            return Some(from);
        }
        from += line.len();
    }
    None
}

/// What a run has different from the others of its file, its seed aside.
fn name(report: &Value) -> String {
    let varied = report.pointer("/blksim/varied").and_then(Value::as_object);
    let varied = varied
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "seed");
    let named = varied.map(|(name, value)| format!("{name}={}", shown(value)));
    named.collect::<Vec<_>>().join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One report.
struct One {
    settings: Vec<Setting>,
    lists_switches: bool,
    jobs: Vec<String>,
    places: Vec<(Place, Vec<Figure>)>,
    of_jobs: usize,
}

/// Means of the reports of several seeds.
fn run(name: String, reports: &[One]) -> Run {
    let seeds = reports.len();
    let mut rest = reports.iter();
    let first = rest.next().expect("a group has a report");
    let mut places = first.places.clone();
    if seeds > 1 {
        for (place, figures) in &mut places {
            for figure in figures {
                let same = |one: &One| {
                    let (_, figures) = one.places.iter().find(|(of, _)| of == place)?;
                    let of = figures.iter().find(|of| of.name == figure.name)?;
                    Some(of.value)
                };
                let values: Vec<f64> = reports.iter().filter_map(same).collect();
                figure.value = values.iter().sum::<f64>() / values.len() as f64;
                figure.spread = Spread::of_seeds(&values);
            }
        }
    }
    Run {
        name,
        settings: first.settings.clone(),
        lists_switches: first.lists_switches,
        jobs: first.jobs.clone(),
        places,
        of_jobs: first.of_jobs,
        seeds,
    }
}

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

impl One {
    fn new(report: &Value) -> Result<One, String> {
        let jobs = report.get("jobs").and_then(Value::as_array);
        let jobs = jobs.ok_or_else(|| format!("`jobs` is missing or no list; {EXPECTED}"))?;
        let mut names: Vec<String> = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let name = job.get("jobname").and_then(Value::as_str);
            let name =
                name.ok_or_else(|| format!("`jobs[{index}].jobname` is missing or no text"))?;
            if !names.iter().any(|of| of == name) {
                names.push(name.to_owned());
            }
        }
        let mut places = Vec::new();
        for name in &names {
            // Without group_reporting fio has an entry for each clone of a job.
            let of_job = |job: &&Value| job.get("jobname").and_then(Value::as_str) == Some(name);
            let clones: Vec<&Value> = jobs.iter().filter(of_job).collect();
            for direction in DIRECTIONS {
                let clones: Vec<&Value> = clones.iter().filter_map(|j| j.get(direction)).collect();
                if let Some(figures) = direction_figures(&clones, &format!("{name} {direction}"))? {
                    places.push((Place::new(name, direction), figures));
                }
            }
            let cpu = [("usr_cpu", "user"), ("sys_cpu", "system")];
            let cpu = cpu.into_iter().filter_map(|(of, title)| {
                let values = clones.iter().filter_map(|job| job.get(of)?.as_f64());
                let values: Vec<f64> = values.collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                (!values.is_empty()).then(|| share(of, title, mean))
            });
            places.push((Place::new(name, "cpu"), cpu.collect()));
        }
        let count = places.len();
        if let Some(figures) = cpus(report) {
            places.push((Place::new("", "all CPUs"), figures));
        }
        places.extend(locks(report));
        Ok(One {
            settings: settings(report, jobs),
            lists_switches: report.get("blksim").is_some(),
            jobs: names,
            places,
            of_jobs: count,
        })
    }
}

fn share(name: &'static str, title: &'static str, value: f64) -> Figure {
    Figure {
        name,
        title,
        kind: Kind::Share,
        value,
        spread: None,
    }
}

fn number(value: &Value, path: &str) -> Option<f64> {
    value.pointer(path)?.as_f64()
}

/// Figures of a direction of all clones of a job; none without I/O.
fn direction_figures(clones: &[&Value], place: &str) -> Result<Option<Vec<Figure>>, String> {
    let busy: Vec<&Value> = clones.iter().copied().filter(|of| ios(of) > 0.0).collect();
    if busy.is_empty() {
        return Ok(None);
    }
    let mut figures = rates(&busy, place)?;
    figures.extend(latencies(&busy, place)?);
    Ok(Some(figures))
}

fn ios(direction: &Value) -> f64 {
    number(direction, "/total_ios").unwrap_or(0.0)
}

/// A number that each report has.
fn need(direction: &Value, path: &str, place: &str) -> Result<f64, String> {
    number(direction, path).ok_or_else(|| {
        let path = path.trim_start_matches('/').replace('/', ".");
        format!("{place}: `{path}` is missing or no number; expected JSON of fio 3 or later")
    })
}

fn rates(busy: &[&Value], place: &str) -> Result<Vec<Figure>, String> {
    // As fio names them; bandwidth is sampled in KiB.
    let rates = [
        (
            "iops",
            "IOPS",
            Kind::Iops,
            ["/iops_stddev", "/iops_samples"],
            1.0,
        ),
        (
            "bw_bytes",
            "bandwidth",
            Kind::Bandwidth,
            ["/bw_dev", "/bw_samples"],
            1024.0,
        ),
    ];
    let mut figures = Vec::new();
    for (name, title, kind, [deviation, samples], unit) in rates {
        let (mut value, mut variance, mut fewest) = (0.0, 0.0, f64::INFINITY);
        for of in busy {
            value += need(of, &format!("/{name}"), place)?;
            variance += (number(of, deviation).unwrap_or(0.0) * unit).powi(2);
            fewest = number(of, samples).unwrap_or(0.0).min(fewest);
        }
        let spread = Spread {
            of: Of::Samples,
            count: fewest,
            stddev: f64::sqrt(variance),
        };
        figures.push(Figure {
            name,
            title,
            kind,
            value,
            spread: (fewest >= 2.0).then_some(spread),
        });
    }
    Ok(figures)
}

fn latencies(busy: &[&Value], place: &str) -> Result<Vec<Figure>, String> {
    let all: f64 = busy.iter().map(|of| ios(of)).sum();
    let weighted = |path: &str| -> Result<f64, String> {
        let mut sum = 0.0;
        for of in busy {
            sum += need(of, path, place)? * ios(of);
        }
        Ok(sum / all)
    };
    // A synchronous engine has zeros for the slat that it does not have, and gtod_reduce for all.
    let have = |member: &str| {
        let is = |of: &Value, name| number(of, &format!("{member}/{name}"));
        let all = busy.iter().all(|of| is(of, "mean").is_some());
        all && busy.iter().any(|of| is(of, "max") > Some(0.0))
    };
    let means = [
        ("clat_mean_ns", "clat mean", "/clat_ns"),
        ("slat_mean_ns", "slat mean", "/slat_ns"),
        ("lat_mean_ns", "lat mean", "/lat_ns"),
    ];
    let percentiles = [
        ("clat_p50_ns", "clat 50 %", "50.000000"),
        ("clat_p99_ns", "clat 99 %", "99.000000"),
        ("clat_p99_9_ns", "clat 99.9 %", "99.900000"),
    ];
    let mut figures = Vec::new();
    let all_have = |path: &str| busy.iter().all(|of| number(of, path).is_some());
    let mut add = |name, title, kind, value, spread| {
        figures.push(Figure {
            name,
            title,
            kind,
            value,
            spread,
        });
    };
    for (name, title, member) in means {
        let (mean, deviation) = (format!("{member}/mean"), format!("{member}/stddev"));
        if member == "/clat_ns" || have(member) {
            let value = weighted(&mean)?;
            let spread = Spread {
                of: Of::Ios,
                count: all,
                stddev: weighted(&deviation)?,
            };
            add(name, title, Kind::Latency, value, Some(spread));
        }
    }
    for (name, title, key) in percentiles {
        let path = format!("/clat_ns/percentile/{key}");
        // fio with a percentile_list of its own has others.
        if all_have(&path) {
            add(name, title, Kind::Latency, weighted(&path)?, None);
        }
    }
    let longest = busy.iter().filter_map(|of| number(of, "/clat_ns/max"));
    let longest = longest.fold(0.0, f64::max);
    add("clat_max_ns", "clat max", Kind::Longest, longest, None);
    Ok(figures)
}

/// Time of all CPUs; of simulated runs.
fn cpus(report: &Value) -> Option<Vec<Figure>> {
    let cpus = report.get("cpus")?;
    let modes = ["user", "system", "softirq", "irq", "lock_wait", "idle"];
    let figure = |name| Some(share(name, name, cpus.get(name)?.as_f64()?));
    Some(modes.into_iter().filter_map(figure).collect())
}

/// Waits for each kind of lock; of simulated runs.
fn locks(report: &Value) -> Vec<(Place, Vec<Figure>)> {
    let locks = report.get("locks").and_then(Value::as_array);
    let lock = |lock: &Value| {
        let name = lock.get("name")?.as_str()?;
        let waits = lock.get("wait_share")?.as_f64()?;
        Some((
            Place::new("", format!("lock {name}")),
            vec![share("wait_share", "waits", 100.0 * waits)],
        ))
    };
    locks.into_iter().flatten().filter_map(lock).collect()
}

/// What was run: settings of a simulated run, the device, and the options of all jobs.
fn settings(report: &Value, jobs: &[Value]) -> Vec<Setting> {
    let of_run = |name: &str, value: String| Setting {
        job: String::new(),
        name: name.to_owned(),
        value,
        is_switch: false,
    };
    let mut settings = Vec::new();
    for name in [
        "scenario",
        "scheduler",
        "rules",
        "machine",
        "cpus",
        "outcome",
    ] {
        if let Some(value) = report.pointer(&format!("/blksim/{name}")) {
            settings.push(of_run(name, shown(value)));
        }
    }
    if let Some(devices) = devices(report) {
        settings.push(of_run("device", devices));
    }
    let global = report.get("global options").and_then(Value::as_object);
    for job in jobs {
        let name = job.get("jobname").and_then(Value::as_str);
        let own = job.get("job options").and_then(Value::as_object);
        let whole = report.pointer("/blksim/jobs").and_then(Value::as_array);
        let mut whole = whole.into_iter().flatten();
        let whole = whole.find(|of| of.get("jobname") == job.get("jobname"));
        let whole = whole.and_then(|of| of.get("job options")?.as_object());
        // Under one name, whichever of its names was written.
        let mut options: BTreeMap<&str, (String, bool)> = BTreeMap::new();
        for (options_of, is_switch) in [(whole, true), (global, false), (own, false)] {
            for (option, value) in options_of.into_iter().flatten() {
                let known = trace::fio::lookup(option).map_or(option.as_str(), |known| known.name);
                options.insert(known, (shown(value), is_switch));
            }
        }
        options.remove("name");
        for (option, (value, is_switch)) in options {
            let setting = Setting {
                job: name.unwrap_or_default().to_owned(),
                name: option.to_owned(),
                value,
                is_switch,
            };
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    settings
}

/// The devices with their types and parameters; of fio the names of its disks.
fn devices(report: &Value) -> Option<String> {
    let text = |value: &Value, member: &str| value.get(member).map(shown);
    let one = |device: &Value| {
        let mut words = vec![text(device, "name")?, text(device, "type")?];
        let parameters = device.get("parameters").and_then(Value::as_object);
        let parameters = parameters.into_iter().flatten();
        words.extend(parameters.map(|(name, value)| format!("{name}={}", shown(value))));
        Some(words.join(" "))
    };
    let list = report.get("devices").and_then(Value::as_array);
    let devices: Vec<String> = match (list, report.get("device")) {
        (Some(list), _) => list.iter().filter_map(one).collect(),
        (None, Some(device)) => one(device).into_iter().collect(),
        (None, None) => {
            let disks = report.get("disk_util").and_then(Value::as_array)?;
            disks.iter().filter_map(|disk| text(disk, "name")).collect()
        }
    };
    (!devices.is_empty()).then(|| devices.join("; "))
}
