//! The machine as the explorer sees it: contexts that step paths, a device, work items, timers.
//!
//! Time does not advance; each possible next event is a [`Choice`]. Labels that touch nothing
//! shared, or only words that nothing changes here, run together with the next label that does:
//! they commute with every step of the others. Read next: `world/context.rs`, then `oracle.rs` for
//! the invariants.

mod change;
mod context;
mod device;
mod mapped;
mod mutant;
mod steps;

use core::fmt;
use core::hash::{Hash, Hasher};

use crate::config::{Config, Paths, Task};
use blkmq::path::{
    BioWork, BioWorkPath, Execute, ExecutePath, Frame, Label, Next, PlugPath, SuspendPath,
    Suspends, SwitchPath, TimeoutPath, Unplug,
};
use blkmq::queue::BlkMq;
use blkmq::request::{Bio, HctxId, IoContextId, OpFlags, QueueId, RequestId, Sector, Sectors};
pub(crate) use context::{Context, Phase, Role};
pub(crate) use mapped::{ABOVE, AroundPaths};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Choice {
    pub(crate) context: u8,
    pub(crate) way: u8,
}

/// A request by its queue and its slot in that queue's pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Slot {
    pub(crate) queue: QueueId,
    pub(crate) rq: RequestId,
}

/// A label that ran, and the label of the tag path within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ran {
    pub(crate) label: Label,
    pub(crate) stage: Option<&'static str>,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label.name())?;
        match self.stage {
            Some(stage) => write!(f, " ({stage})"),
            None => Ok(()),
        }
    }
}

/// When the work item of an hctx runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Pending {
    No,
    /// As soon as kblockd gets to it.
    Now,
    /// When its timer expires.
    Later,
}

/// The part of a state that the paths do not know.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Outside {
    /// Requests that the device has, lowest queue and slot first: it may complete any of them.
    pub(crate) in_device: Vec<Slot>,
    pub(crate) refusals: u8,
    /// Requeues that the driver may still do.
    pub(crate) requeues: u8,
    /// Hctxs that the driver has promised to run, queue by queue.
    pub(crate) promised: u64,
    /// The work item of each hctx, queue by queue.
    pub(crate) run_work: Vec<Pending>,
    /// The work item of each queue's requeue list.
    pub(crate) requeue_work: Vec<Pending>,
    /// Armed timers of schedulers, queue by queue, one bit each: each may expire at any time.
    pub(crate) timers: u32,
    /// Armed timeout timers, one bit per queue: each may expire at any time.
    pub(crate) timeouts: u8,
    /// Bios submitted so far.
    pub(crate) started: u32,
    /// Bios ended so far.
    pub(crate) ended: u32,
    /// The remaining state of the driver.
    pub(crate) driver: DriverState,
    /// The state around the paths of a mapped queue.
    pub(crate) paths: AroundPaths,
}

/// State of a driver that stops queues, has budgets or waits for a passthrough request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct DriverState {
    pub(crate) budgets: u32,
    /// A context got no budget (`sdev->restarts`).
    pub(crate) turned_away: bool,
    /// The device has taken a passthrough request.
    pub(crate) awake: bool,
    /// Requests taken while a passthrough request was on the dispatch list.
    pub(crate) overtakes: u8,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) mq: BlkMq,
    pub(crate) contexts: Vec<Context>,
    pub(crate) outside: Outside,
}

/// The data that no step changes.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) config: Config,
    /// No more bios are submitted: what is under way must end.
    pub(crate) draining: bool,
}

impl Clone for World {
    fn clone(&self) -> World {
        World {
            mq: self.mq.clone(),
            contexts: self.contexts.clone(),
            outside: self.outside.clone(),
        }
    }

    /// Allocates nothing once all parts have had their largest size.
    fn clone_from(&mut self, source: &World) {
        self.mq.clone_from(&source.mq);
        self.contexts.clone_from(&source.contexts);
        self.outside.in_device.clone_from(&source.outside.in_device);
        self.outside.run_work.clone_from(&source.outside.run_work);
        self.outside.refusals = source.outside.refusals;
        self.outside.requeues = source.outside.requeues;
        self.outside.promised = source.outside.promised;
        self.outside
            .requeue_work
            .clone_from(&source.outside.requeue_work);
        self.outside.timers = source.outside.timers;
        self.outside.timeouts = source.outside.timeouts;
        self.outside.started = source.outside.started;
        self.outside.ended = source.outside.ended;
        self.outside.driver = source.outside.driver;
        self.outside.paths.take_from(&source.outside.paths);
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mq.hash(state);
        self.contexts.hash(state);
        self.outside.hash(state);
    }
}

