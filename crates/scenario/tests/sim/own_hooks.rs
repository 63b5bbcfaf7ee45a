//! Timers and hooks of a program's own scheduler in the simulator, and its knowledge of a request's
//! owner.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use blkmq::elevator::{
    After, Custom, CustomScheduler, DispatchTime, ElevatorLock, ElevatorTimer, Hooks, InsertAt,
    Insertion, LEVELS, Now, Scheduler, SchedulerInfo, SchedulerSettings, TimerAsk, TimerContext,
    Wanted,
};
use blkmq::env::{TraceAction, TracePoint};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{IoContextId, Place, Request, RequestId, RequestPool};
use blkmq::time::{Duration, SimTime};
use sim::machine::Simulator;
use sim::plan::Plan;

use crate::runs;

const LOCKS: &[ElevatorLock] = &[ElevatorLock::irq_save("own->lock")];
const PLAIN: SchedulerInfo = SchedulerInfo::plain("own-plain", LOCKS);
const HOOKED: SchedulerInfo = SchedulerInfo {
    hooks: Hooks {
        prepare: true,
        completed: true,
        requeued: true,
        finished: true,
        exits: true,
    },
    ..SchedulerInfo::plain("own-hooked", LOCKS)
};
const fn delaying(name: &'static str, timers: &'static [ElevatorTimer]) -> SchedulerInfo {
    SchedulerInfo {
        timers,
        ..SchedulerInfo::plain(name, LOCKS)
    }
}
const HARD: SchedulerInfo = delaying(
    "own-hard",
    &[ElevatorTimer {
        name: "own->hrtimer",
        context: TimerContext::Hardirq,
    }],
);
const SOFT: SchedulerInfo = delaying(
    "own-soft",
    &[ElevatorTimer {
        name: "own->timer",
        context: TimerContext::Softirq,
    }],
);
/// Delay of a scheduler that delays.
const DELAY: Duration = Duration(1_000_000);
/// The tag limit of the I/O context with number 1.
const LIMIT: u32 = 8;

#[derive(Clone, Debug, Default)]
struct Seen {
    prepared: u32,
    completed: u32,
    requeued: u32,
    finished: u32,
    exits: Vec<IoContextId>,
    /// Requests of each I/O context from insertion to finish, and the most of them.
    queued: [u32; 4],
    most: [u32; 4],
}

