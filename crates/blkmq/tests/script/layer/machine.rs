//! The machine of a layer script: one thing after another, every path to its end.
//!
//! Prints what the block layer traces and what it asks of the machine; nothing happens unless a
//! command says so, except that a task which is woken goes on after the command.

use blkmq::env::{Answer, Bit, Cpu, Effect, Solo, TraceAction, TracePoint};
use blkmq::path::{Frame, Next, RequeuePath, RequeueRequest, RunPath};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors, Status};
use blkmq::tags::WaiterId;
use blkmq::time::Duration;

/// Owner numbers of contexts that are no tasks begin here.
const WORKER: u32 = 1000;

/// How far a path came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// To its end.
    Done,
    /// It sleeps until it is woken.
    Sleeps,
    /// It was told to stop.
    Stops,
    /// Somebody who stopped has the lock.
    Waits(LockId),
}

/// What the driver does with a request that it is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// It answers.
    Says(Answer),
    /// It starts the request, gives it back and answers BLK_STS_OK; true: as one with its own data.
    Requeues(bool),
}

/// What runs, and what it printed.
pub(super) struct Machine {
    pub(super) mq: BlkMq<Solo>,
    /// One task on each CPU.
    pub(super) tasks: Vec<Cpu>,
    /// Frames of tasks that sleep.
    parked: Vec<Vec<Frame>>,
    /// Locks that tasks wait for.
    wants: Vec<Option<LockId>>,
    /// The next path stops before the label of this name.
    pub(super) until: Option<String>,
    woken: Vec<usize>,
    /// When the work item of each hctx runs.
    run_work: Vec<Option<Duration>>,
    requeue_work: bool,
    /// In the order of their issue.
    pub(super) in_device: Vec<RequestId>,
    /// Requests that the device takes.
    pub(super) room: usize,
    /// That get_budget has left.
    pub(super) budgets: u32,
    /// Answers to the next offers, the next one last.
    pub(super) answers: Vec<Reply>,
    /// Print the labels of paths, too.
    pub(super) labels: bool,
    pub(super) printed: Vec<String>,
}

impl Machine {
    pub(super) fn new(mq: BlkMq<Solo>, cpus: u16) -> Machine {
        let hctxs = mq.queue(0).hctxs.len();
        Machine {
            tasks: (0..cpus).map(|cpu| context(cpu, u32::from(cpu))).collect(),
            parked: vec![Vec::new(); usize::from(cpus)],
            wants: vec![None; usize::from(cpus)],
            until: None,
            woken: Vec::new(),
            run_work: vec![None; hctxs],
            requeue_work: false,
            in_device: Vec::new(),
            room: usize::MAX,
            budgets: 0,
            answers: Vec::new(),
            labels: false,
            printed: Vec::new(),
            mq,
        }
    }

    /// Runs a path of the task on `cpu`, then of tasks that it woke.
    pub(super) fn run_task(&mut self, cpu: usize, frame: Frame) -> Result<(), String> {
        if !self.parked[cpu].is_empty() {
            return Err(format!("the task on CPU {cpu} sleeps"));
        }
        self.go_on(cpu, vec![frame]);
        self.run_woken();
        Ok(())
    }

    /// A task that stopped before a label goes on, or one that waits for a lock gets it.
    pub(super) fn resume(&mut self, cpu: usize) -> Result<(), String> {
        if let Some(lock) = self.wants[cpu] {
            if !self.mq.is_free(lock) {
                return Err(format!("{} is not free", lock.kind().name()));
            }
            self.wants[cpu] = None;
            self.mq.acquire(lock, &mut self.tasks[cpu]);
        }
        let stack = core::mem::take(&mut self.parked[cpu]);
        if stack.is_empty() {
            return Err(format!("the task on CPU {cpu} has not stopped"));
        }
        self.go_on(cpu, stack);
        self.run_woken();
        Ok(())
    }

