//! The machine of a layer script: one command after another, every path to its end.
//!
//! Prints trace points and effects of the block layer; every event comes from a command, except
//! that a woken task continues after the command.

use core::ops::ControlFlow;

use super::clock;

use blkmq::drive::{self, Driver, Flow, Kick, Offer, Stack, attempt, carry_out, drive};
use blkmq::env::{Answer, Cpu, TraceAction, TracePoint};
use blkmq::path::{Frame, Label, Next, RequeuePath, RequeueRequest, RunPath};
use blkmq::queue::{BlkMq, LockId, RequestQueue};
use blkmq::request::{
    BioId, CpuId, HctxId, Op, OpFlags, Plugged, QueueId, RequestPool, Sector, Sectors, Status,
};
use blkmq::time::{Duration, SimTime};
use blkmq::waiter::WaiterId;

/// Owner numbers of contexts that are no tasks begin here.
const WORKER: u32 = 1000;

/// Work items of one command.
const WORK_ITEMS_MAX: usize = 400;

/// The result of running a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// To its end.
    Done,
    /// It sleeps until it is woken.
    Sleeps,
    /// Before a given label.
    Stops,
    /// Another context that stopped has the lock.
    Waits(LockId),
}

/// The driver's answer to an offered request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// It answers.
    Says(Answer),
    /// It starts the request, requeues it and answers BLK_STS_OK; true: with data of its own.
    Requeues(bool),
}

/// The block layer and its contexts.
pub(super) struct Machine {
    pub(super) mq: BlkMq,
    /// One task on each CPU.
    pub(super) tasks: Vec<Cpu>,
    /// Frames of tasks that sleep.
    parked: Vec<Stack>,
    /// Locks that tasks wait for.
    wants: Vec<Option<LockId>>,
    pub(super) rest: Rest,
}

/// The surroundings of the block layer, and their output.
pub(super) struct Rest {
    /// The next path stops before this label.
    pub(super) until: Option<Label>,
    woken: Vec<usize>,
    /// When the work item of each hctx runs, queue by queue.
    run_work: Vec<Vec<Option<Duration>>>,
    requeue_work: Vec<bool>,
    /// In the order of their issue.
    pub(super) in_device: Vec<Plugged>,
    /// Requests that the device takes.
    pub(super) room: usize,
    /// Budgets left for get_budget.
    pub(super) budgets: u32,
    /// Answers to the next offers, the next one last.
    pub(super) answers: Vec<Reply>,
    /// Print the labels of paths, too.
    pub(super) labels: bool,
    /// Print the scheduler's probe events.
    pub(super) probes: bool,
    /// The time of the clock.
    pub(super) now: SimTime,
    /// Armed timers of the scheduler.
    pub(super) timers: Vec<(QueueId, u8, SimTime)>,
    pub(super) printed: Vec<String>,
}

impl Machine {
    pub(super) fn new(mq: BlkMq, cpus: u16) -> Machine {
        let none = |queue: &RequestQueue| vec![None; queue.hctxs.len()];
        Machine {
            tasks: (0..cpus).map(|cpu| context(cpu, u32::from(cpu))).collect(),
            parked: vec![Stack::default(); usize::from(cpus)],
            wants: vec![None; usize::from(cpus)],
            rest: Rest {
                until: None,
                woken: Vec::new(),
                run_work: mq.queues.iter().map(none).collect(),
                requeue_work: vec![false; mq.queues.len()],
                in_device: Vec::new(),
                room: usize::MAX,
                budgets: 0,
                answers: Vec::new(),
                labels: false,
                probes: false,
                now: SimTime::ZERO,
                timers: Vec::new(),
                printed: Vec::new(),
            },
            mq,
        }
    }

    /// Runs a path of the task on `cpu`, then of tasks that it woke.
    pub(super) fn run_task(&mut self, cpu: usize, frame: Frame) -> Result<(), String> {
        if !self.parked[cpu].is_empty() {
            return Err(format!("the task on CPU {cpu} sleeps"));
        }
        self.go_on(cpu, Stack::of(frame), Next::Step);
        self.run_woken();
        Ok(())
    }

    /// A task that stopped before a label continues, or one that waits for a lock gets it.
    pub(super) fn resume(&mut self, cpu: usize) -> Result<(), String> {
        if let Some(lock) = self.wants[cpu]
            && !self.mq.is_free(lock)
        {
            return Err(format!(
                "{} is not free",
                self.mq.lock_name(self.mq.lock_slot(lock))
            ));
        }
        let wanted = self.wants[cpu].take().map_or(Next::Step, Next::Lock);
        let stack = core::mem::take(&mut self.parked[cpu]);
        if stack.is_empty() {
            return Err(format!("the task on CPU {cpu} has not stopped"));
        }
        self.go_on(cpu, stack, wanted);
        self.run_woken();
        Ok(())
    }

