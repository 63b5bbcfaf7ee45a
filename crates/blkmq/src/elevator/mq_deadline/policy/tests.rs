//! No request or bio is ever lost, in any order of calls.
//!
//! `tests/scripts/mq-deadline` has the decisions.

use super::{MqDeadline, MqDeadlineSettings, level_of};
use crate::elevator::{
    Attributes, BioMerge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler,
    completed_level,
};
use crate::merge::{Merging, merges_ranges};
use crate::request::{
    Bio, BioId, IoClass, IoPrio, Op, Place, RequestId, RequestPool, Sector, Sectors,
};
use crate::rules::{NoMerges, QueueLimits, Rules};
use crate::time::Jiffies;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const REQUESTS: usize = 64;
const BIOS: usize = 256;

#[derive(Clone, Debug)]
enum Action {
    /// A bio is offered for merging and becomes a request if it is not merged.
    Submit(Shape),
    /// A request is inserted, and its bio was not offered.
    Insert(Shape, InsertAt),
    Dispatch,
    Complete(usize),
    Requeue(usize),
    Tick(u64),
    Store(&'static str, i32),
    NoMerges(NoMerges),
}

#[derive(Clone, Debug)]
struct Shape {
    op: Op,
    sector: u64,
    sectors: u32,
    class: IoClass,
    nomerge: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let op = prop_oneof![
        5 => Just(Op::Read),
        5 => Just(Op::Write),
        2 => Just(Op::Discard),
        1 => Just(Op::WriteZeroes),
    ];
    let class = prop_oneof![
        4 => Just(IoClass::None),
        1 => Just(IoClass::RealTime),
        1 => Just(IoClass::BestEffort),
        1 => Just(IoClass::Idle),
    ];
    (op, 0u64..40, 1u32..4, class, prop::bool::weighted(0.05)).prop_map(
        |(op, sector, sectors, class, nomerge)| Shape {
            op,
            sector: sector * 4,
            sectors: sectors * 4,
            class,
            nomerge,
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let store = prop_oneof![
        (-1i32..6).prop_map(|value| Action::Store("fifo_batch", value)),
        (-1i32..4).prop_map(|value| Action::Store("writes_starved", value)),
        (0i32..2).prop_map(|value| Action::Store("front_merges", value)),
        (0i32..600).prop_map(|value| Action::Store("read_expire", value)),
        (0i32..2000).prop_map(|value| Action::Store("prio_aging_expire", value)),
    ];
    let nomerges = prop_oneof![
        Just(NoMerges::All),
        Just(NoMerges::Simple),
        Just(NoMerges::Never)
    ];
    prop_oneof![
        12 => shape().prop_map(Action::Submit),
        8 => shape().prop_map(|shape| Action::Insert(shape, InsertAt::Sorted)),
        1 => shape().prop_map(|shape| Action::Insert(shape, InsertAt::Head)),
        12 => Just(Action::Dispatch),
        8 => (0..REQUESTS).prop_map(Action::Complete),
        2 => (0..REQUESTS).prop_map(Action::Requeue),
        4 => (0u64..300).prop_map(Action::Tick),
        1 => store,
        1 => nomerges.prop_map(Action::NoMerges),
    ]
}

/// A scheduler with a device that keeps requests until an action ends them.
struct Queue {
    pool: RequestPool,
    dd: MqDeadline,
    limits: QueueLimits,
    nomerges: NoMerges,
    now: Jiffies,
    in_device: Vec<RequestId>,
    completed: [u32; LEVELS],
    submitted_sectors: u64,
    ended_sectors: u64,
}

impl Queue {
    fn new(rules: &Rules, max_discard_segments: u16) -> Queue {
        Queue {
            pool: RequestPool::new(REQUESTS, BIOS),
            dd: MqDeadline::new(rules, MqDeadlineSettings::defaults(1000, 64)),
            limits: QueueLimits {
                max_sectors: 48,
                max_segments: 5,
                chunk_sectors: 64,
                discard_granularity: 0,
                max_discard_sectors: 64,
                max_discard_segments,
                write_cache: false,
                fua: false,
                ..QueueLimits::PLAIN
            },
            nomerges: NoMerges::All,
            now: Jiffies(0),
            in_device: Vec::new(),
            completed: [0; LEVELS],
            submitted_sectors: 0,
            ended_sectors: 0,
        }
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::Submit(shape) => self.submit(shape),
            Action::Insert(shape, at) => {
                if let (Some(bio), Some(rq)) = (self.add_bio(shape), self.free_slot()) {
                    self.make_request(rq, bio, *at);
                }
            }
            Action::Dispatch => {
                self.dispatch();
            }
            Action::Complete(nth) if !self.in_device.is_empty() => {
                let rq = self.in_device.swap_remove(nth % self.in_device.len());
                self.finish(rq);
            }
            Action::Requeue(nth) if !self.in_device.is_empty() => {
                let rq = self.in_device.swap_remove(nth % self.in_device.len());
                self.pool[rq].place = Place::Path;
                self.insert(rq, InsertAt::Head);
            }
            Action::Complete(_) | Action::Requeue(_) => {}
            Action::Tick(ticks) => self.now = self.now + Jiffies(*ticks),
            Action::Store(name, value) => {
                self.dd
                    .settings
                    .store(name, &value.to_string())
                    .expect("an attribute");
            }
            Action::NoMerges(nomerges) => self.nomerges = *nomerges,
        }
    }

    fn submit(&mut self, shape: &Shape) {
        let Some(rq) = self.free_slot() else { return };
        let Some(bio) = self.add_bio(shape) else {
            return;
        };
        let merging = Merging {
            limits: &self.limits,
            nomerges: self.nomerges,
        };
        let now = Now::at_tick(self.now, 1000);
        match self.dd.merge_bio(&mut self.pool, bio, now, merging) {
            BioMerge::No => self.make_request(rq, bio, InsertAt::Sorted),
            BioMerge::Into { rq, absorbed, .. } => {
                assert!(
                    self.pool.bios_of(rq).any(|held| held == bio),
                    "bio is not in {rq:?}"
                );
                if let Some(absorbed) = absorbed {
                    self.finish(absorbed);
                }
            }
        }
    }

    fn make_request(&mut self, rq: RequestId, bio: BioId, at: InsertAt) {
        self.pool.bio_to_request(rq, bio);
        self.pool[rq].place = Place::Path;
        self.insert(rq, at);
    }

    fn insert(&mut self, rq: RequestId, at: InsertAt) {
        let merging = Merging {
            limits: &self.limits,
            nomerges: self.nomerges,
        };
        let now = Now::at_tick(self.now, 1000);
        match self.dd.insert(&mut self.pool, rq, at, now, merging) {
            Insertion::Inserted => assert_eq!(self.pool[rq].place, Place::Elevator),
            Insertion::Absorbed(mut absorbed) => {
                assert_eq!(
                    absorbed.last(),
                    Some(rq),
                    "the inserted request is absorbed first"
                );
                while let Some(rq) = absorbed.pop_front(&mut self.pool) {
                    self.finish(rq);
                }
            }
        }
    }

    fn dispatch(&mut self) -> bool {
        let now = DispatchTime::at(Now::at_tick(self.now, 1000));
        let Some(rq) = self.dd.dispatch(&mut self.pool, now, self.completed) else {
            return false;
        };
        assert!(self.pool[rq].started);
        self.pool[rq].place = Place::Device;
        self.in_device.push(rq);
        true
    }

    /// A request ends: with its bios, or empty because another one absorbed it.
    fn finish(&mut self, rq: RequestId) {
        for bio in self.pool.bios_of(rq).collect::<Vec<BioId>>() {
            self.ended_sectors += u64::from(self.pool.bio(bio).sectors.0);
            self.pool.free_bio(bio);
        }
        let level = completed_level(self.pool[rq].elv_priv).expect("every request was inserted");
        assert_eq!(level, level_of(self.pool[rq].ioprio));
        self.completed[level] += 1;
        self.pool[rq].place = Place::Free;
        self.pool.reset(rq);
    }

    fn add_bio(&mut self, shape: &Shape) -> Option<BioId> {
        let mut bio = Bio {
            op: shape.op,
            sector: Sector(shape.sector),
            sectors: Sectors(shape.sectors),
            segments: 1,
            ioprio: IoPrio {
                class: shape.class,
                level: 0,
            },
            ..Bio::default()
        };
        bio.flags.nomerge = shape.nomerge;
        self.free_slot()?;
        let bio = self.pool.add_bio(bio)?;
        self.submitted_sectors += u64::from(shape.sectors);
        Some(bio)
    }

    fn free_slot(&self) -> Option<RequestId> {
        self.pool
            .iter()
            .find(|(_, rq)| rq.place == Place::Free)
            .map(|(id, _)| id)
    }

    /// The scheduler is consistent, and so is every request with its bios.
    fn check(&self) {
        self.dd.check(&self.pool);
        for (id, rq) in self.pool.iter().filter(|(_, rq)| rq.place != Place::Free) {
            let bios: Vec<&Bio> = self
                .pool
                .bios_of(id)
                .map(|bio| self.pool.bio(bio))
                .collect();
            let sectors: u32 = bios.iter().map(|bio| bio.sectors.0).sum();
            assert_eq!(bios.len() as u32, rq.bio_count, "bios of {id:?}");
            assert_eq!(sectors, rq.sectors.0, "sectors of {id:?}");
            assert!(
                bios.iter()
                    .all(|bio| bio.ioprio == rq.ioprio && bio.op == rq.op)
            );
            assert_eq!(bios[0].sector, rq.sector, "start of {id:?}");
            if !merges_ranges(rq.op, &self.limits) {
                for pair in bios.windows(2) {
                    assert_eq!(
                        pair[0].sector.end(pair[0].sectors),
                        pair[1].sector,
                        "gap in {id:?}"
                    );
                }
            }
        }
    }

    /// No new bios: everything must come out and end.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..10 * REQUESTS {
            if !self.dispatch() {
                self.now = self.now + Jiffies(100);
                while let Some(rq) = self.in_device.pop() {
                    self.finish(rq);
                }
            }
            self.check();
        }
        prop_assert!(
            !self.dd.has_work(),
            "stranded:\n{}",
            self.dd.show(&self.pool)
        );
        prop_assert!(self.pool.iter().all(|(_, rq)| rq.place == Place::Free));
        prop_assert_eq!(self.pool.bios_in_use(), 0);
        prop_assert_eq!(self.ended_sectors, self.submitted_sectors);
        for (level, [inserted, ..]) in self.dd.counts().into_iter().enumerate() {
            prop_assert_eq!(inserted, self.completed[level], "level {}", level);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_is_lost(
        rules in prop::sample::select(&Rules::PRESETS[..]),
        max_discard_segments in prop_oneof![Just(1u16), Just(3u16)],
        actions in prop::collection::vec(action(), 0..200),
    ) {
        let mut queue = Queue::new(&rules, max_discard_segments);
        for action in &actions {
            queue.apply(action);
            queue.check();
        }
        queue.drain()?;
    }

    /// The same actions give the same state.
    #[test]
    fn runs_repeat(actions in prop::collection::vec(action(), 0..100)) {
        let mut queues = [Queue::new(&Rules::v6_1(), 1), Queue::new(&Rules::v6_1(), 1)];
        for queue in &mut queues {
            for action in &actions {
                queue.apply(action);
            }
        }
        let [a, b] = &queues;
        prop_assert_eq!(&a.dd, &b.dd);
        prop_assert_eq!(&a.pool, &b.pool);
        prop_assert_eq!(a.dd.show(&a.pool), b.dd.show(&b.pool));
    }
}

proptest! {
    /// A choice of the rules leaves the same state when it is forced.
    #[test]
    fn imposing_what_the_rules_choose_is_dispatching(
        rules in prop::sample::select(&Rules::PRESETS[..]),
        fifo_batch in 1i32..5,
        actions in prop::collection::vec(action(), 0..150),
    ) {
        let mut queue = Queue::new(&rules, 1);
        queue.apply(&Action::Store("fifo_batch", fifo_batch));
        for action in &actions {
            let mut action = action.clone();
            match &mut action {
                // Levels hold back requests for reasons that a forced choice does not show.
                Action::Submit(shape) | Action::Insert(shape, _) => shape.class = IoClass::None,
                Action::Store(..) => continue,
                Action::Dispatch => {
                    let (mut dd, mut pool) = (queue.dd.clone(), queue.pool.clone());
                    if queue.dispatch() {
                        let rq = *queue.in_device.last().expect("one was dispatched");
                        dd.force_dispatch(&mut pool, rq);
                        prop_assert_eq!(pool[rq].place, Place::Path);
                        pool[rq].place = Place::Device;
                        prop_assert_eq!(&dd, &queue.dd);
                        prop_assert_eq!(&pool, &queue.pool);
                    }
                    continue;
                }
                _ => {}
            }
            queue.apply(&action);
        }
    }
}

/// A request that the rules would not have chosen begins a batch.
#[test]
fn an_imposed_request_begins_a_batch() {
    let mut queue = queue_of_reads(&[8, 16, 24, 32]);
    let slot = |queue: &Queue, sector: u64| {
        let mut all = queue.pool.iter();
        let found = all.find(|(_, rq)| rq.sector == Sector(sector) && rq.place != Place::Free);
        found.expect("a request of this sector").0
    };
    assert!(queue.dispatch());
    assert_eq!(
        (queue.in_device[0], queue.dd.batching),
        (slot(&queue, 8), 1)
    );
    let skipping = slot(&queue, 24);
    queue.dd.force_dispatch(&mut queue.pool, skipping);
    assert_eq!(queue.pool[skipping].place, Place::Path);
    assert!(queue.pool[skipping].started);
    queue.pool[skipping].place = Place::Device;
    queue.check();
    assert_eq!(queue.dd.batching, 1, "a new batch");
    assert!(queue.dispatch());
    assert_eq!(queue.in_device[1], slot(&queue, 32), "after the forced one");
    assert_eq!((queue.dd.batching, queue.dd.starved()), (2, 0));
}

/// One read of each listed sector, inserted.
fn queue_of_reads(sectors: &[u64]) -> Queue {
    let mut queue = Queue::new(&Rules::v6_12(), 1);
    for &sector in sectors {
        let (op, class) = (Op::Read, IoClass::None);
        let shape = Shape {
            op,
            sector,
            sectors: 1,
            class,
            nomerge: false,
        };
        queue.apply(&Action::Insert(shape, InsertAt::Sorted));
    }
    queue
}

#[test]
#[should_panic(expected = "fifo and tree hold different requests")]
fn the_check_sees_a_request_missing_from_a_fifo() {
    let mut queue = queue_of_reads(&[8, 16, 24]);
    let first = queue.dd.levels[1].fifo[0].first().expect("three requests");
    queue.dd.levels[1].fifo[0].remove(&mut queue.pool, first);
    queue.check();
}

#[test]
#[should_panic(expected = "requests here and requests said to be here")]
fn the_check_sees_a_lost_request() {
    let mut queue = queue_of_reads(&[8, 16]);
    let first = queue.dd.levels[1].fifo[0].first().expect("two requests");
    queue.dd.remove(&mut queue.pool, 1, first);
    queue.check();
}

#[test]
#[should_panic(expected = "is not in the hash")]
fn the_check_sees_a_request_missing_from_the_hash() {
    let mut queue = queue_of_reads(&[8, 16]);
    let first = queue.dd.levels[1].fifo[0].first().expect("two requests");
    queue.dd.index.remove(&mut queue.pool, first);
    queue.check();
}

#[test]
fn work_is_counted_and_not_compared() {
    let mut queue = queue_of_reads(&[8, 16, 24, 32]);
    assert!(queue.dd.take_charge().container_ops > 4);
    assert_eq!(queue.dd.take_charge().container_ops, 0);
    let before = queue.dd.clone();
    assert!(
        queue
            .dd
            .next_in_sector_order(&queue.pool, 1, super::Direction::Read)
            .is_some()
    );
    assert!(queue.dd.take_charge().container_ops > 0);
    assert_eq!(queue.dd, before);
}