    fn go_on(&mut self, cpu: usize, mut stack: Vec<Frame>) {
        let mut context = core::mem::replace(&mut self.tasks[cpu], Cpu::new(CpuId(0)));
        let end = self.run(&mut context, &mut stack);
        self.tasks[cpu] = context;
        match end {
            End::Done => {}
            End::Sleeps => self.print(format!("cpu {cpu} sleeps")),
            End::Stops => self.print(format!("cpu {cpu} stops")),
            End::Waits(lock) => {
                self.wants[cpu] = Some(lock);
                self.print(format!("cpu {cpu} waits for {}", lock.kind().name()));
            }
        }
        self.parked[cpu] = stack;
    }

    fn run_woken(&mut self) {
        while let Some(cpu) = (!self.woken.is_empty()).then(|| self.woken.remove(0)) {
            let stack = core::mem::take(&mut self.parked[cpu]);
            if !stack.is_empty() {
                self.print(format!("cpu {cpu} wakes"));
                self.go_on(cpu, stack);
            }
        }
    }

    /// Runs a path that is no task's.
    pub(super) fn run_on(&mut self, cpu: u16, frame: Frame) {
        let end = self.run(&mut context(cpu, WORKER), &mut vec![frame]);
        assert_eq!(end, End::Done, "only tasks wait and stop");
        self.run_woken();
    }

    /// Runs work items until none is pending; `timers`: also those that wait for a timer.
    pub(super) fn run_work(&mut self, timers: bool) {
        loop {
            let due = |when: &Option<Duration>| {
                when.is_some_and(|delay| timers || delay == Duration::ZERO)
            };
            if core::mem::take(&mut self.requeue_work) {
                self.run_on(0, Frame::Requeue(RequeuePath::new(0)));
            } else if let Some(hctx) = self.run_work.iter().position(due) {
                self.run_work[hctx] = None;
                let cpu = self.mq.queue(0).hctxs[hctx].cpumask[0].0;
                self.run_on(cpu, Frame::Run(RunPath::work(0, HctxId(hctx as u16))));
            } else {
                return;
            }
        }
    }

    /// Work items that are pending.
    pub(super) fn pending(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .run_work
            .iter()
            .enumerate()
            .filter_map(|(hctx, when)| when.map(|delay| format!("pending {}", due(hctx, delay))))
            .collect();
        lines.extend(self.requeue_work.then(|| "pending requeue".to_owned()));
        lines
    }

    fn run(&mut self, cpu: &mut Cpu, stack: &mut Vec<Frame>) -> End {
        while let Some(frame) = stack.last_mut() {
            let label = frame.label();
            if self
                .until
                .as_ref()
                .is_some_and(|until| *until == label.name())
            {
                self.until = None;
                return End::Stops;
            }
            cpu.begin_label();
            let next = frame.step(&self.mq, cpu);
            if self.labels {
                self.printed.push(format!("  {}", label.name()));
            }
            self.tell(cpu);
            match next {
                Next::Step | Next::InTime => {}
                Next::Lock(id) if !self.mq.is_free(id) => return End::Waits(id),
                Next::Lock(id) => self.mq.acquire(id, cpu),
                Next::TryLock(id) => {
                    cpu.begin_label();
                    cpu.answer = if self.mq.try_acquire(id, cpu) {
                        Answer::Locked
                    } else {
                        Answer::Contended
                    };
                }
                Next::Call => stack.push(cpu.take_call().into()),
                Next::Submit(rq) => stack.extend(self.offer(rq, false, cpu)),
                Next::SubmitLast(rq) => stack.extend(self.offer(rq, true, cpu)),
                Next::Commit(hctx) => self.print(format!("commit {hctx}")),
                Next::Park => return End::Sleeps,
                Next::Done => {
                    stack.pop();
                }
                Next::Budget if self.budgets == 0 => cpu.answer = Answer::NoBudget,
                Next::Budget => {
                    self.budgets -= 1;
                    cpu.answer = Answer::Budget(0);
                }
                Next::PutBudget(_) => self.budgets += 1,
            }
        }
        End::Done
    }

    /// The device is done with a request.
    pub(super) fn give_budget_back(&mut self, rq: RequestId) {
        let q = self.mq.queue(0);
        let held = q.with_pool(|pool| pool[rq].budget.take());
        self.budgets += u32::from(held.is_some());
    }