    fn go_on(&mut self, cpu: usize, mut stack: Stack, wanted: Next) {
        let mut context = core::mem::replace(&mut self.tasks[cpu], Cpu::new(CpuId(0)));
        let end = self.run(&mut context, &mut stack, wanted);
        self.tasks[cpu] = context;
        match end {
            End::Done => {}
            End::Sleeps => self.print(format!("cpu {cpu} sleeps")),
            End::Stops => self.print(format!("cpu {cpu} stops")),
            End::Waits(lock) => {
                self.wants[cpu] = Some(lock);
                self.print(format!(
                    "cpu {cpu} waits for {}",
                    self.mq.lock_name(self.mq.lock_slot(lock))
                ));
            }
        }
        self.parked[cpu] = stack;
    }

    fn run_woken(&mut self) {
        while let Some(cpu) = (!self.rest.woken.is_empty()).then(|| self.rest.woken.remove(0)) {
            let stack = core::mem::take(&mut self.parked[cpu]);
            if !stack.is_empty() {
                self.print(format!("cpu {cpu} wakes"));
                self.go_on(cpu, stack, Next::Step);
            }
        }
    }

    /// Runs a path outside of tasks.
    pub(super) fn run_on(&mut self, cpu: u16, frame: Frame) {
        let mut stack = Stack::of(frame);
        let end = self.run(&mut context(cpu, WORKER), &mut stack, Next::Step);
        assert_eq!(end, End::Done, "only tasks wait and stop");
        self.run_woken();
    }

    /// Runs work items until none is pending, or until so many have run that one asks for the next
    /// one for ever: of a driver that refuses requests. `timers`: also those that wait for a timer.
    pub(super) fn run_work(&mut self, timers: bool) {
        let due =
            |when: &Option<Duration>| when.is_some_and(|delay| timers || delay == Duration::ZERO);
        for _ in 0..WORK_ITEMS_MAX {
            let queues = (0..self.mq.queues.len()).map(|queue| QueueId(queue as u16));
            if let Some(queue) = queues.clone().find(|q| self.rest.requeue_work[q.index()]) {
                self.rest.requeue_work[queue.index()] = false;
                self.run_on(0, Frame::Requeue(RequeuePath::new(queue)));
                continue;
            }
            let mut items = queues.filter_map(|queue| {
                let hctx = self.rest.run_work[queue.index()].iter().position(due);
                hctx.map(|hctx| (queue, hctx))
            });
            let Some((queue, hctx)) = items.next() else {
                return;
            };
            self.rest.run_work[queue.index()][hctx] = None;
            let cpu = self.mq.queue(queue).hctxs[hctx].cpumask[0].0;
            let path = RunPath::work(queue, HctxId(hctx as u16));
            self.run_on(cpu, Frame::Run(path));
        }
    }

    /// Work items that are pending.
    pub(super) fn pending(&self) -> Vec<String> {
        let rest = &self.rest;
        let mut lines = Vec::new();
        for (queue, items) in rest.run_work.iter().enumerate() {
            let of = self.rest.of_queue(QueueId(queue as u16));
            let items = items.iter().enumerate();
            lines.extend(items.filter_map(|(hctx, when)| {
                when.map(|delay| format!("pending {}{of}", due(hctx, delay)))
            }));
            lines.extend(rest.requeue_work[queue].then(|| format!("pending requeue{of}")));
        }
        lines
    }

    fn run(&mut self, cpu: &mut Cpu, stack: &mut Stack, wanted: Next) -> End {
        cpu.at_ps = self.rest.now.0 * 1000;
        cpu.probing = self.rest.probes;
        let mut walk = Walk {
            mq: &self.mq,
            rest: &mut self.rest,
        };
        let at = drive::Context { cpu, stack };
        drive(&mut walk, &self.mq, at, wanted)
    }

    /// The driver releases the budget of a request that it has ended or not taken.
    pub(super) fn give_budget_back(&mut self, entry: Plugged) {
        self.rest.give_budget_back(&self.mq, entry);
    }

    fn print(&mut self, line: String) {
        self.rest.printed.push(line);
    }

    /// Operation and address of a request.
    pub(super) fn name(&self, entry: Plugged) -> String {
        name(&self.mq, entry)
    }

    /// hctxs that wait for a tag.
    pub(super) fn line(&self) -> Vec<String> {
        let hctxs = self.mq.queue(QueueId(0)).hctxs.iter().enumerate();
        let waits = hctxs.filter(|(_, hctx)| hctx.dispatch_wait.peek());
        waits.map(|(number, _)| format!("line {number}")).collect()
    }

