//! A list with requests of several CPUs, which no plug hands over.

use super::super::domain::Domain;
use super::{KyberShared, insert_requests};
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::list::QueueList;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, Op, Place, QueueId, RequestId};
use crate::step::{Cx, Next, Steps as _, Sub};

/// kyber_insert_requests() takes the ctx queue, and its lock, of each request.
#[test]
fn each_request_goes_to_the_ctx_queue_of_its_cpu() {
    let kyber = SchedulerKind::by_name("kyber").expect("it exists");
    let mq: BlkMq = BlkMq::new(&config(kyber, 2, 1, 4), &mut || 0);
    let q = mq.queue(QueueId(0));
    let requests = [0, 1, 2, 3].map(|bit| q.slot(0, bit));
    let mut list = QueueList::new();
    q.with_pool(|pool| {
        for (rq, ctx) in requests.into_iter().zip([0, 1, 1, 0]) {
            (pool[rq].place, pool[rq].op) = (Place::Path, Op::Read);
            pool[rq].ctx = CpuId(ctx);
            list.push_back(pool, rq);
        }
    });

    let mut cpu = Cpu::new(CpuId(0));
    let mut insertion = insert_requests::State::new(list, false);
    loop {
        cpu.begin_label();
        match insertion.step(&mut Cx::of(&mq, QueueId(0), &mut cpu)) {
            Sub::Wait(Next::Lock(lock)) => mq.acquire(lock, &mut cpu),
            Sub::Wait(next) => panic!("a lock follows, not {next:?}"),
            Sub::Done(changed) => break assert!(changed),
        }
    }
    let shared = KyberShared::of(&Cx::of(&mq, QueueId(0), &mut cpu));
    q.with_pool(|pool| {
        let of_ctx = |ctx: usize| -> Vec<RequestId> {
            let reads = Domain::Read.index();
            shared.kcqs[ctx].inspect(|lists| lists[reads].iter(pool).collect())
        };
        assert_eq!(of_ctx(0), [requests[0], requests[3]]);
        assert_eq!(of_ctx(1), [requests[1], requests[2]]);
        q.elevator.check(pool);
    });
}
