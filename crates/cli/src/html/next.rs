//! What to look at next: statements that the figures of a report support, with a command for those
//! that a further run answers.

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use maud::{Markup, html};
use scenario::report::{JobReport, LockReport, Report, Spread};

use super::{called, quoted};
use crate::amount::{Unit, written};

/// A lock is named if more than this part of the busy time waits for it.
const LOCK: f64 = 0.1;
/// Latencies that differ by no more than this part of their mean have no spread.
const NARROW: f64 = 0.01;
/// I/Os that a percentile needs on its upper side.
const ABOVE: f64 = 10.0;

/// A statement, and a command.
type Hint = (String, Option<String>);

/// The command of a run: its inputs, and the options that changed them.
pub(super) struct Command<'a> {
    pub(super) inputs: &'a [String],
    pub(super) options: &'a [String],
}

impl Command<'_> {
    pub(super) fn repeat(&self) -> String {
        self.with("run", &[], &[])
    }

    /// Another command with the same input, without some options and with more.
    fn with(&self, command: &str, without: &[&str], more: &[String]) -> String {
        let mut words = vec!["blksim".to_owned(), command.to_owned()];
        words.extend(self.inputs.iter().map(|input| quoted(input)));
        let left = |option: &&String| !without.iter().any(|name| option.starts_with(name));
        let (fio, own): (Vec<&String>, Vec<&String>) = self
            .options
            .iter()
            .filter(left)
            .partition(|option| option.starts_with("-- "));
        words.extend(own.iter().map(|option| match option.split_once(' ') {
            Some((name, value)) => format!("{name} {}", quoted(value)),
            None => (*option).clone(),
        }));
        words.extend_from_slice(more);
        words.extend(fio.into_iter().cloned());
        words.join(" ")
    }

    /// `compare` takes scenarios, `run` also fio's command line.
    fn compare(&self, without: &[&str], report: &Report) -> String {
        let command = if self.inputs.len() == 1 {
            "compare"
        } else {
            "run"
        };
        self.with(command, without, &[versions(report)])
    }
}

pub(super) fn hints(report: &Report, command: &Command) -> Markup {
    let mut hints = Vec::new();
    ended(report, &mut hints);
    hints.extend(lock(report, command));
    hints.extend(device(report));
    hints.extend(tags(report));
    hints.extend(work(report));
    for job in &report.jobs {
        for (name, io) in job.directions() {
            hints.extend(latency(report, job, (name, &io.clat_ns), command));
        }
    }
    hints.extend(few(report, command));
    hints.push(seeds(report, command, &hints));
    html! {
        ul {
            @for (text, command) in &hints {
                li { (text) @if let Some(command) = command { pre tabindex="0" { (command) } } }
            }
        }
    }
}

/// One run shows nothing about chance.
fn seeds(report: &Report, command: &Command, others: &[Hint]) -> Hint {
    let seed = report.blksim.seed;
    let one = format!("One seed ({seed}) shows nothing about chance");
    let (text, command) = match command.inputs {
        [_] => (
            format!("{one}; blksim compare makes five, with 95 % intervals."),
            command.compare(&["--scheduler ", "--seed "], report),
        ),
        _ => (
            format!("{one}. Five, a row each:"),
            command.with("run", &["--seed "], &["--seeds 5".to_owned()]),
        ),
    };
    let known = others
        .iter()
        .any(|(_, other)| other.as_ref() == Some(&command));
    (text, (!known).then_some(command))
}

/// What other schedulers the queue can have, the present one first.
fn versions(report: &Report) -> String {
    let present = report.blksim.scheduler;
    let rules = Rules::by_name(report.blksim.rules);
    let single = rules.is_some_and(|rules| rules.single_queue.is_some());
    let names = SchedulerKind::of_path(single).map(SchedulerKind::name);
    let others = names.filter(|name| *name != present);
    let all: Vec<&str> = [present].into_iter().chain(others).collect();
    format!("--scheduler {}", all.join(","))
}

