//! The specification `specs/BfqMerge`, explored with the real merge code: queues of processes are
//! merged and split again.
//!
//! [`Setting`] is a configuration of the specification. One action is one call of the scheduler's
//! merge protocol; the setting answers the conditions that the protocol asks for. Read first:
//! `merging.rs`; next: `bfq_merge/world.rs` for states and actions, `bfq_merge/invariant.rs` for
//! the invariants.

mod invariant;
mod run;
mod setting;
mod world;

use blkmq::rules::Rules;
use blkmq::schedule::view::flag;

use crate::merging::{
    Invariant, MergeSpec, Sizes, Used, World, never_all_done, no_leak, not_used, number, numbers,
    same_parent, tuple,
};
use crate::spec::{SettingError, constants};
pub use run::Wrong;
use setting::CONSTANTS;
pub use setting::Setting;
use world::Code;
pub use world::{Action, Moved};

/// The module of the schedules that runs of the simulator give.
pub const RUNS: &str = "BfqMergeRuns";

impl MergeSpec for Setting {
    const NAME: &'static str = "BfqMerge";
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    const INVARIANTS: &'static [Invariant<Setting>] = &[
        ("LiveDeref", not_used),
        ("RefExact", invariant::ref_exact),
        ("Acyclic", invariant::acyclic),
        ("NoNegative", invariant::no_negative),
        ("NoLeak", no_leak),
        ("OwnerValid", invariant::owner_valid),
        ("OwnedUnplanned", invariant::owned_unplanned),
        ("PlannedShared", invariant::planned_shared),
        ("RedirectedWhole", invariant::redirected_whole),
        ("SameParent", same_parent),
        ("CreatedLive", invariant::created_live),
        ("NeverAllDone", never_all_done),
    ];
    type Code = Code;
    type More = Moved;
    type Action = Action;

    fn of_constants(given: &[(String, String)]) -> Result<Setting, SettingError> {
        let rules = Rules::v6_1().fair_queueing;
        constants::read(CONSTANTS, Setting::of_rules(&rules), given)
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
        for p in world.side.present(self.processes) {
            world.of_process(self, p, actions);
        }
        actions.extend(world.side.busy(world.side.born).map(Action::Complete));
    }

    fn note(&self, world: &mut World<Setting>, action: Action) {
        run::note(world, action);
    }

    fn act(&self, world: &mut World<Setting>, action: Action) -> Result<(), Used> {
        run::act(self, world, action)
    }

    fn project(&self, world: &World<Setting>, bytes: &mut Vec<u8>) {
        let side = &world.side;
        bytes.push(u8::from(side.more.short));
        for p in 0..self.processes {
            let at = usize::from(p);
            bytes.extend([
                side.more.group[at],
                number(world.slot(p)),
                number(world.candidate(p)),
                u8::from(world.code.merged_for_good(p.into())),
            ]);
        }
        for q in 0..self.queues {
            let Some(seen) = world.queue(q) else {
                bytes.push(0);
                continue;
            };
            bytes.extend([
                small(seen.references),
                // A miscount can make it -1.
                (seen.stable as i8).cast_unsigned(),
                number(seen.new.map(|q| q as u8)),
                u8::from(seen.shared),
                number(seen.owner.map(|p| p as u8)),
                seen.group as u8,
            ]);
        }
        bytes.extend((0..self.groups).map(|g| number(world.created(g))));
    }

    fn observed(&self, world: &World<Setting>) -> Vec<(&'static str, String)> {
        let (processes, queues) = (self.processes, self.queues);
        let io = |q| world.side.io[usize::from(q)].into();
        vec![
            ("slot", numbers(processes, |p| world.slot(p))),
            ("candidate", numbers(processes, |p| world.candidate(p))),
            ("born", world.side.born.to_string()),
            ("ref", world.of_queues(queues, |seen| seen.references)),
            ("stable", world.of_queues(queues, |seen| seen.stable)),
            ("new", numbers(queues, |q| Setting::new_of(world, q))),
            ("io", tuple(queues, io)),
            (
                "owner",
                world.of_queues(queues, |seen| seen.owner.map_or(0, |p| p as i32 + 1)),
            ),
            ("created", numbers(self.groups, |g| world.created(g))),
            ("used", flag(world.side.used)),
        ]
    }

    fn slots(world: &World<Setting>, process: u8) -> [Option<u8>; 2] {
        [None, world.slot(process)]
    }

    fn references(world: &World<Setting>, queue: u8) -> i32 {
        world.queue(queue).map_or(0, |seen| seen.references)
    }

    fn process_references(world: &World<Setting>, queue: u8) -> i32 {
        let seen = world.queue(queue);
        seen.map_or(0, |s| s.references - s.requests - s.stable)
    }

    fn new_of(world: &World<Setting>, queue: u8) -> Option<u8> {
        world.queue(queue)?.new.map(|queue| queue as u8)
    }

    fn group(world: &World<Setting>, queue: u8) -> Option<u16> {
        Some(world.queue(queue).map_or(0, |seen| seen.group + 1))
    }
}

/// A freed queue has no references.
fn small(count: i32) -> u8 {
    u8::try_from(count).expect("small spaces count little")
}
