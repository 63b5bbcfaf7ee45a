//! Do multipath targets choose the paths that a kernel chose?
//!
//! Each target is judged by itself, from the binary traces of the stacked device and of its paths:
//! a request is mapped between its D there and the A of its clone on a path; without an A its path
//! had no tag. A path with a scheduler gives the clone its tag between A and D. The end of the
//! clone reaches the selector between the two C of the request above, or before its R. Related:
//! grouping of records (`reading.rs`; of a bio-based target, whose bios are mapped where they are
//! submitted, `bios.rs`), the order of events (`order.rs`), changes without a record (`silent.rs`),
//! other selectors (`rivals.rs`), tags (`tags.rs`, `held.rs`), dispatches (`hypothesis.rs`).
//! Kernel: map_request(), dm_done() in drivers/md/dm-rq.c (6.1.192).

mod bios;
mod held;
mod order;
mod reading;
mod rivals;
mod silent;
mod tags;

use blkmq::dm::multipath::Multipath;
use blkmq::dm::table::{QueueMode, Table};
use blkmq::dm::{Incoming, Mapped, PathId};
use blkmq::request::{CpuId, Status};
use blkmq::time::{Duration, SimTime};
use trace::blktrace::Device;
use trace::capture::CaptureDir;
use trace::meta::DmTable;

use order::{Apart, Did, Judged, Wrong};
use reading::{Reading, traced};
use tags::{Other, Tags};

use super::judge::Judge;
use super::setup::Setup;
use super::verdict::{ChoiceVerdict, Divergence, TargetVerdict};
use super::{Error, Options, name_of};

/// In a simulated run CPUs are at most this far ahead of each other: a change of a word may be
/// visible to others that much before or after its record (docs/decisions/0002).
const RUN_AHEAD: Duration = Duration(500);

/// Something that happened to the target between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Atom {
    /// The record before it.
    pub(super) after: SimTime,
    /// The record after it.
    pub(super) before: SimTime,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A path was chosen; none: the request came back without a clone, or was ended.
    Map { io: Incoming, path: Option<PathId> },
    /// The selector counts the clone: the result of the atom before.
    Start { mapped: Mapped },
    /// A clone of a path with a scheduler has a driver tag.
    Tag { path: PathId, cpu: CpuId },
    /// A clone was given up, for want of a tag or for another reason.
    Undo {
        mapped: Mapped,
        started: SimTime,
        over: SimTime,
        cpu: CpuId,
        no_tag: bool,
    },
    /// A clone ended, and its request was tried again or not.
    End {
        mapped: Mapped,
        started: SimTime,
        over: SimTime,
        cpu: CpuId,
        status: Status,
        again: bool,
    },
}

impl What {
    /// The end of a clone, at another time and place.
    fn ended(mut self, (from, to, on): (SimTime, SimTime, CpuId)) -> What {
        if let What::Undo {
            started, over, cpu, ..
        }
        | What::End {
            started, over, cpu, ..
        } = &mut self
        {
            (*started, *over, *cpu) = (from, to, on);
        }
        self
    }

    /// True if its result depends on earlier atoms.
    fn decides(self) -> bool {
        match self {
            What::Map { .. } | What::Tag { .. } => true,
            What::Undo { no_tag, .. } => no_tag,
            What::End { status, .. } => status != Status::Ok,
            What::Start { .. } => false,
        }
    }
}

/// Judges all choices of the targets of a capture, if there are any (`stacked`, or bio-based ones),
/// and the results of their clones. The device of a single table is the first one read; with
/// several, and for a bio-based one, it is the device whose requests or bios come to its paths.
/// Bio-based devices have no dispatches.
pub(super) fn judge(
    dir: &CaptureDir,
    (setups, options): (&[Setup], &Options),
    stacked: bool,
    judge: &mut Judge,
) -> Result<Vec<String>, Error> {
    let mut bio_based = Vec::new();
    let Some(first) = setups.first() else {
        return Ok(bio_based);
    };
    let named = match options.trace_device.is_some() {
        true => &setups[..1],
        false => setups,
    };
    let traced = traced(dir)?;
    let mut targets = Vec::new();
    let stacked = |line: &&DmTable| stacked || line.text.contains(" queue_mode bio ");
    for line in dir.meta.dm_tables.iter().filter(stacked) {
        if !line.is_multipath() {
            let line = line.line;
            judge.note(&format!(
                "meta.txt:{line}: the table is of no multipath target"
            ));
            continue;
        }
        let cpus = usize::from(dir.meta.cpus);
        let table = Table::parse(&line.text, &first.rules.device_mapper, cpus);
        let table = table.map_err(|what| unfit(dir, line, &what))?;
        let bios = table.queue_mode == QueueMode::Bio;
        let reading = match dir.meta.dm_tables.len() {
            1 if !bios => Reading::new(&traced, &table, Some(&first.device)),
            _ => Reading::new(&traced, &table, None).with_device(dir, &traced)?,
        };
        if let Some((name, _)) = reading.twice() {
            return Err(unfit(dir, line, &format!("path {name} is there twice")));
        }
        let reading = read(dir, options, (first, line, bios), reading)?;
        if bios && !reading.above.0.is_empty() {
            bio_based.push(reading.above.0.clone());
        }
        targets.push((table, reading));
    }
    for index in 0..targets.len() {
        share(dir, &mut targets, index);
        let (table, reading) = &targets[index];
        let above = named.iter().find(|setup| setup.device == reading.above.0);
        // Another device than the target's chooses nothing.
        let Some(above) = above.filter(|_| reading.has_requests()) else {
            continue;
        };
        if table.queue_mode == QueueMode::Bio {
            let device = &above.device;
            judge.note(&format!(
                "{device}: bio-based, so that no request is there to dispatch"
            ));
        }
        match reading.unjudged(dir)? {
            Some(why) => judge.target_unjudged(&above.device, &why),
            None => judge_target(dir, (above, table), reading, judge),
        }
    }
    Ok(bio_based)
}

