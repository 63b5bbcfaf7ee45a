//! A report as text: aligned, and under two screens for one job.

use core::fmt;

use super::{
    DeviceReport, Direction, DiskReport, FunctionReport, Intervals, JobReport, PathReport, Report,
    RunReport, Spread,
};
use sim::estimate::Estimate;

/// Percentiles shown, in rows of five.
const SHOWN: [[&str; 5]; 2] = [
    [
        "1.000000",
        "10.000000",
        "50.000000",
        "90.000000",
        "95.000000",
    ],
    [
        "99.000000",
        "99.500000",
        "99.900000",
        "99.950000",
        "99.990000",
    ],
];

/// Most devices in a table.
const DEVICES_SHOWN: usize = 16;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        for precision in &self.blksim.precision {
            writeln!(f, "  precision  {}", precision.text(&self.blksim.intervals))?;
        }
        self.ramp(f)?;
        for job in &self.jobs {
            write_job(f, job)?;
        }
        self.devices(f)?;
        PathReport::write_all(&self.paths, f)?;
        self.cpus(f)?;
        super::locks::write(&self.locks, f)?;
        if let Some(runs) = &self.runs {
            write!(f, "{runs}")?;
        }
        if let Some(switches) = &self.context_switches {
            write!(f, "{switches}")?;
        }
        super::tokens::write(&self.tokens, f)?;
        if let Some(functions) = &self.functions {
            FunctionReport::write_all(functions, f)?;
        }
        write!(f, "{}", self.notes())
    }
}

impl RunReport {
    /// How it ended, if not at its end.
    pub fn early_end(&self) -> Option<String> {
        let ms = self.simulated_ns / 1_000_000;
        match self.outcome {
            "stalled" => Some("STALLED: figures up to the stall only".to_owned()),
            "cut" => Some(format!(
                "CUT by a signal: figures up to {ms} ms of simulated time only"
            )),
            _ => None,
        }
    }
}

impl Report {
    /// Notes on schedulers and options, each list under its title; no title without notes.
    pub fn notes(&self) -> String {
        let mut text = String::new();
        for (title, notes) in [
            ("Decisions with a lasting effect", &self.explanations),
            ("Left out, as it is not modelled", &self.left_out_options),
            ("Accepted without effect", &self.ignored_options),
            ("Taken as the kernel takes it", &self.adjusted_options),
        ] {
            if !notes.is_empty() {
                text.push_str(&format!("\n{title}\n"));
            }
            for note in notes {
                text.push_str(&format!("  {note}\n"));
            }
        }
        text
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = &self.blksim;
        write!(f, "{}", run.scenario)?;
        if !run.description.is_empty() {
            write!(f, ": {}", run.description)?;
        }
        writeln!(f)?;
        if let Some(end) = run.early_end() {
            writeln!(f, "  {end}")?;
        }
        if self.devices.is_empty() {
            write_device(f, &self.device, &self.device.name, &self.queue_text())?;
        }
        for alike in self.devices.chunk_by(is_like) {
            let names = match alike {
                [one] => one.device.name.clone(),
                [first, .., last] => format!("{} to {},", first.device.name, last.device.name),
                [] => String::new(),
            };
            write_device(f, &alike[0].device, &names, &alike[0].queue_text())?;
            let sets = alike.chunk_by(|a, b| a.tag_set == b.tag_set).count();
            let disks = alike.len();
            match sets {
                1 if disks > 1 => writeln!(f, "             one tag set for all {disks} of them")?,
                _ if sets < disks => {
                    writeln!(f, "             {sets} tag sets for {disks} of them")?;
                }
                _ => {}
            }
        }
        for change in &self.changes {
            writeln!(f, "  change     {change}")?;
        }
        for suspension in &self.suspensions {
            writeln!(f, "  suspended  {suspension}")?;
        }
        if self.refused_messages > 0 {
            let count = self.refused_messages;
            writeln!(f, "             {count} messages refused meanwhile")?;
        }
        if self.bio_work_runs > 0 {
            let count = self.bio_work_runs;
            writeln!(
                f,
                "  workers    have mapped bios that were held or had waited {count} times"
            )?;
        }
        writeln!(
            f,
            "  machine    {} ({}), {} CPUs, {} Hz, kernel {}",
            run.machine, run.machine_hash, run.cpus, run.hz, run.rules
        )?;
        writeln!(
            f,
            "  repeat     blksim {}, seed {}, scenario {}",
            run.version, run.seed, run.scenario_hash
        )?;
        for options in run.options.chunks(4) {
            writeln!(f, "             {}", options.join(" "))?;
        }
        writeln!(
            f,
            "  time       {} s simulated, {} s of it measured, {} I/Os in all",
            seconds(run.simulated_ns),
            seconds(run.measured_ns),
            run.all_ios
        )
    }