impl Fixed {
    pub(crate) fn new(config: &Config) -> Fixed {
        Fixed {
            config: config.clone(),
            draining: false,
        }
    }

    fn idle_contexts(&self, mq: &BlkMq) -> Vec<Context> {
        let config = &self.config;
        let mut contexts = Vec::new();
        let mut add = |role, cpu: u16| {
            let number = contexts.len() as u32;
            contexts.push(Context::new(role, cpu % config.cpus, number));
        };
        for (index, task) in config.tasks.iter().enumerate() {
            add(Role::Task(index as u8), task.cpu);
        }
        for queue in &mq.queues {
            for (hctx, at) in (0..).zip(&queue.hctxs) {
                add(Role::RunWork(queue.id, HctxId(hctx)), at.cpumask[0].0);
            }
        }
        let single = config.rules.single_queue.is_some();
        let mapped = config.paths.is_some();
        let flushes = config.tasks.iter().any(|task| task.flush);
        if single || mapped || config.requeues > 0 || flushes {
            add(Role::RequeueWork(QueueId(0)), 0);
        }
        // The flushes of a bio-based device are requests in the queues of its paths.
        let bios = config.paths.as_ref().is_some_and(Paths::maps_bios);
        for queue in mq.queues[1..].iter().filter(|_| bios && flushes) {
            add(Role::RequeueWork(queue.id), 0);
        }
        if mapped {
            add(Role::Manager, 0);
        }
        if bios {
            for what in BioWork::ALL {
                add(Role::BioWork(what), 0);
            }
        }
        if config
            .paths
            .as_ref()
            .is_some_and(|paths| !paths.suspensions.is_empty())
        {
            add(Role::Suspender, 0);
        }
        for queue in &mq.queues {
            for timer in config.timer_numbers() {
                add(Role::Timer(queue.id, timer), 0);
            }
        }
        for queue in &mq.queues {
            if config.timeouts >> queue.id.0 & 1 == 1 {
                add(Role::Timeout(queue.id), 0);
            }
        }
        for index in 0..config.completers {
            add(Role::Completer(index), u16::from(index));
        }
        if !config.changes.is_empty() {
            for queue in &mq.queues {
                add(Role::Writer(queue.id), 0);
            }
        }
        contexts
    }

    pub(crate) fn first(&self) -> World {
        let config = &self.config;
        let mq = config.build();
        let contexts = self.idle_contexts(&mq);
        let mut world = World {
            mq,
            contexts,
            outside: Outside {
                in_device: Vec::new(),
                refusals: config.refusals,
                requeues: config.requeues,
                promised: 0,
                run_work: vec![Pending::No; config.all_hctxs()],
                requeue_work: vec![Pending::No; config.all_queues()],
                timers: 0,
                timeouts: 0,
                started: 0,
                ended: 0,
                driver: DriverState {
                    budgets: config.budgets.unwrap_or(0),
                    ..DriverState::default()
                },
                paths: AroundPaths::new(config.paths.as_ref()),
            },
        };
        let is_completer = |context: &Context| matches!(context.role, Role::Completer(_));
        let completer = world.contexts.iter().position(is_completer);
        for task in 0..config.prefilled {
            world.run_alone(self, task);
            if config.paths.is_some() {
                world.run_work_once(self);
            }
            if task < config.ended {
                world.run_alone(self, completer.expect("a completer exists"));
            }
        }
        world
    }
}

impl Fixed {
    /// The task has bios left and may submit them.
    fn wants_more(&self, task: &Task, context: &Context) -> bool {
        context.submitted < task.bios && !self.draining
    }
}

impl World {
    /// All choices of a state, in a fixed order.
    pub(crate) fn choices(&self, fixed: &Fixed, choices: &mut Vec<Choice>) {
        choices.clear();
        for (index, context) in self.contexts.iter().enumerate() {
            let ways = match context.phase {
                Phase::Idle => self.ways_to_start(fixed, context),
                Phase::Ready | Phase::Tries(_) | Phase::Budget => 1,
                Phase::PutBudget | Phase::Follows => 1,
                Phase::Wants(id) => u8::from(self.mq.is_free(id)),
                Phase::Grace(queue) => {
                    u8::from(fixed.skips_grace() || !self.in_section(index, queue))
                }
                Phase::Exchange(queue, _) => u8::from(!self.has_hook(queue)),
                Phase::Asks(slot) => self.outside.ways_to_answer(&self.mq, fixed, slot),
                Phase::Parked if self.sleeps_by_the_clock(context) => {
                    u8::from(!self.has_started_requests())
                }
                Phase::Parked if !context.woken || fixed.config.sleepers > 0 => 0,
                Phase::Parked if fixed.config.migrates => fixed.config.cpus as u8,
                Phase::Parked => 1,
            };
            choices.extend((0..ways).map(|way| Choice {
                context: index as u8,
                way,
            }));
        }
    }

