//! The common part of exploring specifications of merging queues with real merge code.
//!
//! All of that code runs under one lock, so an action is one call of it and no labels run. A
//! [`MergeSpec`] adds what is different: the code, its actions, and its variables. `cfq_merge.rs`
//! has the one of CFQ, `bfq_merge.rs` the one of BFQ. Read next: `merging/world.rs` for what is
//! recorded outside the code, `merging/invariant.rs` for the common invariants.

mod invariant;
mod project;
mod world;

use core::fmt::Debug;
use core::hash::Hash;

use blkmq::schedule::{Argument, Schedule};

use crate::fingerprint::fingerprint;
use crate::spec::{Runner, SettingError, Specification, from_one};
pub(crate) use invariant::{
    acyclic, all_but_last, bit_of, every, never_all_done, no_leak, not_used, ref_exact, same_parent,
};
pub(crate) use project::{number, numbers, tuple};
pub(crate) use world::Side;
pub use world::{Used, World};

/// The most processes of a configuration.
pub(crate) const PROCESSES_MAX: usize = 8;
/// The most queues that processes create.
pub(crate) const QUEUES_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    pub processes: u8,
    /// The most queues that processes create. Their numbers come first.
    pub own: u8,
    pub queues: u8,
    /// Requests that each process submits, in order.
    pub requests: u8,
}

/// An action, which [`actions`] declares.
pub trait Act: Copy + Eq + Hash + Debug + Send {
    /// The index among the specification's actions.
    fn kind(self) -> usize;
    /// The arguments, by the names that schedules give them.
    fn arguments(self) -> Vec<(&'static str, u8)>;
}

/// An enum of actions, which have the names of the specification, with the names of their
/// arguments; and `ACTIONS`: all names. Processes, queues and groups are numbered from 0.
macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident($($of:ident: $number:ty),*))*) => {
        /// An action. Processes, queues and groups are numbered from 0.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Action {
            $($(#[$doc])* $name($($number),*),)*
        }

        pub(super) const ACTIONS: &[&str] = &[$(stringify!($name),)*];

        impl $crate::merging::Act for Action {
            fn kind(self) -> usize {
                enum Kind { $($name,)* }
                match self { $(Action::$name(..) => Kind::$name as usize,)* }
            }

            fn arguments(self) -> Vec<(&'static str, u8)> {
                match self { $(Action::$name($($of),*) => vec![$((stringify!($of), $of)),*],)* }
            }
        }
    };
}
pub(crate) use actions;

/// An invariant by its name, as a function of a state.
pub type Invariant<S> = (&'static str, fn(&World<S>, &S) -> bool);

/// A configuration of a specification of merging queues: its states and actions in terms of the
/// real merge code.
pub trait MergeSpec: Clone + Debug + Sync + 'static {
    /// Its folder below `specs/`.
    const NAME: &'static str;
    const ACTIONS: &'static [&'static str];
    /// The last one must be violated: it shows that processes can end well.
    const INVARIANTS: &'static [Invariant<Self>];
    type Code: Clone + Debug + Hash + Send;
    /// State that only this specification records outside the code.
    type More: Copy + Debug + Hash + Send;
    type Action: Act;

    /// Reads the constants of a configuration or of a schedule; all invariants but the last are
    /// checked.
    fn of_constants(constants: &[(String, String)]) -> Result<Self, SettingError>;
    /// Why the code cannot follow this configuration; none if it can.
    fn beyond(&self) -> Option<&'static str> {
        None
    }
    fn sizes(&self) -> Sizes;
    /// Bits of the invariants that are checked.
    fn judged(&self) -> u16;
    fn judge(&mut self, judged: u16);
    /// The code before all actions, and what is recorded outside it.
    fn first(&self) -> (Self::Code, Self::More);
    /// All actions of a state in which no freed queue was used. Each entry is one way in which the
    /// specification's `Next` holds.
    fn actions(&self, world: &World<Self>, actions: &mut Vec<Self::Action>);
    /// Updates what an action changes even if it uses a freed queue.
    fn note(&self, _world: &mut World<Self>, _action: Self::Action) {}
    /// Calls the code. If the call fails, the state keeps its old value.
    fn act(&self, world: &mut World<Self>, action: Self::Action) -> Result<(), Used>;
    /// Appends variables that only this specification has.
    fn project(&self, world: &World<Self>, bytes: &mut Vec<u8>);
    /// The variables that schedules show, as TLC prints them.
    fn observed(&self, world: &World<Self>) -> Vec<(&'static str, String)>;

    fn slots(world: &World<Self>, process: u8) -> [Option<u8>; 2];
    /// References of a queue; a freed one has none.
    fn references(world: &World<Self>, queue: u8) -> i32;
    /// The part of the references that processes hold.
    fn process_references(world: &World<Self>, queue: u8) -> i32;
    /// The queue that the new_cfqq or new_bfqq of a queue names.
    fn new_of(world: &World<Self>, queue: u8) -> Option<u8>;
    /// The group of a queue, if it has one; 0 if it was freed.
    fn group(world: &World<Self>, queue: u8) -> Option<u16>;
}