    /// The queue's settings, for a run with one device.
    fn queue_text(&self) -> String {
        if !self.blksim.is_scheduled() {
            return "no scheduler".to_owned();
        }
        let scheduler = self.blksim.scheduler_and_series();
        let nr_requests = self.blksim.nr_requests;
        format!("scheduler {scheduler}, nr_requests {nr_requests}")
    }

    /// I/O of each of several devices.
    fn devices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.devices.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nDevices                    IOPS     I/Os  mean us     99 % us  \
             requests mean     most"
        )?;
        for disk in self.devices.iter().take(DEVICES_SHOWN) {
            disk.write_row(f)?;
        }
        match self.devices.len().checked_sub(DEVICES_SHOWN) {
            Some(more @ 1..) => writeln!(f, "  and {more} more, see --json"),
            _ => Ok(()),
        }
    }

    fn ramp(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.blksim.measured_ns > 0 {
            return Ok(());
        }
        writeln!(
            f,
            "             the ramp was not over when the run ended: nothing was measured, and the \
             rest is of the ramp"
        )
    }

    fn cpus(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = &self.cpus;
        writeln!(
            f,
            "\nCPUs         user  system softirq     irq   locks    idle  switches"
        )?;
        writeln!(
            f,
            "       {:>8.1} % {:>5.1} % {:>5.1} % {:>5.1} % {:>5.1} % {:>5.1} % {:>9}",
            cpus.user, cpus.system, cpus.softirq, cpus.irq, cpus.lock_wait, cpus.idle, cpus.ctx
        )?;
        self.work(f)?;
        writeln!(
            f,
            "\nRequests with the device{}: {:.1} on average, {} at most",
            if self.devices.is_empty() { "" } else { "s" },
            self.device.depth_mean,
            self.device.depth_max
        )
    }

    fn work(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.work.is_empty() {
            return Ok(());
        }
        write!(f, "\nWork, cycles per I/O (waiting for locks aside):")?;
        for (index, work) in self.work.iter().enumerate() {
            let lead = if index % 5 == 0 { "\n    " } else { "  " };
            write!(f, "{lead}{} {:.0}", work.component, work.cycles_per_io)?;
        }
        writeln!(f)
    }
}

impl DiskReport {
    fn queue_text(&self) -> String {
        let series = self
            .series
            .map_or(String::new(), |s| format!(" with series {s}"));
        match self.scheduler {
            "none" => "no scheduler".to_owned(),
            name => format!("scheduler {name}{series}, nr_requests {}", self.nr_requests),
        }
    }

    /// A line for each direction that had any I/O.
    fn write_row(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.device.name;
        let depth = format!(
            "{:>14.1} {:>8}",
            self.device.depth_mean, self.device.depth_max
        );
        let mut idle = true;
        for (direction, io) in self.directions() {
            if io.total_ios == 0 {
                continue;
            }
            idle = false;
            writeln!(
                f,
                "  {name:<10} {direction:<6} {:>10} {:>8} {:>8} {:>11} {depth}",
                thousands(io.iops),
                io.total_ios,
                micros(io.clat_ns.mean),
                micros(io.clat_ns.percentile.at("99.000000").unwrap_or(0) as f64),
            )?;
        }
        if idle {
            writeln!(f, "  {name:<10} no I/O {:>41} {depth}", "")?;
        }
        Ok(())
    }
}

