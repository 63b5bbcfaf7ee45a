//! The loop, with a driver that records its calls.

use super::*;
use crate::elevator::SchedulerKind;
use crate::path::{CompletePath, RunPath, SubmitPath};
use crate::queue::{IrqClass, LockKind, QueueConfig, QueueSettings};
use crate::request::{Bio, BioId, CpuId, Op, QueueId, Sector, Sectors, Status};
use crate::rules::Rules;
use crate::tags::TagSetConfig;

/// Records labels, grants and effects.
#[derive(Debug, Default)]
struct Watcher {
    labels: Vec<Label>,
    settled: usize,
    queued: usize,
}

impl Follower for Watcher {
    fn before(&mut self, _mq: &BlkMq, _frame: &Frame) {
        self.settled += 1;
    }

    fn after(&mut self, _mq: &BlkMq, ran: Ran<'_>, _cpu: &mut Cpu) {
        assert_eq!(ran.was.queue(), ran.is.queue(), "a path stays what it is");
        self.labels.push(ran.was.label());
    }

    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {
        self.queued += 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    Ended,
    Waits(LockId),
}

/// A driver with a device that accepts everything.
struct Scribe<'a> {
    mq: &'a BlkMq,
    /// Runs all labels of a path before it returns to the loop.
    hurries: bool,
    only_one: bool,
    /// No lock of this kind is granted.
    withholds: Option<LockKind>,
    drops_calls: bool,
    follower: Option<Box<Watcher>>,
    labels: Vec<Label>,
    seen: Vec<String>,
    in_device: Vec<RequestId>,
}

impl Driver for Scribe<'_> {
    type Stop = Stop;

    fn ends(&mut self, cpu: &mut Cpu) -> Stop {
        assert_eq!(cpu.locks_held(), 0, "a context ends with a lock");
        Stop::Ended
    }

    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
        self.labels.push(label);
    }

    fn goes_on(&mut self, _cpu: &mut Cpu) -> bool {
        self.hurries && !self.only_one
    }

    fn one_by_one(&mut self, only: bool) {
        self.only_one = only;
    }

    fn left(&mut self, next: Next, cpu: &mut Cpu) -> Flow<Self> {
        self.seen.push(format!("left, then {next:?}"));
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn grants(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
        let grants = self.withholds != Some(lock.kind());
        if grants {
            self.mq.acquire(lock, cpu);
        }
        grants
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        match self.grants(lock, at.cpu) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Stop::Waits(lock)),
        }
    }

    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        attempt(self.mq, lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn calls(&mut self, cpu: &mut Cpu) -> bool {
        self.seen
            .push(format!("call, effects left: {}", !cpu.outbox.is_empty()));
        !self.drops_calls
    }

    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        self.seen.push(format!("offer, last: {}", offer.last));
        self.mq.start_request(offer.queue, offer.rq, at.cpu);
        self.in_device.push(offer.rq);
        at.cpu.answer = Answer::Ok;
        ControlFlow::Continue(())
    }

    fn follower(&mut self) -> Option<&mut (dyn Follower + 'static)> {
        let follower = self.follower.as_deref_mut()?;
        Some(follower)
    }
}

impl Machine for Scribe<'_> {
    fn kick(&mut self, kick: Kick) {
        self.seen.push(format!("kick, {} ns", kick.delay.0));
        if let Some(follower) = &mut self.follower {
            follower.item_queued(kick.queue, kick.delay.0 > 0);
        }
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status) {
        self.seen.push(format!("bio {status:?}"));
        self.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
    }
}

fn layer() -> BlkMq {
    // A bio without a plug is left to kblockd there: an effect.
    let rules = Rules::v6_1();
    let settings = QueueSettings::plain(rules, SchedulerKind::MqDeadline, 4);
    let config = QueueConfig::plain(settings, TagSetConfig::plain(1, 4), 1);
    BlkMq::new(&config, &mut || 0)
}

fn scribe(mq: &BlkMq) -> Scribe<'_> {
    Scribe {
        mq,
        hurries: false,
        only_one: false,
        withholds: None,
        drops_calls: false,
        follower: None,
        labels: Vec::new(),
        seen: Vec::new(),
        in_device: Vec::new(),
    }
}

fn bio(mq: &BlkMq) -> Frame {
    let bio = Bio {
        op: Op::Read,
        sector: Sector(0),
        sectors: Sectors(8),
        segments: 1,
        ..Bio::default()
    };
    let id = mq.queue(QueueId(0)).with_pool(|pool| pool.add_bio(bio));
    Frame::Submit(SubmitPath::new(QueueId(0), id.expect("there is a slot")))
}

