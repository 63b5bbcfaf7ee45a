//! A schedule of `RestartLabels`, step by step with the real paths: each label that touches what
//! others see is a step, as a run of the simulator has it.
//!
//! What a step does not show must be as it was before.

use blkmq::drive::{Context, Stack, drive};
use blkmq::env::Cpu;
use blkmq::path::label::Complete;
use blkmq::path::{CompletePath, Frame, Label, Next};
use blkmq::queue::LockId;
use blkmq::request::{CpuId, Status};
use blkmq::rules::RestartRule;
use blkmq::schedule::view::RESTART as OBSERVED;
use blkmq::schedule::{Argument, Schedule, Step};

use super::run::{Runner, Walk, Who};
use super::setting::{REQUESTS_MAX, Setting};
use super::world::{Action, At, Hctx, Life, World};
use super::{TABLE, invariant};
use crate::spec::{ENDS_WELL, Replayed, Specification, as_shown, plain};
use crate::tlc::Verdict;

/// Its name in schedules.
pub const SPEC: &str = "RestartLabels";

/// The end of a request, under way.
#[derive(Clone, Copy, Debug)]
struct Ending {
    path: CompletePath,
    wants: Option<LockId>,
}

/// A schedule that is followed.
#[derive(Debug)]
struct Follower<'a> {
    setting: &'a Setting,
    world: World,
    runner: Runner,
    ending: [Option<Ending>; REQUESTS_MAX],
    cpu: Cpu,
    /// Labels of the step under way.
    log: Vec<Label>,
}

/// Takes the steps of a schedule of [`SPEC`] under `setting`.
pub fn follow(setting: &Setting, schedule: &Schedule) -> Replayed {
    let setting = &Setting {
        lowest_first: false,
        by_labels: true,
        ..setting.clone()
    };
    let mut cpu = Cpu::new(CpuId(0));
    cpu.owner = 1;
    let mut follower = Follower {
        setting,
        world: World::new(setting),
        runner: Runner::new(true),
        ending: [None; REQUESTS_MAX],
        cpu,
        log: Vec::new(),
    };
    let mut shown = follower.observe();
    let mut replayed = Replayed {
        steps: Vec::new(),
        verdict: Verdict::Holds,
        rejected: None,
        left: Vec::new(),
    };
    let mut last = None;
    for step in &schedule.steps {
        let taken = follower.take(step);
        if let Err(why) =
            taken.and_then(|()| as_shown(&OBSERVED, step, &follower.observe(), &mut shown))
        {
            replayed.rejected = Some(why);
            return replayed;
        }
        last = follower.broken();
        if let (Verdict::Holds, Some(name)) = (&replayed.verdict, last) {
            replayed.verdict = Verdict::Violated(name.to_owned());
        }
        replayed.steps.push((step.clone(), follower.log.clone()));
    }
    let world = &follower.world;
    let explain = || {
        let shown = OBSERVED.iter().zip(&shown);
        shown.map(|(name, value)| format!("{name} = {value}"))
    };
    if replayed.verdict != Verdict::Holds {
        replayed.left = explain().collect();
    } else if schedule.shows == ENDS_WELL && setting.ends_well(world) {
        replayed.verdict = Verdict::Violated("NeverAllDone".to_owned());
    }
    // What waits may go on with the next request: a stall is one at the end.
    let stalled = Verdict::Violated("NoStall".to_owned());
    if replayed.verdict == stalled && schedule.shows == stalled.to_string() && last.is_none() {
        replayed.verdict = Verdict::Holds;
    }
    replayed
}