    pub(super) fn restart(&self) -> Vec<String> {
        let hctxs = self.mq.queue(QueueId(0)).hctxs.iter().enumerate();
        let marked = hctxs.filter(|(_, hctx)| hctx.restart.peek());
        marked
            .map(|(number, _)| format!("restart {number}"))
            .collect()
    }
}

impl Rest {
    /// The queue of an object, where there are several.
    fn of_queue(&self, queue: QueueId) -> String {
        match self.run_work.len() {
            1 => String::new(),
            _ => format!(" queue={queue}"),
        }
    }

    fn give_budget_back(&mut self, mq: &BlkMq, entry: Plugged) {
        let held = |pool: &mut RequestPool| pool[entry.rq].budget.is_some();
        self.budgets += u32::from(mq.queue(entry.queue).with_pool(held));
    }
}

/// A path in progress.
struct Walk<'a> {
    mq: &'a BlkMq,
    rest: &'a mut Rest,
}

impl Walk<'_> {
    fn print(&mut self, line: String) {
        self.rest.printed.push(line);
    }

    /// Trace points and effects.
    fn show_effects(&mut self, cpu: &mut Cpu) {
        let messages = core::mem::take(&mut cpu.messages);
        for point in cpu.trace.drain(..) {
            let of = self.rest.of_queue(point.queue);
            if let Some(line) = traced(&point, &messages) {
                self.rest.printed.push(line + &of);
            }
        }
        carry_out(self, cpu);
    }

    /// The device's answer to an offer.
    fn reply(&mut self) -> Reply {
        let full = self.rest.in_device.len() >= self.rest.room;
        let natural = if full { Answer::Resource } else { Answer::Ok };
        let answer = self.rest.answers.pop();
        answer.unwrap_or(Reply::Says(natural))
    }

    /// The device takes a request.
    fn start(&mut self, offer: Offer, cpu: &mut Cpu) {
        let entry = Plugged {
            queue: offer.queue,
            rq: offer.rq,
        };
        let q = self.mq.queue(offer.queue);
        let hctx = q.with_pool(|pool| pool[offer.rq].hctx);
        let several = q.hctxs.len() > 1;
        self.mq.start_request(offer.queue, offer.rq, cpu);
        self.rest.in_device.push(entry);
        self.show_effects(cpu);
        let line = self.rest.printed.last_mut().expect("a start is traced");
        if several {
            *line += &format!(" hctx={}", hctx.0);
        }
        if offer.last {
            *line += " last";
        }
    }

    fn schedule_run(&mut self, queue: QueueId, hctx: HctxId, delay: Duration) {
        let hctx = usize::from(hctx.0);
        self.rest.run_work[queue.index()][hctx] = Some(delay);
        let of = self.rest.of_queue(queue);
        self.print(format!("kick {}{of}", due(hctx, delay)));
    }
}

