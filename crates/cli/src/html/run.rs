//! The page of a run, and that of several runs.

use maud::{Markup, html};
use scenario::report::{Direction, Interval, Intervals, JobReport, Report, Spread};
use study::sweep::Ran;

use super::next::{Command, hints, lock_waits};
use super::{
    Cell, about, as_text, called, count, curves, figure, folded, list, page, picture, simulated,
    table, text, trust,
};
use crate::amount::{Unit, estimated, written};
use crate::plot::figures::{self, Figure};
use crate::plot::group::Groups;
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve};
use crate::plot::scale::Scale;
use crate::plot::scene::{Dash, PALETTE};

/// Runs that a page has the text of.
const TEXTS: usize = 32;
/// Height of the figure of percentiles.
const HEIGHT: i32 = 700;

/// The page of a run, whose input had these names. Figures of distributions need its `details`.
pub(crate) fn run(report: &Report, inputs: &[String]) -> String {
    let run = &report.blksim;
    let runs: Vec<Run> = Run::of(report).into_iter().collect();
    let (figures, kinds) = (Figures::of(&runs), kinds(report));
    let options = &run.options;
    let command = Command { inputs, options };
    let sections = [
        (
            "happened",
            "What happened",
            happened(report, &kinds, &command),
        ),
        ("next", "What to look at next", hints(report, &command)),
        ("time", "Where the time went", time(report, &figures)),
        ("latency", "Latencies", latencies(&kinds)),
        ("over-time", "Over time", over_time(&figures)),
        ("trust", "How far to trust it", trust::of(&[report], &runs)),
        as_text(&report.to_string()),
    ];
    let about = about(run, report.device.kind);
    page(&run.scenario, &simulated(&run.version, &about), &sections)
}

/// The page of several runs: `rows` with a header, after so many columns with texts.
pub(crate) fn many(runs: &[Ran], rows: &[Vec<String>], texts: usize) -> String {
    let reports: Vec<&Report> = runs.iter().map(|ran| &ran.report).collect();
    let first = &reports[0].blksim;
    let parsed = reports.iter().map(|report| Run::of(report));
    let parsed: Vec<Run> = parsed.filter_map(Result::ok).collect();
    let cells = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        let cell = |(column, cell): (usize, &String)| match column < texts {
            true => text(cell),
            false => Cell::Shown(cell.clone()),
        };
        cells.map(cell).collect()
    };
    let head: Vec<&str> = rows[0].iter().map(String::as_str).collect();
    let happened = html! {
        p { (runs.len()) " runs, a row for each direction of all jobs together." }
        (table("Runs", &head, rows[1..].iter().map(cells)))
    };
    let texts = html! {
        @for report in reports.iter().take(TEXTS) { (folded(&named(report), &report.to_string())) }
        @if runs.len() > TEXTS { p { (runs.len() - TEXTS) " more are in --json." } }
    };
    let sections = [
        ("happened", "What happened", happened),
        ("next", "What to look at next", extremes(&reports)),
        ("figures", "Side by side", Figures::of(&parsed).all()),
        ("trust", "How far to trust it", trust::of(&reports, &parsed)),
        ("text", "Each run as text", texts),
    ];
    let names = joined(first.varied.iter().map(|(name, _)| name.clone()));
    let about = [format!("{} runs", runs.len()), format!("by {names}")];
    let about = simulated(&first.version, &about);
    page(&first.scenario, &about, &sections)
}

/// The values of what other runs have different.
fn named(report: &Report) -> String {
    let varied = report.blksim.varied.iter();
    joined(varied.map(|(name, value)| format!("{name}={value}")))
}

/// Runs with most and fewest IOPS, and with the longest waits.
fn extremes(reports: &[&Report]) -> Markup {
    let iops = |report: &Report| -> f64 {
        let directions = report.jobs.iter().flat_map(JobReport::directions);
        directions.map(|(_, io)| io.iops).sum()
    };
    let waits = |report: &Report| report.cpus.lock_wait / (100.0 - report.cpus.idle).max(1e-9);
    let last = |by: &dyn Fn(&Report) -> f64| {
        let all = reports.iter().max_by(|a, b| by(a).total_cmp(&by(b)));
        all.expect("there are several runs")
    };
    let (most, fewest, waiting) = (last(&iops), last(&|report| -iops(report)), last(&waits));
    let shown = |report: &Report| written(iops(report), Unit::Number);
    html! {
        ul {
            li {
                "Most IOPS: " (named(most)) " (" (shown(most)) "), fewest: " (named(fewest)) " ("
                (shown(fewest)) ")."
            }
            @if let Some(text) = lock_waits(waiting) { li { (named(waiting)) ": " (text) } }
            li { "blksim compare with the same options has means of several seeds with intervals." }
            li { "Where the time of one of them goes: blksim run with its options and --html." }
        }
    }
}

