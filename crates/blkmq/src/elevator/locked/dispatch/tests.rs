//! A call that waits for the scheduler's lock.

use super::super::insert_requests;
use super::dispatch_request;
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::list::QueueList;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, HctxId, IoClass, Op, Place, QueueId};
use crate::step::{Cx, Next, Steps, Sub};

const QUEUE: QueueId = QueueId(0);

/// Runs a function to its end; calls `waits` before each lock that it asks for.
fn run<S: Steps>(mq: &BlkMq, cpu: &mut Cpu, mut state: S, waits: impl Fn(&mut Cpu)) -> S::Done {
    loop {
        cpu.begin_label();
        match state.step(&mut Cx::of(mq, QUEUE, cpu)) {
            Sub::Wait(Next::Lock(lock)) => {
                waits(cpu);
                mq.acquire(lock, cpu);
            }
            Sub::Wait(next) => panic!("a lock follows, not {next:?}"),
            Sub::Done(value) => return value,
        }
    }
}

/// dd_dispatch_request() reads the clock before it has the lock: a request of a lower class that
/// becomes old in between is not dispatched for its age yet.
#[test]
fn a_call_has_the_time_at_which_it_began() {
    let deadline = SchedulerKind::by_name("mq-deadline").expect("it exists");
    for (began_ms, waited_ms, dispatched) in [(9_996, 8, 0), (10_000, 0, 1)] {
        let mq: BlkMq = BlkMq::new(&config(deadline, 1, 1, 4), &mut || 0);
        let (q, mut cpu) = (mq.queue(QUEUE), Cpu::new(CpuId(0)));
        let mut list = QueueList::new();
        q.with_pool(|pool| {
            for (bit, class) in [(0, IoClass::RealTime), (1, IoClass::BestEffort)] {
                let rq = q.slot(0, bit);
                (pool[rq].place, pool[rq].op) = (Place::Path, Op::Read);
                (pool[rq].ioprio.class, pool[rq].use_sched) = (class, true);
                list.push_back(pool, rq);
            }
        });
        run(
            &mq,
            &mut cpu,
            insert_requests::State::new(list, false),
            |_| (),
        );
        // prio_aging_expire is ten seconds, a tick 4 ms.
        cpu.at_ps = began_ms * 1_000_000_000;
        let call = dispatch_request::State::new(HctxId(0));
        let rq = run(&mq, &mut cpu, call, |cpu| {
            cpu.at_ps += waited_ms * 1_000_000_000;
        });
        assert_eq!(rq, Some(q.slot(0, dispatched)), "at {began_ms} ms");
    }
}
