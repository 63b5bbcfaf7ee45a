//! The specification `specs/BfqMerge`, explored with the real merge code: queues of processes are
//! merged and split again.
//!
//! [`Setting`] is a configuration of the specification. One action is one call of the scheduler's
//! merge protocol; the setting answers the conditions that the protocol asks for. Read first:
//! `merging.rs`; next: `bfq_merge/world.rs` for states and actions, `bfq_merge/invariant.rs` for
//! the invariants.

mod invariant;
mod project;
mod run;
mod setting;
mod world;

use crate::merging::{
    MergeSpec, Sizes, Used, World, never_all_done, no_leak, not_used, same_parent,
};
use crate::spec::SettingError;
pub use run::Wrong;
pub use setting::Setting;
use world::Code;
pub use world::{Action, Moved};

/// The module of the schedules that runs of the simulator give.
pub const RUNS: &str = "BfqMergeRuns";

impl MergeSpec for Setting {
    const NAME: &'static str = "BfqMerge";
    const OBSERVED: &'static [&'static str] = &[
        "slot",
        "candidate",
        "born",
        "ref",
        "stable",
        "new",
        "io",
        "owner",
        "created",
        "used",
    ];
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    const INVARIANTS: &'static [&'static str] = &[
        "LiveDeref",
        "RefExact",
        "Acyclic",
        "NoNegative",
        "NoLeak",
        "OwnerValid",
        "OwnedUnplanned",
        "PlannedShared",
        "RedirectedWhole",
        "SameParent",
        "CreatedLive",
        "NeverAllDone",
    ];
    const HOLDS: &'static [fn(&World<Setting>, &Setting) -> bool] = &[
        not_used,
        invariant::ref_exact,
        invariant::acyclic,
        invariant::no_negative,
        no_leak,
        invariant::owner_valid,
        invariant::owned_unplanned,
        invariant::planned_shared,
        invariant::redirected_whole,
        same_parent,
        invariant::created_live,
        never_all_done,
    ];
    type Code = Code;
    type More = Moved;
    type Action = Action;

    fn of_constants(constants: &[(String, String)]) -> Result<Setting, SettingError> {
        Setting::read(constants)
    }

    fn beyond(&self) -> Option<&'static str> {
        let what = "only TLC checks this one: the code has no such rule any more, or never had";
        self.only_specified.then_some(what)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            processes: self.processes,
            own: self.queues,
            queues: self.queues,
            requests: self.requests,
        }
    }

    fn judged(&self) -> u16 {
        self.judged
    }

    fn judge(&mut self, judged: u16) {
        self.judged = judged;
    }

    fn first(&self) -> (Code, Moved) {
        let (processes, groups) = (u32::from(self.processes), u16::from(self.groups));
        let protocol = Code::new(self.rules(), processes, groups);
        (protocol, Moved::default())
    }

    fn actions(&self, world: &World<Setting>, actions: &mut Vec<Action>) {
        world.actions(self, actions);
    }

    fn note(&self, world: &mut World<Setting>, action: Action) {
        run::note(world, action);
    }

    fn act(&self, world: &mut World<Setting>, action: Action) -> Result<(), Used> {
        run::act(self, world, action)
    }

    fn project(&self, world: &World<Setting>, bytes: &mut Vec<u8>) {
        world.project(self, bytes);
    }

    fn observed(&self, world: &World<Setting>, name: &str) -> Option<String> {
        world.observed(self, name)
    }

    fn slots(world: &World<Setting>, process: u8) -> [Option<u8>; 2] {
        [None, world.slot(process)]
    }

    fn references(world: &World<Setting>, queue: u8) -> i32 {
        world.queue(queue).map_or(0, |seen| seen.references)
    }

    fn process_references(world: &World<Setting>, queue: u8) -> i32 {
        world.process_references(queue)
    }

    fn new_of(world: &World<Setting>, queue: u8) -> Option<u8> {
        world.new_of(queue)
    }

    fn group(world: &World<Setting>, queue: u8) -> Option<u16> {
        Some(world.queue(queue).map_or(0, |seen| seen.group + 1))
    }
}
