//! Optional records of a run, and the hooks that feed them.
//!
//! Off by default: a hook is then one look at an `Option`, and none is in the loop of labels.

use std::collections::BTreeMap;

use blkmq::env::{Cpu, Probe, TraceAction};
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, Op, QueueId, RequestId};
use blkmq::time::{Duration, SimTime};

use super::Simulator;
use super::arbiter::OWNERS;
use super::cpu::CpuState;
use super::cpus::{Core, Cpus};
use super::numbers::Above;
use super::task::TaskId;
use crate::recorder::{FioStats, Readings, Recorder, Seek, Seeks, Series};
use crate::recorder::{SpanKind, SwitchTo, Switches, Timeline, Watch, Window};

impl Simulator {
    /// Collects the spread of waits and holds of locks, the depth of devices' queues and I/Os over
    /// time, context switches, seeks of rotational disks, and all of `collect_counts`. To be called
    /// before the run.
    pub fn collect_details(&mut self) {
        let watch = self.cpus.watch(&self.layer.mq);
        watch.want_spreads();
        watch.switches = Some(Box::new(Switches::new()));
        self.recorder.device_depth.series = Some(Box::new(Series::new(self.cpus.core.now)));
        self.recorder.rates = Some(Box::default());
        if self.plan.disks.iter().any(|disk| disk.device.rotational) {
            self.recorder.seeks = Some(Box::new(Seeks::new()));
        }
        self.collect_counts();
        self.collect_readings();
    }

    /// Collects lock waits by caller with the distances of hand-offs, runs of each hardware queue,
    /// and events of schedulers; their gauges are details. To be called before the run.
    pub fn collect_counts(&mut self) {
        let queues = self.layer.mq.queues.iter();
        let hctxs: Vec<usize> = queues.map(|queue| queue.hctxs.len()).collect();
        let owners = self.cpus.len() * OWNERS as usize;
        let watch = self.cpus.watch(&self.layer.mq);
        watch.want_waits();
        watch.want_runs(&hctxs, owners);
        self.listen(false);
    }

    /// Collects what fio's own output has beyond the report. To be called before the run.
    pub fn collect_fio(&mut self) {
        let queues = self.layer.mq.queues.len();
        self.recorder.fio = Some(Box::new(FioStats::new(&self.plan, queues)));
    }

    /// Collects values of schedulers over time. To be called before the run.
    pub fn collect_readings(&mut self) {
        self.listen(true);
    }

    fn listen(&mut self, counters: bool) {
        let mut readings = Readings::default();
        for queue in &self.layer.mq.queues {
            let info = queue.settings.scheduler.info();
            readings.scheduler_is(queue.id, info, self.cpus.core.now);
        }
        self.recorder.readings = Some(Box::new(readings));
        for cpu in self.cpus.iter_mut() {
            cpu.env.reporting = true;
            cpu.env.counting |= counters;
        }
    }

    /// Records spans of each CPU in a part of the run, and all trace points as [`Self::trace`]
    /// does. To be called before the run.
    pub fn collect_timeline(&mut self, window: Window) {
        let cpus = self.cpus.len();
        self.cpus.watch(&self.layer.mq).timeline = Some(Timeline::new(window, cpus));
        self.trace();
    }

    /// A driver took a request: its start leaves trace points, too.
    #[cold]
    pub(super) fn hand_over_trace(&mut self, id: CpuId) {
        let (cpu, core) = self.cpus.split(id);
        core.hand_over_trace(&mut cpu.env, cpu.current, &mut self.recorder);
    }

    /// A device accepts a request: records the seek of a rotational disk's arm.
    #[cold]
    pub(super) fn note_seek(&mut self, id: CpuId, queue: QueueId, rq: RequestId, at: SimTime) {
        let disk = self.layer.numbers.ends(queue).disk;
        let of_jobs = matches!(self.layer.numbers.above(queue), Above::Jobs);
        if !of_jobs || !self.plan.disks[disk.index()].device.rotational {
            return;
        }
        let pool = self.layer.mq.queue(queue).pool.held(id);
        let r = &pool[rq];
        if !matches!(r.op, Op::Read | Op::Write) {
            return;
        }
        // The bios of a replay have other marks.
        let owner = match self.replay {
            Some(_) => None,
            None => r.bio_first.map(|bio| pool.bio(bio).owner),
        };
        let thread = owner.and_then(|owner| self.tasks.thread_of(owner));
        let seek = Seek {
            at,
            disk,
            thread,
            sector: r.sector,
            sectors: r.sectors,
        };
        if let Some(seeks) = &mut self.recorder.seeks {
            seeks.add(seek);
        }
    }

    /// A request is about to end: /sys/block/*/stat counts it.
    #[cold]
    pub(super) fn note_request(&mut self, queue: QueueId, id: CpuId, rq: RequestId, at: SimTime) {
        let pool = self.layer.mq.queue(queue).pool.held(id);
        // Clones of a mapped device merge with nothing.
        let is_clone = !matches!(self.layer.numbers.above(queue), Above::Jobs);
        let bios = if is_clone {
            1
        } else {
            pool.bios_of(rq).count()
        };
        if let Some(fio) = &mut self.recorder.fio {
            fio.request_ends(queue.index(), &pool[rq], at, bios as u64);
        }
    }

    pub fn timeline(&self) -> Option<&Timeline> {
        self.cpus.core.arbiter.watch.as_ref()?.timeline.as_ref()
    }

