//! `blksim what-if`: a capture under other schedulers and tunables, the model's error first.

use std::fmt::Write as _;
use std::path::Path;

use blkmq::elevator::SchedulerKind;
use scenario::profile;
use scenario::replay::{CAPTURED, drive_file, fit};
use serde_json::{Map, Value, json};
use sim::profile::MachineProfile;
use sim::replay::{Pace, Point};
use study::fleet::Fleet;
use study::what_if::{self, Choice, Fit, Group, Setup, Verdict, WhatIf};

use crate::args::{CaptureArgs, WhatIfArgs};
use crate::changes::{Changes, Machines};
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::html::Row;
use crate::interrupt::Interrupt;
use crate::output::OutputFile;
use crate::outputs::{Outputs, Reported};
use crate::replay::Loaded;
use crate::{OK, html};

/// With a larger error of the mean, percent, the model does not fit a capture.
const POOR: f64 = 15.0;

/// What a fitted drive is, and is not.
const DRIVE_ABOUT: &str = "\
# A captured drive below its driver, by `blksim what-if --fit`: D2C of its requests in the order of
# D, each with kind, sectors, requests with the drive, ns. Times are drawn in runs from those of the
# kind with the nearest size and depth. Not in a capture: what another order of requests would give
# (seeks, caches), other depths and sizes, polled I/O. Its machine has the steal time of its host.
";

/// The same of a machine.
const MACHINE_ABOUT: &str = "\
# A machine by `blksim what-if --fit`: the clock at which the kernel's work takes as long as in the
# capture, and the time that CPUs lost after completions and submissions (steal), drawn in runs. D2C
# and Q of a capture contain the exit from idle and the entry of interrupts: both are 0 here. Not in
# a capture: how that work is spread over functions and locks, which is as in the base machine.
";

/// Processes whose rows are printed.
const PROCESSES: usize = 10;

pub(crate) fn what_if(args: &WhatIfArgs) -> Result<u8, Error> {
    let from = &args.captured;
    let machines = Machines::of(&from.tune)?;
    let pace = if args.open_loop {
        Pace::Open
    } else {
        Pace::Closed
    };
    let planner = Planner {
        changes: Changes::of(&from.tune, &machines, &[])?,
        loaded: Loaded::new(from, Point::Queue, pace)?,
        machines: &machines,
        from,
    };
    let outputs = Outputs::open(&args.reports)?;
    let files = args.write_fit.as_deref().map(FitFiles::open).transpose()?;
    let loaded = &planner.loaded;
    planner.has_times(args)?;
    let (mut own, mut notes) = planner.choice(None, &[])?;
    let mut choices = Vec::new();
    for (name, tunables) in wanted(&args.scheduler)? {
        let (choice, more) = planner.choice(Some(name), &tunables)?;
        notes.extend(more);
        // Searched, the captured scheduler is a choice like the others.
        if args.search || choice.name != own.name {
            choices.push((name, tunables, choice));
        }
    }
    for (_, _, choice) in &mut choices {
        notes.extend(waiting_processes(loaded, &own, choice));
    }
    notes.sort_unstable();
    notes.dedup();
    notes.extend(loaded.comparison.notes.iter().cloned());
    own.name.push_str(planner.suffix());
    let machine = machines.get(&own.plan.machine.profile);
    let devices = loaded.devices();
    let setup = Setup {
        arrivals: &loaded.arrivals,
        profile: machine,
        pace,
        seeds: args.seeds,
        own_device: from.device == CAPTURED,
        devices: &devices,
        of_disk: loaded.of_disk,
    };
    let interrupt = Interrupt::install()?;
    let (answer, fitted) = with_fleet(&args.jobs, &interrupt, |fleet| {
        let answer = answered(args, &planner, &setup, (&own, choices), fleet)?;
        let all = || what_if::fit_to_all(&setup, &own, fleet);
        Ok((answer, files.is_some().then(all).transpose()?))
    })?;
    let report = WhatIfReport {
        args,
        machine,
        rules: own.plan.disks[0].queue.rules.name,
        limits: loaded.comparison.limits,
        notes,
        answer,
    };
    outputs.write(&report, || match (files, fitted) {
        (Some(files), Some(fitted)) => files.write(&planner, machine, &fitted),
        _ => Ok(()),
    })?;
    Ok(OK)
}

/// A scheduler of `--scheduler`, its tunables, and the choice that they make.
type Wanted<'a> = (&'a str, Vec<String>, Choice);

