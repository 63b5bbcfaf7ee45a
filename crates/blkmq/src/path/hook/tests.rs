//! What a hook does under the scheduler's lock.

use super::HookFrame;
use crate::call::Hook;
use crate::elevator::{DispatchTime, InsertAt, LEVELS, Now, SchedulerKind};
use crate::env::{Cpu, Effect};
use crate::merge::Merging;
use crate::path::Path;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{Bio, CpuId, HctxId, Place, QueueId, RequestId, Sectors};
use crate::rules::{NoMerges, Rules};
use crate::step::{Cx, Next};
use crate::time::Duration;

const QUEUE: QueueId = QueueId(0);

fn bfq(hctxs: u16, rules: Rules) -> BlkMq {
    let bfq = SchedulerKind::by_name("bfq").expect("it exists");
    let mut config = config(bfq, hctxs, hctxs, 4);
    config.settings.rules = rules;
    BlkMq::new(&config, &mut || 0)
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

/// Two requests are queued, and the first is dispatched.
fn dispatched(mq: &BlkMq, cpu: &mut Cpu) -> RequestId {
    let q = mq.queue(QUEUE);
    let merging = Merging {
        limits: &q.settings.limits,
        nomerges: NoMerges::All,
    };
    q.with_pool(|pool| {
        for at in [0, 1] {
            let bio = Bio {
                sectors: Sectors(8),
                ..Bio::default()
            };
            let (bio, rq) = (pool.add_bio(bio).expect("room"), q.slot(0, at));
            pool.bio_to_request(rq, bio);
            (pool[rq].place, pool[rq].use_sched) = (Place::Path, true);
            q.elevator.revise(cpu, |policy| {
                policy.insert(pool, rq, InsertAt::Sorted, Now::default(), merging)
            });
        }
        let now = DispatchTime::at(Now::default());
        let first = q
            .elevator
            .revise(cpu, |policy| policy.dispatch(pool, now, [0; LEVELS]));
        first.expect("two are queued")
    })
}

/// bfq_completed_request() and bfq_idle_slice_timer_body() call bfq_schedule_dispatch(), up to
/// v5.18 the latter after it has released the lock.
#[test]
fn bfq_runs_the_queues_under_its_lock() {
    for (rules, timer_holds) in [(Rules::v5_11(), false), (Rules::v6_12(), true)] {
        let (mq, mut cpu) = (bfq(1, rules), Cpu::new(CpuId(0)));
        let first = dispatched(&mq, &mut cpu);
        let q = mq.queue(QUEUE);
        let lock = Next::Lock(q.elevator.lock(q));
        for (hook, holds) in [(Hook::Finished(first), true), (Hook::Timer(0), timer_holds)] {
            let ends = [(lock, false), (Next::Call, holds), (Next::Done, false)];
            assert_eq!(waits(&mq, &mut cpu, hook), ends, "{}: {hook:?}", rules.name);
        }
    }
}

/// The hctx of this CPU, or if that is stopped the others.
#[test]
fn a_run_for_all_is_of_this_cpus_hctx() {
    for (stopped, runs) in [(false, 0), (true, 1)] {
        let (mq, mut cpu) = (bfq(2, Rules::v6_12()), Cpu::new(CpuId(0)));
        if stopped {
            mq.stop_hctx(QUEUE, HctxId(0), &mut cpu);
        }
        cpu.begin_label();
        Cx::of(&mq, QUEUE, &mut cpu).kick_all();
        let kick = Effect::Kick {
            queue: QUEUE,
            hctx: HctxId(runs),
            delay: Duration::ZERO,
        };
        assert_eq!(cpu.outbox.take(0), Some(kick));
        assert_eq!(cpu.outbox.take(1), None);
    }
}

/// bfq_finish_requeue_request() returns before the lock.
#[test]
fn a_request_without_a_queue_of_bfq_takes_no_lock() {
    let (mq, mut cpu) = (bfq(1, Rules::v6_12()), Cpu::new(CpuId(0)));
    let rq = mq.queue(QUEUE).slot(0, 0);
    for hook in [Hook::Finished(rq), Hook::Requeued(rq)] {
        assert_eq!(waits(&mq, &mut cpu, hook), [(Next::Done, false)]);
    }
}
