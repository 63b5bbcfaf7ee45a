//! Schedulers of a program that uses this library: they decide the order of dispatch, have their
//! lock in the report, and a wrong one is a stall that names it.

use std::hash::{Hash, Hasher};

use blkmq::elevator::{
    Charge, Custom, CustomScheduler, DispatchTime, ElevatorLock, InsertAt, Insertion, LEVELS, Now,
    Scheduler, SchedulerInfo, SchedulerKind, SchedulerSettings, StoreError,
};
use blkmq::env::{TraceAction, TracePoint};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{CpuId, Place, RequestId, RequestPool};
use blkmq::time::SimTime;
use scenario::profile;
use scenario::report::{Early, Origin, Report};
use sim::machine::{Simulator, Stall};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::runs;

const LOCKS: &[ElevatorLock] = &[ElevatorLock::plain("own->lock")];
const FIFO: SchedulerInfo = SchedulerInfo::plain("own-fifo", LOCKS);
const LIFO: SchedulerInfo = SchedulerInfo::plain("own-lifo", LOCKS);
const BLIND: SchedulerInfo = SchedulerInfo::plain("own-blind", LOCKS);
const TOUCHING: SchedulerInfo = SchedulerInfo {
    lines: 4,
    ..SchedulerInfo::plain("own-touching", LOCKS)
};
const STEPPING: SchedulerInfo = SchedulerInfo::plain("own-stepping", LOCKS);

/// One list: oldest first, or newest first.
#[derive(Clone, Debug)]
struct OneList {
    info: &'static SchedulerInfo,
    newest_first: bool,
    queued: QueueList,
    /// Requests that it holds back; an attribute of its own.
    hold: i64,
}

impl OneList {
    fn new(info: &'static SchedulerInfo) -> OneList {
        OneList {
            info,
            newest_first: *info == LIFO,
            queued: QueueList::new(),
            hold: 0,
        }
    }
}

impl Scheduler for OneList {
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        pool[rq].place = Place::Elevator;
        match (at, self.newest_first) {
            (InsertAt::Head, false) | (InsertAt::Sorted, true) => self.queued.push_front(pool, rq),
            _ => self.queued.push_back(pool, rq),
        }
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        if self.queued.len() as i64 <= self.hold {
            return None;
        }
        let rq = self.queued.pop_front(pool)?;
        pool[rq].place = Place::Path;
        pool[rq].started = true;
        Some(rq)
    }

    fn has_work(&self) -> bool {
        *self.info != BLIND && !self.queued.is_empty()
    }

    fn take_charge(&mut self) -> Charge {
        Charge {
            container_ops: if *self.info == STEPPING { 10 } else { 0 },
            lines: (1 << self.info.lines) - 1,
        }
    }

    fn store(&mut self, name: &str, text: &str, _now: Now) -> Result<(), StoreError> {
        let unknown = || StoreError::UnknownAttribute {
            scheduler: self.info.name,
            name: name.to_owned(),
            known: vec!["hold"],
        };
        self.hold = match name {
            "hold" => text.parse().map_err(|_| unknown())?,
            _ => return Err(unknown()),
        };
        Ok(())
    }

    fn shown(&self) -> Vec<(&'static str, blkmq::elevator::Value)> {
        vec![("hold", self.hold.into())]
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        pool[rq].place = Place::Path;
    }
}

impl CustomScheduler for OneList {
    fn info(&self) -> &'static SchedulerInfo {
        self.info
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.queued.hash(&mut state);
    }
}

/// 1,200 random reads of three threads, 16 deep each, from a null_blk of 4 tags whose answers take
/// longer than submissions: requests wait in the scheduler.
fn plan(scheduler: SchedulerSettings) -> Plan {
    let job = "numjobs = 3\nnumber_ios = 400\ncpus_allowed = \"0-2\"\n\
               cpus_allowed_policy = \"split\"\n";
    plan_of(4, job, scheduler)
}

/// With v6.1's plugs the runs of one hctx are all kblockd's, one at a time: the first request
/// inserted is also issued first, by any task.
fn plan_of(tags: u32, job: &str, scheduler: SchedulerSettings) -> Plan {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 0\nirqmode = 2\n\
         hw_queue_depth = {tags}\ncompletion_nsec = 50000\n[queue]\n\
         scheduler = \"mq-deadline\"\nrules = \"v6.1\"\nnr_requests = 64\n[[job]]\nname = \"reads\"\n\
         rw = \"randread\"\ndirect = 1\nioengine = \"io_uring\"\niodepth = 16\n\
         norandommap = true\n{job}"
    );
    let mut plan = runs::plan_of(&text);
    plan.disks[0].queue.scheduler = scheduler;
    plan
}

fn own(info: &'static SchedulerInfo) -> SchedulerSettings {
    SchedulerSettings::Custom(Custom::new(OneList::new(info)))
}

struct Ran {
    stall: Option<Box<Stall>>,
    points: Vec<TracePoint>,
    report: Report,
    took: SimTime,
}

