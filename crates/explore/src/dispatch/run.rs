//! One action: labels of the real paths from one named label to the next.

use blkmq::env::{Answer, Cpu, Effect, Lock};
use blkmq::path::label::DdInsert;
use blkmq::path::{CompletePath, Frame, Label, Next, PlugPath, RunPath, SubmitPath, Unplug};
use blkmq::queue::{LockId, LockKind};
use blkmq::request::{Bio, BioId, CpuId, HctxId, Op, QueueId, RequestId, Sector, Sectors, Status};

use super::label::Named;
use super::setting::Setting;
use super::world::{Action, At, FRAMES, Life, Process, Wants, World};
use crate::spec::owner;

/// What runs actions: a stack and a CPU that no state has a part of.
#[derive(Debug)]
pub struct Runner {
    cpu: Cpu,
    stack: Vec<Frame>,
    /// Labels that ran, if they are asked for.
    pub(super) log: Option<Vec<Label>>,
}

/// The only queue has one hctx.
const HCTX: HctxId = HctxId(0);

impl Runner {
    pub(super) fn new(log: bool) -> Runner {
        Runner {
            cpu: Cpu::new(CpuId(0)),
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
            Action::Go(process) => self.go(setting, world, process),
            Action::Fire => {
                world.side.armed = false;
                let run = Frame::Run(RunPath::work(QueueId(0), HCTX));
                world.side.processes[usize::from(setting.kblockd())].frames[0] = Some(run);
            }
            Action::Complete(request) => self.complete(setting, world, request),
        }
    }

    fn go(&mut self, setting: &Setting, world: &mut World, number: u8) {
        let at = world.at(setting, number);
        let process = &mut world.side.processes[usize::from(number)];
        let Process {
            frames,
            wants,
            leaving,
        } = core::mem::take(process);
        self.stack.extend(frames.into_iter().flatten());
        self.cpu.id = CpuId(u16::from(number));
        self.cpu.owner = u32::from(number) + 1;
        let mut go = Go {
            setting,
            world,
            number,
            at,
            wants,
            leaving,
        };
        match at {
            At::SideLock => {
                go.world.side.insert_owner = Some(number);
                go.wants = Wants::Nothing;
            }
            At::Lock | At::PickLock => {
                go.world.side.owner = Some(number);
                go.wants = Wants::Nothing;
            }
            At::SideUnlock => {
                go.world.side.insert_owner = None;
                go.leaving = false;
                self.run(&mut go, false);
            }
            At::Unlock | At::PickUnlock if go.leaving => {
                go.world.side.owner = None;
                go.leaving = false;
                self.run(&mut go, false);
            }
            At::TryLock => {
                let free = go.world.side.owner.is_none();
                self.cpu.answer = match free {
                    true => Answer::Locked,
                    false => Answer::Contended,
                };
                if free {
                    go.world.side.owner = Some(number);
                }
                go.wants = Wants::Nothing;
                self.run(&mut go, true);
            }
            At::Submit => {
                self.submit(&mut go);
                self.run(&mut go, true);
            }
            _ => self.run(&mut go, true),
        }
        let Go { wants, leaving, .. } = go;
        self.put_away(world, number, wants, leaving);
    }

    /// A CPU's next read, into a plug of its own: behind its flush a CPU runs the queue itself.
    fn submit(&mut self, go: &mut Go<'_>) {
        let submitted = &mut go.world.side.submitted[usize::from(go.number)];
        let request = go.number * go.setting.per_cpu + *submitted;
        *submitted += 1;
        go.world.side.requests[usize::from(request)].life = Life::Live;
        let mut bio = Bio::default();
        bio.op = Op::Read;
        bio.sector = Sector(u64::from(request) * 100);
        bio.sectors = Sectors(8);
        bio.segments = 1;
        bio.owner = u32::from(request);
        let bio: Option<BioId> = go
            .world
            .mq
            .queue(QueueId(0))
            .with_pool(|pool| pool.add_bio(bio));
        let bio = bio.expect("there is a slot for every bio");
        self.cpu.plug.start(1);
        self.stack
            .push(Frame::Submit(SubmitPath::new(QueueId(0), bio)));
        self.run(go, true);
        assert!(self.stack.is_empty(), "a bio goes into the plug at once");
        self.cpu.plug.active = false;
        let flush = PlugPath::unplug(QueueId(0), Unplug::Finish);
        self.stack.push(Frame::Plug(flush));
    }

    fn complete(&mut self, setting: &Setting, world: &mut World, request: u8) {
        let entry = &mut world.side.requests[usize::from(request)];
        let slot = entry.slot.take().expect("the device has it");
        entry.life = Life::Done;
        let number = setting.completer();
        self.cpu.id = CpuId(u16::from(number));
        self.cpu.owner = u32::from(number) + 1;
        let end = CompletePath::end(QueueId(0), slot, Status::Ok);
        self.stack.push(Frame::Complete(end));
        let mut go = Go {
            setting,
            world,
            number,
            at: At::Submit,
            wants: Wants::Nothing,
            leaving: false,
        };
        self.run(&mut go, true);
        assert!(self.stack.is_empty(), "a completion is one action");
        if setting.reruns {
            self.stack
                .push(Frame::Run(RunPath::new(QueueId(0), HCTX, false)));
        }
        self.put_away(world, number, Wants::Nothing, false);
    }

    /// What is left on the stack is the process's.
    fn put_away(&mut self, world: &mut World, number: u8, wants: Wants, leaving: bool) {
        assert_eq!(self.cpu.locks_held(), 0, "an action ends with a lock");
        assert!(self.stack.len() <= FRAMES, "{:?}", self.stack);
        let mut frames = [None; FRAMES];
        for (place, frame) in frames.iter_mut().zip(self.stack.drain(..)) {
            *place = Some(frame);
        }
        let idle = frames[0].is_none() && !leaving;
        let owns = [world.side.owner, world.side.insert_owner].contains(&Some(number));
        assert!(!(idle && owns), "a process ends with a lock");
        world.side.processes[usize::from(number)] = Process {
            frames,
            wants,
            leaving,
        };
    }
}

