use super::*;
use crate::elevator::SchedulerKind;
use crate::env::{CounterForm, TURN_OVER, Which};
use crate::request::{Bio, Op};
use crate::rules::{NoMerges, QueueLimits, Rules};
use crate::time::SimTime;
use proptest::prelude::*;

const REQUESTS: usize = 64;
const PROCESSES: u32 = 4;

#[derive(Clone, Debug)]
enum Do {
    Submit {
        by: u32,
        sector: u64,
        write: bool,
        sync: bool,
    },
    Dispatch,
    Complete(usize),
    Later(u64),
    Exit(u32),
    Drain,
}

fn does() -> impl Strategy<Value = Do> {
    let submit = (1..=PROCESSES, 0u64..200, any::<bool>(), any::<bool>());
    prop_oneof![
        4 => submit.prop_map(|(by, at, write, sync)| {
            let sector = at * 8;
            Do::Submit { by, sector, write, sync }
        }),
        4 => Just(Do::Dispatch),
        3 => (0usize..8).prop_map(Do::Complete),
        3 => (1u64..40).prop_map(Do::Later),
        1 => (1..=PROCESSES).prop_map(Do::Exit),
        1 => Just(Do::Drain),
    ]
}

#[derive(Default)]
struct Ledger {
    time: u64,
    shares: u64,
    sectors: u64,
    turn: Option<Which>,
}

impl Ledger {
    fn note(&mut self, reading: Reading) {
        let (which, value) = (reading.which, reading.value);
        match (reading.counter.name, reading.counter.form) {
            ("time served", _) => self.time += value,
            ("ideal share", _) => self.shares += value,
            ("sectors served", _) => self.sectors += value,
            (_, CounterForm::Turn) if value == TURN_OVER => {
                assert!(self.turn.take().is_some(), "a slice ends without a start");
            }
            (_, CounterForm::Turn) => self.turn = Some(which),
            _ => {}
        }
    }

    /// All time served is in the share of some queue, except for parts below a nanosecond each, and
    /// a slice is exactly as long as its queue is active.
    fn check(&self, active: bool) {
        assert!(self.shares <= self.time, "more is shared than there was");
        assert!(self.time - self.shares < 1000, "time in no queue's share");
        assert_eq!(self.turn.is_some(), active, "a slice of the active queue");
    }
}

/// A share that is not reported is missed.
#[test]
#[should_panic(expected = "time in no queue's share")]
fn a_share_that_is_missing_is_seen() {
    let mut world = World::new(Rules::v2_6_32());
    for by in [1, 2] {
        world.submit(by, 1000 * u64::from(by), false, true);
    }
    world.dispatch();
    world.tick += 200;
    world.cfq.begin(world.now());
    world.cfq.expire_active(&world.pool, false);
    let mut shown = Ledger::default();
    let mut shares = 0;
    world.cfq.take_readings(&mut |reading| {
        let is_share = reading.counter.name == "ideal share";
        shares += u32::from(is_share);
        // The second share is left out.
        if !is_share || shares != 2 {
            shown.note(reading);
        }
    });
    assert_eq!(shares, 2, "both have a share");
    shown.check(false);
}

/// A change of the scheduler drains all requests in one call: no sample of them is lost.
#[test]
fn a_drain_of_all_requests_is_read_whole() {
    let mut world = World::new(Rules::v4_20());
    for at in 0..REQUESTS as u64 {
        world.submit(1, 16 * at, false, true);
    }
    world.does(&Do::Dispatch);
    assert!(world.cfq.active.is_some(), "a slice begins");
    world.does(&Do::Drain);
    assert_eq!(world.shown.sectors, 8 * REQUESTS as u64);
    world.ends();
}

/// A scheduler, its requests and its timer.
struct World {
    cfq: Cfq,
    pool: RequestPool,
    tick: u64,
    timer: Option<u64>,
    in_driver: Vec<RequestId>,
    submitted: u32,
    ended: u32,
    shown: Ledger,
}

impl World {
    fn new(rules: Rules) -> World {
        let queue = QueueSettings {
            rotational: true,
            rotational_when_chosen: true,
            ..QueueSettings::plain(rules, SchedulerKind::Cfq, 64)
        };
        World {
            cfq: Cfq::new(&CfqSettings::defaults(1000, 64), &queue),
            pool: RequestPool::new(REQUESTS, REQUESTS),
            tick: 0,
            timer: None,
            in_driver: Vec::new(),
            submitted: 0,
            ended: 0,
            shown: Ledger::default(),
        }
    }

