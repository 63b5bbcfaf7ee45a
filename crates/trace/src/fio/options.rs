//! The treatment of each of fio's options: modelled, without effect, or refused.
//!
//! The one list of options: job files, command lines and `[[job]]` tables of scenarios are read by
//! it, and docs/reference/fio.md is printed from it. Names, aliases and defaults of fio 3.33
//! (options.c, engines/, profiles/), and the names that fio has added since.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::value;
use table::{IGNORED, MODELLED, OF_ENGINES, PROGRAM, REFUSED, UNWRITTEN};

mod table;

#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub name: &'static str,
    /// Its name, then other names for it, with blanks between.
    names: &'static str,
    /// Values with which it asks for nothing, with commas between; empty if there is none.
    neutral: &'static str,
    pub treatment: Treatment,
}

/// The simulator's treatment of an option.
#[derive(Clone, Copy, Debug)]
pub enum Treatment {
    /// Modelled; needs a value. The text has the unit and the default.
    Value(&'static str),
    /// Modelled; a switch, which may be given without a value. The text describes it.
    Flag(&'static str),
    /// Has no effect on the block layer, for this reason; accepted and listed in the report.
    Ignored(&'static str),
    /// Asks for an output of fio that is not written; accepted, listed, and noted at once.
    Unwritten(&'static str),
    /// An option of fio's command line, not of a job; the text says what becomes of it, and is
    /// empty if a run is the same without it.
    Program(&'static str),
    /// An option of these engines, which are not modelled.
    OfEngines(&'static str),
    /// Would have an effect on the block layer and is not modelled: an error with this reason.
    Refused(&'static str),
}

use Treatment::{Ignored, OfEngines, Program, Refused, Unwritten};

impl Known {
    /// `written` is the names, then ` =` and the neutral values, if there are any.
    fn new(written: &'static str, treatment: Treatment) -> Known {
        let (names, neutral) = written.split_once(" =").unwrap_or((written, ""));
        let name = names.split_once(' ').map_or(names, |(name, _)| name);
        Known {
            name,
            names,
            neutral,
            treatment,
        }
    }

    /// Its name and the other names for it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }

    pub(super) fn has_name(self, name: &str) -> bool {
        self.names().any(|other| other == name)
    }

    /// Values with which it asks for nothing, so that they are accepted.
    pub fn neutral(self) -> impl Iterator<Item = &'static str> {
        self.neutral.split(',').filter(|value| !value.is_empty())
    }

    /// True if this value asks for nothing. Numbers may have a unit: `0s`; each of several counts.
    pub(super) fn asks_nothing(self, value: Option<&str>) -> bool {
        let one = |value: &str| {
            self.neutral()
                .any(|neutral| value == neutral || value::same_number(value, neutral))
        };
        value.unwrap_or("1").split(',').map(str::trim).all(one)
    }
}

/// What a job does in another way than under fio, on purpose: a name, and what differs.
#[rustfmt::skip]
pub const DIFFERENCES: &[(&str, &str)] = &[
    (
        "random positions",
        "drawn by another generator, so that a job has other positions than under fio, as many and \
         with the same distribution. With a random map the late positions are spread evenly; fio \
         takes the next free block, so that they cluster",
    ),
    (
        "mix",
        "each I/O of a mixed job draws its direction; fio stays with one until the other is due, \
         which gives the same shares in longer runs",
    ),
    (
        "lengths",
        "of bsrange and bssplit are drawn by another generator, with the same shares",
    ),
    (
        "rest",
        "of a region less than a block: fio counts it as a block of zipf, pareto and normal, and \
         ends the job when it draws that; here it is not drawn",
    ),
    (
        "map",
        "several lengths with random maps of more than 2^31 blocks in all: I/Os are not cut before \
         blocks that are done",
    ),
    (
        "end of size",
        "a region is a file of that size, as with a file that fio lays out. On a device with room \
         after it fio's last I/O may extend over the end of an odd size, and a gap over the end \
         ends the job instead of starting over",
    ),
    (
        "count_tail",
        "a scenario in TOML counts only what ends within runtime, and ends after number_ios also \
         if it is time_based, unless it has count_tail = true; jobs of fio do as fio does",
    ),
];

/// Finds an option by name or alias.
pub fn lookup(name: &str) -> Option<Known> {
    static BY_NAME: LazyLock<BTreeMap<&str, Known>> = LazyLock::new(|| {
        let names = |known: Known| known.names().map(move |name| (name, known));
        let all: Vec<(&str, Known)> = known_options().flat_map(names).collect();
        // Of several with a name the first.
        all.into_iter().rev().collect()
    });
    BY_NAME.get(name).copied()
}

/// All options, modelled ones first.
pub fn known_options() -> impl Iterator<Item = Known> {
    type List = &'static [(&'static str, &'static [&'static str])];
    fn each(list: List, treatment: fn(&'static str) -> Treatment) -> impl Iterator<Item = Known> {
        list.iter().flat_map(move |(why, options)| {
            let known = move |names: &&'static str| Known::new(names, treatment(why));
            options.iter().map(known)
        })
    }
    let modelled = MODELLED.iter();
    modelled
        .map(|(names, treatment)| Known::new(names, *treatment))
        .chain(each(IGNORED, Ignored))
        .chain(each(UNWRITTEN, Unwritten))
        .chain(each(PROGRAM, Program))
        .chain(each(OF_ENGINES, OfEngines))
        .chain(each(REFUSED, Refused))
}

/// The option that a command line means: getopt_long_only(3) takes the beginning of a name if no
/// other name begins so.
pub(super) fn of_argument(name: &str) -> Result<Known, String> {
    if let Some(known) = lookup(name) {
        return Ok(known);
    }
    let all = known_options().flat_map(|known| known.names().map(move |name| (name, known)));
    let begun: Vec<(&str, Known)> = all.filter(|(other, _)| other.starts_with(name)).collect();
    match begun.as_slice() {
        [(_, known)] => Ok(*known),
        [] => Err(unknown(name)),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            Err(format!("may be any of {}", names.join(", ")))
        }
    }
}

/// The error for an option that is not in this list.
pub(super) fn unknown(name: &str) -> String {
    let unknown = "not an option that blksim knows";
    match super::nearest(name, known_options().flat_map(Known::names)) {
        Some(near) => format!("{unknown}; did you mean `{near}`?"),
        None => format!("{unknown}: `blksim reference fio` lists them"),
    }
}

#[cfg(test)]
mod tests;
