//! The thread driver: each thread steps frames of the real paths; device, kicks and wake-ups are
//! shared.
//!
//! Device and effects sit in a `std` mutex that loom does not see: it orders nothing between the
//! threads, so all ordering that the verdicts rest on comes from the block layer's own words.

use super::throttle::Throttle;
use blkmq::dm::table::Table;
use blkmq::drive::{self, Driver, Flow, Kick, Offer, Stack, attempt, carry_out, drive};
use blkmq::elevator::{SchedulerKind, SchedulerSettings};
use blkmq::env::{Answer, Cpu};
use blkmq::list::QueueList;
use blkmq::path::label::{List, MapEnd, Token};
use blkmq::path::{EndBatchPath, Frame, Label, Next, RunPath, SubmitPath};
use blkmq::queue::{Above, BlkMq, LockId, MappedConfig, QueueConfig, QueueSettings};
use blkmq::request::{Bio, BioId, CpuId, HctxId, Op, QueueId, RequestId, Sector, Sectors, Status};
use blkmq::rules::{BioPlug, Rules};
use blkmq::tags::{CpuTopology, HctxCounts, TagSetConfig};
use blkmq::time::Duration;
use blkmq::waiter::WaiterId;
use core::ops::ControlFlow;
use loom::thread;
use std::sync::Mutex;

/// A thread with a stack that paths of a debug build fit in: loom gives an eighth of it.
pub(crate) fn spawn<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let builder = thread::Builder::new().stack_size(1 << 15);
    builder.spawn(run).expect("a thread")
}

/// One queue, one hctx, two CPUs, a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) rules: Rules,
    /// One with other properties is a throttle.
    pub(crate) scheduler: SchedulerKind,
    pub(crate) tags: u16,
    /// Requests that the device takes; more are refused with BLK_STS_DEV_RESOURCE.
    pub(crate) device_limit: u16,
    /// Tokens of each kind, if fewer than the scheduler has.
    pub(crate) tokens: Option<u32>,
    /// The operation of its bios.
    pub(crate) op: Op,
    /// It is a mapped queue over that of one path, which has this many tags; 0: it is not mapped.
    pub(crate) below: u8,
    /// Queues of the same tags; none is mapped.
    pub(crate) users: u8,
    /// A run after 3 ms counts, though it turns a stall into a delay.
    pub(crate) rescued: bool,
}

impl Setup {
    /// Reads, and as many tokens as the scheduler has.
    pub(crate) fn of(rules: Rules, scheduler: SchedulerKind) -> Setup {
        Setup {
            rules,
            scheduler,
            tags: 2,
            device_limit: 2,
            tokens: None,
            op: Op::Read,
            below: 0,
            users: 1,
            rescued: false,
        }
    }
}

/// State that threads share besides the block layer.
#[derive(Debug, Default)]
struct Outside {
    in_device: Vec<(QueueId, RequestId)>,
    kicked: bool,
    /// Tasks that were woken, a bit each.
    woken: u32,
    ended: usize,
}

/// The block layer, its device, and the effects of its paths.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) mq: BlkMq,
    outside: Mutex<Outside>,
    setup: Setup,
}

/// The queue of a mapped device, and that of its only path.
fn over_one_path(config: &QueueConfig, tags: u8) -> Vec<Vec<QueueConfig>> {
    let rules = &config.settings.rules.device_mapper;
    let table = "0 8 multipath 0 0 1 1 queue-length 0 1 1 a 1";
    let table = Table::parse(table, rules, 2).expect("a line of a table");
    let mut lower = config.clone();
    lower.settings =
        QueueSettings::plain(config.settings.rules, SchedulerKind::None, u32::from(tags));
    lower.tags.queue_depth = u32::from(tags);
    lower.elevator = SchedulerSettings::None;
    lower.above = Some(Above::Requests(QueueId(0)));
    let upper = QueueConfig {
        mapped: Some(MappedConfig {
            table,
            below: vec![QueueId(1)],
            nodes: vec![0; 2],
            timeout_secs: 0,
        }),
        ..config.clone()
    };
    vec![vec![upper], vec![lower]]
}

/// A path with its callers, and the CPU that runs it.
#[derive(Debug)]
pub(crate) struct Context {
    stack: Stack,
    cpu: Cpu,
    forgets: Option<Forgets>,
}

/// Steps that a mutant omits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forgets {
    /// The run after the re-check of the put-back.
    Recheck,
    /// The second attempt to get a token, once the hctx is in a wait queue.
    TokenRetry,
    /// The wake-up of waiters until nothing of a mapped device is in flight.
    DrainedWake,
}

