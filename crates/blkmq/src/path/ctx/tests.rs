//! Cases that scripts cannot produce: a software queue that is empty though its bit was set.

use super::{At, BUDGET_DELAY, CtxPath};
use crate::step::{Cx, Next, Sub};

use crate::elevator::SchedulerKind;
use crate::env::{Answer, Cpu, Effect};
use crate::list::QueueList;
use crate::path::insert::insert_ctx;
use crate::path::list::ListPath;
use crate::path::tag;
use crate::queue::{BlkMq, QueueConfig, QueueSettings};
use crate::request::{CpuId, HctxId, QueueId, RequestId};
use crate::rules::{NoMerges, QueueLimits, Rules};
use crate::tags::{CpuTopology, TagSetConfig};

fn config(hctxs: u16) -> QueueConfig {
    let settings = QueueSettings {
        limits: QueueLimits {
            max_sectors: 255,
            ..QueueLimits::PLAIN
        },
        nomerges: NoMerges::All,
        driver_budget: true,
        should_merge: true,
        ..QueueSettings::plain(Rules::v6_12(), SchedulerKind::None, 4)
    };
    QueueConfig::plain(settings, TagSetConfig::plain(hctxs, 4), hctxs)
}

/// blk_mq_delay_run_hw_queues(): a released budget may have held back any hctx.
#[test]
fn a_budget_taken_for_nothing_lets_every_hctx_run_again() {
    let mq: BlkMq = BlkMq::new(&config(20), &mut || 0);
    let mut path = CtxPath::one_by_one(0);
    path.at = At::Withheld;
    let (mut list, mut cpu) = (ListPath::idle(), Cpu::new(CpuId(3)));
    let mut kicked = Vec::new();
    loop {
        cpu.begin_label();
        let step = path.step(&mut list, &mq, QueueId(0), HctxId(3), &mut cpu);
        let mut index = 0;
        while let Some(effect) = cpu.outbox.take(index) {
            index += 1;
            let Effect::KickUnlessPending { hctx, delay, .. } = effect else {
                panic!("{effect:?}");
            };
            assert_eq!(delay, BUDGET_DELAY);
            kicked.push(hctx.0);
        }
        if matches!(step, Sub::Done(false)) {
            break;
        }
    }
    assert_eq!(kicked, (0..20).collect::<Vec<u16>>());
    assert_eq!(path.looked, 0, "as it began");
}

/// One hctx, and a CPU for each of `cpus`; each of the first `filled` has a request.
fn filled(cpus: u16, filled: u16) -> (BlkMq, Vec<RequestId>) {
    let mut config = config(1);
    config.topology = CpuTopology::flat(cpus);
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let q = mq.queue(QueueId(0));
    let insert = |number: u16| {
        let mut cpu = Cpu::new(CpuId(number));
        let rq = tag::adopt(
            &mut Cx::of(&mq, QueueId(0), &mut cpu),
            HctxId(0),
            u32::from(number),
        );
        let mut list = QueueList::new();
        list.push_back(&mut q.pool.held(cpu.id), rq);
        q.ctxs[usize::from(number)].lists.acquire(&mut cpu);
        insert_ctx(&mut Cx::of(&mq, QueueId(0), &mut cpu), &mut list, false);
        rq
    };
    let requests = (0..filled).map(insert).collect();
    (mq, requests)
}

/// Steps a path until it ends or `look` returns true; the driver takes every request.
fn follow(
    (mq, cpu): (&BlkMq, &mut Cpu),
    path: &mut CtxPath,
    mut look: impl FnMut(&CtxPath) -> bool,
) {
    let mut list = ListPath::idle();
    while look(path) {
        cpu.begin_label();
        match path.step(&mut list, mq, QueueId(0), HctxId(0), cpu) {
            Sub::Wait(Next::Lock(lock)) => mq.acquire(lock, cpu),
            Sub::Wait(Next::Submit(_) | Next::SubmitLast(_)) => cpu.answer = Answer::Ok,
            Sub::Wait(Next::Budget) => cpu.answer = Answer::Budget(0),
            Sub::Wait(_) => {}
            Sub::Done(_) => break,
        }
    }
}

/// READ_ONCE() where blk_mq_do_dispatch_ctx() begins, WRITE_ONCE() where it ends.
#[test]
fn dispatch_from_is_read_and_written_once_a_run() {
    let (mq, _) = filled(3, 2);
    let dispatch_from = &mq.queue(QueueId(0)).hctxs[0].dispatch_from;
    dispatch_from.put(1);
    let mut path = CtxPath::one_by_one(dispatch_from.get());
    let mut turns = Vec::new();
    let mut cpu = Cpu::new(CpuId(0));
    follow((&mq, &mut cpu), &mut path, |path| {
        assert_eq!(dispatch_from.get(), 1, "at {:?}", path.at);
        turns.push(path.turn);
        true
    });
    turns.dedup();
    assert_eq!(turns, [1, 2, 1]);
    assert_eq!(dispatch_from.get(), 1);
    assert!(mq.queue(QueueId(0)).hctxs[0].ctx_map[0].peek() == 0);
}

/// __sbitmap_for_each_set() reads a word once and visits the bits that were set then: also a ctx
/// that another run has emptied meanwhile, and none that was filled later in the same word.
#[test]
fn a_word_of_the_ctx_map_is_read_once() {
    for one_by_one in [false, true] {
        let (mq, requests) = filled(4, 2);
        let q = mq.queue(QueueId(0));
        let mut path = match one_by_one {
            true => CtxPath::one_by_one(0),
            false => CtxPath::all(),
        };
        let mut runs = Cpu::new(CpuId(0));
        follow((&mq, &mut runs), &mut path, |path| path.seen == 0);
        assert_eq!(path.seen, 0b11);
        // Others take the second ctx's request, and insert into the third.
        let mut cpu = Cpu::new(CpuId(1));
        let (word, mask) = q.hctxs[0].ctx_word(1);
        q.ctxs[1]
            .lists
            .inspect(|lists| assert_eq!(lists[0].first(), Some(requests[1])));
        q.ctxs[1].lists.acquire(&mut cpu);
        q.ctxs[1].lists.held(&mut cpu)[0] = QueueList::new();
        word.fetch_and(&mut cpu, !mask);
        q.ctxs[1].pending[0].clear(&mut cpu);
        q.ctxs[1].lists.release(&mut cpu);
        let mut visited = Vec::new();
        follow((&mq, &mut runs), &mut path, |path| {
            if matches!(path.at, At::Splice | At::Dequeue) {
                visited.push(path.bit());
            }
            path.at != At::List
        });
        assert_eq!(visited, if one_by_one { vec![0] } else { vec![0, 1] });
    }
}

/// sbitmap_init_node() with ilog2(8): eight bits to a word.
#[test]
fn eight_ctxs_share_a_word() {
    let (mq, _) = filled(20, 4);
    let hctx = &mq.queue(QueueId(0)).hctxs[0];
    assert_eq!(hctx.ctx_map.len(), 3);
    assert_eq!(hctx.ctx_map[0].peek(), 0b1111);
    let mut cpu = Cpu::new(CpuId(0));
    for (bit, word) in [(7, 0), (8, 1), (19, 2)] {
        let (its, mask) = hctx.ctx_word(bit);
        cpu.begin_label();
        its.fetch_or(&mut cpu, mask);
        assert_eq!(hctx.ctx_map[word].peek() & mask, mask, "bit {bit}");
    }
}
