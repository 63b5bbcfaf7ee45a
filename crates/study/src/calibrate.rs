//! Calibration: a profile's costs from measurements of the machine.
//!
//! On one thread the work of an I/O is a sum of counts times costs, and the counts do not depend on
//! the costs. So each component of a published or measured profile fixes one factor for the steps
//! and labels that belong to it; within a component the weights stay those of the base profile.
//! Cache lines, atomics and container operations are hardware facts and are not changed. Costs that
//! only throughput shows are pinned by one run: a single constant, or one factor on all.
//!
//! Not here: topology and transfer times, which are facts. Read next: `measurements.rs`; for
//! samples of perf `samples.rs`, `symbols.rs` and `shares.rs`.

mod measurements;
mod samples;
mod shares;
mod symbols;

pub use measurements::{Measured, MeasuredRun, Measurements};
pub use samples::Samples;
pub use shares::Shares;
pub use symbols::Symbols;

use blkmq::path::Label;

use scenario::{ProfileFacts, Scenario};
use sim::cost::{Component, Spent, Step};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::error::Error;
use crate::fleet::Fleet;

/// Rounds at most. Counts hardly move with the costs, so two or three are enough.
const ROUNDS: u32 = 8;
/// Factors this near to one end the search.
const NEAR: f64 = 0.002;
/// A factor of one round is kept within this range.
const FACTOR: std::ops::RangeInclusive<f64> = 0.05..=20.0;
/// The pin of a run that fits one factor on all costs.
const ALL: &str = "all";
/// Halvings of the range in which a pinned constant is looked for.
const HALVINGS: u32 = 12;

/// Measurements that a built-in profile was fitted to.
pub fn measurements_of(profile: &str) -> Option<&'static str> {
    match profile {
        "ryzen-7950x" => Some(include_str!("../measurements/ryzen-7950x.toml")),
        "xeon-10c" => Some(include_str!("../measurements/xeon-10c.toml")),
        _ => None,
    }
}

/// One measured run: its scenario and its figures.
#[derive(Clone, Debug)]
pub struct Run {
    pub name: String,
    pub plan: Plan,
    pub measured: Measured,
}

/// One figure: measured and simulated with the calibrated profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    pub run: String,
    /// `iops`, or a component's cycles per I/O.
    pub figure: String,
    pub measured: f64,
    pub simulated: f64,
}

/// A calibrated profile and how well it fits.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub profile: MachineProfile,
    /// Every measured figure.
    pub residuals: Vec<Residual>,
}

/// Costs while they are fitted: not rounded.
#[derive(Clone, Debug)]
struct Costs {
    steps: Vec<f64>,
    labels: Vec<f64>,
}

/// The figures of one simulated run.
struct Simulated {
    iops: f64,
    ios: f64,
    spent: Spent,
    clock_mhz: f64,
}

impl Run {
    /// A measured run of this scenario, the one that it names, on this machine.
    pub fn new(
        measured: &MeasuredRun,
        mut scenario: Scenario,
        base: &MachineProfile,
    ) -> Result<Run, Error> {
        scenario = scenario.set(&format!("machine.profile={}", base.name))?;
        for assignment in &measured.set {
            scenario = scenario.set(assignment)?;
        }
        let info = ProfileFacts {
            name: &base.name,
            cpus: base.cpus(),
        };
        Ok(Run {
            name: measured.name.clone(),
            plan: scenario.plan(&[info])?,
            measured: measured
                .measured()
                .map_err(|what| Error::wrong("measurements", what))?,
        })
    }
}

