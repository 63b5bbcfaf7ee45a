//! How a process goes on: labels up to the next one that is a step.

use core::fmt;
use core::ops::ControlFlow;
use std::sync::LazyLock;

use blkmq::drive::{Context, Driver, Flow, Kick, Machine, Offer, Stack, carry_out, drive};
use blkmq::env::{Answer, Cpu, Lock, Solo};
use blkmq::path::label::Pass;
use blkmq::path::{CompletePath, Frame, Label, Next, PlugPath, SubmitPath, Unplug};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{Bio, BioId, CpuId, HctxId, Op, QueueId, RequestId, Sector, Sectors, Status};
use blkmq::tags::WaiterId;
use blkmq::time::Duration;

use super::{Follower, Life};
use crate::dispatch::TABLE;
use crate::dispatch::world::{ELEVATOR, Wants, deadline};
use crate::spec::owner;

/// What a label is: a step, nothing before a step that may be chosen, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Step(&'static str),
    Choice,
    Silent,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| Label::all().map(kind_of).collect());

fn kind_of(label: Label) -> Kind {
    let row = TABLE.row(label);
    // Where a pass begins, it may be the last step's end or the next one's beginning.
    let between = [Pass::Busy.label(), Pass::Tag.label()].contains(&label);
    match row.step {
        // Steps that are taken otherwise: submission, and the whole end of a request.
        Some(_) if matches!(row.shown, Some("enters" | "ends")) => Kind::Silent,
        Some(step) => Kind::Step(step),
        None if between || label.parts().0 == "list" => Kind::Choice,
        None => Kind::Silent,
    }
}

/// Where a process stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Before this step.
    Step(&'static str),
    /// It tries to get the lock.
    Tries,
    /// Nothing is under way, or it may go on to more than one step.
    Elsewhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Step(action) => f.write_str(action),
            Place::Tries => f.write_str("TryLock"),
            Place::Elsewhere => f.write_str("no step of this name"),
        }
    }
}

/// A look for a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Merging {
    No,
    Asks,
    Looks,
}

/// A CPU, or kblockd.
#[derive(Debug)]
pub(super) struct Process {
    /// The innermost last.
    pub(super) stack: Stack,
    wants: Wants,
    /// Requests that it is about to insert, counted from 0.
    pub(super) batch: Vec<u8>,
    pub(super) merging: Merging,
    cpu: Cpu,
}

impl Process {
    pub(super) fn new(number: u8) -> Process {
        let mut cpu = Cpu::new(CpuId(u16::from(number)));
        cpu.owner = u32::from(number) + 1;
        Process {
            stack: Stack::default(),
            wants: Wants::Nothing,
            batch: Vec::new(),
            merging: Merging::No,
            cpu,
        }
    }

    /// Nothing under way.
    pub(super) fn is_idle(&self) -> bool {
        self.stack.is_empty() && self.batch.is_empty() && self.merging == Merging::No
    }
}

