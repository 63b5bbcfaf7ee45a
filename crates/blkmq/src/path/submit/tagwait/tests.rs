//! A task that found a tag with its entry still in the wait queue, against the free that wakes.

use super::super::SubmitPath;
use super::At;
use super::get_tag;
use crate::elevator::SchedulerKind;
use crate::env::{Answer, Cpu};
use crate::path::sbitmap::tests::{step, woken};
use crate::path::sbitmap::{TagMap, put_tag};
use crate::path::tag::put_driver;
use crate::path::{Frame, Path};
use crate::queue::tests::config;
use crate::queue::{BlkMq, LockId};
use crate::request::{Bio, CpuId, HctxId, Op, QueueId, Sector, Sectors, Tag};
use crate::rules::{BioPlug, Rules};
use crate::step::{Cx, Next, Steps as _};
use crate::waiter::WaiterId;

const QUEUE: QueueId = QueueId(0);

/// A task that needs a tag. Calls of its path are dropped: no queue is run.
struct Task {
    path: SubmitPath,
    cpu: Cpu,
    wants: Option<LockId>,
}

impl Task {
    fn new(mq: &BlkMq, number: u32) -> Task {
        let bio = Bio {
            op: Op::Read,
            sector: Sector(u64::from(number) * 100),
            sectors: Sectors(8),
            segments: 1,
            ..Bio::default()
        };
        let bio = mq.queue(QUEUE).with_pool(|pool| pool.add_bio(bio));
        let mut cpu = Cpu::new(CpuId(0));
        (cpu.owner, cpu.task) = (number, WaiterId(number));
        Task {
            path: SubmitPath::new(QUEUE, bio.expect("a slot for each bio")),
            cpu,
            wants: None,
        }
    }

    /// Steps until the path is at this label, with the lock that it may need not granted.
    fn runs_to(&mut self, mq: &BlkMq, at: At) {
        for _ in 0..1000 {
            if self.path.label == at.label() {
                return;
            }
            if let Some(lock) = self.wants.take() {
                mq.acquire(lock, &mut self.cpu);
            }
            self.cpu.begin_label();
            match Path::step(&mut self.path, &mut Cx::of(mq, QUEUE, &mut self.cpu)) {
                Next::Lock(lock) => self.wants = Some(lock),
                // The call that follows is dropped.
                Next::Call => self.cpu.call = None,
                _ => {}
            }
        }
        panic!("{at:?} is not reached from {}", self.path.label.name());
    }
}

/// The first task finds the freed bit when it tries again, and removes its entry: from
/// finish_wait()'s first store on it runs, and the free's wake-up goes to the other one.
#[test]
fn a_free_passes_over_whoever_takes_its_entry_out() {
    for rules in Rules::PRESETS {
        let mut config = config(SchedulerKind::None, 1, 1, 2);
        config.settings.rules = rules.with_bio_plug(BioPlug::Never);
        let mq: BlkMq = BlkMq::new(&config, &mut || 0);
        let map = mq.sets[0].driver_of(HctxId(0));
        let mut cpu = Cpu::new(CpuId(0));
        // Both tags are taken.
        for (index, word) in map.words.iter().enumerate() {
            let bits = (1 << map.bits_of(index)) - 1;
            cpu.begin_label();
            word.word.fetch_or(&mut cpu, bits);
        }
        let put = {
            let mut pool = mq.queue(QUEUE).pool.held(cpu.id);
            let rq = &mut pool[mq.queue(QUEUE).slot(0, 0)];
            rq.tag = Some(Tag(0));
            put_driver(rq)
        };
        let (mut first, mut second) = (Task::new(&mq, 1), Task::new(&mq, 2));
        first.runs_to(&mq, At::WaitLast);
        second.runs_to(&mq, At::WaitSleep);
        // The bit is free, no task is woken yet.
        let mut put = put_tag::State::new(TagMap::Driver(HctxId(0)), put);
        assert_eq!(step(&mq, &mut cpu, &mut put), None);
        first.runs_to(&mq, At::WaitFinish);
        assert_eq!(
            Frame::Submit(first.path).owned_tags(),
            None,
            "it is a request's"
        );
        let waits = first.path.find::<get_tag::State>();
        assert!(waits.expect("it leaves the wait queue").rq.is_some());
        first.runs_to(&mq, At::WaitLeave);
        assert_eq!(woken(&mq, &mut cpu, put), [2], "{}", rules.name);
        first.runs_to(&mq, At::WaitUncount);
        let queued = map.wait.iter();
        let queued = queued.map(|ws| ws.queue.inspect(|q| q.entries.len()));
        assert_eq!(queued.sum::<usize>(), 0);
    }
}