impl Context {
    /// `task` names the context as lock owner and as waiter.
    pub(crate) fn new(cpu: u16, task: u32, frame: Frame) -> Context {
        let mut cpu = Cpu::new(CpuId(cpu));
        cpu.owner = task;
        cpu.task = WaiterId(task);
        Context {
            stack: Stack::of(frame),
            cpu,
            forgets: None,
        }
    }

    pub(crate) fn forgetting(self, what: Forgets) -> Context {
        Context {
            forgets: Some(what),
            ..self
        }
    }

    pub(crate) fn cpu(&mut self) -> &mut Cpu {
        &mut self.cpu
    }

    /// Sleeps for a tag.
    pub(crate) fn is_parked(&self) -> bool {
        !self.stack.is_empty()
    }
}

impl Machine {
    /// Built by a thread of its own, which has ended before others begin: parts of the block layer
    /// are large while they are built.
    pub(crate) fn new(setup: &Setup) -> Machine {
        let setup = *setup;
        let built = spawn(move || Machine::build(&setup));
        built.join().expect("a machine")
    }

    fn build(setup: &Setup) -> Machine {
        let scheduled = setup.scheduler != SchedulerKind::None;
        let nr_requests = if scheduled { 4 } else { u32::from(setup.tags) };
        let config = QueueConfig {
            // The run that follows a submission is another thread's.
            settings: QueueSettings::plain(
                setup.rules.with_bio_plug(BioPlug::Never),
                setup.scheduler,
                nr_requests,
            ),
            tags: TagSetConfig {
                queue_depth: u32::from(setup.tags),
                counts: HctxCounts {
                    default: 1,
                    read: 0,
                    poll: 0,
                },
                hctx_shared: false,
                vectors: false,
                waiters: 2,
                tasks: 8,
                wait_queues: 8,
            },
            topology: CpuTopology::flat(2),
            elevator: match setup.scheduler {
                SchedulerKind::Custom(info) => {
                    SchedulerSettings::Custom(Throttle::custom(info, false))
                }
                kind => kind.defaults(250, nr_requests),
            },
            further: Vec::new(),
            bios: 3,
            mapped: None,
            above: None,
        };
        let sets = match setup.below {
            0 => vec![vec![config; usize::from(setup.users)]],
            tags => over_one_path(&config, tags),
        };
        let mut mq = BlkMq::with_sets(&sets, &mut || 0);
        for tokens in mq.queues.iter_mut().flat_map(|queue| &mut queue.tokens) {
            if let Some(depth) = setup.tokens {
                tokens.map.reduce(depth);
                // With one token, a token that is given twice is a lost one.
                tokens.map.given_twice = false;
            }
        }
        Machine {
            mq,
            outside: Mutex::default(),
            setup: *setup,
        }
    }

    /// Submits a new bio.
    pub(crate) fn submission(&self, number: u32) -> Frame {
        let mut bio = Bio::default();
        bio.op = self.setup.op;
        bio.sector = Sector(u64::from(number) * 100);
        bio.sectors = Sectors(8);
        bio.segments = 1;
        let id = self
            .mq
            .queue(QueueId(0))
            .with_pool(|pool| pool.add_bio(bio));
        Frame::Submit(SubmitPath::new(
            QueueId(0),
            id.expect("a slot for each bio"),
        ))
    }

    pub(crate) fn work() -> Frame {
        Frame::Run(RunPath::work(QueueId(0), HctxId(0)))
    }

    /// The end of the device's oldest request. Panics if the device is empty.
    pub(crate) fn completion(&self) -> Frame {
        let (queue, rq) = self.outside(|outside| outside.in_device.remove(0));
        self.mq.ends(queue, rq, Status::Ok)
    }

    /// The same, as an interrupt handler ends a batch.
    pub(crate) fn batch(&self) -> Frame {
        let (queue, rq) = self.outside(|outside| outside.in_device.remove(0));
        let mut list = QueueList::new();
        self.mq
            .queue(queue)
            .with_pool(|pool| list.push_back(pool, rq));
        Frame::EndBatch(EndBatchPath::new(queue, list))
    }

    fn outside<R>(&self, act: impl FnOnce(&mut Outside) -> R) -> R {
        act(&mut self.outside.lock().expect("no thread panics with it"))
    }

    /// True if a run was scheduled since the last call.
    pub(crate) fn take_kick(&self) -> bool {
        self.outside(|outside| std::mem::take(&mut outside.kicked))
    }

    /// True if this task was woken since the last call.
    pub(crate) fn take_wake(&self, task: u32) -> bool {
        self.outside(|outside| {
            let woken = outside.woken >> task & 1 == 1;
            outside.woken &= !(1 << task);
            woken
        })
    }

