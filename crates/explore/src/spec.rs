//! Specifications below `specs/`, explored with the real paths: one action of the specification is
//! a sequence of blkmq's labels, from one named label to the next.
//!
//! [`explore`](fn@explore) visits all states of a configuration and counts them as TLC does;
//! [`replay`](fn@replay) takes the steps of a schedule; [`liveness`](fn@liveness) searches for
//! requests that never end. A [`Specification`] has what differs: `restart.rs` and `dispatch.rs`.

pub(crate) mod constants;
mod liveness;
mod places;
mod replay;
mod runner;
mod search;

use core::fmt::Debug;
use core::hash::Hash;

use blkmq::queue::BlkMq;
use blkmq::request::{RequestId, RequestPool};
use blkmq::schedule::{Argument, Schedule, Step};

pub use constants::SettingError;
pub use liveness::{Lived, Waits, liveness};
pub(crate) use places::{by_label, places};
pub use replay::{Replayed, replay};
pub use runner::Runner;
pub(crate) use runner::{add_read, queues_of_one_set};
pub use search::{Explored, Options, explore};

/// Fairness conditions, as bits of sets of actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fairness {
    /// Weak fairness: an action that stays possible is taken at last.
    pub weak: u32,
    /// Strong fairness: an action that is possible again and again is taken at last, as locks are
    /// granted in FIFO order.
    pub strong: u32,
}

/// A configuration of a specification: its states and actions in terms of the real paths.
pub trait Specification: Clone + Debug + Sync {
    /// Its folder below `specs/`.
    const NAME: &'static str;
    const ACTIONS: &'static [&'static str];
    /// A state. `clone_from` should allocate nothing.
    type World: Clone + Debug + Send;
    type Action: Copy + Eq + Hash + Debug + Send;

    /// Properties that a schedule may show violated.
    fn properties() -> Vec<&'static str>;
    /// Reads the constants of a configuration or of a schedule.
    fn parse(constants: &[(String, String)]) -> Result<Self, SettingError>;
    fn of_configuration(text: &str) -> Result<Self, SettingError>;
    /// Why the real paths cannot follow a configuration; none if they can.
    fn beyond(&self, configuration: &str) -> Option<&'static str>;
    fn first(&self) -> Self::World;
    /// All actions of a state. Each entry is one way in which the specification's `Next` holds.
    fn actions(&self, world: &Self::World, actions: &mut Vec<Self::Action>);
    /// Takes an action that `actions` has listed. Panics where the paths do.
    fn take(&self, runner: &mut Runner, world: &mut Self::World, action: Self::Action);
    /// The index of the action in `ACTIONS`, in this state.
    fn kind(&self, world: &Self::World, action: Self::Action) -> usize;
    fn arguments(&self, action: Self::Action) -> Vec<(&'static str, Argument)>;
    /// The action under the name that schedules give it, in this state.
    fn step(&self, world: &Self::World, action: Self::Action) -> Step {
        let arguments = self.arguments(action).into_iter();
        Step {
            action: Self::ACTIONS[self.kind(world, action)].to_owned(),
            arguments: arguments.map(|(name, of)| (name.to_owned(), of)).collect(),
            observed: Vec::new(),
        }
    }
    /// Appends the variables of the specification and nothing else. Two states with the same
    /// projection must have the same future.
    fn project(&self, world: &Self::World, bytes: &mut Vec<u8>);
    /// A hash of the whole state, for the test of projections.
    fn concrete(&self, world: &Self::World) -> u128;
    /// The variables that schedules show, by the specification's names, as TLC prints them.
    fn observed(&self, world: &Self::World) -> Vec<(&'static str, String)>;
    /// The first invariant that does not hold, by the specification's name.
    fn broken(&self, world: &Self::World) -> Option<&'static str>;
    /// Quiet, with every request done.
    fn ends_well(&self, world: &Self::World) -> bool;
    /// The action without what symmetry permutes.
    fn blurred(&self, action: Self::Action) -> Self::Action {
        action
    }
    /// The fairness conditions. This and the next two are for properties of behaviours.
    fn fairness(&self) -> Fairness {
        Fairness { weak: 0, strong: 0 }
    }
    /// Bits of the sets that an action belongs to; none for an insertion.
    fn fair_bits(&self, _world: &Self::World, _action: Self::Action) -> u32 {
        0
    }
    /// Bits of the requests that were inserted and have not ended.
    fn waiting(&self, _world: &Self::World) -> u8 {
        0
    }
    /// The configuration with distinguishable requests.
    fn plain(&self) -> Self {
        self.clone()
    }
    /// The configuration under which a schedule is taken: the schedule names the next step.
    fn for_schedule(&self, _schedule: &Schedule) -> Self {
        self.clone()
    }
}

/// A state of a specification that is explored with the real paths: the block layer, and what the
/// specification has besides.
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

/// The request of the specification in a slot.
pub(crate) fn owner(pool: &RequestPool, rq: RequestId) -> u8 {
    let bio = pool[rq].bio_first.expect("a live request has its bio");
    pool.bio(bio).owner as u8
}

/// The argument that is this number counted from 0.
pub(crate) fn from_one(number: u8) -> Argument {
    Argument::Number(u32::from(number) + 1)
}
