//! A queue as a value, and the numbers of its locks.

use super::{BlkMq, IrqClass, LockId, LockKind, QueueConfig, QueueSettings};
use crate::elevator::{ELEVATOR_LOCKS_MAX, SchedulerKind};
use crate::env::Cpu;
use crate::request::{CpuId, QueueId, RequestId};
use crate::rules::{NoMerges, Rules, Series};
use crate::tags::TagSetConfig;
use core::hash::{Hash, Hasher};
use std::collections::BTreeSet;
use std::hash::DefaultHasher;

pub(crate) fn config(scheduler: SchedulerKind, cpus: u16, default: u16, depth: u32) -> QueueConfig {
    let rules = Rules::v6_12();
    let nr_requests = if scheduler == SchedulerKind::None {
        depth
    } else {
        2 * depth
    };
    let settings = QueueSettings {
        nomerges: NoMerges::All,
        should_merge: true,
        ..QueueSettings::plain(rules, scheduler, nr_requests)
    };
    QueueConfig::plain(settings, TagSetConfig::plain(default, depth), cpus)
}

fn hash_of(mq: &BlkMq) -> u64 {
    let mut hasher = DefaultHasher::new();
    mq.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn a_copy_is_equal_until_one_of_them_changes() {
    let config = config(SchedulerKind::MqDeadline, 2, 1, 4);
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let mut copy = mq.clone();
    assert_eq!(mq, copy);
    assert_eq!(hash_of(&mq), hash_of(&copy));

    let mut cpu = Cpu::new(CpuId(1));
    copy.queue(QueueId(0)).hctxs[0].restart.set(&mut cpu);
    assert_ne!(mq, copy);
    assert_ne!(hash_of(&mq), hash_of(&copy));

    copy.clone_from(&mq);
    assert_eq!(mq, copy);
    copy.acquire(LockId::new(QueueId(0), LockKind::Queue, 0), &mut cpu);
    assert_ne!(mq, copy, "the owner of a lock is part of the state");
}

#[test]
fn what_a_free_slot_still_holds_and_who_touched_it_do_not_count() {
    let config = config(SchedulerKind::None, 2, 1, 4);
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let copy = mq.clone();
    copy.queue(QueueId(0)).pool_for_test(CpuId(1), RequestId(2));
    assert_eq!(mq, copy);
    assert_eq!(hash_of(&mq), hash_of(&copy));
}

impl super::RequestQueue {
    /// Leaves a former user's data in a free slot, as `cpu`.
    fn pool_for_test(&self, cpu: CpuId, rq: RequestId) {
        let mut pool = self.pool.held(cpu);
        pool[rq].sector = crate::request::Sector(8);
    }
}

/// Every lock of a queue, as paths may name it.
fn all_locks(mq: &BlkMq) -> Vec<LockId> {
    let mut locks = Vec::new();
    for queue in &mq.queues {
        let hctxs = queue.hctxs.len() as u32;
        let mut add = |kind, indices: Vec<u32>| {
            let named = indices
                .into_iter()
                .map(|index| LockId::new(queue.id, kind, index));
            locks.extend(named);
        };
        let words = |maps: &Vec<crate::sbitmap::Sbitmap>| {
            let maps = maps.iter().enumerate();
            maps.flat_map(|(map, tags)| (0..tags.words.len()).map(move |w| (map * 256 + w) as u32))
                .collect::<Vec<u32>>()
        };
        let waits = |maps: usize| (0..maps as u32 * 8).collect::<Vec<u32>>();
        add(LockKind::Dispatch, (0..hctxs).collect());
        add(LockKind::Ctx, (0..queue.ctxs.len() as u32).collect());
        add(LockKind::Requeue, vec![0]);
        add(LockKind::Queue, vec![0]);
        add(LockKind::Flush, (0..hctxs).collect());
        add(LockKind::Wait, vec![0]);
        let set = mq.set_of(queue.id);
        let owner = set.queues.start == queue.id.index();
        if owner {
            add(LockKind::DriverSwap, words(&set.driver));
            add(LockKind::DriverWait, waits(set.driver.len()));
            add(LockKind::Tags, (0..set.driver.len() as u32).collect());
        }
        add(LockKind::SchedSwap, words(&queue.sched));
        add(LockKind::SchedWait, waits(queue.sched.len()));
        for number in 0..ELEVATOR_LOCKS_MAX as u8 {
            let count = queue.elevator.lock_count(number);
            let of_number = |at| LockId::of_elevator(queue.id, number, IrqClass::Plain, at);
            locks.extend((0..count).map(of_number));
        }
    }
    locks
}

/// The expected name of a lock, from its id.
fn name_of(mq: &BlkMq, id: LockId) -> &'static str {
    match id.elevator() {
        Some((number, _)) => {
            let info = mq.queue(id.queue()).settings.scheduler.info();
            info.expect("a scheduler").locks[usize::from(number)].name
        }
        None => id.kind().name(),
    }
}

