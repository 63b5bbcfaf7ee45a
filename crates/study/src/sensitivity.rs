//! The effect of each cost of a profile on throughput, in every published row that runs on it.
//!
//! Each cost is raised and lowered by a fifth separately, with several seeds. Two wrong costs that
//! hide each other in one row seldom do so in all. Contended rows are chaotic: the effect of chance
//! on their throughput is measured first, and slopes that chance could cause are not shown.
//! Read next: `sensitivity/cost.rs`.

mod cost;

pub use cost::Cost;

use blkmq::path::Label;
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::error::Error;
use crate::fleet::Fleet;
use crate::reproduce::{Row, built_in, info, published};
use crate::sweep::Load;

/// How much a cost is raised and lowered, percent of itself.
const CHANGE: u64 = 20;
/// Seeds that measure the effect of chance on the throughput of a row.
const CHANCE_SEEDS: u64 = 8;
/// Slopes are shown from so many standard deviations on.
const DEVIATIONS: f64 = 3.0;
/// A cost whose percent changes throughput by less in all rows is left out.
const LEAST: f64 = 0.01;

/// How long runs are, and how many.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Measured time of each, as of `job.runtime`.
    pub runtime: String,
    /// Seeds of each, of which the mean is taken.
    pub seeds: u64,
}

/// Throughput of a row at the costs as they are, and for each cost its two answers.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// IOPS with unchanged costs.
    pub iops: f64,
    /// Elasticities below this may be chance.
    pub chance: f64,
    slopes: Vec<Slope>,
}

/// The effect of a cost on a row.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    /// IOPS for one unit of the cost.
    pub by_unit: f64,
    /// Percent of throughput for one percent of the cost.
    pub elasticity: f64,
}

impl Column {
    /// The slope of a cost, by its index, unless chance could make it.
    pub fn shown(&self, index: usize) -> Option<Slope> {
        let slope = self.slopes[index];
        (slope.elasticity.abs() >= self.chance).then_some(slope)
    }
}

/// A run to be made: a row, a machine, a seed.
struct Point<'a> {
    plan: &'a Plan,
    profile: &'a MachineProfile,
    seed: u64,
}

/// A cost raised and lowered: the profile, and by how much of the cost's unit.
struct Changed {
    dear: (MachineProfile, i64),
    cheap: (MachineProfile, i64),
}

/// A column for each published row that runs on this machine.
pub fn columns(
    profile: &MachineProfile,
    costs: &[Cost],
    effort: &Effort,
    load: Load<'_>,
    fleet: &Fleet,
) -> Result<Vec<Column>, Error> {
    let rows = rows_on(profile, effort, load)?;
    let changed: Vec<Changed> = costs
        .iter()
        .map(|cost| Changed {
            dear: cost.scaled(profile, 100 + CHANGE),
            cheap: cost.scaled(profile, 100 - CHANGE),
        })
        .collect();
    // As many seeds for each row and each profile: all runs at once, so that cores that are through
    // with one row go on with the next.
    let run = |points: &[(usize, &MachineProfile)], seeds: u64| {
        let point = |&(row, profile): &(usize, _)| {
            let plan = &rows[row].1;
            (1..=seeds).map(move |seed| Point {
                plan,
                profile,
                seed,
            })
        };
        let points: Vec<Point<'_>> = points.iter().flat_map(point).collect();
        fleet.map(&points, |point| ran(point, fleet))
    };
    let seeds = effort.seeds as usize;
    let unchanged: Vec<_> = (0..rows.len()).map(|row| (row, profile)).collect();
    let chance_seeds = CHANCE_SEEDS.max(effort.seeds);
    let unchanged = run(&unchanged, chance_seeds)?;
    let unchanged: Vec<&[Ran]> = unchanged.chunks(chance_seeds as usize).collect();
    let is_paid = |row: usize, cost: &Cost| {
        let mut runs = unchanged[row][..seeds].iter();
        runs.any(|ran| cost.is_paid(profile, &ran.labels))
    };
    let mut points = Vec::new();
    for row in 0..rows.len() {
        let paid = costs
            .iter()
            .zip(&changed)
            .filter(|(cost, _)| is_paid(row, cost));
        points.extend(
            paid.flat_map(|(_, Changed { dear, cheap })| [(row, &dear.0), (row, &cheap.0)]),
        );
    }
    let mut changed_runs = run(&points, effort.seeds)?.into_iter();
    let columns = rows.iter().enumerate().map(|(row, (name, _))| {
        let base: Vec<f64> = unchanged[row].iter().map(|ran| ran.iops).collect();
        // The price of a label that no run executes changes no run.
        let mut iops = base[..CHANCE_SEEDS as usize].to_vec();
        for cost in costs {
            for _ in 0..2 {
                match is_paid(row, cost) {
                    true => iops.extend(changed_runs.by_ref().take(seeds).map(|ran| ran.iops)),
                    false => iops.extend(&base[..seeds]),
                }
            }
        }
        column(name.clone(), &iops, profile, costs, &changed, effort.seeds)
    });
    Ok(columns.collect())
}

