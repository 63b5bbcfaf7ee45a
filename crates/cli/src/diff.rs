//! `blksim diff`: two reports of runs, or of fio and of a run, figure by figure.
//!
//! Read next: `diff/side.rs` for what is read of a report, `diff/spread.rs` for deviations. Not
//! here: running anything.

mod side;
mod spread;
mod table;

use crate::amount::Unit;
use crate::args::DiffArgs;
use crate::error::Error;
use crate::outputs::Outputs;
use crate::{DIFFERENT, OK};
use side::{Figure, Place, Run, Setting, Side};
use spread::{Deviations, Spread};

/// Compares all figures that both reports have.
pub(crate) fn diff(args: &DiffArgs) -> Result<u8, Error> {
    let outputs = Outputs::open(&args.reports)?;
    let sides = [Side::read(&args.a)?, Side::read(&args.b)?];
    let limits = Limits {
        percent: args.threshold,
        deviations: args.deviations,
    };
    let difference = Difference::new(&sides, limits);
    outputs.write(&difference, || Ok(()))?;
    Ok(match difference.is_different() {
        true => DIFFERENT,
        false => OK,
    })
}

/// A figure differs beyond both of them.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Limits {
    /// Percent of A's value; of shares of time, points.
    percent: f64,
    /// Where deviations of runs are known.
    deviations: f64,
}

/// A figure on both sides.
#[derive(Clone, PartialEq, Debug)]
struct Pair {
    /// What the run has different from others of its file.
    run: String,
    place: Place,
    name: &'static str,
    title: &'static str,
    kind: side::Kind,
    values: [f64; 2],
    /// In percent of A, or points; nothing if A has zero.
    difference: Option<f64>,
    deviations: Option<Deviations>,
    differs: bool,
}

/// All that differs, and by how much.
#[derive(Clone, PartialEq, Debug)]
struct Difference {
    sides: [String; 2],
    limits: Limits,
    /// Name, and texts of both sides, of what is not equal.
    settings: Vec<(String, [String; 2])>,
    pairs: Vec<Pair>,
    /// Jobs and directions, or runs, that one side has.
    alone: [Vec<String>; 2],
}

impl Difference {
    fn new([a, b]: &[Side; 2], limits: Limits) -> Difference {
        let mut difference = Difference {
            sides: [a.describe(), b.describe()],
            limits,
            settings: Vec::new(),
            pairs: Vec::new(),
            alone: [Vec::new(), Vec::new()],
        };
        match (&a.runs[..], &b.runs[..]) {
            ([one], [other]) => difference.add("", one, other),
            _ => {
                for one in &a.runs {
                    match b.runs.iter().find(|other| other.name == one.name) {
                        Some(other) => difference.add(&one.name, one, other),
                        None => difference.alone[0].push(one.called()),
                    }
                }
                let only = |of: &&Run| !a.runs.iter().any(|one| one.name == of.name);
                let only = b.runs.iter().filter(only).map(Run::called);
                difference.alone[1].extend(only);
            }
        }
        difference
    }

    /// Runs that belong to each other.
    fn add(&mut self, name: &str, a: &Run, b: &Run) {
        self.set(a, b);
        // Each side has one job, of whatever name.
        let place = |of_a: &Place| match (&a.jobs[..], &b.jobs[..]) {
            ([_], [job]) if !of_a.job.is_empty() => Place {
                job: job.clone(),
                what: of_a.what.clone(),
            },
            _ => of_a.clone(),
        };
        for (of_a, figures) in &a.places {
            if let Some((of_b, others)) = b.places.iter().find(|(of_b, _)| *of_b == place(of_a)) {
                self.pair(name, [of_a, of_b], figures, others);
            }
        }
        let has = |run: &Run, place: &Place| run.places.iter().any(|(of, _)| of == place);
        let only_a = a.of_jobs().filter(|of_a| !has(b, &place(of_a)));
        self.alone[0].extend(only_a.map(|place| joined(name, &place.text())));
        let new: Vec<Place> = a.of_jobs().map(place).collect();
        let only_b = b.of_jobs().filter(|of_b| !new.contains(of_b));
        self.alone[1].extend(only_b.map(|place| joined(name, &place.text())));
    }

    /// Settings that are not equal; of jobs also options that one side has.
    fn set(&mut self, a: &Run, b: &Run) {
        // Each side has one job, of whatever name.
        let one = a.jobs.len() == 1 && b.jobs.len() == 1;
        let same = |of: &Setting, other: &Setting| {
            let job = of.job == other.job || (one && !of.job.is_empty() && !other.job.is_empty());
            job && of.name == other.name
        };
        let absent = || "-".to_owned();
        let mut add = |of: &Setting, values: [String; 2]| {
            let setting = (Place::new(&of.job, of.name.as_str()).text(), values);
            if !self.settings.contains(&setting) {
                self.settings.push(setting);
            }
        };
        let could_have = |run: &Run, of: &Setting| {
            let lists = !of.is_switch || run.lists_switches;
            !of.job.is_empty() && lists && (one || run.jobs.contains(&of.job))
        };
        for of_a in &a.settings {
            match b.settings.iter().find(|of_b| same(of_a, of_b)) {
                Some(of_b) if of_b.value == of_a.value => {}
                Some(of_b) => add(of_a, [of_a.value.clone(), of_b.value.clone()]),
                None if could_have(b, of_a) => add(of_a, [of_a.value.clone(), absent()]),
                None => {}
            }
        }
        for of_b in b.settings.iter().filter(|of_b| could_have(a, of_b)) {
            if !a.settings.iter().any(|of_a| same(of_a, of_b)) {
                add(of_b, [absent(), of_b.value.clone()]);
            }
        }
    }

    fn pair(&mut self, run: &str, [a, b]: [&Place; 2], figures: &[Figure], others: &[Figure]) {
        let mut place = a.clone();
        if a.job != b.job {
            place.job = format!("{} / {}", a.job, b.job);
        }
        for figure in figures {
            let Some(other) = others.iter().find(|other| other.name == figure.name) else {
                continue;
            };
            let values = [figure.value, other.value];
            let change = other.value - figure.value;
            let difference = match figure.kind.unit() {
                _ if change == 0.0 => Some(0.0),
                Unit::Percent => Some(change),
                _ => (figure.value > 0.0).then(|| 100.0 * change / figure.value),
            };
            let deviations = Spread::deviations(change, figure.spread, other.spread);
            let far = difference.is_none_or(|of| of.abs() > self.limits.percent);
            let clear = match &deviations {
                Some(of) if of.decide() => of.count > self.limits.deviations,
                _ => true,
            };
            self.pairs.push(Pair {
                run: run.to_owned(),
                place: place.clone(),
                name: figure.name,
                title: figure.title,
                kind: figure.kind,
                values,
                difference,
                differs: far && clear && figure.kind.is_judged(),
                deviations,
            });
        }
    }

    fn is_different(&self) -> bool {
        self.pairs.iter().any(|pair| pair.differs) || self.alone.iter().any(|of| !of.is_empty())
    }
}

fn joined(run: &str, place: &str) -> String {
    match run {
        "" => place.to_owned(),
        run => format!("{run}: {place}"),
    }
}
