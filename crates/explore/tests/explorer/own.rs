//! A scheduler of the program's own (`Custom`) under the explorer: it holds requests back until its
//! timer expires, or until a hook reports that nothing is in the device.

use crate::clean::exhaustive;
use std::hash::{Hash, Hasher};

use blkmq::elevator::{
    After, Custom, CustomScheduler, DispatchTime, ElevatorLock, ElevatorTimer, Hooks, InsertAt,
    Insertion, LEVELS, Now, Scheduler, SchedulerInfo, TimerAsk, TimerContext,
};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{Place, RequestId, RequestPool};
use blkmq::rules::Rules;
use blkmq::time::Duration;
use explore::Config;

const LOCKS: &[ElevatorLock] = &[ElevatorLock::irq_save("idler->lock")];
const TIMER: u8 = 0;

/// Dispatches when its timer has expired since the last insertion.
const DELAYS: SchedulerInfo = SchedulerInfo {
    timers: &[ElevatorTimer {
        name: "idler->timer",
        context: TimerContext::Hardirq,
    }],
    ..SchedulerInfo::plain("delays", LOCKS)
};

/// One request in the device at a time; the end of each runs the queue.
const ONE: SchedulerInfo = SchedulerInfo {
    hooks: Hooks {
        completed: true,
        finished: true,
        requeued: true,
        ..Hooks::NONE
    },
    ..SchedulerInfo::plain("one", LOCKS)
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Flaw {
    None,
    /// The timer's function, or the hook, does not run the queue.
    NoRun,
    /// The timer is cancelled again at once.
    Cancels,
    /// A requeued request counts as in the device for ever.
    Requeued,
}

#[derive(Clone, Debug, Hash)]
struct Idler {
    timed: bool,
    flaw: Flaw,
    queued: QueueList,
    /// Requests that came before the timer expired may be dispatched.
    open: bool,
    in_device: u32,
    ask: Option<TimerAsk>,
}

impl Idler {
    fn custom(timed: bool, flaw: Flaw) -> Custom {
        Custom::new(Idler {
            timed,
            flaw,
            queued: QueueList::new(),
            open: !timed,
            in_device: 0,
            ask: None,
        })
    }

    fn runs(&self) -> After {
        match self.flaw {
            Flaw::NoRun => After::Nothing,
            _ => After::RunQueues,
        }
    }
}

impl Scheduler for Idler {
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        _at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        pool[rq].place = Place::Elevator;
        self.queued.push_back(pool, rq);
        if self.timed {
            self.open = false;
            let after = Duration(1_000_000);
            self.ask = Some(match self.flaw {
                Flaw::Cancels => TimerAsk::Cancel { timer: TIMER },
                _ => TimerAsk::Arm {
                    timer: TIMER,
                    after,
                },
            });
        }
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        if !self.open || (!self.timed && self.in_device > 0) {
            return None;
        }
        let rq = self.queued.first()?;
        self.force_dispatch(pool, rq);
        // The scheduler's mark: only requests that it dispatched count.
        pool[rq].elv_priv[1] = 1;
        self.in_device += u32::from(!self.timed);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.queued.is_empty()
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        pool[rq].place = Place::Path;
    }

    fn completed(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        assert_eq!(pool[rq].elv_priv[1], 1, "it was dispatched here");
        assert_eq!(self.in_device, 1, "one at a time");
        After::Nothing
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        self.in_device -= core::mem::take(&mut pool[rq].elv_priv[1]);
        self.runs()
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        let was = core::mem::take(&mut pool[rq].elv_priv[1]);
        if self.flaw != Flaw::Requeued {
            self.in_device -= was;
        }
        After::Nothing
    }

    fn timer(&mut self, _pool: &mut RequestPool, timer: u8, _now: Now) -> After {
        assert_eq!(timer, TIMER);
        self.open = true;
        self.runs()
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.ask.take()
    }
}

impl CustomScheduler for Idler {
    fn info(&self) -> &'static SchedulerInfo {
        if self.timed { &DELAYS } else { &ONE }
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

/// Two reads, and room for both; without 3 ms runs.
fn config(timed: bool, flaw: Flaw, change: impl FnOnce(&mut Config)) -> Config {
    let own = Idler::custom(timed, flaw);
    let mut config = Config::of_own("own", Rules::v6_12(), own, 2);
    config.tags = 2;
    config.nr_requests = 4;
    change(&mut config);
    config
}

#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "ten seconds or more: cargo xtask ci --full"
)]
fn a_timer_that_expires_at_any_time_lets_everything_end() {
    let report = exhaustive(&config(true, Flaw::None, |_| {}));
    assert_eq!(report.verdict.word(), "clean", "{report}");
    assert!(report.distinct > 1_000, "{report}");
}

#[test]
fn a_timer_that_runs_nothing_or_is_cancelled_is_a_stall() {
    for flaw in [Flaw::NoRun, Flaw::Cancels] {
        let report = exhaustive(&config(true, flaw, |_| {}));
        assert_eq!(report.verdict.word(), "stall", "{flaw:?}: {report}");
        let steps: Vec<String> = report.schedule.iter().map(ToString::to_string).collect();
        let expires = steps.iter().any(|step| step.starts_with("timer 0"));
        assert_eq!(expires, flaw == Flaw::NoRun, "{flaw:?}: {steps:#?}");
    }
}

#[test]
fn hooks_of_the_end_and_of_a_requeue_are_called_once_each() {
    for (tasks, requeues) in [(1, 2), (2, 0)] {
        let report = exhaustive(&config(false, Flaw::None, |c| {
            c.tasks.truncate(tasks);
            c.requeues = requeues;
        }));
        assert_eq!(report.verdict.word(), "clean", "{report}");
    }
    let report = exhaustive(&config(false, Flaw::NoRun, |_| {}));
    assert_eq!(report.verdict.word(), "stall", "{report}");
    // A double count fails an assertion of the scheduler, or causes a stall.
    let report = exhaustive(&config(false, Flaw::Requeued, |c| {
        c.tasks.truncate(1);
        c.requeues = 1;
    }));
    assert_ne!(report.verdict.word(), "clean", "{report}");
}
