//! The tables with one mechanism of the model switched off and the profiles fitted anew to the runs
//! of one thread.

use std::fmt::Write as _;

use sim::ablation::Mechanism;
use sim::calibrate::{self, Measurements, measurements_of};
use sim::profile::MachineProfile;
use sim::reproduce::Figure;

use super::{built_in, named, run_all};
use crate::OK;
use crate::calibrate::planned;
use crate::error::Error;
use crate::output;

/// The built-in profiles without a mechanism, fitted anew.
pub(super) fn profiles_without(name: &str) -> Result<Vec<MachineProfile>, Error> {
    let Some(mechanism) = Mechanism::by_name(name) else {
        let names = Mechanism::ALL.map(Mechanism::name).join(", ");
        let what = format!("there is no mechanism `{name}`; there are: {names}");
        return Err(Error::usage("--without", what));
    };
    let profiles = built_in()?.into_iter();
    profiles.map(|profile| fitted(profile, mechanism)).collect()
}

fn fitted(mut profile: MachineProfile, mechanism: Mechanism) -> Result<MachineProfile, Error> {
    mechanism.switch_off(&mut profile);
    let Some(text) = measurements_of(&profile.name) else {
        return Ok(profile);
    };
    let wrong = |what: String| Error::usage(format!("machine {}", profile.name), what);
    let measurements = Measurements::parse(text).map_err(wrong)?;
    let runs = measurements.runs.iter();
    let runs = runs.map(|run| planned(run, &profile));
    let runs = runs.collect::<Result<Vec<_>, Error>>()?;
    Ok(calibrate::calibrate(&profile, &runs)
        .map_err(wrong)?
        .profile)
}

/// One line a figure: published, simulated, and without each mechanism; `*` marks what is out of
/// its tolerance.
pub(super) fn print_all(quick: bool) -> Result<u8, Error> {
    let whole = named(&run_all(&built_in()?, quick)?);
    let mut columns: Vec<(&str, Vec<(String, Figure)>)> = vec![("nothing", whole)];
    for mechanism in Mechanism::ALL {
        let profiles = profiles_without(mechanism.name())?;
        columns.push((mechanism.name(), named(&run_all(&profiles, quick)?)));
    }
    output::print(&matrix(&columns))?;
    Ok(OK)
}

fn matrix(columns: &[(&str, Vec<(String, Figure)>)]) -> String {
    let mut text = format!("{:<47} {:>8}", "thousands of IOPS; without", "published");
    for (name, _) in columns {
        let _ = write!(text, "{name:>9}");
    }
    text.push('\n');
    let figures = &columns[0].1;
    for (index, (table, figure)) in figures.iter().enumerate() {
        if index == 0 || figures[index - 1].0 != *table {
            let _ = writeln!(text, "{table}");
        }
        let (unit, digits) = match figure.figure {
            "IOPS" => (1000.0, 1),
            name if name.contains("ratio") => (1.0, 3),
            _ => (1.0, 1),
        };
        let _ = write!(text, "  {:<35} {:<9}", figure.row, figure.figure);
        let _ = write!(text, " {:>8.digits$}", figure.published / unit);
        for (_, figures) in columns {
            let figure = &figures[index].1;
            let mark = if figure.within { ' ' } else { '*' };
            let _ = write!(text, " {:>7.digits$}{mark}", figure.simulated / unit);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let _ = write!(text, "{:<56}", "within their tolerance");
    for (_, figures) in columns {
        let within = figures.iter().filter(|(_, f)| f.within).count();
        let _ = write!(text, "{within:>8} ");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}
