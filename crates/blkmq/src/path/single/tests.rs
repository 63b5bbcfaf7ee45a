//! Plug, driver's function and ends, letter by letter, with a device that keeps every request.

use crate::call::ThenUnplug;
use crate::names::Label;
use crate::step::Next;
use core::ops::ControlFlow;
use std::collections::VecDeque;

use super::*;
use crate::drive::{Context, Driver, Flow, Kick, Machine, Offer, Stack, attempt, carry_out, drive};
use crate::elevator::SchedulerKind;
use crate::env::{Answer, TracePoint};
use crate::queue::{EndRuns, LockId, QueueConfig, QueueSettings};
use crate::request::{Bio, CpuId, Op, Sector, Sectors};
use crate::rules::Rules;
use crate::tags::TagSetConfig;
use crate::waiter::WaiterId;

/// A queue with its device, and the effects of its labels.
struct Bench {
    mq: BlkMq,
    cpu: Cpu,
    on: Machinery,
}

#[derive(Default)]
struct Machinery {
    letters: Vec<&'static str>,
    answers: VecDeque<Answer>,
    /// Answers to get_budget; none: there is one.
    budgets: VecDeque<Answer>,
    in_device: Vec<RequestId>,
    armed: Option<Duration>,
    /// kblockd's items: a run, unplug_work.
    items: [bool; 2],
    /// A task that has gone to sleep.
    parked: bool,
    woken: Vec<WaiterId>,
    ended: usize,
}

/// The machinery with the current queue.
struct On<'a> {
    mq: &'a BlkMq,
    on: &'a mut Machinery,
}

fn letter(point: &TracePoint) -> &'static str {
    match point.action {
        TraceAction::Queue => "Q",
        TraceAction::BackMerge => "M",
        TraceAction::GetRq => "G",
        TraceAction::Plug => "P",
        TraceAction::Unplug => "U",
        TraceAction::UnplugTimer => "UT",
        TraceAction::Insert => "I",
        TraceAction::Issue => "D",
        TraceAction::Requeue => "R",
        TraceAction::Complete => "C",
        _ => "?",
    }
}

impl Driver for On<'_> {
    /// False: the task sleeps.
    type Stop = bool;

    fn ends(&mut self, cpu: &mut Cpu) -> bool {
        assert_eq!(cpu.locks_held(), 0, "a context ends with a lock");
        true
    }

    fn after(&mut self, _label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        self.on.letters.extend(cpu.trace.iter().map(letter));
        cpu.trace.clear();
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        assert!(
            lock.masks_irq(),
            "interrupts are off under the queue's lock"
        );
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        attempt(self.mq, lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        let answer = self.on.answers.pop_front().unwrap_or(Answer::Ok);
        if answer == Answer::Ok {
            self.mq.start_request(offer.queue, offer.rq, at.cpu);
            self.on.in_device.push(offer.rq);
        }
        at.cpu.answer = answer;
        ControlFlow::Continue(())
    }

    fn budget(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        cpu.answer = self.on.budgets.pop_front().unwrap_or(Answer::Budget(0));
        ControlFlow::Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        self.on.parked = true;
        ControlFlow::Break(false)
    }
}

impl Machine for On<'_> {
    fn kick(&mut self, _kick: Kick) {
        self.on.items[0] = true;
    }

    fn kick_requeue(&mut self, _queue: QueueId) {
        self.on.items[1] = true;
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, _status: Status) {
        self.on.ended += 1;
        self.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
    }

    fn wake(&mut self, waiter: WaiterId) {
        self.on.woken.push(waiter);
    }

    fn arm(&mut self, _queue: QueueId, timer: u8, after: Duration) {
        if timer == UNPLUG_TIMER {
            self.on.armed = Some(after);
        }
    }

    fn cancel(&mut self, _queue: QueueId, timer: u8) {
        if timer == UNPLUG_TIMER {
            self.on.armed = None;
        }
    }
}

const QUEUE: QueueId = QueueId(0);

impl Bench {
    fn new(rules: Rules, nr_requests: u32, depth: u32) -> Bench {
        Bench::with((rules, SchedulerKind::Noop), nr_requests, depth, |_| {})
    }