impl Follower<'_> {
    /// The batch goes into a plug, whose flush begins.
    pub(super) fn begin(&mut self, p: usize) -> Result<(), String> {
        let batch = core::mem::take(&mut self.processes[p].batch);
        self.processes[p].cpu.plug.start(1);
        for request in batch {
            let mut bio = Bio::default();
            bio.op = Op::Read;
            bio.sector = Sector(u64::from(request) * 100);
            bio.sectors = Sectors(8);
            bio.segments = 1;
            bio.owner = u32::from(request);
            let bio = self
                .mq
                .queue(QueueId(0))
                .with_pool(|pool| pool.add_bio(bio));
            let bio = bio.expect("there is a slot for every bio");
            let submit = Frame::Submit(SubmitPath::new(QueueId(0), bio));
            self.processes[p].stack.push(submit);
            self.run_silent(p)?;
            if !self.processes[p].stack.is_empty() {
                return Err("so many requests do not go into one plug".to_owned());
            }
        }
        let why = match self.leaves_run(p) {
            true => Unplug::Schedule,
            false => Unplug::Finish,
        };
        self.processes[p].cpu.plug.active = false;
        self.processes[p]
            .stack
            .push(Frame::Plug(PlugPath::unplug(QueueId(0), why)));
        self.run_silent(p)
    }

    /// A completion is one step.
    pub(super) fn end(&mut self, slot: RequestId) -> Result<(), String> {
        let p = usize::from(self.setting.completer());
        let end = CompletePath::end(QueueId(0), slot, Status::Ok);
        self.processes[p].stack.push(Frame::Complete(end));
        self.run_silent(p)
    }

    /// What the process does next.
    pub(super) fn place(&self, p: usize) -> Place {
        let process = &self.processes[p];
        let Some(frame) = process.stack.last() else {
            return Place::Elsewhere;
        };
        match process.wants {
            Wants::Try => return Place::Tries,
            Wants::Lock(ELEVATOR) => {
                return Place::Step(match frame {
                    Frame::Run(_) => "PickLock",
                    _ => "Lock",
                });
            }
            Wants::Lock(_) | Wants::Nothing => {}
        }
        match kind(frame.label()) {
            Kind::Step(action) if self.is_step(action) => Place::Step(action),
            _ => Place::Elsewhere,
        }
    }

    /// Without delayed runs the label that would ask for one does nothing.
    fn is_step(&self, action: &str) -> bool {
        self.setting.delayed || action != "DelayRuns"
    }

    /// It stands in line for dd->lock.
    pub(super) fn waits(&self, p: usize) -> bool {
        let lock = matches!(self.place(p), Place::Step("Lock" | "PickLock"));
        lock || self.processes[p].merging == Merging::Asks
    }

    /// Labels that are no steps, as long as there is no choice.
    pub(super) fn run_silent(&mut self, p: usize) -> Result<(), String> {
        while self.place(p) == Place::Elsewhere
            && let Some(frame) = self.processes[p].stack.last()
            && kind(frame.label()) != Kind::Choice
        {
            self.label(p)?;
        }
        Ok(())
    }

    /// Labels up to the next that is a step, but for an offer.
    pub(super) fn run_up_to_step(&mut self, p: usize) -> Result<(), String> {
        while self.place(p) == Place::Elsewhere && !self.processes[p].stack.is_empty() {
            if self.label(p)? {
                return Err("the process offers a request".to_owned());
            }
        }
        Ok(())
    }

    /// A request is offered to the device, which takes it.
    pub(super) fn offer(&mut self, p: usize) -> Result<(), String> {
        while self.place(p) == Place::Elsewhere && !self.processes[p].stack.is_empty() {
            if self.label(p)? {
                return Ok(());
            }
        }
        Err(format!("the process is at {}", self.place(p)))
    }

    /// A run is left to kblockd: before it begins, or between two passes, as somebody else is to
    /// have the CPU.
    pub(super) fn leave(&mut self, p: usize) -> Result<(), String> {
        if self.place(p) == Place::Step("LeaveRun") {
            self.label(p)?;
            return self.run_silent(p);
        }
        let kicks = self.kicks;
        self.processes[p].cpu.need_resched = true;
        let run = self.run_up_to_step(p);
        self.processes[p].cpu.need_resched = false;
        match run {
            Ok(()) if self.kicks == kicks => Err(format!("the process is at {}", self.place(p))),
            run => run,
        }
    }

    /// One label. True if it offered a request to the device.
    pub(super) fn label(&mut self, p: usize) -> Result<bool, String> {
        self.choose(p);
        let Process {
            stack, wants, cpu, ..
        } = &mut self.processes[p];
        let wanted = match core::mem::take(wants) {
            Wants::Lock(lock) if !self.mq.is_free(lock) => {
                return Err("a lock is taken".to_owned());
            }
            Wants::Lock(lock) => Next::Lock(lock),
            Wants::Try | Wants::Nothing => Next::Step,
        };
        let mut one = One {
            mq: &self.mq,
            requests: &mut self.requests,
            armed: &mut self.armed,
            kicks: &mut self.kicks,
            log: &mut self.log,
            ran: false,
            offered: false,
        };
        *wants = drive(&mut one, &self.mq, Context { cpu, stack }, wanted)?;
        let offered = one.offered;
        if self.owner == Some(p) && self.mq.is_free(ELEVATOR) {
            self.owner = None;
        }
        Ok(offered)
    }

    /// A pass that begins may pick as many requests as its steps say.
    fn choose(&mut self, p: usize) {
        let frame = self.processes[p].stack.last();
        if frame.is_some_and(|frame| kind(frame.label()) == Kind::Choice) {
            let requests = u32::from(self.setting.requests());
            let picks = self.picks_in_pass(p).unwrap_or(requests + 1);
            self.mq.queues[0].settings.nr_requests = picks;
        }
    }

    /// The process has dd->lock from now on.
    pub(super) fn grant(&mut self, p: usize) -> Result<(), String> {
        if let Some(owner) = self.owner {
            return Err(format!("process {} has the lock", owner + 1));
        }
        self.mq.acquire(ELEVATOR, &mut self.processes[p].cpu);
        self.processes[p].wants = Wants::Nothing;
        self.owner = Some(p);
        Ok(())
    }

    /// It has looked for a merge.
    pub(super) fn drop_lock(&mut self, p: usize) {
        let cpu = &mut self.processes[p].cpu;
        deadline(self.mq.queue(QueueId(0)))
            .locked
            .policy
            .release(cpu);
        self.owner = None;
    }

    /// It tries to get the lock.
    pub(super) fn try_lock(&mut self, p: usize) -> Result<(), String> {
        let free = self.owner.is_none();
        if free {
            self.grant(p)?;
        }
        self.tried(p, free);
        Ok(())
    }

    /// It has tried.
    pub(super) fn tried(&mut self, p: usize, got: bool) {
        self.processes[p].wants = Wants::Nothing;
        self.processes[p].cpu.answer = match got {
            true => Answer::Locked,
            false => Answer::Contended,
        };
    }
}

