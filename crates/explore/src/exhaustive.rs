//! Every state of a configuration, breadth first.

use crate::config::Config;
use crate::fingerprint::fingerprint;
use crate::guard::guarded;
use crate::oracle;
use crate::report::{Report, Verdict, schedule};
use crate::resources::{Halt, Resources};
use crate::search::{End, Limits, Model, choices_of, search};
use crate::world::{Choice, Fixed, Ran, World};

/// Visits every state of `config` and stops at the first violation.
pub fn exhaustive(config: &Config, resources: &Resources<'_>) -> Result<Report, Halt> {
    let mut fixed = Fixed::new(config);
    let limits = Limits {
        whole: false,
        states_max: config.states_max,
        graph: config.must_end,
        test_one_in: 0,
    };
    let searched = search(&fixed, limits, resources)?;
    let (verdict, path) = match (searched.end, searched.lost) {
        (End::Fault(verdict, path), _) => (verdict, path),
        (End::Unfinished, _) => (Verdict::Unfinished, Vec::new()),
        (End::All, Some((count, path))) => {
            let text = format!("from {count} states no step leads to an end");
            (Verdict::NoWayOut(text), path)
        }
        (End::All, None) => (Verdict::Clean, Vec::new()),
        (End::Torn(_), _) => unreachable!("no print is tested"),
    };
    let choices = choices_of(&fixed, &path);
    Ok(Report {
        name: config.name.clone(),
        seed: None,
        verdict,
        generated: searched.generated,
        distinct: searched.distinct as usize,
        depth: searched.depth as u32,
        schedule: schedule(&mut fixed, &choices, u64::MAX),
    })
}

impl Model for Fixed {
    type World = World;
    type Choice = Choice;
    /// Labels that ran.
    type Runner = Vec<Ran>;
    type Fault = Verdict;

    fn first(&self) -> World {
        Fixed::first(self)
    }

    fn runner(&self) -> Vec<Ran> {
        Vec::new()
    }

    fn choices(&self, world: &World, choices: &mut Vec<Choice>) -> Result<(), Verdict> {
        world.choices(self, choices);
        oracle::rest(world, self, choices)
    }

    fn kind(&self, _world: &World, _choice: Choice) -> usize {
        0
    }

    fn take(&self, log: &mut Vec<Ran>, world: &mut World, choice: Choice) -> Result<(), Verdict> {
        guarded(|| world.apply(self, choice, log)).map_err(Verdict::Panic)
    }

    fn print(&self, _log: &mut Vec<Ran>, world: &World) -> u128 {
        fingerprint(world)
    }

    fn concrete(&self, world: &World) -> u128 {
        fingerprint(world)
    }

    fn digest(&self, choice: Choice, print: u128) -> u64 {
        fingerprint(&(choice, print)) as u64
    }

    fn judge(&self, world: &World) -> Result<(), Verdict> {
        guarded(|| oracle::check(world)).map_err(Verdict::Broken)?
    }

    fn ends_well(&self, _world: &World) -> bool {
        false
    }
}
