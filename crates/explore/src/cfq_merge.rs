//! The specification `specs/CfqMerge`, explored with the real merge code: queues of processes are
//! merged and split again.
//!
//! [`Setting`] is a configuration of the specification. One action is the calls of
//! `elevator/cfq/merge.rs` that a request, an exit or the search for a cooperator makes, in the
//! policy's order. The setting answers what the policy decides (closeness, seeks, memory). Read
//! first: `merging.rs`; next: `cfq_merge/world.rs` for states and actions, `cfq_merge/invariant.rs`
//! for the invariants.

mod invariant;
mod project;
mod run;
mod setting;
mod world;

use crate::merging::{
    MergeSpec, Sizes, Used, World, never_all_done, no_leak, not_used, same_parent,
};
use crate::spec::SettingError;
pub use setting::{Async, Leaving, Oom, Setting, Table};
use world::Code;
pub use world::{Action, Named};

/// The module of the schedules that runs of the simulator give.
pub const RUNS: &str = "CfqMergeRuns";

impl MergeSpec for Setting {
    const NAME: &'static str = "CfqMerge";
    const OBSERVED: &'static [&'static str] = &[
        "slot",
        "slotAsync",
        "born",
        "ref",
        "new",
        "io",
        "table",
        "used",
    ];
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    const INVARIANTS: &'static [&'static str] = &[
        "LiveDeref",
        "RefExact",
        "NoNegative",
        "Acyclic",
        "NoLeak",
        "SameParent",
        "FallbackAside",
        "NeverAllDone",
    ];
    const HOLDS: &'static [fn(&World<Setting>, &Setting) -> bool] = &[
        not_used,
        invariant::ref_exact,
        invariant::no_negative,
        invariant::acyclic,
        no_leak,
        same_parent,
        invariant::fallback_aside,
        never_all_done,
    ];
    type Code = Code;
    type More = Named;
    type Action = Action;

    fn of_constants(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        Setting::read(constants)
    }

    /// The code has all rules of the specification.
    fn beyond(&self) -> Option<&'static str> {
        None
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            processes: self.processes,
            own: self.queues,
            queues: self.all_queues(),
            requests: self.requests,
        }
    }

    fn judged(&self) -> u16 {
        self.judged
    }

    fn judge(&mut self, judged: u16) {
        self.judged = judged;
    }

    fn first(&self) -> (Code, Named) {
        world::first(self)
    }

    fn actions(&self, world: &World<Setting>, actions: &mut Vec<Action>) {
        world.actions(self, actions);
    }

    fn note(&self, _world: &mut World<Setting>, _action: Action) {}

    fn act(&self, world: &mut World<Setting>, action: Action) -> Result<(), Used> {
        run::act(self, world, action).map_err(|_| Used)
    }

    fn project(&self, world: &World<Setting>, bytes: &mut Vec<u8>) {
        world.project(self, bytes);
    }

    fn observed(&self, world: &World<Setting>, name: &str) -> Option<String> {
        world.observed(self, name)
    }

    fn slots(world: &World<Setting>, process: u8) -> [Option<u8>; 2] {
        [world.slot(process, false), world.slot(process, true)]
    }

    fn references(world: &World<Setting>, queue: u8) -> i32 {
        world.references(queue)
    }

    fn process_references(world: &World<Setting>, queue: u8) -> i32 {
        world.process_references(queue)
    }

    fn new_of(world: &World<Setting>, queue: u8) -> Option<u8> {
        world.new_of(queue)
    }

    /// A queue that no process created belongs to no group.
    fn group(world: &World<Setting>, queue: u8) -> Option<u16> {
        let group = world.side.more.group[usize::from(queue)];
        (group > 0).then_some(group.into())
    }
}
