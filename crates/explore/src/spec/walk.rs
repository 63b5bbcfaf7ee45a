//! Random walks, each drained at its end: no more insertions, and everything must end.

use super::Specification;
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
pub fn walks<S: Specification>(setting: &S, seed: u64, walks: u64) -> Option<Broken> {
    let mut stream = Stream::new(seed);
    let mut runner = setting.runner(false);
    let mut actions = Vec::new();
    for walk in 1..=walks {
        let mut world = setting.first();
        let mut taken = Vec::new();
        // How long requests come in is drawn, too.
        let open = stream.below(40);
        loop {
            setting.actions(&world, &mut actions);
            if taken.len() >= open {
                actions.retain(|&action| !setting.is_insertion(&world, action));
            }
            if actions.is_empty() {
                break;
            }
            let action = actions[stream.below(actions.len())];
            taken.push(action);
            setting.take(&mut runner, &mut world, action);
            if let Some(invariant) = setting.broken(&world) {
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
