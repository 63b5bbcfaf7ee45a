use super::*;

fn span(kind: SpanKind, from: u64, to: u64) -> Span {
    Span {
        cpu: CpuId(0),
        kind,
        from: SimTime(from),
        to: SimTime(to),
    }
}

fn slice(what: What, from: u64, to: u64) -> Slice {
    Slice {
        cpu: CpuId(0),
        what,
        from: SimTime(from),
        to: SimTime(to),
    }
}

fn pick() -> Label {
    Label::by_name("pass.pick").unwrap()
}

fn interrupted_wait() -> Vec<Slice> {
    let (name, slot, label) = ("dd->lock", 0, pick());
    let wait = SpanKind::Wait { name, slot, label };
    let spans = [
        span(SpanKind::Irq, 40, 60),
        span(SpanKind::Softirq, 60, 80),
        span(wait, 30, 50),
        span(SpanKind::Task(1), 0, 100),
    ];
    nested(&spans, &[])
}

#[test]
fn a_wait_that_is_granted_during_an_interrupt_lasts_as_long() {
    assert_eq!(
        interrupted_wait(),
        [
            slice(What::Task(1), 0, 100),
            slice(What::Wait(0, pick()), 30, 60),
            slice(What::Irq, 40, 60),
            slice(What::Softirq, 60, 80),
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
    assert_eq!(nested(&spans, &[]), []);
}

#[test]
fn an_interrupt_is_the_context_until_it_ends() {
    let contexts = Contexts::of(&interrupted_wait());
    let at = |time| contexts.at(CpuId(0), SimTime(time));
    let (task, irq, softirq) = (What::Task(1), What::Irq, What::Softirq);
    let expected = [(0, task), (39, task), (40, irq), (59, irq)];
    let expected = [
        &expected[..],
        &[(60, softirq), (79, softirq), (80, task), (99, task)],
    ];
    for (time, what) in expected.concat() {
        assert_eq!(at(time), Some(what), "{time}");
    }
    assert_eq!(at(100), None);
    assert_eq!(contexts.at(CpuId(1), SimTime(50)), None);
}
