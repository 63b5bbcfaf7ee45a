//! `blksim calibrate`: measurements in, a profile and its residuals out.

use std::fmt::Write as _;
use std::path::Path;

use scenario::profile;
use sim::profile::MachineProfile;
use study::calibrate::{self, Calibration, Measurements, Run};

use crate::OK;
use crate::args::CalibrateArgs;
use crate::changes::{in_one_line, machine_of};
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile};
use crate::scenario::load;
use crate::text::read_text;

/// Fits and prints. The profile is written whole or not at all.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<u8, Error> {
    let text = read_text(&args.file)?;
    let measurements = Measurements::parse(&text).map_err(|what| in_one_line(&args.file, &what))?;
    let mut base = base(&measurements.base)?;
    let mut runs = Vec::new();
    for measured in &measurements.runs {
        let (scenario, _) = load(&measured.scenario)?;
        runs.push(Run::new(measured, scenario, &base)?);
    }
    let interrupt = Interrupt::install()?;
    let output = args.output.as_deref().map(OutputFile::open).transpose()?;
    if let Some(name) = &measurements.name {
        base.name.clone_from(name);
    }
    if let Some(description) = &measurements.description {
        base.description.clone_from(description);
    }
    let file = args.file.display().to_string();
    let fitted = with_fleet(&args.jobs, &interrupt, |fleet| {
        calibrate::calibrate(&base, &runs, &file, fleet)
    })?;
    output::print(&residuals(&fitted))?;
    if let Some(output) = output {
        let note = format!(
            "# Made by blksim {} calibrate from {}.\n",
            env!("CARGO_PKG_VERSION"),
            args.file.display()
        );
        output
            .put(&(note + &profile::to_toml(&fitted.profile)))?
            .keep()?;
    }
    Ok(OK)
}

/// A built-in profile or one in a file.
fn base(name: &str) -> Result<MachineProfile, Error> {
    let file = Path::new(name);
    if file.extension().is_some_and(|ending| ending == "toml") {
        return machine_of(file);
    }
    profile::built_in(name).map_err(|what| Error::usage("base", what))
}

fn residuals(fitted: &Calibration) -> String {
    let mut text = format!(
        "{:<28} {:<10} {:>12} {:>12} {:>7}\n",
        "run", "figure", "measured", "simulated", "ratio"
    );
    for residual in &fitted.residuals {
        let ratio = residual.simulated / residual.measured;
        let ratio = if ratio.is_finite() {
            format!("{ratio:.3}")
        } else {
            "-".to_owned()
        };
        let _ = writeln!(
            text,
            "{:<28} {:<10} {:>12.0} {:>12.0} {ratio:>7}",
            residual.run, residual.figure, residual.measured, residual.simulated
        );
    }
    text
}