    fn now(&self) -> Now {
        Now {
            time: SimTime(self.tick * 1_000_000),
            tick: crate::time::Jiffies(self.tick),
            kept: false,
        }
    }

    fn settle(&mut self) {
        match self.cfq.take_timer() {
            Some(TimerAsk::Arm { after, .. }) => self.timer = Some(self.tick + after.0 / 1_000_000),
            Some(TimerAsk::Cancel { .. }) => self.timer = None,
            None => {}
        }
        self.cfq.check(&self.pool);
        let shown = &mut self.shown;
        self.cfq.take_readings(&mut |reading| shown.note(reading));
        shown.check(self.cfq.active.is_some());
    }

    fn submit(&mut self, by: u32, sector: u64, write: bool, sync: bool) {
        let free = self.pool.iter().find(|(_, rq)| rq.place == Place::Free);
        let Some((rq, _)) = free else { return };
        let mut bio = Bio {
            op: if write { Op::Write } else { Op::Read },
            sector: Sector(sector),
            sectors: Sectors(8),
            io_context: IoContextId(by),
            ..Bio::default()
        };
        bio.flags.sync = sync;
        let bio = self.pool.add_bio(bio).expect("as many as requests");
        self.pool.reset(rq);
        self.pool.bio_to_request(rq, bio);
        self.pool[rq].place = Place::Path;
        self.pool[rq].use_sched = true;
        self.pool[rq].start_time = self.now().time;
        let now = self.now();
        self.cfq.set_request(&mut self.pool, rq, now);
        let limits = QueueLimits::PLAIN;
        let merging = Merging {
            limits: &limits,
            nomerges: NoMerges::Never,
        };
        let at = InsertAt::Sorted;
        let insertion = self.cfq.insert(&mut self.pool, rq, at, now, merging);
        assert_eq!(insertion, Insertion::Inserted);
        self.submitted += 1;
        let mut handed = self.cfq.take_handed(&mut self.pool);
        while let Some(rq) = handed.pop_front(&mut self.pool) {
            self.goes(rq);
        }
        if self.cfq.take_run() {
            self.dispatch();
            self.cfq.ran();
        }
    }

    fn goes(&mut self, rq: RequestId) {
        assert!(!self.in_driver.contains(&rq), "{rq:?} goes twice");
        self.pool[rq].place = Place::Device;
        self.in_driver.push(rq);
        let now = self.now();
        self.cfq.activated(&mut self.pool, rq, now);
    }

    fn dispatch(&mut self) -> bool {
        let at = DispatchTime::at(self.now());
        let rq = self.cfq.dispatch(&mut self.pool, at, [0; LEVELS]);
        if let Some(rq) = rq {
            self.keeps_depth(own_queue(&self.pool[rq]));
        }
        rq.inspect(|&rq| self.goes(rq)).is_some()
    }

    /// A dispatch call never gives a queue more requests than its class and the rules allow.
    fn keeps_depth(&self, q: QId) {
        let queue = &self.cfq.queues[q];
        let fourfold = self.cfq.rules.depth == crate::rules::SliceDepth::Fourfold;
        let most = match queue.class {
            crate::elevator::cfq::queue::Class::Idle => 1,
            _ if fourfold => 4 * self.cfq.rules.quantum,
            _ => u32::MAX,
        };
        assert!(queue.dispatched <= most, "{q:?}: {}", queue.dispatched);
    }

    fn complete(&mut self, which: usize) {
        if which >= self.in_driver.len() {
            return;
        }
        let rq = self.in_driver.remove(which);
        let now = self.now();
        self.cfq.completed(&mut self.pool, rq, now);
        self.cfq.finished(&mut self.pool, rq, now);
        for bio in self.pool.bios_of(rq).collect::<Vec<BioId>>() {
            self.pool.free_bio(bio);
        }
        self.pool[rq].place = Place::Free;
        self.pool.reset(rq);
        self.ended += 1;
    }

