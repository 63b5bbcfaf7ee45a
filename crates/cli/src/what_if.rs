//! `blksim what-if`: a capture under other schedulers, and who would have been served better.

use std::fmt::Write as _;

use blkmq::elevator::SchedulerKind;
use scenario::profile;
use scenario::replay::{CAPTURED, fit};
use serde_json::{Map, Value, json};
use sim::profile::MachineProfile;
use sim::replay::{Pace, Point};
use study::fleet::Fleet;
use study::what_if::{self, Answer, Choice, Fit, Group, Question};

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
    let fit_machine = args
        .fit_machine
        .as_deref()
        .map(OutputFile::open)
        .transpose()?;
    let loaded = &planner.loaded;
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
    let kinds = choices
        .iter()
        .map(|(_, _, choice)| choice.plan.disks[0].queue.scheduler.kind());
    notes.extend(waiting_processes(loaded, &own, &kinds.collect::<Vec<_>>()));
    notes.sort_unstable();
    notes.dedup();
    notes.extend(loaded.comparison.notes.iter().cloned());
    own.name.push_str(" (captured)");
    let machine = machines.get(&own.plan.machine.profile);
    let devices = loaded.devices();
    let question = Question {
        arrivals: &loaded.arrivals,
        profile: machine,
        pace,
        seeds: args.seeds,
        own_device: from.device == CAPTURED,
        devices: &devices,
        of_disk: loaded.of_disk,
    };
    let interrupt = Interrupt::install()?;
    let answer = with_fleet(&args.jobs, &interrupt, |fleet| {
        answered(args, &planner, &question, (&own, choices), fleet)
    })?;
    let report = WhatIfReport {
        args,
        machine,
        rules: own.plan.disks[0].queue.rules.name,
        limits: loaded.comparison.limits,
        notes,
        answer,
    };
    outputs.write(&report, || match (fit_machine, &report.answer.fit) {
        (Some(file), Some([fitted, _])) => file.put(&report.machine_file(fitted))?.keep(),
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
    question: &Question<'_>,
    (own, choices): (&Choice, Vec<Wanted<'_>>),
    fleet: &Fleet,
) -> Result<Answer, study::error::Error> {
    let fitted = match args.fit {
        true => Some(what_if::fit(question, own, fleet)?),
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
        let found = what_if::search(question, (own, &base), with, fitted.as_ref(), fleet);
        all.extend(found?);
    }
    what_if::answer(question, &all, fitted, fleet)
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
        Ok((Choice { name, plan }, notes))
    }
}

/// A note about I/Os that wait in their process, where one choice has a scheduler and another none.
fn waiting_processes(loaded: &Loaded, own: &Choice, choices: &[SchedulerKind]) -> Option<String> {
    let disk = &own.plan.disks[0];
    let full = disk.capacity.driver_tags / u32::from(disk.capacity.hctxs.max(1));
    if loaded.arrivals.disks[0].depth < full {
        return None;
    }
    let none = |kind: &SchedulerKind| *kind == SchedulerKind::None;
    let note = match none(&disk.queue.scheduler.kind()) {
        true if !choices.iter().all(none) => {
            "without a scheduler a process that finds no tag waits before its next I/O, so the \
             capture does not show how many it would have in flight with one: latencies under \
             schedulers are too low here, by the time that it waits"
        }
        false if choices.iter().any(none) => {
            "under none a process that finds no tag waits before its next I/O, so fewer are in \
             flight, each for a shorter time: compare the whole run as well"
        }
        _ => return None,
    };
    Some(note.to_owned())
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

#[derive(Debug)]
struct WhatIfReport<'a> {
    args: &'a WhatIfArgs,
    machine: &'a MachineProfile,
    rules: &'static str,
    limits: &'static str,
    notes: Vec<String>,
    answer: Answer,
}

impl WhatIfReport<'_> {
    fn capture(&self) -> String {
        let paths = self.args.captured.capture.iter();
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        paths.join(" ")
    }

    fn machine_file(&self, fitted: &Fit) -> String {
        let mut machine = fitted.profile(self.machine);
        machine.description = format!("{}, fitted to {}", machine.name, self.capture());
        machine.name.push_str("-fitted");
        profile::to_toml(&machine)
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
        for fit in self.answer.fit.iter().flatten() {
            about.push(format!(
                "fitted to every second I/O (mean Q2C {:+.1} %), the others are judged: clock {} \
                 MHz; {:.0} us more from a completion to a request that waited, {:.0} % of which \
                 keep the CPU; D2C by kind, size{}",
                fit.error_percent,
                fit.clock_mhz,
                fit.delay_mean_ns as f64 / 1e3,
                100.0 * fit.share,
                if fit.by_depth { " and depth" } else { "" },
            ));
        }
        about.push(format!(
            "The model's error, {} against the capture: mean Q2C {:+.1} %, 99th percentile \
             {:+.1} %.",
            self.answer.choices[0], all.error_mean_percent, all.error_p99_percent
        ));
        about.push(
            "Differences are from that choice as modelled; what is not above the model's error for \
             these I/Os and the spread over seeds is no difference."
                .to_owned(),
        );
        about
    }

    /// All I/Os, directions, devices, and the processes with the most I/Os.
    fn shown(&self) -> Vec<&Group> {
        let groups = &self.answer.groups;
        let processes = groups
            .iter()
            .filter(|g| g.who.pid != 0 && g.who.direction.is_empty());
        let mut processes: Vec<&Group> = processes.collect();
        processes.sort_by_key(|group| std::cmp::Reverse(group.ios));
        let most: Vec<u32> = processes
            .iter()
            .take(PROCESSES)
            .map(|g| g.who.pid)
            .collect();
        let shown = |group: &&Group| group.who.pid == 0 || most.contains(&group.who.pid);
        groups.iter().filter(shown).collect()
    }

    /// The rows of a group: the captured one, then each choice.
    fn rows(&self, group: &Group) -> Vec<Row> {
        let mut rows = vec![Row {
            who: name_of(group),
            choice: "captured".to_owned(),
            mean_ns: group.captured.mean_ns,
            p99_ns: group.captured.p99_ns,
            mean_said: String::new(),
            p99_said: String::new(),
        }];
        let mean = |values: &[u64]| values.iter().sum::<u64>() / values.len().max(1) as u64;
        for (index, served) in group.served.iter().enumerate() {
            let said = |percent: f64, differs: bool| match differs {
                true => format!("{percent:+.1} %"),
                false => "no difference".to_owned(),
            };
            let verdict = group.verdicts[index];
            rows.push(Row {
                who: name_of(group),
                choice: self.answer.choices[index].clone(),
                mean_ns: mean(&served.mean_ns),
                p99_ns: mean(&served.p99_ns),
                mean_said: verdict.map_or(String::new(), |v| said(v.mean_percent, v.mean_differs)),
                p99_said: verdict.map_or(String::new(), |v| said(v.p99_percent, v.p99_differs)),
            });
        }
        rows
    }

    /// Who is served better and worse under each choice, a sentence each.
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (index, choice) in self.answer.choices.iter().enumerate().skip(1) {
            let mut said = Vec::new();
            for group in self.shown() {
                let verdict = group.verdicts[index].filter(|verdict| verdict.mean_differs);
                if let Some(verdict) = verdict {
                    let how = if verdict.mean_percent < 0.0 {
                        "sooner"
                    } else {
                        "later"
                    };
                    let percent = verdict.mean_percent.abs();
                    said.push(format!("{} {percent:.1} % {how}", name_of(group)));
                }
            }
            if said.is_empty() {
                said.push("no difference".to_owned());
            }
            let spans = &self.answer.span_ns;
            let longer = 100.0 * (spans[index] as f64 / spans[0].max(1) as f64 - 1.0);
            said.push(format!("whole run {longer:+.1} %"));
            sentences.push(format!("{choice}: {}", said.join("; ")));
        }
        sentences
    }
}