/// Stalls, failures, and runs without figures.
fn ended(report: &Report, hints: &mut Vec<Hint>) {
    let run = &report.blksim;
    if run.stall.is_some() {
        let text = "The run stalled: begin with the requests that are left, listed above.";
        hints.push((text.to_owned(), None));
    }
    if run.measured_ns == 0 {
        let text = "The ramp was not over when the run ended: nothing was measured.";
        hints.push((text.to_owned(), None));
    }
    let failed: u64 = report.jobs.iter().map(|job| job.total_err).sum();
    if failed > 0 {
        let text = format!(
            "{failed} I/Os failed; a thread ends at its first failed I/O unless continue_on_error \
             is set."
        );
        hints.push((text, None));
    }
}

/// What the lock with the longest waits costs.
pub(super) fn lock_waits(report: &Report) -> Option<String> {
    let most = report.locks.iter().max_by_key(|lock| lock.wait_ns)?;
    if most.wait_share < LOCK {
        return None;
    }
    let mut text = format!(
        "{} of the CPUs' busy time waits for {}: {} of {} acquisitions had to wait",
        percent(most.wait_share),
        most.name,
        most.contended,
        most.acquisitions
    );
    for caller in most.callers.iter().take(2) {
        let part = percent(caller.wait_share);
        text.push_str(&format!(", {part} of the busy time in {}", caller.label));
    }
    text.push('.');
    text.push_str(&far(most).unwrap_or_default());
    Some(text)
}

/// A command that shows what would change it.
fn lock(report: &Report, command: &Command) -> Option<Hint> {
    let mut text = lock_waits(report)?;
    let threads: u32 = report.jobs.iter().map(|job| job.threads).sum();
    if report.blksim.is_scheduled() && report.devices.is_empty() {
        text.push_str(" The same work without this scheduler's locks:");
        let without = ["--scheduler ", "--seed ", "--set queue."];
        return Some((text, Some(command.compare(&without, report))));
    }
    if threads > 1 && report.jobs.len() == 1 {
        text.push_str(" How it grows with the number of threads:");
        let steps = [1, 2, 4, 8, 16, 32, 64, 128].into_iter();
        let steps = steps.take_while(|n| *n < threads).chain([threads]);
        let steps: Vec<String> = steps.map(|n| n.to_string()).collect();
        let more = format!("--threads {}", steps.join(","));
        let command = command.with("run", &["--set job.numjobs="], &[more]);
        return Some((text, Some(command)));
    }
    Some((text, None))
}

/// Hand-offs that a cache does not serve.
fn far(lock: &LockReport) -> Option<String> {
    let far = lock.handoffs?;
    let left = far.same_socket + far.other_socket;
    let all = far.same_cpu + far.sibling + far.same_cache + left;
    (all > 0 && left > 0).then(|| {
        let part = percent(left as f64 / all as f64);
        format!(" {part} of its hand-offs left the last-level cache, which makes each one longer.")
    })
}

/// Mean time with the device as a part of the latency, by Little's law.
fn device(report: &Report) -> Option<Hint> {
    let directions = report.jobs.iter().flat_map(JobReport::directions);
    let (mut iops, mut latency) = (0.0, 0.0);
    for (_, io) in directions {
        iops += io.iops;
        latency += io.iops * io.clat_ns.mean;
    }
    let with_device = report.device.depth_mean / iops * 1e9;
    let mean = latency / iops;
    let part = with_device / mean;
    // Requests that no I/O waits for (writeback, readahead) would exceed it.
    let text = || {
        format!(
            "{} of an I/O's latency is time with the device: {} requests on average at {} I/Os a \
             second are {} of {}. The block layer and the CPUs can change the rest only.",
            percent(part.min(1.0)),
            written(report.device.depth_mean, Unit::Number),
            written(iops, Unit::Number),
            written(with_device, Unit::Time),
            written(mean, Unit::Time)
        )
    };
    (iops > 0.0 && (0.5..=1.02).contains(&part)).then(|| (text(), None))
}

/// Driver tags that are nearly always in use.
fn tags(report: &Report) -> Option<Hint> {
    let device = &report.device;
    let sets = if device.shared_tags {
        1
    } else {
        device.hw_queues
    };
    let all = f64::from(device.queue_depth * u32::from(sets));
    let used = written(device.depth_mean, Unit::Number);
    let text = format!(
        "{used} of {all} driver tags are in use on average: requests wait for tags. A deeper \
         hardware queue, or a smaller iodepth, shows whether it matters."
    );
    let full = report.devices.is_empty() && all > 0.0 && device.depth_mean >= 0.9 * all;
    full.then_some((text, None))
}