/// Fits and searches, if that was asked for, and compares.
fn answered(
    args: &WhatIfArgs,
    planner: &Planner<'_>,
    setup: &Setup<'_>,
    (own, choices): (&Choice, Vec<Wanted<'_>>),
    fleet: &Fleet,
) -> Result<WhatIf, study::error::Error> {
    let fitted = match args.fit {
        true => Some(what_if::fit(setup, own, fleet)?),
        false => None,
    };
    let mut all = vec![own.clone()];
    for (name, tunables, base) in choices {
        if !args.search {
            all.push(base);
            continue;
        }
        let with = |more: &[String]| planner.choice(Some(name), &[&tunables, more].concat());
        let with = |more: &[String]| with(more).ok().map(|(choice, _)| choice);
        let found = what_if::search(setup, (own, &base), with, fitted.as_ref(), fleet);
        all.extend(found?);
    }
    what_if::compare(setup, &all, fitted, fleet)
}

/// Whether `NAME=VALUE` is one of the scheduler, or nr_requests.
fn is_tunable(scheduler: Option<&str>, tunable: &str) -> Result<(), Error> {
    let kind = scheduler.and_then(SchedulerKind::by_name);
    let Some(kind) = kind else { return Ok(()) };
    let name = tunable.split('=').next().unwrap_or_default();
    let attributes = kind.attributes();
    let mut names: Vec<&str> = attributes.iter().map(|(name, _)| *name).collect();
    names.push("nr_requests");
    match names.contains(&name) {
        true => Ok(()),
        false => Err(Error::usage(
            format!("--scheduler {},{tunable}", kind.name()),
            format!("no such tunable; expected one of {}", names.join(", ")),
        )),
    }
}

/// Makes choices of a capture.
struct Planner<'a> {
    from: &'a CaptureArgs,
    loaded: Loaded,
    machines: &'a Machines,
    changes: Changes,
}

impl Planner<'_> {
    /// A choice with its notes; no scheduler is the captured one.
    fn choice(
        &self,
        scheduler: Option<&str>,
        tunables: &[String],
    ) -> Result<(Choice, Vec<String>), Error> {
        let (mut scenario, notes) = self.loaded.scenario(self.from, scheduler, self.machines)?;
        for tunable in tunables {
            is_tunable(scheduler, tunable)?;
            scenario = scenario.set(&format!("queue.{tunable}")).map_err(|error| {
                let name = scheduler.unwrap_or_default();
                Error::usage(format!("--scheduler {name},{tunable}"), error.to_string())
            })?;
        }
        let (_, mut plan) = self.changes.apply(scenario, self.machines)?;
        fit(
            &mut plan,
            &self.loaded.arrivals,
            self.from.device == CAPTURED,
        );
        let name = plan.disks[0].queue.scheduler.kind().name().to_owned();
        let name = [&[name], tunables].concat().join(",");
        let comparable = true;
        Ok((
            Choice {
                name,
                plan,
                comparable,
            },
            notes,
        ))
    }

    /// Whether the first choice is the capture's and nothing else, for its name.
    fn suffix(&self) -> &'static str {
        let tune = &self.from.tune;
        let changed = !tune.set.is_empty() || tune.rules.is_some();
        match self.loaded.has_folder() && self.from.device == CAPTURED && !changed {
            true => " (captured)",
            false => " (baseline)",
        }
    }

    /// The captured device needs its times, and a fit the captured device.
    fn has_times(&self, args: &WhatIfArgs) -> Result<(), Error> {
        let own_device = self.from.device == CAPTURED;
        let disks = &self.loaded.arrivals.disks;
        if own_device && disks.iter().any(|disk| disk.services.is_empty()) {
            let what = "no D with its C, so the times of the device are not known; expected \
                        --device TYPE[,PARAMETER=VALUE]...";
            return Err(Error::input(&self.from.capture[0], what));
        }
        if args.fit && !own_device {
            let what = "is of the captured device; expected it without --device";
            return Err(Error::usage("--fit", what));
        }
        Ok(())
    }
}

/// A note about I/Os that wait in their process for a tag, and not in the queue. A capture of such
/// processes does not say what a choice with more room would give.
fn waiting_processes(loaded: &Loaded, own: &Choice, choice: &mut Choice) -> Option<String> {
    let room = |choice: &Choice| {
        let disk = &choice.plan.disks[0];
        let queues = u32::from(disk.capacity.hctxs.max(1));
        match disk.queue.scheduler.kind() {
            SchedulerKind::None => disk.capacity.driver_tags / queues,
            _ => disk.queue.nr_requests,
        }
    };
    let (had, has) = (room(own), room(choice));
    if has > had && loaded.arrivals.disks.iter().any(|disk| disk.depth >= had) {
        choice.comparable = false;
        return Some(format!(
            "the capture's processes waited for one of {had} tags before their next I/O, so it \
             does not show how many they would have in flight with more: the latencies under {} \
             are too low by an unknown time, and are not compared",
            choice.name
        ));
    }
    (has < had).then(|| {
        format!(
            "under {} a process waits before its next I/O once {has} are in flight, not {had}: \
             I/Os are fewer at a time and take less each; the whole run says whether that helps",
            choice.name
        )
    })
}

