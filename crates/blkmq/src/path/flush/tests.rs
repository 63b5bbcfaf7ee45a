//! Flushes that scripts cannot submit.

use super::insert_flush;
use crate::call::Call;
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::path::tag;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, HctxId, QueueId, Status};
use crate::step::{Cx, Next, Steps as _, Sub};

/// blk_insert_flush(): a flush without data ends at once if the device has no write cache by now.
#[test]
fn a_flush_that_needs_nothing_ends() {
    let mq = BlkMq::new(&config(SchedulerKind::None, 1, 1, 4), &mut || 0);
    let (queue, mut cpu) = (QueueId(0), Cpu::new(CpuId(0)));
    let mut cx = Cx::of(&mq, queue, &mut cpu);
    let rq = tag::adopt(&mut cx, HctxId(0), 0);
    cx.pool()[rq].flags.preflush = true;
    let mut path = insert_flush::State::new(queue, rq);
    assert_eq!(path.step(&mut cx), Sub::Wait(Next::Call));
    let status = Status::Ok;
    assert_eq!(cx.cpu.call.take(), Some(Call::End { queue, rq, status }));
    assert_eq!(path.step(&mut cx), Sub::Done(()));
}
