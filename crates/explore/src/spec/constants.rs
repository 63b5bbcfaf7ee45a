//! Constants of a specification: one table of each reads configurations and writes schedules.

use blkmq::schedule::view;
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

/// Selects what TLC prints; every specification has it.
const RECORD: &str = "Record";

/// A constant, and what its values are in a setting. Of its values the first one is written that
/// leaves the setting as it is.
pub(crate) struct Constant<S: 'static> {
    name: &'static str,
    values: Values<S>,
}

/// A word, and the setting that it makes.
pub(crate) type Word<S> = (&'static str, fn(&mut S));

enum Values<S: 'static> {
    Number(u8, fn(&S) -> u8, fn(&mut S) -> &mut u8),
    Set(u8, fn(&mut S) -> &mut u8),
    Flag(fn(&mut S, bool)),
    Word(&'static [Word<S>]),
    Follows(fn(&S) -> bool, fn(&mut S)),
}

/// The name of a constant, for a table of constants.
pub(crate) struct Name(pub(crate) &'static str);

impl Name {
    const fn is<S>(self, values: Values<S>) -> Constant<S> {
        let name = self.0;
        Constant { name, values }
    }

    /// From `least` to a number that earlier constants may lower.
    pub(crate) const fn number<S>(
        self,
        least: u8,
        most: fn(&S) -> u8,
        at: fn(&mut S) -> &mut u8,
    ) -> Constant<S> {
        self.is(Values::Number(least, most, at))
    }

    /// `{1, 2, 3}` or `{r1, r2, r3}`, at most so many: their number.
    pub(crate) const fn set<S>(self, most: u8, at: fn(&mut S) -> &mut u8) -> Constant<S> {
        self.is(Values::Set(most, at))
    }

    pub(crate) const fn flag<S>(self, set: fn(&mut S, bool)) -> Constant<S> {
        self.is(Values::Flag(set))
    }

    /// One of these words, in quotes.
    pub(crate) const fn word<S>(self, words: &'static [Word<S>]) -> Constant<S> {
        self.is(Values::Word(words))
    }

    /// A flag that follows from the other constants, and what another value of it changes.
    pub(crate) const fn follows<S>(self, is: fn(&S) -> bool, other: fn(&mut S)) -> Constant<S> {
        self.is(Values::Follows(is, other))
    }
}

/// The setting that `given` makes of one in which no constant has its value yet.
pub(crate) fn read<S>(
    table: &[Constant<S>],
    mut setting: S,
    given: &[(String, String)],
) -> Result<S, SettingError> {
    let known = |name: &str| name == RECORD || table.iter().any(|c| c.name == name);
    if let Some((name, _)) = given.iter().find(|(name, _)| !known(name)) {
        let names: Vec<&str> = table.iter().map(|c| c.name).collect();
        return Err(SettingError::Unknown {
            name: name.clone(),
            expected: names.join(", "),
        });
    }
    if let Some((_, value)) = given.iter().find(|(name, _)| name == RECORD) {
        flag_of(RECORD, value)?;
    }
    let mut rows: Vec<&Constant<S>> = table.iter().collect();
    rows.sort_by_key(|constant| matches!(constant.values, Values::Follows(..)));
    for Constant { name, values } in rows {
        let found = given.iter().find(|(known, _)| known == name);
        let (_, value) = found.ok_or(SettingError::Missing(name))?;
        values.read(&mut setting, name, value.trim())?;
    }
    Ok(setting)
}

/// All constants of a setting, as [`read`] reads them.
pub(crate) fn written<S: Clone + PartialEq>(
    table: &[Constant<S>],
    setting: &S,
) -> Vec<(String, String)> {
    let each = table.iter();
    each.map(|constant| (constant.name.to_owned(), constant.values.text(setting)))
        .collect()
}

impl<S> Values<S> {
    fn read(&self, setting: &mut S, name: &'static str, value: &str) -> Result<(), SettingError> {
        let wrong = |expected| SettingError::Value {
            name,
            value: value.to_owned(),
            expected,
        };
        match self {
            Values::Number(least, most, at) => {
                let most = most(setting);
                let number = value.parse().ok().filter(|n| (*least..=most).contains(n));
                *at(setting) = number.ok_or_else(|| wrong(format!("{least} to {most}")))?;
            }
            Values::Set(most, at) => {
                let count = count_of(value).filter(|count| count <= most);
                let expected = || wrong(format!("{{1, 2, ...}}, up to {most}"));
                *at(setting) = count.ok_or_else(expected)?;
            }
            Values::Flag(set) => set(setting, flag_of(name, value)?),
            Values::Word(words) => {
                let found = words.iter().find(|(word, _)| quoted(word) == value);
                let all = || {
                    words
                        .iter()
                        .map(|(word, _)| quoted(word))
                        .collect::<Vec<_>>()
                };
                let (_, set) = found.ok_or_else(|| wrong(all().join(" or ")))?;
                set(setting);
            }
            Values::Follows(is, other) => {
                if flag_of(name, value)? != is(setting) {
                    other(setting);
                }
            }
        }
        Ok(())
    }
}

impl<S: Clone + PartialEq> Values<S> {
    fn text(&self, setting: &S) -> String {
        let same = |set: &dyn Fn(&mut S)| {
            let mut changed = setting.clone();
            set(&mut changed);
            changed == *setting
        };
        match self {
            Values::Number(_, _, at) => at(&mut setting.clone()).to_string(),
            Values::Set(_, at) => {
                let elements = 1..=*at(&mut setting.clone());
                view::set(elements.map(|element| element.to_string()))
            }
            Values::Flag(set) => view::flag(same(&|changed| set(changed, true))),
            Values::Word(words) => {
                let found = words.iter().find(|(_, set)| same(set));
                quoted(found.expect("the setting is one of the specification's").0)
            }
            Values::Follows(is, _) => view::flag(is(setting)),
        }
    }
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

fn flag_of(name: &'static str, value: &str) -> Result<bool, SettingError> {
    match value {
        "TRUE" => Ok(true),
        "FALSE" => Ok(false),
        _ => Err(SettingError::Value {
            name,
            value: value.to_owned(),
            expected: "TRUE or FALSE".to_owned(),
        }),
    }
}

/// The number of elements of `{1, 2, 3}` or, in configurations, of model values: `{r1, r2, r3}`.
fn count_of(value: &str) -> Option<u8> {
    let inside = value.strip_prefix('{')?.strip_suffix('}')?;
    let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
    let is = |number: i32, part: &str| part.strip_prefix('r').unwrap_or(part) == number.to_string();
    let in_order = (1..).zip(&parts).all(|(number, part)| is(number, part));
    u8::try_from(parts.len()).ok().filter(|_| in_order)
}

#[cfg(test)]
mod tests;
