//! What a hook does under the scheduler's lock.

use super::HookFrame;
use crate::call::Hook;
use crate::elevator::{DispatchTime, InsertAt, LEVELS, Now, SchedulerKind};
use crate::env::Cpu;
use crate::merge::Merging;
use crate::path::Path;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{Bio, CpuId, Place, QueueId, Sectors};
use crate::rules::NoMerges;
use crate::step::{Cx, Next};

const QUEUE: QueueId = QueueId(0);

fn bfq() -> BlkMq {
    let bfq = SchedulerKind::by_name("bfq").expect("it exists");
    BlkMq::new(&config(bfq, 1, 1, 4), &mut || 0)
}

/// What the hook waits for, and whether its scheduler's lock is taken meanwhile.
fn waits(mq: &BlkMq, cpu: &mut Cpu, hook: Hook) -> Vec<(Next, bool)> {
    let lock = mq.queue(QUEUE).elevator.lock(mq.queue(QUEUE));
    let mut path = HookFrame::new(QUEUE, hook);
    let mut seen = Vec::new();
    loop {
        cpu.begin_label();
        let next = path.step(&mut Cx::of(mq, QUEUE, cpu));
        if next != Next::Step {
            seen.push((next, !mq.is_free(lock)));
        }
        match next {
            Next::Done => return seen,
            Next::Lock(lock) => mq.acquire(lock, cpu),
            _ => {}
        }
    }
}

/// bfq_completed_request(), bfq_schedule_dispatch(): one of two requests ends.
#[test]
fn bfq_runs_the_queues_under_its_lock() {
    let (mq, mut cpu) = (bfq(), Cpu::new(CpuId(0)));
    let q = mq.queue(QUEUE);
    let merging = Merging {
        limits: &q.settings.limits,
        nomerges: NoMerges::All,
    };
    let first = q.with_pool(|pool| {
        for at in [0, 1] {
            let bio = Bio {
                sectors: Sectors(8),
                ..Bio::default()
            };
            let (bio, rq) = (pool.add_bio(bio).expect("room"), q.slot(0, at));
            pool.bio_to_request(rq, bio);
            (pool[rq].place, pool[rq].use_sched) = (Place::Path, true);
            q.elevator.revise(&mut cpu, |policy| {
                policy.insert(pool, rq, InsertAt::Sorted, Now::default(), merging)
            });
        }
        let now = DispatchTime::at(Now::default());
        let first = q
            .elevator
            .revise(&mut cpu, |policy| policy.dispatch(pool, now, [0; LEVELS]));
        first.expect("two are queued")
    });
    let lock = Next::Lock(q.elevator.lock(q));
    let ends = [(lock, false), (Next::Call, true), (Next::Done, false)];
    assert_eq!(waits(&mq, &mut cpu, Hook::Finished(first)), ends);
}

/// bfq_finish_requeue_request() returns before the lock.
#[test]
fn a_request_without_a_queue_of_bfq_takes_no_lock() {
    let (mq, mut cpu) = (bfq(), Cpu::new(CpuId(0)));
    let rq = mq.queue(QUEUE).slot(0, 0);
    for hook in [Hook::Finished(rq), Hook::Requeued(rq)] {
        assert_eq!(waits(&mq, &mut cpu, hook), [(Next::Done, false)]);
    }
}