impl Follower<'_> {
    /// Takes the step, if it is possible and ends as it is named.
    fn take(&mut self, step: &Step) -> Result<(), String> {
        self.log.clear();
        let impossible = |why: &str| Err(format!("`{step}` is not possible: {why}"));
        let taken = match (step.action.as_str(), &step.arguments[..]) {
            (name, [(_, Argument::Number(request)), (_, hctx)]) => {
                self.insert(name, *request, *hctx)
            }
            (name, [(_, hctx), (_, Argument::Number(context))]) => self.go(name, *hctx, *context),
            (name, [(_, Argument::Number(request))]) => self.end(name, *request),
            _ => return impossible("it is applied to something else"),
        };
        taken.or_else(|why| impossible(&why))
    }

    fn request(&self, number: u32) -> Result<u8, String> {
        let request = u8::try_from(number - 1).ok();
        let known = request.filter(|&request| request < self.setting.requests);
        known.ok_or_else(|| format!("there is no request {number}"))
    }

    fn hctx(&self, named: Argument) -> Result<Hctx, String> {
        let mut all = (0..self.setting.all_hctxs()).map(Hctx);
        let found = all.find(|&hctx| self.setting.named(hctx) == named);
        found.ok_or_else(|| format!("there is no hctx {named}"))
    }

    /// A request that has ended may come once more.
    fn insert(&mut self, name: &str, request: u32, hctx: Argument) -> Result<(), String> {
        let (request, hctx) = (self.request(request)?, self.hctx(hctx)?);
        let action = match name {
            "InsertSched" => Action::InsertSched(request, hctx),
            "InsertBypass" => Action::InsertBypass(request, hctx),
            _ => return Err("no such insertion".to_owned()),
        };
        let life = self.world.life(request);
        if !matches!(life, Life::New | Life::Done) {
            return Err(format!("the request is {life}"));
        }
        self.runner.take(self.setting, &mut self.world, action);
        self.take_log();
        Ok(())
    }

    fn take_log(&mut self) {
        self.log
            .clone_from(self.runner.log.as_ref().expect("labels are asked for"));
    }

    /// A dispatch context goes on.
    fn go(&mut self, name: &str, hctx: Argument, context: u32) -> Result<(), String> {
        let hctx = self.hctx(hctx)?;
        let context = u8::try_from(context - 1).ok();
        let context = context.filter(|&context| context < self.setting.contexts);
        let context = context.ok_or("there is no such context")?;
        let at = self.world.at(self.setting, hctx, context);
        if at == At::Start {
            return self.start(name, hctx, context);
        }
        let first = match at {
            At::Issue => ["Issue", "Miss"].contains(&name),
            _ => at.name() == name,
        };
        if !first {
            return Err(format!("the context is at {}", at.name()));
        }
        let before = self.free_tags();
        self.run(hctx, context);
        let got = self.free_tags() < before;
        if at == At::Issue && got != (name == "Issue") {
            let found = if got {
                "there was one"
            } else {
                "there was none"
            };
            return Err(format!("it tried to get a tag, and {found}"));
        }
        if got {
            self.has_tag(hctx, context);
        }
        Ok(())
    }

    /// The scheduled run begins in the first idle context.
    fn start(&mut self, name: &str, hctx: Hctx, context: u8) -> Result<(), String> {
        let of_hctx = usize::from(hctx.0);
        let idle = |c: u8| self.world.running(self.setting, hctx, c).is_none();
        if (0..context).any(idle) {
            return Err("an earlier context is idle".to_owned());
        }
        let (pending, asked) = (
            self.world.side.pending[of_hctx],
            self.world.side.asked[of_hctx],
        );
        let (possible, left) = match name {
            "Start" => (pending, 0),
            "StartOne" => (asked > 1, asked.saturating_sub(1)),
            _ => return Err("the context is at Start".to_owned()),
        };
        if !possible {
            return Err(format!("{asked} runs were asked for"));
        }
        self.run(hctx, context);
        self.world.side.asked[of_hctx] = left;
        self.world.side.pending[of_hctx] = left > 0;
        Ok(())
    }

    fn run(&mut self, hctx: Hctx, context: u8) {
        self.runner
            .take(self.setting, &mut self.world, Action::Go(hctx, context));
        self.take_log();
    }

    fn free_tags(&self) -> u32 {
        let maps = self.world.mq.sets[0].driver.iter();
        maps.map(|map| map.depth() - map.busy_count()).sum()
    }

    /// The head got its tag: it counts as the device's, though it may still be offered.
    fn has_tag(&mut self, hctx: Hctx, context: u8) {
        let Some(running) = self.world.running(self.setting, hctx, context) else {
            return;
        };
        let queue = self.setting.queue_of(hctx);
        let list = running.path.in_hand().list;
        let Some(head) = list.first() else { return };
        let q = self.world.mq.queue(queue);
        if q.with_pool(|pool| pool[head].tag.is_none()) {
            return;
        }
        let owner = self.world.owner(queue, head);
        let entry = &mut self.world.side.requests[usize::from(owner)];
        entry.life = Life::Device;
        entry.home = hctx;
    }

    /// A step of the end of a request.
    fn end(&mut self, name: &str, number: u32) -> Result<(), String> {
        let request = self.request(number)?;
        let life = self.world.life(request);
        if name == "Free" {
            let entry = &mut self.world.side.requests[usize::from(request)];
            let (Life::Device, Some(slot)) = (life, entry.slot.take()) else {
                return Err(format!("the request is {life}"));
            };
            entry.life = Life::Freed;
            let queue = self.setting.queue_of(entry.home);
            let before = self.free_tags();
            self.ending[usize::from(request)] = Some(Ending {
                path: CompletePath::end(queue, slot, Status::Ok),
                wants: None,
            });
            while self.free_tags() == before {
                self.label(request)?;
            }
            return Ok(());
        }
        if life != Life::Freed {
            return Err(format!("the request is {life}"));
        }
        if ["Waking", "Wake"].contains(&name) {
            if !self.wakes(request) {
                return Err("its waking is over".to_owned());
            }
            let waiting = |world: &World| world.mq.sets[0].waiting_count();
            let before = waiting(&self.world);
            self.label(request)?;
            let woke = before - waiting(&self.world);
            return match (woke, name) {
                (0, "Wake") => Err("it wakes nobody".to_owned()),
                (1.., "Waking") => Err(format!("it wakes {woke}")),
                _ => Ok(()),
            };
        }
        // Steps of the end of a request behind its tag.
        let mut walk = TABLE.labels_of_step(name);
        let walk = walk.find(|&label| TABLE.row(label).shown == Some("walk"));
        let wanted = walk.ok_or("no such step")?;
        if self.wakes(request) {
            return Err("its waking is not over".to_owned());
        }
        let gate = Complete::Restart.label();
        // Behind the tag of the device comes that of the scheduler.
        while wanted == gate && self.place(request) == Some(Complete::PutSched.label()) {
            self.label(request)?;
        }
        let here = self.place(request);
        if here != Some(wanted) {
            let here = here.map_or("", Label::name);
            return Err(format!("the end of the request is at {here}"));
        }
        self.label(request)
    }

    /// The label at which the end of a request is.
    fn place(&self, request: u8) -> Option<Label> {
        let ending = self.ending[usize::from(request)];
        ending.map(|ending| Frame::Complete(ending.path).label())
    }

    /// Whoever waits for the tag is being woken.
    fn wakes(&self, request: u8) -> bool {
        self.place(request) == Some(Complete::PutDriver.label())
    }

    /// One label of the end of a request.
    fn label(&mut self, request: u8) -> Result<(), String> {
        let slot = &mut self.ending[usize::from(request)];
        let Some(Ending { path, wants }) = slot.take() else {
            return Err("the end of the request is over".to_owned());
        };
        let World { mq, side } = &mut self.world;
        let home = side.requests[usize::from(request)].home;
        self.cpu.id = CpuId(self.setting.index_of(home).0);
        let mut walk = Walk {
            setting: self.setting,
            mq,
            side,
            who: Who::Single,
            log: Some(&mut self.log),
            last: None,
            resumes: wants.is_some(),
        };
        let (cpu, stack) = (&mut self.cpu, &mut Stack::of(Frame::Complete(path)));
        let mut at = Context { cpu, stack };
        let wanted = wants.map_or(Next::Step, Next::Lock);
        let wants = drive(&mut walk, mq, at.lend(), wanted);
        // Behind the restart rule nothing is left of the end of a request.
        let left = at.stack.pop();
        let left = left.filter(|frame| frame.label() != Complete::Exit.label());
        self.ending[usize::from(request)] = match left {
            Some(Frame::Complete(path)) => Some(Ending { path, wants }),
            Some(other) => unreachable!("{other:?} at the end of a request"),
            None => {
                let entry = &mut self.world.side.requests[usize::from(request)];
                entry.life = Life::Done;
                entry.home = Hctx::default();
                None
            }
        };
        Ok(())
    }

    /// The invariant that does not hold.
    fn broken(&self) -> Option<&'static str> {
        let half: &[Complete] = match self.setting.restart.rule {
            RestartRule::SameQueue => &[Complete::Visit, Complete::Unmark],
            _ => &[Complete::Uncount],
        };
        let mut requests = 0..self.setting.requests;
        let uncounts = requests.any(|request| {
            let place = self.place(request);
            half.iter().any(|at| place == Some(at.label()))
        });
        invariant::broken_while(&self.world, self.setting, uncounts)
    }

    fn observe(&self) -> [String; OBSERVED.len()] {
        let value = |name| self.world.observed(self.setting, name);
        OBSERVED.map(|name| value(name).map_or(String::new(), |value| plain(&value)))
    }
}
