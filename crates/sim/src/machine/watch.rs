//! What an observer may ask of a run beyond its sums, and the hooks that answer.
//!
//! Off by default: a hook is then one look at an `Option`, and none is in the loop of labels.

use blkmq::request::CpuId;

use super::Simulator;
use super::task::Program;
use crate::recorder::{Series, SpanKind, Timeline, Watch, Window};

impl Simulator {
    /// Collects how waits and holds of locks are spread, how far hand-offs go and how deep the
    /// device's queue is over time. To be called before the run.
    pub fn collect_details(&mut self) {
        self.watch().want_spreads();
        self.recorder.device_depth.series = Some(Box::new(Series::new(self.core.now)));
    }

    /// Records who does what when in a part of the run, and all trace points as [`Self::trace`]
    /// does. To be called before the run.
    pub fn collect_timeline(&mut self, window: Window) {
        let cpus = self.cpus.len();
        self.watch().timeline = Some(Timeline::new(window, cpus));
        self.trace();
    }

    /// The timeline under way.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.core.arbiter.watch.as_ref()?.timeline.as_ref()
    }

    /// Name of a task, by its number in a timeline and, one more, in trace points.
    pub fn task_name(&self, task: u32) -> String {
        let cpu = self.tasks[task as usize].cpu.0;
        match &self.tasks[task as usize].program {
            Program::Fio(fio) => format!("fio {}", fio.thread),
            Program::Kworker(_) => format!("kworker/{cpu}:1H"),
            Program::IoWorker(_) => format!("iou-wrk {task}"),
            Program::Replay(_) => format!("process {task}"),
            Program::Writer(_) => format!("writer {task}"),
        }
    }

    fn watch(&mut self) -> &mut Watch {
        let (names, classes) = self.mq.lock_names();
        let cpus = self.cpus.len() as u16;
        let pairs = (0..cpus).flat_map(|a| (0..cpus).map(move |b| (CpuId(a), CpuId(b))));
        let distances = pairs.map(|(a, b)| self.core.costs.distance(a, b)).collect();
        let watch = &mut self.core.arbiter.watch;
        watch.get_or_insert_with(|| {
            let cpus = usize::from(cpus);
            Box::new(Watch::new(names, classes, distances, cpus))
        })
    }

    pub(super) fn span_begins(&mut self, id: CpuId, kind: SpanKind) {
        if let Some(watch) = &mut self.core.arbiter.watch
            && let Some(timeline) = &mut watch.timeline
        {
            timeline.begin(id, kind, self.cpus[usize::from(id.0)].at());
        }
    }

    pub(super) fn span_ends(&mut self, id: CpuId, kind: SpanKind) {
        if let Some(watch) = &mut self.core.arbiter.watch
            && let Some(timeline) = &mut watch.timeline
        {
            timeline.end(id, kind, self.cpus[usize::from(id.0)].at());
        }
    }

    /// The ramp is over.
    pub(super) fn window_opens(&mut self) {
        let now = self.core.now;
        if let Some(watch) = &mut self.core.arbiter.watch
            && let Some(timeline) = &mut watch.timeline
        {
            timeline.ramp_over(now);
        }
    }

    /// Hands what was watched to the recorder.
    pub(super) fn settle_watch(&mut self) {
        let Some(watch) = &mut self.core.arbiter.watch else {
            return;
        };
        self.recorder.lock_spreads = watch.spreads();
        if let Some(timeline) = watch.timeline.take() {
            let last = self.cpus.iter().map(super::cpu::CpuState::at).max();
            self.recorder.timeline = Some(timeline.finish(last.unwrap_or(self.core.now)));
        }
    }
}