/// Submission, the work item, the end.
fn whole(mut scribe: Scribe<'_>) -> Scribe<'_> {
    let mq = scribe.mq;
    let mut cpu = Cpu::new(CpuId(0));
    let mut alone = |frame: Frame, scribe: &mut Scribe<'_>| {
        let (cpu, stack) = (&mut cpu, &mut Stack::of(frame));
        let stop = drive(scribe, mq, Context { cpu, stack }, Next::Step);
        assert_eq!(stop, Stop::Ended);
    };
    alone(bio(mq), &mut scribe);
    alone(
        Frame::Run(RunPath::work(QueueId(0), HctxId(0))),
        &mut scribe,
    );
    let rq = scribe.in_device.pop().expect("it was offered");
    let end = CompletePath::end(QueueId(0), rq, Status::Ok);
    alone(Frame::Complete(end), &mut scribe);
    scribe
}

#[test]
fn labels_are_the_same_at_any_speed_and_followed() {
    let mq = layer();
    let slow = whole(scribe(&mq));
    let mq = layer();
    let fast = whole(Scribe {
        hurries: true,
        ..scribe(&mq)
    });
    assert_eq!(slow.labels, fast.labels);
    assert_eq!(slow.seen, fast.seen);
    let mq = layer();
    let followed = whole(Scribe {
        hurries: true,
        follower: Some(Box::default()),
        ..scribe(&mq)
    });
    let watcher = followed.follower.as_ref().expect("somebody follows");
    assert_eq!(watcher.labels, slow.labels);
    assert_eq!(watcher.settled, slow.labels.len());
    assert_eq!(watcher.queued, 1);
    assert_eq!(followed.seen, slow.seen);
}

#[test]
fn effects_come_before_what_the_path_wants() {
    let mq = layer();
    let seen = whole(scribe(&mq)).seen;
    assert!(seen.iter().all(|line| line != "call, effects left: true"));
    assert!(seen.iter().any(|line| line == "kick, 0 ns"), "{seen:?}");
    let bio = seen.iter().position(|line| line == "bio Ok");
    let bio = bio.expect("the bio ends");
    assert!(seen[bio - 1].starts_with("left, then"), "{seen:?}");
    assert!(seen.contains(&"offer, last: true".to_owned()), "{seen:?}");
}

#[test]
fn who_was_stopped_goes_on_with_what_it_wanted() {
    let mq = layer();
    let mut scribe = Scribe {
        withholds: Some(LockKind::Elevator),
        ..scribe(&mq)
    };
    let (cpu, stack) = (&mut Cpu::new(CpuId(0)), &mut Stack::of(bio(&mq)));
    let mut at = Context { cpu, stack };
    let Stop::Waits(lock) = drive(&mut scribe, &mq, at.reborrow(), Next::Step) else {
        panic!("the scheduler's lock is withheld");
    };
    assert_eq!(lock, LockId::of_elevator(QueueId(0), 0, IrqClass::Plain, 0));
    let labels = scribe.labels.len();
    assert_eq!(
        drive(&mut scribe, &mq, at.reborrow(), Next::Lock(lock)),
        Stop::Waits(lock)
    );
    assert_eq!(scribe.labels.len(), labels, "no label ran meanwhile");
    scribe.withholds = None;
    assert_eq!(
        drive(&mut scribe, &mq, at.reborrow(), Next::Lock(lock)),
        Stop::Ended
    );
}

#[test]
fn a_call_that_is_dropped_does_not_happen() {
    let mq = layer();
    let mut scribe = Scribe {
        drops_calls: true,
        ..scribe(&mq)
    };
    let (cpu, stack) = (&mut Cpu::new(CpuId(0)), &mut Stack::of(bio(&mq)));
    let mut at = Context { cpu, stack };
    assert_eq!(
        drive(&mut scribe, &mq, at.reborrow(), Next::Step),
        Stop::Ended
    );
    assert!(at.cpu.call.is_none());
    assert!(scribe.seen.iter().any(|line| line.starts_with("call")));
}

#[test]
#[should_panic(expected = "frames nest deeper")]
fn frames_do_not_nest_without_bound() {
    let mut stack = Stack::default();
    for _ in 0..=DEPTH {
        stack.push(Frame::Run(RunPath::work(QueueId(0), HctxId(0))));
    }
}
