//! Bios on a queue that is frozen, and a flush of a device above that means nothing below.

use super::{Execute, ExecutePath, SubmitPath};
use crate::call::{BioEndOf, Call, Event, WaitQueue};
use crate::elevator::SchedulerKind;
use crate::env::Cpu;
use crate::path::Path;
use crate::queue::BlkMq;
use crate::queue::tests::config;
use crate::request::{Bio, BioId, CpuId, Op, QueueId, Sector, Sectors, Status};
use crate::step::{Cx, Next};

const QUEUE: QueueId = QueueId(0);

/// A queue without scheduler whose words have so many tags.
fn device() -> BlkMq {
    let mut config = config(SchedulerKind::None, 1, 1, 64);
    config.settings.limits.max_sectors = 8;
    BlkMq::new(&config, &mut || 0)
}

fn add(mq: &BlkMq, sectors: u32, change: impl FnOnce(&mut Bio)) -> BioId {
    let mut bio = Bio {
        op: Op::Write,
        sector: Sector(u64::from(sectors) * 1000),
        sectors: Sectors(sectors),
        segments: 1,
        ..Bio::default()
    };
    change(&mut bio);
    let id = mq.queue(QUEUE).with_pool(|pool| pool.add_bio(bio));
    id.expect("a slot for each bio")
}

/// Runs a path to its next call, or to its end: then there is none.
fn run(mq: &BlkMq, cpu: &mut Cpu, path: &mut impl Path) -> Option<Call> {
    for _ in 0..100 {
        cpu.begin_label();
        match path.step(&mut Cx::of(mq, QUEUE, cpu)) {
            Next::Done => return None,
            Next::Call => return cpu.call.take(),
            Next::Lock(lock) => mq.acquire(lock, cpu),
            _ => {}
        }
    }
    panic!("it never ends");
}

fn users(mq: &BlkMq) -> u32 {
    mq.queue(QUEUE).with_pool(|pool| pool.usage.users())
}

fn freeze(mq: &BlkMq) {
    assert!(mq.queue(QUEUE).with_pool(|pool| pool.usage.freeze()));
}

/// A cached request has a reference, so that nothing that takes one waits for the thaw: neither a
/// bio (blk_mq_peek_cached_request()) nor a passthrough request (blk_mq_alloc_cached_request()).
#[test]
fn a_cached_request_opens_a_frozen_queue() {
    let (mq, mut cpu) = (device(), Cpu::new(CpuId(0)));
    cpu.plug.start(3);
    let submit = |cpu: &mut Cpu| {
        let bio = add(&mq, 8, |bio| bio.flags.nomerge = true);
        run(&mq, cpu, &mut SubmitPath::new(QUEUE, bio))
    };
    assert_eq!(submit(&mut cpu), None);
    freeze(&mq);
    assert_eq!((users(&mq), cpu.plug.cached.len()), (3, 2));

    assert_eq!(submit(&mut cpu), None);
    assert_eq!((users(&mq), cpu.plug.cached.len()), (3, 1));

    let bio = add(&mq, 8, |_| ());
    let mut execution = ExecutePath::new(QUEUE, bio, Execute::default());
    let inserts = run(&mq, &mut cpu, &mut execution);
    assert!(matches!(inserts, Some(Call::Insert(_))), "{inserts:?}");
    assert_eq!((users(&mq), cpu.plug.cached.len()), (3, 0));

    let (queue, event) = (QUEUE, Event::Thaw);
    assert_eq!(submit(&mut cpu), Some(Call::Wait { queue, event }));
    assert_eq!(users(&mq), 3);
}

/// blk_queue_exit() of a bio that may not be split: a freeze that began meanwhile has waited for
/// it, and for nothing else.
#[test]
fn the_last_bio_that_leaves_wakes_those_who_freeze() {
    for frozen in [false, true] {
        let (mq, mut cpu) = (device(), Cpu::new(CpuId(0)));
        let bio = add(&mq, 16, |bio| bio.flags.nowait = true);
        let mut submission = SubmitPath::new(QUEUE, bio);
        cpu.begin_label();
        let next = Path::step(&mut submission, &mut Cx::of(&mq, QUEUE, &mut cpu));
        assert_eq!((next, users(&mq)), (Next::Step, 1));
        if frozen {
            freeze(&mq);
        }
        let (queue, which) = (QUEUE, WaitQueue::Freeze);
        let wakes = frozen.then_some(Call::WakeUp { queue, which });
        assert_eq!(run(&mq, &mut cpu, &mut submission), wakes);
        assert_eq!(users(&mq), 0);
    }
}

/// submit_bio_noacct() ends an empty flush of a queue without write cache: that of a clone is the
/// end of its part for the device above.
#[test]
fn an_empty_flush_ends_for_the_device_above() {
    let (mut mq, mut cpu) = (device(), Cpu::new(CpuId(0)));
    let above = QueueId(1);
    mq.queues[0].bios_of = Some(above);
    let clone = add(&mq, 0, |bio| (bio.flags.preflush, bio.owner) = (true, 5));
    let mut submission = SubmitPath::new(QUEUE, clone);
    let of = BioEndOf::Clone {
        below: QUEUE,
        clone,
        status: Status::Ok,
    };
    let ends = Call::BioEnd {
        queue: above,
        bio: BioId(5),
        of,
    };
    assert_eq!(run(&mq, &mut cpu, &mut submission), Some(ends));
    assert_eq!(run(&mq, &mut cpu, &mut submission), None);
    assert_eq!(users(&mq), 0);
}
