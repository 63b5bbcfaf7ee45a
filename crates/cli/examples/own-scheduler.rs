//! Two schedulers of one's own against mq-deadline: mq-deadline with one rule changed, and one from
//! scratch.
//!
//! `cargo run --release --example own-scheduler`. The code below the second line runs a built-in
//! scenario with all three and prints what each of them gives readers and the writer.
#![forbid(unsafe_code)]

use std::hash::{Hash, Hasher};
use std::path::Path;

use blkmq::elevator::mq_deadline::{MqDeadline, MqDeadlineSettings};
use blkmq::elevator::{
    BioMerge, Charge, Custom, CustomScheduler, DispatchTime, ElevatorLock, InsertAt, Insertion,
    LEVELS, MinShallow, Now, Scheduler, SchedulerInfo, SchedulerKind, SchedulerSettings, Wanted,
};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{BioId, Direction, Place, RequestId, RequestPool, Sector, Sectors};
use blkmq::rules::Rules;
use scenario::profile;
use scenario::report::{Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};

/// mq-deadline, but writes may hold one in 32 of the scheduler tags.
#[derive(Clone, Debug, Hash)]
struct FewWrites(MqDeadline);

/// Name and lock; `limit_depth` may return 1 and more.
const FEW_WRITES: SchedulerInfo = SchedulerInfo {
    min_shallow_depth: MinShallow::Depth(1),
    ..SchedulerInfo::plain("few-writes", &[ElevatorLock::plain("dd->lock")])
};

impl Scheduler for FewWrites {
    /// The rule.
    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        match wanted.op.direction() {
            Direction::Read => None,
            Direction::Write => Some((wanted.map.nr_requests / 32).max(1)),
        }
    }

    // All else is mq-deadline's.
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        self.0.merge_bio(pool, bio, now, merging)
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Now,
        merging: Merging<'_>,
    ) -> Insertion {
        self.0.insert(pool, rq, at, now, merging)
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.0.dispatch(pool, now, completed)
    }

    fn has_work(&self) -> bool {
        self.0.has_work()
    }

    fn take_charge(&mut self) -> Charge {
        self.0.take_charge()
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.0.force_remove(pool, rq);
    }

    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.0.force_dispatch(pool, rq);
    }

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        self.0.force_resize(pool, rq, sector, sectors);
    }
}

impl CustomScheduler for FewWrites {
    fn info(&self) -> &'static SchedulerInfo {
        &FEW_WRITES
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

// ------------------------------------------------------------------------------------------------

/// Name, lock, and two cache lines of its own: one for each list.
const INFO: SchedulerInfo = SchedulerInfo {
    lines: 2,
    ..SchedulerInfo::plain("reads-first", &[ElevatorLock::plain("reads_first->lock")])
};

/// Reads strictly before writes, each oldest first. `&mut self` is holding the lock.
#[derive(Clone, Debug, Default)]
struct ReadsFirst {
    queued: [QueueList; 2],
    touched: u32,
}

impl Scheduler for ReadsFirst {
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        let direction = pool[rq].op.direction() as usize;
        pool[rq].place = Place::Elevator;
        self.touched |= 1 << direction;
        match at {
            InsertAt::Head => self.queued[direction].push_front(pool, rq),
            InsertAt::Sorted => self.queued[direction].push_back(pool, rq),
        }
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        let direction = self.queued.iter().position(|list| !list.is_empty())?;
        self.touched |= 1 << direction;
        let rq = self.queued[direction].first()?;
        self.force_dispatch(pool, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        self.queued.iter().any(|list| !list.is_empty())
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued[pool[rq].op.direction() as usize].remove(pool, rq);
        pool[rq].place = Place::Path;
    }

    /// The lines that were written since the last call: from another CPU's cache they cost time.
    fn take_charge(&mut self) -> Charge {
        Charge {
            lines: core::mem::take(&mut self.touched),
            ..Charge::default()
        }
    }
}

impl CustomScheduler for ReadsFirst {
    fn info(&self) -> &'static SchedulerInfo {
        &INFO
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.queued.hash(&mut state);
    }
}

// ------------------------------------------------------------------------------------------------

/// Readers against writers on a slow device.
const SCENARIO: &str = include_str!("../scenarios/write-starvation.toml");
const PROFILE: &str = "ryzen-7950x";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let deadline = SchedulerKind::default_for(true).defaults(250, 128);
    let rules = Rules::by_name("v6.12").ok_or("no rules v6.12")?;
    let settings = MqDeadlineSettings::defaults(250, 128);
    let few = FewWrites(MqDeadline::new(&rules, settings));
    let few = SchedulerSettings::Custom(Custom::new(few));
    let own = SchedulerSettings::Custom(Custom::new(ReadsFirst::default()));
    println!("scheduler     reads  mean latency, us  writes  mean latency, us  lock hold, ns");
    for scheduler in [deadline, few, own] {
        let name = scheduler.kind().name();
        let report = run(scheduler)?;
        let (mut ios, mut total_ns) = ([0, 0], [0.0, 0.0]);
        for job in &report.jobs {
            for (at, side) in [&job.read, &job.write].into_iter().enumerate() {
                ios[at] += side.total_ios;
                total_ns[at] += side.clat_ns.mean * side.total_ios as f64;
            }
        }
        let mean = |at: usize| total_ns[at] / ios[at].max(1) as f64 / 1000.0;
        let lock = &report.locks[0];
        println!(
            "{name:<11}{:>8}{:>18.0}{:>8}{:>18.0}{:>15}",
            ios[0],
            mean(0),
            ios[1],
            mean(1),
            lock.hold_ns / lock.acquisitions
        );
    }
    Ok(())
}

fn run(scheduler: SchedulerSettings) -> Result<Report, Failure> {
    let profile = profile::built_in(PROFILE)?;
    let info = ProfileFacts {
        name: PROFILE,
        cpus: profile.cpus(),
    };
    // With few scheduler tags tasks wait for those, and the scheduler has no choice.
    let scenario = Scenario::from_toml(Path::new("write-starvation"), SCENARIO)?;
    let mut plan = scenario.set("queue.nr_requests=128")?.plan(&[info])?;
    plan.disks[0].queue.scheduler = scheduler;
    let mut simulator = Simulator::new(&plan, &profile)?;
    let outcome = simulator.run(|_| true);
    simulator.settle();
    if let Outcome::Stalled(stall) = outcome {
        return Err(stall.to_string().into());
    }
    let recorder = simulator.recorder();
    Ok(Report::new(
        Origin::default(),
        &plan,
        &profile,
        recorder,
        None,
    ))
}
