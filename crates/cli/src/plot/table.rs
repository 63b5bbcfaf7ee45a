//! Curves of the table of a sweep: figures by a column, a curve for each value of others.
//!
//! Rows of one place are runs that differ in their seeds, and in what the figure does not show:
//! then a note says so. Counts and rates of the jobs of a run are added up, of other figures the
//! largest is drawn.

use std::path::Path;

use scenario::table::Cell;
use scenario::table::parquet::{Read, ReadError};
use sim::estimate::Estimate;

use super::figures::Figure;
use super::group::numeric;
use super::panel::{Axis, Curve, HEAD, LINE, Panel, page, room_for};
use super::scale::{Scale, Unit};
use super::scene::{Dash, PALETTE};
use crate::args::PlotArgs;
use crate::error::Error;

const HEIGHT: i32 = 480;
/// Height of a panel without that of its curves.
const AROUND: i32 = 160;
/// Values on the horizontal axis with a mark each.
const MARKS: usize = 20;
/// Ratio of values that is drawn on a logarithmic axis.
const WIDE: f64 = 100.0;
/// What is drawn without `--y`, as far as the runs have it.
const USUAL: [&str; 4] = ["iops", "read_clat_p99_ns", "write_clat_p99_ns", "lock_wait"];
/// Columns that name a run, besides keys of the sweep.
const NAMING: [&str; 6] = [
    "scenario",
    "rules",
    "machine",
    "scheduler",
    "device",
    "cpus",
];

/// The figure of a file, and notes.
pub(crate) fn draw(file: &Path, args: &PlotArgs) -> Result<(Figure, Vec<String>), Error> {
    let bytes = std::fs::read(file);
    let bytes = bytes.map_err(|error| Error::input(file, format!("cannot read: {error}")))?;
    let table = Table {
        file,
        read: Read::read(&bytes).map_err(|error| refused(file, &error))?,
    };
    let missing = || Error::usage("--x", "expected the column of the horizontal axis");
    let x = args.x.as_ref().ok_or_else(missing)?;
    let rows = Rows::new(&table, x, &args.by)?;
    let figures = table.figures(&args.y)?;
    let x_axis = Axis::new(x.clone(), rows.scale(args.linear));
    let height = HEIGHT.max(AROUND + LINE * rows.series.len() as i32);
    let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
    let mut scene = page(
        &format!("{} by {x}", names.join(", ")),
        &format!("{}; means of runs with 95 % intervals", file.display()),
        HEAD + figures.len() as i32 * height,
    );
    let room = room_for(rows.series.iter().map(String::as_str));
    for (index, (name, values)) in figures.iter().enumerate() {
        let curves = rows.curves(name, values);
        let tops: Vec<Vec<f64>> = curves.iter().map(Curve::heights).collect();
        let scale = match *name {
            name if name.ends_with("_ns") => Scale::of_curves(&tops, Unit::Time, args.linear),
            "lock_wait" | "cpu_busy" | "usr_cpu" | "sys_cpu" => Scale::percent(),
            _ => Scale::of_curves(&tops, Unit::Number, args.linear),
        };
        let top = HEAD + index as i32 * height;
        let y_axis = Axis::new((*name).to_owned(), scale);
        let panel = Panel::new(&mut scene, (top, top + height), room, &x_axis, &y_axis);
        panel.curves(&mut scene, &curves);
    }
    let version = env!("CARGO_PKG_VERSION");
    let stem = file.file_stem().unwrap_or_default();
    let figure = Figure {
        name: stem.to_string_lossy().into_owned(),
        scene: scene.signed(&format!(
            "simulated by blksim {version}: a model, no measurement"
        )),
    };
    Ok((figure, rows.notes(&table, x, &args.by)?))
}

fn refused(file: &Path, error: &ReadError) -> Error {
    Error::input(file, error.to_string())
}

struct Table<'a> {
    file: &'a Path,
    read: Read<'a>,
}

