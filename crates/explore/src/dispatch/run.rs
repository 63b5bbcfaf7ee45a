//! One action: labels of the real paths from one named label to the next.

use core::ops::ControlFlow;

use blkmq::drive::{Context, Driver, Flow, Kick, Machine, Offer, Stack, carry_out, drive};
use blkmq::env::{Answer, Cpu};
use blkmq::path::label::SeriesInsert;
use blkmq::path::{CompletePath, Frame, Label, Next, PlugPath, RunPath, SubmitPath, Unplug};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{BioId, CpuId, HctxId, QueueId, Status};

use super::setting::Setting;
use super::world::{
    Action, At, ELEVATOR, FRAMES, INSERTED, Life, Process, Side, Wants, World, begins_at, deadline,
};
use crate::spec::{Runner, add_read, owner};

/// The only queue has one hctx.
const HCTX: HctxId = HctxId(0);

impl Runner {
    /// Takes an action that the setting has listed. Panics where the paths do.
    pub(super) fn take(&mut self, setting: &Setting, world: &mut World, action: Action) {
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
        for frame in frames.into_iter().flatten() {
            self.stack.push(frame);
        }
        self.cpu.id = CpuId(u16::from(number));
        self.cpu.owner = u32::from(number) + 1;
        let mut go = Go {
            wants,
            leaving,
            ..Go::new(setting, world, number, at)
        };
        match at {
            At::SideLock => {
                go.side.insert_owner = Some(number);
                go.wants = Wants::Nothing;
            }
            At::Lock | At::PickLock => {
                go.side.owner = Some(number);
                go.wants = Wants::Nothing;
            }
            At::SideUnlock => {
                go.side.insert_owner = None;
                go.leaving = false;
                self.run(&mut go, false);
            }
            At::Unlock | At::PickUnlock if go.leaving => {
                go.side.owner = None;
                go.leaving = false;
                self.run(&mut go, false);
            }
            At::TryLock => {
                let free = go.side.owner.is_none();
                self.cpu.answer = match free {
                    true => Answer::Locked,
                    false => Answer::Contended,
                };
                if free {
                    go.side.owner = Some(number);
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

    /// A CPU's next read, in a plug of its own: after the flush of a plug the CPU runs the queue
    /// itself.
    fn submit(&mut self, go: &mut Go<'_>) {
        let submitted = &mut go.side.submitted[usize::from(go.number)];
        let request = go.number * go.setting.per_cpu + *submitted;
        *submitted += 1;
        go.side.requests[usize::from(request)].life = Life::Live;
        let bio = add_read(go.mq, QueueId(0), request, request.into());
        self.cpu.plug.start(1);
        self.stack
            .push(Frame::Submit(SubmitPath::new(QueueId(0), bio)));
        self.run(go, true);
        assert!(self.stack.is_empty(), "a bio goes into the plug at once");
        self.cpu.plug.active = false;
        let flush = PlugPath::new(QueueId(0), Unplug::Finish);
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
        let mut go = Go::new(setting, world, number, At::Submit);
        self.run(&mut go, true);
        assert!(self.stack.is_empty(), "a completion is one action");
        if setting.reruns {
            self.stack
                .push(Frame::Run(RunPath::new(QueueId(0), HCTX, false)));
        }
        self.put_away(world, number, Wants::Nothing, false);
    }

    /// Moves the frames that are left on the stack back to the process.
    fn put_away(&mut self, world: &mut World, number: u8, wants: Wants, leaving: bool) {
        assert_eq!(self.cpu.locks_held(), 0, "an action ends with a lock");
        assert!(self.stack.depth() <= FRAMES, "{:?}", self.stack);
        let mut frames = [None; FRAMES];
        for (place, frame) in frames.iter_mut().zip(self.stack.frames()) {
            *place = Some(*frame);
        }
        self.stack.clear();
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

struct Go<'a> {
    setting: &'a Setting,
    mq: &'a BlkMq,
    side: &'a mut Side,
    number: u8,
    at: At,
    wants: Wants,
    leaving: bool,
    /// blkmq's own lock is held for the time of the action, too.
    elevator: bool,
    inserted: bool,
    /// At least one label must run.
    steps: bool,
    /// The last label, until its released locks were looked at.
    last: Option<Label>,
    log: Option<Vec<Label>>,
}

/// Why a process stops within an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// The next label begins another action, or no frame is left.
    Over,
    /// A section ends; the release of its lock is the next step.
    Leaves,
}

impl Runner {
    /// Runs labels until the next one begins an action, or until the stack is empty; at least one
    /// label if `steps`.
    fn run(&mut self, go: &mut Go<'_>, steps: bool) {
        let has = |owner: Option<u8>| owner == Some(go.number);
        (go.elevator, go.inserted) = (has(go.side.owner), has(go.side.insert_owner));
        if go.elevator {
            go.mq.acquire(ELEVATOR, &mut self.cpu);
        }
        if go.inserted {
            go.mq.acquire(INSERTED, &mut self.cpu);
        }
        go.steps = steps;
        go.log = self.log.take();
        let wanted = match go.wants {
            Wants::Lock(lock) => Next::Lock(lock),
            Wants::Try | Wants::Nothing => Next::Step,
        };
        let (cpu, stack) = (&mut self.cpu, &mut self.stack);
        let mq = go.mq;
        let stop = drive(go, mq, Context { cpu, stack }, wanted);
        self.log = go.log.take();
        if stop == Stop::Leaves {
            return;
        }
        let q = go.mq.queue(QueueId(0));
        if go.elevator {
            deadline(q).policy.release(&mut self.cpu);
        }
        if go.inserted {
            deadline(q).series().inserted.release(&mut self.cpu);
        }
    }
}

impl<'a> Go<'a> {
    fn new(setting: &'a Setting, world: &'a mut World, number: u8, at: At) -> Go<'a> {
        Go {
            setting,
            mq: &world.mq,
            side: &mut world.side,
            number,
            at,
            wants: Wants::Nothing,
            leaving: false,
            elevator: false,
            inserted: false,
            steps: false,
            last: None,
            log: None,
        }
    }

    /// Whether the grant of this lock is an action of its own.
    fn is_a_step(&self, lock: LockId) -> bool {
        match lock {
            ELEVATOR => true,
            // Dispatch takes and drops insert_lock within one action.
            INSERTED => self.at != At::TakeSide,
            _ => false,
        }
    }

    fn stops_at(&self, label: Label) -> bool {
        match self.wants {
            Wants::Lock(lock) if self.is_a_step(lock) => return true,
            Wants::Try => return true,
            Wants::Lock(_) | Wants::Nothing => {}
        }
        let Some(at) = begins_at(label, self.setting) else {
            return false;
        };
        // Repeated looks for work are one action, and so is a search for a tag.
        !matches!(at, At::HasWork | At::Offer) || self.at != at
    }

    /// A lock that the process held was released: the release is a step of its own, unless the
    /// label did nothing else.
    fn leaves(&mut self) -> bool {
        let Some(last) = self.last.take() else {
            return false;
        };
        if self.elevator && self.mq.is_free(ELEVATOR) {
            if last != SeriesInsert::Unlock.label() {
                return true;
            }
            self.side.owner = None;
            // The next labels run outside the lock.
            self.elevator = false;
            return false;
        }
        self.inserted && self.mq.is_free(INSERTED)
    }

    /// Whether the action is over before the next label.
    fn stop(&mut self, stack: &Stack) -> Flow<Self> {
        if self.leaves() {
            self.leaving = true;
            return ControlFlow::Break(Stop::Leaves);
        }
        match stack.last() {
            Some(frame) if !self.steps && self.stops_at(frame.label()) => {
                ControlFlow::Break(Stop::Over)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Driver for Go<'_> {
    type Stop = Stop;

    fn turn(&mut self, at: Context<'_>) -> Flow<Self> {
        self.stop(at.stack)
    }

    fn ends(&mut self, _cpu: &mut Cpu) -> Stop {
        Stop::Over
    }

    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
        self.steps = false;
        self.last = Some(label);
        if let Some(log) = &mut self.log {
            log.push(label);
        }
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    /// A lock that is no step of its own is taken and dropped within an action.
    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        self.wants = Wants::Lock(lock);
        self.stop(at.stack)?;
        self.wants = Wants::Nothing;
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        assert_eq!(lock, ELEVATOR, "no other lock is tried");
        self.wants = Wants::Try;
        self.stop(at.stack)
    }

    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        let Offer { rq, .. } = offer;
        self.mq.start_request(QueueId(0), rq, at.cpu);
        let request = self.mq.queue(QueueId(0)).with_pool(|pool| owner(pool, rq));
        let entry = &mut self.side.requests[usize::from(request)];
        entry.life = Life::Device;
        entry.slot = Some(rq);
        at.cpu.answer = Answer::Ok;
        ControlFlow::Continue(())
    }
}

impl Machine for Go<'_> {
    fn kick(&mut self, kick: Kick) {
        assert!(kick.unless_pending, "runs are asked for with a delay only");
        self.side.armed = true;
    }

    fn bio_end(&mut self, _queue: QueueId, bio: BioId, _status: Status) {
        self.mq
            .queue(QueueId(0))
            .with_pool(|pool| pool.free_bio(bio));
    }
}