/// A trace check lets a task look again, perhaps on another CPU: the request is of that CPU's hctx
/// if that has the same tags.
#[test]
fn a_task_that_looks_again_uses_the_hctx_where_it_is() {
    for (hctx_shared, hctx) in [(true, 1), (false, 0)] {
        let mut config = config(SchedulerKind::None, 2, 2, 2);
        config.settings.rules = config.settings.rules.with_bio_plug(BioPlug::Never);
        config.tags.hctx_shared = hctx_shared;
        let mq: BlkMq = BlkMq::new(&config, &mut || 0);
        let (map, mut cpu) = (mq.sets[0].driver_of(HctxId(0)), Cpu::new(CpuId(0)));
        while map.take_any(&mut cpu).is_some() {}
        let mut task = Task::new(&mq, 1);
        task.runs_to(&mq, At::WaitFinish);

        map.words[0].word.fetch_and(&mut cpu, !1);
        task.cpu.id = CpuId(1);
        task.cpu.answer = Answer::LookAgain { limited: false };
        task.runs_to(&mq, At::WaitLeave);
        let rq = task
            .path
            .find::<get_tag::State>()
            .and_then(|waits| waits.rq);
        let rq = rq.expect("a tag is free");
        assert_eq!(
            mq.queue(QUEUE).with_pool(|pool| pool[rq].hctx),
            HctxId(hctx)
        );
    }
}

/// ... within the limit of its scheduler, or beyond it. Kyber leaves a quarter of each word to
/// synchronous requests.
#[test]
fn a_task_that_looks_again_may_look_beyond_its_limit() {
    let kyber = SchedulerKind::by_name("kyber").expect("it exists");
    let mut config = config(kyber, 1, 1, 8);
    config.settings.rules = config.settings.rules.with_bio_plug(BioPlug::Never);
    let mq: BlkMq = BlkMq::new(&config, &mut || 0);
    let (map, mut cpu) = (mq.queue(QUEUE).sched_of(HctxId(0)), Cpu::new(CpuId(0)));
    assert_eq!((map.depth(), map.shift), (16, 2));
    for word in &map.words {
        cpu.begin_label();
        word.word.fetch_or(&mut cpu, 0b0111);
    }
    let mut task = Task::new(&mq, 1);
    let bio = task.path.bio();
    mq.queue(QUEUE)
        .with_pool(|pool| pool.bio_mut(bio).op = Op::Write);

    task.runs_to(&mq, At::WaitFinish);
    task.cpu.answer = Answer::LookAgain { limited: true };
    task.runs_to(&mq, At::WaitSleep);
    task.runs_to(&mq, At::WaitFinish);
    task.cpu.answer = Answer::LookAgain { limited: false };
    task.runs_to(&mq, At::WaitLeave);
    let rq = task
        .path
        .find::<get_tag::State>()
        .and_then(|waits| waits.rq);
    let tag = mq
        .queue(QUEUE)
        .with_pool(|pool| pool[rq.expect("a tag is free")].internal_tag);
    assert_eq!(tag.expect("it has one").0 % 4, 3);
}
