//! The hint that the end of a batch leaves.

use super::flush_tag_batch;
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::list::QueueList;
use crate::path::sbitmap::tests::step;
use crate::path::tag;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{CpuId, HctxId, QueueId};
use crate::step::{Cx, Steps as _};
use crate::waiter::{Waiter, WaiterId};

/// sbitmap_queue_clear_batch(): the next allocation of the CPU that frees begins at the last tag
/// that it freed, as of after the wake-ups.
#[test]
fn the_hint_is_the_last_tag_and_comes_after_the_wake_ups() {
    let mut config = config(SchedulerKind::None, 2, 1, 8);
    config.tags.tasks = 4;
    let mq = BlkMq::new(&config, &mut || 0);
    let (tags, mut cpu) = (&mq.sets[0].driver[0], Cpu::new(CpuId(1)));
    let mut list = QueueList::new();
    for tag in [2, 5] {
        let word = &tags.words[tags.word_of(tag)].word;
        word.fetch_or(&mut cpu, tags.mask_of(tag));
        cpu.begin_label();
        let mut cx = Cx::of(&mq, QueueId(0), &mut cpu);
        let rq = tag::adopt(&mut cx, HctxId(0), tag);
        list.push_back(&mut cx.pool(), rq);
        cx.pool().usage.get(1);
    }
    tags.hint_freed(CpuId(1), 7);
    let sleeper = &tags.wait[0];
    sleeper.queue.acquire(&mut cpu);
    let task = Waiter::Task(WaiterId(3));
    sleeper.edit(&mut cpu, |entries| entries.push(task));
    sleeper.queue.release(&mut cpu);
    cpu.begin_label();
    tags.ws_active.add(&mut cpu, 1);
    cpu.begin_label();
    mq.task_waits(WaiterId(3)).set(&mut cpu);
    let mut flush = flush_tag_batch::State::new(HctxId(0), list);
    while step(&mq, &mut cpu, &mut flush).is_none() {
        let at = flush.label();
        let hint = if at == Some(super::At::Exit.label()) {
            5
        } else {
            7
        };
        assert_eq!(tags.hints[1].get(), hint, "at {at:?}");
    }
    assert!(!mq.task_waits(WaiterId(3)).peek(), "the sleeper was woken");
}
