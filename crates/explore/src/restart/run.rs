//! One action: labels of the real paths from one named label to the next.

use core::ops::ControlFlow;
use std::sync::LazyLock;

use blkmq::drive::{Context, Driver, Flow, Kick, Machine, Offer, carry_out, drive};
use blkmq::env::{Answer, Cpu};
use blkmq::path::label::Complete;
use blkmq::path::{CompletePath, Execute, ExecutePath, Frame, Label, Next, RunPath, SubmitPath};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{BioId, CpuId, QueueId, Status};
use blkmq::time::Duration;

use super::TABLE;
use super::setting::Setting;
use super::world::{Action, At, Hctx, Life, Running, Side, World};
use crate::spec::{Runner, add_read, by_label, owner};

/// Actions by the label at which they begin.
static FIRST: LazyLock<[Option<At>; Label::COUNT]> = LazyLock::new(|| by_label(&TABLE, At::named));

/// The action that begins at this label.
fn begins_at(label: Label, setting: &Setting) -> Option<At> {
    let at = FIRST[usize::from(label.0)];
    at.filter(|&at| at != At::Count || setting.mark_split)
}

/// The context that an action belongs to, while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Inserter,
    Dispatch(Hctx),
    Completion,
}

/// An action that is being taken.
struct Taking<'a> {
    setting: &'a Setting,
    world: &'a mut World,
    runner: &'a mut Runner,
}

/// Takes an action that the setting has listed. Panics where the paths do.
pub(super) fn take(setting: &Setting, runner: &mut Runner, world: &mut World, action: Action) {
    let mut taking = Taking {
        setting,
        world,
        runner,
    };
    match action {
        Action::InsertSched(request, hctx) => taking.insert(request, hctx, None),
        Action::InsertBypass(request, hctx) => {
            let how = Execute {
                at_head: true,
                in_background: true,
            };
            taking.insert(request, hctx, Some(how));
        }
        Action::Go(hctx, context) => taking.go(hctx, context),
        Action::Free(request) => taking.free(request),
        Action::Restart(request) => taking.restart(request),
    }
}

impl Taking<'_> {
    fn insert(&mut self, request: u8, hctx: Hctx, how: Option<Execute>) {
        let queue = self.setting.queue_of(hctx);
        let World { mq, side } = &mut *self.world;
        let bio = add_read(mq, queue, request, side.inserted);
        side.inserted += 1;
        side.requests[usize::from(request)].life = Life::Live;
        let path = match how {
            None => Frame::Submit(SubmitPath::new(queue, bio)),
            Some(how) => Frame::Execute(ExecutePath::new(queue, bio, how)),
        };
        self.run(hctx, path, Who::Inserter, None);
    }

    fn go(&mut self, hctx: Hctx, context: u8) {
        let (setting, side) = (self.setting, &mut self.world.side);
        let place = setting.place(hctx, context);
        let Running { path, wants } = side.running[place].take().unwrap_or_else(|| {
            side.pending[usize::from(hctx.0)] = false;
            Running {
                path: RunPath::work(setting.queue_of(hctx), setting.index_of(hctx)),
                wants: None,
            }
        });
        let wants = self.run(hctx, Frame::Run(path), Who::Dispatch(hctx), wants);
        self.world.side.running[place] = self.runner.stack.pop().map(|frame| match frame {
            Frame::Run(path) => Running { path, wants },
            other => unreachable!("{other:?} is no run"),
        });
    }

    fn free(&mut self, request: u8) {
        let entry = &mut self.world.side.requests[usize::from(request)];
        let (home, slot) = (entry.home, entry.slot.take());
        let slot = slot.expect("the device has it");
        entry.life = Life::Freed;
        let path = CompletePath::end(self.setting.queue_of(home), slot, Status::Ok);
        self.run(home, Frame::Complete(path), Who::Completion, None);
        let left = self.runner.stack.pop();
        self.world.side.ending[usize::from(request)] = left.map(|frame| match frame {
            Frame::Complete(path) => path,
            other => unreachable!("{other:?} is no completion"),
        });
    }

    fn restart(&mut self, request: u8) {
        let entry = &mut self.world.side.requests[usize::from(request)];
        let home = core::mem::take(&mut entry.home);
        entry.life = Life::Done;
        if let Some(path) = self.world.side.ending[usize::from(request)].take() {
            self.run(home, Frame::Complete(path), Who::Inserter, None);
        }
        let side = &mut self.world.side;
        for (pending, starved) in side.pending.iter_mut().zip(&mut side.starved) {
            *pending |= core::mem::take(starved);
        }
    }

    /// Runs labels of a path on the CPU of an hctx until the next one begins an action, or to its
    /// end. The frame stays on the stack; the result is the lock that its next label takes.
    fn run(&mut self, hctx: Hctx, path: Frame, who: Who, wants: Option<LockId>) -> Option<LockId> {
        let Runner { cpu, stack, log } = &mut *self.runner;
        cpu.id = CpuId(self.setting.index_of(hctx).0);
        stack.push(path);
        let World { mq, side } = &mut *self.world;
        let mut walk = Walk {
            setting: self.setting,
            mq,
            side,
            who,
            log: log.as_mut(),
            last: None,
            resumes: wants.is_some(),
        };
        let at = Context {
            cpu: &mut *cpu,
            stack,
        };
        let wants = drive(&mut walk, mq, at, wants.map_or(Next::Step, Next::Lock));
        assert_eq!(cpu.locks_held(), 0, "an action ends with a lock");
        wants
    }
}

