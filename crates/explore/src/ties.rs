//! The specification `specs/CfqMerge`, walked with the real merge code: queues of processes become
//! one, and fall apart again.
//!
//! [`Setting`] is a configuration of the specification. One action is what a request, an exit or
//! the search for a cooperator calls of `elevator/cfq/merge.rs`, in the policy's order.
//! What the policy decides (closeness, seeks, memory) is answered from here. Read next:
//! `ties/world.rs` for states and actions, `ties/invariant.rs` for what is judged.

mod invariant;
mod project;
mod run;
mod setting;
mod world;

use blkmq::path::Label;
use blkmq::schedule::{Schedule, Step};

use crate::fingerprint::fingerprint;
use crate::spec::{Fairness, SettingError, Specification};
pub use run::Runner;
pub use setting::{Async, Leaving, Oom, Setting, Table};
pub use world::{Action, World};

impl Specification for Setting {
    const NAME: &'static str = "CfqMerge";
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

    /// The code has all rules of the specification.
    fn beyond(&self, _configuration: &str) -> Option<&'static str> {
        None
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
        fingerprint(&(&world.ties, &world.side))
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

    /// Nobody has to submit a request, of which there are so many.
    fn is_insertion(&self, _world: &World, action: Action) -> bool {
        action.submits()
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
