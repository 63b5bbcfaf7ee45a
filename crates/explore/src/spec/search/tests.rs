//! A toy whose projection leaves out a variable that decides the future.

use blkmq::schedule::Argument;

use super::{Options, explore};
use crate::fingerprint::fingerprint;
use crate::resources::Resources;
use crate::spec::{Runner, SettingError, Specification};
use crate::tlc::Verdict;

/// Three steps that either of two actions begins. One of the actions leaves a mark, which no step
/// reads before step `looks_at`.
#[derive(Clone, Debug)]
struct Toy {
    looks_at: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Act {
    Begin,
    BeginMarked,
    Go,
    GoMarked,
}

impl Specification for Toy {
    const NAME: &'static str = "Toy";
    const ACTIONS: &'static [&'static str] = &["Begin", "BeginMarked", "Go", "GoMarked"];
    /// The step that was reached, and the mark.
    type World = (u8, bool);
    type Action = Act;

    fn properties() -> Vec<&'static str> {
        Vec::new()
    }

    fn parse(_: &[(String, String)]) -> Result<Toy, SettingError> {
        Err(SettingError::Missing("Toy"))
    }

    fn of_configuration(_: &str) -> Result<Toy, SettingError> {
        Err(SettingError::Missing("Toy"))
    }

    fn beyond(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn first(&self) -> (u8, bool) {
        (0, false)
    }

    fn actions(&self, &(at, marked): &(u8, bool), actions: &mut Vec<Act>) {
        actions.clear();
        match at {
            0 => actions.extend([Act::Begin, Act::BeginMarked]),
            at if marked && at == self.looks_at => actions.push(Act::GoMarked),
            at if at < 4 => actions.push(Act::Go),
            _ => {}
        }
    }

    fn take(&self, _: &mut Runner, world: &mut (u8, bool), action: Act) {
        world.0 += 1;
        world.1 |= action == Act::BeginMarked;
    }

    fn kind(&self, _: &(u8, bool), action: Act) -> usize {
        action as usize
    }

    fn arguments(&self, _: Act) -> Vec<(&'static str, Argument)> {
        Vec::new()
    }

    fn project(&self, world: &(u8, bool), bytes: &mut Vec<u8>) {
        bytes.push(world.0);
    }

    fn concrete(&self, world: &(u8, bool)) -> u128 {
        fingerprint(world)
    }

    fn observed(&self, _: &(u8, bool)) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn broken(&self, _: &(u8, bool)) -> Option<&'static str> {
        None
    }

    fn ends_well(&self, world: &(u8, bool)) -> bool {
        world.0 == 4
    }
}

fn verdict(looks_at: u8, test_one_in: u64) -> Verdict {
    let options = Options {
        test_one_in,
        ..Options::default()
    };
    let found = explore(&Toy { looks_at }, options, &Resources::ALONE).expect("nothing stops it");
    if found.verdict == Verdict::Holds {
        assert_eq!((found.generated, found.distinct, found.ends), (6, 5, true));
    }
    found.verdict
}

/// The test finds the twin at whichever later step the mark is read.
#[test]
fn what_a_projection_leaves_out_and_what_decides_is_found() {
    for looks_at in 1..4 {
        let torn = verdict(looks_at, 1);
        assert!(matches!(torn, Verdict::Failed(_)), "at {looks_at}: {torn}");
        assert_eq!(verdict(looks_at, 0), Verdict::Holds, "not tested");
    }
    assert_eq!(verdict(9, 1), Verdict::Holds, "no step reads the mark");
}
