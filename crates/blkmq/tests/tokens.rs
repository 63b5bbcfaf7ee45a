//! Maps of a scheduler's tokens: each of their locks has a number and a name of its own, also if
//! the scheduler comes later.

#[path = "common/throttle.rs"]
mod throttle;

use std::collections::BTreeMap;

use blkmq::elevator::{ElevatorTokens, SchedulerInfo, SchedulerSettings};
use blkmq::env::Cpu;
use blkmq::queue::{BlkMq, LockId, LockKind, QueueConfig, QueueSettings};
use blkmq::request::{CpuId, QueueId};
use blkmq::rules::Rules;
use blkmq::tags::{CpuTopology, TagSetConfig};
use throttle::{Throttle, info, tokens};

/// Two maps, of four words and of one.
const MANY: &[ElevatorTokens] = &tokens(256, 2);
const THROTTLE: SchedulerInfo = info(MANY);

fn own() -> SchedulerSettings {
    SchedulerSettings::Custom(Throttle::custom(&THROTTLE, false))
}

/// Two queues on one set, with two hctxs each.
fn queues(elevator: &SchedulerSettings, further: &[SchedulerSettings]) -> BlkMq {
    let config = QueueConfig {
        settings: QueueSettings::plain(Rules::v6_12(), elevator.kind(), 8),
        tags: TagSetConfig::plain(2, 8),
        topology: CpuTopology::flat(2),
        elevator: elevator.clone(),
        further: further.to_vec(),
        bios: 1,
        mapped: None,
        above: None,
    };
    BlkMq::with_sets(&[vec![config; 2]], &mut || 0)
}

/// Locks of the tokens of all queues.
fn token_locks(mq: &BlkMq) -> Vec<LockId> {
    let mut locks = Vec::new();
    for queue in &mq.queues {
        for (map, tokens) in (0..).zip(&queue.tokens) {
            let words = 0..tokens.map.words.len() as u32;
            let lines = 0..tokens.map.wait.len() as u32;
            let swap = |word| LockId::new(queue.id, LockKind::TokenSwap, map * 256 + word);
            let wait = |line| LockId::new(queue.id, LockKind::TokenWait, map * 8 + line);
            locks.extend(words.map(swap).chain(lines.map(wait)));
        }
    }
    locks
}

#[test]
fn each_lock_has_a_number_and_a_name_of_its_own() {
    let mq = queues(&own(), &[]);
    let locks = token_locks(&mq);
    assert_eq!(locks.len(), 2 * (4 + 1 + 2 * 8));
    let mut slots = BTreeMap::new();
    let freeze = |queue| LockId::new(QueueId(queue), LockKind::Wait, 0);
    for id in locks.into_iter().chain([freeze(0), freeze(1)]) {
        let slot = mq.lock_slot(id);
        assert!(slot < mq.lock_count(), "{id:?} has number {slot}");
        let other = slots.insert(slot, id);
        assert_eq!(other, None, "{id:?} shares its number");
        assert_eq!(mq.lock_name(slot), id.kind().name(), "{id:?}");
        mq.acquire(id, &mut Cpu::new(CpuId(0)));
        assert!(!mq.is_free(id), "{id:?} is the lock that was taken");
    }
}

#[test]
fn there_is_room_for_the_locks_of_a_further_scheduler() {
    let none = SchedulerSettings::None;
    let [alone, with] = [vec![], vec![own()]].map(|further| queues(&none, &further));
    assert!(with.queues.iter().all(|queue| queue.tokens.is_empty()));
    let more = with.lock_count() - alone.lock_count();
    let own = 1 + 2 * (4 + 8);
    // Maps have the same stride, and of scheduler tags there is one per hctx.
    assert!(more >= 2 * own, "{more} locks more");
    let last = LockId::new(QueueId(1), LockKind::TokenWait, 15);
    assert!(with.lock_slot(last) < with.lock_count());
}
