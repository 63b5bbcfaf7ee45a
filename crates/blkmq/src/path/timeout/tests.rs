//! The work item of the timer, label by label.

use super::TimeoutPath;
use crate::call::{Call, WaitQueue};
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::path::Path as _;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, QueueId};
use crate::rules::{Fix, Rules};
use crate::step::{Cx, Next};

const QUEUE: QueueId = QueueId(0);

/// Two queues on a map of 64 tags, both of them its users.
fn two_users(rules: Rules) -> BlkMq {
    let mut one = config(SchedulerKind::None, 1, 1, 64);
    one.settings.rules = rules;
    let mq: BlkMq = BlkMq::with_sets(&[vec![one; 2]], &mut || 0);
    let mut cpu = Cpu::new(CpuId(0));
    for queue in &mq.queues {
        queue.hctxs[0].tag_active.set(&mut cpu);
        cpu.begin_label();
    }
    mq.sets[0].active_queues[0].write(&mut cpu, 2);
    mq.sets[0].driver[0].share_wake_batch(2);
    mq
}

/// Runs the work item, with `before` each label; returns the labels and the paths that it calls.
fn run(mq: &BlkMq, mut before: impl FnMut(&str)) -> (Vec<&'static str>, Vec<Call>) {
    let (mut path, mut cpu) = (TimeoutPath::new(QUEUE), Cpu::new(CpuId(0)));
    let (mut labels, mut calls) = (Vec::new(), Vec::new());
    loop {
        before(path.label().name());
        labels.push(path.label().name());
        cpu.begin_label();
        match path.step(&mut Cx::of(mq, QUEUE, &mut cpu)) {
            Next::Lock(lock) => mq.acquire(lock, &mut cpu),
            Next::Call => calls.push(cpu.take_call()),
            Next::Done => return (labels, calls),
            _ => {}
        }
    }
}

/// __blk_mq_tag_idle(): the wake batch is that of the users that are left, with the lock of the map
/// or without it.
#[test]
fn an_idle_queue_leaves_the_users_of_its_tags() {
    let fixed = Rules::v6_12();
    for (rules, leaves) in [
        (fixed, "timeout.uncount"),
        (
            fixed.without(Fix::UsersLock),
            "timeout.uncount-alone timeout.spread",
        ),
    ] {
        let mq = two_users(rules);
        assert_eq!(mq.sets[0].driver[0].wake_batch.get(), 4);
        let (labels, _) = run(&mq, |_| {});
        let labels = labels.join(" ");
        let whole = format!("timeout.enter timeout.idle {leaves} timeout.wake-all");
        assert!(labels.starts_with(&whole), "{labels}");
        assert_eq!(mq.sets[0].active_queues[0].peek(), 1, "{leaves}");
        assert_eq!(mq.sets[0].driver[0].wake_batch.get(), 8, "{leaves}");
    }
}

/// blk_queue_usage_counter: the work item does not begin in a frozen queue without users.
#[test]
fn it_needs_a_queue_that_has_users_or_may_get_some() {
    for (frozen, users, ends) in [(true, 0, true), (true, 1, false), (false, 0, false)] {
        let mq = two_users(Rules::v6_12());
        mq.queue(QUEUE).with_pool(|pool| {
            pool.usage.get(users);
            if frozen {
                pool.usage.freeze();
            }
        });
        let (labels, calls) = run(&mq, |_| {});
        assert_eq!(labels == ["timeout.enter"], ends, "{frozen} {users}");
        assert_eq!(calls, [], "{frozen} {users}: nothing waits for it");
        let left = mq.queue(QUEUE).with_pool(|pool| pool.usage.users());
        assert_eq!(left, users);
    }
}

/// blk_queue_exit(): a freeze that began meanwhile waits for the work item.
#[test]
fn the_last_user_wakes_the_freeze() {
    let mq = two_users(Rules::v6_12());
    let (_, calls) = run(&mq, |label| {
        if label == "timeout.idle" {
            mq.queue(QUEUE).with_pool(|pool| pool.usage.freeze());
        }
    });
    let (queue, which) = (QUEUE, WaitQueue::Freeze);
    assert_eq!(calls, [Call::WakeUp { queue, which }]);
}
