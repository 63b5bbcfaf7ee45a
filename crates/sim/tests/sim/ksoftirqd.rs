//! A softirq that a worker of kblockd raises: ksoftirqd comes behind the worker.

use blkmq::time::SimTime;
use sim::machine::Simulator;
use sim::recorder::{Span, SpanKind, Window};
use sim::report::{Origin, Report, SwitchesReport};

use crate::runs;

/// Length of a tick, ns.
const TICK: u64 = 1_000_000;

/// 4.5 with one path: clones run in kblockd's workers, and second ends in the block softirq.
/// Switches, and softirqs that no interrupt from another CPU brings, while a worker has the CPU and
/// while none has it, by when they begin.
fn run(submit_queues: u16) -> (SwitchesReport, [Vec<SimTime>; 2]) {
    let text = format!(
        "[machine]\nhz = 1000\n\
                [queue]\nrules = \"v4.5\"\nscheduler = \"none\"\n\
                [device]\ntype = \"null_blk\"\npoll_queues = 0\nsubmit_queues = {submit_queues}\n\
                [mapped]\nuse_blk_mq = 1\n\
                table = \"0 8388608 multipath 0 0 1 1 service-time 0 1 2 nullb0 1 1\"\n\
                [[job]]\nname = \"one\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
                iodepth = 32\nnumjobs = 8\nnumber_ios = 2000\nnorandommap = true\n\
                cpus_allowed = \"0-7\"\ncpus_allowed_policy = \"split\"\n"
    );
    let (plan, machine) = (runs::plan_of(&text), runs::machine());
    let mut simulator = Simulator::new(&plan, &machine).unwrap();
    simulator.collect_timeline(Window::Between(SimTime::ZERO, SimTime::NEVER));
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let recorder = simulator.recorder();
    assert_eq!(recorder.total_ios, 16_000);
    let report = Report::new(Origin::default(), &plan, &machine, recorder, None);
    let spans = recorder
        .timeline
        .as_ref()
        .expect("it was asked for")
        .spans();
    let is_worker = |span: &&Span| match span.kind {
        SpanKind::Task(task) => simulator.task_name(task).starts_with("kworker"),
        _ => false,
    };
    let workers: Vec<&Span> = spans.iter().filter(is_worker).collect();
    let mut begins = [Vec::new(), Vec::new()];
    let behind_interrupt = |softirq: &Span| {
        let own = |span: &&Span| span.cpu == softirq.cpu && span.kind == SpanKind::Irq;
        spans.iter().filter(own).any(|irq| irq.to == softirq.from)
    };
    let softirqs = spans.iter().filter(|span| span.kind == SpanKind::Softirq);
    for softirq in softirqs.filter(|softirq| !behind_interrupt(softirq)) {
        let during = |span: &&&Span| {
            span.cpu == softirq.cpu && span.from < softirq.from && softirq.from < span.to
        };
        let worker = workers.iter().any(|span| during(&span));
        begins[usize::from(!worker)].push(softirq.from);
    }
    (report.context_switches.expect("a mapped device"), begins)
}

/// It has the CPU when the worker sleeps; a worker that does not is interrupted by a tick, behind
/// which the softirq runs.
#[test]
fn it_waits_until_a_worker_sleeps_or_a_tick_comes() {
    for submit_queues in [1, 4] {
        let (switches, [within, outside]) = run(submit_queues);
        assert!(switches.kworker > 100, "{switches:?}");
        assert!(switches.ksoftirqd > 50, "{switches:?}");
        assert!(outside.len() > 50, "{} in no worker", outside.len());
        // A worker ends its item first.
        let behind = within.iter().map(|at| at.0 % TICK);
        let late = behind.max().unwrap_or(0);
        assert!(late < TICK / 4, "{late} ns behind a tick: {within:?}");
        assert_eq!(within.is_empty(), submit_queues == 4, "{within:?}");
    }
}