/// Fits `base` to the runs. An error names the run that cannot be simulated, or a constant that
/// does not exist; `input` is the file of the error.
pub fn calibrate(
    base: &MachineProfile,
    runs: &[Run],
    input: &str,
    fleet: &Fleet,
) -> Result<Calibration, Error> {
    let bench = Bench { input, fleet };
    let mut profile = base.clone();
    let wrong = |what: String| Error::wrong(input, what);
    let mut costs = Costs::of(&profile).map_err(wrong)?;
    for _ in 0..ROUNDS {
        let simulated = bench.simulate_all(&profile, runs)?;
        let factors = Component::ALL.map(|component| factor(component, &costs, runs, &simulated));
        costs.scale(&factors);
        costs.write(&mut profile);
        if factors.iter().all(|factor| (factor - 1.0).abs() < NEAR) {
            break;
        }
    }
    for run in runs.iter().filter(|run| run.measured.pins.is_some()) {
        bench.pin(&mut profile, run)?;
    }
    let simulated = bench.simulate_all(&profile, runs)?;
    let residuals = runs
        .iter()
        .zip(&simulated)
        .flat_map(|(run, simulated)| residuals(run, simulated))
        .collect();
    Ok(Calibration { profile, residuals })
}

/// Where the runs of a calibration are made.
struct Bench<'a> {
    /// The file that errors name.
    input: &'a str,
    fleet: &'a Fleet,
}

impl Bench<'_> {
    fn simulate_all(
        &self,
        profile: &MachineProfile,
        runs: &[Run],
    ) -> Result<Vec<Simulated>, Error> {
        self.fleet.map(runs, |run| self.simulate(profile, run))
    }

    fn simulate(&self, profile: &MachineProfile, run: &Run) -> Result<Simulated, Error> {
        let wrong = |what: &str| self.wrong(run, what);
        let mut simulator = Simulator::new(&run.plan, profile).map_err(|what| wrong(&what))?;
        if let Outcome::Stalled(stall) = self.fleet.run(&mut simulator)? {
            return Err(wrong(&stall.to_string()));
        }
        let recorder = simulator.recorder();
        let directions = recorder.jobs.iter().flat_map(|job| &job.directions);
        let ios = directions.map(|direction| direction.ios).sum::<u64>() as f64;
        let time = recorder.until.since(recorder.from).0 as f64;
        if ios == 0.0 || time == 0.0 {
            return Err(wrong("nothing was measured"));
        }
        Ok(Simulated {
            iops: ios * 1e9 / time,
            ios,
            spent: recorder.spent.clone(),
            clock_mhz: profile.clock_mhz as f64,
        })
    }

    /// Looks for the value of one constant, or of one factor on all costs, that gives the measured
    /// throughput.
    fn pin(&self, profile: &mut MachineProfile, run: &Run) -> Result<(), Error> {
        let key = run.measured.pins.as_deref().unwrap_or_default();
        let goal = run.measured.iops;
        let goal = goal.ok_or_else(|| self.wrong(run, "pins needs iops"))?;
        if key == ALL {
            let costs = Costs::of(profile).map_err(|what| Error::wrong(self.input, what))?;
            return self.search(goal, *FACTOR.end(), |factor| {
                let mut scaled = costs.clone();
                scaled.scale(&[factor; Component::ALL.len()]);
                scaled.write(profile);
                Ok(self.simulate(profile, run)?.iops)
            });
        }
        let known = Step::ALL.iter().find(|step| step.key() == key);
        let Some(&step) = known else {
            let what = format!("pins = \"{key}\": neither \"{ALL}\" nor a step of [cycles]");
            return Err(self.wrong(run, &what));
        };
        let most = profile.cycles.of(step).max(50) * 16;
        self.search(goal, most as f64, |cycles| {
            *profile.cycles.of_mut(step) = cycles.round() as u64;
            Ok(self.simulate(profile, run)?.iops)
        })
    }

    /// Halves the range from 0 to `most`; more cost, fewer I/Os. The last value tried stays.
    fn search(
        &self,
        goal: f64,
        most: f64,
        mut iops_at: impl FnMut(f64) -> Result<f64, Error>,
    ) -> Result<(), Error> {
        let (best, worst) = (iops_at(0.0)?, iops_at(most)?);
        if !(worst..=best).contains(&goal) {
            let what = format!(
                "{goal} iops cannot be reached: no cost gives {best:.0}, the highest tried \
                 {worst:.0}"
            );
            return Err(Error::wrong(self.input, what));
        }
        let (mut low, mut high) = (0.0, most);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if iops_at(middle)? > goal {
                low = middle;
            } else {
                high = middle;
            }
        }
        iops_at(f64::midpoint(low, high)).map(|_| ())
    }

    fn wrong(&self, run: &Run, what: &str) -> Error {
        Error::wrong(self.input, format!("run {}: {what}", run.name))
    }
}

