//! The specification `specs/BfqMerge`, walked with the real merge code: queues of processes become
//! one, and fall apart again.
//!
//! [`Setting`] is a configuration of the specification. One action is one call of the scheduler's
//! merge protocol, which has its conditions answered from here. Read next: `spec.rs` for what can
//! be done with it, `merges/world.rs` for states and actions, `merges/invariant.rs` for what is
//! judged.

mod invariant;
mod project;
mod run;
mod setting;
mod world;

use blkmq::path::Label;
use blkmq::schedule::{Schedule, Step};

use crate::fingerprint::fingerprint;
use crate::spec::{Fairness, SettingError, Specification};
pub use run::{Runner, Wrong};
pub use setting::Setting;
pub use world::{Action, World};

impl Specification for Setting {
    const NAME: &'static str = "BfqMerge";
    const OBSERVED: &'static [&'static str] = project::OBSERVED;
    const PROPERTIES: &'static [&'static str] = invariant::NAMES;
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    type World = World;
    type Action = Action;
    type Runner = Runner;

    fn parse(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        Setting::of_constants(constants)
    }

    fn of_configuration(text: &str) -> Result<Setting, SettingError> {
        Setting::of_file(text)
    }

    fn beyond(&self, _configuration: &str) -> Option<&'static str> {
        let what = "only TLC checks this one: the code has no such rule any more, or never had";
        self.only_specified.then_some(what)
    }

    fn first(&self) -> World {
        World::new(self)
    }

    fn runner(&self, _log: bool) -> Runner {
        Runner
    }

    /// No paths run: all is under one lock.
    fn labels(_runner: &Runner) -> &[Label] {
        &[]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(self, actions);
    }

    fn take(&self, _runner: &mut Runner, world: &mut World, action: Action) {
        run::take(self, world, action);
    }

    fn kind(&self, _world: &World, action: Action) -> usize {
        action.kind()
    }

    fn step(&self, _world: &World, action: Action) -> Step {
        action.step()
    }

    fn project(&self, world: &World, bytes: &mut Vec<u8>) {
        world.project(self, bytes);
    }

    fn concrete(&self, world: &World) -> u128 {
        fingerprint(&(&world.protocol, &world.side))
    }

    fn observed(&self, world: &World, name: &str) -> Option<String> {
        world.observed(self, name)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        invariant::broken(world, self)
    }

    fn ends_well(&self, world: &World) -> bool {
        world.side.born > 1 && world.is_quiet(self) && world.all_freed(self)
    }

    /// Nobody has to create a queue or to submit a request.
    fn is_insertion(&self, _world: &World, action: Action) -> bool {
        matches!(action, Action::Create(..) | Action::Submit(_))
    }

    /// Nothing is permuted.
    fn blurred(&self, action: Action) -> Action {
        action
    }

    /// The specification has no property of behaviours.
    fn fairness(&self) -> Fairness {
        Fairness { weak: 0, strong: 0 }
    }

    fn fair_bits(&self, _world: &World, _action: Action) -> u32 {
        0
    }

    fn waiting(&self, _world: &World) -> u8 {
        0
    }

    fn plain(&self) -> Setting {
        self.clone()
    }

    /// Judges what the schedule says that it shows, or all.
    fn for_schedule(&self, schedule: &Schedule) -> Setting {
        let property = schedule.shows.strip_suffix(" violated");
        let shown = property.and_then(invariant::bit);
        Setting {
            judged: shown.unwrap_or(invariant::ALL),
            ..self.clone()
        }
    }
}
