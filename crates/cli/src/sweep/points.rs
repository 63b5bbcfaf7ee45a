//! The points of a sweep: from settings to runs, from runs to rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use scenario::Scenario;
use scenario::report::{Report, digest};
use scenario::table::{Cell, Column, Kind};
use sim::estimate::Estimate;
use study::compare::ALL;
use study::design::Design;
use study::fleet::Fleet;
use study::sweep::{Collect, Job, run_one};

use super::kept::{Manifest, Record};
use crate::args::SweepArgs;
use crate::combinations::prepare_point;
use crate::error::Error;
use crate::scenario::{Input, Point, Prepared, read};
use crate::text::read_text;

/// Columns before those of a report, besides what varies.
const POINT: &str = "point";
/// With `precision`: 1 if the point's seeds reached it.
const PRECISE: &str = "precise";

/// All points, with the scenarios that they are of.
#[derive(Debug)]
pub(super) struct Points {
    pub(super) design: Design,
    /// Digest of the file.
    digest: String,
    file: PathBuf,
    /// Folder of the file, where it names others.
    folder: PathBuf,
    inputs: Vec<Input>,
    /// With their texts.
    scenarios: Vec<(Scenario, String)>,
    varied: Vec<Column>,
}

impl Points {
    pub(super) fn read(file: &Path) -> Result<Points, Error> {
        let text = read_text(file)?;
        let design = Design::read(&file.display().to_string(), &text)?;
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let ignored = ("ignore_unmodelled".to_owned(), "true".to_owned());
        let ignore = design.set.contains(&ignored);
        let named = |name: &String| Input::Named(vec![beside(&folder, name)]);
        let inputs: Vec<Input> = design.scenarios.iter().map(named).collect();
        let scenarios = inputs.iter().map(|input| {
            let place = || format!("{}: scenario", file.display());
            read(input, ignore).map_err(|error| Error::usage(place(), error.to_string()))
        });
        let column = |(key, values): (&str, Vec<&str>)| {
            let all = |fits: fn(&str) -> bool| values.iter().all(|value| fits(value));
            let kind = match () {
                () if all(|value| value.parse::<i64>().is_ok()) => Kind::Integer,
                () if all(|value| value.parse().is_ok_and(f64::is_finite)) => Kind::Number,
                () => Kind::Text,
            };
            Column::new(key.to_owned(), kind)
        };
        let varied = design.varied().into_iter().map(column).collect();
        Ok(Points {
            digest: digest(&text),
            scenarios: scenarios.collect::<Result<_, _>>()?,
            file: file.to_path_buf(),
            folder,
            inputs,
            varied,
            design,
        })
    }

