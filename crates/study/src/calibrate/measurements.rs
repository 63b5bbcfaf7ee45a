//! The file of measurements that a calibration reads.

use std::collections::BTreeMap;

use serde::Deserialize;

use sim::cost::Component;

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
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Measurements, String> {
        let measurements: Measurements = toml::from_str(text).map_err(|e| e.to_string())?;
        if measurements.runs.is_empty() {
            return Err("there is no [[run]]: nothing was measured".to_owned());
        }
        for run in &measurements.runs {
            run.measured()?;
        }
        if measurements.runs.iter().all(|run| !run.fits) {
            return Err("no [[run]] fits: there is nothing to fit costs to".to_owned());
        }
        Ok(measurements)
    }
}

impl MeasuredRun {
    /// The figures. An error names the one that is wrong.
    pub fn measured(&self) -> Result<Measured, String> {
        let right = |value: f64| value.is_finite() && value > 0.0;
        if self.iops.is_some_and(|iops| !right(iops)) {
            return Err(format!("run {}: iops must be positive", self.name));
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