/// A process for the time of one label.
struct One<'a> {
    mq: &'a BlkMq<Solo>,
    requests: &'a mut Vec<Life>,
    armed: &'a mut bool,
    kicks: &'a mut usize,
    log: &'a mut Vec<Label>,
    ran: bool,
    offered: bool,
}

impl Driver for One<'_> {
    type Env = Solo;
    /// What the next label wants. An error: the specification has nothing of the kind.
    type Stop = Result<Wants, String>;

    fn turn(&mut self, _at: Context<'_>) -> Flow<Self> {
        match self.ran {
            true => ControlFlow::Break(Ok(Wants::Nothing)),
            false => ControlFlow::Continue(()),
        }
    }

    fn ends(&mut self, _cpu: &mut Cpu) -> Result<Wants, String> {
        Ok(Wants::Nothing)
    }

    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
        self.ran = true;
        self.log.push(label);
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        if self.ran {
            return ControlFlow::Break(Ok(Wants::Lock(lock)));
        }
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, _lock: LockId, _at: Context<'_>) -> Flow<Self> {
        ControlFlow::Break(Ok(Wants::Try))
    }

    /// The device takes everything.
    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        self.mq.start_request(QueueId(0), offer.rq, at.cpu);
        at.cpu.answer = Answer::Ok;
        let q = self.mq.queue(QueueId(0));
        let request = q.with_pool(|pool| owner(pool, offer.rq));
        self.requests[usize::from(request)] = Life::Device(offer.rq);
        self.offered = true;
        ControlFlow::Continue(())
    }

    fn budget(&mut self, _queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Err("the specification has no budgets".to_owned()))
    }

    fn put_budget(&mut self, _queue: QueueId, _token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Err("the specification has no budgets".to_owned()))
    }

    fn commit(&mut self, _queue: QueueId, _hctx: HctxId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        let what = "a task waits for a tag, which the specification has not";
        ControlFlow::Break(Err(what.to_owned()))
    }
}

impl Machine for One<'_> {
    fn kick(&mut self, _kick: Kick) {
        *self.armed = true;
        *self.kicks += 1;
    }

    fn time_out(&mut self, _queue: QueueId, _after: Duration) {
        unreachable!("the queue has its tags alone")
    }

    fn kick_requeue(&mut self, _queue: QueueId) {
        unreachable!("no request is requeued")
    }

    fn bio_end(&mut self, _queue: QueueId, bio: BioId, _status: Status) {
        self.mq
            .queue(QueueId(0))
            .with_pool(|pool| pool.free_bio(bio));
    }

    fn wake(&mut self, _waiter: WaiterId) {
        unreachable!("no task waits")
    }
}

fn kind(label: Label) -> Kind {
    KINDS[usize::from(label.0)]
}