    /// What must be the same for results to go together: digests of the sweep's file, and of plan
    /// and machine of the first point with each scenario, machine and drive, which have all that
    /// their files have.
    pub(super) fn manifest(&self) -> Result<Manifest, Error> {
        let mut inputs = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for point in 0..self.design.len() {
            let (scenario, mut values) = self.design.point(point);
            values.retain(|(key, _)| matches!(*key, "machine" | "drive"));
            if !seen.insert((scenario, values.clone())) {
                continue;
            }
            let Prepared { plan, profile, .. } = self.prepare(point, self.seed(0))?;
            let name = &self.design.scenarios[scenario];
            let whole = digest(&format!(
                "{} {plan:?} {profile:?}",
                self.scenarios[scenario].1
            ));
            let of_files = values.iter().map(|(_, value)| format!(" {value}"));
            inputs.insert(format!("{name}{}", of_files.collect::<String>()), whole);
        }
        Ok(Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: env!("BLKSIM_SOURCE").to_owned(),
            sweep: self.digest.clone(),
            inputs,
        })
    }

    /// The columns of the table.
    pub(super) fn columns(&self) -> Vec<Column> {
        let report = Report::columns();
        let own = |column: &&Column| report.iter().all(|of| of.name != column.name);
        let mut columns = vec![Column::new(POINT, Kind::Integer)];
        columns.extend(self.varied.iter().filter(own).cloned());
        if !self.design.precision.is_empty() {
            columns.push(Column::new(PRECISE, Kind::Integer));
        }
        columns.extend(report);
        columns
    }

    /// The seed of a point's run by its number; nothing is the scenario's.
    fn seed(&self, number: u32) -> Option<u64> {
        match (self.design.seed, self.design.seeds.1) {
            (None, 1) => None,
            (seed, _) => Some(seed.unwrap_or(1) + u64::from(number)),
        }
    }

    fn prepare(&self, index: usize, seed: Option<u64>) -> Result<Prepared, Error> {
        let (input, values) = self.design.point(index);
        let set = self.design.set.iter();
        let set = set.map(|(key, value)| (key.as_str(), value.as_str()));
        let mut args = SweepArgs::default();
        let mut point = Point {
            input,
            seed,
            vary: self.design.seeds.1 > 1 && self.scenarios[input].0.has_jobs(),
            ..Point::default()
        };
        for (key, value) in set.chain(values) {
            let own = Some(value.to_owned());
            match key {
                "scenario" => {}
                "scheduler" => point.scheduler = own,
                "rules" => point.rules = own,
                "machine" => point.machine = Some(beside(&self.folder, value)),
                "threads" => point.set.push(format!("job.numjobs={value}")),
                "device" => args.device = own,
                "drive" => args.drive = Some(beside(&self.folder, value)),
                "runtime" => args.runtime = own,
                "ramp_time" => args.ramp_time = own,
                "without" => args.without = value.split(',').map(str::to_owned).collect(),
                "ignore_unmodelled" => args.ignore_unmodelled = value == "true",
                _ => point.set.push(format!("{key}={value}")),
            }
        }
        let prepared = prepare_point(&self.scenarios[input], &self.inputs[input], &point, &args);
        prepared.map_err(|error| {
            let (_, values) = self.design.point(index);
            let values: Vec<String> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
            // A setting is written as an option only here.
            let what = error.to_string().replace("--set ", "");
            let (file, values) = (self.file.display(), values.join(", "));
            Error::usage(format!("{file}: point {index} ({values})"), what)
        })
    }

    /// The point can run.
    pub(super) fn check(&self, index: usize) -> Result<(), study::error::Error> {
        self.job(index, 0).map(drop)
    }

    fn job(&self, index: usize, number: u32) -> Result<Job, study::error::Error> {
        let prepared = self.prepare(index, self.seed(number));
        let prepared = prepared.map_err(|e| study::error::Error::Scenario(e.to_string()))?;
        Ok(Job {
            plan: prepared.plan,
            profile: prepared.profile,
            origin: prepared.origin,
        })
    }

    /// Makes the first run of a point only.
    pub(super) fn run_first(&self, index: usize, fleet: &Fleet) -> Result<(), study::error::Error> {
        run_one(&self.job(index, 0)?, Collect::default(), fleet).map(drop)
    }

    /// Makes the runs of a point: with `precision` so many seeds as it takes.
    pub(super) fn run(&self, index: usize, fleet: &Fleet) -> Result<Record, study::error::Error> {
        let (least, most) = self.design.seeds;
        let mut reports = Vec::new();
        let mut stall = None;
        let mut precise = false;
        for number in 0..most {
            let ran = run_one(&self.job(index, number)?, Collect::default(), fleet)?;
            stall = stall.or(ran.stall);
            reports.push(ran.report);
            precise = number + 1 >= least.max(2) && self.is_precise(&reports);
            if precise && number + 1 >= least {
                break;
            }
        }
        let (scenario, mut values) = self.design.point(index);
        values.push(("scenario", &self.design.scenarios[scenario]));
        let rows = reports.iter().flat_map(Report::rows);
        let rows = rows
            .map(|row| self.row(index, &values, precise, row))
            .collect();
        Ok(Record {
            point: index,
            rows,
            stall,
        })
    }

    fn is_precise(&self, reports: &[Report]) -> bool {
        self.design.precision.iter().all(|(measure, part)| {
            let values: Vec<f64> = reports.iter().map(|of| (measure.of)(of, ALL)).collect();
            let Estimate { mean, half } = Estimate::new(&values);
            half.is_some_and(|half| half <= part * mean)
        })
    }

    /// A row of a report with what comes before it. A varied value replaces what the report has in
    /// the column of its name.
    fn row(
        &self,
        index: usize,
        values: &[(&str, &str)],
        precise: bool,
        report: Vec<Cell<'static>>,
    ) -> Vec<Cell<'static>> {
        let written = |column: &Column| {
            let value = values.iter().find(|(key, _)| *key == column.name);
            value.map_or(Cell::Missing, |(_, value)| cell(value, column.kind))
        };
        let columns = Report::columns();
        let own = |column: &&Column| columns.iter().all(|of| of.name != column.name);
        let mut row = vec![Cell::Integer(index as i64)];
        row.extend(self.varied.iter().filter(own).map(written));
        if !self.design.precision.is_empty() {
            row.push(Cell::Integer(precise.into()));
        }
        let both = columns.iter().zip(report);
        row.extend(both.map(|(column, cell)| match written(column) {
            Cell::Missing => cell,
            // `threads = "2k"` is a number in the report.
            written if !written.fits(column.kind) => cell,
            written => written,
        }));
        row
    }
}

fn cell(value: &str, kind: Kind) -> Cell<'static> {
    let number = match kind {
        Kind::Integer => value.parse().ok().map(Cell::Integer),
        Kind::Number => value.parse().ok().map(Cell::Number),
        Kind::Text => None,
    };
    number.unwrap_or_else(|| Cell::Text(value.to_owned().into()))
}

/// A file that is named in another one, beside it; a name as it is.
fn beside(folder: &Path, name: &str) -> String {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str());
    match matches!(ending, Some("toml" | "fio")) || path.components().count() > 1 {
        true => folder.join(path).display().to_string(),
        false => name.to_owned(),
    }
}
