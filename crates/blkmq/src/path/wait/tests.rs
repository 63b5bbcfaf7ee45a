//! A task with a plug that waits.

use super::WaitPath;
use crate::call::{Call, Event, Unplug};
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::path::Path as _;
use crate::plug::Plug;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, QueueId, RequestId};
use crate::step::{Cx, Next};

/// io_schedule(): the freeze may wait for a request in that very plug.
#[test]
fn a_plug_is_flushed_before_its_task_sleeps() {
    let mq: BlkMq = BlkMq::new(&config(SchedulerKind::None, 1, 1, 4), &mut || 0);
    let (queue, mut cpu) = (QueueId(0), Cpu::new(CpuId(0)));
    mq.queue(queue).with_pool(|pool| {
        pool.usage.freeze();
        cpu.plug.start(1);
        cpu.plug.cached.push_back(pool, RequestId(0));
    });
    let (mut path, mut asks) = (WaitPath::new(queue, Event::Thaw), Vec::new());
    for _ in 0..20 {
        cpu.begin_label();
        let next = path.step(&mut Cx::of(&mq, queue, &mut cpu));
        match next {
            Next::Lock(lock) => mq.acquire(lock, &mut cpu),
            Next::Call => {
                asks.push(Some(cpu.take_call()));
                cpu.plug = Plug::default();
            }
            Next::Park => {
                asks.push(None);
                break;
            }
            _ => {}
        }
    }
    let why = Unplug::Schedule;
    assert_eq!(asks, [Some(Call::Unplug { queue, why }), None], "once");
}