/// The figures of `plot`, or why there are none.
struct Figures(Result<Vec<Figure>, String>);

impl Figures {
    fn of(runs: &[Run]) -> Figures {
        Figures(Groups::new(runs, false).map(|groups| figures::all(&groups, &[]).0))
    }

    fn named<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Figure> {
        let all = self.0.iter().flatten();
        all.filter(|figure| names.contains(&figure.name.as_str()))
    }

    fn all(&self) -> Markup {
        html! {
            @match &self.0 {
                Ok(all) => { @for figure in all { (picture(&figure.scene)) } },
                Err(why) => { p { "No figures: " (why) "." } },
            }
        }
    }
}

fn happened(report: &Report, kinds: &[Kind], command: &Command) -> Markup {
    let run = &report.blksim;
    html! {
        @if !run.description.is_empty() { p { (run.description) } }
        @if run.outcome != "finished" {
            p .cut { "The run did not end (" (run.outcome) "): all figures are those up to there." }
        }
        @if let Some(stall) = &run.stall { pre tabindex="0" { (stall.join("\n")) } }
        (table(
            "I/O and its latency, from submission to the completion that the thread sees",
            &[
                "", "threads", "IOPS", "bandwidth", "I/Os", "failed", "mean", "50 %", "99 %",
                "99.9 %", "longest",
            ],
            kinds.iter().map(ios),
        ))
        (table(
            "95 % intervals, from batches of the measured time without its warm-up",
            &["", "warm-up", "IOPS", "bandwidth", "mean", "50 %", "99 %", "99.9 %", ""],
            kinds.iter().filter_map(intervals),
        ))
        (list("Decisions with a lasting effect:", &report.explanations))
        @if kinds.is_empty() { p { "No I/O ended in the measured time." } }
        (table("Setting", &["", "value"], settings(report, command)))
    }
}

/// A direction of a job that did I/O, or its syncs.
struct Kind<'a> {
    name: String,
    threads: u32,
    /// None of syncs.
    io: Option<&'a Direction>,
    latency: &'a Spread,
    intervals: Option<&'a Intervals>,
}

fn kinds(report: &Report) -> Vec<Kind<'_>> {
    let of_job = |job| {
        let directions = JobReport::directions(job)
            .map(|(name, io)| (name, Some(io), &io.clat_ns, io.intervals.as_ref()));
        let sync = ("sync", None, &job.sync.lat_ns, job.sync.intervals.as_ref());
        let all = directions.into_iter().chain([sync]);
        all.map(|(name, io, latency, intervals)| Kind {
            name: called(report, &job.jobname, name),
            threads: job.threads,
            io,
            latency,
            intervals,
        })
    };
    let all = report.jobs.iter().flat_map(of_job);
    all.filter(|of| of.latency.count > 0).collect()
}

fn ios(of: &Kind) -> Vec<Cell> {
    let rate = |cell: fn(&Direction) -> Cell| of.io.map_or(Cell::Shown(String::new()), cell);
    let at = |name| of.latency.percentile.at(name).unwrap_or(0) as f64;
    let percentiles = ["50.000000", "99.000000", "99.900000"].map(at);
    let (mean, longest) = ([of.latency.mean], [of.latency.max as f64]);
    let latencies = mean.into_iter().chain(percentiles).chain(longest);
    let mut row = vec![
        text(&of.name),
        count(u64::from(of.threads)),
        rate(|io| figure(io.iops, Unit::Number)),
        rate(|io| figure(io.bw_bytes as f64, Unit::Bytes)),
        count(of.latency.count),
        rate(|io| count(io.errors)),
    ];
    row.extend(latencies.map(|ns| figure(ns, Unit::Time)));
    row
}