    fn later(&mut self, ticks: u64) {
        let until = self.tick + ticks;
        while let Some(due) = self.timer.filter(|&due| due <= until) {
            (self.tick, self.timer) = (due, None);
            let now = self.now();
            self.cfq.timer(&mut self.pool, 0, now);
            self.settle();
        }
        self.tick = until;
    }

    fn does(&mut self, what: &Do) {
        let now = self.now();
        match *what {
            Do::Submit {
                by,
                sector,
                write,
                sync,
            } => self.submit(by, sector, write, sync),
            Do::Dispatch => drop(self.dispatch()),
            Do::Complete(which) => self.complete(which),
            Do::Later(ticks) => self.later(ticks),
            Do::Exit(by) => drop(self.cfq.exits(&mut self.pool, IoContextId(by), now)),
            Do::Drain => {
                let mut all = self.cfq.drain(&mut self.pool, now);
                while let Some(rq) = all.pop_front(&mut self.pool) {
                    self.goes(rq);
                }
            }
        }
        self.settle();
    }

    /// No new requests: all are served if timers expire and requests end, and no queue is left.
    fn ends(mut self) {
        for _ in 0..1000 * REQUESTS {
            if self.submitted == self.ended {
                break;
            }
            if !self.dispatch() {
                self.complete(0);
                self.settle();
                self.later(1);
            }
        }
        assert_eq!(self.submitted, self.ended, "{}", self.cfq.show(&self.pool));
        for by in 1..=PROCESSES {
            self.does(&Do::Exit(by));
        }
        let held = self.cfq.ties.table().iter().flatten().count();
        let left = self.cfq.ties.queues().count() - 1;
        assert_eq!(left, held, "queues without holder");
    }
}

/// Rules that lose no reference, each with the name of its preset.
fn sound() -> Vec<Rules> {
    let of = |name: &str| Rules::by_name(name).expect("a preset");
    ["v2.6.32-rc5", "v2.6.32", "v2.6.35", "v4.20"]
        .map(of)
        .to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn each_request_goes_once_and_no_queue_is_forgotten(
        rules in prop::sample::select(sound()),
        all in prop::collection::vec(does(), 1..200),
    ) {
        let mut world = World::new(rules);
        for what in &all {
            world.does(what);
        }
        world.ends();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Spans whose products overflow the kernel's variables, which wrap in the model, too. The
    /// depths, which `keeps_depth` needs, are kept.
    #[test]
    fn no_attribute_is_too_large(
        rules in prop::sample::select(sound()),
        stores in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just(0), Just(1), 1u32..2_000_000, Just(u32::MAX),
        ]), 1..8),
        all in prop::collection::vec(does(), 1..100),
    ) {
        let mut world = World::new(rules);
        let names: Vec<&str> = world.cfq.shown().into_iter().map(|(name, _)| name).collect();
        let now = world.now();
        for (index, value) in stores {
            let name = *index.get(&names);
            if !name.contains("quantum") {
                world.cfq.store(name, &value.to_string(), now).expect("a number is taken");
            }
        }
        for what in &all {
            world.does(what);
        }
    }
}

/// Slices of more than 2^32 ticks in all, in the widths of the kernel's variables.
#[test]
fn slices_wrap_as_in_the_kernel() {
    for (rules, span, by, product) in [
        ("v2.6.35", 1 << 20, 1 << 14, 1u64 << 34 & 0xffff_ffff),
        ("v2.6.35", 70_000, 70_000, 70_000 * 70_000 - (1 << 32)),
        ("v4.20", 70_000, 70_000, 70_000 * 70_000),
        (
            "v4.20",
            5_000_000_000,
            5_000_000_000,
            6_553_255_926_290_448_384,
        ),
    ] {
        let world = World::new(Rules::by_name(rules).expect("a preset"));
        assert_eq!(world.cfq.times(span, by), product, "{rules}: {span} * {by}");
    }
}

#[test]
#[should_panic(expected = "references of processes")]
fn a_reference_too_many_is_found_by_the_check() {
    let mut world = World::new(Rules::by_name("v2.6.32").expect("a preset"));
    world.submit(1, 0, false, false);
    world.cfq.check(&world.pool);
    let (q, _) = world.cfq.ties.queues().last().expect("its queue");
    world.cfq.tie_of(q).references += 1;
    world.cfq.check(&world.pool);
}