/// Two adjacent disks have the same settings.
fn is_like(a: &DiskReport, b: &DiskReport) -> bool {
    let of = |disk: &DiskReport| {
        let device = &disk.device;
        (
            device.kind,
            device.hw_queues,
            device.queue_depth,
            device.shared_tags,
        )
    };
    of(a) == of(b) && a.device.parameters == b.device.parameters && a.queue_text() == b.queue_text()
}

fn write_device(
    f: &mut fmt::Formatter<'_>,
    device: &DeviceReport,
    names: &str,
    queue: &str,
) -> fmt::Result {
    let parameters: Vec<String> = device
        .parameters
        .iter()
        .map(|(name, value)| match value.contains(' ') {
            true => format!("{name}=\"{value}\""),
            false => format!("{name}={value}"),
        })
        .collect();
    let parameters = parameters.join(" ");
    writeln!(f, "  device     {names} {} {parameters}", device.kind)?;
    if device.hw_queues == 0 {
        return writeln!(
            f,
            "  queue      no requests: bios go to the queues of the paths"
        );
    }
    let queues = if device.hw_queues == 1 {
        "queue"
    } else {
        "queues"
    };
    let tags = if device.queue_depth == 1 {
        "tag"
    } else {
        "tags"
    };
    let of = if device.shared_tags { "in all" } else { "each" };
    writeln!(
        f,
        "  queue      {} hardware {queues}, {} {tags} {of}; {queue}",
        device.hw_queues, device.queue_depth
    )
}

fn write_job(f: &mut fmt::Formatter<'_>, job: &JobReport) -> fmt::Result {
    let threads = if job.threads == 1 {
        "thread"
    } else {
        "threads"
    };
    writeln!(
        f,
        "\nJob {}: {} {threads}, {} ms; a thread: user {:.1} %, system {:.1} %; {} switches",
        job.jobname, job.threads, job.job_runtime, job.usr_cpu, job.sys_cpu, job.ctx
    )?;
    if job.failed_threads > 0 {
        writeln!(
            f,
            "  ENDED BY AN ERROR: {} of its threads, error {}; see continue_on_error",
            job.failed_threads, job.error
        )?;
    }
    for (name, io) in job.directions() {
        if io.total_ios == 0 {
            continue;
        }
        let errors = match io.errors {
            0 => String::new(),
            count => format!(", {count} FAILED"),
        };
        writeln!(
            f,
            "  {name:<6} {} IOPS{}, {}/s, {} I/Os{errors}",
            thousands(io.iops),
            percent_around(io),
            bytes(io.bw_bytes),
            io.total_ios
        )?;
        write_spread(f, &io.clat_ns, io.intervals.as_ref())?;
    }
    if job.sync.total_ios > 0 {
        let calls = match job.sync.total_ios {
            1 => "call",
            _ => "calls",
        };
        writeln!(f, "  sync   {} {calls}", job.sync.total_ios)?;
        write_spread(f, &job.sync.lat_ns, job.sync.intervals.as_ref())?;
    }
    if job.directions().iter().all(|(_, io)| io.total_ios == 0) {
        writeln!(f, "  no I/O ended in the measured time")?;
    }
    Ok(())
}

/// Half the interval of the IOPS; nothing if the warm-up moved them out of it.
fn percent_around(io: &Direction) -> String {
    let interval = io.intervals.as_ref().map(|of| of.iops);
    let interval = interval.filter(|of| of.holds(io.iops));
    let percent = interval.and_then(|of| of.half_percent());
    percent.map_or(String::new(), |half| format!(" \u{b1}{half:.1} %"))
}

