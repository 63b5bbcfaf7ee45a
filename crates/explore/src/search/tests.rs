//! A search through numbers whose successors are known.

use super::{End, Limits, Model, search};
use crate::resources::Resources;

/// Numbers up to `wide` follow 0. The last one leads to one more, all others to 1.
#[derive(Debug)]
struct Fan {
    wide: u32,
}

impl Model for Fan {
    type World = u32;
    type Choice = u32;
    type Runner = ();
    type Fault = ();

    fn first(&self) -> u32 {
        0
    }

    fn runner(&self) {}

    fn choices(&self, &world: &u32, choices: &mut Vec<u32>) -> Result<(), ()> {
        choices.clear();
        match world {
            0 => choices.extend(1..=self.wide),
            last if last == self.wide => choices.push(last + 1),
            _ => choices.push(1),
        }
        Ok(())
    }

    fn kind(&self, _world: &u32, _choice: u32) -> usize {
        0
    }

    fn take(&self, _runner: &mut (), world: &mut u32, choice: u32) -> Result<(), ()> {
        *world = choice;
        Ok(())
    }

    fn print(&self, _runner: &mut (), world: &u32) -> u128 {
        crate::fingerprint::fingerprint(world)
    }

    fn concrete(&self, world: &u32) -> u128 {
        crate::fingerprint::fingerprint(world)
    }

    fn digest(&self, _choice: u32, print: u128) -> u64 {
        print as u64
    }

    fn judge(&self, _world: &u32) -> Result<(), ()> {
        Ok(())
    }

    fn ends_well(&self, _world: &u32) -> bool {
        false
    }
}

#[test]
fn a_level_does_not_end_with_states_that_lead_nowhere_new() {
    for (wide, jobs) in [(500, 1), (500, 2), (40_000, 1), (40_000, 2)] {
        let limits = Limits {
            whole: true,
            states_max: usize::MAX,
            graph: false,
            test_one_in: 0,
        };
        let resources = Resources {
            jobs,
            ..Resources::ALONE
        };
        let found = search(&Fan { wide }, limits, &resources).expect("nothing stops it");
        assert!(matches!(found.end, End::All));
        assert_eq!(found.distinct, u64::from(wide) + 2);
        assert_eq!(found.depth, 3);
        assert_eq!(found.generated, 1 + 2 * u64::from(wide) + 1);
    }
}