impl<S: MergeSpec> Specification for S {
    const NAME: &'static str = S::NAME;
    const ACTIONS: &'static [&'static str] = S::ACTIONS;
    type World = World<S>;
    type Action = S::Action;

    fn properties() -> Vec<&'static str> {
        S::INVARIANTS.iter().map(|(name, _)| *name).collect()
    }

    fn parse(constants: &[(String, String)]) -> Result<S, SettingError> {
        S::of_constants(constants)
    }

    fn of_configuration(text: &str) -> Result<S, SettingError> {
        let mut setting = S::of_constants(&crate::tlc::settings(text))?;
        let listed = text.split_whitespace().filter_map(bit_of::<S>);
        setting.judge(listed.fold(0, |all, bit| all | bit));
        Ok(setting)
    }

    fn beyond(&self, _configuration: &str) -> Option<&'static str> {
        MergeSpec::beyond(self)
    }

    fn first(&self) -> World<S> {
        World::new(self)
    }

    fn actions(&self, world: &World<S>, actions: &mut Vec<S::Action>) {
        actions.clear();
        if !world.side.used {
            MergeSpec::actions(self, world, actions);
        }
    }

    fn take(&self, _runner: &mut Runner, world: &mut World<S>, action: S::Action) {
        self.note(world, action);
        let before = world.clone();
        if let Err(Used) = self.act(world, action) {
            *world = before;
            world.side.used = true;
        }
    }

    fn kind(&self, _world: &World<S>, action: S::Action) -> usize {
        action.kind()
    }

    fn arguments(&self, action: S::Action) -> Vec<(&'static str, Argument)> {
        let arguments = action.arguments().into_iter();
        arguments.map(|(name, of)| (name, from_one(of))).collect()
    }

    fn project(&self, world: &World<S>, bytes: &mut Vec<u8>) {
        world.side.project(self.sizes(), bytes);
        MergeSpec::project(self, world, bytes);
    }

    fn concrete(&self, world: &World<S>) -> u128 {
        fingerprint(&(&world.code, &world.side))
    }

    fn observed(&self, world: &World<S>) -> Vec<(&'static str, String)> {
        MergeSpec::observed(self, world)
    }

    fn broken(&self, world: &World<S>) -> Option<&'static str> {
        invariant::broken(world, self)
    }

    fn ends_well(&self, world: &World<S>) -> bool {
        !never_all_done(world, self)
    }

    /// Checks the property that the schedule claims to show, or all.
    fn for_schedule(&self, schedule: &Schedule) -> S {
        let property = schedule.shows.strip_suffix(" violated");
        let mut setting = self.clone();
        let all = all_but_last::<S>();
        setting.judge(property.and_then(bit_of::<S>).unwrap_or(all));
        setting
    }
}
