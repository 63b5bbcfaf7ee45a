//! The work of a CPU as slices that nest: a wait or a trace point lies in its task, an interrupt in
//! the interrupted task.

use blkmq::path::Label;
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};
use sim::recorder::{Span, SpanKind};

use super::Noted;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Task(u32),
    Irq,
    Softirq,
    /// For this lock, before this label.
    Wait(u32, Label),
    /// A trace point, by its index.
    Point(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slice {
    pub(super) cpu: CpuId,
    pub(super) what: What,
    pub(super) from: SimTime,
    pub(super) to: SimTime,
}

/// Slices that nest on each CPU, in the order of CPU and beginning, outer ones first.
///
/// An interrupt that comes while its CPU waits for a lock may end after the grant: the CPU goes on
/// only then, so the wait is shown up to there.
pub(super) fn nested(spans: &[Span], points: &[Noted]) -> Vec<Slice> {
    let mut all: Vec<Slice> = spans.iter().filter_map(of_span).collect();
    all.extend(of_points(spans, points));
    all.sort_by_key(|s| (s.cpu, s.from, std::cmp::Reverse(s.to), depth(s.what)));
    let mut open: Vec<usize> = Vec::new();
    for index in 0..all.len() {
        let slice = all[index];
        while let Some(&outer) = open.last() {
            if all[outer].cpu == slice.cpu && all[outer].to > slice.from {
                break;
            }
            open.pop();
        }
        for &outer in open.iter().rev() {
            if all[outer].to >= slice.to {
                break;
            }
            if matches!(all[outer].what, What::Wait(..)) {
                all[outer].to = slice.to;
            } else {
                all[index].to = all[outer].to;
                break;
            }
        }
        open.push(index);
    }
    all
}

fn of_span(span: &Span) -> Option<Slice> {
    let what = match span.kind {
        SpanKind::Task(task) => What::Task(task),
        SpanKind::Softirq => What::Softirq,
        SpanKind::Irq => What::Irq,
        SpanKind::Wait { slot, label, .. } => What::Wait(slot, label),
        SpanKind::Hold { .. } | SpanKind::Traced => return None,
    };
    (span.from < span.to).then_some(Slice {
        cpu: span.cpu,
        what,
        from: span.from,
        to: span.to,
    })
}

/// Each trace point up to the next one of its CPU or to the end of its label, and at least a
/// nanosecond, which is the least distance of two points of a CPU.
fn of_points(spans: &[Span], points: &[Noted]) -> Vec<Slice> {
    let labels = spans.iter().filter(|span| span.kind == SpanKind::Traced);
    let mut labels: Vec<(CpuId, SimTime, SimTime)> =
        labels.map(|span| (span.cpu, span.from, span.to)).collect();
    labels.sort_unstable();
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| (points[index].cpu, points[index].time));
    let slice = |place: usize| {
        let Noted { time, cpu, .. } = points[order[place]];
        let begun = labels.partition_point(|label| (label.0, label.1) <= (cpu, time));
        let label = labels[..begun].last().filter(|label| label.0 == cpu);
        let next = order.get(place + 1).map(|&next| &points[next]);
        let next = next.filter(|next| next.cpu == cpu).map(|next| next.time);
        let to = label.map(|label| label.2).into_iter().chain(next).min();
        let least = time + Duration(1);
        Slice {
            cpu,
            what: What::Point(order[place]),
            from: time,
            to: to.map_or(least, |to| to.max(least)),
        }
    };
    (0..order.len()).map(slice).collect()
}

/// Nesting depth of slices with the same beginning and end; the lowest is the outermost.
fn depth(what: What) -> u8 {
    match what {
        What::Task(_) => 0,
        What::Irq => 1,
        What::Softirq => 2,
        What::Wait(..) => 3,
        What::Point(_) => 4,
    }
}

/// The work of each CPU at any time: its task, or what has interrupted it.
#[derive(Debug)]
pub(super) struct Contexts(Vec<(CpuId, SimTime, Option<What>)>);

impl Contexts {
    /// Of slices that nest.
    pub(super) fn of(slices: &[Slice]) -> Contexts {
        let mut all = Vec::new();
        let mut open: Vec<&Slice> = Vec::new();
        let mut close = |open: &mut Vec<&Slice>, up_to: Option<(CpuId, SimTime)>| {
            while let Some(ended) = open.pop() {
                if up_to.is_some_and(|(cpu, at)| cpu == ended.cpu && ended.to > at) {
                    open.push(ended);
                    break;
                }
                all.push((ended.cpu, ended.to, open.last().map(|outer| outer.what)));
            }
        };
        let is_context = |slice: &&Slice| !matches!(slice.what, What::Wait(..) | What::Point(_));
        let mut begins = Vec::new();
        for slice in slices.iter().filter(is_context) {
            close(&mut open, Some((slice.cpu, slice.from)));
            open.push(slice);
            begins.push((slice.cpu, slice.from, Some(slice.what)));
        }
        close(&mut open, None);
        // Of what ends and what begins at a time, the last that begins counts.
        all.extend(begins);
        all.sort_by_key(|&(cpu, at, _)| (cpu, at));
        Contexts(all)
    }

    /// None while the CPU is idle.
    pub(super) fn at(&self, cpu: CpuId, time: SimTime) -> Option<What> {
        let begun = self.0.partition_point(|of| (of.0, of.1) <= (cpu, time));
        self.0[..begun].last().filter(|of| of.0 == cpu)?.2
    }
}

#[cfg(test)]
mod tests;
