//! A schedule, taken step by step with the real paths: each step must be possible, and the
//! variables that it lists must have their values.

use std::collections::BTreeMap;

use blkmq::path::Label;
use blkmq::schedule::{Schedule, Step};

use super::{Runner, Specification};
use crate::tlc::Verdict;

/// The property of a schedule in which everything ends.
const ENDS_WELL: &str = "NeverAllDone violated";

/// The property of a schedule in which a request never ends. Invariants are not checked.
const WAITS_FOR_EVER: &str = "liveness violated";

/// The result of a replayed schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// The steps that were taken, with the labels that each ran.
    pub steps: Vec<(Step, Vec<Label>)>,
    /// Whether the invariants held in every state.
    pub verdict: Verdict,
    /// Why the next step was rejected; none if all steps were taken.
    pub rejected: Option<String>,
    /// The requests that are left and why nothing runs them, if the last state is a stall.
    pub left: Vec<String>,
}

/// Takes the steps of a schedule under `setting`.
pub fn replay<S: Specification>(setting: &S, schedule: &Schedule) -> Replayed {
    let setting = &setting.for_schedule(schedule);
    let mut replay = Replay {
        setting,
        runner: Runner::new(true),
        world: setting.first(),
        known: BTreeMap::new(),
        lap: Vec::new(),
    };
    let mut replayed = Replayed {
        steps: Vec::new(),
        verdict: Verdict::Holds,
        rejected: None,
        left: Vec::new(),
    };
    for step in &schedule.steps {
        if let Err(why) = replay.take(step) {
            replayed.rejected = Some(why);
            break;
        }
        let labels = replay.runner.labels().to_vec();
        replayed.steps.push((step.clone(), labels));
        if replayed.verdict == Verdict::Holds
            && schedule.shows != WAITS_FOR_EVER
            && let Some(name) = setting.broken(&replay.world)
        {
            replayed.verdict = Verdict::Violated(name.to_owned());
        }
    }
    replay.judge_end(schedule, &mut replayed);
    if replayed.verdict != Verdict::Holds {
        replayed.left = explain(setting, &replay.world);
    } else if schedule.shows == ENDS_WELL && setting.ends_well(&replay.world) {
        // The specification expects NeverAllDone to be violated, so it is no invariant of the
        // paths.
        replayed.verdict = Verdict::Violated("NeverAllDone".to_owned());
    }
    replayed
}

/// Data of a step for the judgement of steps that are repeated for ever.
#[derive(Debug)]
struct Lap {
    projection: Vec<u8>,
    /// Bits of the requests that wait then.
    waiting: u8,
    /// Bits of the actions that are possible then.
    enabled: u32,
    /// Bits of the step's own action.
    moved: u32,
}

#[derive(Debug)]
struct Replay<'a, S: Specification> {
    setting: &'a S,
    runner: Runner,
    world: S::World,
    /// The last value of each variable in the schedule.
    known: BTreeMap<String, String>,
    lap: Vec<Lap>,
}

impl<S: Specification> Replay<'_, S> {
    /// Takes a step, if it is possible and the known variables have their values after it.
    fn take(&mut self, step: &Step) -> Result<(), String> {
        let Replay { setting, world, .. } = self;
        let action = find(*setting, world, step)?;
        let moved = setting.fair_bits(world, action);
        self.runner.clear();
        setting.take(&mut self.runner, world, action);
        self.known.extend(step.observed.iter().cloned());
        if let Some(why) = contradicted(*setting, world, &self.known) {
            return Err(why);
        }
        let mut actions = Vec::new();
        setting.actions(world, &mut actions);
        let enabled = actions.iter().map(|&a| setting.fair_bits(world, a));
        let mut lap = Lap {
            projection: Vec::new(),
            waiting: setting.waiting(world),
            enabled: enabled.fold(0, |all, one| all | one),
            moved,
        };
        setting.project(world, &mut lap.projection);
        self.lap.push(lap);
        Ok(())
    }

    /// After the last step: repeated steps must lead back to their first state, and may keep a
    /// request waiting; so may a state without further steps.
    fn judge_end(&mut self, schedule: &Schedule, replayed: &mut Replayed) {
        if replayed.rejected.is_some() || schedule.steps.is_empty() {
            return;
        }
        let last = schedule.steps.len();
        let (first, rest) = match schedule.repeats_from {
            Some(number) => (number - 1, false),
            None if schedule.shows == WAITS_FOR_EVER => (last - 1, true),
            None => return,
        };
        if !rest {
            // The known values come from before the repetition, and may be different after it.
            self.known.clear();
            let again = self.take(&schedule.steps[first]);
            let back = again.is_ok() && self.lap[last].projection == self.lap[first].projection;
            if !back {
                let why = again.err().unwrap_or_else(|| "another state".to_owned());
                replayed.rejected = Some(format!(
                    "repeated, step {} leads elsewhere: {why}",
                    first + 1
                ));
                return;
            }
        }
        let fair = self.setting.fairness();
        let (mut waiting, mut moves, mut rests, mut possible) = (u8::MAX, 0, 0, 0);
        for lap in &self.lap[first..] {
            waiting &= lap.waiting;
            moves |= if rest { 0 } else { lap.moved };
            rests |= !lap.enabled;
            possible |= lap.enabled;
        }
        let denied = fair.weak & !(moves | rests) | fair.strong & possible & !moves;
        if waiting != 0 && denied == 0 && replayed.verdict == Verdict::Holds {
            replayed.verdict = Verdict::Violated("liveness".to_owned());
        }
    }
}