    /// The same with another scheduler, and a change of the settings.
    fn with(
        (rules, scheduler): (Rules, SchedulerKind),
        nr_requests: u32,
        depth: u32,
        change: impl Fn(&mut QueueSettings),
    ) -> Bench {
        let mut settings = QueueSettings {
            rotational: true,
            single: Some(SingleSettings {
                depth,
                end_runs: EndRuns::Always,
            }),
            nomerges: crate::rules::NoMerges::All,
            ..QueueSettings::plain(rules, scheduler, nr_requests)
        };
        change(&mut settings);
        let config = QueueConfig {
            bios: 32,
            ..QueueConfig::plain(settings, TagSetConfig::plain(1, depth), 1)
        };
        let mut cpu = Cpu::new(CpuId(0));
        cpu.tracing = true;
        Bench {
            mq: BlkMq::new(&config, &mut || 0),
            cpu,
            on: Machinery::default(),
        }
    }

    /// Runs a frame to its end, or to the sleep of its task; returns its letters.
    fn run(&mut self, frame: Frame) -> String {
        let mut stack = Stack::of(frame);
        self.go_on(&mut stack, Next::Step)
    }

    fn go_on(&mut self, stack: &mut Stack, wanted: Next) -> String {
        let Bench { mq, cpu, on } = self;
        let at = Context { cpu, stack };
        drive(&mut On { mq, on }, mq, at, wanted);
        core::mem::take(&mut self.on.letters).join(" ")
    }

    fn bio(&mut self, sector: u64, then: ThenUnplug) -> Frame {
        self.bio_of(sector, 8, then)
    }

    fn bio_of(&mut self, sector: u64, sectors: u32, then: ThenUnplug) -> Frame {
        let bio = Bio {
            op: Op::Read,
            sector: Sector(sector),
            sectors: Sectors(sectors),
            segments: 1,
            io_context: crate::request::IoContextId(self.cpu.task.0 + 1),
            ..Bio::default()
        };
        let id = self.mq.queue(QUEUE).with_pool(|pool| pool.add_bio(bio));
        self.mq.submits(QUEUE, id.expect("there is a slot"), then)
    }

    fn submit(&mut self, sector: u64, then: ThenUnplug) -> String {
        let frame = self.bio(sector, then);
        self.run(frame)
    }

    fn end(&mut self) -> String {
        let rq = self.on.in_device.remove(0);
        let frame = self.mq.ends(QUEUE, rq, Status::Ok);
        self.run(frame)
    }

    fn plugged(&self) -> bool {
        let single = self.mq.queue(QUEUE).single.as_ref();
        single.expect("of that kind").plugged.peek()
    }
}

#[test]
fn four_requests_unplug_and_merged_bios_do_not_count() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    assert_eq!(bench.submit(100, ThenUnplug::Nobody), "Q G P I");
    assert_eq!(
        bench.on.armed,
        Some(Duration::from_millis(4)),
        "a tick of 250"
    );
    assert_eq!(bench.submit(108, ThenUnplug::Nobody), "Q M");
    assert_eq!(bench.submit(300, ThenUnplug::Nobody), "Q G I");
    assert_eq!(bench.submit(500, ThenUnplug::Nobody), "Q G I");
    assert!(bench.plugged());
    assert_eq!(bench.submit(700, ThenUnplug::Nobody), "Q G I D D D D");
    assert_eq!(bench.on.armed, None);
    // The driver has four, and none is queued: the next one plugs again.
    assert_eq!(bench.submit(900, ThenUnplug::Nobody), "Q G P I");
    let ends: Vec<String> = (0..3).map(|_| bench.end()).collect();
    assert_eq!(ends, ["C D", "C", "C"]);
    assert_eq!(bench.on.ended, 4, "one request has two bios");
    assert!(!bench.plugged(), "the first end ran the queue");
}

#[test]
fn the_timer_leaves_it_to_kblockd() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    bench.submit(100, ThenUnplug::Nobody);
    let timer = bench.mq.expires(QUEUE, UNPLUG_TIMER);
    assert_eq!(bench.run(timer), "UT");
    assert_eq!(bench.on.items, [false, true]);
    let work = bench.mq.requeues(QUEUE);
    assert_eq!(bench.run(work), "U D");
    assert_eq!(bench.run(work), "U", "it is not plugged any more");
}

