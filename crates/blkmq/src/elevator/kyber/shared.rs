//! State of Kyber that CPUs share: ctx queues with a lock each, hctxs with a lock each, histograms
//! of each CPU, and the state of the timer. Tokens belong to the queue (`queue/tokens.rs`).
//!
//! Kernel: struct kyber_ctx_queue, kyber_hctx_data, kyber_queue_data, kyber_cpu_latency in
//! block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::{DOMAINS, Domain};
use super::hctx_data::HctxData;
use super::latency::{Histograms, QueueData};
use super::{ASYNC_PERCENT, INFO, KCQ, KHD, KyberSettings};
use crate::elevator::attribute::Attributes as _;
use crate::elevator::shared::Ops;
use crate::elevator::{Elevator, Hooks, Override, QueueShape, StoreError, Wanted, shallow_share};
use crate::env::{Bit, CacheLine, Cpu, Lock, Slab, SpinLock, Word, value};
use crate::list::QueueList;
use crate::queue::{CTXS_A_WORD, IrqClass, LockId, RequestQueue};
use crate::request::{CpuId, HctxId, Op, Place, Request, RequestPool};
use crate::rules::{AsyncDepth, Rules, ShallowDepth};
use crate::sbitmap::shift_for;
use crate::step::{Cx, Next};

#[derive(Debug)]
pub struct KyberShared {
    pub hctxs: Vec<KyberHctx>,
    /// Requests by domain of each ctx of each hctx, those of one hctx next to each other: under
    /// `kcq->lock`.
    pub kcqs: Vec<Lock<[QueueList; DOMAINS]>>,
    /// Latencies of requests that ended on each CPU.
    pub cpu_latency: Vec<CpuLatency>,
    /// State of the timer, and the targets. No lock: the timer's function runs once at a time.
    pub data: Slab<QueueData>,
    /// The timer is pending (timer_pending()).
    pub timer_pending: Bit,
    async_depth: AsyncDepth,
}

value!(KyberShared {
    async_depth;
    hctxs, kcqs, cpu_latency, data, timer_pending
});

/// State of one hctx (kyber_hctx_data).
#[derive(Debug)]
pub struct KyberHctx {
    pub data: Lock<HctxData>,
    /// `!list_empty(rqs[..])` of any domain, as has_work reads it without the lock.
    pub flushed: Bit,
    /// For each domain a bit for each ctx that has requests, [`CTXS_A_WORD`] to a word.
    pub kcq_map: [Vec<Word>; DOMAINS],
    /// Index of its first ctx queue among those of all hctxs.
    first_kcq: u32,
}

value!(KyberHctx { first_kcq; data, flushed, kcq_map });

/// State of one CPU (kyber_cpu_latency).
#[derive(Debug)]
pub struct CpuLatency {
    pub counts: Slab<Histograms>,
    pub line: CacheLine,
}

value!(CpuLatency { line; counts });

/// A ctx queue: its hctx, and its index in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct KcqId {
    pub(super) hctx: HctxId,
    pub(super) bit: u16,
}

impl KyberShared {
    pub(super) fn new(settings: &KyberSettings, rules: &Rules, shape: &QueueShape) -> KyberShared {
        let mut first_kcq = 0;
        let hctx = |&ctxs: &usize| {
            let words = ctxs.div_ceil(CTXS_A_WORD as usize).max(1);
            let first = first_kcq;
            first_kcq += ctxs as u32;
            KyberHctx {
                data: Lock::new(HctxData::default()),
                flushed: Bit::new(false),
                kcq_map: core::array::from_fn(|_| (0..words).map(|_| Word::new(0)).collect()),
                first_kcq: first,
            }
        };
        let hctxs: Vec<KyberHctx> = shape.ctxs.iter().map(hctx).collect();
        let latency = |_| CpuLatency {
            counts: Slab::new(Histograms::default()),
            line: CacheLine::default(),
        };
        let shift = shift_for(settings.nr_requests);
        KyberShared {
            hctxs,
            kcqs: (0..first_kcq)
                .map(|_| Lock::new([QueueList::new(); DOMAINS]))
                .collect(),
            cpu_latency: (0..shape.cpus).map(latency).collect(),
            data: Slab::new(QueueData {
                hz: settings.hz,
                targets: settings.targets(),
                async_depth: settings.async_depth.unwrap_or(shallow_share(
                    ASYNC_PERCENT,
                    rules.shallow_depth,
                    shift,
                    settings.nr_requests,
                )),
                buckets: Histograms::default(),
                timeouts: Default::default(),
                p99: Default::default(),
            }),
            timer_pending: Bit::new(false),
            async_depth: rules.async_depth,
        }
    }