/// The action that a step names, if it is possible.
fn find<S: Specification>(setting: &S, world: &S::World, step: &Step) -> Result<S::Action, String> {
    let mut actions = Vec::new();
    setting.actions(world, &mut actions);
    let wanted = |action: &&S::Action| {
        let named = setting.step(world, **action);
        // TLC prints the fields of a record in its own order.
        let same = |argument| step.arguments.contains(argument);
        named.action == step.action
            && named.arguments.len() == step.arguments.len()
            && named.arguments.iter().all(same)
    };
    actions.iter().find(wanted).copied().ok_or_else(|| {
        let possible = actions.iter().map(|&a| setting.step(world, a).to_string());
        let possible: Vec<String> = possible.collect();
        format!(
            "`{step}` is not possible; possible: {}",
            possible.join(", ")
        )
    })
}

/// A known variable with another value in this state.
fn contradicted<S: Specification>(
    setting: &S,
    world: &S::World,
    known: &BTreeMap<String, String>,
) -> Option<String> {
    let observed = setting.observed(world);
    known.iter().find_map(|(name, value)| {
        let here = observed.iter().find(|(observed, _)| observed == name);
        let here = here.map_or("no variable that is observed", |(_, here)| here.as_str());
        (plain(here) != plain(value)).then(|| format!("{name} = {here}; the schedule: {value}"))
    })
}

/// A function over 1 to n as a tuple.
fn plain(value: &str) -> String {
    let value: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let inside = value.strip_prefix('(').and_then(|v| v.strip_suffix(')'));
    let parts = inside.map(|inside| inside.split(" @@ ").enumerate());
    let values = parts.and_then(|mut parts| {
        let mut values = Vec::new();
        parts
            .all(|(index, part)| {
                let value = part.strip_prefix(&format!("{} :> ", index + 1));
                values.extend(value);
                value.is_some()
            })
            .then_some(values)
    });
    match values {
        Some(values) => format!("<<{}>>", values.join(", ")),
        None => value,
    }
}

/// Actions as steps, with what each changed.
pub(super) fn steps<S: Specification>(setting: &S, actions: &[S::Action]) -> Vec<Step> {
    let mut runner = Runner::new(false);
    let mut world = setting.first();
    let mut before = setting.observed(&world);
    let mut steps = Vec::with_capacity(actions.len());
    for &action in actions {
        let mut step = setting.step(&world, action);
        setting.take(&mut runner, &mut world, action);
        let after = setting.observed(&world);
        let changed = before.iter().zip(&after).filter(|(old, new)| old != new);
        let changed = changed.map(|(_, (name, new))| ((*name).to_owned(), new.clone()));
        step.observed.extend(changed);
        steps.push(step);
        before = after;
    }
    steps
}

/// Every variable: the requests that wait, and the state that their owners rely on.
fn explain<S: Specification>(setting: &S, world: &S::World) -> Vec<String> {
    let values = setting.observed(world).into_iter();
    values
        .map(|(name, value)| format!("{name} = {value}"))
        .collect()
}