/// How well its figures are known; a reason where one is not.
fn intervals(of: &Kind) -> Option<Vec<Cell>> {
    let intervals = of.intervals?;
    let ends = |interval: Option<&Interval>, unit| {
        let estimate = interval.and_then(Interval::estimate);
        Cell::Shown(estimate.map_or("-".to_owned(), |of| estimated(&of, unit)))
    };
    let rate = |interval, unit| match of.io {
        Some(_) => ends(Some(interval), unit),
        None => Cell::Shown(String::new()),
    };
    let mut row = vec![
        text(&of.name),
        figure(intervals.warm_up_ns as f64, Unit::Time),
        rate(&intervals.iops, Unit::Number),
        rate(&intervals.bw_bytes, Unit::Bytes),
        ends(Some(&intervals.mean_ns), Unit::Time),
    ];
    let percentiles = ["50.000000", "99.000000", "99.900000"];
    row.extend(percentiles.map(|name| ends(intervals.at(name), Unit::Time)));
    let why = intervals.iops.why_not().or(intervals.mean_ns.why_not());
    row.push(text(why.map_or(String::new(), |why| why.to_string())));
    Some(row)
}

/// What was simulated, and how to repeat it.
fn settings(report: &Report, command: &Command) -> Vec<Vec<Cell>> {
    let (run, device) = (&report.blksim, &report.device);
    let seconds = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    let attributes = run.iosched.iter();
    let attributes = attributes.map(|(name, value)| format!("{name} {value}"));
    let parameters = device.parameters.iter();
    let parameters = parameters.map(|(name, value)| format!("{name} {value}"));
    let of = if device.shared_tags { "in all" } else { "each" };
    let (queues, tags) = (device.hw_queues, device.queue_depth);
    let (name, kind) = (&device.name, device.kind);
    let many = |count: u64, one| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let (queues, tags) = (
        many(queues.into(), "hardware queue"),
        many(tags.into(), "tag"),
    );
    let device = format!("{name} {kind}, {queues}, {tags} {of}");
    let scheduler = format!("{}, nr_requests {}", run.scheduler, run.nr_requests);
    let digests = (&run.scenario_hash, &run.machine_hash);
    let digests = format!("scenario {}, machine {}", digests.0, digests.1);
    let all = [
        ("simulated", seconds(run.simulated_ns)),
        ("of it measured", seconds(run.measured_ns)),
        ("device", device),
        ("its parameters", joined(parameters)),
        ("scheduler", scheduler),
        ("its attributes", joined(attributes)),
        ("ticks", format!("{} Hz", run.hz)),
        ("repeat", command.repeat()),
        ("digests", digests),
    ];
    let given = all.into_iter().filter(|(_, value)| !value.is_empty());
    given
        .map(|(name, value)| vec![text(name), text(value)])
        .collect()
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn time(report: &Report, figures: &Figures) -> Markup {
    let cpus = &report.cpus;
    let modes = [
        ("user space", cpus.user),
        ("kernel for tasks, without waiting", cpus.system),
        ("softirqs", cpus.softirq),
        ("interrupts", cpus.irq),
        ("waiting for locks", cpus.lock_wait),
        ("idle", cpus.idle),
    ];
    let modes = modes.map(|(name, percent)| vec![text(name), Cell::Part(percent)]);
    let cycles: f64 = report.work.iter().map(|work| work.cycles_per_io).sum();
    let work = report.work.iter().map(|work| {
        let part = 100.0 * work.cycles_per_io / cycles.max(f64::MIN_POSITIVE);
        let cycles = Cell::Figure(work.cycles_per_io, format!("{:.0}", work.cycles_per_io));
        vec![text(work.component), cycles, Cell::Part(part)]
    });
    html! {
        (table("Time of all CPUs", &["", "part"], modes))
        (table(
            "Work by component, waiting for locks left out",
            &["component", "cycles per I/O", "part of the work"],
            work,
        ))
        (locks(report))
        @if let Some(runs) = &report.runs {
            p {
                "Hardware queues ran " (runs.all.own) " times for a CPU of their own and "
                (runs.all.foreign) " times for CPUs of others; " (runs.all.in_vain)
                " of these runs offered no request."
            }
        }
        @for figure in figures.named(&["lock-times"]) { (picture(&figure.scene)) }
    }
}

fn over_time(figures: &Figures) -> Markup {
    let names = [
        "rates",
        "queue-depth",
        "switches",
        "scheduler",
        "turns",
        "seek",
    ];
    html! {
        @for figure in figures.named(&names) { (picture(&figure.scene)) }
        @if figures.named(&names).next().is_none() {
            p { "Nothing in this run changes over time." }
        }
    }
}

/// Locks, the callers that waited, and hand-offs.
fn locks(report: &Report) -> Markup {
    let row = |names: &[&str], counts: &[u64], times: &[u64], share: f64| {
        let names = names.iter().map(|name| text(*name));
        let counts = counts.iter().map(|of| count(*of));
        let times = times.iter().map(|ns| figure(*ns as f64, Unit::Time));
        let share = [Cell::Part(share * 100.0)];
        names.chain(counts).chain(times).chain(share).collect()
    };
    let all = report.locks.iter().map(|of| {
        let times = [of.wait_ns, of.hold_ns, of.wait_max_ns];
        row(
            &[of.name],
            &[of.acquisitions, of.contended],
            &times,
            of.wait_share,
        )
    });
    let callers = report.locks.iter().flat_map(|lock| {
        lock.callers.iter().map(|of| {
            let times = [of.wait_ns, of.wait_max_ns];
            row(
                &[lock.name, of.label],
                &[of.contended],
                &times,
                of.wait_share,
            )
        })
    });
    let handoffs = report.locks.iter().filter_map(|lock| {
        let far = lock.handoffs?;
        let near = [far.same_cpu, far.sibling, far.same_cache];
        let counts = near.into_iter().chain([far.same_socket, far.other_socket]);
        let name = [text(lock.name)].into_iter();
        Some(name.chain(counts.map(count)).collect())
    });
    html! {
        (table(
            "Locks; the share is waiting time in the time that CPUs were not idle",
            &["lock", "taken", "contended", "wait", "hold", "longest wait", "share"],
            all,
        ))
        (table(
            "Waits by caller: path and label that run once the lock is granted",
            &["lock", "caller", "waits", "wait", "longest", "share"],
            callers,
        ))
        (table(
            "Hand-offs to a waiting CPU, by distance from the CPU that released the lock",
            &[
                "lock", "same CPU", "other thread of core", "same cache", "same socket",
                "other socket",
            ],
            handoffs,
        ))
    }
}

fn latencies(kinds: &[Kind]) -> Markup {
    let row = |name: &str, of: &dyn Fn(&Spread) -> f64| -> Vec<Cell> {
        let values = kinds
            .iter()
            .map(|kind| figure(of(kind.latency), Unit::Time));
        [text(name)].into_iter().chain(values).collect()
    };
    let percentiles = kinds.iter().map(|of| &of.latency.percentile.0);
    let names = percentiles.max_by_key(|list| list.len());
    let mut rows = vec![row("shortest", &|spread| spread.min as f64)];
    for (name, _) in names.into_iter().flatten() {
        let percent = name.trim_end_matches('0').trim_end_matches('.');
        let at = |spread: &Spread| spread.percentile.at(name).unwrap_or(0) as f64;
        rows.push(row(&format!("{percent} %"), &at));
    }
    rows.push(row("longest", &|spread| spread.max as f64));
    rows.push(row("mean", &|spread| spread.mean));
    rows.push(row("standard deviation", &|spread| spread.stddev));
    let names = kinds.iter().map(|of| of.name.as_str());
    let head: Vec<&str> = ["no longer than"].into_iter().chain(names).collect();
    html! {
        @if !kinds.is_empty() {
            (table("Percentiles of latency", &head, rows))
            (by_percentile(kinds))
        }
    }
}

/// Latencies by percentile, a curve for each of the first kinds.
fn by_percentile(kinds: &[Kind]) -> Markup {
    let curve = |(of, colour): (&Kind, _)| {
        let latency = of.latency;
        let listed = latency.percentile.0.iter();
        let listed = listed.map(|(name, ns)| (name.parse().unwrap_or(0.0), *ns as f64));
        let ends = [(0.0, latency.min as f64), (100.0, latency.max as f64)];
        let mut points: Vec<(f64, f64)> = ends.into_iter().chain(listed).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve {
            name: of.name.clone(),
            colour,
            dash: Dash::Solid,
            points,
            halves: Vec::new(),
            dots: false,
        }
    };
    let all: Vec<Curve> = kinds.iter().zip(PALETTE).map(curve).collect();
    let values = all
        .iter()
        .flat_map(|of| of.points.iter().map(|(_, ns)| *ns));
    let most = kinds.iter().map(|of| of.latency.count).max();
    let y = Axis::new("latency by percentile", Scale::log(values, Unit::Time));
    let x = Axis::new("percentile of I/Os", Scale::tail(most.unwrap_or(0) as f64));
    curves(&all, &x, &y, HEIGHT)
}
