//! A softirq that a worker of kblockd raises: ksoftirqd runs after the worker.

use blkmq::time::{Duration, SimTime};
use scenario::report::{Origin, Report, SwitchesReport};
use sim::machine::Simulator;
use sim::recorder::{Span, SpanKind, Window};

use crate::mapped::below;
use crate::runs;

/// Length of a tick, ns.
const TICK: u64 = 1_000_000;

/// 4.5 with one path: clones run in kblockd's workers, and second ends in the block softirq.
fn scenario(submit_queues: u16, features: &str, more: &str) -> String {
    format!(
        "[machine]\nhz = 1000\n\
         [queue]\nrules = \"v4.5\"\nscheduler = \"none\"\n\
         [device]\ntype = \"null_blk\"\npoll_queues = 0\nsubmit_queues = {submit_queues}\n\
         [mapped]\nuse_blk_mq = 1\n\
         table = \"0 8388608 multipath {features} 0 1 1 service-time 0 1 2 nullb0 1 1\"\n\
         {more}\
         [[job]]\nname = \"one\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
         iodepth = 32\nnumjobs = 8\nnumber_ios = 2000\nnorandommap = true\n\
         cpus_allowed = \"0-7\"\ncpus_allowed_policy = \"split\"\n"
    )
}

/// Switches, and softirqs without an interrupt from another CPU, while a worker has the CPU and
/// while none has it, by their start.
fn run(submit_queues: u16) -> (SwitchesReport, [Vec<SimTime>; 2]) {
    let text = scenario(submit_queues, "0", "dm_mq_queue_depth = 96\n");
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
    let after_interrupt = |softirq: &Span| {
        let own = |span: &&Span| span.cpu == softirq.cpu && span.kind == SpanKind::Irq;
        spans.iter().filter(own).any(|irq| irq.to == softirq.from)
    };
    let softirqs = spans.iter().filter(|span| span.kind == SpanKind::Softirq);
    for softirq in softirqs.filter(|softirq| !after_interrupt(softirq)) {
        let during = |span: &&&Span| {
            span.cpu == softirq.cpu && span.from < softirq.from && softirq.from < span.to
        };
        let worker = workers.iter().any(|span| during(&span));
        begins[usize::from(!worker)].push(softirq.from);
    }
    (report.context_switches.expect("a mapped device"), begins)
}

/// It has the CPU when the worker sleeps; a worker that does not sleep is interrupted by a tick,
/// after which the softirq runs.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn it_waits_until_a_worker_sleeps_or_a_tick_comes() {
    for submit_queues in [1, 4] {
        let (switches, [within, outside]) = run(submit_queues);
        assert!(switches.kworker > 100, "{switches:?}");
        assert!(switches.ksoftirqd > 50, "{switches:?}");
        assert!(outside.len() > 50, "{} in no worker", outside.len());
        // A worker ends its item first.
        let behind = within.iter().map(|at| at.0 % TICK);
        let late = behind.max().unwrap_or(0);
        assert!(late < TICK / 4, "{late} ns after a tick: {within:?}");
        match submit_queues {
            1 => assert!(!within.is_empty(), "a tick"),
            _ => assert!(within.len() < outside.len() / 10, "{within:?}"),
        }
        // A ksoftirqd that was woken may find nothing left to do after such a tick.
        let turns = outside.len()..=outside.len() + within.len();
        let counted = usize::try_from(switches.ksoftirqd).unwrap();
        assert!(turns.contains(&counted), "{counted}, not {turns:?}");
    }
}

/// One I/O at a time on one CPU: fio wakes a worker, which wakes fio and raises the softirq;
/// ksoftirqd runs after it, and then fio. There is no other switch in between.
#[test]
fn an_io_is_three_switches() {
    let text = scenario(1, "0", "")
        .replace("iodepth = 32", "iodepth = 1")
        .replace("numjobs = 8", "numjobs = 1")
        .replace("\"0-7\"", "\"0\"");
    let (plan, machine) = (runs::plan_of(&text), runs::machine());
    let mut simulator = Simulator::new(&plan, &machine).unwrap();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let report = Report::new(
        Origin::default(),
        &plan,
        &machine,
        simulator.recorder(),
        None,
    );
    let switches = report.context_switches.expect("a mapped device");
    let counted = (switches.ksoftirqd, switches.kworker, switches.task);
    // The first switch is to fio, and the last one from it.
    assert_eq!((counted, switches.idle), ((2000, 2000, 2001), 1));
}

/// An end that waits for a tick reports its path's failure after the last reinstatement. Requests
/// held for the path continue after multipathd's next check, 10 ms in.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_path_that_fails_after_its_reinstatement_is_looked_at_again() {
    let (mut late, mut early) = (0, 0);
    for from in (1_000..3_000).step_by(90) {
        let to = from + 4;
        let outage = format!(
            "[[mapped.outage]]\npath = \"nullb0\"\n\
             from_us = {from}\nto_us = {to}\nreinstate_us = {to}\n"
        );
        let mut plan = runs::plan_of(&scenario(1, "1 queue_if_no_path", &outage));
        below(&mut plan).interval = Duration::from_millis(10);
        let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
        let stall = runs::to_its_end(&mut simulator);
        assert!(stall.is_none(), "{to}: {}", stall.unwrap());
        let recorder = simulator.recorder();
        let job = &recorder.jobs[0];
        assert_eq!(recorder.total_ios, 16_000, "{to}");
        assert_eq!(job.failed_threads, 0, "{to}");
        let Some(failed) = recorder.paths[0].failed else {
            continue;
        };
        let looked = (10_000_000..20_000_000).contains(&job.until.0);
        // The last reinstatement is multipathd's own, 10 ms in.
        let back = recorder.paths[0].reinstated.expect("it is reinstated");
        let behind = back > SimTime(10_000_000);
        assert!(!behind || failed > SimTime(1_000 * to), "{to}");
        // A reinstatement runs all hctxs.
        assert!(behind || failed < SimTime(1_000 * (to + 10)), "{to}");
        assert_eq!(
            looked, behind,
            "{to}: failed at {failed:?}, over {:?}",
            job.until
        );
        *(if behind { &mut late } else { &mut early }) += 1;
    }
    assert!(late > 0 && early > 0, "{late} late, {early} early");
}
