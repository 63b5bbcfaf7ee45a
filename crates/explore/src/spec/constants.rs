//! Constants of a configuration by name, with their values as text.

use thiserror::Error;

/// Why constants do not make a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SettingError {
    #[error("constant {0} is missing")]
    Missing(&'static str),
    /// A constant that the specification does not have.
    #[error("there is no constant {name}; expected {expected}")]
    Unknown { name: String, expected: String },
    /// A value that the constant cannot have.
    #[error("constant {name} = {value}: expected {expected}")]
    Value {
        name: &'static str,
        value: String,
        expected: String,
    },
}

/// Selects what TLC prints.
const RECORD: &str = "Record";

pub(crate) struct Constants<'a>(&'a [(String, String)]);

impl<'a> Constants<'a> {
    /// The constants, if each of them is in `names` or [`RECORD`].
    pub(crate) fn among(
        given: &'a [(String, String)],
        names: &[&str],
    ) -> Result<Constants<'a>, SettingError> {
        let known = |name: &str| name == RECORD || names.contains(&name);
        match given.iter().find(|(name, _)| !known(name)) {
            None => {
                let constants = Constants(given);
                if given.iter().any(|(name, _)| name == RECORD) {
                    constants.flag(RECORD)?;
                }
                Ok(constants)
            }
            Some((name, _)) => Err(SettingError::Unknown {
                name: name.clone(),
                expected: names.join(", "),
            }),
        }
    }

    fn get(&self, name: &'static str) -> Result<&str, SettingError> {
        let found = self.0.iter().find(|(known, _)| known == name);
        let (_, value) = found.ok_or(SettingError::Missing(name))?;
        Ok(value.trim())
    }

    pub(crate) fn number(
        &self,
        name: &'static str,
        least: u8,
        most: u8,
    ) -> Result<u8, SettingError> {
        let value = self.get(name)?;
        let number = value.parse().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| SettingError::Value {
            name,
            value: value.to_owned(),
            expected: format!("{least} to {most}"),
        })
    }

    pub(crate) fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, SettingError> {
        let value = self.get(name)?;
        let found = choices.iter().find(|(word, _)| *word == value);
        found
            .map(|&(_, choice)| choice)
            .ok_or_else(|| SettingError::Value {
                name,
                value: value.to_owned(),
                expected: choices
                    .iter()
                    .map(|(word, _)| *word)
                    .collect::<Vec<_>>()
                    .join(" or "),
            })
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, SettingError> {
        self.choice(name, &[("TRUE", true), ("FALSE", false)])
    }

    /// The number of elements of `{1, 2, 3}` or `{r1, r2, r3}`.
    pub(crate) fn set(&self, name: &'static str, most: usize) -> Result<u8, SettingError> {
        let value = self.get(name)?;
        let inside = value.strip_prefix('{').and_then(|v| v.strip_suffix('}'));
        let parts: Vec<&str> = inside.map_or(Vec::new(), |v| v.split(',').map(str::trim).collect());
        // In configurations the elements are model values: r1, r2.
        let counted = |(nth, part): (usize, &&str)| {
            part.strip_prefix('r').unwrap_or(part) == (nth + 1).to_string()
        };
        let count = parts.len();
        if !(1..=most).contains(&count) || !parts.iter().enumerate().all(counted) {
            return Err(SettingError::Value {
                name,
                value: value.to_owned(),
                expected: format!("{{1, 2, ...}}, up to {most}"),
            });
        }
        Ok(count as u8)
    }
}

/// The text of a value, as [`Constants::choice`] reads it. Panics if it has none.
pub(crate) fn word<T: PartialEq>(choices: &[(&str, T)], value: &T) -> String {
    let found = choices.iter().find(|(_, choice)| choice == value);
    let (word, _) = found.expect("the value is one of the specification's");
    (*word).to_owned()
}

/// A boolean as TLC prints it.
pub(crate) fn flag(flag: bool) -> String {
    if flag { "TRUE" } else { "FALSE" }.to_owned()
}
