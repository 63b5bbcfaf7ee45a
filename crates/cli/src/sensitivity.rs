//! `blksim sensitivity`: how throughput follows each cost of a profile, in every published row that
//! runs on it.
//!
//! Each cost is raised and lowered by a fifth on its own, with several seeds. Two wrong costs that
//! hide each other in one row seldom do so in all. Contended rows are chaotic: what chance does to
//! their throughput is measured first, and slopes that it could make are not shown.

use std::fmt::Write as _;

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::reproduce::{Row, published};
use sim::scenario::ProfileFacts;
use sim::sensitivity::Cost;

use crate::args::SensitivityArgs;
use crate::error::Error;
use crate::scenario::load;
use crate::{OK, output};

/// How much a cost is raised and lowered, percent of itself.
const CHANGE: u64 = 20;
/// Seeds that tell what chance does to the throughput of a row.
const CHANCE_SEEDS: u64 = 8;
/// Slopes are shown from so many standard deviations on.
const DEVIATIONS: f64 = 3.0;
/// A cost whose percent changes throughput by less in all rows is left out.
const LEAST: f64 = 0.01;

/// Names of the columns.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

/// Throughput of a row at the costs as they are, and for each cost its two answers.
struct Column {
    name: String,
    iops: f64,
    /// Elasticities below this may be chance.
    chance: f64,
    slopes: Vec<Slope>,
}

#[derive(Clone, Copy)]
struct Slope {
    /// I/Os a second for one unit of the cost.
    by_unit: f64,
    /// Percent of throughput for one percent of the cost.
    elasticity: f64,
}

/// Runs and prints.
pub(crate) fn sensitivity(args: &SensitivityArgs) -> Result<u8, Error> {
    let profile = MachineProfile::built_in(&args.profile);
    let profile = profile.map_err(|what| Error::usage("PROFILE", what))?;
    let costs = Cost::all(&profile);
    let mut columns = Vec::new();
    for table in published().tables {
        for row in &table.rows {
            if let Some(plan) = plan_of(row, &profile, args)? {
                let name = format!("{}: {}", table.name, row.name);
                columns.push(column(name, &plan, &profile, &costs, args.seeds)?);
            }
        }
    }
    if columns.is_empty() {
        let what = format!("no published row runs on {}", profile.name);
        return Err(Error::usage("PROFILE", what));
    }
    output::print(&text(&profile, &costs, &columns))?;
    Ok(OK)
}

/// What a row runs if it runs on this machine.
fn plan_of(
    row: &Row,
    profile: &MachineProfile,
    args: &SensitivityArgs,
) -> Result<Option<Plan>, Error> {
    let Some(name) = &row.scenario else {
        return Ok(None);
    };
    let (mut scenario, _) = load(name)?;
    for assignment in &row.set {
        scenario = scenario.set(assignment)?;
    }
    let runtime = format!("job.runtime={}", args.runtime);
    let wrong = || Error::usage("--runtime", "expected a time above 0, such as 20ms or 1s");
    scenario = scenario.set(&runtime).map_err(|_| wrong())?;
    scenario = scenario.set("job.ramp_time=2ms")?;
    let facts = MachineProfile::names()
        .into_iter()
        .map(|name| MachineProfile::built_in(name).map(|known| (name, known.cpus())));
    let facts = facts.collect::<Result<Vec<_>, String>>();
    let facts = facts.map_err(|what| Error::usage("machine", what))?;
    let facts: Vec<ProfileFacts<'_>> = facts
        .iter()
        .map(|&(name, cpus)| ProfileFacts { name, cpus })
        .collect();
    // Rows are known to be right, so what is wrong is what was set here.
    let plan = scenario.plan(&facts).map_err(|_| wrong())?;
    Ok((plan.machine.profile == profile.name).then_some(plan))
}

