//! A mapped queue of the single-queue kind over one path of blk-mq, letter by letter: the driver's
//! function, the thread and both ends.

mod suspended;

use crate::call::{ThenUnplug, ToTarget};
use crate::names::Label;
use core::ops::ControlFlow;

use super::*;
use crate::dm::multipath::{Message, Uevent};
use crate::dm::table::Table;
use crate::drive::{Context, Driver, Flow, Kick, Machine, Offer, Stack, attempt, carry_out, drive};
use crate::elevator::SchedulerKind;
use crate::env::TraceAction;
use crate::path::{Frame, TargetPath};
use crate::queue::{
    Above, BlkMq, EndRuns, LockId, MappedConfig, QueueConfig, QueueSettings, SingleSettings,
};
use crate::request::{Bio, BioId, CpuId, HctxId, Op, Sector, Sectors, Status};
use crate::rules::Rules;
use crate::tags::TagSetConfig;
use crate::waiter::WaiterId;

const TOP: QueueId = QueueId(0);
const PATH: QueueId = QueueId(1);

/// Both queues, and the effects of their labels.
struct Bench {
    mq: BlkMq,
    cpu: Cpu,
    on: Machinery,
}

#[derive(Default)]
struct Machinery {
    /// Letters of blktrace, those of the path's queue small.
    letters: Vec<String>,
    /// Requests that the thread will map.
    to_map: Vec<RequestId>,
    /// Runs of queues by kblockd, with their delays.
    kicks: Vec<(QueueId, Duration)>,
    uevents: Vec<Uevent>,
    /// Answers of the device; none: it takes every request.
    answers: Vec<Answer>,
    in_device: Vec<RequestId>,
    completed: Vec<RequestId>,
    ended: Vec<Status>,
    /// Tasks that wait for the thread, and those that were woken.
    flushes: Vec<WaiterId>,
    woken: Vec<WaiterId>,
    /// The context sleeps.
    parked: bool,
}

struct On<'a> {
    mq: &'a BlkMq,
    on: &'a mut Machinery,
}

fn letter(action: TraceAction) -> &'static str {
    match action {
        TraceAction::Queue => "Q",
        TraceAction::GetRq => "G",
        TraceAction::Insert => "I",
        TraceAction::Issue => "D",
        TraceAction::Remap => "A",
        TraceAction::Requeue => "R",
        TraceAction::Complete => "C",
        _ => "?",
    }
}

impl Driver for On<'_> {
    type Stop = ();

    fn ends(&mut self, cpu: &mut Cpu) {
        assert_eq!(cpu.locks_held(), 0, "a context ends with a lock");
        assert_eq!(cpu.answer, Answer::None, "an answer that no path reads");
    }

    fn after(&mut self, _label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        for point in cpu.trace.drain(..) {
            let letter = letter(point.action);
            self.on.letters.push(match point.queue {
                TOP => letter.to_owned(),
                _ => letter.to_lowercase(),
            });
        }
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        attempt(self.mq, lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        assert_eq!(offer.queue, PATH, "the thread has those of the other one");
        self.mq.start_request(offer.queue, offer.rq, at.cpu);
        at.cpu.answer = self.on.answers.pop().unwrap_or(Answer::Ok);
        if at.cpu.answer == Answer::Ok {
            self.on.in_device.push(offer.rq);
        }
        ControlFlow::Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        self.on.parked = true;
        ControlFlow::Break(())
    }
}

impl Machine for On<'_> {
    fn kick(&mut self, kick: Kick) {
        self.on.kicks.push((kick.queue, kick.delay));
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status) {
        self.on.ended.push(status);
        self.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
    }

    fn wake(&mut self, waiter: WaiterId) {
        self.on.woken.push(waiter);
    }

    fn time_out(&mut self, _queue: QueueId, _after: Duration) {}

    fn complete(&mut self, queue: QueueId, rq: RequestId) {
        assert_eq!(queue, TOP);
        self.on.completed.push(rq);
    }

    fn map(&mut self, queue: QueueId, rq: RequestId) {
        assert_eq!(queue, TOP);
        self.on.to_map.push(rq);
    }

    fn flush_mapper(&mut self, queue: QueueId, waiter: WaiterId) {
        assert_eq!(queue, TOP);
        self.on.flushes.push(waiter);
    }

    fn run_queue(&mut self, queue: QueueId) {
        self.on.kicks.push((queue, Duration::ZERO));
    }

    fn uevent(&mut self, queue: QueueId, event: Uevent) {
        assert_eq!(queue, TOP);
        self.on.uevents.push(event);
    }
}