#[test]
fn who_waits_unplugs_and_a_bio_may_ask_for_it() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    bench.submit(100, ThenUnplug::Nobody);
    let waits = bench.mq.unplugs(QUEUE).expect("a queue of that kind");
    assert_eq!(bench.run(waits), "U D");
    assert_eq!(bench.submit(300, ThenUnplug::Bio), "Q G P I D");
    assert_eq!(bench.submit(500, ThenUnplug::Task), "Q G P I U D");
    let mut later = Bench::new(Rules::v4_20(), 128, 32);
    assert_eq!(later.submit(100, ThenUnplug::Nobody), "Q G I D");
}

/// A driver that refuses while it holds no request plugs the queue: the timer runs it again.
#[test]
fn what_is_refused_waits_for_an_end_or_for_the_timer() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    bench.on.answers.push_back(Answer::Resource);
    assert_eq!(bench.submit(100, ThenUnplug::Bio), "Q G P I D R P");
    assert!(bench.on.armed.is_some());
    let work = bench.mq.requeues(QUEUE);
    assert_eq!(bench.run(work), "U D");
    // While it holds a request, the end of that runs it.
    bench.on.answers.push_back(Answer::Resource);
    assert_eq!(bench.submit(300, ThenUnplug::Bio), "Q G P I D R");
    assert!(!bench.plugged());
    assert_eq!(bench.end(), "C D");
}

#[test]
fn a_request_that_is_refused_for_good_ends() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    bench.on.answers.push_back(Answer::Error(Status::IoError));
    bench.submit(100, ThenUnplug::Nobody);
    bench.submit(300, ThenUnplug::Nobody);
    let waits = bench.mq.unplugs(QUEUE).expect("a queue of that kind");
    assert_eq!(bench.run(waits), "U D C D");
    assert_eq!((bench.on.ended, bench.on.in_device.len()), (1, 1));
}

/// A run while the driver's function is in progress plugs the queue and leaves it to kblockd, and
/// the function stops there.
#[test]
fn the_drivers_function_does_not_recurse() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    bench.submit(100, ThenUnplug::Nobody);
    let sq = bench.mq.queue(QUEUE).single.as_ref();
    sq.expect("of that kind").state.held(CpuId(0)).runs = true;
    let run = bench.mq.works(QUEUE, HctxId(0));
    assert_eq!(bench.run(run), "");
    assert!(bench.plugged());
    assert_eq!(bench.on.items, [false, true]);
    let sq = bench.mq.queue(QUEUE).single.as_ref();
    sq.expect("of that kind").state.held(CpuId(0)).runs = false;
    let work = bench.mq.requeues(QUEUE);
    assert_eq!(bench.run(work), "U D");
}

/// At the limit a task dispatches queued requests, sleeps, and continues with a freed request.
#[test]
fn a_task_sleeps_for_a_request() {
    let mut bench = Bench::new(Rules::v2_6_32(), 1, 32);
    assert_eq!(bench.submit(100, ThenUnplug::Nobody), "Q G P I");
    bench.cpu.task = WaiterId(1);
    let mut stack = Stack::of(bench.bio(300, ThenUnplug::Nobody));
    assert_eq!(bench.go_on(&mut stack, Next::Step), "Q D");
    assert!(bench.on.parked, "and what was plugged is out");
    assert_eq!(bench.end(), "C");
    assert_eq!(bench.on.woken, [WaiterId(1)]);
    assert_eq!(bench.go_on(&mut stack, Next::Step), "G P I");
}