impl Simulated {
    /// Cycles per I/O of each component.
    fn cycles(&self) -> [f64; Component::ALL.len()] {
        let time = self.spent.by_component();
        time.map(|ps| ps as f64 * self.clock_mhz / 1e6 / self.ios)
    }
}

impl Costs {
    fn of(profile: &MachineProfile) -> Result<Costs, String> {
        let steps = Step::ALL.iter().map(|&step| profile.cycles.of(step) as f64);
        let labels = profile.label_cycles()?;
        Ok(Costs {
            steps: steps.collect(),
            labels: labels.into_iter().map(|cycles| cycles as f64).collect(),
        })
    }

    /// Cycles per I/O of a component that are counts times costs of this profile.
    fn priced(&self, component: Component, simulated: &Simulated) -> f64 {
        let steps = simulated.spent.steps();
        let steps = steps.filter(|(step, _)| step.component() == component);
        let steps = steps.map(|(step, sum)| self.steps[step as usize] * sum.count as f64);
        let labels = simulated.spent.labels();
        let labels = labels.filter(|&(label, _)| Component::of_label(label) == component);
        let labels =
            labels.map(|(label, sum)| self.labels[usize::from(label.0)] * sum.count as f64);
        (steps.sum::<f64>() + labels.sum::<f64>()) / simulated.ios
    }

    fn scale(&mut self, factors: &[f64; Component::ALL.len()]) {
        for (&step, cost) in Step::ALL.iter().zip(&mut self.steps) {
            if !step.is_delay() {
                *cost *= factors[step.component() as usize];
            }
        }
        for (label, cost) in Label::all().zip(&mut self.labels) {
            *cost *= factors[Component::of_label(label) as usize];
        }
    }

    /// Rounded into a profile; a positive cost stays positive.
    fn write(&self, profile: &mut MachineProfile) {
        let whole = |cost: f64| {
            if cost > 0.0 {
                cost.round().max(1.0) as u64
            } else {
                0
            }
        };
        for (&step, &cost) in Step::ALL.iter().zip(&self.steps) {
            *profile.cycles.of_mut(step) = whole(cost);
        }
        for (label, &cost) in Label::all().zip(&self.labels) {
            profile.labels.insert(label.name().to_owned(), whole(cost));
        }
    }
}

/// The factor that brings the component nearest to the measured values, by least squares over the
/// runs that measured it and are not only compared; 1 if none did.
fn factor(component: Component, costs: &Costs, runs: &[Run], simulated: &[Simulated]) -> f64 {
    let (mut product, mut square) = (0.0, 0.0);
    for (run, simulated) in runs.iter().zip(simulated) {
        let fitted = run.measured.cycles_of(component);
        let Some(measured) = fitted.filter(|_| !run.measured.compared) else {
            continue;
        };
        let priced = costs.priced(component, simulated);
        let info = simulated.cycles()[component as usize] - priced;
        product += priced * (measured - info.max(0.0));
        square += priced * priced;
    }
    if square == 0.0 {
        return 1.0;
    }
    (product / square).clamp(*FACTOR.start(), *FACTOR.end())
}

fn residuals(run: &Run, simulated: &Simulated) -> Vec<Residual> {
    let of = |figure: &str, measured: f64, simulated: f64| Residual {
        run: run.name.clone(),
        figure: figure.to_owned(),
        measured,
        simulated,
    };
    let cycles = simulated.cycles();
    let components = Component::ALL.into_iter().filter_map(|component| {
        let measured = run.measured.cycles_of(component)?;
        Some(of(component.name(), measured, cycles[component as usize]))
    });
    let iops = run.measured.iops;
    iops.map(|iops| of("iops", iops, simulated.iops))
        .into_iter()
        .chain(components)
        .collect()
}

#[cfg(test)]
mod tests;
