//! `blksim sweep`: the runs of a sweep's file, in one process or in many, and a table of them.
//!
//! Each point's rows are kept as soon as its runs have ended (`sweep/kept.rs`), so that
//! nothing is lost or made twice whatever ends the process. Read next: `study/src/design.rs` for
//! the points, `sweep/points.rs` for their runs.

mod kept;
mod points;
mod slurm;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use scenario::table::parquet::Parquet;
use study::fleet::Fleet;

use crate::args::{JobsArgs, SweepFileArgs, SweepOf, SweepPart};
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile};
use crate::progress::{locked, now, span};
use crate::{DIFFERENT, INTERRUPTED, OK, STALLED};
use kept::{Folder, Log, Shard, sync_folder};
use points::Points;

/// Wall time for a few runs, from which that of all is estimated.
const TRIAL: Duration = Duration::from_secs(2);
/// Runs of it.
const TRIED: usize = 16;
/// Work of a shard at least: a task of a batch system takes a second by itself.
const SHARD_LEAST: f64 = 30.0;

pub(crate) fn sweep(args: &SweepFileArgs) -> Result<u8, Error> {
    match &args.part {
        Some(SweepPart::Plan { of, jobs }) => plan(of, jobs),
        Some(SweepPart::Run { of, shard, jobs }) => {
            let shard = Shard::of(shard.as_deref(), |name| std::env::var(name).ok())?;
            run(&Sweep::read(of)?, shard, jobs, &Interrupt::install()?)
        }
        Some(SweepPart::Merge(of)) => merge(&Sweep::read(of)?, &Interrupt::install()?),
        Some(SweepPart::Status(of)) => status(&Sweep::read(of)?),
        None => whole(args),
    }
}

/// A sweep that was read, and the folder of its results.
#[derive(Debug)]
struct Sweep {
    file: PathBuf,
    points: Points,
    dir: PathBuf,
}

impl Sweep {
    fn read(of: &SweepOf) -> Result<Sweep, Error> {
        let dir = of.output.clone();
        let dir = dir.unwrap_or_else(|| of.file.with_extension("sweep"));
        if dir == of.file {
            let what = "is also the folder of the results; expected --output DIR";
            return Err(Error::input(dir, what));
        }
        Ok(Sweep {
            file: of.file.clone(),
            points: Points::read(&of.file)?,
            dir,
        })
    }

    /// The folder, which is made if it is not there and may be; an error if it is of another sweep.
    fn kept(&self, make: bool) -> Result<Folder, Error> {
        Folder::open(&self.dir, &self.points.manifest()?, make)
    }
}

fn whole(args: &SweepFileArgs) -> Result<u8, Error> {
    let sweep = Sweep::read(args.of.as_ref().expect("clap wants a file or a part"))?;
    let engine = &args.engine;
    let interrupt = Interrupt::install()?;
    if engine.engine == "slurm" {
        let seconds = || Ok(trial(&sweep.points, &args.jobs, &interrupt)?.0);
        slurm::run(&sweep, args, &interrupt, seconds)?;
        return merge(&sweep, &interrupt);
    }
    let slurm_only = [
        ("--shards", engine.shards.is_some()),
        ("--sbatch", !engine.sbatch.is_empty()),
    ];
    if let Some((option, _)) = slurm_only.iter().find(|(_, given)| *given) {
        return Err(Error::usage(*option, "is for --engine slurm"));
    }
    match run(&sweep, Shard::WHOLE, &args.jobs, &interrupt)? {
        OK => merge(&sweep, &interrupt),
        code => Ok(code),
    }
}

/// Makes the points of a shard that are not kept yet.
fn run(sweep: &Sweep, shard: Shard, jobs: &JobsArgs, interrupt: &Interrupt) -> Result<u8, Error> {
    let points = &sweep.points;
    let kept = sweep.kept(true)?;
    let (log, done) = Log::open(&kept, shard, points.design.len())?;
    let of_shard = points.design.shard(shard.index, shard.count);
    let missing: Vec<usize> = of_shard.filter(|point| !done[*point]).collect();
    let log = Mutex::new(log);
    let (full, stop) = (Mutex::new(None), interrupt.stop());
    let work = |fleet: &Fleet| {
        // All of them before the first: an error should not come after hours.
        fleet.each(&missing, |point| points.check(*point))?;
        fleet.map_ended(&missing, |point| {
            let record = points.run(*point, fleet)?;
            let written = locked(&log).append(&record);
            written.map_err(|error| {
                // No further run begins: it could not be kept.
                let _ = stop.set(());
                *locked(&full) = Some(error);
                study::error::Error::Stopped
            })
        })
    };
    let ended = with_fleet(jobs, interrupt, work);
    if let Some(error) = locked(&full).take() {
        return Err(error);
    }
    let ended = ended?.into_iter().flatten().count();
    locked(&log).sync()?;
    if ended < missing.len() {
        let all = missing.len();
        let what = format!(
            "error: interrupted after {ended} of {all} points, which are kept; the same command \
             makes the others\n"
        );
        output::print_stderr(&what);
        return Ok(INTERRUPTED);
    }
    Ok(OK)
}