/// CPUs that are busy with work.
fn work(report: &Report) -> Option<Hint> {
    let cpus = &report.cpus;
    let working = cpus.user + cpus.system + cpus.softirq + cpus.irq;
    let most = report.work.iter();
    let most = most.max_by(|a, b| a.cycles_per_io.total_cmp(&b.cycles_per_io))?;
    let all: f64 = report.work.iter().map(|work| work.cycles_per_io).sum();
    let text = format!(
        "CPUs work in {working:.0} % of their time and wait for locks in {:.1} %: throughput is \
         limited by the work for each I/O, {all:.0} cycles, of which {} takes {:.0}.",
        cpus.lock_wait, most.component, most.cycles_per_io
    );
    (working >= 80.0).then_some((text, None))
}

/// Spreads that say little, and long tails.
fn latency(
    report: &Report,
    job: &JobReport,
    (name, spread): (&str, &Spread),
    command: &Command,
) -> Vec<Hint> {
    let mut hints = Vec::new();
    let what = called(report, &job.jobname, name);
    let at = |name| spread.percentile.at(name).unwrap_or(0);
    let (half, tail) = (at("50.000000"), at("99.900000"));
    let time = |ns: u64| written(ns as f64, Unit::Time);
    let count = spread.count;
    if count > 1 && (spread.max - spread.min) as f64 <= NARROW * spread.mean {
        let text = format!(
            "{what}: all {count} latencies are from {} to {} ns: nothing in this run makes them \
             differ. A real drive has a spread.",
            spread.min, spread.max
        );
        hints.push((text, None));
    } else if count > 1 && half == tail {
        let text = format!(
            "{what}: the percentiles from 50 to 99.9 % are equal, {}: nothing in this run makes \
             these I/Os differ. A real drive has a spread.",
            time(half)
        );
        hints.push((text, None));
    }
    if half > 0 && tail >= 5 * half {
        let text = format!(
            "{what}: 99.9 % take up to {}, {:.0} times the median of {}. Single I/Os of a part of \
             the run, for ui.perfetto.dev:",
            time(tail),
            tail as f64 / half as f64,
            time(half)
        );
        let command = command.with("run", &[], &["--trace-perfetto trace.json".to_owned()]);
        hints.push((text, Some(command)));
    }
    hints
}

/// The direction with fewest I/Os, if these are few.
fn few(report: &Report, command: &Command) -> Option<Hint> {
    let of_job = |job| JobReport::directions(job).map(|(name, io)| (job, name, io.clat_ns.count));
    let all = report.jobs.iter().flat_map(of_job);
    let all = all.filter(|(_, _, count)| *count > 0);
    let (job, name, count) = all.min_by_key(|(_, _, count)| *count)?;
    let (needed, count) = (ABOVE / 0.001, count as f64);
    if count >= needed {
        return None;
    }
    let sure = 100.0 * (1.0 - ABOVE / count).max(0.0);
    let what = called(report, &job.jobname, name);
    let text = format!(
        "{what}: {count} I/Os are few. Percentiles above {sure:.1} % depend on fewer than ten of \
         them"
    );
    // Only a job that ends by time has more I/Os in a longer one.
    let timed = job.options.iter().any(|(key, _)| key == "runtime");
    let longer = report.blksim.measured_ns as f64 / 1e6 * needed / count;
    if !timed || longer > 10_000.0 {
        return Some((format!("{text}."), None));
    }
    let without = ["--runtime ", "--set job.runtime="];
    let more = [format!("--runtime {:.0}ms", longer.ceil().max(1.0))];
    let command = command.with("run", &without, &more);
    Some((format!("{text}; for 99.9 %:"), Some(command)))
}

fn percent(part: f64) -> String {
    match 100.0 * part {
        few if few < 10.0 => format!("{few:.1} %"),
        many => format!("{many:.0} %"),
    }
}