#[derive(Clone, Debug)]
struct Own {
    info: &'static SchedulerInfo,
    queued: QueueList,
    open: bool,
    ask: Option<TimerAsk>,
    /// Requests of context 1 may not use more tags than [`LIMIT`].
    limits: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Own {
    fn new(info: &'static SchedulerInfo) -> Own {
        Own {
            info,
            queued: QueueList::new(),
            open: info.timers.is_empty(),
            ask: None,
            limits: false,
            seen: Arc::default(),
        }
    }

    fn see<R>(&self, see: impl FnOnce(&mut Seen) -> R) -> R {
        see(&mut self.seen.lock().unwrap())
    }
}

impl Scheduler for Own {
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
        if !self.info.timers.is_empty() {
            self.open = false;
            self.ask = Some(TimerAsk::Arm {
                timer: 0,
                after: DELAY,
            });
        }
        let whose = pool[rq].io_context.0 as usize;
        // A requeued one is counted already.
        if core::mem::replace(&mut pool[rq].elv_priv[1], 2) < 2 {
            self.see(|seen| {
                seen.queued[whose] += 1;
                seen.most[whose] = seen.most[whose].max(seen.queued[whose]);
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
        let rq = self.queued.first().filter(|_| self.open)?;
        self.force_dispatch(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.queued.is_empty()
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        pool[rq].place = Place::Path;
    }

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        (self.limits && wanted.io_context == IoContextId(1)).then_some(LIMIT)
    }

    fn prepare(&self, rq: &mut Request) {
        assert_eq!(rq.elv_priv, [0; 2], "a request comes without private data");
        rq.elv_priv[1] = 1;
        self.see(|seen| seen.prepared += 1);
    }

    fn completed(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        assert_eq!(pool[rq].elv_priv[1], 2, "as insertion left it");
        assert!(now.time > SimTime::ZERO);
        self.see(|seen| seen.completed += 1);
        After::Nothing
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        assert_eq!(pool[rq].elv_priv[1], 2, "as insertion left it");
        self.see(|seen| seen.requeued += 1);
        After::Nothing
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        let whose = pool[rq].io_context.0 as usize;
        self.see(|seen| {
            seen.finished += 1;
            seen.queued[whose] -= 1;
        });
        After::Nothing
    }

    fn exits(&mut self, _pool: &mut RequestPool, io_context: IoContextId, _now: Now) -> After {
        self.see(|seen| seen.exits.push(io_context));
        After::Nothing
    }

    fn timer(&mut self, _pool: &mut RequestPool, _timer: u8, _now: Now) -> After {
        self.open = true;
        After::RunQueues
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.ask.take()
    }
}

impl CustomScheduler for Own {
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

fn plan(job: &str, faults: &str, own: Own) -> Plan {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 0\nirqmode = 2\n\
         hw_queue_depth = 16\ncompletion_nsec = 50000\n{faults}[queue]\n\
         scheduler = \"mq-deadline\"\nnr_requests = 64\n[[job]]\nname = \"reads\"\n\
         rw = \"randread\"\ndirect = 1\nioengine = \"io_uring\"\nnorandommap = true\n{job}"
    );
    let mut plan = runs::plan_of(&text);
    plan.disks[0].queue.scheduler = SchedulerSettings::Custom(Custom::new(own));
    plan
}

fn run(plan: &Plan) -> Vec<(SimTime, TracePoint)> {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    if let Some(stall) = runs::to_its_end(&mut simulator) {
        panic!("{stall}");
    }
    let traced = simulator.take_trace().into_iter();
    traced.map(|(at, _, _, point)| (at, point)).collect()
}

const THREE: &str = "iodepth = 16\nnumjobs = 3\nnumber_ios = 200\ncpus_allowed = \"0-2\"\n\
                     cpus_allowed_policy = \"split\"\n";

#[test]
fn a_timer_decides_when_requests_go() {
    let alone = "iodepth = 1\nnumber_ios = 20\n";
    let waits = |info: &'static SchedulerInfo| -> Vec<u64> {
        let points = run(&plan(alone, "", Own::new(info)));
        let times = |action: TraceAction| -> Vec<SimTime> {
            let of = points.iter().filter(|(_, point)| point.action == action);
            of.map(|&(at, _)| at).collect()
        };
        let (inserted, issued) = (times(TraceAction::Insert), times(TraceAction::Issue));
        assert_eq!((inserted.len(), issued.len()), (20, 20));
        let pairs = inserted.into_iter().zip(issued);
        pairs.map(|(from, to)| to.since(from).0).collect()
    };
    // At once, when it is due, and one tick of 4 ms later than at the first after that: the timer
    // wheel rounds up (calc_index()).
    let [at_once, hard, soft] = [&PLAIN, &HARD, &SOFT].map(waits);
    assert!(at_once.iter().all(|&ns| ns < 20_000), "{at_once:?}");
    let due = DELAY.0..DELAY.0 + 50_000;
    assert!(hard.iter().all(|ns| due.contains(ns)), "{hard:?}");
    let tick = 0..8_050_000;
    assert!(soft.iter().all(|ns| tick.contains(ns)), "{soft:?}");
    assert!(soft.iter().sum::<u64>() > hard.iter().sum(), "{soft:?}");
}

#[test]
fn each_hook_is_called_once_for_each_request() {
    let own = Own::new(&HOOKED);
    let seen = Arc::clone(&own.seen);
    let faults = "[device.fault]\nrequeue = \"1/10\"\n";
    let points = run(&plan(THREE, faults, own));
    let count = |action: TraceAction| {
        let of = points.iter().filter(|(_, point)| point.action == action);
        of.count() as u32
    };
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.prepared, count(TraceAction::GetRq));
    assert_eq!(seen.completed, 600);
    assert_eq!(seen.finished, 600);
    assert!(seen.requeued > 20, "{}", seen.requeued);
    assert_eq!(seen.requeued, count(TraceAction::Requeue));
    assert_eq!(seen.queued, [0; 4], "what was inserted is finished");
    let mut exits = seen.exits;
    exits.sort();
    assert_eq!(exits, [1, 2, 3].map(IoContextId), "each thread once");
}

#[test]
fn a_limit_of_tags_is_that_of_an_io_context() {
    let most = |limits: bool| {
        let mut own = Own::new(&HOOKED);
        own.limits = limits;
        let seen = Arc::clone(&own.seen);
        run(&plan(THREE, "", own));
        seen.lock().map(|seen| seen.most).unwrap()
    };
    assert_eq!(most(false), [0, 16, 16, 16]);
    assert_eq!(most(true), [0, LIMIT, 16, 16]);
}
