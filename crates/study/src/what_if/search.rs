//! Tunables that serve better: each value alone, then the best of them together.

use sim::plan::Plan;

use super::{Choice, Fit, Setup, WhatIf, compare, mean};
use crate::error::Error;
use crate::fleet::Fleet;

/// Values alone that are tried together.
const BEST: usize = 6;

/// The choices of `base`'s scheduler on the trade-off of mean and 99th percentile of Q2C: none of
/// all that were tried has both lower. `own` is the captured choice, `with` a choice with changed
/// tunables (`NAME=VALUE`), if the kernel takes them.
pub fn search(
    setup: &Setup<'_>,
    (own, base): (&Choice, &Choice),
    with: impl Fn(&[String]) -> Option<Choice>,
    fitted: Option<&[Fit; 2]>,
    fleet: &Fleet,
) -> Result<Vec<Choice>, Error> {
    let ask = |choices: &[Choice]| {
        let all = [std::slice::from_ref(own), choices].concat();
        compare(setup, &all, fitted.cloned(), fleet)
    };
    let written = changes(&base.plan);
    let alone = written
        .iter()
        .filter_map(|one| Some((vec![one.clone()], with(std::slice::from_ref(one))?)));
    let (mut changed, choices): (Vec<Vec<String>>, Vec<Choice>) = alone.unzip();
    let mut tried = vec![base.clone()];
    tried.extend(choices);
    changed.insert(0, Vec::new());
    let found = ask(&tried)?;
    let mut best: Vec<usize> = (1..tried.len()).collect();
    best.sort_by_key(|of| figures(&found, *of).0);
    best.truncate(BEST);
    for (at, one) in best.iter().enumerate() {
        for other in &best[..at] {
            let both = [changed[*one].clone(), changed[*other].clone()].concat();
            let names: Vec<&str> = both
                .iter()
                .filter_map(|one| one.split('=').next())
                .collect();
            if names[0] != names[1] {
                tried.extend(with(&both));
            }
        }
    }
    let found = ask(&tried)?;
    let all: Vec<(u64, u64)> = (0..tried.len()).map(|of| figures(&found, of)).collect();
    let beaten = |(mean, p99): (u64, u64)| {
        all.iter()
            .any(|of| of.0 <= mean && of.1 <= p99 && *of != (mean, p99))
    };
    let mut front: Vec<(u64, Choice)> = Vec::new();
    for (choice, of) in tried.into_iter().zip(&all) {
        // Of choices that change nothing the first says it.
        if !beaten(*of) && front.iter().all(|(mean, _)| *mean != of.0) {
            front.push((of.0, choice));
        }
    }
    front.sort_by_key(|(mean, _)| *mean);
    Ok(front.into_iter().map(|(_, choice)| choice).collect())
}

/// Mean and 99th percentile of Q2C of a choice, without the captured one before them.
fn figures(found: &WhatIf, choice: usize) -> (u64, u64) {
    let q2c = &found.groups[0].q2c[choice + 1];
    (mean(&q2c.mean_ns) as u64, mean(&q2c.p99_ns) as u64)
}

/// Values of the tunables: a quarter, a half, twice and four times as much; of switches the other
/// one. Not nr_requests: with fewer, I/O waits in the process, and Q2C does not have that.
fn changes(plan: &Plan) -> Vec<String> {
    let queue = &plan.disks[0].queue;
    let mut tunables: Vec<(&str, i128)> = Vec::new();
    for (name, value) in queue.scheduler.shown() {
        // Those in us are the same in another unit; async_depth is as nr_requests.
        if !name.ends_with("_us") && name != "async_depth" {
            tunables.push((name, value));
        }
    }
    let mut changes = Vec::new();
    for (name, value) in tunables {
        let values = match value {
            0 | 1 => vec![1 - value],
            _ => vec![value / 4, value / 2, value * 2, value * 4],
        };
        changes.extend(values.iter().map(|value| format!("{name}={value}")));
    }
    changes
}