    fn ways_to_start(&self, fixed: &Fixed, context: &Context) -> u8 {
        let works = |other: &Context| other.role.is_work() && !other.is_idle();
        if fixed.config.one_worker && context.role.is_work() && self.contexts.iter().any(works) {
            return 0;
        }
        match context.role {
            Role::Task(index) => {
                let index = usize::from(index);
                let task = &fixed.config.tasks[index];
                let more = fixed.wants_more(task, context) || context.plug_to_flush();
                // If all tasks are alike they start in order: no behaviour is lost.
                let turn =
                    !fixed.config.in_order || index == 0 || self.contexts[index - 1].has_started();
                u8::from(more && turn)
            }
            Role::RunWork(queue, hctx) => {
                let work = self.outside.run_work[fixed.config.place(queue, hctx)];
                u8::from(work != Pending::No)
            }
            Role::Writer(_) => {
                let more = (context.submitted as usize) < fixed.config.changes.len();
                u8::from(more && !fixed.draining)
            }
            Role::BioWork(what) => u8::from(self.outside.paths.works(what)),
            Role::Suspender => {
                let suspensions = &fixed.paths().suspensions;
                let (done, all) = (context.submitted as usize, 2 * suspensions.len());
                let going_on = done % 2 == 1;
                u8::from(going_on || done < all && !fixed.draining)
            }
            Role::RequeueWork(queue) => {
                let work = self.outside.requeue_work[queue.index()];
                u8::from(work != Pending::No)
            }
            Role::Manager => self.may_be_told(fixed).len() as u8,
            Role::Timer(queue, timer) => {
                let place = fixed.config.timer_place(queue, timer);
                (self.outside.timers >> place & 1) as u8
            }
            Role::Timeout(queue) => self.outside.timeouts >> queue.0 & 1,
            Role::Completer(index) => {
                // Idle completers are alike: only the first one takes a request.
                let first = self
                    .contexts
                    .iter()
                    .find(|c| matches!(c.role, Role::Completer(_)) && c.phase == Phase::Idle);
                let is_first = first.is_some_and(|c| c.role == Role::Completer(index));
                if is_first {
                    self.ways_to_end() as u8
                } else {
                    0
                }
            }
        }
    }

    /// Runs each queued item of kblockd as far as it gets: all that was submitted is then with the
    /// devices, whichever context dispatches it.
    fn run_work_once(&mut self, fixed: &Fixed) {
        for index in 0..self.contexts.len() {
            let pending = match self.contexts[index].role {
                Role::RunWork(queue, hctx) => {
                    self.outside.run_work[fixed.config.place(queue, hctx)]
                }
                _ => Pending::No,
            };
            if pending == Pending::Now {
                self.run_alone_once(fixed, index);
            }
        }
    }

    /// Runs one context as far as it gets, always taking the first way.
    fn run_alone(&mut self, fixed: &Fixed, index: usize) {
        while self.goes_alone(fixed, index) {}
    }

    /// Runs one context until it has nothing under way.
    fn run_alone_once(&mut self, fixed: &Fixed, index: usize) {
        while self.goes_alone(fixed, index) && !self.contexts[index].is_idle() {}
    }

    /// One step of a context, taking the first way. False if it has none.
    fn goes_alone(&mut self, fixed: &Fixed, index: usize) -> bool {
        let (mut choices, mut log) = (Vec::new(), Vec::new());
        self.choices(fixed, &mut choices);
        let own = choices.iter().find(|c| usize::from(c.context) == index);
        if let Some(&choice) = own {
            self.apply(fixed, choice, &mut log);
        }
        own.is_some()
    }

