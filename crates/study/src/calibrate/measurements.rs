//! The file of measurements that a calibration reads.

use std::collections::BTreeMap;

use serde::Deserialize;

use sim::cost::Component;

use super::shares::Shares;

/// Measurements of one machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurements {
    /// Profile to begin with: its facts stay, its weights within a component stay.
    pub base: String,
    /// Name of the new profile. Default: that of the base.
    pub name: Option<String>,
    /// Description of the machine in one line. Default: that of the base.
    pub description: Option<String>,
    /// Clock of the new profile while the runs were measured. Default: that of the base.
    pub clock_mhz: Option<u64>,
    #[serde(rename = "run")]
    pub runs: Vec<MeasuredRun>,
}

/// One run as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRun {
    /// Its name, for the table of residuals.
    pub name: String,
    /// A built-in scenario, FILE.toml or FILE.fio.
    pub scenario: String,
    /// Assignments as of `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    pub iops: Option<f64>,
    /// File with samples that perf printed, in place of `cycles_per_io`; `iops` is needed.
    pub perf: Option<String>,
    /// CPUs that were busy on average while perf recorded: those of all the samples that are not
    /// of the idle loop. Default: 1.
    pub busy_cpus: Option<f64>,
    /// The cost that this run's throughput pins: a key of `[cycles]`, or `all` for one factor on
    /// all costs.
    pub pins: Option<String>,
    /// Costs are fitted to its cycles; otherwise the fit predicts those.
    #[serde(default = "fits")]
    pub fits: bool,
    /// Cycles per I/O by component, as the report's `work` names them.
    #[serde(default)]
    pub cycles_per_io: BTreeMap<String, f64>,
}

fn fits() -> bool {
    true
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub iops: Option<f64>,
    /// The constant that its throughput pins.
    pub pins: Option<String>,
    /// Only compared: costs are fitted to others.
    pub compared: bool,
    cycles: [Option<f64>; Component::ALL.len()],
}

impl Measured {
    /// Nothing measured but this.
    pub fn new(iops: Option<f64>, pins: Option<String>) -> Measured {
        Measured {
            iops,
            pins,
            ..Measured::default()
        }
    }

    /// Cycles per I/O of a component, if they were measured.
    pub fn cycles_of(&self, component: Component) -> Option<f64> {
        self.cycles[component as usize]
    }

    /// Notes the cycles per I/O of a component.
    pub fn set_cycles(&mut self, component: Component, cycles: f64) {
        self.cycles[component as usize] = Some(cycles);
    }
}

impl Measurements {
    /// Those of one run.
    pub fn new(base: String, run: MeasuredRun) -> Measurements {
        Measurements {
            base,
            name: None,
            description: None,
            clock_mhz: None,
            runs: vec![run],
        }
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Measurements, String> {
        let measurements: Measurements = toml::from_str(text).map_err(|e| e.to_string())?;
        if measurements.runs.is_empty() {
            return Err("there is no [[run]]: nothing was measured".to_owned());
        }
        measurements.check()?;
        if measurements.runs.iter().all(|run| !run.fits) {
            return Err("no [[run]] fits: there is nothing to fit costs to".to_owned());
        }
        Ok(measurements)
    }

    /// An error names the figure that is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.runs
            .iter()
            .try_for_each(|run| run.measured().map(|_| ()))
    }
}

impl MeasuredRun {
    /// A run of a scenario under perf, which gives the run its name.
    pub fn of_perf(perf: String, scenario: String) -> MeasuredRun {
        MeasuredRun {
            name: perf.clone(),
            scenario,
            set: Vec::new(),
            iops: None,
            perf: Some(perf),
            busy_cpus: None,
            pins: None,
            fits: true,
            cycles_per_io: BTreeMap::new(),
        }
    }

    /// Takes the cycles per I/O from samples, at this clock.
    pub fn sampled(&mut self, shares: &Shares, clock_mhz: u64) -> Result<(), String> {
        if !self.cycles_per_io.is_empty() {
            return Err(format!("run {}: perf and cycles_per_io", self.name));
        }
        let iops = self.measured()?.iops.unwrap_or_default();
        let cycles = self.busy_cpus.unwrap_or(1.0) * clock_mhz as f64 * 1e6;
        self.cycles_per_io = shares.cycles_per_io(cycles / iops);
        if self.cycles_per_io.is_empty() {
            return Err(format!(
                "run {}: perf: no sample is of a known symbol",
                self.name
            ));
        }
        Ok(())
    }

    /// The figures. An error names the one that is wrong.
    pub fn measured(&self) -> Result<Measured, String> {
        let right = |value: f64| value.is_finite() && value > 0.0;
        if self.iops.is_some_and(|iops| !right(iops)) {
            return Err(format!("run {}: iops must be positive", self.name));
        }
        if self.busy_cpus.is_some_and(|cpus| !right(cpus)) {
            return Err(format!("run {}: busy_cpus must be positive", self.name));
        }
        if self.iops.is_none() && self.perf.is_some() {
            return Err(format!("run {}: perf needs iops", self.name));
        }
        if self.busy_cpus.is_some() && self.perf.is_none() {
            return Err(format!("run {}: busy_cpus needs perf", self.name));
        }
        if self.iops.is_none() && self.cycles_per_io.is_empty() {
            return Err(format!("run {}: neither iops nor cycles_per_io", self.name));
        }
        if !self.fits && self.pins.is_some() {
            return Err(format!(
                "run {}: pins: a run that does not fit fixes nothing",
                self.name
            ));
        }
        let mut measured = Measured::new(self.iops, self.pins.clone());
        measured.compared = !self.fits;
        for (name, &cycles) in &self.cycles_per_io {
            let known = Component::ALL.into_iter().find(|c| c.name() == name);
            let Some(component) = known else {
                let names = Component::ALL.map(Component::name).join(", ");
                return Err(format!(
                    "run {}: cycles_per_io.{name}: no such component; there are: {names}",
                    self.name
                ));
            };
            if !cycles.is_finite() || cycles < 0.0 {
                return Err(format!(
                    "run {}: cycles_per_io.{name} must not be negative",
                    self.name
                ));
            }
            measured.set_cycles(component, cycles);
        }
        Ok(measured)
    }
}
