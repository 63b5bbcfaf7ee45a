//! A driver requeues a request that it has started.

use super::RequeueRequest;
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::path::Path as _;
use crate::path::tag;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, HctxId, Place, QueueId};
use crate::step::{Cx, Next};

/// __blk_mq_requeue_request() comes before the request is on the list, and its budget is gone.
#[test]
fn a_requeued_request_is_not_with_its_driver() {
    let mq: BlkMq = BlkMq::new(&config(SchedulerKind::None, 1, 1, 4), &mut || 0);
    let (queue, mut cpu) = (QueueId(0), Cpu::new(CpuId(0)));
    let mut cx = Cx::of(&mq, queue, &mut cpu);
    let rq = tag::adopt(&mut cx, HctxId(0), 0);
    cx.pool()[rq].budget = Some(3);
    mq.start_request(queue, rq, &mut cpu);
    let mut path = RequeueRequest::taken(queue, rq, false);
    cpu.begin_label();
    let next = path.step(&mut Cx::of(&mq, queue, &mut cpu));
    let state = || {
        mq.queue(queue)
            .with_pool(|pool| (pool[rq].in_flight, pool[rq].budget, pool[rq].place))
    };
    assert_eq!(state(), (false, None, Place::Path));
    let Next::Lock(lock) = next else {
        panic!("{next:?} instead of requeue_lock");
    };
    mq.acquire(lock, &mut cpu);
    cpu.begin_label();
    assert_eq!(path.step(&mut Cx::of(&mq, queue, &mut cpu)), Next::Done);
    assert_eq!(state(), (false, None, Place::Requeue));
}
