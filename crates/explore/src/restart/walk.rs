//! Random walks, each drained at its end: no more insertions, and everything must end.

use super::invariant;
use super::run::Runner;
use super::setting::Setting;
use super::world::{Action, World};
use crate::walk::Stream;
use blkmq::schedule::Step;

/// A walk that broke an invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Which walk, counted from 1.
    pub walk: u64,
    /// The invariant.
    pub invariant: &'static str,
    /// The steps, with what each changed.
    pub steps: Vec<Step>,
}

/// Takes up to `walks` random walks; stops at the first that breaks an invariant. The same seed
/// takes the same walks.
pub fn walks(setting: &Setting, seed: u64, walks: u64) -> Option<Broken> {
    let mut stream = Stream::new(seed);
    let mut runner = Runner::new();
    let mut actions = Vec::new();
    for walk in 1..=walks {
        let mut world = World::new(setting);
        let mut taken = Vec::new();
        // How long requests come in is drawn, too.
        let open = stream.below(40);
        loop {
            world.actions(setting, &mut actions);
            if taken.len() >= open {
                let inserts =
                    |a: &Action| matches!(a, Action::InsertSched(..) | Action::InsertBypass(..));
                actions.retain(|action| !inserts(action));
            }
            if actions.is_empty() {
                break;
            }
            let action = actions[stream.below(actions.len())];
            taken.push(action);
            runner.take(setting, &mut world, action);
            if let Some(invariant) = invariant::broken(&world, setting) {
                let steps = super::replay::steps(setting, &taken);
                return Some(Broken {
                    walk,
                    invariant,
                    steps,
                });
            }
        }
    }
    None
}