    /// That of the path's queue.
    #[inline]
    pub(super) fn of<'a>(cx: &Cx<'a>) -> &'a KyberShared {
        match &cx.q.elevator {
            Elevator::Kyber(shared) => shared,
            other => unreachable!("{other:?} has no ctx queues"),
        }
    }

    pub(super) fn hctx(&self, hctx: HctxId) -> &KyberHctx {
        &self.hctxs[usize::from(hctx.0)]
    }

    /// The request for khd->lock.
    pub(super) fn khd_lock(q: &RequestQueue, hctx: HctxId) -> Next {
        let index = u32::from(hctx.0);
        Next::Lock(LockId::of_elevator(q.id, KHD, IrqClass::Plain, index))
    }

    fn kcq_index(&self, id: KcqId) -> u32 {
        self.hctx(id.hctx).first_kcq + u32::from(id.bit)
    }

    pub(super) fn kcq(&self, id: KcqId) -> &Lock<[QueueList; DOMAINS]> {
        &self.kcqs[self.kcq_index(id) as usize]
    }

    /// The request for kcq->lock.
    pub(super) fn kcq_lock(&self, q: &RequestQueue, id: KcqId) -> Next {
        let index = self.kcq_index(id);
        Next::Lock(LockId::of_elevator(q.id, KCQ, IrqClass::Plain, index))
    }

    /// The ctx queue of a CPU within an hctx (`index_hw`).
    pub(super) fn kcq_of(q: &RequestQueue, hctx: HctxId, cpu: CpuId) -> KcqId {
        let kind = q.hctx(hctx).ctxs.first().map_or(0, |&(_, kind)| kind);
        let bit = q.ctxs[usize::from(cpu.0)].index_hw[usize::from(kind)];
        KcqId {
            hctx,
            bit: bit as u16,
        }
    }

    /// The word of a domain's map with the bit of a ctx queue, and the bit.
    pub(super) fn map_word(&self, id: KcqId, domain: Domain) -> (&Word, u64) {
        let map = &self.hctx(id.hctx).kcq_map[domain.index()];
        let bit = u32::from(id.bit);
        (&map[(bit / CTXS_A_WORD) as usize], 1 << (bit % CTXS_A_WORD))
    }

    pub(super) fn data(&self) -> impl core::ops::DerefMut<Target = QueueData> + '_ {
        self.data.held(CpuId(0))
    }

    fn kcqs_of(&self, khd: &KyberHctx) -> &[Lock<[QueueList; DOMAINS]>] {
        let first = khd.first_kcq as usize;
        let firsts = self.hctxs.iter().map(|other| other.first_kcq as usize);
        let end = firsts.filter(|&other| other > first).min();
        &self.kcqs[first..end.unwrap_or(self.kcqs.len())]
    }

    /// Returns the number of its requests.
    fn check_kcq(
        khd: &KyberHctx,
        index: u32,
        kcq: &Lock<[QueueList; DOMAINS]>,
        pool: &RequestPool,
    ) -> usize {
        let bit = index - khd.first_kcq;
        let mask = 1 << (bit % CTXS_A_WORD);
        kcq.inspect(|lists| {
            for (domain, list) in Domain::ALL.iter().zip(lists) {
                let map = &khd.kcq_map[domain.index()];
                let marked = map[(bit / CTXS_A_WORD) as usize].peek() & mask != 0;
                let agrees = marked != list.is_empty() || !kcq.is_free();
                assert!(agrees, "a ctx queue and its bit");
                for rq in list.iter(pool) {
                    assert_eq!(
                        Domain::of(pool[rq].op),
                        *domain,
                        "{rq:?} is in a wrong list"
                    );
                }
            }
            lists.iter().map(QueueList::len).sum()
        })
    }
}

impl Ops for KyberShared {
    fn lock_count(&self, number: u8) -> u32 {
        match number {
            KCQ => self.kcqs.len() as u32,
            KHD => self.hctxs.len() as u32,
            _ => 0,
        }
    }

    #[inline]
    fn spin_lock(&self, number: u8, at: usize) -> &SpinLock {
        match number {
            KCQ => &self.kcqs[at],
            KHD => &self.hctxs[at].data,
            _ => panic!("kyber has no lock {number}"),
        }
    }

