//! Parameters of devices. Each is declared once (`build/drivers/*.rs`): its name, values, unit,
//! default and meaning. Keys of a scenario, their errors and docs/reference/devices.md follow from
//! that.

use std::ops::RangeInclusive;

use toml::Value;

/// A parameter of a device type.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the module parameter, or the simulator's own.
    pub name: &'static str,
    pub values: Values,
    /// Its value if none is written.
    pub default: Usual,
    pub meaning: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Whole numbers of a unit, from the first to the second.
    Numbers(u64, u64, &'static str),
    /// Bytes of a logical block.
    Block,
    /// 0 or 1, true or false.
    Switch,
    /// One of these words; the first is the default.
    Words(&'static [&'static str]),
}

/// The value if none is written.
#[derive(Clone, Copy, Debug)]
pub enum Usual {
    Is(u64),
    /// It depends on other settings, in words.
    Depends(&'static str),
}

use Usual::{Depends, Is};

/// Whole numbers of a unit.
pub(super) const fn number(
    name: &'static str,
    range: RangeInclusive<u64>,
    unit: &'static str,
    default: u64,
    meaning: &'static str,
) -> Parameter {
    Parameter {
        name,
        values: Values::Numbers(*range.start(), *range.end(), unit),
        default: Is(default),
        meaning,
    }
}

/// A switch that is off.
pub(super) const fn switch(name: &'static str, meaning: &'static str) -> Parameter {
    Parameter {
        name,
        values: Values::Switch,
        default: Is(0),
        meaning,
    }
}

impl Parameter {
    /// Bytes of a logical block.
    pub(super) const fn block(name: &'static str) -> Parameter {
        Parameter {
            name,
            values: Values::Block,
            default: Is(512),
            meaning: "logical block size",
        }
    }

    /// One of some words.
    pub(super) const fn word(
        name: &'static str,
        words: &'static [&'static str],
        meaning: &'static str,
    ) -> Parameter {
        Parameter {
            name,
            values: Values::Words(words),
            default: Depends(words[0]),
            meaning,
        }
    }

    /// The same with a default that depends on something.
    pub(super) const fn or(self, default: &'static str) -> Parameter {
        Parameter {
            default: Depends(default),
            ..self
        }
    }

    /// A parameter with this value; the error says which values it takes.
    pub(super) fn takes(&self, value: &Value) -> Result<(), String> {
        let number = as_number(value);
        let written = match value {
            Value::String(text) => format!("`{text}`"),
            other => other.to_string(),
        };
        match self.values {
            Values::Numbers(least, most, unit) => match (value, number) {
                (Value::Integer(_), Some(number)) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("{written} is not {least} to {most}{}", blank(unit))),
            },
            Values::Block => match number.filter(|_| value.is_integer()) {
                Some(512 | 1024 | 2048 | 4096) => Ok(()),
                _ => Err(format!("{written} is none of 512, 1024, 2048, 4096 bytes")),
            },
            Values::Switch => match number {
                Some(0 | 1) => Ok(()),
                _ => Err(format!("{written} is no switch: true, false, 1 or 0")),
            },
            Values::Words(words) => match value.as_str().filter(|word| words.contains(word)) {
                Some(_) => Ok(()),
                None => Err(format!("{written} is neither {}", words.join(" nor "))),
            },
        }
    }
}

/// A unit after a number.
fn blank(unit: &str) -> String {
    if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    }
}

/// A number or a switch as a number, a switch also as modules take it.
pub(super) fn as_number(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Boolean(on) => Some(u64::from(*on)),
        Value::String(text) if text.eq_ignore_ascii_case("y") => Some(1),
        Value::String(text) if text.eq_ignore_ascii_case("n") => Some(0),
        _ => None,
    }
}