impl Bench {
    /// With so many tags below.
    fn new(rules: Rules, tags: u32) -> Bench {
        let config = |settings: QueueSettings, depth: u32| {
            QueueConfig::plain(settings, TagSetConfig::plain(1, depth), 1)
        };
        let old = rules.of_old_top().expect("it has such a queue");
        let mut top = config(
            QueueSettings {
                single: Some(SingleSettings {
                    depth: u32::MAX,
                    end_runs: EndRuns::ByDriver,
                }),
                ..QueueSettings::plain(old, SchedulerKind::Noop, 4)
            },
            4,
        );
        let line = "0 8 multipath 1 queue_if_no_path 0 1 1 round-robin 0 1 1 8:0 1";
        top.mapped = Some(MappedConfig {
            table: Table::parse(line, &old.device_mapper, 1).expect("it is right"),
            below: vec![PATH],
            nodes: vec![0],
            timeout_secs: 0,
        });
        let settings = QueueSettings::plain(rules, SchedulerKind::None, tags);
        let mut path = config(settings, tags);
        path.above = Some(Above::Requests(TOP));
        let mut cpu = Cpu::new(CpuId(0));
        cpu.tracing = true;
        Bench {
            mq: BlkMq::with_sets(&[vec![top], vec![path]], &mut || 0),
            cpu,
            on: Machinery::default(),
        }
    }

    /// Runs a frame to its end; returns its letters.
    fn run(&mut self, frame: Frame) -> String {
        let letters = self.go_on(&mut Stack::of(frame));
        assert!(!self.on.parked, "nobody wakes it");
        letters
    }

    /// Runs a context to its end, or until it sleeps; returns its letters.
    fn go_on(&mut self, stack: &mut Stack) -> String {
        let Bench { mq, cpu, on } = self;
        on.parked = false;
        drive(&mut On { mq, on }, mq, Context { cpu, stack }, Next::Step);
        core::mem::take(&mut self.on.letters).join(" ")
    }

    fn submit(&mut self, sector: u64) -> String {
        let bio = Bio {
            op: Op::Read,
            sector: Sector(sector),
            sectors: Sectors(8),
            segments: 1,
            ..Bio::default()
        };
        let bio = self.mq.queue(TOP).with_pool(|pool| pool.add_bio(bio));
        let frame = self
            .mq
            .submits(TOP, bio.expect("a slot"), ThenUnplug::Nobody);
        self.run(frame)
    }

    /// The thread takes its first request.
    fn map(&mut self) -> String {
        let rq = self.on.to_map.remove(0);
        self.run(Frame::Map(MapPath::new(TOP, rq)))
    }

    /// kblockd's run of a queue.
    fn works(&mut self, queue: QueueId) -> String {
        let frame = self.mq.works(queue, HctxId(0));
        self.run(frame)
    }

    /// The device below ends its first clone, then the softirq ends the requests above.
    fn end(&mut self, status: Status) -> String {
        let clone = self.on.in_device.remove(0);
        let frame = self.mq.ends(PATH, clone, status);
        let below = self.run(frame);
        let rq = self.on.completed.remove(0);
        let frame = self.mq.ends(TOP, rq, Status::Ok);
        format!("{below} | {}", self.run(frame))
    }

    fn message(&mut self, what: impl Into<ToTarget>) {
        self.run(Frame::Target(TargetPath::new(TOP, what.into())));
    }

    fn kicks(&mut self) -> Vec<(QueueId, Duration)> {
        core::mem::take(&mut self.on.kicks)
    }

    /// Requests that md->pending counts, and those with the driver above.
    fn in_flight(&self) -> (i32, u32) {
        let top = self.mq.queue(TOP);
        let (m, single) = (top.mapped.as_ref(), top.single.as_ref());
        let with_driver = single.unwrap().state.held(CpuId(0)).with_driver();
        (m.unwrap().pending.peek(), with_driver)
    }
}

