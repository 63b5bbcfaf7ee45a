//! A task whose queue has its share of the tags, against another queue that leaves their users.
//!
//! Kernel: hctx_may_queue() in block/blk-mq.h, __blk_mq_tag_idle() in block/blk-mq-tag.c,
//! sbitmap_queue_wake_all() in lib/sbitmap.c (6.1.192, 6.12.117).

use super::driver::{Context, Machine, Setup};
use super::{Arc, COMPLETER, DISPATCHER, SETUP, spawn};
use blkmq::elevator::SchedulerKind;
use blkmq::path::{Frame, TimeoutPath};
use blkmq::request::QueueId;
use blkmq::rules::Rules;

/// Two queues use the five tags. The first one counts four, which is its share.
pub(super) fn of_one_who_leaves(rules: Rules) {
    let machine = Arc::new(Machine::new(&Setup {
        tags: 5,
        users: 2,
        ..Setup::of(rules, SchedulerKind::None)
    }));
    let mut submitter = Context::new(0, DISPATCHER, machine.submission(1));
    let mut by = Context::new(0, SETUP, Machine::work());
    machine.mq.sets[0].active_queues[0].add(by.cpu(), 2);
    for queue in &machine.mq.queues {
        queue.hctxs[0].tag_active.set(by.cpu());
    }
    machine.mq.queues[0].hctxs[0].nr_active.add(by.cpu(), 4);

    let other = Arc::clone(&machine);
    let leaver = spawn(move || {
        let timer = Frame::Timeout(TimeoutPath::new(QueueId(1)));
        other.run(Context::new(1, COMPLETER, timer));
    });
    submitter = machine.run(submitter);
    leaver.join().expect("the timer's work ends");
    while submitter.is_parked() {
        assert!(
            machine.take_wake(DISPATCHER),
            "stall: a task sleeps though all tags are its queue's"
        );
        submitter = machine.run(submitter);
    }
    machine.drain_of(1);
}
