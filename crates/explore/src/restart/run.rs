//! One action: labels of the real paths from one named label to the next.

use std::sync::LazyLock;

use blkmq::env::{Answer, Cpu, Effect, Solo};
use blkmq::path::label::Complete;
use blkmq::path::{Call, CompletePath, Execute, Frame, Label, Next, RunPath, SubmitPath};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{Bio, CpuId, Op, QueueId, RequestId, Sector, Sectors, Status};
use blkmq::time::Duration;

use super::TABLE;
use super::setting::Setting;
use super::world::{Action, At, Hctx, Life, Running, World};
use crate::spec::owner;

/// Actions by the label at which they begin: joined ones, and where each label is one.
static FIRST: LazyLock<[[Option<At>; Label::COUNT]; 2]> = LazyLock::new(|| {
    let mut first = [[None; Label::COUNT]; 2];
    for label in Label::all() {
        let row = TABLE.row(label);
        let joined = row.action.and_then(At::named);
        let apart = row.step.and_then(At::named).filter(|at| at.is_apart());
        first[0][usize::from(label.0)] = joined;
        first[1][usize::from(label.0)] = joined.or(apart);
    }
    first
});

/// The action that begins at this label.
fn begins_at(label: Label, setting: &Setting) -> Option<At> {
    let at = FIRST[usize::from(setting.by_labels)][usize::from(label.0)];
    at.filter(|&at| at != At::Count || setting.mark_split)
}

/// Whom an action is of, while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Inserter,
    Dispatch(Hctx),
    Completion,
}

/// What runs actions: a stack and a CPU that no state has a part of.
#[derive(Debug)]
pub struct Runner {
    cpu: Cpu,
    stack: Vec<Frame>,
    /// Labels that ran, if they are asked for.
    pub(super) log: Option<Vec<Label>>,
}

impl Runner {
    pub(super) fn new(log: bool) -> Runner {
        let mut cpu = Cpu::new(CpuId(0));
        cpu.owner = 1;
        Runner {
            cpu,
            stack: Vec::with_capacity(4),
            log: log.then(Vec::new),
        }
    }

    /// Takes an action that `World::actions` has named. Panics where the paths do.
    pub(super) fn take(&mut self, setting: &Setting, world: &mut World, action: Action) {
        if let Some(log) = &mut self.log {
            log.clear();
        }
        match action {
            Action::InsertSched(request, hctx) => self.insert(setting, world, request, hctx, None),
            Action::InsertBypass(request, hctx) => {
                let how = Execute {
                    at_head: true,
                    in_background: true,
                };
                self.insert(setting, world, request, hctx, Some(how));
            }
            Action::Go(hctx, context) => self.go(setting, world, hctx, context),
            Action::Free(request) => self.free(setting, world, request),
            Action::Restart(request) => self.restart(setting, world, request),
        }
    }

    fn insert(
        &mut self,
        setting: &Setting,
        world: &mut World,
        request: u8,
        hctx: Hctx,
        how: Option<Execute>,
    ) {
        let queue = setting.queue_of(hctx);
        let mut bio = Bio::default();
        bio.op = Op::Read;
        bio.sector = Sector(u64::from(world.side.inserted) * 100);
        bio.sectors = Sectors(8);
        bio.segments = 1;
        bio.owner = u32::from(request);
        world.side.inserted += 1;
        world.side.requests[usize::from(request)].life = Life::Live;
        let bio = world.mq.queue(queue).with_pool(|pool| pool.add_bio(bio));
        let bio = bio.expect("there is a slot for every bio");
        let path = match how {
            None => SubmitPath::new(queue, bio),
            Some(how) => SubmitPath::execute(queue, bio, how),
        };
        // The CPU of the hctx submits.
        self.cpu.id = CpuId(setting.index_of(hctx).0);
        self.stack.push(Frame::Submit(path));
        self.run(setting, world, Who::Inserter, None);
    }

    fn go(&mut self, setting: &Setting, world: &mut World, hctx: Hctx, context: u8) {
        let place = setting.place(hctx, context);
        let (path, wants) = match world.side.running[place].take() {
            Some(Running { path, wants }) => (path, wants),
            None => {
                world.side.pending[usize::from(hctx.0)] = false;
                let path = RunPath::work(setting.queue_of(hctx), setting.index_of(hctx));
                (path, None)
            }
        };
        self.cpu.id = CpuId(setting.index_of(hctx).0);
        self.stack.push(Frame::Run(path));
        let wants = self.run(setting, world, Who::Dispatch(hctx), wants);
        world.side.running[place] = self.stack.pop().map(|frame| match frame {
            Frame::Run(path) => Running { path, wants },
            other => unreachable!("{other:?} is no run"),
        });
    }

    fn free(&mut self, setting: &Setting, world: &mut World, request: u8) {
        let entry = &mut world.side.requests[usize::from(request)];
        let (home, slot) = (entry.home, entry.slot.take());
        let slot = slot.expect("the device has it");
        entry.life = Life::Freed;
        self.cpu.id = CpuId(setting.index_of(home).0);
        let path = CompletePath::end(setting.queue_of(home), slot, Status::Ok);
        self.stack.push(Frame::Complete(path));
        self.run(setting, world, Who::Completion, None);
        world.side.ending[usize::from(request)] = self.stack.pop().map(|frame| match frame {
            Frame::Complete(path) => path,
            other => unreachable!("{other:?} is no completion"),
        });
    }

