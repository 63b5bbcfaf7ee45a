//! The tables with one mechanism of the model switched off and the profiles fitted again to the
//! runs of one thread.

use std::fmt::Write as _;

use study::ablation::{Mechanism, profiles_without};
use study::fleet::Fleet;
use study::reproduce::{Figure, built_in, named, run_all};

use crate::scenario::loaded;

/// One line a figure: published, simulated, and without each mechanism; `*` marks figures out of
/// their tolerance.
pub(super) fn matrix_of_all(quick: bool, fleet: &Fleet) -> Result<String, study::error::Error> {
    let mut sets = vec![built_in()?];
    sets.extend(profiles_without(&Mechanism::ALL, &loaded, fleet)?);
    let done = run_all(&sets, quick, &loaded, fleet)?;
    let names = std::iter::once("nothing").chain(Mechanism::ALL.map(Mechanism::name));
    let columns: Vec<(&str, Vec<(String, Figure)>)> =
        names.zip(done.iter().map(|done| named(done))).collect();
    Ok(matrix(&columns))
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