/// Every published row that runs on this machine, by table and name.
fn rows_on(
    profile: &MachineProfile,
    effort: &Effort,
    load: Load<'_>,
) -> Result<Vec<(String, Plan)>, Error> {
    let mut rows = Vec::new();
    for table in published().tables {
        for row in &table.rows {
            if let Some(plan) = plan_of(row, profile, effort, load)? {
                rows.push((format!("{}: {}", table.name, row.name), plan));
            }
        }
    }
    Ok(rows)
}

/// The plan of a row if it runs on this machine.
fn plan_of(
    row: &Row,
    profile: &MachineProfile,
    effort: &Effort,
    load: Load<'_>,
) -> Result<Option<Plan>, Error> {
    let Some(name) = &row.scenario else {
        return Ok(None);
    };
    let (mut scenario, _) = load(name)?;
    for assignment in &row.set {
        scenario = scenario.set(assignment)?;
    }
    let runtime = format!("job.runtime={}", effort.runtime);
    let wrong = || Error::wrong("--runtime", "expected a time above 0, such as 20ms or 1s");
    scenario = scenario.set(&runtime).map_err(|_| wrong())?;
    scenario = scenario.set("job.ramp_time=2ms")?;
    // Rows are known to be right, so the setting made here is at fault.
    let plan = scenario.plan(&info(&built_in()?)).map_err(|_| wrong())?;
    Ok((plan.machine.profile == profile.name).then_some(plan))
}

/// From the throughputs of a row, in the order in which its points were named.
fn column(
    name: String,
    iops: &[f64],
    profile: &MachineProfile,
    costs: &[Cost],
    changed: &[Changed],
    seeds: u64,
) -> Column {
    let (chance, of_costs) = iops.split_at(CHANCE_SEEDS as usize);
    let (base, deviation) = spread(chance);
    let mut means = of_costs
        .chunks(seeds as usize)
        .map(|iops| iops.iter().sum::<f64>() / seeds as f64);
    let mut mean = || means.next().expect("each change has its runs");
    let slope = |(cost, changed): (&Cost, &Changed)| {
        let (fewer, more) = (mean(), mean());
        let by_unit = (fewer - more) / (changed.dear.1 - changed.cheap.1) as f64;
        Slope {
            by_unit,
            elasticity: by_unit * cost.of(profile) as f64 / base,
        }
    };
    let slopes = costs.iter().zip(changed).map(slope).collect();
    // Of the difference of two means, over the change of the cost.
    let of_slope = deviation * (2.0 / seeds as f64).sqrt() / (2.0 * CHANGE as f64 / 100.0);
    Column {
        name,
        iops: base,
        chance: (DEVIATIONS * of_slope / base).max(LEAST),
        slopes,
    }
}

/// Mean and standard deviation of the throughput over seeds, all costs as they are.
fn spread(all: &[f64]) -> (f64, f64) {
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let squares = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0)).sqrt())
}

/// Throughput of a run, and the labels that it executed.
struct Ran {
    iops: f64,
    labels: Vec<Label>,
}

fn ran(point: &Point<'_>, fleet: &Fleet) -> Result<Ran, Error> {
    let profile = point.profile;
    let wrong = |what: String| Error::wrong(format!("machine {}", profile.name), what);
    let mut plan = point.plan.clone();
    plan.seed = point.seed;
    let mut simulator = Simulator::new(&plan, profile).map_err(wrong)?;
    if let Outcome::Stalled(stall) = fleet.run(&mut simulator)? {
        return Err(Error::wrong(plan.name.clone(), stall.to_string()));
    }
    let recorder = simulator.recorder();
    let directions = recorder.jobs.iter().flat_map(|job| &job.directions);
    let ios = directions.map(|direction| direction.ios).sum::<u64>() as f64;
    let spent = &recorder.spent;
    Ok(Ran {
        iops: ios * 1e9 / recorder.until.since(recorder.from).0.max(1) as f64,
        labels: Label::all()
            .filter(|label| spent.has_executed(*label))
            .collect(),
    })
}