/// An error about a table.
fn unfit(dir: &CaptureDir, table: &DmTable, what: &str) -> Error {
    Error::Unfit {
        capture: name_of(dir),
        what: format!("meta.txt:{}: dm: {what}", table.line),
    }
}

/// Reads the events of a target.
fn read(
    dir: &CaptureDir,
    options: &Options,
    (above, line, bios): (&Setup, &DmTable, bool),
    mut reading: Reading,
) -> Result<Reading, Error> {
    let cpus = usize::from(dir.meta.cpus);
    if !bios {
        reading.tags = tags_of(dir, options, (above, &reading.paths))?;
    }
    if dir.meta.times_of_labels && cpus > 1 {
        reading.slack = RUN_AHEAD;
    }
    let mut events = reading.events(dir)?;
    events.sort_by_key(|event| event.time);
    for event in &events {
        if event.cpu as usize >= cpus {
            let what = format!("{}: a record of CPU {} of {cpus}", line.text, event.cpu);
            return Err(unfit(dir, line, &what));
        }
        match bios {
            true => reading.takes_bio(event),
            false => reading.takes(event),
        }
    }
    reading.genesis = events.first().map_or(SimTime::ZERO, |event| event.time);
    Ok(reading)
}

/// A target's tags are those of others, too.
fn share(dir: &CaptureDir, targets: &mut [(Table, Reading)], index: usize) {
    let names = |reading: &Reading| reading.paths.iter().map(|(name, _)| name.clone()).collect();
    let all = targets.iter().enumerate();
    let others = all.filter(|(other, _)| *other != index);
    let others: Vec<Other> = others
        .map(|(_, (_, reading))| Other {
            tags: reading.tags.clone(),
            spans: held::spans(&reading.atoms),
        })
        .collect();
    let paths: Vec<Vec<String>> = targets.iter().map(|(_, reading)| names(reading)).collect();
    let paths: Vec<&String> = paths.iter().flatten().collect();
    let tags = &mut targets[index].1.tags;
    tags.share(&others);
    tags.must_be_known(dir, &paths);
}

fn judge_target(
    dir: &CaptureDir,
    (above, table): (&Setup, &Table),
    reading: &Reading,
    judge: &mut Judge,
) {
    let (cpus, rules) = (usize::from(dir.meta.cpus), above.rules.device_mapper);
    let target = Multipath::new(table, rules, &vec![0; cpus], 0);
    let explanation = order::explain(target, Apart::of(table), &reading.tags, &reading.atoms);
    let verdict = |judged: &Judged| {
        let first = judged.wrong.first();
        let first = first.map(|wrong| divergence(wrong, &above.device, (table, reading.genesis)));
        ChoiceVerdict {
            total: judged.total,
            predicted: judged.total - judged.wrong.len() as u64,
            open: judged.open,
            rivals: None,
            first_divergence: first,
        }
    };
    let what = (&reading.tags, &reading.atoms[..]);
    let rivals = rivals::judge((table, rules), cpus, what, &explanation.choices);
    let choices = ChoiceVerdict {
        rivals: Some(rivals),
        ..verdict(&explanation.choices)
    };
    let mut clones = verdict(&explanation.clones);
    clones.total += reading.stray;
    judge.target(TargetVerdict {
        device: above.device.clone(),
        choices,
        clones,
    });
    if reading.stray > 0 {
        judge.note("a path has requests that are no clones of what is above");
    }
    if let Some(why) = reading.tags.unknown() {
        let device = &above.device;
        judge.note(&format!(
            "{device}: whether a tag was free is not judged: {why}"
        ));
    }
    judge.takes(explanation.silent.notes(&above.device));
}

/// Tags of the paths. None if the attributes of a path cannot be read.
fn tags_of(
    dir: &CaptureDir,
    options: &Options,
    (above, paths): (&Setup, &[(String, Device)]),
) -> Result<Tags, Error> {
    let mut setups = Vec::new();
    for (name, _) in paths {
        let Some(traced) = dir.devices.iter().find(|device| device.name == *name) else {
            return Ok(Tags::default());
        };
        let setup = Setup::read(dir, &traced.name, options, above.hz)?;
        setups.push((name.clone(), setup));
    }
    Ok(Tags::of(dir, &setups))
}

fn divergence(wrong: &Wrong, above: &str, (table, genesis): (&Table, SimTime)) -> Divergence {
    let device = |path: PathId| match table.paths().nth(path.index()) {
        Some(path) => path.device.clone(),
        None => path.0.to_string(),
    };
    let text = |did: Did| match did {
        Did::Goes(path) => device(path),
        Did::Tag(path) => format!("a clone on {} has a tag", device(path)),
        Did::NoTag(path) => format!("no tag on {}, the request comes back", device(path)),
        Did::Back => "it comes back".to_owned(),
        Did::Over => "it ends".to_owned(),
    };
    Divergence {
        index: wrong.index,
        device: above.to_owned(),
        time: SimTime(wrong.time.since(genesis).0),
        kernel: text(wrong.kernel),
        model: text(wrong.model),
        text: format!(
            "status after the model's choice: {}",
            wrong.target.status(table)
        ),
    }
}

#[cfg(test)]
mod tests;
