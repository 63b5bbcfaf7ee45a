//! Constants of a configuration by name, as they stand in a file.

use thiserror::Error;

/// Why constants are no configuration.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SettingError {
    /// One that must be there.
    #[error("constant {0} is missing")]
    Missing(&'static str),
    /// One that the specification does not have.
    #[error("there is no constant {name}; expected {expected}")]
    Unknown {
        /// As it was given.
        name: String,
        /// Those that there are.
        expected: String,
    },
    /// A value that is not one of its.
    #[error("constant {name} = {value}: expected {expected}")]
    Value {
        /// The constant.
        name: &'static str,
        /// What it was given.
        value: String,
        /// What would be right.
        expected: String,
    },
}

/// Constants by name.
pub(crate) struct Constants<'a>(&'a [(String, String)]);

impl<'a> Constants<'a> {
    /// These, if the specification has no others than `names`. `Record` tells TLC what to print.
    pub(crate) fn among(
        given: &'a [(String, String)],
        names: &[&str],
    ) -> Result<Constants<'a>, SettingError> {
        let known = |name: &str| name == "Record" || names.contains(&name);
        match given.iter().find(|(name, _)| !known(name)) {
            None => Ok(Constants(given)),
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

    /// `{1, 2, 3}`: how many.
    pub(crate) fn set(&self, name: &'static str, most: usize) -> Result<u8, SettingError> {
        let value = self.get(name)?;
        let inside = value.strip_prefix('{').and_then(|v| v.strip_suffix('}'));
        let parts = inside.map(|inside| inside.split(',').filter(|part| !part.trim().is_empty()));
        let count = parts.map_or(0, Iterator::count);
        if !(1..=most).contains(&count) {
            return Err(SettingError::Value {
                name,
                value: value.to_owned(),
                expected: format!("a set of 1 to {most}"),
            });
        }
        Ok(count as u8)
    }
}

/// A truth value as TLC prints it.
pub(crate) fn flag(flag: bool) -> String {
    if flag { "TRUE" } else { "FALSE" }.to_owned()
}
