//! Cases that scripts cannot produce: a software queue that is empty though its bit was set.

use super::{
    At, BUDGET_DELAY, bit, dispatch_rq_list, do_dispatch_ctx, flush_busy_ctxs, run_all_later,
};
use crate::elevator::SchedulerKind;
use crate::env::{Answer, Cpu, Effect};
use crate::list::QueueList;
use crate::path::RunPath;
use crate::path::insert::insert_ctx;
use crate::path::tag;
use crate::queue::{BlkMq, QueueConfig, QueueSettings};
use crate::request::{CpuId, HctxId, QueueId, RequestId};
use crate::rules::{NoMerges, QueueLimits, Rules};
use crate::step::{Cx, Next, Steps, Sub};
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
    let mut path = run_all_later::State::new(Some(7));
    let mut cpu = Cpu::new(CpuId(3));
    let mut step = || {
        cpu.begin_label();
        let cpu = &mut cpu;
        let step = path.step(&mut Cx::of(&mq, QueueId(0), cpu));
        (step, cpu.outbox.take(0), cpu.outbox.take(1))
    };
    assert_eq!(step(), (Sub::Wait(Next::PutBudget(7)), None, None));
    for hctx in 0..20 {
        let (delay, queue) = (BUDGET_DELAY, QueueId(0));
        let hctx = HctxId(hctx);
        let kick = Effect::KickUnlessPending { queue, hctx, delay };
        let next = match hctx.0 {
            19 => Sub::Done(()),
            _ => Sub::Wait(Next::Step),
        };
        assert_eq!(step(), (next, Some(kick), None));
    }
}

/// One hctx, and a CPU for each of `cpus`; each of the first `filled` has a request.
fn filled(cpus: u16, filled: u16) -> (BlkMq, Vec<RequestId>) {
    let mut config = config(1);
    config.topology = CpuTopology::flat(cpus);
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let q = mq.queue(QueueId(0));
    let insert = |number: u16| {
        let mut cpu = Cpu::new(CpuId(number));
        let mut cx = Cx::of(&mq, QueueId(0), &mut cpu);
        let rq = tag::adopt(&mut cx, HctxId(0), u32::from(number));
        let mut list = QueueList::new();
        list.push_back(&mut cx.pool(), rq);
        q.ctxs[usize::from(number)].lists.acquire(cx.cpu);
        insert_ctx(&mut cx, &mut list, false);
        rq
    };
    let requests = (0..filled).map(insert).collect();
    (mq, requests)
}

/// Steps a path until it ends or `look` returns true; the driver takes every request.
fn follow<P: Steps>((mq, cpu): (&BlkMq, &mut Cpu), path: &mut P, mut look: impl FnMut(&P) -> bool) {
    while look(path) {
        cpu.begin_label();
        match path.step(&mut Cx::of(mq, QueueId(0), cpu)) {
            Sub::Wait(Next::Lock(lock)) => mq.acquire(lock, cpu),
            Sub::Wait(Next::Submit(_) | Next::SubmitLast(_)) => cpu.answer = Answer::Ok,
            Sub::Wait(Next::Budget) => cpu.answer = Answer::Budget(0),
            Sub::Wait(_) => {}
            Sub::Done(_) => break,
        }
    }
}

fn is_at(path: &impl Steps, at: At) -> bool {
    path.label() == Some(at.label())
}

/// READ_ONCE() where blk_mq_do_dispatch_ctx() begins, WRITE_ONCE() where it ends.
#[test]
fn dispatch_from_is_read_and_written_once_a_run() {
    let (mq, _) = filled(3, 1);
    let dispatch_from = &mq.queue(QueueId(0)).hctxs[0].dispatch_from;
    dispatch_from.put(2);
    let mut path = do_dispatch_ctx::State::new(HctxId(0));
    let mut turns = Vec::new();
    let mut cpu = Cpu::new(CpuId(0));
    follow((&mq, &mut cpu), &mut path, |path| {
        assert_eq!(dispatch_from.get(), 2, "at {:?}", path.label());
        turns.push(path.turn);
        true
    });
    turns.dedup();
    assert_eq!(turns, [0, 2, 1], "nothing, then what was read");
    assert_eq!(dispatch_from.get(), 1);
    assert!(mq.queue(QueueId(0)).hctxs[0].ctx_map[0].peek() == 0);
}