impl<'a> Table<'a> {
    fn names(&self) -> Vec<&str> {
        let columns = self.read.columns.iter();
        columns.map(|column| &*column.name).collect()
    }

    /// The values of a column that an option names.
    fn column(&self, option: &str, name: &str) -> Result<Vec<Cell<'a>>, Error> {
        let names = self.names();
        let Some(index) = names.iter().position(|of| *of == name) else {
            let (file, names) = (self.file.display(), names.join(", "));
            let what = format!("is no column of {file}; expected one of {names}");
            return Err(Error::usage(format!("{option} {name}"), what));
        };
        let values = self.read.values(index);
        values.map_err(|error| refused(self.file, &error))
    }

    /// The figures of `--y` with their values, else the usual ones.
    fn figures<'y>(&self, y: &'y [String]) -> Result<Vec<(&'y str, Vec<Cell<'a>>)>, Error> {
        let mut figures = Vec::new();
        let asked = y.iter().map(String::as_str);
        for name in asked.chain(USUAL.into_iter().filter(|_| y.is_empty())) {
            let values = self.column("--y", name)?;
            let numbers = || values.iter().filter_map(Cell::number);
            match numbers().next().is_some() {
                // Of the usual ones those with something to show.
                true if y.is_empty() && numbers().all(|number| number == 0.0) => {}
                true => figures.push((name, values)),
                false if y.is_empty() => {}
                false => {
                    let what = "has no numbers; expected a column with numbers";
                    return Err(Error::usage(format!("--y {name}"), what));
                }
            }
        }
        Ok(figures)
    }
}

/// A row of the table that has a place on the horizontal axis.
#[derive(Debug)]
struct Row {
    index: usize,
    /// Its curve.
    series: usize,
    at: f64,
    text: String,
    /// Jobs of one run have the same.
    run: usize,
}

/// The rows of a figure.
#[derive(Debug)]
struct Rows {
    /// Names of the curves.
    series: Vec<String>,
    /// By curve, place and run.
    rows: Vec<Row>,
}

impl Rows {
    fn new(table: &Table<'_>, x: &str, by: &[String]) -> Result<Rows, Error> {
        let places = table.column("--x", x)?;
        let keys = by.iter().map(|name| table.column("--by", name));
        let keys: Vec<Vec<Cell<'_>>> = keys.collect::<Result<_, _>>()?;
        let (points, seeds) = (table.column("", "point")?, table.column("", "seed")?);
        let (mut series, mut rows, mut run) = (Vec::new(), Vec::new(), 0);
        for (index, place) in places.iter().enumerate() {
            let before = index.saturating_sub(1);
            let same = points[index] == points[before] && seeds[index] == seeds[before];
            run += usize::from(!same);
            let Some(at) = number_of(place) else {
                continue;
            };
            let part = |(key, values): (&String, &Vec<Cell<'_>>)| match by.len() {
                1 => values[index].text(),
                _ => format!("{key}={}", values[index].text()),
            };
            let name = by
                .iter()
                .zip(&keys)
                .map(part)
                .collect::<Vec<_>>()
                .join(", ");
            let known = series.iter().position(|of| *of == name);
            let of = known.unwrap_or_else(|| {
                series.push(name);
                series.len() - 1
            });
            rows.push(Row {
                index,
                series: of,
                at,
                text: place.text(),
                run,
            });
        }
        if rows.is_empty() {
            let what = "has no numbers; expected a column with numbers, or --by this one";
            return Err(Error::usage(format!("--x {x}"), what));
        }
        let most = PALETTE.len() * Dash::ALL.len();
        if series.len() > most {
            let what = format!("{} curves; expected at most {most}", series.len());
            return Err(Error::usage("--by", what));
        }
        rows.sort_by(|a, b| {
            let places = a.series.cmp(&b.series).then(a.at.total_cmp(&b.at));
            places.then(a.run.cmp(&b.run))
        });
        Ok(Rows { series, rows })
    }