    /// queue_rq. Answers what the driver calls before it is back.
    fn offer(&mut self, rq: RequestId, last: bool, cpu: &mut Cpu) -> Option<Frame> {
        let full = self.in_device.len() >= self.room;
        let natural = if full { Answer::Resource } else { Answer::Ok };
        let answer = match self.answers.pop() {
            None => natural,
            Some(Reply::Says(answer)) => answer,
            Some(Reply::Requeues(dontprep)) => {
                self.mq.start_request(0, rq, cpu);
                self.give_budget_back(rq);
                cpu.answer = Answer::Ok;
                return Some(Frame::RequeueRequest(RequeueRequest::new(0, rq, dontprep)));
            }
        };
        let q = self.mq.queue(0);
        let hctx = q.with_pool(|pool| pool[rq].hctx);
        let several = q.hctxs.len() > 1;
        if answer == Answer::Ok {
            self.mq.start_request(0, rq, cpu);
            self.in_device.push(rq);
            self.tell(cpu);
            let line = self.printed.last_mut().expect("a start is traced");
            if several {
                *line += &format!(" hctx={}", hctx.0);
            }
            if last {
                *line += " last";
            }
        } else {
            let name = self.name(rq);
            let verb = if matches!(answer, Answer::Error(_)) {
                "failed"
            } else {
                "refused"
            };
            self.print(format!("{verb} {name}"));
        }
        cpu.answer = answer;
        None
    }

    /// Trace points and effects of a label.
    fn tell(&mut self, cpu: &mut Cpu) {
        for point in cpu.trace.drain(..) {
            self.printed.push(traced(&point));
        }
        let mut index = 0;
        while let Some(effect) = cpu.outbox.take(index) {
            index += 1;
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Kick { hctx, delay, .. } => self.kick(hctx, delay),
            Effect::KickUnlessPending { hctx, delay, .. } => {
                if self.run_work[usize::from(hctx.0)].is_none() {
                    self.kick(hctx, delay);
                }
            }
            Effect::KickRequeue { .. } => {
                self.requeue_work = true;
                self.print("kick requeue".to_owned());
            }
            Effect::BioEnd { bio, status, .. } => {
                let name = self.mq.queue(0).with_pool(|pool| {
                    let name = address(
                        pool.bio(bio).op,
                        pool.bio(bio).sector,
                        pool.bio(bio).sectors,
                    );
                    pool.free_bio(bio);
                    name
                });
                self.print(format!("end {name}{}", status_word(status)));
            }
            Effect::Wake(WaiterId(task)) => self.woken.push(task as usize),
        }
    }

    fn kick(&mut self, hctx: HctxId, delay: Duration) {
        let hctx = usize::from(hctx.0);
        self.run_work[hctx] = Some(delay);
        self.print(format!("kick {}", due(hctx, delay)));
    }

    fn print(&mut self, line: String) {
        self.printed.push(line);
    }

    /// Operation and address of a request.
    pub(super) fn name(&self, rq: RequestId) -> String {
        self.mq
            .queue(0)
            .with_pool(|pool| address(pool[rq].op, pool[rq].sector, pool[rq].sectors))
    }

    /// hctxs that stand in line for a tag.
    pub(super) fn line(&self) -> Vec<String> {
        let hctxs = self.mq.queue(0).hctxs.iter().enumerate();
        let waits = hctxs.filter(|(_, hctx)| hctx.dispatch_wait.peek());
        waits.map(|(number, _)| format!("line {number}")).collect()
    }

    /// RESTART bits.
    pub(super) fn restart(&self) -> Vec<String> {
        let hctxs = self.mq.queue(0).hctxs.iter().enumerate();
        let marked = hctxs.filter(|(_, hctx)| hctx.restart.peek());
        marked
            .map(|(number, _)| format!("restart {number}"))
            .collect()
    }
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
fn traced(point: &TracePoint) -> String {
    let address = address(point.op, point.sector, point.sectors);
    let OpFlags { preflush, fua, .. } = point.flags;
    let flags = match (preflush, fua) {
        (false, false) => "",
        (true, false) => " preflush",
        (false, true) => " fua",
        (true, true) => " preflush fua",
    };
    let with = |letter: &str| format!("{letter} {address}{flags}{}", status_word(point.status));
    match point.action {
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
    }
}
