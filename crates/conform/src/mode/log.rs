//! Mode log: every line that the scheduler wrote to blktrace, and every dispatch call, in order.
//!
//! The lines give the time of a call's decision, of a task's exit, and the clock inside a critical
//! section: all other data is of the records. A call is known by its line; its answer is in its
//! probe, where the capture has one, or one of the D that follow (`stream/unprobed.rs`). Read next:
//! `lines.rs`, `hypothesis/log.rs`.

mod sections;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use blkmq::elevator::LogMarks;
use blkmq::request::{Op, Sector};
use blkmq::time::Jiffies;
use trace::capture::CaptureDir;

use crate::event::{self, Event, Events, Kind};
use crate::judge::Judge;
use crate::lines::{Log, Unlocked};
use crate::script::Script;
use crate::setup::Setup;
use crate::stream::{Stream, UNKNOWN};
use crate::ticks::{Probe, Ticks};
use crate::{Error, name_of, priority};

/// A probe may come this long before the line of its call: its clock counts microseconds.
const PROBE_BEFORE: u64 = 1_000;

/// Answers of dispatch calls, and ticks.
type Probed = (VecDeque<Event>, Vec<Probe>);

/// In place of its number, of a line written without the lock.
const UNLOCKED: u32 = u32::MAX;

pub(super) fn of_device(
    dir: &CaptureDir,
    setup: &Setup,
    script: &Script,
    judge: &mut Judge,
) -> Result<Events, Error> {
    let device = &setup.device;
    let unfit = |what| Error::Unfit {
        capture: name_of(dir),
        what,
    };
    let marks = setup.log_marks().ok_or_else(|| {
        let name = setup.scheduler_name();
        unfit(format!(
            "scheduler {name} writes no log; compare with another mode"
        ))
    })?;
    let mut trace = event::of_blktrace_with_log(dir, device)?;
    if trace.lines.is_empty() {
        return Err(unfit(format!(
            "no message in the blktrace files of {device}; compare with another mode"
        )));
    }
    priority::fill(dir, device, script, &mut trace)?;
    let (answers, ticks) = probed(dir, setup)?;
    trace.ticks = ticks;
    if answers.is_empty() {
        judge.note(&format!(
            "{device}: no probe on dispatch calls: whether each gave a request is read from its \
             lines, and which one from the D that follow"
        ));
    }
    sections::add_finishes(&mut trace, marks);
    add_calls(&mut trace, marks, answers);
    sections::add_exits(&mut trace, marks);
    Ok(trace)
}

/// The logs of the devices, and the ticks as these show them.
pub(super) fn add(
    stream: &mut Stream,
    setups: &mut [Setup],
    (texts, read): (Vec<Vec<String>>, &[Vec<Probe>]),
) {
    for setup in setups.iter_mut() {
        setup.listens = true;
    }
    add_logs(stream, texts, setups);
    if !setups[0].times_of_labels {
        let marks = setups.iter().filter_map(Setup::log_marks);
        let logs = stream.logs.iter().zip(marks);
        stream.ticks = Some(Rc::new(Ticks::of_logs(logs, read, setups[0].hz)));
    }
}

/// The log of each device, with where its lines are among the events. Those written without the
/// lock stand apart.
fn add_logs(stream: &mut Stream, mut texts: Vec<Vec<String>>, setups: &[Setup]) {
    stream.logs = texts.iter().map(|_| Log::default()).collect();
    let mut asked = vec![0; stream.tasks];
    // By device and task: the first G since its last line about that.
    let mut allocates: BTreeMap<(usize, usize), Option<usize>> = BTreeMap::new();
    for (index, event) in stream.events.iter_mut().enumerate() {
        let (queue, task) = (stream.queue[index].index(), stream.task[index]);
        let log = &mut stream.logs[queue];
        match &mut event.kind {
            Kind::Queue => asked[task] = index,
            // The depth of a flush is not limited: it has no such line.
            Kind::Get if event.op != Op::Flush && !event.flags.preflush && !event.flags.fua => {
                if let Some(first) = allocates.get_mut(&(queue, task)) {
                    let first = *first.get_or_insert(index);
                    *stream.batches.entry(first).or_default() += 1;
                }
            }
            Kind::Line(number) => {
                let line = core::mem::take(&mut texts[queue][*number as usize]);
                let prefix = setups[queue].unlocked_lines();
                if prefix.is_some_and(|prefix| line.starts_with(prefix)) {
                    *number = UNLOCKED;
                    allocates.insert((queue, task), None);
                    let asked = asked[task];
                    let unlocked = Unlocked {
                        asked,
                        event: index,
                        line,
                    };
                    log.unlocked.entry(task).or_default().push(unlocked);
                    continue;
                }
                *number = log.lines.len() as u32;
                log.lines.push(line);
                log.events.push(index);
                log.times.push(event.time);
            }
            _ => {}
        }
    }
    let events = &stream.events;
    let section = |(from, to): (usize, usize)| {
        let (line, next) = (&events[from], &events[to]);
        let mut between = events[from + 1..to].iter().filter(|e| e.cpu == line.cpu);
        // Those are written under the lock.
        let inside = |event: &&Event| match event.kind {
            Kind::Insert | Kind::RequestMerge | Kind::BioMerge { .. } => true,
            Kind::Line(number) => number != UNLOCKED,
            _ => false,
        };
        (line.cpu, line.pid) == (next.cpu, next.pid) && between.all(|event| inside(&event))
    };
    for log in &mut stream.logs {
        let pairs = log.events.windows(2).map(|pair| (pair[0], pair[1]));
        log.goes_on = pairs.map(section).chain([false]).collect();
    }
}

