//! The core of mq-deadline: one insertion and one dispatch at a steady depth, random sectors.
//!
//! Budget: twice the reference loop of the same run, which only keeps the sectors in a
//! `BTreeMap`. Ours includes fifo, merge look-ups, priorities and the operation counters.

use blkmq::elevator::mq_deadline::{MqDeadline, MqDeadlineSettings};
use blkmq::elevator::{DispatchTime, InsertAt, Insertion, Now, Scheduler};
use blkmq::merge::Merging;
use blkmq::request::{Bio, Op, Place, RequestId, RequestPool, Sector, Sectors};
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::collections::BTreeMap;
use std::hint::black_box;

const LIMITS: QueueLimits = QueueLimits {
    max_sectors: 2560,
    max_segments: 128,
    chunk_sectors: 0,
    max_discard_sectors: 0,
    discard_granularity: 0,
    max_discard_segments: 1,
    write_cache: false,
    fua: false,
    ..QueueLimits::PLAIN
};

/// A scheduler that always holds the same number of requests.
struct Steady {
    pool: RequestPool,
    dd: MqDeadline,
    random: u64,
    completed: [u32; 3],
}

impl Steady {
    fn new(rules: &Rules, depth: u32) -> Steady {
        let mut steady = Steady {
            pool: RequestPool::new(depth as usize + 1, depth as usize + 1),
            dd: MqDeadline::new(rules, MqDeadlineSettings::defaults(250, depth)),
            random: 1,
            completed: [0; 3],
        };
        for slot in 0..depth {
            let bio = steady
                .pool
                .add_bio(Bio::default())
                .expect("a bio for each request");
            steady.pool.bio_to_request(RequestId(slot), bio);
            steady.insert(RequestId(slot));
        }
        steady
    }

    /// A read, or one time in four a write, of 4 KiB somewhere on 32 GiB.
    fn insert(&mut self, rq: RequestId) {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let request = &mut self.pool[rq];
        request.op = if self.random >> 62 == 0 {
            Op::Write
        } else {
            Op::Read
        };
        request.sector = Sector((self.random >> 36 & 0x7f_ffff) * 8);
        request.sectors = Sectors(8);
        request.started = false;
        request.elv_priv = [0; 2];
        request.place = Place::Path;
        let merging = Merging {
            limits: &LIMITS,
            nomerges: NoMerges::All,
        };
        let inserted = self.dd.insert(
            &mut self.pool,
            rq,
            InsertAt::Sorted,
            Now::default(),
            merging,
        );
        // A rare neighbour: the depth would shrink, so it goes in again elsewhere.
        if let Insertion::Absorbed(mut absorbed) = inserted {
            while let Some(rq) = absorbed.pop_front(&mut self.pool) {
                self.completed[1] += 1;
                let bio = self.pool.add_bio(Bio::default());
                if let Some(bio) = bio {
                    self.pool.bio_to_request(rq, bio);
                }
                self.insert(rq);
            }
        }
    }

    /// The request that goes comes back at once with another address.
    fn turn(&mut self) -> RequestId {
        let now = DispatchTime::at(Now::default());
        let rq = self
            .dd
            .dispatch(&mut self.pool, now, self.completed)
            .expect("requests are queued");
        self.completed[1] += 1;
        self.insert(rq);
        self.pool.lines.take();
        rq
    }
}

/// The reference: a map of sectors, whose next one at or after the last one goes.
struct Map {
    sectors: BTreeMap<(u64, u64), u32>,
    position: u64,
    random: u64,
}

impl Map {
    fn new(depth: u32) -> Map {
        let mut map = Map {
            sectors: BTreeMap::new(),
            position: 0,
            random: 1,
        };
        for slot in 0..depth {
            map.insert(slot);
        }
        map
    }

    fn insert(&mut self, slot: u32) {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.sectors
            .insert((self.random >> 36 & 0x7f_ffff, self.random), slot);
    }

    fn turn(&mut self) -> u32 {
        let next = self
            .sectors
            .range((self.position, 0)..)
            .next()
            .map(|(&key, _)| key);
        let key = next.unwrap_or_else(|| *self.sectors.keys().next().expect("never empty"));
        self.position = key.0;
        let slot = self.sectors.remove(&key).expect("just found");
        self.insert(slot);
        slot
    }
}

fn insert_and_dispatch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mq_deadline/insert_and_dispatch");
    group.throughput(Throughput::Elements(1));
    for depth in [64, 128] {
        let mut map = Map::new(depth);
        group.bench_function(BenchmarkId::new("reference", depth), |bencher| {
            bencher.iter(|| black_box(map.turn()));
        });
    }
    for rules in Rules::PRESETS {
        for depth in [64, 128] {
            let mut steady = Steady::new(&rules, depth);
            group.bench_function(BenchmarkId::new(rules.name, depth), |bencher| {
                bencher.iter(|| black_box(steady.turn()));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, insert_and_dispatch);
criterion_main!(benches);
