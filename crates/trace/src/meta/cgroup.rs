//! Control groups of a capture and their weights: lines `cgroup PATH ATTRIBUTE=...` of `meta.txt`.
//!
//! Not here: which process is in which (`processes.rs`).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::cgroup::bare;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Path below the root of the hierarchy: `/a/x`.
    pub path: String,
    /// Its io.bfq.weight, or blkio.weight.
    pub weight: u32,
    /// Another one on a device, by major and minor number.
    pub weight_on: BTreeMap<(u32, u32), u32>,
}

/// Attributes of a group that are weights, with the range that a kernel accepts (BFQ_MIN_WEIGHT,
/// CFQ_WEIGHT_LEGACY_MIN): of cgroup v2, and of v1 before it.
const WEIGHTS: [(&str, RangeInclusive<u32>); 2] =
    [(" io.bfq.weight=", 1..=1000), (" blkio.weight=", 10..=1000)];

const SHAPE: &str = "expected cgroup PATH io.bfq.weight=default WEIGHT [MAJOR:MINOR WEIGHT]";

/// Adds the group of `/a/x io.bfq.weight=default 100 252:0 500`, as the lines of the cgroup's file
/// read. The error is the expected form.
pub(super) fn add(text: &str, groups: &mut Vec<Cgroup>) -> Result<(), String> {
    let group = read(text)?;
    let own = bare(&group.path)?;
    let is = |other: &&Cgroup| bare(&other.path) == Ok(own);
    let weights = |group: &Cgroup| (group.weight, group.weight_on.clone());
    match groups.iter().find(is) {
        Some(known) if weights(known) != weights(&group) => Err(format!(
            "{} is {} with another weight, expected one line a group",
            group.path, known.path
        )),
        Some(_) => Ok(()),
        None => {
            groups.push(group);
            Ok(())
        }
    }
}

fn read(text: &str) -> Result<Cgroup, String> {
    let mut known = WEIGHTS.iter();
    let found = known.find_map(|(attribute, range)| {
        let (path, weights) = text.split_once(attribute)?;
        Some((path, weights, attribute, range))
    });
    let (path, weights, attribute, range) = found.ok_or(SHAPE)?;
    let weight = |word: &str| {
        let weight: u32 = word.parse().map_err(|_| SHAPE.to_owned())?;
        match range.contains(&weight) {
            true => Ok(weight),
            false => Err(format!(
                "{path}:{attribute}{weight}, expected {} to {}",
                range.start(),
                range.end()
            )),
        }
    };
    let mut words = weights.split_whitespace();
    let default = words.next().filter(|&word| word == "default");
    let own = default.and(words.next()).ok_or(SHAPE)?;
    let mut group = Cgroup {
        path: path.to_owned(),
        weight: weight(own)?,
        weight_on: BTreeMap::new(),
    };
    while let Some(device) = words.next() {
        let numbers = device.split_once(':').ok_or(SHAPE)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| SHAPE);
        let device = (number(numbers.0)?, number(numbers.1)?);
        let own = weight(words.next().ok_or(SHAPE)?)?;
        group.weight_on.insert(device, own);
    }
    Ok(group)
}
