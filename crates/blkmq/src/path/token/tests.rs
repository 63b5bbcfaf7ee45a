//! An hctx that waits for tokens again and again.

use super::{GetToken, PutToken};
use crate::call::Token;
use crate::elevator::SchedulerKind;
use crate::env::{Answer, Cpu};
use crate::path::Path;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, HctxId, QueueId};
use crate::sbitmap::WAIT_QUEUES;
use crate::step::{Cx, Next};

const QUEUE: QueueId = QueueId(0);
const HCTX: HctxId = HctxId(0);

/// Runs a path to its end, with no lock but those that it asks for: a label that accessed two
/// shared words would panic.
fn run(mq: &BlkMq, cpu: &mut Cpu, mut path: impl Path) {
    for _ in 0..100 {
        cpu.begin_label();
        match path.step(&mut Cx::of(mq, QUEUE, cpu)) {
            Next::Done => return,
            Next::Lock(lock) => mq.acquire(lock, cpu),
            _ => {}
        }
    }
    panic!("it never ends");
}

/// sbq_wait_ptr(): each wait is in the next queue, so that the wake-ups go round.
#[test]
fn an_hctx_waits_in_one_queue_after_another() {
    let kyber = SchedulerKind::by_name("kyber").expect("it exists");
    let mut mq: BlkMq = BlkMq::new(&config(kyber, 1, 1, 4), &mut || 0);
    mq.queues[0].tokens[0].map.reduce(1);
    let (map, mut cpu) = (&mq.queue(QUEUE).tokens[0].map, Cpu::new(CpuId(0)));
    for turn in 0..=WAIT_QUEUES {
        let number = map.take_any(&mut cpu).expect("the only token");
        run(&mq, &mut cpu, GetToken::new(QUEUE, HCTX, 0));
        assert_eq!(core::mem::take(&mut cpu.answer), Answer::NoToken);
        let entries = |at: usize| map.wait[at].queue.inspect(|q| q.entries.len());
        let mut expected = [0; WAIT_QUEUES];
        expected[turn % WAIT_QUEUES] = 1;
        assert_eq!(core::array::from_fn(entries), expected, "turn {turn}");
        assert_eq!(map.ws_active.peek(), 1);

        let token = Token { map: 0, number };
        run(&mq, &mut cpu, PutToken::new(QUEUE, token, CpuId(0)));
        assert_eq!(map.ws_active.peek(), 0);
    }
}