/// Others take the second ctx's request, before its lock was granted if it is taken by now.
fn meanwhile(mq: &BlkMq, requests: &[RequestId]) {
    let q = mq.queue(QueueId(0));
    let is_free = q.ctxs[1].lists.is_free();
    let mut cpu = Cpu::new(CpuId(u16::from(is_free)));
    let (word, mask) = q.hctxs[0].ctx_word(1);
    let has = |lists: &[QueueList]| assert_eq!(lists[0].first(), Some(requests[1]));
    q.ctxs[1].lists.inspect(|lists| has(lists));
    if is_free {
        q.ctxs[1].lists.acquire(&mut cpu);
    }
    q.ctxs[1].lists.held(&mut cpu)[0] = QueueList::new();
    word.fetch_and(&mut cpu, !mask);
    cpu.begin_label();
    q.ctxs[1].pending[0].clear(&mut cpu);
    if is_free {
        q.ctxs[1].lists.release(&mut cpu);
    }
}

/// __sbitmap_for_each_set() reads a word once and visits the bits that were set then: also a ctx
/// that another run has emptied meanwhile, and none that was filled later in the same word.
#[test]
fn a_word_of_the_ctx_map_is_read_once() {
    let mut runs = Cpu::new(CpuId(0));
    let mut visited = Vec::new();
    let (mq, requests) = filled(4, 2);
    let mut path = do_dispatch_ctx::State::new(HctxId(0));
    follow((&mq, &mut runs), &mut path, |path| path.seen == 0);
    assert_eq!(path.seen, 0b11);
    meanwhile(&mq, &requests);
    follow((&mq, &mut runs), &mut path, |path| {
        if is_at(path, At::Dequeue) {
            visited.push(bit(path.word, path.seen));
        }
        path.find::<dispatch_rq_list::State>().is_none()
    });
    assert_eq!(visited, [0]);

    visited.clear();
    let (mq, requests) = filled(4, 2);
    let mut path = flush_busy_ctxs::State::new(HctxId(0));
    follow((&mq, &mut runs), &mut path, |path| path.seen == 0);
    assert_eq!(path.seen, 0b11);
    meanwhile(&mq, &requests);
    follow((&mq, &mut runs), &mut path, |path| {
        if is_at(path, At::Splice) {
            visited.push(bit(path.word, path.seen));
        }
        true
    });
    assert_eq!(visited, [0, 1]);
}

/// blk_mq_dequeue_from_ctx(): a ctx that was emptied meanwhile is passed over.
#[test]
fn an_empty_ctx_is_passed_over() {
    let mut runs = Cpu::new(CpuId(0));
    let mut visited = Vec::new();
    let (mq, requests) = filled(4, 2);
    mq.queue(QueueId(0)).hctxs[0].dispatch_from.put(1);
    let mut path = do_dispatch_ctx::State::new(HctxId(0));
    follow((&mq, &mut runs), &mut path, |path| path.seen == 0);
    meanwhile(&mq, &requests);
    follow((&mq, &mut runs), &mut path, |path| {
        if is_at(path, At::Dequeue) {
            visited.push(bit(path.word, path.seen));
        }
        visited.len() < 4 && path.find::<dispatch_rq_list::State>().is_none()
    });
    assert_eq!(visited, [1, 0]);
}

/// -EAGAIN twice: kblockd gets the rest, and the run counts as one that has run.
#[test]
fn a_run_that_leaves_the_rest_to_kblockd_has_run() {
    let (mq, _) = filled(2, 1);
    let hctx = &mq.queue(QueueId(0)).hctxs[0];
    let mut path = RunPath::new(QueueId(0), HctxId(0), false);
    let mut other = Cpu::new(CpuId(1));
    hctx.dispatch_busy.write(&mut other, 8);
    let mut cpu = Cpu::new(CpuId(0));
    let mut seen = Vec::new();
    follow((&mq, &mut cpu), &mut path, |path| {
        let label = path.found_label().name();
        seen.push((label, path.has_run()));
        other.begin_label();
        match label {
            "run.peek-dispatch" => hctx.dispatch_pending.clear(&mut other),
            "ctx.peek-dispatch" => hctx.dispatch_pending.set(&mut other),
            _ => {}
        }
        true
    });
    let count = |name| seen.iter().filter(|(label, _)| *label == name).count();
    assert_eq!((count("run.quiesced"), count("ctx.peek-dispatch")), (2, 2));
    assert_eq!(seen[0], ("run.quiesced", false));
    assert_eq!(seen.last(), Some(&("run.delay-run", true)));
    assert!(path.has_run(), "after the end");
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