impl Driver for Walk<'_> {
    type Stop = End;

    fn turn(&mut self, at: drive::Context<'_>) -> Flow<Self> {
        let label = at.stack.last().map(Frame::label);
        if self.rest.until.is_some() && self.rest.until == label {
            self.rest.until = None;
            return ControlFlow::Break(End::Stops);
        }
        ControlFlow::Continue(())
    }

    fn ends(&mut self, _cpu: &mut Cpu) -> End {
        End::Done
    }

    fn after(&mut self, label: Label, _cpu: &mut Cpu) {
        if self.rest.labels {
            self.print(format!("  {}", label.name()));
        }
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        self.show_effects(cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: drive::Context<'_>) -> Flow<Self> {
        if !self.mq.is_free(lock) {
            return ControlFlow::Break(End::Waits(lock));
        }
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: drive::Context<'_>) -> Flow<Self> {
        attempt(self.mq, lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn offer(&mut self, offer: Offer, at: drive::Context<'_>) -> Flow<Self> {
        let Offer { queue, rq, .. } = offer;
        let entry = Plugged { queue, rq };
        at.cpu.answer = match self.reply() {
            Reply::Requeues(dontprep) => {
                self.mq.start_request(queue, rq, at.cpu);
                self.rest.give_budget_back(self.mq, entry);
                let path = RequeueRequest::taken(queue, rq, dontprep);
                at.stack.push(Frame::RequeueRequest(path));
                Answer::Ok
            }
            Reply::Says(Answer::Ok) => {
                self.start(offer, at.cpu);
                Answer::Ok
            }
            Reply::Says(answer) => {
                let verb = match answer {
                    Answer::Error(_) => "failed",
                    _ => "refused",
                };
                let name = name(self.mq, entry);
                self.print(format!("{verb} {name}"));
                self.rest.give_budget_back(self.mq, entry);
                answer
            }
        };
        ControlFlow::Continue(())
    }

    fn budget(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        cpu.answer = match self.rest.budgets {
            0 => Answer::NoBudget,
            _ => Answer::Budget(0),
        };
        self.rest.budgets = self.rest.budgets.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn put_budget(&mut self, _queue: QueueId, _token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        self.rest.budgets += 1;
        ControlFlow::Continue(())
    }

    fn commit(&mut self, _queue: QueueId, hctx: HctxId, _cpu: &mut Cpu) -> Flow<Self> {
        self.print(format!("commit {}", hctx.0));
        ControlFlow::Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(End::Sleeps)
    }
}

impl drive::Machine for Walk<'_> {
    fn kick(&mut self, kick: Kick) {
        let pending = self.rest.run_work[kick.queue.index()][usize::from(kick.hctx.0)].is_some();
        if !(kick.unless_pending && pending) {
            self.schedule_run(kick.queue, kick.hctx, kick.delay);
        }
    }

    fn kick_requeue(&mut self, queue: QueueId) {
        self.rest.requeue_work[queue.index()] = true;
        let of = self.rest.of_queue(queue);
        self.print(format!("kick requeue{of}"));
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status) {
        let name = self.mq.queue(queue).with_pool(|pool| {
            let ended = pool.bio(bio);
            let name = address(ended.op, ended.sector, ended.sectors);
            pool.free_bio(bio);
            name
        });
        let of = self.rest.of_queue(queue);
        self.print(format!("end {name}{}{of}", status_word(status)));
    }

    fn wake(&mut self, waiter: WaiterId) {
        self.rest.woken.push(waiter.0 as usize);
    }

    fn arm(&mut self, queue: QueueId, timer: u8, after: Duration) {
        let due = self.rest.now.wheel_after(after, super::HZ);
        self.cancel(queue, timer);
        self.rest.timers.push((queue, timer, due));
    }

    fn cancel(&mut self, queue: QueueId, timer: u8) {
        let other = |&(of, number, _): &(QueueId, u8, SimTime)| (of, number) != (queue, timer);
        self.rest.timers.retain(other);
    }
}

fn name(mq: &BlkMq, Plugged { queue, rq }: Plugged) -> String {
    mq.queue(queue)
        .with_pool(|pool| address(pool[rq].op, pool[rq].sector, pool[rq].sectors))
}

fn context(cpu: u16, owner: u32) -> Cpu {
    let mut context = Cpu::new(CpuId(cpu));
    context.owner = owner;
    context.task = WaiterId(owner);
    context.tracing = true;
    context
}

fn due(hctx: usize, delay: Duration) -> String {
    match delay.0 / 1_000_000 {
        0 => hctx.to_string(),
        ms => format!("{hctx} after {ms}ms"),
    }
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "",
        Status::IoError => " ioerr",
        Status::Timeout => " timeout",
        Status::Again => " again",
        Status::NotSupported => " notsupp",
        Status::Resource => " resource",
        Status::Transport => " transport",
        Status::Target => " target",
        Status::Nexus => " nexus",
        Status::Medium => " medium",
        Status::Protection => " protection",
        Status::NoSpace => " nospc",
    }
}

fn address(op: Op, sector: Sector, sectors: Sectors) -> String {
    let letter = match op {
        Op::Read => "r",
        Op::Write => "w",
        Op::Discard => "d",
        Op::WriteZeroes => "z",
        Op::Flush => "f",
    };
    format!("{letter} {}+{}", sector.0, sectors.0)
}

/// A trace point in blktrace's letters.
fn traced(point: &TracePoint, messages: &str) -> Option<String> {
    let address = address(point.op, point.sector, point.sectors);
    let OpFlags { preflush, fua, .. } = point.flags;
    let flags = match (preflush, fua) {
        (false, false) => "",
        (true, false) => " preflush",
        (false, true) => " fua",
        (true, true) => " preflush fua",
    };
    let with = |letter: &str| format!("{letter} {address}{flags}{}", status_word(point.status));
    Some(match point.action {
        TraceAction::Queue => with("Q"),
        TraceAction::Split => format!("X {address} / {}", point.payload),
        TraceAction::BackMerge => with("M"),
        TraceAction::FrontMerge => with("F"),
        TraceAction::GetRq => with("G"),
        TraceAction::Plug => "P".to_owned(),
        TraceAction::Unplug => format!("U {}", point.payload),
        TraceAction::UnplugTimer => format!("UT {}", point.payload),
        TraceAction::Insert => with("I"),
        TraceAction::Issue => with("D"),
        TraceAction::Requeue => with("R"),
        TraceAction::Complete => with("C"),
        TraceAction::Remap => format!("A {address} <- {}", point.payload),
        TraceAction::Message(said) => format!("m {}", said.text(messages)),
        TraceAction::Probe(probe) => return clock::answer(probe),
    })
}
