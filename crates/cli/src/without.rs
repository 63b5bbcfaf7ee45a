//! `--without`: mechanisms of the model, by name.
//!
//! Their descriptions and their switches: `study::ablation`.

use study::ablation::Mechanism;

use crate::error::Error;

/// Names of all mechanisms, for help and errors.
pub(crate) fn mechanisms() -> String {
    Mechanism::ALL.map(Mechanism::name).join(", ")
}

pub(crate) fn mechanism(name: &str) -> Result<Mechanism, Error> {
    Mechanism::by_name(name).ok_or_else(|| {
        let names = mechanisms();
        let what = format!("there is no mechanism `{name}`; there are: {names}");
        Error::usage("--without", what)
    })
}

/// Mechanisms by their names, each once.
pub(crate) fn distinct(names: &[String]) -> Result<Vec<Mechanism>, Error> {
    let mut all = Vec::new();
    for name in names {
        let one = mechanism(name)?;
        if all.contains(&one) {
            return Err(Error::usage("--without", format!("{name} is there twice")));
        }
        all.push(one);
    }
    Ok(all)
}
