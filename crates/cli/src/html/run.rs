//! The page of a run, and that of several runs.

use std::cmp::Ordering;

use maud::{Markup, html};
use scenario::report::{JobReport, Report, Spread};
use study::sweep::Ran;

use super::next::{Command, hints, lock_waits};
use super::{
    Cell, LINE, Section, about, called, count, figure, folded, page, picture, simulated, table,
    text, trust,
};
use crate::amount::{Unit, written};
use crate::plot::figures::{self, Figure};
use crate::plot::group::Groups;
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve, Panel, WIDTH, room_for};
use crate::plot::scale::Scale;
use crate::plot::scene::{Colour, Dash, PALETTE, Scene};

/// Runs that a page has the text of.
const TEXTS: usize = 32;
/// Height of the figure of percentiles.
const HEIGHT: i32 = 700;

/// The page of a run, whose input had these names. Figures of distributions need its `details`.
pub(crate) fn run(report: &Report, inputs: &[String]) -> String {
    let run = &report.blksim;
    let runs: Vec<Run> = Run::of(report).into_iter().collect();
    let figures = Figures::of(&runs);
    let command = Command {
        inputs,
        options: &run.options,
    };
    let sections = [
        Section::new("happened", "What happened", happened(report, &command)),
        Section::new("next", "What to look at next", hints(report, &command)),
        Section::new("time", "Where the time went", time(report, &figures)),
        Section::new("latency", "Latencies", latencies(report)),
        Section::new(
            "over-time",
            "Over time",
            figures.pick(&["queue-depth", "switches", "scheduler", "turns", "seek"]),
        ),
        Section::new("trust", "How far to trust it", trust::of(&[report], &runs)),
        Section::new(
            "text",
            "Everything as text",
            folded("The report as the terminal shows it", &report.to_string()),
        ),
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
    let body: Vec<Vec<Cell>> = rows[1..].iter().map(cells).collect();
    let happened = html! {
        p { (runs.len()) " runs, a row for each direction of all jobs together." }
        (table("Runs", &head, &body))
    };
    let texts = html! {
        @for report in reports.iter().take(TEXTS) { (folded(&named(report), &report.to_string())) }
        @if runs.len() > TEXTS { p { (runs.len() - TEXTS) " more are in --json." } }
    };
    let sections = [
        Section::new("happened", "What happened", happened),
        Section::new("next", "What to look at next", extremes(&reports)),
        Section::new("figures", "Side by side", Figures::of(&parsed).all()),
        Section::new("trust", "How far to trust it", trust::of(&reports, &parsed)),
        Section::new("text", "Each run as text", texts),
    ];
    let names: Vec<&str> = first.varied.iter().map(|(name, _)| name.as_str()).collect();
    let about = [
        format!("{} runs", runs.len()),
        format!("by {}", names.join(", ")),
    ];
    page(
        &first.scenario,
        &simulated(&first.version, &about),
        &sections,
    )
}

/// The values of what other runs have different.
fn named(report: &Report) -> String {
    let varied = report.blksim.varied.iter();
    let parts: Vec<String> = varied
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    parts.join(", ")
}

/// Runs with most and fewest IOPS, and with the longest waits.
fn extremes(reports: &[&Report]) -> Markup {
    let iops = |report: &Report| -> f64 {
        let directions = report.jobs.iter().flat_map(JobReport::directions);
        directions.map(|(_, io)| io.iops).sum()
    };
    let waits = |report: &Report| report.cpus.lock_wait / (100.0 - report.cpus.idle).max(1e-9);
    let order = |of: fn(&f64, &f64) -> Ordering, by: &dyn Fn(&Report) -> f64| {
        let mut all = reports.to_vec();
        all.sort_by(|a, b| of(&by(a), &by(b)));
        all[all.len() - 1]
    };
    let most = order(f64::total_cmp, &iops);
    let fewest = order(|a, b| b.total_cmp(a), &iops);
    let waiting = order(f64::total_cmp, &waits);
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

    fn pick(&self, names: &[&str]) -> Markup {
        let all = self.0.iter().flatten();
        let chosen = all.filter(|figure| names.contains(&figure.name.as_str()));
        let chosen: Vec<&Figure> = chosen.collect();
        html! {
            @for figure in &chosen { (picture(&figure.scene)) }
            @if chosen.is_empty() { p { "Nothing in this run changes over time." } }
        }
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

fn happened(report: &Report, command: &Command) -> Markup {
    let run = &report.blksim;
    let head = [
        "",
        "threads",
        "IOPS",
        "bandwidth",
        "I/Os",
        "failed",
        "mean",
        "50 %",
        "99 %",
        "99.9 %",
        "longest",
    ];
    let rows = ios(report);
    let settings = settings(report, command).into_iter();
    let settings = settings.filter(|(_, value)| !value.is_empty());
    let settings = settings.map(|(name, value)| vec![text(name), text(value)]);
    html! {
        @if !run.description.is_empty() { p { (run.description) } }
        @if run.outcome != "finished" {
            p .cut { "The run did not end (" (run.outcome) "): all figures are those up to there." }
        }
        @if let Some(stall) = &run.stall { pre tabindex="0" { (stall.join("\n")) } }
        (table("I/O and its latency, from submission to the completion that the thread sees",
            &head, &rows))
        @if rows.is_empty() { p { "No I/O ended in the measured time." } }
        (table("Setting", &["", "value"], &settings.collect::<Vec<_>>()))
    }
}

/// A row for each direction of each job that did I/O.
fn ios(report: &Report) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for job in &report.jobs {
        let (name, threads) = (job.jobname.as_str(), u64::from(job.threads));
        for (direction, io) in job.directions() {
            if io.total_ios > 0 {
                let mut row = vec![
                    text(called(report, name, direction)),
                    count(threads),
                    figure(io.iops, Unit::Number),
                    figure(io.bw_bytes as f64, Unit::Bytes),
                    count(io.total_ios),
                    count(io.errors),
                ];
                row.extend(spread(&io.clat_ns));
                rows.push(row);
            }
        }
        if job.sync.total_ios > 0 {
            let nothing = || Cell::Shown(String::new());
            let mut row = vec![
                text(called(report, name, "sync")),
                count(threads),
                nothing(),
                nothing(),
                count(job.sync.total_ios),
                nothing(),
            ];
            row.extend(spread(&job.sync.lat_ns));
            rows.push(row);
        }
    }
    rows
}

/// What was simulated, and how to repeat it.
fn settings(report: &Report, command: &Command) -> [(&'static str, String); 9] {
    let (run, device) = (&report.blksim, &report.device);
    let seconds = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    let attributes = run.iosched.iter();
    let attributes = attributes.map(|(name, value)| format!("{name} {value}"));
    let parameters = device.parameters.iter();
    let parameters = parameters.map(|(name, value)| format!("{name} {value}"));
    let of = if device.shared_tags { "in all" } else { "each" };
    let (queues, tags) = (device.hw_queues, device.queue_depth);
    let (name, kind) = (&device.name, device.kind);
    let digests = (&run.scenario_hash, &run.machine_hash);
    [
        ("simulated", seconds(run.simulated_ns)),
        ("of it measured", seconds(run.measured_ns)),
        (
            "device",
            format!("{name} {kind}, {queues} hardware queues, {tags} tags {of}"),
        ),
        ("its parameters", parameters.collect::<Vec<_>>().join(", ")),
        (
            "scheduler",
            format!("{}, nr_requests {}", run.scheduler, run.nr_requests),
        ),
        ("its attributes", attributes.collect::<Vec<_>>().join(", ")),
        ("ticks", format!("{} Hz", run.hz)),
        ("repeat", command.repeat()),
        (
            "digests",
            format!("scenario {}, machine {}", digests.0, digests.1),
        ),
    ]
}

/// As in the table: mean, percentiles, longest.
fn spread(spread: &Spread) -> [Cell; 5] {
    let at = |name| spread.percentile.at(name).unwrap_or(0) as f64;
    [
        spread.mean,
        at("50.000000"),
        at("99.000000"),
        at("99.900000"),
        spread.max as f64,
    ]
    .map(|ns| figure(ns, Unit::Time))
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
    let work: Vec<Vec<Cell>> = work.collect();
    html! {
        (table("Time of all CPUs", &["", "part"], &modes))
        (table(
            "Work by component, waiting for locks left out",
            &["component", "cycles per I/O", "part of the work"],
            &work,
        ))
        (locks(report))
        @if let Some(runs) = &report.runs {
            p {
                "Hardware queues ran " (runs.all.own) " times for a CPU of their own and "
                (runs.all.foreign) " times for CPUs of others; " (runs.all.in_vain)
                " of these runs offered no request."
            }
        }
        (figures.optional("lock-times"))
    }
}

impl Figures {
    fn optional(&self, name: &str) -> Markup {
        let figure = self.0.iter().flatten().find(|figure| figure.name == name);
        html! { @if let Some(figure) = figure { (picture(&figure.scene)) } }
    }
}

/// Locks, the callers that waited, and hand-offs.
fn locks(report: &Report) -> Markup {
    let ns = |ns: u64| figure(ns as f64, Unit::Time);
    let locks = report.locks.iter().map(|lock| {
        vec![
            text(lock.name),
            count(lock.acquisitions),
            count(lock.contended),
            ns(lock.wait_ns),
            ns(lock.hold_ns),
            ns(lock.wait_max_ns),
            Cell::Part(lock.wait_share * 100.0),
        ]
    });
    let locks: Vec<Vec<Cell>> = locks.collect();
    let callers = report.locks.iter().flat_map(|lock| {
        lock.callers.iter().map(|caller| {
            vec![
                text(lock.name),
                text(caller.label),
                count(caller.contended),
                ns(caller.wait_ns),
                ns(caller.wait_max_ns),
                Cell::Part(caller.wait_share * 100.0),
            ]
        })
    });
    let callers: Vec<Vec<Cell>> = callers.collect();
    let handoffs = report.locks.iter().filter_map(|lock| {
        let far = lock.handoffs?;
        let counts = [
            far.same_cpu,
            far.sibling,
            far.same_cache,
            far.same_socket,
            far.other_socket,
        ];
        let name = [text(lock.name)].into_iter();
        Some(name.chain(counts.map(count)).collect())
    });
    let handoffs: Vec<Vec<Cell>> = handoffs.collect();
    html! {
        (table(
            "Locks; the share is waiting time in the time that CPUs were not idle",
            &["lock", "taken", "contended", "wait", "hold", "longest wait", "share"],
            &locks,
        ))
        (table(
            "Waits by caller: path and label that run once the lock is granted",
            &["lock", "caller", "waits", "wait", "longest", "share"],
            &callers,
        ))
        (table(
            "Hand-offs to a waiting CPU, by distance from the CPU that released the lock",
            &[
                "lock", "same CPU", "other thread of core", "same cache", "same socket",
                "other socket",
            ],
            &handoffs,
        ))
        (LINE)
    }
}

fn latencies(report: &Report) -> Markup {
    let mut columns: Vec<(String, &Spread)> = Vec::new();
    for job in &report.jobs {
        let directions = job.directions().map(|(name, io)| (name, &io.clat_ns));
        for (name, spread) in directions.into_iter().chain([("sync", &job.sync.lat_ns)]) {
            if spread.count > 0 {
                columns.push((called(report, &job.jobname, name), spread));
            }
        }
    }
    let percentiles = columns.iter().map(|(_, spread)| &spread.percentile.0);
    let names = percentiles.max_by_key(|list| list.len());
    let mut rows = vec![row("shortest", &columns, |spread| spread.min as f64)];
    for (name, _) in names.into_iter().flatten() {
        let percent = name.trim_end_matches('0').trim_end_matches('.');
        let at = |spread: &Spread| spread.percentile.at(name).unwrap_or(0) as f64;
        rows.push(row(&format!("{percent} %"), &columns, at));
    }
    rows.push(row("longest", &columns, |spread| spread.max as f64));
    rows.push(row("mean", &columns, |spread| spread.mean));
    rows.push(row("standard deviation", &columns, |spread| spread.stddev));
    let head: Vec<&str> = ["no longer than"]
        .into_iter()
        .chain(columns.iter().map(|(name, _)| name.as_str()))
        .collect();
    html! {
        @if !columns.is_empty() {
            (table("Percentiles of latency", &head, &rows))
            (picture(&curves(&columns)))
        }
    }
}

/// Latencies by percentile, a curve for each of the first columns.
fn curves(columns: &[(String, &Spread)]) -> Scene {
    let curve = |((name, spread), colour): (&(String, &Spread), Colour)| {
        let listed = spread.percentile.0.iter();
        let listed = listed.map(|(name, ns)| (name.parse().unwrap_or(0.0), *ns as f64));
        let ends = [(0.0, spread.min as f64), (100.0, spread.max as f64)];
        let mut points: Vec<(f64, f64)> = ends.into_iter().chain(listed).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve {
            name: name.clone(),
            colour,
            dash: Dash::Solid,
            points,
            halves: Vec::new(),
            dots: false,
        }
    };
    let curves: Vec<Curve> = columns.iter().zip(PALETTE).map(curve).collect();
    let values = curves
        .iter()
        .flat_map(|of| of.points.iter().map(|(_, ns)| *ns));
    let most = columns
        .iter()
        .map(|(_, spread)| spread.count)
        .max()
        .unwrap_or(0);
    let y = Axis::new("latency by percentile", Scale::log(values, Unit::Time));
    let x = Axis::new("percentile of I/Os", Scale::tail(most as f64));
    let mut scene = Scene::new(WIDTH, HEIGHT as u32);
    let room = room_for(curves.iter().map(|of| of.name.as_str()));
    let panel = Panel::new(&mut scene, (0, HEIGHT), room, &x, &y);
    panel.curves(&mut scene, &curves);
    scene
}

fn row(name: &str, columns: &[(String, &Spread)], of: impl Fn(&Spread) -> f64) -> Vec<Cell> {
    let values = columns
        .iter()
        .map(|(_, spread)| figure(of(spread), Unit::Time));
    [text(name)].into_iter().chain(values).collect()
}