/// Schedulers with their tunables: a word with `=` belongs to the scheduler before it.
fn wanted(words: &[String]) -> Result<Vec<(&str, Vec<String>)>, Error> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for word in words {
        if !word.contains('=') {
            all.push((word, Vec::new()));
        } else if let Some((_, tunables)) = all.last_mut() {
            tunables.push(word.clone());
        } else {
            let what = "a tunable follows its scheduler; expected NAME,TUNABLE=VALUE";
            return Err(Error::usage(format!("--scheduler {word}"), what));
        }
    }
    if all.is_empty() {
        let kinds = SchedulerKind::of_path(false);
        // noop is none with a queue of its own.
        let kinds =
            kinds.filter(|kind| *kind == SchedulerKind::None || !kind.attributes().is_empty());
        all = kinds.map(|kind| (kind.name(), Vec::new())).collect();
    }
    Ok(all)
}

/// Paths of a capture, as written.
fn capture(from: &CaptureArgs) -> String {
    let paths: Vec<String> = from
        .capture
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(" ")
}

/// Files of a fitted drive and machine.
struct FitFiles {
    machine_name: String,
    drive: OutputFile,
    machine: OutputFile,
}

impl FitFiles {
    fn open(name: &Path) -> Result<FitFiles, Error> {
        let file = |part| {
            let mut path = name.as_os_str().to_owned();
            path.push(format!("-{part}.toml"));
            OutputFile::open(Path::new(&path))
        };
        let stem = name.file_name().unwrap_or_default().to_string_lossy();
        Ok(FitFiles {
            machine_name: format!("{stem}-machine"),
            drive: file("drive")?,
            machine: file("machine")?,
        })
    }

    fn write(
        self,
        planner: &Planner<'_>,
        base: &MachineProfile,
        fitted: &Fit,
    ) -> Result<(), Error> {
        let from = capture(planner.from);
        let (scenario, _) = planner
            .loaded
            .scenario(planner.from, None, planner.machines)?;
        let (scenario, plan) = planner.changes.apply(scenario, planner.machines)?;
        let disks = planner.loaded.arrivals.disks.iter();
        let times: Vec<_> = disks.flat_map(|disk| fitted.service_times(disk)).collect();
        let drive = drive_file(&scenario, &plan.disks[0].device, &times);
        let mut machine = fitted.machine(base);
        machine.description = format!("{}, fitted to {from}", machine.name);
        machine.name = self.machine_name;
        let drive = self.drive.put(&format!("{DRIVE_ABOUT}{drive}"))?;
        let machine = format!("{MACHINE_ABOUT}{}", profile::to_toml(&machine));
        let machine = self.machine.put(&machine)?;
        drive.keep()?;
        machine.keep()
    }
}

#[derive(Debug)]
struct WhatIfReport<'a> {
    args: &'a WhatIfArgs,
    machine: &'a MachineProfile,
    rules: &'static str,
    limits: &'static str,
    notes: Vec<String>,
    answer: WhatIf,
}

