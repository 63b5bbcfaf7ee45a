//! Spans of a window of the run: tasks, softirqs and interrupts on each CPU, waits for locks and
//! holds, labels with trace points.
//!
//! Not requests: those are the trace points. Spans that cross an edge of the window are kept whole.

use blkmq::path::Label;
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// It ran a task, by its number.
    Task(u32),
    /// It ran the block softirq.
    Softirq,
    /// It handled a hard interrupt, or one from another CPU.
    Irq,
    /// It waited for a lock, by the lock's number; the label ran once the lock was granted.
    Wait {
        name: &'static str,
        slot: u32,
        label: Label,
    },
    /// It held a lock, by the lock's number.
    Hold { name: &'static str, slot: u32 },
    /// A label that left trace points.
    Traced,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub cpu: CpuId,
    pub kind: SpanKind,
    pub from: SimTime,
    pub to: SimTime,
}

/// Part of the run that is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    Between(SimTime, SimTime),
    /// So long from the end of the ramp.
    AfterRamp(Duration),
}

#[derive(Clone, Debug)]
pub struct Timeline {
    window: Option<(SimTime, SimTime)>,
    after_ramp: Duration,
    /// Current spans of each CPU: task, softirq, interrupt.
    open: Vec<[Option<(SpanKind, SimTime)>; 3]>,
    spans: Vec<Span>,
}

fn level(kind: SpanKind) -> usize {
    match kind {
        SpanKind::Task(_) => 0,
        SpanKind::Softirq => 1,
        SpanKind::Irq => 2,
        SpanKind::Wait { .. } | SpanKind::Hold { .. } | SpanKind::Traced => {
            unreachable!("these are added whole")
        }
    }
}

impl Timeline {
    pub(crate) fn new(window: Window, cpus: usize) -> Timeline {
        let (window, after_ramp) = match window {
            Window::Between(from, to) => (Some((from, to)), Duration::ZERO),
            Window::AfterRamp(span) => (None, span),
        };
        Timeline {
            window,
            after_ramp,
            open: vec![[None; 3]; cpus],
            spans: Vec::new(),
        }
    }

    /// The window, once the run has come so far that it is known.
    pub fn window(&self) -> Option<(SimTime, SimTime)> {
        self.window
    }

    pub(crate) fn ramp_over(&mut self, now: SimTime) {
        self.window.get_or_insert((now, now + self.after_ramp));
    }

    /// A CPU begins a task, the softirq or an interrupt; it must not be in one of this kind.
    pub(crate) fn begin(&mut self, cpu: CpuId, kind: SpanKind, at: SimTime) {
        let open = &mut self.open[usize::from(cpu.0)][level(kind)];
        assert!(open.is_none(), "begun twice");
        *open = Some((kind, at));
    }

    /// A CPU ends its span of this level: only the level of `kind` is used.
    pub(crate) fn end(&mut self, cpu: CpuId, kind: SpanKind, at: SimTime) {
        let open = self.open[usize::from(cpu.0)][level(kind)].take();
        if let Some((kind, from)) = open {
            self.add(cpu, kind, from, at);
        }
    }

    /// A span as a whole, if it touches the window.
    pub(crate) fn add(&mut self, cpu: CpuId, kind: SpanKind, from: SimTime, to: SimTime) {
        if self
            .window
            .is_some_and(|window| from < window.1 && to > window.0)
        {
            self.spans.push(Span {
                cpu,
                kind,
                from,
                to,
            });
        }
    }

    /// Ends all open spans at `now`, and returns all spans.
    pub(crate) fn finish(mut self, now: SimTime) -> Timeline {
        for cpu in 0..self.open.len() {
            for level in 0..3 {
                if let Some((kind, from)) = self.open[cpu][level].take() {
                    self.add(CpuId(cpu as u16), kind, from, now.max(from));
                }
            }
        }
        self
    }

    /// All spans, in no particular order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}