fn run(plan: &Plan) -> Ran {
    run_on(&runs::machine(), plan)
}

fn run_on(profile: &MachineProfile, plan: &Plan) -> Ran {
    let mut simulator = Simulator::new(plan, profile).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    simulator.settle();
    let traced: Vec<(SimTime, CpuId, u32, TracePoint)> = simulator.take_trace();
    let report = Report::new(
        Origin::default(),
        plan,
        profile,
        simulator.recorder(),
        stall.as_deref().map(Early::Stall),
    );
    Ran {
        stall,
        points: traced.into_iter().map(|(.., point)| point).collect(),
        report,
        took: simulator.now(),
    }
}

fn run_list(info: &'static SchedulerInfo) -> Ran {
    run(&plan(own(info)))
}

/// First sectors of requests as they were inserted, or issued.
fn sectors(points: &[TracePoint], action: TraceAction) -> Vec<u64> {
    let of = points.iter().filter(|point| point.action == action);
    of.map(|point| point.sector.0).collect()
}

#[test]
fn the_policy_decides_the_order() {
    // Four times 16 at once from one thread, which waits for all of them: a batch is in the
    // scheduler before its first request is dispatched.
    let job = "numjobs = 1\nnumber_ios = 64\niodepth_batch_submit = 16\n\
               iodepth_batch_complete_min = 16\n";
    for (info, reverses) in [(&FIFO, false), (&LIFO, true)] {
        let ran = run(&plan_of(1, job, own(info)));
        assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
        let mut expected = sectors(&ran.points, TraceAction::Insert);
        assert_eq!(expected.len(), 64, "nothing merges");
        if reverses {
            expected.chunks_mut(16).for_each(<[u64]>::reverse);
        }
        let issued = sectors(&ran.points, TraceAction::Issue);
        assert_eq!(issued, expected, "{}", info.name);
    }
}

#[test]
fn all_ios_of_several_threads_end() {
    for info in [&FIFO, &LIFO] {
        let ran = run_list(info);
        assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
        assert_eq!(ran.report.jobs[0].read.total_ios, 1_200);
        let issued = sectors(&ran.points, TraceAction::Issue);
        let oldest_first = sectors(&ran.points, TraceAction::Insert) == issued;
        assert_eq!(oldest_first, *info == FIFO, "{}", info.name);
    }
}

#[test]
fn its_lock_and_its_name_are_in_the_report() {
    let report = run_list(&FIFO).report;
    let lock = report.locks.iter().find(|lock| lock.name == "own->lock");
    let lock = lock.expect("the lock was taken");
    // A look for a merge and an insertion for each I/O at most, and dispatches.
    assert!(lock.acquisitions >= 1_200, "{}", lock.acquisitions);
    assert!(!report.locks.iter().any(|lock| lock.name == "dd->lock"));
    assert_eq!(report.blksim.scheduler, "own-fifo");
    assert!(report.to_json().contains("\"own-fifo\""));
    assert_eq!(
        SchedulerKind::Custom(&FIFO).name(),
        "own-fifo",
        "as queue/scheduler shows it"
    );
}

#[test]
fn one_that_never_has_work_is_a_stall_that_names_it() {
    let stall = run_list(&BLIND).stall.expect("nothing is dispatched");
    let text = stall.to_string();
    // Three threads, 16 deep each: all of them.
    let named = "scheduler own-blind: 48 requests queued, has_work: no";
    assert!(text.contains(named), "{text}");
    assert_eq!(stall.requests.len(), 48);
}

#[test]
fn what_it_charges_costs_time_under_its_lock() {
    let mut profile = profile::built_in("ryzen-7950x").unwrap();
    // Otherwise the lines arrive together with that of the lock's data, which is missed as often.
    profile.without.overlap = true;
    let hold = |info| {
        let ran = run_on(&profile, &plan(own(info)));
        let mut locks = ran.report.locks.iter();
        let lock = locks.find(|l| l.name == "own->lock");
        lock.map_or(0, |lock| lock.hold_ns / lock.acquisitions)
    };
    let [bare, lines, steps] = [&FIFO, &TOUCHING, &STEPPING].map(hold);
    assert!(lines * 10 > bare * 12, "{bare} ns, {lines} ns");
    assert!(steps * 10 > bare * 12, "{bare} ns, {steps} ns");
}

#[test]
fn attributes_are_written_and_shown() {
    let mut settings = own(&FIFO);
    assert!(settings.store("fifo_batch", "1").is_err());
    settings.store("hold", "1").unwrap();
    assert_eq!(settings.show("hold"), Some(1));
    // One request is never dispatched: the last I/O does not end, and the report shows it.
    let ran = run(&plan(settings));
    assert!(ran.took > SimTime::ZERO);
    let stall = ran.stall.expect("a request is held back").to_string();
    assert!(stall.contains("own-fifo: 1 requests queued"), "{stall}");
    assert!(stall.contains("has_work: yes"), "{stall}");
}