/// Latencies, and their intervals if there are any.
fn write_spread(
    f: &mut fmt::Formatter<'_>,
    spread: &Spread,
    intervals: Option<&Intervals>,
) -> fmt::Result {
    let (min, max) = (micros(spread.min as f64), micros(spread.max as f64));
    let (mean, deviation) = (micros(spread.mean), micros(spread.stddev));
    let interval = intervals.map(|of| of.mean_ns);
    let interval = interval.filter(|of| of.holds(spread.mean));
    let half = interval.and_then(|of| of.estimate()?.half);
    let around = half.map_or(String::new(), |half| format!(" \u{b1}{}", micros(half)));
    writeln!(
        f,
        "    latency us: min {min}, mean {mean}{around}, stddev {deviation}, max {max}"
    )?;
    for row in SHOWN {
        write!(f, "   ")?;
        for name in row {
            let value = spread.percentile.at(name).unwrap_or(0);
            let percent = name.trim_end_matches('0').trim_end_matches('.');
            write!(f, " {percent:>5} %: {:>9}", micros(value as f64))?;
        }
        writeln!(f)?;
        if let Some(line) = intervals.and_then(|of| around_each(row, spread, of)) {
            writeln!(f, "   {line}")?;
        }
    }
    intervals.map_or(Ok(()), |of| write_limits(f, of))
}

/// Below a row of percentiles how far the ends of their intervals are; nothing if it has none.
fn around_each(row: [&str; 5], spread: &Spread, intervals: &Intervals) -> Option<String> {
    let cells = row.map(|name| {
        let (low, high) = intervals.at(name).and_then(|of| of.low.zip(of.high))?;
        let value = spread.percentile.at(name)? as f64;
        let far = (high - value).max(value - low);
        Some(format!("\u{b1}{}", micros(far)))
    });
    let cell = |cell: &Option<String>| format!("{:>19}", cell.as_deref().unwrap_or("-"));
    let has_any = cells.iter().any(Option::is_some);
    has_any.then(|| cells.iter().map(cell).collect())
}

/// What was left out of the intervals, or why there are none.
fn write_limits(f: &mut fmt::Formatter<'_>, intervals: &Intervals) -> fmt::Result {
    let of = [("IOPS", &intervals.iops), ("mean", &intervals.mean_ns)];
    let [iops, mean] = of.map(|(name, of)| of.why_not().map(|why| (name, why)));
    match (iops, mean) {
        (Some((_, why)), Some((_, other))) if why == other => {
            return writeln!(f, "    no intervals: the run is {why}");
        }
        (None, None) => {}
        (one, other) => {
            for (name, why) in one.into_iter().chain(other) {
                writeln!(f, "    no interval of the {name}: the run is {why}")?;
            }
        }
    }
    let mut known = Vec::new();
    if let (Some(of), Some(half)) = (intervals.iops.estimate(), intervals.iops.half_percent()) {
        known.push(format!("{} IOPS \u{b1}{half:.1} %", thousands(of.mean)));
    }
    if let Some(Estimate {
        mean,
        half: Some(half),
    }) = intervals.mean_ns.estimate()
    {
        known.push(format!("mean {} \u{b1}{}", micros(mean), micros(half)));
    }
    match intervals.warm_up_ns {
        0 => Ok(()),
        ns => {
            let (ms, known) = (ns as f64 / 1e6, known.join(", "));
            writeln!(f, "    without a warm-up of {ms:.2} ms: {known}")
        }
    }
}

/// Microseconds with two digits after the point.
pub(super) fn micros(ns: f64) -> String {
    format!("{:.2}", ns / 1000.0)
}

/// Seconds with microseconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// `879`, `879.3 k`, `12.53 M`.
pub(super) fn thousands(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

pub(super) fn bytes(count: u64) -> String {
    let value = count as f64;
    match count {
        0x4000_0000.. => format!("{:.2} GiB", value / (1_u64 << 30) as f64),
        0x10_0000.. => format!("{:.1} MiB", value / (1_u64 << 20) as f64),
        _ => format!("{:.1} KiB", value / 1024.0),
    }
}
