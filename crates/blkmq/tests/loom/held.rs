//! S9 and S10 of the stall corpus: a request is inserted while the queue may not run, and just then
//! it may again. The later of the two must see the effect of the other one.
//!
//! Kernel: blk_mq_run_hw_queue(), blk_mq_unquiesce_queue(), blk_mq_start_stopped_hw_queue() in
//! block/blk-mq.c (6.1.192, 6.12.117).

use super::driver::{Context, Machine, Setup};
use super::{Arc, COMPLETER, DISPATCHER, spawn};
use blkmq::elevator::SchedulerKind;
use blkmq::path::{Frame, RunPath};
use blkmq::request::{HctxId, QueueId};
use blkmq::rules::Rules;

/// The state that holds back the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// QUEUE_FLAG_QUIESCED.
    Quiesce,
    /// BLK_MQ_S_STOPPED.
    Stop,
}

/// One submission against the end of that state, and the run that follows it.
pub(super) fn up(rules: Rules, by: By) {
    let machine = Arc::new(Machine::new(&Setup::of(rules, SchedulerKind::MqDeadline)));
    let q = machine.mq.queue(QueueId(0));
    let mut first = Context::new(0, DISPATCHER, machine.submission(1));
    match by {
        By::Quiesce => q.quiesced.set(first.cpu()),
        By::Stop => machine.mq.stop_hctx(QueueId(0), HctxId(0), first.cpu()),
    }
    let other = Arc::clone(&machine);
    let lifter = spawn(move || {
        let run = Frame::Run(RunPath::new(QueueId(0), HctxId(0), true));
        let mut context = Context::new(1, COMPLETER, run);
        let (cpu, q) = (context.cpu(), other.mq.queue(QueueId(0)));
        match by {
            By::Quiesce => {
                q.queue_lock.acquire(cpu);
                q.quiesced.clear(cpu);
                q.queue_lock.release(cpu);
            }
            By::Stop => assert!(
                other.mq.start_hctx(QueueId(0), HctxId(0), cpu),
                "it is stopped"
            ),
        }
        other.run(context);
    });
    machine.run(first);
    lifter.join().expect("the other one ends");
    machine.drain_of(1);
}
