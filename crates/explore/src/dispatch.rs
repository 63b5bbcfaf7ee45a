//! The specification `specs/Dispatch`, explored with the real paths: mq-deadline with the series of
//! January 2024.
//!
//! [`Setting`] is a configuration of the specification. Read next: `spec.rs` for what can be done
//! with it, `dispatch/run.rs` for the run of an action, `dispatch/setting.rs` and
//! `dispatch/variables.rs` for the tables of constants and variables.

mod invariant;
mod project;
mod run;
mod setting;
pub(crate) mod variables;
mod world;

use std::sync::LazyLock;

use blkmq::rules::Rules;
use blkmq::schedule::labels::LabelTable;
use blkmq::schedule::{Argument, Schedule};

use crate::fingerprint::fingerprint;
use crate::spec::{Fairness, Runner, SettingError, Specification, constants, from_one};
use setting::{CONSTANTS, CPUS_MAX, REQUESTS_MAX};
pub use setting::{Judged, Setting};
pub use world::{Action, World};
use world::{At, Life, Process, Request, Side};
pub(crate) use world::{ELEVATOR as DD_LOCK, deadline};

/// The module of the schedules that runs of the simulator give.
pub const RUNS: &str = "DispatchLabels";

/// The action of the specification that each label belongs to.
pub static TABLE: LazyLock<LabelTable> = LazyLock::new(|| {
    let table = LabelTable::read(include_str!("../../../specs/Dispatch/labels.txt"));
    table.unwrap_or_else(|error| panic!("specs/Dispatch/labels.txt: {error}"))
});

impl Specification for Setting {
    const NAME: &'static str = "Dispatch";
    const ACTIONS: &'static [&'static str] = world::ACTIONS;
    type World = World;
    type Action = Action;

    fn properties() -> Vec<&'static str> {
        vec![
            "NoStall",
            "NoneLeft",
            "NothingLost",
            "LockExact",
            "NeverAllDone",
            "liveness",
        ]
    }

    fn parse(given: &[(String, String)]) -> Result<Setting, SettingError> {
        let (_, table) = CONSTANTS.split_last().expect("there are constants");
        constants::read(table, Setting::of_rules(&Rules::v6_12()), given)
    }

    fn of_configuration(text: &str) -> Result<Setting, SettingError> {
        let mut constants = crate::tlc::settings(text);
        constants.retain(|(name, _)| name != "Rechecks");
        let mut setting = Setting::parse(&constants)?;
        let has = |name: &str| text.split_whitespace().any(|word| word == name);
        if has("NoneLeft") {
            setting.judged = Judged::Left;
        } else if has("NeverAllDone") {
            setting.judged = Judged::AllDone;
        }
        Ok(setting)
    }

    fn beyond(&self, configuration: &str) -> Option<&'static str> {
        let what = "only TLC checks this one: each label is a step";
        configuration.contains("LabelsSpec").then_some(what)
    }

    fn first(&self) -> World {
        World {
            mq: self.build(),
            side: Side {
                processes: vec![Process::default(); usize::from(self.processes())],
                requests: [Request::default(); REQUESTS_MAX],
                submitted: [0; CPUS_MAX],
                owner: None,
                insert_owner: None,
                armed: false,
            },
        }
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.clear();
        for process in 0..self.processes() {
            if world.can_go(self, process) {
                actions.push(Action::Go(process));
            }
        }
        if world.side.armed && world.is_idle(self.kblockd()) {
            actions.push(Action::Fire);
        }
        if world.is_idle(self.completer()) {
            let in_device = |request: &u8| world.life(*request) == Life::Device;
            let ends = (0..self.requests()).filter(in_device);
            actions.extend(ends.map(Action::Complete));
        }
    }

    fn take(&self, runner: &mut Runner, world: &mut World, action: Action) {
        runner.take(self, world, action);
    }

    fn kind(&self, world: &World, action: Action) -> usize {
        match action {
            Action::Go(process) => world.at(self, process) as usize,
            Action::Fire => At::DelayRuns as usize + 1,
            Action::Complete(_) => At::DelayRuns as usize + 2,
        }
    }

    fn arguments(&self, action: Action) -> Vec<(&'static str, Argument)> {
        match action {
            Action::Go(process) => vec![("process", from_one(process))],
            Action::Complete(request) => vec![("request", from_one(request))],
            Action::Fire => Vec::new(),
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
        invariant::broken(world, self)
    }

    fn ends_well(&self, world: &World) -> bool {
        let done = |request| world.life(request) == Life::Done;
        world.is_quiet(self) && (0..self.requests()).all(done)
    }

    /// Processes, the delayed run and the end of each request; then each process's locks.
    fn fairness(&self) -> Fairness {
        let weak = self.processes() + 1 + self.requests();
        Fairness {
            weak: (1 << weak) - 1,
            strong: ((1 << self.processes()) - 1) << weak,
        }
    }

    fn fair_bits(&self, world: &World, action: Action) -> u32 {
        let others = self.processes() + 1;
        match action {
            Action::Go(process) => match world.at(self, process) {
                At::Submit => 0,
                At::SideLock | At::Lock | At::PickLock | At::TakeSide => {
                    let locks = others + self.requests();
                    1 << process | 1 << (locks + process)
                }
                _ => 1 << process,
            },
            Action::Fire => 1 << self.processes(),
            Action::Complete(request) => 1 << (others + request),
        }
    }

    fn waiting(&self, world: &World) -> u8 {
        let waits = |request: &u8| matches!(world.life(*request), Life::Live | Life::Device);
        let waiting = (0..self.requests()).filter(waits);
        waiting.fold(0, |bits, request| bits | 1 << request)
    }

    /// Checks the property that the schedule claims to show.
    fn for_schedule(&self, schedule: &Schedule) -> Setting {
        let judged = match schedule.shows.as_str() {
            "NoneLeft violated" => Judged::Left,
            _ => Judged::Stall,
        };
        Setting {
            judged,
            ..self.clone()
        }
    }
}
