//! A tick that begins while the timer's function runs.

use super::super::latency::Kind;
use super::{Domain, timer_fn};
use crate::call::Call;
use crate::elevator::{Elevator, SchedulerKind};
use crate::env::Cpu;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, QueueId};
use crate::step::{Cx, Next, Steps as _, Sub};
use crate::time::Jiffies;

/// kyber_timer_fn() judges each domain once. Reads have a percentile of an earlier second, for the
/// congestion of now, and few samples since: these are old enough one tick later.
#[test]
fn a_domain_is_judged_once() {
    let kyber = SchedulerKind::by_name("kyber").expect("it exists");
    let mq: BlkMq = BlkMq::new(&config(kyber, 1, 1, 4), &mut || 0);
    let mut cpu = Cpu::new(CpuId(0));
    let Elevator::Kyber(shared) = &mq.queue(QueueId(0)).elevator else {
        unreachable!("it was asked for")
    };
    {
        let mut data = shared.data();
        let reads = Domain::Read.index();
        (data.p99[reads], data.timeouts[reads]) = (Some(1), Jiffies(1));
        data.buckets.add(Domain::Read, Kind::Total, 0);
        for _ in 0..500 {
            data.buckets.add(Domain::Write, Kind::Io, 7);
        }
    }

    let (mut timer, mut resized) = (timer_fn::State::new(), Vec::new());
    loop {
        cpu.begin_label();
        match timer.step(&mut Cx::of(&mq, QueueId(0), &mut cpu)) {
            Sub::Wait(Next::Call) => {
                let Call::ResizeTokens { map, depth, .. } = cpu.take_call() else {
                    panic!("the timer only resizes");
                };
                mq.queue(QueueId(0)).tokens[usize::from(map)]
                    .map
                    .set_depth(depth);
                resized.push((map, depth));
                // A tick of 4 ms begins.
                cpu.at_ps = 4_000_000_000;
            }
            Sub::Wait(_) => {}
            Sub::Done(()) => break,
        }
    }
    assert_eq!(resized, [(0, 128)], "half of 256 tokens");
    let left = shared.data().buckets.counts(Domain::Read, Kind::Total)[0];
    assert_eq!(left, 1, "the sample is judged by the next timer");
}