    /// The horizontal axis: a mark for each value, if there are few.
    fn scale(&self, linear: bool) -> Scale {
        let rows = self.rows.iter();
        let mut marks: Vec<(f64, String)> = rows.map(|row| (row.at, row.text.clone())).collect();
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        marks.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
        let (least, largest) = (marks[0].0, marks[marks.len() - 1].0);
        let wide = least > 0.0 && largest / least >= WIDE && !linear;
        match marks.len() {
            0..=MARKS => Scale::marks(marks, linear),
            _ if wide => Scale::log([least, largest].into_iter(), Unit::Number),
            _ => Scale::linear(largest, Unit::Number),
        }
    }

    /// The rows of each place of each curve.
    fn places(&self) -> impl Iterator<Item = &[Row]> {
        let same = |a: &Row, b: &Row| a.series == b.series && a.at.total_cmp(&b.at).is_eq();
        self.rows.chunk_by(same)
    }

    fn curves(&self, name: &str, values: &[Cell<'_>]) -> Vec<Curve> {
        let sums = ["ios", "iops", "bw_bytes", "ctx", "errors"];
        let adds = sums
            .iter()
            .any(|sum| name == *sum || name.ends_with(&format!("_{sum}")));
        let of_run = |jobs: &[Row]| {
            let values = jobs.iter().filter_map(|row| values[row.index].number());
            match adds {
                true => values.reduce(|a, b| a + b),
                false => values.reduce(f64::max),
            }
        };
        let mut estimates: Vec<Vec<(f64, Estimate)>> = vec![Vec::new(); self.series.len()];
        for place in self.places() {
            let runs = place.chunk_by(|a, b| a.run == b.run);
            let values: Vec<f64> = runs.filter_map(of_run).collect();
            if !values.is_empty() {
                estimates[place[0].series].push((place[0].at, Estimate::new(&values)));
            }
        }
        let curve = |(index, estimates): (usize, Vec<(f64, Estimate)>)| {
            let halves: Vec<f64> = estimates.iter().filter_map(|(_, of)| of.half).collect();
            Curve {
                name: self.series[index].clone(),
                colour: PALETTE[index % PALETTE.len()],
                dash: Dash::ALL[index / PALETTE.len()],
                points: estimates.iter().map(|(at, of)| (*at, of.mean)).collect(),
                // Points of one run have no interval, and then none has one.
                halves: match halves.len() == estimates.len() {
                    true => halves,
                    false => Vec::new(),
                },
                dots: true,
            }
        };
        estimates.into_iter().enumerate().map(curve).collect()
    }

    /// What runs of one place have different, besides their seeds.
    fn notes(&self, table: &Table<'_>, x: &str, by: &[String]) -> Result<Vec<String>, Error> {
        let names = table.names();
        // Keys of the sweep are after `point` and before what a report has.
        let end = names
            .iter()
            .position(|name| *name == "scenario")
            .unwrap_or(0);
        let keys = names.iter().enumerate().filter(|(index, name)| {
            let is_key = (1..end).contains(index) && **name != "precise";
            (is_key || NAMING.contains(name)) && **name != x && by.iter().all(|by| by != *name)
        });
        let mut notes = Vec::new();
        for (_, name) in keys {
            let values = table.column("", name)?;
            let differs = |place: &[Row]| {
                let first = &values[place[0].index];
                place.iter().any(|row| values[row.index] != *first)
            };
            if self.places().any(differs) {
                notes.push(format!(
                    "each point is a mean over {name}; --by {name} draws a curve for each"
                ));
            }
        }
        Ok(notes)
    }
}

/// A number, also a text with a unit.
fn number_of(cell: &Cell<'_>) -> Option<f64> {
    let number = match cell {
        Cell::Text(text) => numeric(text),
        other => other.number(),
    };
    number.filter(|number| number.is_finite())
}