    /// Takes one choice; `log` gets the labels that ran. Panics where the paths do.
    pub(crate) fn apply(&mut self, fixed: &Fixed, choice: Choice, log: &mut Vec<Ran>) {
        log.clear();
        let index = usize::from(choice.context);
        let phase = self.contexts[index].phase;
        if phase == Phase::Follows {
            return self.follow_up(fixed, index);
        }
        if let Phase::Exchange(queue, to) = phase {
            self.exchange(index, queue, usize::from(to));
        }
        if phase == Phase::Idle && self.start(fixed, index, usize::from(choice.way)) {
            return;
        }
        let way = (phase.wanted() != Next::Step).then_some(choice.way);
        let ran = self.advance(fixed, index, phase.wanted(), way, log);
        if ran {
            self.poison_free_slots();
        }
        if fixed.config.paths.is_some() {
            self.note_hopeless();
        }
    }

    /// Pushes the first frame of an idle context. True if that was a step of its own.
    fn start(&mut self, fixed: &Fixed, index: usize, way: usize) -> bool {
        let role = self.contexts[index].role;
        let (frame, shared) = match role {
            Role::Task(task) => (self.next_of_task(fixed, index, usize::from(task)), false),
            Role::RunWork(queue, hctx) => {
                self.outside.run_work[fixed.config.place(queue, hctx)] = Pending::No;
                (self.mq.works(queue, hctx), true)
            }
            Role::Writer(queue) => {
                let to = self.contexts[index].submitted;
                self.contexts[index].submitted += 1;
                (Frame::Switch(SwitchPath::new(queue, to as u8)), false)
            }
            Role::BioWork(what) => {
                self.outside.paths.set_work(what, false);
                (Frame::BioWork(BioWorkPath::new(ABOVE, what)), true)
            }
            Role::Suspender => {
                let number = self.contexts[index].submitted as usize;
                self.contexts[index].submitted += 1;
                let what = match number.is_multiple_of(2) {
                    true => Suspends::Begin {
                        noflush: fixed.paths().suspensions[number / 2],
                    },
                    false => Suspends::End,
                };
                (Frame::Suspend(SuspendPath::new(ABOVE, what)), false)
            }
            Role::RequeueWork(queue) => {
                self.outside.requeue_work[queue.index()] = Pending::No;
                (self.mq.requeues(queue), true)
            }
            Role::Manager => (self.tell(fixed, way), false),
            Role::Timer(queue, timer) => {
                let place = fixed.config.timer_place(queue, timer);
                self.outside.timers &= !(1 << place);
                (self.mq.expires(queue, timer), true)
            }
            Role::Timeout(queue) => {
                self.outside.timeouts &= !(1 << queue.0);
                self.mq.timer_expires(queue);
                (Frame::Timeout(TimeoutPath::new(queue)), true)
            }
            Role::Completer(_) => {
                let (slot, status) = self.end_of(way, fixed.completes_twice());
                self.outside.keep_promises(fixed);
                self.take_back(fixed, index, slot);
                (self.mq.ends(slot.queue, slot.rq, status), true)
            }
        };
        let context = &mut self.contexts[index];
        context.stack.push(frame);
        context.phase = Phase::Ready;
        shared
    }

    fn next_of_task(&mut self, fixed: &Fixed, index: usize, task: usize) -> Frame {
        let config = fixed.config.tasks[task];
        let context = &mut self.contexts[index];
        let full = config.plugged > 0 && context.plugged == config.plugged;
        if full || !fixed.wants_more(&config, context) {
            context.plugged = 0;
            context.cpu.plug.active = false;
            return Frame::Plug(PlugPath::new(config.queue, Unplug::Finish));
        }
        if config.plugged > 0 {
            context.plugged += 1;
            if !context.cpu.plug.active {
                context.cpu.plug.start(1);
            }
        }
        let mut bio = Bio::default();
        bio.op = config.op;
        bio.flags = OpFlags {
            preflush: config.flush,
            fua: config.flush,
            ..OpFlags::default()
        };
        let number = task as u64 * 1_000_000 + u64::from(context.submitted);
        bio.sector = Sector(number * 100);
        bio.sectors = Sectors(8);
        bio.segments = 1;
        bio.io_context = IoContextId(task as u32 + 1);
        bio.owner = task as u32;
        context.submitted += 1;
        self.outside.started += 1;
        let id = self
            .mq
            .queue(config.queue)
            .with_pool(|pool| pool.add_bio(bio));
        let id = id.expect("there is a slot for every bio");
        if fixed.config.paths.is_some() {
            self.outside.paths.begins(id);
        }
        let how = Execute {
            at_head: true,
            in_background: true,
        };
        match config.passthrough {
            true => Frame::Execute(ExecutePath::new(config.queue, id, how)),
            false => self.mq.submits(config.queue, id, fixed.config.then),
        }
    }
}
