//! The flush machine of one hctx by itself, whose functions run each to its end: for a comparison
//! with block/blk-flush.c.
//!
//! A request whose sequence is done is free; what is inserted is in the device, with a driver tag.
//! Not here: bios, dispatch.

use super::insert_flush;
use crate::call::Call;
use crate::elevator::SchedulerKind;
use crate::env::{Answer, Cpu, Effect};
use crate::path::sbitmap::{TagMap, sbitmap_get};
use crate::path::{CompletePath, RequeuePath, tag};
use crate::queue::{BlkMq, QueueConfig, QueueSettings, RequestQueue};
use crate::request::{CpuId, HctxId, OpFlags, Place, QueueId, RequestId, Sectors, Status, Tag};
use crate::rules::{QueueLimits, Rules};
use crate::step::{Cx, Next, Steps, Sub};
use crate::tags::TagSetConfig;

const QUEUE: QueueId = QueueId(0);
const HCTX: HctxId = HctxId(0);

/// A queue with one hctx.
#[derive(Debug)]
pub struct FlushAlone {
    mq: BlkMq,
    cpu: Cpu,
}

/// What a function has done besides.
#[derive(Clone, Default, Debug)]
pub struct Ran {
    /// Requests that it ended.
    pub ended: Vec<(RequestId, Status)>,
    /// Requests that it inserted.
    pub inserted: Vec<RequestId>,
    /// The requeue lists are kicked.
    pub kicked: bool,
    /// The caller must insert the request.
    pub goes_on: bool,
}

impl FlushAlone {
    /// Idle, on a device with these limits, with a scheduler or without.
    pub fn new(rules: Rules, limits: QueueLimits, schedules: bool, requests: u32) -> FlushAlone {
        let scheduler = match schedules {
            true => SchedulerKind::default_for(true),
            false => SchedulerKind::None,
        };
        let mut settings = QueueSettings::plain(rules, scheduler, requests);
        settings.limits = limits;
        let config = QueueConfig::plain(settings, TagSetConfig::plain(1, requests), 1);
        FlushAlone {
            mq: BlkMq::new(&config, &mut || 0),
            cpu: Cpu::new(CpuId(0)),
        }
    }

    pub fn queue(&self) -> &RequestQueue {
        self.mq.queue(QUEUE)
    }

    /// The time goes on, by so many ticks.
    pub fn pass(&mut self, ticks: u64) {
        let hz = u64::from(self.queue().settings.hz);
        self.cpu.at_ps += ticks * 1_000_000_000_000 / hz;
    }

    /// blk_insert_flush() of the request with this tag, which must be free.
    pub fn insert(&mut self, tag: u32, sectors: u32, flags: OpFlags) -> (RequestId, Ran) {
        self.cpu.begin_label();
        let mut cx = Cx::of(&self.mq, QUEUE, &mut self.cpu);
        let rq = tag::adopt(&mut cx, HCTX, tag);
        let mut pool = cx.pool();
        (pool[rq].sectors, pool[rq].flags) = (Sectors(sectors), flags);
        drop(pool);
        self.cpu.answer = Answer::default();
        let ((), mut ran) = self.run(insert_flush::State::new(QUEUE, rq));
        ran.goes_on = self.cpu.answer == Answer::GoOn;
        if ran.goes_on && self.queue().with_pool(|pool| pool[rq].flush_seq) {
            self.issue(rq);
        }
        (rq, ran)
    }

    /// The device ends the data of a sequence, or the flush.
    pub fn end(&mut self, rq: RequestId, status: Status) -> Ran {
        self.run(CompletePath::end(QUEUE, rq, status)).1
    }

    /// blk_mq_requeue_work().
    pub fn requeue_work(&mut self) -> Ran {
        let ((), ran) = self.run(RequeuePath::new(QUEUE));
        for &rq in &ran.inserted {
            self.issue(rq);
        }
        ran
    }

    /// The request gets a driver tag, if a scheduler tag identifies it.
    fn issue(&mut self, rq: RequestId) {
        if self.queue().has_elevator() {
            let hint = self.mq.sets[0].driver[0].hint_before(&mut self.cpu);
            let get = sbitmap_get::State::new(TagMap::Driver(HCTX), hint, None);
            let tag = self.run(get).0.map(Tag);
            self.queue().with_pool(|pool| pool[rq].tag = tag);
        }
    }

    /// A request that ended is not used any more.
    pub fn free(&mut self, rq: RequestId) {
        self.queue().with_pool(|pool| pool[rq].place = Place::Free);
    }

    fn run<S: Steps>(&mut self, mut state: S) -> (S::Done, Ran) {
        let mut ran = Ran::default();
        loop {
            self.cpu.begin_label();
            let next = state.step(&mut Cx::of(&self.mq, QUEUE, &mut self.cpu));
            let outbox = &mut self.cpu.outbox;
            for effect in (0..).map_while(|index| outbox.take(index)) {
                ran.kicked |= matches!(effect, Effect::KickRequeue { .. });
            }
            match next {
                Sub::Wait(Next::Lock(lock)) => self.mq.acquire(lock, &mut self.cpu),
                Sub::Wait(Next::Call) => match self.cpu.call.take() {
                    Some(Call::End { rq, status, .. }) => ran.ended.push((rq, status)),
                    Some(Call::Insert(inserts)) => ran.inserted.push(inserts.rq),
                    _ => {}
                },
                Sub::Wait(_) => {}
                Sub::Done(value) => return (value, ran),
            }
        }
    }
}