/// The driver's function takes all requests and leaves them to the thread; the clone waits for
/// kblockd in its queue; the end has kblockd run the queue above.
#[test]
fn a_request_goes_through_the_thread_and_both_ends() {
    let mut bench = Bench::new(Rules::v4_5(), 4);
    assert_eq!(bench.submit(0), "Q G I D");
    assert_eq!(bench.submit(80), "Q G I D");
    assert_eq!((bench.on.to_map.len(), bench.in_flight()), (2, (2, 2)));
    assert_eq!(bench.kicks(), []);
    assert_eq!(bench.map(), "a i");
    assert_eq!(bench.kicks(), [(PATH, Duration::ZERO)]);
    assert_eq!(bench.works(PATH), "d");
    assert_eq!(bench.end(Status::Ok), "c C | C");
    assert_eq!(bench.on.ended, [Status::Ok]);
    assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
    assert_eq!(bench.in_flight(), (1, 1));
}

/// A request without a path that may not wait ends with an error, without a run of the queue.
#[test]
fn what_is_killed_unmapped_runs_nothing() {
    for rules in [Rules::v4_5(), Rules::v4_12()] {
        let mut bench = Bench::new(rules, 4);
        bench.submit(0);
        bench.message(Message::QueueIfNoPath(false));
        bench.message(Message::Fail(PathId(0)));
        bench.kicks();
        bench.map();
        let rq = bench.on.completed.remove(0);
        let frame = bench.mq.ends(TOP, rq, Status::Ok);
        bench.run(frame);
        assert_eq!(bench.on.ended, [Status::IoError], "{}", rules.name);
        assert_eq!(bench.kicks(), [], "{}", rules.name);
        assert_eq!(bench.in_flight(), (0, 0), "{}", rules.name);
    }
}

/// Without a tag below, a request goes to the head of the queue above, and kblockd runs it again.
#[test]
fn what_is_not_mapped_goes_back_to_the_head() {
    let mut bench = Bench::new(Rules::v4_5(), 1);
    bench.submit(0);
    bench.submit(80);
    bench.map();
    bench.kicks();
    assert_eq!(bench.map(), "R");
    assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
    assert_eq!((bench.on.to_map.len(), bench.in_flight()), (0, (1, 1)));
    bench.submit(160);
    let first = bench.on.to_map.clone();
    let sector = |rq: RequestId| bench.mq.queue(TOP).with_pool(|pool| pool[rq].sector);
    let order: Vec<Sector> = first.into_iter().map(sector).collect();
    assert_eq!(order, [Sector(80), Sector(160)]);
}

/// A path fails: its request is tried again, and while no path is left the target is busy. It is
/// asked again HZ/100 ms later, though that was meant as 10 ms; a path that comes back runs the
/// queue.
#[test]
fn a_busy_target_is_asked_again_later() {
    for (rules, ms) in [(Rules::v4_5(), 2), (Rules::v4_12(), 10)] {
        let mut bench = Bench::new(rules, 4);
        bench.submit(0);
        bench.map();
        if bench.on.in_device.is_empty() {
            bench.works(PATH);
        }
        bench.kicks();
        assert_eq!(bench.end(Status::Transport), "c | R", "{}", rules.name);
        assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
        assert_eq!(bench.works(TOP), "D");
        assert_eq!(bench.kicks(), [(TOP, Duration::from_millis(ms))]);
        assert_eq!((bench.on.to_map.len(), bench.in_flight()), (0, (0, 0)));
        bench.message(Message::Reinstate(PathId(0)));
        bench.message(Message::Reinstate(PathId(0)));
        let path = PathId(0);
        let heard = [Uevent::PathFailed(path), Uevent::PathReinstated(path)];
        assert_eq!(bench.on.uevents, heard, "each once");
        assert!(bench.kicks().contains(&(TOP, Duration::ZERO)));
        assert_eq!(bench.works(TOP), "", "it was looked at already");
        assert_eq!(bench.on.to_map.len(), 1);
        assert!(bench.on.ended.is_empty(), "nothing has ended");
    }
}

/// Without queue_if_no_path it ends, and the error is the target's.
#[test]
fn a_request_that_is_killed_ends_once() {
    let mut bench = Bench::new(Rules::v4_5(), 4);
    bench.submit(0);
    bench.message(Message::Fail(PathId(0)));
    bench.message(Message::QueueIfNoPath(false));
    assert_eq!(bench.map(), "");
    let rq = bench.on.completed.remove(0);
    let frame = bench.mq.ends(TOP, rq, Status::Ok);
    assert_eq!(bench.run(frame), "C");
    assert_eq!(bench.on.ended, [Status::IoError]);
    assert_eq!(bench.in_flight(), (0, 0));
}
