//! A schedule, step by step with the real paths: each step must be possible, and what it shows of
//! the state must be so.

use blkmq::path::Label;
use blkmq::schedule::{Schedule, Step};

use super::invariant;
use super::run::Runner;
use super::setting::Setting;
use super::world::{Action, World};
use crate::tlc::Verdict;

/// Variables that a schedule can show.
const OBSERVED: [&str; 9] = [
    "tags", "restart", "pending", "waiters", "sched", "disp", "qcount", "mcount", "state",
];

/// What a schedule shows in which everything comes to its end.
const ENDS_WELL: &str = "NeverAllDone violated";

/// What came of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// The steps that were taken, with the labels that each ran.
    pub steps: Vec<(Step, Vec<Label>)>,
    /// Whether the invariants held in every state.
    pub verdict: Verdict,
    /// Why the next step was rejected; none if all were taken.
    pub rejected: Option<String>,
    /// What is left and why nothing runs it, if the last state is a stall.
    pub left: Vec<String>,
}

/// Takes the steps of a schedule under `setting`.
pub fn replay(setting: &Setting, schedule: &Schedule) -> Replayed {
    let mut runner = Runner::new();
    runner.log = Some(Vec::new());
    // A schedule says itself which request comes next.
    let setting = &Setting {
        lowest_first: false,
        ..setting.clone()
    };
    let mut world = World::new(setting);
    let mut replayed = Replayed {
        steps: Vec::new(),
        verdict: Verdict::Holds,
        rejected: None,
        left: Vec::new(),
    };
    for step in &schedule.steps {
        let action = match find(setting, &world, step) {
            Ok(action) => action,
            Err(why) => {
                replayed.rejected = Some(why);
                break;
            }
        };
        runner.take(setting, &mut world, action);
        if let Some(why) = contradicted(setting, &world, step) {
            replayed.rejected = Some(why);
            break;
        }
        let labels = runner.log.clone().unwrap_or_default();
        replayed.steps.push((step.clone(), labels));
        if replayed.verdict == Verdict::Holds
            && let Some(name) = invariant::broken(&world, setting)
        {
            replayed.verdict = Verdict::Violated(name.to_owned());
        }
    }
    if replayed.verdict != Verdict::Holds {
        replayed.left = world.explain(setting);
    } else if schedule.shows == ENDS_WELL && world.is_quiet() && world.all_done(setting) {
        // A property that is violated on purpose: nobody else judges it.
        replayed.verdict = Verdict::Violated("NeverAllDone".to_owned());
    }
    replayed
}

/// The action that a step names, if it is possible.
fn find(setting: &Setting, world: &World, step: &Step) -> Result<Action, String> {
    let mut actions = Vec::new();
    world.actions(setting, &mut actions);
    let wanted = |action: &&Action| {
        let named = setting.step(world, **action);
        named.action == step.action && named.arguments == step.arguments
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

/// What a step shows that is not so.
fn contradicted(setting: &Setting, world: &World, step: &Step) -> Option<String> {
    step.observed.iter().find_map(|(name, value)| {
        let here = world.observed(setting, name);
        let here = here.unwrap_or_else(|| "no variable that is observed".to_owned());
        (plain(&here) != plain(value)).then(|| format!("{name} = {here}; the schedule: {value}"))
    })
}

/// A function over 1 to n as the tuple that it is.
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
pub(super) fn steps(setting: &Setting, actions: &[Action]) -> Vec<Step> {
    let mut runner = Runner::new();
    let mut world = World::new(setting);
    let observe = |world: &World| OBSERVED.map(|name| world.observed(setting, name));
    let mut before = observe(&world);
    let mut steps = Vec::with_capacity(actions.len());
    for &action in actions {
        let mut step = setting.step(&world, action);
        runner.take(setting, &mut world, action);
        let after = observe(&world);
        for ((name, old), new) in OBSERVED.iter().zip(&before).zip(&after) {
            if let (true, Some(new)) = (old != new, new) {
                step.observed.push(((*name).to_owned(), new.clone()));
            }
        }
        steps.push(step);
        before = after;
    }
    steps
}

impl World {
    /// Where the requests are that wait, and what each hctx that has some relies on.
    fn explain(&self, setting: &Setting) -> Vec<String> {
        let mut lines = Vec::new();
        for name in OBSERVED {
            if let Some(value) = self.observed(setting, name) {
                lines.push(format!("{name} = {value}"));
            }
        }
        lines
    }
}