    fn restart(&mut self, setting: &Setting, world: &mut World, request: u8) {
        let entry = &mut world.side.requests[usize::from(request)];
        let home = core::mem::take(&mut entry.home);
        entry.life = Life::Done;
        if let Some(path) = world.side.ending[usize::from(request)].take() {
            self.cpu.id = CpuId(setting.index_of(home).0);
            self.stack.push(Frame::Complete(path));
            self.run(setting, world, Who::Inserter, None);
        }
        let side = &mut world.side;
        for (pending, starved) in side.pending.iter_mut().zip(&mut side.starved) {
            *pending |= core::mem::take(starved);
        }
    }

    /// Runs labels up to the next one at which an action begins, or to the end. The frame is left
    /// on the stack; answers the lock that its next label wants.
    fn run(
        &mut self,
        setting: &Setting,
        world: &mut World,
        who: Who,
        mut wants: Option<LockId>,
    ) -> Option<LockId> {
        loop {
            if let Some(id) = wants.take() {
                acquire(&world.mq, id, &mut self.cpu);
            }
            let depth = self.stack.len();
            let frame = self.stack.last_mut().expect("something runs");
            let label = frame.label();
            if let Some(log) = &mut self.log {
                log.push(label);
            }
            self.cpu.begin_label();
            let next = frame.step(&world.mq, &mut self.cpu);
            self.cpu.meter.take();
            drain(&mut self.cpu, setting, world);
            match next {
                Next::Step | Next::InTime | Next::Commit(_) => {}
                Next::Lock(id) => wants = Some(id),
                Next::Call => match self.cpu.take_call() {
                    // Whether and when it begins is said by the steps that follow.
                    Call::Run { queue, hctx, .. } if setting.by_labels => {
                        world.ask_run(setting, queue, hctx);
                    }
                    path => {
                        self.stack.push(path.into());
                        continue;
                    }
                },
                Next::Done => {
                    self.stack.pop();
                    if self.stack.is_empty() {
                        assert_eq!(self.cpu.locks_held(), 0, "an action ends with a lock");
                        return None;
                    }
                    continue;
                }
                Next::Submit(rq) | Next::SubmitLast(rq) => self.offer(setting, world, who, rq),
                Next::TryLock(_) | Next::Budget | Next::PutBudget(_) | Next::Park => {
                    unreachable!("{label:?} asks for what the specification has not")
                }
            }
            if depth > 1 {
                continue;
            }
            let now = self.stack[0].label();
            let ends = match who {
                Who::Inserter => false,
                Who::Dispatch(_) => now != label && begins_at(now, setting).is_some(),
                Who::Completion => now == Complete::Restart.label(),
            };
            if ends {
                assert_eq!(self.cpu.locks_held(), 0, "an action ends with a lock");
                return wants;
            }
        }
    }

    /// queue_rq: the device takes it, or is full.
    fn offer(&mut self, setting: &Setting, world: &mut World, who: Who, rq: RequestId) {
        let Who::Dispatch(hctx) = who else {
            unreachable!("only runs issue requests here");
        };
        let in_device = |r: &&super::world::Request| r.life == Life::Device;
        let held = world.side.requests.iter().filter(in_device).count();
        if setting.limit > 0 && held >= usize::from(setting.limit) {
            if setting.driver_reruns {
                world.side.starved[usize::from(hctx.0)] = true;
            }
            self.cpu.answer = Answer::DevResource;
            return;
        }
        let queue = setting.queue_of(hctx);
        world.mq.start_request(queue, rq, &mut self.cpu);
        let owner = world.owner(queue, rq);
        let entry = &mut world.side.requests[usize::from(owner)];
        entry.life = Life::Device;
        entry.home = hctx;
        entry.slot = Some(rq);
        self.cpu.answer = Answer::Ok;
    }
}

impl World {
    /// Where a dispatch context stands.
    pub(super) fn at(&self, setting: &Setting, hctx: Hctx, context: u8) -> At {
        let Some(running) = self.running(setting, hctx, context) else {
            return At::Start;
        };
        let label = Frame::Run(running.path).label();
        let at = begins_at(label, setting);
        at.unwrap_or_else(|| unreachable!("{} begins no action", label.name()))
    }

    /// Which request of the specification lies in a slot.
    pub(super) fn owner(&self, queue: QueueId, rq: RequestId) -> u8 {
        self.mq.queue(queue).with_pool(|pool| owner(pool, rq))
    }
}

pub(super) fn acquire(mq: &BlkMq<Solo>, id: LockId, cpu: &mut Cpu) {
    assert!(mq.is_free(id), "{id:?} is taken between two actions");
    mq.acquire(id, cpu);
}

/// Carries out the effects of a label.
pub(super) fn drain(cpu: &mut Cpu, setting: &Setting, world: &mut World) {
    let mut index = 0;
    while let Some(effect) = cpu.outbox.take(index) {
        index += 1;
        match effect {
            Effect::Kick { queue, hctx, delay } if delay == Duration::ZERO => {
                world.ask_run(setting, queue, hctx);
            }
            // Runs after 3 ms are off: with them a stall is a delay.
            Effect::Kick { .. } | Effect::KickUnlessPending { .. } => {}
            Effect::BioEnd { queue, bio, .. } => {
                world.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
            }
            Effect::KickRequeue { .. } | Effect::Wake(_) => {
                unreachable!("no request is requeued and no task waits")
            }
        }
    }
}