/// get_request_wait(): a task that has slept becomes a batcher, so that it gets a request though
/// another one has taken the freed one before.
#[test]
fn a_woken_task_gets_a_request_beyond_the_limit() {
    let mut bench = Bench::new(Rules::v2_6_32(), 2, 32);
    bench.submit(100, ThenUnplug::Nobody);
    bench.submit(300, ThenUnplug::Nobody);
    bench.cpu.task = WaiterId(1);
    let mut stack = Stack::of(bench.bio(500, ThenUnplug::Nobody));
    assert_eq!(bench.go_on(&mut stack, Next::Step), "Q D D");
    assert!(bench.on.parked);
    bench.end();
    assert_eq!(bench.on.woken, [WaiterId(1)]);
    bench.cpu.task = WaiterId(2);
    assert_eq!(bench.submit(700, ThenUnplug::Nobody), "Q G P I");
    bench.cpu.task = WaiterId(1);
    assert_eq!(bench.go_on(&mut stack, Next::Step), "G I");
}

/// scsi_request_fn(): without a command of its device that could end, the timer runs the queue
/// again.
#[test]
fn without_a_budget_the_timer_or_an_end_runs_the_queue() {
    let noop = (Rules::v2_6_32(), SchedulerKind::Noop);
    for busy in [false, true] {
        let mut bench = Bench::with(noop, 128, 32, |settings| settings.driver_budget = true);
        if busy {
            bench.submit(100, ThenUnplug::Bio);
        }
        bench.on.budgets.push_back(Answer::NoBudget);
        bench.submit(300, ThenUnplug::Bio);
        assert_eq!(bench.on.in_device.len(), usize::from(busy));
        assert_eq!(bench.plugged(), !busy, "busy: {busy}");
        assert_eq!(bench.on.armed.is_some(), !busy, "busy: {busy}");
    }
}

#[test]
fn a_flush_ends_at_once_without_write_cache() {
    let mut bench = Bench::new(Rules::v2_6_32(), 128, 32);
    let bio = Bio {
        op: Op::Write,
        flags: crate::request::OpFlags {
            preflush: true,
            ..Default::default()
        },
        ..Bio::default()
    };
    let bio = bench.mq.queue(QUEUE).with_pool(|pool| pool.add_bio(bio));
    let frame = bench.mq.submits(QUEUE, bio.unwrap(), ThenUnplug::Bio);
    assert_eq!(bench.run(frame), "");
    assert_eq!(bench.on.ended, 1);
}

#[test]
fn a_long_bio_is_split() {
    let noop = (Rules::v2_6_32(), SchedulerKind::Noop);
    let mut bench = Bench::with(noop, 128, 32, |settings| settings.limits.max_sectors = 3);
    assert_eq!(
        bench.submit(100, ThenUnplug::Task),
        "Q G P I Q G I Q G I U D D D"
    );
    let sectors = bench.mq.queue(QUEUE).with_pool(|pool| {
        let each = |&rq: &RequestId| (pool[rq].sector.0, pool[rq].sectors.0);
        bench.on.in_device.iter().map(each).collect::<Vec<_>>()
    });
    assert_eq!(sectors, [(100, 3), (103, 3), (106, 2)]);
}

/// cfq_rq_enqueued() of 2.6.32: the queue that CFQ has waited for runs at once, and afterwards it
/// must dispatch even so.
#[test]
fn cfq_marks_the_awaited_queue_after_its_run() {
    let mut bench = Bench::with((Rules::v2_6_32(), SchedulerKind::Cfq), 128, 32, |_| {});
    bench.submit(100, ThenUnplug::Task);
    bench.end();
    let show = |bench: &Bench| {
        let q = bench.mq.queue(QUEUE);
        let text = q.with_pool(|pool| q.elevator.inspect(|policy| policy.show(pool)));
        text.expect("CFQ shows its queues")
    };
    assert!(show(&bench).contains("waits, timer"), "{}", show(&bench));
    let frame = bench.bio_of(108, 16, ThenUnplug::Nobody);
    assert_eq!(bench.run(frame), "Q G P I D");
    assert!(show(&bench).contains("must"), "{}", show(&bench));
}

#[test]
fn hot_frames_are_what_they_were() {
    let largest = size_of::<SubmitPath>();
    assert!(size_of::<SingleSubmit>() < largest);
    assert!(size_of::<SingleRun>() < largest);
    assert!(size_of::<SingleEnd>() < largest);
    assert!(
        size_of::<crate::path::Call>() <= 48,
        "{}",
        size_of::<crate::path::Call>()
    );
}
