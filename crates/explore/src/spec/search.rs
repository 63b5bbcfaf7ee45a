//! Every state of a configuration, breadth first, counted as TLC counts.
//!
//! Distinct states have different projections, which their fingerprints show. Generated states are
//! the first state and every action of every distinct state. Whether projections decide the future
//! is tested: a state whose projection is known but which differs otherwise is expanded as well,
//! uncounted, and both must have the same successors.

use blkmq::schedule::{Schedule, Step};

use super::{Runner, Specification};
use crate::fingerprint::{fingerprint, fingerprint_of};
use crate::resources::{Halt, Resources};
use crate::search::{End, KINDS, Limits, Model, choices_of, search};
use crate::tlc::Verdict;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Continue after a violation, so that counts are exact.
    pub whole: bool,
    /// One in so many states with a known projection is expanded for the test of projections; 0:
    /// none.
    pub test_one_in: u64,
}

impl Default for Options {
    /// To the first violation, all projections tested.
    fn default() -> Options {
        Options {
            whole: false,
            test_one_in: 1,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explored {
    pub spec: &'static str,
    /// Whether all invariants hold.
    pub verdict: Verdict,
    /// The first state and every action of every distinct state.
    pub generated: u64,
    /// Different projections.
    pub distinct: u64,
    /// States on the longest of the shortest paths.
    pub depth: u64,
    /// How often each action was taken, by name.
    pub taken: Vec<(&'static str, u64)>,
    /// States expanded for the test of projections.
    pub tested: u64,
    /// The search saw a state that ends well: quiet, with every request done.
    pub ends: bool,
    /// A shortest path to the first violation.
    pub schedule: Vec<Step>,
}

impl Explored {
    pub fn schedule_file(
        &self,
        variant: &str,
        constants: &[(String, String)],
        observed: &[String],
    ) -> Schedule {
        Schedule {
            spec: self.spec.to_owned(),
            variant: variant.to_owned(),
            shows: self.verdict.to_string(),
            settings: constants.to_vec(),
            steps: showing(&self.schedule, observed),
            repeats_from: None,
        }
    }
}

/// Steps with these variables only.
pub(super) fn showing(steps: &[Step], observed: &[String]) -> Vec<Step> {
    let mut steps = steps.to_vec();
    for step in &mut steps {
        step.observed.retain(|(name, _)| observed.contains(name));
    }
    steps
}

/// Visits all states, or those up to the first violation.
pub fn explore<S: Specification>(
    setting: &S,
    options: Options,
    resources: &Resources<'_>,
) -> Result<Explored, Halt> {
    let limits = Limits {
        whole: options.whole,
        states_max: usize::MAX,
        graph: false,
        test_one_in: options.test_one_in,
    };
    let model = Projected { setting };
    let searched = search(&model, limits, resources)?;
    let mut schedule = Vec::new();
    let verdict = match searched.end {
        End::All | End::Unfinished => Verdict::Holds,
        End::Fault(name, path) => {
            schedule = super::replay::steps(setting, &choices_of(&model, &path));
            Verdict::Violated(name.to_owned())
        }
        End::Torn(path) => Verdict::Failed(format!(
            "two states with projection {:?} have different successors",
            model.projection(&choices_of(&model, &path))
        )),
    };
    let taken = S::ACTIONS.iter().copied().zip(searched.taken);
    Ok(Explored {
        spec: S::NAME,
        verdict,
        generated: searched.generated,
        distinct: searched.distinct,
        depth: searched.depth,
        taken: taken.filter(|&(_, count)| count > 0).collect(),
        tested: searched.tested,
        ends: searched.ends,
        schedule,
    })
}

/// States of a specification, equal if their projections are.
#[derive(Debug)]
struct Projected<'a, S> {
    setting: &'a S,
}

impl<S: Specification> Projected<'_, S> {
    /// The projection of the state after these actions.
    fn projection(&self, actions: &[S::Action]) -> Vec<u8> {
        let (mut world, mut runner) = (self.setting.first(), Runner::new(false));
        for &action in actions {
            self.setting.take(&mut runner, &mut world, action);
        }
        let mut projection = Vec::new();
        self.setting.project(&world, &mut projection);
        projection
    }
}

impl<S: Specification> Model for Projected<'_, S> {
    type World = S::World;
    type Choice = S::Action;
    /// With the last projection.
    type Runner = (Runner, Vec<u8>);
    /// The name of an invariant.
    type Fault = &'static str;

    fn first(&self) -> S::World {
        self.setting.first()
    }

    fn runner(&self) -> Self::Runner {
        assert!(S::ACTIONS.len() <= KINDS, "{} has more actions", S::NAME);
        (Runner::new(false), Vec::new())
    }

    fn choices(&self, world: &S::World, actions: &mut Vec<S::Action>) -> Result<(), &'static str> {
        self.setting.actions(world, actions);
        Ok(())
    }

    fn kind(&self, world: &S::World, action: S::Action) -> usize {
        self.setting.kind(world, action)
    }

    fn take(
        &self,
        (runner, _): &mut Self::Runner,
        world: &mut S::World,
        action: S::Action,
    ) -> Result<(), &'static str> {
        self.setting.take(runner, world, action);
        Ok(())
    }

    fn print(&self, (_, projection): &mut Self::Runner, world: &S::World) -> u128 {
        projection.clear();
        self.setting.project(world, projection);
        fingerprint_of(projection)
    }

    fn concrete(&self, world: &S::World) -> u128 {
        self.setting.concrete(world)
    }

    fn digest(&self, action: S::Action, print: u128) -> u64 {
        fingerprint(&(self.setting.blurred(action), print)) as u64
    }

    fn judge(&self, world: &S::World) -> Result<(), &'static str> {
        self.setting.broken(world).map_or(Ok(()), Err)
    }

    fn ends_well(&self, world: &S::World) -> bool {
        self.setting.ends_well(world)
    }
}

#[cfg(test)]
mod tests;