    /// Names of all locks by dense number, as in reports; of several disks after the disk's, and of
    /// several locks of a queue with a number.
    pub fn lock_titles(&self) -> Vec<String> {
        let mq = &self.layer.mq;
        let (names, classes) = mq.lock_names();
        let mut counts = BTreeMap::new();
        let mut places = Vec::new();
        for (slot, &class) in classes.iter().enumerate() {
            let queue = mq.lock_queue(slot);
            let count: &mut u32 = counts.entry((queue, class)).or_default();
            places.push((queue, class, *count));
            *count += 1;
        }
        let title = |(queue, class, number)| {
            let mut title = names[usize::from(class)].to_owned();
            if let Some(disk) = self.layer.name(queue) {
                title = format!("{disk} {title}");
            }
            match counts[&(queue, class)] {
                1 => title,
                _ => format!("{title} {number}"),
            }
        };
        places.into_iter().map(title).collect()
    }

    /// Name of a task, by its number in a timeline and, one more, in trace points.
    pub fn task_name(&self, task: u32) -> String {
        self.tasks.name(TaskId(task))
    }
}

impl Cpus {
    fn watch(&mut self, mq: &BlkMq) -> &mut Watch {
        let (names, classes) = mq.lock_names();
        let cpus = self.len() as u16;
        let pairs = (0..cpus).flat_map(|a| (0..cpus).map(move |b| (CpuId(a), CpuId(b))));
        let distances = pairs.map(|(a, b)| self.core.costs.distance(a, b)).collect();
        let watch = &mut self.core.arbiter.watch;
        watch.get_or_insert_with(|| Box::new(Watch::new(names, classes, distances)))
    }

    pub(super) fn span_begins(&mut self, id: CpuId, kind: SpanKind) {
        if self.core.arbiter.watch.is_some() {
            self.span(id, kind, Timeline::begin);
        }
    }

    pub(super) fn span_ends(&mut self, id: CpuId, kind: SpanKind) {
        if self.core.arbiter.watch.is_some() {
            self.span(id, kind, Timeline::end);
        }
    }

    #[cold]
    fn span(
        &mut self,
        id: CpuId,
        kind: SpanKind,
        note: fn(&mut Timeline, CpuId, SpanKind, SimTime),
    ) {
        let (cpu, core) = self.split(id);
        if let Some(timeline) = timeline_of(core) {
            note(timeline, id, kind, cpu.at());
        }
    }

    pub(super) fn count_switch(&mut self, id: CpuId, to: SwitchTo) {
        self[id].switches.add(to);
        if self.core.arbiter.watch.is_some() {
            self.switch(id, to);
        }
    }

    #[cold]
    fn switch(&mut self, id: CpuId, to: SwitchTo) {
        let (cpu, core) = self.split(id);
        if let Some(switches) = switches_of(core) {
            switches.add(to, cpu.at());
        }
    }

    pub(super) fn window_opens(&mut self) {
        let now = self.core.now;
        if let Some(switches) = switches_of(&mut self.core) {
            switches.begin(now);
        }
        if let Some(timeline) = timeline_of(&mut self.core) {
            timeline.ramp_over(now);
        }
    }

    /// Moves the records to the recorder.
    pub(super) fn settle_watch(&mut self, recorder: &mut Recorder) {
        let Some(watch) = &mut self.core.arbiter.watch else {
            return;
        };
        recorder.lock_spreads = watch.spreads();
        recorder.runs = watch.runs();
        if let Some(mut switches) = watch.switches.take() {
            switches.finish(recorder.until);
            recorder.switches = Some(switches);
        }
        if let Some(timeline) = watch.timeline.take() {
            let last = self.iter().map(CpuState::at).max();
            recorder.timeline = Some(timeline.finish(last.unwrap_or(self.core.now)));
        }
    }
}

impl Core {
    /// Records the span of a label and its trace points: the first at the label's beginning, the
    /// others spread over it. Each has a time at least a nanosecond after that before it on its
    /// CPU (`next`), as in a kernel.
    #[cold]
    pub(super) fn hand_over_trace(
        &mut self,
        env: &mut Cpu,
        task: Option<TaskId>,
        recorder: &mut Recorder,
    ) {
        if env.trace.is_empty() {
            return;
        }
        let (from, to) = (env.traced_at, env.now());
        if let Some(timeline) = timeline_of(self) {
            timeline.add(env.id, SpanKind::Traced, from, to);
        }
        let task = task.map_or(0, |task| task.0 + 1);
        let count = env.trace.len() as u64;
        let (cpu, tracing) = (env.id, env.tracing);
        let mut index = 0;
        let (of, nexts) = (usize::from(cpu.0), &mut recorder.next_records);
        nexts.resize(nexts.len().max(of + 1), SimTime::ZERO);
        let next = &mut nexts[of];
        env.take_trace(&mut recorder.messages, |point| {
            let returns = matches!(point.action, TraceAction::Probe(Probe::Answer { .. }));
            let at = match returns {
                // The function returns after its unlock, the end of the label.
                true => to,
                false => from + Duration(to.since(from).0 * index / count),
            };
            index += 1;
            let at = at.max(*next);
            *next = at + Duration(1);
            if let (Some(readings), TraceAction::Probe(probe)) =
                (&mut recorder.readings, point.action)
            {
                readings.note(at, point.queue, probe);
            }
            if tracing {
                recorder.trace.push((at, cpu, task, point));
            }
        });
    }
}

fn switches_of(core: &mut Core) -> Option<&mut Switches> {
    core.arbiter.watch.as_mut()?.switches.as_deref_mut()
}

fn timeline_of(core: &mut Core) -> Option<&mut Timeline> {
    core.arbiter.watch.as_mut()?.timeline.as_mut()
}
