//! Parts of the kernel alone, each beside blkmq's: random commands, and the shortest script with a
//! difference.
//!
//! Not here: the parts (`sbitmap.rs`, `rbtree.rs`).

use super::dice::Dice;
use super::{Difference, Outcome, shrink};
use crate::library::{Library, Part};
use crate::policy::fault;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;

/// Both forms of a part. A command that makes no sense in their state is refused.
pub(super) trait Twins: Sized {
    /// Idle, as the first line of a script says; none if the line is wrong. With one library C is
    /// compared with blkmq, with two of them the C of one with that of the other.
    fn begin(libraries: &[Arc<Library>], line: &str) -> Option<Self>;

    /// What both sides return, and their whole states; none: refused.
    fn command(&mut self, line: &str) -> Option<[String; 2]>;

    /// The first line of a random script.
    fn first(dice: &mut Dice) -> String;

    /// A random command.
    fn random(&self, dice: &mut Dice) -> String;

    /// A script that shows a difference at its last command.
    fn written(_libraries: &[Arc<Library>], script: &[String]) -> String {
        script.join("\n")
    }
}

/// A part in C. An error of C ends the program's run.
pub(super) fn opened(library: &Arc<Library>, cpus: u32, arg: [u32; 4]) -> Part {
    let part = Part::new(library, cpus, arg);
    part.unwrap_or_else(|text| resume_unwind(Box::new(fault(library, "a new part", &text))))
}

/// Commands of a script.
const SCRIPT: usize = 400;

/// Compares a part on so many random commands.
pub(super) fn compare<T: Twins>(libraries: &[Arc<Library>], seed: u64, operations: u64) -> Outcome {
    let mut dice = Dice(seed);
    let mut done = 0;
    let (mut difference, mut ended) = (None, BTreeMap::new());
    while done < operations && difference.is_none() {
        let mut script = vec![T::first(&mut dice)];
        let Some(mut twins) = T::begin(libraries, &script[0]) else {
            let why = "a first line that a side refuses";
            *ended.entry(why.to_owned()).or_default() += 1;
            done += 1;
            continue;
        };
        for _ in 0..SCRIPT {
            let line = twins.random(&mut dice);
            let Some([ours, theirs]) = twins.command(&line) else {
                continue;
            };
            done += 1;
            script.push(line);
            if ours != theirs {
                difference = Some(shortest::<T>(libraries, script));
                break;
            }
        }
    }
    Outcome {
        operations: done,
        ended,
        difference,
    }
}

fn shortest<T: Twins>(libraries: &[Arc<Library>], script: Vec<String>) -> Difference {
    let differs = |script: &[String]| first_difference::<T>(libraries, script).is_some();
    let mut script = shrink::shrink(script, differs);
    let (at, printed) = first_difference::<T>(libraries, &script).expect("it differs");
    script.truncate(at + 1);
    Difference {
        script: T::written(libraries, &script),
        printed: printed.map(|text| text.lines().map(str::to_owned).collect()),
    }
}

fn first_difference<T: Twins>(
    libraries: &[Arc<Library>],
    script: &[String],
) -> Option<(usize, [String; 2])> {
    let mut twins = T::begin(libraries, &script[0])?;
    for (at, line) in script.iter().enumerate().skip(1) {
        let printed = twins.command(line)?;
        if printed[0] != printed[1] {
            return Some((at, printed));
        }
    }
    None
}

/// The words of a line as numbers, after its first word; none if one is no number.
pub(super) fn numbers(line: &str) -> Option<(&str, Vec<u32>)> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let numbers = rest.split_whitespace().map(|word| word.parse().ok());
    Some((word, numbers.collect::<Option<Vec<u32>>>()?))
}
