//! The result of an exploration.

use core::fmt;

use crate::world::{Choice, Fixed, Phase, Ran, Role, World};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every state was visited, and no invariant is broken.
    Clean,
    /// Nothing will ever run, and bios have not ended.
    Stall(String),
    /// Choices never run out, but no schedule from here ends all bios.
    NoWayOut(String),
    Broken(String),
    /// A path's own assertion failed.
    Panic(String),
    /// The exploration reached the limit of states.
    Unfinished,
}

impl Verdict {
    /// A single word, for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Stall(_) => "stall",
            Verdict::NoWayOut(_) => "loop",
            Verdict::Broken(_) => "broken",
            Verdict::Panic(_) => "panic",
            Verdict::Unfinished => "unfinished",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Stall(text)
            | Verdict::NoWayOut(text)
            | Verdict::Broken(text)
            | Verdict::Panic(text) => {
                write!(f, "{}: {text}", self.word())
            }
            Verdict::Clean | Verdict::Unfinished => f.write_str(self.word()),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The context that moved.
    pub who: String,
    /// The labels that it ran, or the event that it started or received.
    pub what: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.who, self.what)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub name: String,
    pub seed: Option<u64>,
    pub verdict: Verdict,
    /// The first state and every (context, way) successor, also those already known.
    pub generated: u64,
    pub distinct: usize,
    /// States on the longest of the shortest schedules; the steps of a walk.
    pub depth: u32,
    /// The steps to the violation; a shortest schedule after an exhaustive exploration.
    pub schedule: Vec<Step>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if let Some(seed) = self.seed {
            write!(f, "seed {seed}, ")?;
        }
        writeln!(
            f,
            "{}, {} generated, {} distinct, depth {}",
            self.verdict, self.generated, self.distinct, self.depth
        )?;
        for (number, step) in self.schedule.iter().enumerate() {
            writeln!(f, "{:>4} {step}", number + 1)?;
        }
        Ok(())
    }
}

/// Repeats choices from the first state, draining from step `drain_from` on, and describes each. A
/// choice that panics is the last.
pub(crate) fn schedule(fixed: &mut Fixed, choices: &[Choice], drain_from: u64) -> Vec<Step> {
    fixed.draining = false;
    let mut world = fixed.first();
    let mut log = Vec::new();
    let mut steps = Vec::with_capacity(choices.len());
    for (number, &choice) in choices.iter().enumerate() {
        fixed.draining = number as u64 >= drain_from;
        let before = &world.contexts[usize::from(choice.context)];
        let who = before.name();
        let asked = before.phase;
        let started = before.is_idle();
        let told = (before.role == Role::Manager && started)
            .then(|| format!("{}: ", world.told(fixed, choice.way)));
        let panicked = crate::guard::guarded(|| world.apply(fixed, choice, &mut log)).is_err();
        let what = match asked {
            Phase::Asks(slot) => {
                let answer = world.contexts[usize::from(choice.context)].cpu.answer;
                format!("the device answers {answer:?} to request {}", slot.rq.0)
            }
            _ if started && log.is_empty() => format!("starts{}", way_of(&world, choice)),
            _ => {
                let labels = log.iter().map(Ran::to_string).collect::<Vec<_>>();
                told.unwrap_or_default() + &labels.join(", ")
            }
        };
        steps.push(Step { who, what });
        if panicked {
            break;
        }
    }
    steps
}

fn way_of(world: &World, choice: Choice) -> String {
    match world.contexts[usize::from(choice.context)].role {
        Role::Completer(_) => format!(" with request {} of the device", choice.way),
        _ => String::new(),
    }
}