/// Writes the table of all points.
fn merge(sweep: &Sweep, interrupt: &Interrupt) -> Result<u8, Error> {
    let kept = sweep.kept(false)?;
    let all = kept.all(sweep.points.design.len())?;
    if let Some(missing) = all.missing_text() {
        return Err(Error::input(&sweep.dir, missing));
    }
    let _alone = kept.alone()?;
    let columns = sweep.points.columns();
    let files = ["results.parquet", "results.csv"].map(|name| sweep.dir.join(name));
    let [parquet, csv] = &files;
    let (mut parquet, mut csv) = (OutputFile::open(parquet)?, OutputFile::open(csv)?);
    let head: Vec<String> = columns
        .iter()
        .map(|column| column.name.to_string())
        .collect();
    csv.append(scenario::table::csv_of(&[head]).as_bytes())?;
    let mut table = Parquet::new(columns.clone());
    let mut stalls = 0;
    for point in 0..sweep.points.design.len() {
        if interrupt.came() {
            return Err(Error::Interrupted);
        }
        let record = all.record(point)?;
        stalls += usize::from(record.stall.is_some());
        for row in record.rows {
            let fits = |(cell, column): (&scenario::table::Cell<'_>, _)| {
                let column: &scenario::table::Column = column;
                cell.fits(column.kind)
            };
            if row.len() != columns.len() || !row.iter().zip(&columns).all(fits) {
                let what = format!("point {point} has other columns than this program's");
                return Err(Error::input(&sweep.dir, what));
            }
            parquet.append(&table.add(&row))?;
            let cells: Vec<String> = row.iter().map(scenario::table::Cell::text).collect();
            csv.append(scenario::table::csv_of(&[cells]).as_bytes())?;
        }
    }
    let written = [parquet.put_bytes(&table.finish())?, csv.put("")?];
    for file in written {
        file.keep()?;
    }
    sync_folder(&sweep.dir)?;
    let names = files.map(|file| file.display().to_string() + "\n");
    output::print(&names.concat())?;
    if stalls > 0 {
        output::print_stderr(&format!(
            "{stalls} points have a run that stalled: `outcome`\n"
        ));
        return Ok(STALLED);
    }
    Ok(OK)
}

fn status(sweep: &Sweep) -> Result<u8, Error> {
    let all = sweep.kept(false)?.all(sweep.points.design.len())?;
    output::print(&all.status())?;
    Ok(if all.missing() == 0 { OK } else { DIFFERENT })
}

/// Seconds of one core for a run, and how many were tried.
fn trial(points: &Points, jobs: &JobsArgs, interrupt: &Interrupt) -> Result<(f64, usize), Error> {
    let count = points.design.len();
    let tried: Vec<usize> = (0..count).step_by(count.div_ceil(TRIED)).collect();
    let work = |fleet: &Fleet| {
        fleet.each(&(0..count).collect::<Vec<_>>(), |point| {
            points.check(*point)
        })?;
        let started = now();
        fleet.map(&tried, |point| {
            if now() - started > TRIAL && *point > 0 {
                return Ok(None);
            }
            let begun = now();
            points.run_first(*point, fleet)?;
            Ok(Some((now() - begun).as_secs_f64()))
        })
    };
    let taken: Vec<f64> = with_fleet(jobs, interrupt, work)?
        .into_iter()
        .flatten()
        .collect();
    Ok((taken.iter().sum::<f64>() / taken.len() as f64, taken.len()))
}

fn plan(of: &SweepOf, jobs: &JobsArgs) -> Result<u8, Error> {
    let sweep = Sweep::read(of)?;
    let design = &sweep.points.design;
    let interrupt = Interrupt::install()?;
    let (seconds, tried) = trial(&sweep.points, jobs, &interrupt)?;
    let (least, most) = design.runs();
    let mut text = format!("{}: {} points, {least}", of.file.display(), design.len());
    if most > least {
        text += &format!(" to {most}");
    }
    text += " runs\n";
    for (key, mut values) in design.varied() {
        let mut seen = BTreeSet::new();
        values.retain(|value| seen.insert(*value));
        let shown = match values.len() {
            0..=8 => values.join(", "),
            count => {
                // Those that are no numbers stay in the order of the file.
                let number = |value: &str| value.parse::<f64>().ok();
                values.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(Ordering::Equal));
                format!("{count} values: {} .. {}", values[0], values[count - 1])
            }
        };
        text += &format!("  {key:24} {shown}\n");
    }
    let cores = jobs.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let cpu = seconds * most as f64;
    let on_cores = Duration::from_secs_f64(cpu / cores as f64);
    text += &format!(
        "a run takes some {seconds:.3} s now ({tried} tried); all {} on {cores} cores, {} on \
         one\nat most {} shards, so that each has {SHARD_LEAST} s of work\n",
        span(on_cores),
        span(Duration::from_secs_f64(cpu)),
        shards(cpu, SHARD_LEAST)
    );
    output::print(&text)?;
    Ok(OK)
}

/// Shards that have so many seconds of work each.
fn shards(seconds: f64, each: f64) -> u32 {
    (seconds / each).max(1.0) as u32
}
