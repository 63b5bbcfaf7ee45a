//! The specification `specs/CfqMerge`, explored with the real merge code: queues of processes are
//! merged and split again.
//!
//! [`Setting`] is a configuration of the specification. One action is the calls of
//! `elevator/cfq/merge.rs` that a request, an exit or the search for a cooperator makes, in the
//! policy's order. The setting answers what the policy decides (closeness, seeks, memory). Read
//! first: `merging.rs`; next: `cfq_merge/world.rs` for states and actions, `cfq_merge/invariant.rs`
//! for the invariants.

mod invariant;
mod run;
mod setting;
mod world;

use blkmq::rules::QueueMerge;
use blkmq::schedule::view::flag;

use crate::merging::{
    Invariant, MergeSpec, Sizes, Used, World, never_all_done, no_leak, not_used, number, numbers,
    same_parent, tuple,
};
use crate::spec::{SettingError, constants};
use setting::CONSTANTS;
pub use setting::{Async, Leaving, Oom, Setting, Table};
use world::Code;
pub use world::{Action, Named};

/// The module of the schedules that runs of the simulator give.
pub const RUNS: &str = "CfqMergeRuns";

impl MergeSpec for Setting {
    const NAME: &'static str = "CfqMerge";
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    const INVARIANTS: &'static [Invariant<Setting>] = &[
        ("LiveDeref", not_used),
        ("RefExact", invariant::ref_exact),
        ("NoNegative", invariant::no_negative),
        ("Acyclic", invariant::acyclic),
        ("NoLeak", no_leak),
        ("SameParent", same_parent),
        ("FallbackAside", invariant::fallback_aside),
        ("NeverAllDone", never_all_done),
    ];
    type Code = Code;
    type More = Named;
    type Action = Action;

    fn of_constants(given: &[(String, String)]) -> Result<Setting, SettingError> {
        constants::read(
            CONSTANTS,
            Setting::of_rules(&QueueMerge::POSTED, false),
            given,
        )
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
        for p in world.side.present(self.processes) {
            if world.side.todo[usize::from(p)] > 0 {
                world.requests(self, p, actions);
                world.async_requests(self, p, actions);
            }
            actions.push(Action::Exit(p));
            if self.regroup != Leaving::None && world.slot(p, true).is_some() {
                actions.push(Action::Move(p));
            }
        }
        let busy = world.side.busy(self.all_queues());
        actions.extend(busy.map(Action::Complete));
        world.merges(self, actions);
    }

    fn act(&self, world: &mut World<Setting>, action: Action) -> Result<(), Used> {
        let taken = run::take(self, &mut world.code, &mut world.side, action);
        // The projection reads freed queues off their references.
        while world.code.take_freed().is_some() {}
        taken.map_err(|_| Used)
    }

    fn project(&self, world: &World<Setting>, bytes: &mut Vec<u8>) {
        bytes.push(number(world.table()));
        for p in 0..self.processes {
            bytes.push(number(world.slot(p, true)));
            if self.r#async != Async::None {
                bytes.push(number(world.slot(p, false)));
            }
        }
        for q in 0..self.all_queues() {
            let references = Setting::references(world, q);
            let references = u8::try_from(references).expect("small spaces count little");
            bytes.extend([references, number(Setting::new_of(world, q))]);
            bytes.push(world.side.more.group[usize::from(q)]);
        }
    }

    fn observed(&self, world: &World<Setting>) -> Vec<(&'static str, String)> {
        let (processes, queues) = (self.processes, self.all_queues());
        let io = |q| world.side.io[usize::from(q)].into();
        vec![
            ("slot", numbers(processes, |p| world.slot(p, true))),
            ("slotAsync", numbers(processes, |p| world.slot(p, false))),
            ("born", world.side.born.to_string()),
            ("ref", tuple(queues, |q| Setting::references(world, q))),
            ("new", numbers(queues, |q| Setting::new_of(world, q))),
            ("io", tuple(queues, io)),
            ("table", number(world.table()).to_string()),
            ("used", flag(world.side.used)),
        ]
    }

    fn slots(world: &World<Setting>, process: u8) -> [Option<u8>; 2] {
        [world.slot(process, false), world.slot(process, true)]
    }

    fn references(world: &World<Setting>, queue: u8) -> i32 {
        let q = world.side.more.numbers[usize::from(queue)];
        let tie = q.and_then(|q| world.code.tie(q).ok());
        tie.map_or(0, |tie| tie.references)
    }

    fn process_references(world: &World<Setting>, queue: u8) -> i32 {
        Setting::references(world, queue) - i32::from(world.side.io[usize::from(queue)])
    }

    fn new_of(world: &World<Setting>, queue: u8) -> Option<u8> {
        let q = world.side.more.numbers[usize::from(queue)]?;
        let tie = world.code.tie(q).ok()?;
        tie.new.map(|q| world.number(q))
    }

    /// A queue that no process created belongs to no group.
    fn group(world: &World<Setting>, queue: u8) -> Option<u16> {
        let group = world.side.more.group[usize::from(queue)];
        (group > 0).then_some(group.into())
    }
}
