//! Files of queue/iosched/: one table per scheduler, for scenarios, reports, capture folders and
//! documentation.
//!
//! Kernel: include/linux/elevator.h struct elv_fs_entry, lib/kstrtox.c (v6.1, v6.12).

use core::fmt;

use crate::rules::Rules;

#[derive(Debug)]
pub struct Attribute<S> {
    /// The file in queue/iosched/.
    pub name: &'static str,
    /// Unit, range and default, for the documentation.
    pub about: &'static str,
    /// The value that a read of the file shows.
    pub show: fn(&S) -> Value,
    /// The effect of a write.
    pub store: Store<S>,
}

/// The table of a scheduler's attributes: name and text, value shown and effect of a write.
macro_rules! attributes {
    ($($name:literal is $about:literal, $show:expr, $Kind:ident($store:expr);)+) => {
        &[$($crate::elevator::attribute::Attribute {
            name: $name,
            about: $about,
            show: $show,
            store: $crate::elevator::attribute::Store::$Kind($store),
        }),+]
    };
}
pub(super) use attributes;

/// The value of an attribute: any 64-bit integer, signed or unsigned.
pub type Value = i128;

/// The kind of number that a write takes, and its effect.
#[derive(Debug)]
pub enum Store<S> {
    /// kstrtoint() with base 0; the scheduler clamps silently.
    Int(fn(&mut S, i32)),
    /// kstrtoull() with base 10.
    Long(fn(&mut S, u64)),
}

impl<S> Store<S> {
    const INT: &'static str = "-2147483648 to 2147483647";
    const LONG: &'static str = "0 to 18446744073709551615";

    /// The numbers that a write takes.
    pub fn range(&self) -> &'static str {
        match self {
            Store::Int(_) => Self::INT,
            Store::Long(_) => Self::LONG,
        }
    }
}

pub trait Attributes: Sized + 'static {
    /// The scheduler's name, for errors.
    const SCHEDULER: &'static str;
    /// All attributes, in the order in which they are shown.
    const TABLE: &'static [Attribute<Self>];

    /// Adapts the settings to a kernel with these rules, and to a rotational or other drive.
    /// Default: all kernels have the same settings.
    fn follow(&mut self, _rules: &Rules, _rotational: bool) {}

    /// depth_updated was called since the scheduler was chosen. Default: it changes nothing that
    /// the defaults do not have.
    fn depth_was_updated(&mut self) {}

    /// The kernel with the adopted rules has this attribute. Default: all kernels have all.
    fn has(&self, _name: &str) -> bool {
        true
    }

    /// async_depth is the queue's (v7.0). Default: it is not.
    fn has_depth_of_queue(&self) -> bool {
        false
    }

    /// queue_async_depth_store(): none is no number.
    fn store_async_depth(&mut self, at: &Attribute<Self>, text: &str) -> Result<(), StoreError> {
        let depth = parse_long(at.name, text)?;
        match at.store {
            _ if depth == 0 => {
                let (name, text) = (at.name, text.trim_end().to_owned());
                return Err(StoreError::NotANumber { name, text });
            }
            Store::Int(store) => store(self, depth.min(i32::MAX as u64) as i32),
            Store::Long(store) => store(self, depth),
        }
        Ok(())
    }

    /// Writes `text` to the attribute `name`, as a write to sysfs would.
    fn store(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let Some(attribute) = Self::TABLE.iter().find(|a| a.name == name) else {
            return Err(StoreError::UnknownAttribute {
                scheduler: Self::SCHEDULER,
                name: name.to_owned(),
                known: Self::TABLE.iter().map(|a| a.name).collect(),
            });
        };
        if !self.has(name) {
            let known = Self::TABLE.iter().map(|a| a.name);
            return Err(StoreError::NotInKernel {
                scheduler: Self::SCHEDULER,
                name: name.to_owned(),
                known: known.filter(|known| self.has(known)).collect(),
            });
        }
        if name == "async_depth" && self.has_depth_of_queue() {
            return self.store_async_depth(attribute, text);
        }
        match attribute.store {
            Store::Int(store) => store(self, parse_int(attribute.name, text)?),
            Store::Long(store) => store(self, parse_long(attribute.name, text)?),
        }
        Ok(())
    }

    /// Names and values of all attributes as sysfs shows them.
    fn shown(&self) -> Vec<(&'static str, Value)> {
        let there = Self::TABLE.iter().filter(|a| self.has(a.name));
        there.map(|a| (a.name, (a.show)(self))).collect()
    }
}

/// Why a store into an attribute was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// The scheduler has no attribute of this name.
    UnknownAttribute {
        /// The scheduler whose attributes were searched.
        scheduler: &'static str,
        name: String,
        known: Vec<&'static str>,
    },
    /// Only kernels with other rules have the attribute.
    NotInKernel {
        /// The scheduler whose attributes were searched.
        scheduler: &'static str,
        name: String,
        /// The attributes that the kernel has.
        known: Vec<&'static str>,
    },
    /// The text is not an integer: decimal, 0x hexadecimal or 0 octal, with a sign or without.
    NotANumber { name: &'static str, text: String },
    /// The number is no 32-bit signed or no 64-bit unsigned integer, as the attribute takes.
    /// (Numbers in range are clamped silently.)
    OutOfRange {
        name: &'static str,
        text: String,
        range: &'static str,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::UnknownAttribute {
                scheduler,
                name,
                known,
            } if known.is_empty() => write!(f, "{scheduler} has no attribute, not {name:?} either"),
            StoreError::UnknownAttribute {
                scheduler,
                name,
                known,
            } => write!(
                f,
                "{scheduler} has no attribute {name:?}; it has {}",
                known.join(", ")
            ),
            StoreError::NotInKernel {
                scheduler,
                name,
                known,
            } => write!(
                f,
                "{scheduler} of this kernel has no attribute {name:?}; it has {}",
                known.join(", ")
            ),
            StoreError::NotANumber { name, text } => {
                write!(f, "{name}: {text:?} is not an integer")
            }
            StoreError::OutOfRange { name, text, range } => {
                write!(f, "{name}: {text:?} is outside {range}")
            }
        }
    }
}

impl core::error::Error for StoreError {}

/// kstrtoull() with base 10.
fn parse_long(name: &'static str, text: &str) -> Result<u64, StoreError> {
    let bare = text.strip_suffix('\n').unwrap_or(text);
    // A negative number is a number, too, even if the attribute takes none.
    let below = bare.strip_prefix('-').filter(|rest| !rest.is_empty());
    let digits = below.unwrap_or_else(|| bare.strip_prefix('+').unwrap_or(bare));
    let text = bare.to_owned();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(StoreError::NotANumber { name, text });
    }
    let range = Store::<()>::LONG;
    match digits.parse() {
        Ok(value) if below.is_none() => Ok(value),
        _ => Err(StoreError::OutOfRange { name, text, range }),
    }
}

/// kstrtoint() with base 0.
fn parse_int(name: &'static str, text: &str) -> Result<i32, StoreError> {
    let bare = text.strip_suffix('\n').unwrap_or(text);
    let (negative, digits) = match bare.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let (base, digits) = match hex {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    // The kernel rejects a second sign, which from_str_radix would take.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(StoreError::NotANumber {
            name,
            text: bare.to_owned(),
        });
    }
    let out_of_range = || StoreError::OutOfRange {
        name,
        text: bare.to_owned(),
        range: Store::<()>::INT,
    };
    let size = i64::from_str_radix(digits, base).map_err(|_| out_of_range())?;
    i32::try_from(if negative { -size } else { size }).map_err(|_| out_of_range())
}