#[test]
fn every_lock_has_a_number_of_its_own_and_the_number_names_its_kind() {
    for (scheduler, cpus, hctxs, depth) in [
        (SchedulerKind::None, 1, 1, 1),
        (SchedulerKind::None, 4, 4, 100),
        (SchedulerKind::MqDeadline, 4, 2, 64),
        (SchedulerKind::MqDeadline, 1024, 1024, 64),
        (SchedulerKind::None, 2, 2, 10_240),
        (SchedulerKind::MqDeadline, 3, 1, 1023),
    ] {
        let mut config = config(scheduler, cpus, hctxs, depth);
        let rules = &mut config.settings.rules;
        rules.series = Series::ALL[depth as usize % Series::ALL.len()];
        let mq: BlkMq = BlkMq::new(&config, &mut || 0);
        let locks = all_locks(&mq);
        let mut seen = BTreeSet::new();
        for id in &locks {
            let slot = mq.lock_slot(*id);
            assert!(slot < mq.lock_count(), "{id:?} has number {slot}");
            assert!(seen.insert(slot), "{id:?} shares number {slot}");
            assert_eq!(
                mq.lock_name(slot),
                name_of(&mq, *id),
                "{id:?} with number {slot}"
            );
        }
        assert_eq!(seen.len(), mq.lock_count(), "numbers without a lock");
    }
}

/// Two sets with two queues and three: their driver tags differ in maps and words.
fn sets(scheduler: SchedulerKind) -> BlkMq {
    let (small, large) = (config(scheduler, 3, 2, 20), config(scheduler, 4, 1, 200));
    BlkMq::with_sets(&[vec![small; 2], vec![large; 3]], &mut || 0)
}

#[test]
fn queues_of_one_set_have_the_locks_of_its_driver_tags_in_common_and_no_other() {
    for scheduler in [SchedulerKind::None, SchedulerKind::MqDeadline] {
        let mq = sets(scheduler);
        let locks = all_locks(&mq);
        let mut slots = BTreeSet::new();
        for &id in &locks {
            let slot = mq.lock_slot(id);
            assert!(
                slot < mq.lock_count() && slots.insert(slot),
                "{id:?} shares {slot}"
            );
            assert_eq!(
                mq.lock_name(slot),
                name_of(&mq, id),
                "{id:?} with number {slot}"
            );
        }
        for kind in [LockKind::DriverSwap, LockKind::DriverWait] {
            let slot = |queue| mq.lock_slot(LockId::new(queue, kind, 1));
            assert_eq!(slot(QueueId(0)), slot(QueueId(1)));
            assert_ne!(slot(QueueId(1)), slot(QueueId(2)));
            assert_eq!([slot(QueueId(2)); 2], [slot(QueueId(3)), slot(QueueId(4))]);
        }
    }
}

#[test]
fn a_lock_of_a_shared_set_is_taken_for_all_its_queues() {
    let mq = sets(SchedulerKind::MqDeadline);
    let wait = |queue| LockId::new(queue, LockKind::DriverWait, 3);
    mq.acquire(wait(QueueId(3)), &mut Cpu::new(CpuId(0)));
    let free: Vec<bool> = (0..5)
        .map(|queue| mq.is_free(wait(QueueId(queue))))
        .collect();
    assert_eq!(free, [true, true, false, false, false]);
    assert!(mq.set_of(QueueId(0)).queue_shared() && mq.set_of(QueueId(4)).waits_for_any());
}

#[test]
fn the_driver_acquires_exactly_the_lock_that_was_named() {
    let mq: BlkMq = BlkMq::new(&config(SchedulerKind::MqDeadline, 3, 2, 20), &mut || 0);
    let locks = all_locks(&mq);
    for &id in &locks {
        let mut cpu = Cpu::new(CpuId(0));
        let copy = mq.clone();
        copy.acquire(id, &mut cpu);
        for &other in &locks {
            assert_eq!(
                copy.is_free(other),
                other != id,
                "{other:?} when {id:?} is held"
            );
        }
    }
}

/// The shift of the scheduler's tag map when nr_requests was `first` and is `now`.
fn shift(first: u32, now: u32, shared: bool) -> (u32, u32) {
    let mut config = config(SchedulerKind::MqDeadline, 2, 2, 64);
    config.settings.nr_requests_first = first;
    config.settings.nr_requests = now;
    config.settings.slots_per_map = now;
    config.tags.hctx_shared = shared;
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let map = &mq.queue(QueueId(0)).sched[0];
    (map.shift, map.depth())
}

#[test]
fn a_tag_map_keeps_its_words_when_nr_requests_shrinks_and_is_made_anew_when_it_grows() {
    assert_eq!(shift(128, 128, false), (5, 128));
    assert_eq!(shift(128, 16, false), (5, 16));
    assert_eq!(shift(16, 128, false), (5, 128));
    assert_eq!(shift(16, 16, false), (2, 16));
    // A map of all hctxs was created for 2048.
    assert_eq!(shift(128, 16, true), (6, 16));
}

#[test]
fn without_a_scheduler_nr_requests_is_the_depth_of_the_driver_tags() {
    let mut config = config(SchedulerKind::None, 1, 1, 128);
    config.settings.nr_requests = 8;
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let map = &mq.sets[0].driver[0];
    assert_eq!((map.shift, map.depth(), map.words.len()), (5, 8, 1));
}