    /// kyber_has_work(): flushed requests first, then each word of each domain's map.
    /// Deviation(D21): the kernel checks each domain's list and then its map; here the lists of all
    /// domains, which share a cache line, are one access.
    fn work_places(&self, hctx: HctxId, _rules: &Rules) -> u16 {
        let words = self.hctx(hctx).kcq_map[0].len();
        1 + (DOMAINS * words) as u16
    }

    #[inline]
    fn sees_work(&self, hctx: HctxId, place: u16, cpu: &mut Cpu) -> bool {
        let khd = self.hctx(hctx);
        let Some(place) = place.checked_sub(1) else {
            khd.data.glance(cpu);
            return khd.flushed.test(cpu);
        };
        let words = khd.kcq_map[0].len();
        let (domain, word) = (usize::from(place) / words, usize::from(place) % words);
        khd.kcq_map[domain][word].load(cpu) != 0
    }

    /// Only the word that is read first; the others are beside it.
    fn seems_to_have_work(&self, hctx: HctxId, cpu: &mut Cpu) -> bool {
        let khd = self.hctx(hctx);
        khd.data.glance(cpu);
        khd.flushed.test(cpu) || self.has_queued(hctx)
    }

    fn has_queued(&self, hctx: HctxId) -> bool {
        let khd = self.hctx(hctx);
        let mut words = khd.kcq_map.iter().flatten();
        khd.flushed.peek() || words.any(|word| word.peek() != 0)
    }

    /// Operations that are not synchronous leave a quarter of the tags to others, up to v7.0;
    /// then all but synchronous reads. Zero is no limit, as for the kernel's allocation.
    fn limit_depth(&self, _q: &RequestQueue, wanted: Wanted, _cpu: &mut Cpu) -> Option<u32> {
        let write = self.async_depth == AsyncDepth::OfQueue && wanted.op != Op::Read;
        if wanted.is_sync() && !write {
            return None;
        }
        let depth = match self.async_depth {
            AsyncDepth::OfMap => {
                shallow_share(ASYNC_PERCENT, ShallowDepth::PerWord, wanted.map.shift, 0)
            }
            AsyncDepth::AtStart | AsyncDepth::OfRequests | AsyncDepth::OfQueue => {
                self.data().async_depth
            }
        };
        Some(depth).filter(|&depth| depth > 0)
    }

    fn hooks(&self) -> Hooks {
        INFO.hooks
    }

    /// No token yet.
    fn prepare(&self, rq: &mut Request) {
        rq.elv_priv = [0; 2];
    }

    fn store(
        &self,
        q: &RequestQueue,
        name: &str,
        text: &str,
        _cpu: &mut Cpu,
    ) -> Result<(), StoreError> {
        let mut data = self.data();
        let mut settings = KyberSettings::defaults(data.hz, q.settings.nr_requests);
        settings.follow(&q.settings.rules, false);
        (settings.read_lat_nsec, settings.write_lat_nsec) = (data.targets[0], data.targets[1]);
        settings.store(name, text)?;
        data.targets = settings.targets();
        if name == "async_depth" {
            data.async_depth = settings.async_depth.unwrap_or(data.async_depth);
        }
        Ok(())
    }

    fn apply_override(&self, q: &RequestQueue, with: Override, cpu: &mut Cpu) {
        self.force(q, with, cpu);
    }

    fn show(&self, q: &RequestQueue) -> String {
        self.as_text(q)
    }

    /// Panics unless lists that no path works on, their words, and the pool agree.
    fn check(&self, pool: &RequestPool) {
        let mut listed = 0;
        for khd in &self.hctxs {
            let kcqs = (khd.first_kcq..).zip(self.kcqs_of(khd));
            for (index, kcq) in kcqs {
                listed += Self::check_kcq(khd, index, kcq, pool);
            }
            listed += khd.data.inspect(|data| {
                let flushed = data.has_any() == khd.flushed.peek();
                assert!(flushed || !khd.data.is_free(), "rqs and their word");
                data.rqs.iter().map(QueueList::len).sum::<usize>()
            });
        }
        let here = |rq: &Request| rq.place == Place::Elevator;
        let held = pool.iter().filter(|(_, rq)| here(rq)).count();
        assert_eq!(listed, held, "requests in lists, and those that are here");
    }
}