struct Walk<'a> {
    setting: &'a Setting,
    mq: &'a BlkMq,
    side: &'a mut Side,
    who: Who,
    log: Option<&'a mut Vec<Label>>,
    /// The last label, and the number of frames then.
    last: Option<(Label, usize)>,
    /// The action begins with a lock.
    resumes: bool,
}

impl Walk<'_> {
    /// The label that is next is where the next action begins.
    fn is_over_at(&self, next: Label, depth: usize) -> bool {
        let Some((last, 1)) = self.last else {
            return false;
        };
        depth == 1
            && match self.who {
                Who::Inserter => false,
                Who::Dispatch(_) => next != last && begins_at(next, self.setting).is_some(),
                Who::Completion => next == Complete::Restart.label(),
            }
    }
}

impl Driver for Walk<'_> {
    /// The lock that the next label takes.
    type Stop = Option<LockId>;

    fn turn(&mut self, at: Context<'_>) -> Flow<Self> {
        if let Some(frame) = at.stack.last() {
            let (next, depth) = (frame.label(), at.stack.depth());
            if self.is_over_at(next, depth) {
                return ControlFlow::Break(None);
            }
            self.last = Some((next, depth));
        }
        ControlFlow::Continue(())
    }

    fn ends(&mut self, _cpu: &mut Cpu) -> Option<LockId> {
        None
    }

    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
        if let Some(log) = &mut self.log {
            log.push(label);
        }
    }

    /// No action begins in a path that another one has called, or in an insertion.
    fn goes_on(&mut self, _cpu: &mut Cpu) -> bool {
        self.who == Who::Inserter || self.last.is_some_and(|(_, depth)| depth > 1)
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        let resumes = core::mem::take(&mut self.resumes);
        let over = |frame: &Frame| self.is_over_at(frame.label(), at.stack.depth());
        if !resumes && at.stack.last().is_some_and(over) {
            return ControlFlow::Break(Some(lock));
        }
        assert!(
            self.mq.is_free(lock),
            "{lock:?} is taken between two actions"
        );
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, _at: Context<'_>) -> Flow<Self> {
        unreachable!("{lock:?} is tried, which the specification has not")
    }

    /// The device takes the request, or is full.
    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        let Who::Dispatch(hctx) = self.who else {
            unreachable!("only runs issue requests here");
        };
        let Offer { queue, rq, .. } = offer;
        let in_device = |r: &&super::world::Request| r.life == Life::Device;
        let held = self.side.requests.iter().filter(in_device).count();
        if self.setting.limit > 0 && held >= usize::from(self.setting.limit) {
            if self.setting.driver_reruns {
                self.side.starved[usize::from(hctx.0)] = true;
            }
            at.cpu.answer = Answer::DevResource;
            return ControlFlow::Continue(());
        }
        self.mq.start_request(queue, rq, at.cpu);
        let owner = self.mq.queue(queue).with_pool(|pool| owner(pool, rq));
        let entry = &mut self.side.requests[usize::from(owner)];
        entry.life = Life::Device;
        entry.home = hctx;
        entry.slot = Some(rq);
        at.cpu.answer = Answer::Ok;
        ControlFlow::Continue(())
    }
}

impl Machine for Walk<'_> {
    /// The 3 ms runs are off: with them a stall would be a delay.
    fn kick(&mut self, kick: Kick) {
        if kick.delay == Duration::ZERO && !kick.unless_pending {
            self.side.ask_run(self.setting, kick.queue, kick.hctx);
        }
    }

    /// Users of the tags stay users: the specification has no idle ones.
    fn time_out(&mut self, _queue: QueueId, _after: Duration) {}

    fn bio_end(&mut self, queue: QueueId, bio: BioId, _status: Status) {
        self.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
    }
}

impl World {
    /// The place of a dispatch context.
    pub(super) fn at(&self, setting: &Setting, hctx: Hctx, context: u8) -> At {
        let Some(running) = self.running(setting, hctx, context) else {
            return At::Start;
        };
        let label = Frame::Run(running.path).label();
        let at = begins_at(label, setting);
        at.unwrap_or_else(|| unreachable!("{} begins no action", label.name()))
    }
}