impl WhatIfReport<'_> {
    fn capture(&self) -> String {
        capture(&self.args.captured)
    }

    /// What was compared, and the model's error.
    fn about(&self) -> Vec<String> {
        let all = &self.answer.groups[0];
        let pace = if self.args.open_loop {
            "open"
        } else {
            "closed"
        };
        let mut about = vec![format!(
            "{} I/Os from Q, {pace} loop, {} seeds; device {}, machine {}, kernel {}",
            all.ios, self.args.seeds, self.args.captured.device, self.machine.name, self.rules,
        )];
        for (half, fit) in self.answer.fit.iter().flatten().enumerate() {
            about.push(format!(
                "half {} of 2, fitted for the other one (mean Q2C {:+.1} %): clock {} MHz, {:.0} \
                 us of host delay after a completion, D2C by kind, size{}",
                half + 1,
                fit.error_percent,
                fit.clock_mhz,
                fit.delay_mean_ns as f64 / 1e3,
                if fit.by_depth { " and depth" } else { "" },
            ));
        }
        let percent = |error: f64| format!("{error:+.1} %");
        about.push(match (all.error_mean_percent, all.error_p99_percent) {
            (Some(mean), Some(p99)) => format!(
                "The model's error, {} against the capture: mean Q2C {}, 99th percentile {}, whole \
                 run {}.",
                self.answer.choices[0],
                percent(mean),
                percent(p99),
                self.answer
                    .span
                    .error_percent
                    .map_or("-".to_owned(), percent)
            ),
            _ => "The model's error is not known: the device is another one, or nothing ended in \
                  the capture."
                .to_owned(),
        });
        about.push(
            "A difference is from that choice as modelled. It is printed if it is larger than the \
             model's error and than the spread over seeds; the error of other choices is not known."
                .to_owned(),
        );
        if all
            .error_mean_percent
            .is_some_and(|error| error.abs() > POOR)
        {
            let fit = match self.answer.fit {
                Some(_) => "",
                None => " --fit takes drive and machine from the capture.",
            };
            about.push(format!(
                "The model does not fit this capture: do not trust the rest.{fit}"
            ));
        }
        about
    }

    /// All I/Os, directions, devices, and the processes with the most I/Os.
    fn shown(&self) -> Vec<&Group> {
        let groups = &self.answer.groups;
        let processes = groups
            .iter()
            .filter(|g| g.whose.pid.is_some() && g.whose.direction.is_empty());
        let mut processes: Vec<&Group> = processes.collect();
        processes.sort_by_key(|group| std::cmp::Reverse(group.ios));
        let most: Vec<u32> = processes
            .iter()
            .take(PROCESSES)
            .filter_map(|g| g.whose.pid)
            .collect();
        let shown = |group: &&Group| group.whose.pid.is_none_or(|pid| most.contains(&pid));
        groups.iter().filter(shown).collect()
    }

    /// What is printed: all I/Os, the whole run, then the other groups.
    fn blocks(&self) -> Vec<Vec<Row>> {
        let mut blocks: Vec<Vec<Row>> = self.shown().into_iter().map(|of| self.rows(of)).collect();
        blocks.insert(1, self.whole_run());
        blocks
    }

    /// The rows of the whole run.
    fn whole_run(&self) -> Vec<Row> {
        let span = &self.answer.span;
        let row = |choice: &str, ns: u64, said: String| Row {
            group: "whole run".to_owned(),
            choice: choice.to_owned(),
            mean_ns: ns,
            p99_ns: None,
            mean_said: said,
            p99_said: String::new(),
        };
        let mut rows = vec![row("captured", span.captured_ns, String::new())];
        for (index, choice) in self.answer.choices.iter().enumerate() {
            let said = said(index, span.verdicts[index]);
            rows.push(row(choice, mean(&span.ns[index]), said));
        }
        rows
    }

    /// The rows of a group: the captured one, then each choice.
    fn rows(&self, group: &Group) -> Vec<Row> {
        let mut rows = vec![Row {
            group: name_of(group),
            choice: "captured".to_owned(),
            mean_ns: group.captured.mean_ns,
            p99_ns: Some(group.captured.p99_ns),
            mean_said: String::new(),
            p99_said: String::new(),
        }];
        for (index, q2c) in group.q2c.iter().enumerate() {
            let verdict = group.verdicts[index];
            rows.push(Row {
                group: name_of(group),
                choice: self.answer.choices[index].clone(),
                mean_ns: mean(&q2c.mean_ns),
                p99_ns: Some(mean(&q2c.p99_ns)),
                mean_said: said(index, verdict.map(|v| (v.mean_percent, v.mean_differs))),
                p99_said: said(index, verdict.map(|v| (v.p99_percent, v.p99_differs))),
            });
        }
        rows
    }

    /// Groups that are faster or slower under each choice, a sentence each.
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (index, choice) in self.answer.choices.iter().enumerate().skip(1) {
            let mut said = Vec::new();
            for group in self.shown() {
                let verdict = group.verdicts[index].filter(|verdict| verdict.mean_differs);
                if let Some(verdict) = verdict {
                    let how = if verdict.mean_percent < 0.0 {
                        "faster"
                    } else {
                        "slower"
                    };
                    let percent = verdict.mean_percent.abs();
                    said.push(format!("{} {percent:.1} % {how}", name_of(group)));
                }
            }
            let known = self.answer.groups[0].verdicts[index].is_some();
            if said.is_empty() {
                said.push(if known { "no difference" } else { "not known" }.to_owned());
            }
            let whole_run = said_of(self.answer.span.verdicts[index]);
            said.insert(0, format!("whole run {whole_run}"));
            sentences.push(format!("{choice}: {}", said.join("; ")));
        }
        sentences
    }
}

