//! Where a work item waits, and the effect of queueing it again.

use blkmq::drive::Kick;
use blkmq::request::{CpuId, HctxId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::{Again, Item, Job};
use crate::machine::Simulator;
use crate::machine::bench;
use crate::machine::handed::Handed;

const QUEUE: QueueId = QueueId(0);
const HCTX: HctxId = HctxId(0);

fn simulator(hctxs: u16) -> Simulator {
    of_restart(hctxs, "v5.12")
}

fn of_restart(hctxs: u16, restart: &str) -> Simulator {
    bench::idle(hctxs, bench::null_blk(), restart)
}

impl Simulator {
    fn ask(&mut self, from: u16, delay_ms: u64, unless_pending: bool) -> Item {
        let kick = Kick {
            queue: QUEUE,
            hctx: HCTX,
            delay: Duration::from_millis(delay_ms),
            unless_pending,
        };
        let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
        self.work
            .kick(cpus, tasks, &self.layer.mq, CpuId(from), kick);
        self.work.of(QUEUE, HCTX).item
    }

    /// CPUs whose workers have the item.
    fn have_it(&self) -> Vec<usize> {
        let has = |jobs: &Handed<Job>| {
            let mut jobs = jobs.clone();
            let all = core::iter::from_fn(|| jobs.take(SimTime(u64::MAX)));
            all.filter(|job| *job == Job::Hctx(QUEUE, HCTX)).count() == 1
        };
        let all = self.work.queues.iter().enumerate();
        all.filter(|(_, jobs)| has(jobs))
            .map(|(cpu, _)| cpu)
            .collect()
    }
}

/// With one hctx kblockd's item goes to the CPU that asked last.
#[test]
fn an_item_that_waits_is_stolen() {
    let mut simulator = simulator(1);
    for cpu in [2, 0, 3] {
        assert_eq!(simulator.ask(cpu, 0, false), Item::Queued(CpuId(cpu)));
        assert_eq!(simulator.have_it(), [usize::from(cpu)]);
    }
    // A request for a later time than the item's leaves it as it is.
    assert_eq!(simulator.ask(1, 3, true), Item::Queued(CpuId(3)));
    // A delay is a delay, also for a waiting item.
    assert_eq!(simulator.ask(1, 3, false), Item::Delayed(CpuId(1)));
    assert!(simulator.have_it().is_empty());
    assert_eq!(simulator.ask(2, 0, false), Item::Queued(CpuId(2)));
}

/// Before v4.15 it runs at its first place and time.
#[test]
fn an_item_that_waits_stays_in_old_kernels() {
    let mut simulator = of_restart(1, "v4.14");
    for cpu in [2, 0, 3] {
        assert_eq!(simulator.ask(cpu, 0, false), Item::Queued(CpuId(2)));
        assert_eq!(simulator.have_it(), [2]);
    }
    assert_eq!(simulator.ask(1, 3, false), Item::Queued(CpuId(2)));
    let mut simulator = of_restart(1, "v4.14");
    for (cpu, delay) in [(3, 3), (0, 0)] {
        assert_eq!(simulator.ask(cpu, delay, false), Item::Delayed(CpuId(3)));
    }
}

/// Each request for a run counts against the eight of a CPU, whether the item is pending or not.
#[test]
fn eight_requests_are_one_cpus() {
    let mut simulator = simulator(2);
    let mask = simulator.layer.mq.queue(QUEUE).hctx(HCTX).cpumask.clone();
    assert_eq!(mask.len(), 2);
    let cpus: Vec<CpuId> = (0..16)
        .map(|_| match simulator.ask(3, 0, false) {
            Item::Queued(cpu) => cpu,
            item => panic!("{item:?}"),
        })
        .collect();
    let expected = [vec![mask[0]; 7], vec![mask[1]; 8], vec![mask[0]]].concat();
    assert_eq!(cpus, expected);
}

/// A running item is queued after itself, on the CPU that runs it.
#[test]
fn an_item_that_runs_stays_on_its_cpu() {
    let mut simulator = simulator(1);
    simulator.work.of(QUEUE, HCTX).item = Item::Running(None);
    let item = simulator.ask(2, 0, false);
    assert!(
        matches!(item, Item::Running(Some(Again { .. }))),
        "{item:?}"
    );
    let (cpus, tasks) = (&mut simulator.cpus, &mut simulator.tasks);
    simulator
        .work
        .finish(cpus, tasks, CpuId(1), Job::Hctx(QUEUE, HCTX));
    assert_eq!(simulator.work.of(QUEUE, HCTX).item, Item::Queued(CpuId(1)));
    assert_eq!(simulator.have_it(), [1]);
}

/// A kick of the requeue list has no effect before v4.15 if the work waits, and keeps its time.
#[test]
fn a_requeue_list_that_waits_is_kicked_anew_by_new_kernels_alone() {
    for (restart, moves) in [("v4.14", false), ("v5.12", true)] {
        let mut simulator = of_restart(1, restart);
        let (cpus, tasks) = (&mut simulator.cpus, &mut simulator.tasks);
        let (work, mq) = (&mut simulator.work, &simulator.layer.mq);
        let later = |ms| (QUEUE, Duration::from_millis(ms));
        work.kick_requeue_later(cpus, mq, CpuId(3), later(100));
        work.kick_requeue(cpus, tasks, mq, CpuId(0), QUEUE);
        let item = match moves {
            true => Item::Queued(CpuId(0)),
            false => Item::Delayed(CpuId(3)),
        };
        assert_eq!(*work.requeue(QUEUE), item, "{restart}");
        work.kick_requeue_later(cpus, mq, CpuId(2), later(1));
        let item = match moves {
            true => Item::Delayed(CpuId(2)),
            false => Item::Delayed(CpuId(3)),
        };
        assert_eq!(*work.requeue(QUEUE), item, "{restart}");
    }
}
