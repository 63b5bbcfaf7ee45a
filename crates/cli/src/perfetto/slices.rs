//! The work of a CPU as slices that nest: a wait lies in its task, an interrupt in the interrupted
//! task.

use sim::recorder::{Span, SpanKind};

/// Spans of CPUs that nest on each CPU, in the order of CPU and beginning, outer ones first.
///
/// An interrupt that comes while its CPU waits for a lock may end after the grant: the CPU goes on
/// only then, so the wait is shown up to there.
pub(super) fn nested(spans: &[Span]) -> Vec<Span> {
    let on_cpu = |span: &&Span| !matches!(span.kind, SpanKind::Hold { .. }) && span.from < span.to;
    let mut all: Vec<Span> = spans.iter().filter(on_cpu).copied().collect();
    all.sort_by_key(|s| (s.cpu, s.from, std::cmp::Reverse(s.to), depth(s.kind)));
    let mut open: Vec<usize> = Vec::new();
    for index in 0..all.len() {
        let span = all[index];
        while let Some(&outer) = open.last() {
            if all[outer].cpu == span.cpu && all[outer].to > span.from {
                break;
            }
            open.pop();
        }
        for &outer in open.iter().rev() {
            if all[outer].to >= span.to {
                break;
            }
            if matches!(all[outer].kind, SpanKind::Wait(_)) {
                all[outer].to = span.to;
            } else {
                all[index].to = all[outer].to;
                break;
            }
        }
        open.push(index);
    }
    all
}

/// Nesting depth of spans with the same beginning and end; the lowest is the outermost.
fn depth(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Task(_) => 0,
        SpanKind::Irq => 1,
        SpanKind::Softirq => 2,
        SpanKind::Wait(_) => 3,
        SpanKind::Hold { .. } => 4,
    }
}

#[cfg(test)]
mod tests {
    use blkmq::request::CpuId;
    use blkmq::time::SimTime;

    use super::*;

    fn span(kind: SpanKind, from: u64, to: u64) -> Span {
        Span {
            cpu: CpuId(0),
            kind,
            from: SimTime(from),
            to: SimTime(to),
        }
    }

    #[test]
    fn a_wait_that_is_granted_during_an_interrupt_lasts_as_long() {
        let wait = SpanKind::Wait("dd->lock");
        let spans = [
            span(SpanKind::Irq, 40, 60),
            span(SpanKind::Softirq, 60, 80),
            span(wait, 30, 50),
            span(SpanKind::Task(1), 0, 100),
        ];
        let nested = nested(&spans);
        assert_eq!(
            nested,
            [
                span(SpanKind::Task(1), 0, 100),
                span(wait, 30, 60),
                span(SpanKind::Irq, 40, 60),
                span(SpanKind::Softirq, 60, 80),
            ]
        );
    }

    #[test]
    fn holds_and_empty_spans_are_no_slices_of_a_cpu() {
        let hold = SpanKind::Hold {
            name: "dd->lock",
            slot: 0,
        };
        let spans = [span(hold, 1, 2), span(SpanKind::Irq, 3, 3)];
        assert_eq!(nested(&spans), []);
    }
}