fn mean(values: &[u64]) -> u64 {
    values.iter().sum::<u64>() / values.len().max(1) as u64
}

/// A difference in percent, if it is one.
fn said_of(verdict: Option<(f64, bool)>) -> String {
    match verdict {
        Some((percent, true)) => format!("{percent:+.1} %"),
        Some((_, false)) => "no difference".to_owned(),
        None => "not known".to_owned(),
    }
}

/// The same in a row; the first choice has none.
fn said(index: usize, verdict: Option<(f64, bool)>) -> String {
    if index == 0 {
        return String::new();
    }
    said_of(verdict)
}

/// `all`, `reads`, a device, or a process and its direction.
fn name_of(group: &Group) -> String {
    let whose = &group.whose;
    let direction = match whose.direction {
        "" => "",
        "trim" => "discards",
        "read" => "reads",
        _ => "writes",
    };
    match (whose.pid, direction) {
        (None, "") if whose.device.is_empty() => "all".to_owned(),
        (None, "") => whose.device.clone(),
        (None, _) => direction.to_owned(),
        (Some(pid), _) => format!("{} ({pid}) {direction}", whose.process)
            .trim()
            .to_owned(),
    }
}

impl Reported for WhatIfReport<'_> {
    fn text(&self) -> String {
        let mut text = format!("{}\n  {}\n\n", self.capture(), self.about().join("\n  "));
        let choices = self.answer.choices.iter().map(String::len);
        let width = choices.max().unwrap_or(0).max(8);
        let (mean, p99) = ("mean us", "99 % us");
        let _ = writeln!(
            text,
            "{:24} {:width$} {mean:>11} {:>14} {p99:>11}",
            "Q2C", "", ""
        );
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        for rows in self.blocks() {
            for (index, row) in rows.into_iter().enumerate() {
                let group = if index == 0 { row.group.as_str() } else { "" };
                let (mean, p99) = (us(row.mean_ns), row.p99_ns.map_or(String::new(), us));
                let line = format!(
                    "{group:24} {:width$} {mean:>11} {:>14} {p99:>11} {:>14}",
                    row.choice, row.mean_said, row.p99_said
                );
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        text.push('\n');
        for sentence in self.sentences() {
            let _ = writeln!(text, "{sentence}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        let _ = writeln!(text, "{}", self.limits);
        text
    }

    fn json(&self) -> String {
        let mut members = Map::new();
        let blksim = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "rules": self.rules,
            "machine": self.machine.name,
            "machine_hash": self.machine.hash,
            "device": self.args.captured.device,
            "set": self.args.captured.tune.set,
            "seeds": self.args.seeds,
            "capture": self.capture(),
            "pace": if self.args.open_loop { "open" } else { "closed" },
        });
        members.insert("blksim".to_owned(), blksim);
        let figures = serde_json::to_value(&self.answer);
        if let Value::Object(figures) = figures.expect("an answer has string keys") {
            members.extend(figures);
        }
        members.insert("sentences".to_owned(), json!(self.sentences()));
        members.insert("notes".to_owned(), json!(self.notes));
        members.insert("limits".to_owned(), json!(self.limits));
        format!("{:#}\n", Value::Object(members))
    }

    fn csv(&self) -> String {
        let header =
            "group,choice,ios,mean_ns,p99_ns,mean_percent,mean_differs,p99_percent,p99_differs";
        let mut rows: Vec<Vec<String>> = vec![header.split(',').map(str::to_owned).collect()];
        for group in &self.answer.groups {
            for (index, row) in self.rows(group).into_iter().enumerate() {
                let verdict = index
                    .checked_sub(1)
                    .and_then(|choice| group.verdicts[choice]);
                let figure =
                    |of: &dyn Fn(&Verdict) -> String| verdict.as_ref().map_or(String::new(), of);
                rows.push(vec![
                    row.group,
                    row.choice,
                    group.ios.to_string(),
                    row.mean_ns.to_string(),
                    row.p99_ns.unwrap_or_default().to_string(),
                    figure(&|v| v.mean_percent.to_string()),
                    figure(&|v| v.mean_differs.to_string()),
                    figure(&|v| v.p99_percent.to_string()),
                    figure(&|v| v.p99_differs.to_string()),
                ]);
            }
        }
        scenario::table::csv_of(&rows)
    }

    fn html(&self) -> String {
        let rows = self.blocks();
        let name = format!("What if: {}", self.capture());
        html::what_if(
            &name,
            &self.about(),
            &rows,
            &self.sentences(),
            &self.notes,
            &self.text(),
        )
    }
}
