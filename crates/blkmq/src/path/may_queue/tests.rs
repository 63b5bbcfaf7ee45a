//! S4' of the stall corpus: two hctxs become users of a map at once, in every order of their steps.

use super::hctx_may_queue;
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::path::sbitmap::TagMap;
use crate::path::tag::{put_driver, put_driver_alone, step_put};
use crate::queue::tests::config;
use crate::queue::{BlkMq, LockId};
use crate::request::{CpuId, HctxId, QueueId, Tag};
use crate::rules::{Fix, Rules};
use crate::step::{Cx, Next, Steps as _, Sub};

/// A CPU in the middle of its steps, and the lock that it needs.
#[derive(Clone, Debug)]
struct Walker {
    may_queue: hctx_may_queue::State,
    wants: Option<LockId>,
    ended: bool,
}

/// All orders from here on; the wake batches at their ends, and the users.
fn ends(mq: &BlkMq, walkers: &[Walker; 2], found: &mut Vec<(i32, u32)>) {
    let mut moved = false;
    for (index, walker) in walkers.iter().enumerate() {
        let blocked = walker.wants.is_some_and(|lock| !mq.is_free(lock));
        if walker.ended || blocked {
            continue;
        }
        moved = true;
        let (mq, mut walkers) = (mq.clone(), walkers.clone());
        let this = &mut walkers[index];
        let mut cpu = Cpu::new(CpuId(0));
        if let Some(lock) = this.wants.take() {
            mq.acquire(lock, &mut cpu);
        }
        let queue = QueueId(1 + index as u16);
        match this.may_queue.step(&mut Cx::of(&mq, queue, &mut cpu)) {
            Sub::Wait(Next::Lock(lock)) => this.wants = Some(lock),
            Sub::Wait(_) => {}
            Sub::Done(_) => this.ended = true,
        }
        ends(&mq, &walkers, found);
    }
    if !moved {
        let set = &mq.sets[0];
        found.push((set.active_queues[0].peek(), set.driver[0].wake_batch.get()));
    }
}

/// Three queues on a map of 64, of which the first one uses it.
fn all_ends(rules: Rules) -> Vec<(i32, u32)> {
    let mut one = config(SchedulerKind::None, 1, 1, 64);
    one.settings.rules = rules;
    let mq: BlkMq = BlkMq::with_sets(&[vec![one; 3]], &mut || 0);
    let new = || Walker {
        may_queue: hctx_may_queue::State::new(HctxId(0), false),
        wants: None,
        ended: false,
    };
    let mut first = new();
    let mut cpu = Cpu::new(CpuId(0));
    while !first.ended {
        if let Some(lock) = first.wants.take() {
            mq.acquire(lock, &mut cpu);
        }
        cpu.begin_label();
        match first.may_queue.step(&mut Cx::of(&mq, QueueId(0), &mut cpu)) {
            Sub::Wait(Next::Lock(lock)) => first.wants = Some(lock),
            Sub::Wait(_) => {}
            Sub::Done(_) => first.ended = true,
        }
    }
    let mut found = Vec::new();
    ends(&mq, &[new(), new()], &mut found);
    found
}

#[test]
fn the_wake_batch_fits_the_number_of_users() {
    let found = all_ends(Rules::v6_12());
    assert!(found.len() > 100, "{} orders", found.len());
    assert!(found.iter().all(|&end| end == (3, 2)), "{found:?}");

    let found = all_ends(Rules::v6_12().without(Fix::UsersLock));
    assert!(found.iter().all(|&(users, _)| users == 3));
    let stale = found.iter().filter(|&&(_, batch)| batch != 2).count();
    assert!(stale > 0, "the batch for two users may be stored last");
    assert!(found.contains(&(3, 4)), "{found:?}");
}

/// The states that other CPUs see while a driver tag is freed: whether its bit is free, and how
/// many requests with tags its queue counts. In order.
fn seen_while_it_goes_back(rules: Rules, alone: bool) -> Vec<(bool, i32)> {
    let mut one = config(SchedulerKind::MqDeadline, 1, 1, 4);
    one.settings.rules = rules;
    let mq: BlkMq = BlkMq::with_sets(&[vec![one; 2]], &mut || 0);
    let (queue, hctx, mut cpu) = (QueueId(0), HctxId(0), Cpu::new(CpuId(0)));
    let (q, map) = (mq.queue(queue), mq.sets[0].driver_of(hctx));
    map.words[0].word.fetch_or(&mut cpu, 1);
    cpu.begin_label();
    q.hctx(hctx).nr_active.add(&mut cpu, 1);
    let mut put = {
        let mut pool = q.pool.held(cpu.id);
        let rq = &mut pool[q.slot(0, 0)];
        rq.tag = Some(Tag(0));
        match alone {
            true => put_driver_alone(q, rq),
            false => put_driver(rq),
        }
    };
    let mut seen = Vec::new();
    loop {
        seen.push((!map.is_busy(0), q.hctx(hctx).nr_active.peek()));
        cpu.begin_label();
        let step = step_put(&mut put, &mq, queue, TagMap::Driver(hctx), &mut cpu);
        if step.is_none() {
            break;
        }
    }
    seen.push((!map.is_busy(0), q.hctx(hctx).nr_active.peek()));
    seen.dedup();
    seen
}

/// __blk_mq_put_driver_tag() of v6.1 counts after blk_mq_put_tag(), v6.12 before it; both count
/// before it at the end of a request (__blk_mq_free_request()).
#[test]
fn a_request_without_driver_tag_counts_no_more() {
    let before = [(false, 1), (false, 0), (true, 0)];
    let counted_after = [(false, 1), (true, 1), (true, 0)];
    assert_eq!(seen_while_it_goes_back(Rules::v6_12(), true), before);
    assert_eq!(seen_while_it_goes_back(Rules::v6_12(), false), before);
    assert_eq!(seen_while_it_goes_back(Rules::v6_1(), true), counted_after);
    assert_eq!(seen_while_it_goes_back(Rules::v6_1(), false), before);
}