    pub(crate) fn ended(&self) -> usize {
        self.outside(|outside| outside.ended)
    }

    pub(crate) fn in_device(&self) -> usize {
        self.outside(|outside| outside.in_device.len())
    }

    /// Runs scheduled work, the device completes; then this many bios have ended.
    pub(crate) fn drain_of(&self, bios: usize) {
        let alone = |frame| self.run(Context::new(0, 0, frame));
        loop {
            if self.take_kick() {
                alone(Machine::work());
            } else if self.in_device() > 0 {
                alone(self.completion());
            } else {
                break;
            }
        }
        let left = "stall: a request is left and nothing will run it";
        assert_eq!(self.ended(), bios, "{left}");
    }

    /// Runs a context until it ends or sleeps.
    pub(crate) fn run(&self, mut context: Context) -> Context {
        let mut thread = Thread {
            machine: self,
            forgets: context.forgets,
            last: None,
            ends_above: None,
        };
        let (cpu, stack) = (&mut context.cpu, &mut context.stack);
        let at = drive::Context { cpu, stack };
        drive(&mut thread, &self.mq, at, Next::Step);
        context
    }
}

/// A running context, the only one on its thread.
struct Thread<'a> {
    machine: &'a Machine,
    forgets: Option<Forgets>,
    /// The label that ran.
    last: Option<Label>,
    /// A request of a mapped queue whose second completion runs here.
    ends_above: Option<RequestId>,
}

impl Driver for Thread<'_> {
    /// It ended or sleeps: the stack says which.
    type Stop = ();

    fn turn(&mut self, at: drive::Context<'_>) -> Flow<Self> {
        if let Some(rq) = self.ends_above.take() {
            let end = self.machine.mq.ends(QueueId(0), rq, Status::Ok);
            at.stack.push(end);
        }
        let next = at.stack.last().map(Frame::label);
        if self.forgets == Some(Forgets::TokenRetry) && next == Some(Token::Retry.label()) {
            at.stack.pop();
            at.cpu.answer = Answer::NoToken;
        }
        ControlFlow::Continue(())
    }

    fn ends(&mut self, _cpu: &mut Cpu) {}

    fn after(&mut self, label: Label, _cpu: &mut Cpu) {
        self.last = Some(label);
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: drive::Context<'_>) -> Flow<Self> {
        self.machine.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: drive::Context<'_>) -> Flow<Self> {
        attempt(&self.machine.mq, lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn calls(&mut self, _cpu: &mut Cpu) -> bool {
        let drops = match self.forgets {
            Some(Forgets::Recheck) => Some(List::Restart.label()),
            Some(Forgets::DrainedWake) => Some(MapEnd::Fewer.label()),
            Some(Forgets::TokenRetry) | None => None,
        };
        drops.is_none() || drops != self.last
    }

    /// queue_rq.
    fn offer(&mut self, offer: Offer, at: drive::Context<'_>) -> Flow<Self> {
        let limit = usize::from(self.machine.setup.device_limit);
        let taken = self.machine.outside(|outside| {
            let room = outside.in_device.len() < limit;
            if room {
                outside.in_device.push((offer.queue, offer.rq));
            }
            room
        });
        at.cpu.answer = Answer::DevResource;
        if taken {
            self.machine.mq.start_request(offer.queue, offer.rq, at.cpu);
            at.cpu.answer = Answer::Ok;
        }
        ControlFlow::Continue(())
    }

    /// No device is suspended here while a run of its queue is in progress.
    fn grace(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        cpu.answer = Answer::GoOn;
        ControlFlow::Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(())
    }
}

impl drive::Machine for Thread<'_> {
    fn kick(&mut self, kick: Kick) {
        let now = kick.delay == Duration::ZERO || self.machine.setup.rescued;
        self.machine.outside(|outside| outside.kicked |= now);
    }

    /// The list is empty.
    fn kick_requeue(&mut self, _queue: QueueId) {}

    fn run_queue(&mut self, _queue: QueueId) {
        self.machine.outside(|outside| outside.kicked = true);
    }

    fn complete(&mut self, _queue: QueueId, rq: RequestId) {
        self.ends_above = Some(rq);
    }

    fn bio_end(&mut self, _queue: QueueId, _bio: BioId, _status: Status) {
        self.machine.outside(|outside| outside.ended += 1);
    }

    fn wake(&mut self, waiter: WaiterId) {
        self.machine
            .outside(|outside| outside.woken |= 1 << waiter.0);
    }

    /// There is no clock: it never expires.
    fn arm(&mut self, _queue: QueueId, _timer: u8, _after: Duration) {}

    /// A rescue after seconds: it does not count.
    fn time_out(&mut self, _queue: QueueId, _after: Duration) {}
}
