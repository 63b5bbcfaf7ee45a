//! The specification `specs/Restart`, explored with the real paths.
//!
//! [`Setting`] is a configuration of the specification. Read next: `spec.rs` for what can be done
//! with it, `restart/run.rs` for the run of an action, `restart/setting.rs` and
//! `restart/variables.rs` for the tables of constants and variables.

mod invariant;
mod project;
mod run;
mod setting;
pub(crate) mod variables;
mod world;

use std::sync::LazyLock;

use blkmq::rules::{AfterRefusal, Restart};
use blkmq::schedule::labels::LabelTable;
use blkmq::schedule::{Argument, Schedule};

use crate::fingerprint::fingerprint;
use crate::spec::{Fairness, Runner, SettingError, Specification, constants, from_one};
pub use setting::Setting;
use setting::{CONSTANTS, HCTXS_MAX, REQUESTS_MAX};
pub use world::{Action, World};
use world::{Hctx, Life, Request, Side};

/// The module of the schedules that runs of the simulator give.
pub const RUNS: &str = "RestartLabels";

/// The action of the specification that each label belongs to.
pub static TABLE: LazyLock<LabelTable> = LazyLock::new(|| {
    let table = LabelTable::read(include_str!("../../../specs/Restart/labels.txt"));
    table.unwrap_or_else(|error| panic!("specs/Restart/labels.txt: {error}"))
});

impl Specification for Setting {
    const NAME: &'static str = "Restart";
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    type World = World;
    type Action = Action;

    fn properties() -> Vec<&'static str> {
        let invariants = invariant::ALL.iter().map(|(name, _)| *name);
        invariants.chain(["NeverAllDone", "liveness"]).collect()
    }

    fn parse(given: &[(String, String)]) -> Result<Setting, SettingError> {
        let restart = Restart {
            name: "specified",
            after_refusal: AfterRefusal::Delay,
            ..Restart::V4_14
        };
        constants::read(CONSTANTS, Setting::of_rule(restart), given)
    }

    fn of_configuration(text: &str) -> Result<Setting, SettingError> {
        let mut setting = Setting::parse(&crate::tlc::settings(text))?;
        setting.symmetry = text.lines().any(|line| line.trim().starts_with("SYMMETRY"));
        setting.judges_end = text.split_whitespace().any(|word| word == "NeverAllDone");
        Ok(setting)
    }

    fn beyond(&self, configuration: &str) -> Option<&'static str> {
        if configuration.contains("LabelsSpec") {
            Some("only TLC checks this one: each label is a step")
        } else if self.hctxs > 1 {
            Some("only TLC checks this one: several hctxs a queue")
        } else {
            None
        }
    }

    fn first(&self) -> World {
        World {
            mq: self.build(),
            side: Side {
                running: vec![None; usize::from(self.all_hctxs() * self.contexts)],
                ending: vec![None; usize::from(self.requests)],
                requests: [Request::default(); REQUESTS_MAX],
                pending: [false; HCTXS_MAX],
                starved: [false; HCTXS_MAX],
                inserted: 0,
            },
        }
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.clear();
        let all = self.all_hctxs();
        for request in 0..self.requests {
            match world.life(request) {
                Life::New => {
                    let earlier = (0..request).any(|other| world.life(other) == Life::New);
                    if !self.lowest_first || !earlier {
                        for hctx in (0..all).map(Hctx) {
                            actions.push(Action::InsertSched(request, hctx));
                            actions.push(Action::InsertBypass(request, hctx));
                        }
                    }
                }
                Life::Device => actions.push(Action::Free(request)),
                Life::Freed => actions.push(Action::Restart(request)),
                Life::Live | Life::Done => {}
            }
        }
        for hctx in (0..all).map(Hctx) {
            let mut starts = world.side.pending[usize::from(hctx.0)];
            for context in 0..self.contexts {
                let busy = world.running(self, hctx, context).is_some();
                // The first idle context starts a run.
                if busy || core::mem::take(&mut starts) {
                    actions.push(Action::Go(hctx, context));
                }
            }
        }
    }

    fn take(&self, runner: &mut Runner, world: &mut World, action: Action) {
        run::take(self, runner, world, action);
    }

    fn kind(&self, world: &World, action: Action) -> usize {
        match action {
            Action::Go(hctx, context) => world.at(self, hctx, context) as usize,
            Action::InsertSched(..) => 7,
            Action::InsertBypass(..) => 8,
            Action::Free(_) => 9,
            Action::Restart(_) => 10,
        }
    }

    fn arguments(&self, action: Action) -> Vec<(&'static str, Argument)> {
        let request = |request| ("request", from_one(request));
        let hctx = |hctx| ("hctx", self.named(hctx));
        match action {
            Action::InsertSched(r, h) | Action::InsertBypass(r, h) => vec![request(r), hctx(h)],
            Action::Go(h, context) => vec![hctx(h), ("context", from_one(context))],
            Action::Free(r) | Action::Restart(r) => vec![request(r)],
        }
    }

    fn project(&self, world: &World, bytes: &mut Vec<u8>) {
        world.project(self, bytes);
    }

    fn concrete(&self, world: &World) -> u128 {
        fingerprint(&(&world.mq, &world.side))
    }

    fn observed(&self, world: &World) -> Vec<(&'static str, String)> {
        world.observed(self)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        if self.judges_end {
            return self.ends_well(world).then_some("NeverAllDone");
        }
        let mut broken = invariant::ALL
            .iter()
            .filter(|(_, holds)| !holds(world, self));
        broken.next().map(|(name, _)| *name)
    }

    fn ends_well(&self, world: &World) -> bool {
        let done = |r: &Request| r.life == Life::Done;
        let mut requests = world.side.requests[..usize::from(self.requests)].iter();
        world.is_quiet() && requests.all(done)
    }

    fn blurred(&self, action: Action) -> Action {
        match action {
            _ if !self.symmetry => action,
            Action::InsertSched(_, hctx) => Action::InsertSched(0, hctx),
            Action::InsertBypass(_, hctx) => Action::InsertBypass(0, hctx),
            Action::Free(_) => Action::Free(0),
            Action::Restart(_) => Action::Restart(0),
            Action::Go(..) => action,
        }
    }

    /// Contexts, then first and second steps of completions.
    fn fairness(&self) -> Fairness {
        let all = self.all_hctxs() * self.contexts + 2 * self.requests;
        Fairness {
            weak: (1 << all) - 1,
            strong: 0,
        }
    }

    fn fair_bits(&self, _world: &World, action: Action) -> u32 {
        let contexts = self.all_hctxs() * self.contexts;
        match action {
            Action::InsertSched(..) | Action::InsertBypass(..) => 0,
            Action::Go(hctx, context) => 1 << self.place(hctx, context),
            Action::Free(request) => 1 << (contexts + request),
            Action::Restart(request) => 1 << (contexts + self.requests + request),
        }
    }

    fn waiting(&self, world: &World) -> u8 {
        let lives = |request: &u8| world.life(*request) == Life::Live;
        let live = (0..self.requests).filter(lives);
        live.fold(0, |bits, request| bits | 1 << request)
    }

    fn plain(&self) -> Setting {
        Setting {
            symmetry: false,
            ..self.clone()
        }
    }

    /// Schedules insert requests in any order.
    fn for_schedule(&self, _schedule: &Schedule) -> Setting {
        Setting {
            lowest_first: false,
            ..self.clone()
        }
    }
}