/// `all`, `reads`, a device, or a process and its direction.
fn name_of(group: &Group) -> String {
    let who = &group.who;
    let direction = match who.direction {
        "" => "",
        "trim" => "discards",
        "read" => "reads",
        _ => "writes",
    };
    match (who.pid, direction) {
        (0, "") if who.device.is_empty() => "all".to_owned(),
        (0, "") => who.device.clone(),
        (0, _) => direction.to_owned(),
        (pid, _) => format!("{} ({pid}) {direction}", who.process)
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
        for group in self.shown() {
            for (index, row) in self.rows(group).into_iter().enumerate() {
                let who = if index == 0 { row.who.as_str() } else { "" };
                let (mean, p99) = (us(row.mean_ns), us(row.p99_ns));
                let line = format!(
                    "{who:24} {:width$} {mean:>11} {:>14} {p99:>11} {:>14}",
                    row.choice, row.mean_said, row.p99_said
                );
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
        let spans = self.answer.choices.iter().zip(&self.answer.span_ns);
        let spans = spans.map(|(choice, span)| format!("{choice} {}", ms(*span)));
        let spans: Vec<String> = spans.collect();
        let captured = ms(self.answer.captured_span_ns);
        let _ = writeln!(
            text,
            "whole run: captured {captured}, {}\n",
            spans.join(", ")
        );
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
        let header = "who,choice,ios,mean_ns,p99_ns,mean_difference,p99_difference";
        let mut rows: Vec<Vec<String>> = vec![header.split(',').map(str::to_owned).collect()];
        for group in &self.answer.groups {
            rows.extend(self.rows(group).into_iter().map(|row| {
                let (mean, p99) = (row.mean_ns.to_string(), row.p99_ns.to_string());
                let ios = group.ios.to_string();
                vec![
                    row.who,
                    row.choice,
                    ios,
                    mean,
                    p99,
                    row.mean_said,
                    row.p99_said,
                ]
            }));
        }
        scenario::table::csv_of(&rows)
    }

    fn html(&self) -> String {
        let shown = self.shown().into_iter().map(|group| self.rows(group));
        let rows: Vec<Vec<Row>> = shown.collect();
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