fn column(
    name: String,
    plan: &Plan,
    profile: &MachineProfile,
    costs: &[Cost],
    seeds: u64,
) -> Result<Column, Error> {
    let (base, deviation) = spread(plan, profile)?;
    let slopes = costs.par_iter().map(|cost| {
        let (dear, more) = cost.scaled(profile, 100 + CHANGE);
        let (cheap, less) = cost.scaled(profile, 100 - CHANGE);
        let fewer = mean_iops(plan, &dear, seeds)?;
        let by_unit = (fewer - mean_iops(plan, &cheap, seeds)?) / (more - less) as f64;
        Ok(Slope {
            by_unit,
            elasticity: by_unit * cost.of(profile) as f64 / base,
        })
    });
    // Of the difference of two means, over the change of the cost.
    let of_slope = deviation * (2.0 / seeds as f64).sqrt() / (2.0 * CHANGE as f64 / 100.0);
    Ok(Column {
        name,
        iops: base,
        chance: (DEVIATIONS * of_slope / base).max(LEAST),
        slopes: slopes.collect::<Result<Vec<_>, Error>>()?,
    })
}

/// Mean and standard deviation of the throughput over seeds, all costs as they are.
fn spread(plan: &Plan, profile: &MachineProfile) -> Result<(f64, f64), Error> {
    let seeds: Vec<u64> = (1..=CHANCE_SEEDS).collect();
    let all = seeds.par_iter().map(|&seed| iops(plan, profile, seed));
    let all = all.collect::<Result<Vec<f64>, Error>>()?;
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let squares = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    Ok((mean, (squares / (count - 1.0)).sqrt()))
}

fn mean_iops(plan: &Plan, profile: &MachineProfile, seeds: u64) -> Result<f64, Error> {
    let mut sum = 0.0;
    for seed in 1..=seeds {
        sum += iops(plan, profile, seed)?;
    }
    Ok(sum / seeds as f64)
}

fn iops(plan: &Plan, profile: &MachineProfile, seed: u64) -> Result<f64, Error> {
    let wrong = |what: String| Error::usage(format!("machine {}", profile.name), what);
    let mut plan = plan.clone();
    plan.seed = seed;
    let mut simulator = Simulator::new(&plan, profile).map_err(wrong)?;
    if let Outcome::Stalled(stall) = simulator.run(|_| true) {
        return Err(Error::usage(plan.name.clone(), stall.to_string()));
    }
    simulator.settle();
    let recorder = simulator.recorder();
    let directions = recorder.jobs.iter().flat_map(|job| &job.directions);
    let ios = directions.map(|direction| direction.ios).sum::<u64>() as f64;
    Ok(ios * 1e9 / recorder.until.since(recorder.from).0.max(1) as f64)
}

fn text(profile: &MachineProfile, costs: &[Cost], columns: &[Column]) -> String {
    let mut text = format!(
        "{}: percent of throughput for one percent of a cost; I/Os a second for one unit of it\n",
        profile.name
    );
    for (letter, column) in LETTERS.chars().zip(columns) {
        let Column {
            name, iops, chance, ..
        } = column;
        let _ = writeln!(
            text,
            "  ({letter}) {name}: {iops:.0} IOPS; below {chance:.3} %: chance, shown as ."
        );
    }
    let _ = write!(text, "{:<26} {:>7}", "cost", "value");
    for letter in LETTERS.chars().take(columns.len()) {
        let _ = write!(text, " {:>7} {:>8}", format!("({letter}) %"), "by unit");
    }
    text.push('\n');
    let weight = |index: usize| {
        let shown = columns.iter().filter_map(|column| column.shown(index));
        shown
            .map(|slope| slope.elasticity.abs())
            .fold(0.0, f64::max)
    };
    let mut order: Vec<usize> = (0..costs.len()).filter(|&i| weight(i) > 0.0).collect();
    order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)).then(a.cmp(&b)));
    for &index in &order {
        let cost = &costs[index];
        let _ = write!(text, "{:<26} {:>7}", cost.name(), cost.of(profile));
        for column in columns {
            let _ = match column.shown(index) {
                Some(slope) => write!(text, " {:>7.3} {:>8.1}", slope.elasticity, slope.by_unit),
                None => write!(text, " {:>7} {:>8}", ".", ""),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{} others: nothing that chance could not do",
        costs.len() - order.len()
    );
    text
}

impl Column {
    /// The slope, unless chance could make it.
    fn shown(&self, index: usize) -> Option<Slope> {
        let slope = self.slopes[index];
        (slope.elasticity.abs() >= self.chance).then_some(slope)
    }
}