/// Records of a device with the exits in its log, if it has one.
pub(super) fn with_exits(dir: &CaptureDir, setup: &Setup) -> Result<Option<Events>, Error> {
    let Some(marks) = setup.log_marks() else {
        return Ok(None);
    };
    let mut trace = event::of_blktrace_with_log(dir, &setup.device)?;
    if trace.lines.is_empty() {
        return Ok(None);
    }
    sections::add_exits(&mut trace, marks);
    trace
        .list
        .retain(|event| !matches!(event.kind, Kind::Line(_)));
    Ok(Some(trace))
}

/// The scheduler of each device writes a log, and the capture has it.
pub(crate) fn is_logged(dir: &CaptureDir, setups: &[Setup]) -> Result<bool, Error> {
    for setup in setups {
        if setup.log_marks().is_none() || !event::has_log(dir, &setup.device)? {
            return Ok(false);
        }
    }
    Ok(!setups.is_empty())
}

/// Results of the probes at the return of dispatch calls, and the tick that each probe read.
fn probed(dir: &CaptureDir, setup: &Setup) -> Result<Probed, Error> {
    if !dir.files.contains_key("ftrace.txt") {
        return Ok(Probed::default());
    }
    let number = event::number_of(dir, &setup.device)?;
    let mut traces = event::of_ftrace(dir)?;
    let all = traces.devices.remove(&number).unwrap_or_default().list;
    let read = |e: &Event| {
        let (tick, locked) = match e.kind {
            Kind::Arrive { at, .. } => (at, true),
            Kind::Answer { at, .. } => (at, false),
            _ => return None,
        };
        let time = e.time;
        Some(Probe { time, tick, locked })
    };
    let ticks = all.iter().filter_map(read).collect();
    let answer = |e: &Event| matches!(e.kind, Kind::Answer { .. });
    Ok((all.into_iter().filter(answer).collect(), ticks))
}

/// Each call comes before the line that it begins with, entry and answer: there it decides.
pub(crate) fn add_calls(trace: &mut Events, marks: &LogMarks, answers: VecDeque<Event>) {
    let lines = &trace.lines;
    let begins = |event: &Event| match event.kind {
        Kind::Line(line) => lines[line as usize].starts_with(marks.dispatch),
        _ => false,
    };
    let calls: Vec<usize> = (0..trace.list.len())
        .filter(|&at| begins(&trace.list[at]))
        .collect();
    let joined = join(&trace.list, &calls, answers);
    let mut all = Vec::with_capacity(trace.list.len() + 2 * calls.len());
    let mut numbered = calls.iter().copied().zip(joined).peekable();
    for (at, event) in trace.list.iter().enumerate() {
        if let Some((_, answer)) = numbered.next_if(|&(call, _)| call == at) {
            let given = match answer {
                Some(answer) => {
                    let Kind::Answer { rq, .. } = answer.kind else {
                        unreachable!("only answers are joined");
                    };
                    rq.map(|address| (address, answer.sector))
                }
                None => gives(trace, marks, at).then_some((UNKNOWN, Sector(0))),
            };
            all.extend(call(event, given));
        }
        all.push(event.clone());
    }
    trace.list = all;
}

/// Entry and answer of a call.
fn call(line: &Event, given: Option<(u64, Sector)>) -> [Event; 2] {
    let at = Jiffies(0);
    let mut asked = line.clone();
    asked.kind = Kind::Ask { at, hctx: None };
    let mut answer = line.clone();
    answer.kind = Kind::Answer {
        rq: given.map(|(address, _)| address),
        at,
    };
    answer.sector = given.map_or(Sector(0), |(_, sector)| sector);
    [asked, answer]
}

/// The answer of each call. Where a CPU has as many answers as calls they come in one order, else
/// an answer is that of the latest call before it: probes may be missed.
fn join(list: &[Event], calls: &[usize], answers: VecDeque<Event>) -> Vec<Option<Event>> {
    let mut joined = vec![None; calls.len()];
    let mut cpus: BTreeMap<u16, (Vec<usize>, Vec<Event>)> = BTreeMap::new();
    for (number, &call) in calls.iter().enumerate() {
        cpus.entry(list[call].cpu).or_default().0.push(number);
    }
    for answer in answers {
        cpus.entry(answer.cpu).or_default().1.push(answer);
    }
    for (numbers, answers) in cpus.into_values() {
        let all = numbers.len() == answers.len();
        for (order, answer) in answers.into_iter().enumerate() {
            let before =
                |&number: &usize| list[calls[number]].time.0 <= answer.time.0 + PROBE_BEFORE;
            let until = if all {
                order + 1
            } else {
                numbers.partition_point(before)
            };
            if let Some(&number) = numbers[..until].last()
                && joined[number].is_none()
            {
                joined[number] = Some(answer);
            }
        }
    }
    joined
}

/// By its lines the call that begins here gave a request.
fn gives(trace: &Events, marks: &LogMarks, call: usize) -> bool {
    let cpu = trace.list[call].cpu;
    let after = trace.list[call + 1..].iter().filter(|e| e.cpu == cpu);
    let lines = after.map_while(|event| match event.kind {
        Kind::Line(line) => Some(trace.lines[line as usize].as_str()),
        _ => None,
    });
    let mut own = lines.take_while(|line| !line.starts_with(marks.dispatch));
    own.any(|line| line.contains(marks.gives))
}

#[cfg(test)]
mod tests;
