//! Debug builds refuse operations of a label after a release.

#![cfg(debug_assertions)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::env::{Effect, TraceAction, TracePoint};
use crate::request::{HctxId, Op, OpFlags, QueueId, Sector, Sectors, Status};
use crate::time::Duration;

struct Touched {
    lock: Lock<u32>,
    other: Lock<u32>,
    bit: Bit,
    count: Count,
    word: Word,
    line: CacheLine,
}

/// An operation of a label.
type Act = fn(&Touched, &mut Cpu);

/// Runs `act` in the label that released the lock, then in the one after it. Returns the panic's
/// text in the first; the second must succeed.
fn after_release(act: Act) -> String {
    let touched = Touched {
        lock: Lock::new(0),
        other: Lock::new(0),
        bit: Bit::new(false),
        count: Count::new(0),
        word: Word::new(0),
        line: CacheLine::default(),
    };
    let mut cpu = Cpu::new(CpuId(0));
    cpu.begin_label();
    touched.lock.acquire(&mut cpu);
    touched.other.acquire(&mut cpu);
    *touched.lock.held(&mut cpu) += 1;
    touched.lock.release(&mut cpu);
    let refused = catch_unwind(AssertUnwindSafe(|| act(&touched, &mut cpu)));
    cpu.begin_label();
    act(&touched, &mut cpu);
    let refused = refused.expect_err("it went through after a release");
    let text = refused
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| refused.downcast_ref::<String>().cloned())
        .expect("a panic has a text")
}

fn point() -> TracePoint {
    TracePoint {
        action: TraceAction::Insert,
        queue: QueueId(0),
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(0),
        sectors: Sectors(8),
        of_request: true,
        request: None,
        status: Status::Ok,
        ioprio: crate::request::IoPrio::default(),
        payload: 0,
    }
}

#[test]
fn a_release_ends_its_label() {
    let acts: [(&str, Act); 9] = [
        ("test a bit", |at, cpu| {
            at.bit.test(cpu);
        }),
        ("set a bit", |at, cpu| at.bit.set(cpu)),
        ("read a count", |at, cpu| {
            at.count.read(cpu);
        }),
        ("swap a word", |at, cpu| {
            at.word.swap(cpu, 1);
        }),
        ("touch a line", |at, cpu| at.line.write(cpu)),
        ("glance at guarded data", |at, cpu| at.lock.glance(cpu)),
        ("use what another lock guards", |at, cpu| {
            *at.other.held(cpu) += 1;
        }),
        ("emit a trace point", |_, cpu| cpu.emit(point())),
        ("leave an effect", |_, cpu| {
            cpu.outbox.push(Effect::Kick {
                queue: QueueId(0),
                hctx: HctxId(0),
                delay: Duration::ZERO,
            });
        }),
    ];
    for (name, act) in acts {
        let text = after_release(act);
        assert!(text.contains("release"), "{name}: {text}");
    }
}

#[test]
fn a_second_access_outside_locks_is_refused() {
    let bit = Bit::new(false);
    let mut cpu = Cpu::new(CpuId(0));
    cpu.begin_label();
    bit.set(&mut cpu);
    let second = catch_unwind(AssertUnwindSafe(|| bit.test(&mut cpu)));
    assert!(second.is_err(), "two accesses in one label went through");
}