/// An action under way.
struct Go<'a> {
    setting: &'a Setting,
    world: &'a mut World,
    number: u8,
    at: At,
    wants: Wants,
    leaving: bool,
}

const ELEVATOR: (u8, LockKind, u32) = (0, LockKind::Elevator, 0);
const INSERTED: (u8, LockKind, u32) = (0, LockKind::Inserted, 0);

fn id((queue, kind, index): (u8, LockKind, u32)) -> LockId {
    LockId::new(QueueId(queue), kind, index)
}

impl Runner {
    /// Runs labels up to the next one at which an action begins, or to the end of the stack; at
    /// least one if `steps`.
    fn run(&mut self, go: &mut Go<'_>, mut steps: bool) {
        // For the time of the action the locks are taken in blkmq, too.
        let has = |owner: Option<u8>| owner == Some(go.number);
        let (elevator, inserted) = (has(go.world.side.owner), has(go.world.side.insert_owner));
        if elevator {
            go.world.mq.acquire(id(ELEVATOR), &mut self.cpu);
        }
        if inserted {
            go.world.mq.acquire(id(INSERTED), &mut self.cpu);
        }
        while let Some(frame) = self.stack.last_mut() {
            let label = frame.label();
            if !core::mem::take(&mut steps) && go.stops_at(label) {
                break;
            }
            if let Wants::Lock(lock) = core::mem::take(&mut go.wants) {
                // Taken and dropped within an action.
                go.world.mq.acquire(lock, &mut self.cpu);
            }
            if let Some(log) = &mut self.log {
                log.push(label);
            }
            self.cpu.begin_label();
            let next = frame.step(&go.world.mq, &mut self.cpu);
            self.cpu.meter.take();
            self.drain(go);
            self.follow(go, next);
            if elevator && go.world.mq.is_free(id(ELEVATOR)) {
                match label == DdInsert::Unlock.label() {
                    true => go.world.side.owner = None,
                    false => go.leaving = true,
                }
                // What follows begins outside the lock.
                return self.run_outside(go);
            }
            if inserted && go.world.mq.is_free(id(INSERTED)) {
                go.leaving = true;
                return;
            }
        }
        let q = go.world.mq.queue(QueueId(0));
        if elevator {
            q.elevator.release(&mut self.cpu);
        }
        if inserted {
            q.dd.inserted.release(&mut self.cpu);
        }
    }

    /// Behind the release of dd->lock: nothing, if it is a step of its own.
    fn run_outside(&mut self, go: &mut Go<'_>) {
        if !go.leaving {
            self.run(go, false);
        }
    }

    /// Does what a path asks for.
    fn follow(&mut self, go: &mut Go<'_>, next: Next) {
        match next {
            Next::Step | Next::InTime | Next::Commit(_) => {}
            Next::Lock(lock) => go.wants = Wants::Lock(lock),
            Next::TryLock(lock) => {
                assert_eq!(lock.kind(), LockKind::Elevator, "no other lock is tried");
                go.wants = Wants::Try;
            }
            Next::Call => {
                let path = self.cpu.take_call();
                self.stack.push(path.into());
            }
            Next::Done => {
                self.stack.pop();
            }
            Next::Submit(rq) | Next::SubmitLast(rq) => self.offer(go, rq),
            Next::Budget | Next::PutBudget(_) | Next::Park => {
                unreachable!("{next:?} is not in the specification")
            }
        }
    }

    /// queue_rq: the device takes everything.
    fn offer(&mut self, go: &mut Go<'_>, rq: RequestId) {
        go.world.mq.start_request(QueueId(0), rq, &mut self.cpu);
        let request = go
            .world
            .mq
            .queue(QueueId(0))
            .with_pool(|pool| owner(pool, rq));
        let entry = &mut go.world.side.requests[usize::from(request)];
        entry.life = Life::Device;
        entry.slot = Some(rq);
        self.cpu.answer = Answer::Ok;
    }

    /// Carries out the effects of a label.
    fn drain(&mut self, go: &mut Go<'_>) {
        let mut index = 0;
        while let Some(effect) = self.cpu.outbox.take(index) {
            index += 1;
            match effect {
                Effect::KickUnlessPending { .. } => go.world.side.armed = true,
                Effect::BioEnd { bio, .. } => {
                    go.world
                        .mq
                        .queue(QueueId(0))
                        .with_pool(|pool| pool.free_bio(bio));
                }
                Effect::Kick { .. } | Effect::KickRequeue { .. } | Effect::Wake(_) => {
                    unreachable!("{effect:?} is not in the specification")
                }
            }
        }
    }
}

impl Go<'_> {
    /// The grant of this lock is an action.
    fn is_a_step(&self, lock: LockId) -> bool {
        match lock.kind() {
            LockKind::Elevator => true,
            // Dispatch takes and drops it within one.
            LockKind::Inserted => self.at != At::TakeSide,
            _ => false,
        }
    }

    /// Another action begins here.
    fn stops_at(&self, label: Label) -> bool {
        match self.wants {
            Wants::Lock(lock) if self.is_a_step(lock) => return true,
            Wants::Try => return true,
            Wants::Lock(_) | Wants::Nothing => {}
        }
        let Some(at) = Named::get().at(label, self.setting) else {
            return false;
        };
        // Looks for work one behind another are one, and so is a search for a tag.
        !matches!(at, At::HasWork | At::Offer) || self.at != at
    }
}
