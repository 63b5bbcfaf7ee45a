//! Specifications below `specs/`, walked with the real paths: one action of the specification is a
//! run of blkmq's labels from one named label to the next.
//!
//! [`explore`](fn@explore) visits all states of a configuration and counts them as TLC does;
//! [`replay`](fn@replay) takes the steps of a schedule; [`liveness`](fn@liveness) looks for what
//! never ends. What differs from one specification to the next is a
//! [`Specification`]: `restart.rs` and `dispatch.rs`.

mod constants;
mod liveness;
mod places;
mod replay;
mod search;
mod table;

use core::fmt::Debug;
use core::hash::Hash;

use blkmq::path::Label;
use blkmq::queue::BlkMq;
use blkmq::request::{RequestId, RequestPool};
use blkmq::schedule::{Schedule, Step};

pub use constants::SettingError;
pub(crate) use constants::{Constants, flag, word};
pub use liveness::{Lived, Waits, liveness};
pub(crate) use places::{by_label, places};
pub use replay::{Replayed, replay};
pub use search::{Explored, Options, explore};

/// What must happen at last, as bits of sets of actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fairness {
    /// Happens if it can for ever from some time on.
    pub weak: u32,
    /// Happens if it can again and again: locks are granted in the order in which they were asked
    /// for.
    pub strong: u32,
}

/// A configuration of a specification: what its states and actions are in terms of the real paths.
pub trait Specification: Clone + Debug {
    /// Its folder below `specs/`.
    const NAME: &'static str;
    /// Variables that schedules show, by the specification's names.
    const OBSERVED: &'static [&'static str];
    /// What a schedule may show violated.
    const PROPERTIES: &'static [&'static str];
    const ACTIONS: &'static [&'static str];
    /// A state. `clone_from` should allocate nothing.
    type World: Clone + Debug;
    /// One thing that can happen.
    type Action: Copy + Eq + Hash + Debug;
    /// What takes actions; no state has a part of it.
    type Runner: Debug;

    /// Reads the constants of a configuration or of a schedule.
    fn parse(constants: &[(String, String)]) -> Result<Self, SettingError>;
    /// Reads a TLC configuration file.
    fn of_configuration(text: &str) -> Result<Self, SettingError>;
    /// Why the real paths cannot be held to a configuration, if so.
    fn beyond(&self, configuration: &str) -> Option<&'static str>;
    fn first(&self) -> Self::World;
    /// What takes actions; with `log` it remembers the labels that ran.
    fn runner(&self, log: bool) -> Self::Runner;
    /// Labels that the last action ran.
    fn labels(runner: &Self::Runner) -> &[Label];
    /// Everything that can happen next. Each entry is one way in which the specification's `Next`
    /// holds.
    fn actions(&self, world: &Self::World, actions: &mut Vec<Self::Action>);
    /// Takes an action that `actions` has named. Panics where the paths do.
    fn take(&self, runner: &mut Self::Runner, world: &mut Self::World, action: Self::Action);
    /// Which of `ACTIONS` it is, in this state.
    fn kind(&self, world: &Self::World, action: Self::Action) -> usize;
    /// The action as schedules name it, in this state.
    fn step(&self, world: &Self::World, action: Self::Action) -> Step;
    /// Appends the variables of the specification and nothing else. Two states with the same
    /// projection must have the same future.
    fn project(&self, world: &Self::World, bytes: &mut Vec<u8>);
    /// All of a state, for the test of projections.
    fn concrete(&self, world: &Self::World) -> u128;
    /// The value of a variable, as TLC prints it; none of a name that is not observed.
    fn observed(&self, world: &Self::World, name: &str) -> Option<String>;
    /// The first invariant that does not hold, by the specification's name.
    fn broken(&self, world: &Self::World) -> Option<&'static str>;
    /// Quiet, with every request done.
    fn ends_well(&self, world: &Self::World) -> bool;
    /// The action without what symmetry permutes.
    fn blurred(&self, action: Self::Action) -> Self::Action {
        action
    }
    /// What goes on at last if it can. This and the next two are for properties of behaviours.
    fn fairness(&self) -> Fairness {
        Fairness { weak: 0, strong: 0 }
    }
    /// Bits of what an action is of; none of an insertion.
    fn fair_bits(&self, _world: &Self::World, _action: Self::Action) -> u32 {
        0
    }
    /// Bits of the requests that have come in and have not come to their end.
    fn waiting(&self, _world: &Self::World) -> u8 {
        0
    }
    /// The same with requests that differ.
    fn plain(&self) -> Self {
        self.clone()
    }
    /// The same under which a schedule is taken: it says itself what comes next.
    fn for_schedule(&self, _schedule: &Schedule) -> Self {
        self.clone()
    }
}

/// A state of a specification that is walked with the real paths: the block layer, and what it does
/// not know.
#[derive(Debug)]
pub struct World<S> {
    pub(crate) mq: BlkMq,
    pub(crate) side: S,
}

impl<S: Clone> Clone for World<S> {
    fn clone(&self) -> World<S> {
        World {
            mq: self.mq.clone(),
            side: self.side.clone(),
        }
    }

    /// Allocates nothing once all parts have had their largest size.
    fn clone_from(&mut self, source: &World<S>) {
        self.mq.clone_from(&source.mq);
        self.side.clone_from(&source.side);
    }
}

/// Which request of a specification lies in a slot.
pub(crate) fn owner(pool: &RequestPool, rq: RequestId) -> u8 {
    let bio = pool[rq].bio_first.expect("a live request has its bio");
    pool.bio(bio).owner as u8
}
