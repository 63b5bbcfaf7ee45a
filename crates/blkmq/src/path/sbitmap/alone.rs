//! One map whose functions run alone, each to its end: for a comparison with lib/sbitmap.c.
//!
//! Its waiters are added and removed here, as sbitmap_prepare_to_wait(), sbitmap_finish_wait() and
//! sbitmap_add_wait_queue() do; the paths that wait have steps of their own (`path/token.rs`,
//! `path/submit/tagwait.rs`).

use super::{
    Counted, Put, TagMap, put_tag, sbitmap_get, sbitmap_queue_get_batch, sbitmap_queue_resize,
    sbitmap_queue_wake_all, sbitmap_queue_wake_up,
};
use crate::elevator::SchedulerKind;
use crate::env::{Cpu, Effect};
use crate::queue::{BlkMq, QueueConfig, QueueSettings};
use crate::request::{CpuId, HctxId, QueueId};
use crate::rules::{Rules, WokenRun};
use crate::sbitmap::Sbitmap;
use crate::step::{Cx, Next, Steps, Sub};
use crate::tags::TagSetConfig;
use crate::waiter::Waiter;

const MAP: TagMap = TagMap::Driver(HctxId(0));

/// A map, CPUs that use it, and contexts that may wait for it.
#[derive(Debug)]
pub struct MapAlone {
    mq: BlkMq,
    cpus: Vec<Cpu>,
}

impl MapAlone {
    /// With this map, which has a hint for each CPU; as many tasks as hctxs may wait.
    pub fn new(map: Sbitmap, rules: Rules, hctxs: u16) -> MapAlone {
        let cpus = map.hints.len() as u16;
        let mut settings = QueueSettings::plain(rules, SchedulerKind::None, 1);
        // Each wake-up of an hctx is to be seen.
        settings.rules.restart.woken = WokenRun::Always;
        let mut tags = TagSetConfig::plain(hctxs, 1);
        tags.tasks = usize::from(hctxs);
        let config = QueueConfig::plain(settings, tags, cpus.max(hctxs));
        let mut mq = BlkMq::new(&config, &mut || 0);
        mq.sets[0].driver[0] = map;
        let cpus = (0..cpus).map(|cpu| Cpu::new(CpuId(cpu))).collect();
        MapAlone { mq, cpus }
    }

    /// The map.
    pub fn map(&self) -> &Sbitmap {
        &self.mq.sets[0].driver[0]
    }

    /// sbitmap_get(), sbitmap_get_shallow().
    pub fn get(&mut self, cpu: usize, shallow: Option<u32>) -> Option<u32> {
        let hint = self.mq.sets[0].driver[0].hint_before(&mut self.cpus[cpu]);
        self.run(cpu, sbitmap_get::State::new(MAP, hint, shallow)).0
    }

    /// __sbitmap_queue_get_batch(): the first bit, and those from there on that it took.
    pub fn get_batch(&mut self, cpu: usize, count: u32) -> Option<(u32, u64)> {
        if self.map().round_robin {
            return None;
        }
        let hint = self.mq.sets[0].driver[0].hint_before(&mut self.cpus[cpu]);
        let get = sbitmap_queue_get_batch::State::new(MAP, hint, count);
        self.run(cpu, get).0
    }

    /// sbitmap_queue_clear() of a bit that `owner` took: who is woken.
    pub fn put(&mut self, cpu: usize, bit: u32, owner: usize) -> Vec<Effect> {
        let put = Put {
            bit,
            owner: CpuId(owner as u16),
            counted: Counted::No,
        };
        self.run(cpu, put_tag::State::new(MAP, put)).1
    }

    /// sbitmap_queue_clear_batch(), whose bits leave their words at once: who is woken.
    pub fn put_batch(&mut self, cpu: usize, bits: &[u32]) -> Vec<Effect> {
        for &bit in bits {
            let map = &self.mq.sets[0].driver[0];
            self.cpus[cpu].begin_label();
            let word = &map.words[map.word_of(bit)].word;
            word.fetch_and(&mut self.cpus[cpu], !map.mask_of(bit));
        }
        let wake = sbitmap_queue_wake_up::State::new(MAP, bits.len() as u32);
        let woken = self.run(cpu, wake).1;
        if let Some(&last) = bits.last() {
            self.map().hint_freed(CpuId(cpu as u16), last);
        }
        woken
    }

    /// sbitmap_queue_wake_all(): who is woken.
    pub fn wake_all(&mut self, cpu: usize) -> Vec<Effect> {
        self.run(cpu, sbitmap_queue_wake_all::State::new(MAP)).1
    }

    /// sbitmap_queue_resize().
    pub fn resize(&mut self, depth: u32) {
        self.run(0, sbitmap_queue_resize::State::new(MAP, depth));
    }

    /// sbitmap_queue_recalculate_wake_batch().
    pub fn share_wake_batch(&self, users: u32) {
        self.map().share_wake_batch(users);
    }

    /// A context begins to wait: a task at the tail, an hctx at the head.
    pub fn wait(&mut self, queue: usize, waiter: Waiter) {
        let (map, cpu) = (&self.mq.sets[0].driver[0], &mut self.cpus[0]);
        cpu.begin_label();
        map.ws_active.add(cpu, 1);
        self.line_up(queue, waiter);
    }

    /// The same of one that still counts as waiting: a task that was woken and found nothing.
    pub fn line_up(&mut self, queue: usize, waiter: Waiter) {
        let (map, cpu) = (&self.mq.sets[0].driver[0], &mut self.cpus[0]);
        if let Waiter::Task(task) = waiter {
            cpu.begin_label();
            self.mq.task_waits(task).set(cpu);
        }
        cpu.begin_label();
        map.wait[queue].queue.acquire(cpu);
        map.wait[queue].edit(cpu, |entries| match waiter {
            Waiter::Task(_) => entries.push(waiter),
            Waiter::Hctx { .. } => entries.insert(0, waiter),
        });
        map.wait[queue].queue.release(cpu);
    }

    /// A task runs, though it was not woken: it keeps its entry.
    pub fn runs(&mut self, waiter: Waiter) {
        if let Waiter::Task(task) = waiter {
            self.cpus[0].begin_label();
            self.mq.task_waits(task).clear(&mut self.cpus[0]);
        }
    }

    /// A context waits no more, whether its entry is still there or not.
    pub fn leave(&mut self, queue: usize, waiter: Waiter) {
        self.runs(waiter);
        let (map, cpu) = (&self.mq.sets[0].driver[0], &mut self.cpus[0]);
        cpu.begin_label();
        map.wait[queue].queue.acquire(cpu);
        map.wait[queue].remove(cpu, waiter);
        map.wait[queue].queue.release(cpu);
        cpu.begin_label();
        map.ws_active.add(cpu, -1);
    }

    /// Runs to the end, with the locks that it asks for.
    fn run<S: Steps>(&mut self, cpu: usize, mut state: S) -> (S::Done, Vec<Effect>) {
        let (mq, cpu) = (&self.mq, &mut self.cpus[cpu]);
        let mut effects = Vec::new();
        loop {
            cpu.begin_label();
            let next = state.step(&mut Cx::of(mq, QueueId(0), cpu));
            effects.extend((0..).map_while(|index| cpu.outbox.take(index)));
            match next {
                Sub::Wait(Next::Lock(lock)) => mq.acquire(lock, cpu),
                Sub::Wait(_) => {}
                Sub::Done(value) => return (value, effects),
            }
        }
    }
}
