//! A capture of a scheduler that holds requests back until a timer expires, made by hand.

use std::hash::{Hash, Hasher};

use blkmq::elevator::{
    After, CustomScheduler, DispatchTime, ElevatorLock, ElevatorTimer, InsertAt, Insertion, LEVELS,
    Now, Scheduler, SchedulerInfo, TimerAsk, TimerContext,
};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{Op, Place as At, RequestId, RequestPool};
use blkmq::time::{Duration, Jiffies};

use crate::event::{Event, Events, Kind};
use crate::fixtures::{self, KWORKER, TASK};
use crate::setup::Setup;
use crate::{Mode, Place, Verdict};

const LOCKS: &[ElevatorLock] = &[ElevatorLock::irq_save("delayer->lock")];
const fn info(name: &'static str, timers: &'static [ElevatorTimer]) -> SchedulerInfo {
    SchedulerInfo {
        timers,
        ..SchedulerInfo::plain(name, LOCKS)
    }
}
const HARD: SchedulerInfo = info(
    "hard",
    &[ElevatorTimer {
        name: "delayer->hrtimer",
        context: TimerContext::Hardirq,
    }],
);
const SOFT: SchedulerInfo = info(
    "soft",
    &[ElevatorTimer {
        name: "delayer->timer",
        context: TimerContext::Softirq,
    }],
);
/// From the insertion of a request to its turn.
const DELAY: Duration = Duration::from_millis(1);

/// Each read is held back again; a write cancels the timer.
#[derive(Clone, Debug)]
struct Delayer {
    info: &'static SchedulerInfo,
    queued: QueueList,
    open: bool,
    ask: Option<TimerAsk>,
}

impl Scheduler for Delayer {
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        _at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        pool[rq].place = At::Elevator;
        self.queued.push_back(pool, rq);
        self.open = false;
        self.ask = Some(match pool[rq].op {
            Op::Read => TimerAsk::Arm {
                timer: 0,
                after: DELAY,
            },
            _ => TimerAsk::Cancel { timer: 0 },
        });
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        let rq = self.queued.first().filter(|_| self.open)?;
        self.force_dispatch(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.queued.is_empty()
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        pool[rq].place = At::Path;
    }

    fn timer(&mut self, _pool: &mut RequestPool, _timer: u8, _now: Now) -> After {
        self.open = true;
        After::RunQueues
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.ask.take()
    }
}

impl CustomScheduler for Delayer {
    fn info(&self) -> &'static SchedulerInfo {
        self.info
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        (self.queued, self.open, self.ask).hash(&mut state);
    }
}

/// A device under it, a thousand ticks a second.
fn setup(info: &'static SchedulerInfo) -> Setup {
    let delayer = Delayer {
        info,
        queued: QueueList::new(),
        open: false,
        ask: None,
    };
    fixtures::setup(delayer, 1000)
}

#[derive(Default)]
struct Capture(Vec<Event>);

impl Capture {
    fn add(&mut self, us: u64, pid: u32, kind: Kind, op: Op, sector: u64) {
        let place = Place::Line(self.0.len() as u64 + 1);
        let event = fixtures::event(place, (us * 1000, pid), kind, op, sector);
        self.0.push(event);
    }

    /// A bio of this address comes and goes into the scheduler.
    fn inserted(&mut self, us: u64, op: Op, rq: u64) {
        let at = Jiffies(us / 1000);
        for kind in [
            Kind::Queue,
            Kind::Get,
            Kind::Arrive { rq, at },
            Kind::Insert,
        ] {
            self.add(us, TASK, kind, op, rq);
        }
    }

    /// A dispatch call of kblockd, with its answer.
    fn asked(&mut self, us: u64, rq: Option<u64>) {
        let at = Jiffies(us / 1000);
        let hctx = Some(0);
        self.add(us, KWORKER, Kind::Ask { at, hctx }, Op::Read, 0);
        let answer = Kind::Answer { rq, at };
        self.add(us + 2, KWORKER, answer, Op::Read, rq.unwrap_or(0));
    }

    /// A request goes to the device and comes back.
    fn issued(&mut self, us: u64, op: Op, rq: u64) {
        self.add(us, KWORKER, Kind::Issue, op, rq);
        let complete = Kind::Complete { failed: false };
        self.add(us + 50, 0, complete, op, rq);
    }

    fn judged(&self, info: &'static SchedulerInfo, mode: Mode) -> Verdict {
        let probe = |event: &Event| {
            matches!(
                event.kind,
                Kind::Arrive { .. } | Kind::Ask { .. } | Kind::Answer { .. }
            )
        };
        let kept = |event: &&Event| mode == Mode::Calls || !probe(event);
        let events = Events {
            list: self.0.iter().filter(kept).cloned().collect(),
            ..Events::default()
        };
        fixtures::verdict(mode, setup(info), events)
    }
}

/// A read that is inserted at 1 ms, held back at the first attempt, and goes at `us`.
fn read_that_goes_at(us: u64) -> Capture {
    let mut capture = Capture::default();
    capture.inserted(1_000, Op::Read, 8);
    capture.asked(1_010, None);
    capture.asked(us, Some(8));
    capture.issued(us + 4, Op::Read, 8);
    capture
}

#[test]
fn a_timer_expires_when_the_records_have_come_to_its_time() {
    for mode in [Mode::Calls, Mode::Records] {
        // One of the wheel runs in the tick after that of its expiry.
        for (info, us) in [(&HARD, 2_001), (&SOFT, 3_001)] {
            let verdict = read_that_goes_at(us).judged(info, mode);
            assert!(verdict.total > 0 && verdict.conforms(), "{verdict}");
            assert!(verdict.notes.is_empty(), "{verdict}");
        }
        // No timer lets it go so early.
        for (info, us) in [(&HARD, 1_990), (&SOFT, 2_990)] {
            let verdict = read_that_goes_at(us).judged(info, mode);
            assert_eq!(verdict.predicted, verdict.total - 1, "{verdict}");
        }
    }
}

#[test]
fn a_later_request_arms_it_again_and_a_write_cancels_it() {
    let mut later = Capture::default();
    later.inserted(1_000, Op::Read, 8);
    later.inserted(1_500, Op::Read, 16);
    later.asked(2_100, None);
    later.asked(2_510, Some(8));
    later.issued(2_514, Op::Read, 8);
    let verdict = later.judged(&HARD, Mode::Calls);
    assert!(verdict.total == 2 && verdict.conforms(), "{verdict}");

    let mut cancelled = Capture::default();
    cancelled.inserted(1_000, Op::Read, 8);
    cancelled.inserted(1_500, Op::Write, 16);
    cancelled.asked(2_600, None);
    let verdict = cancelled.judged(&HARD, Mode::Calls);
    assert!(verdict.total == 1 && verdict.conforms(), "{verdict}");
    cancelled.asked(2_700, Some(8));
    cancelled.issued(2_704, Op::Read, 8);
    let verdict = cancelled.judged(&HARD, Mode::Calls);
    assert_eq!((verdict.total, verdict.predicted), (2, 1), "{verdict}");
}
