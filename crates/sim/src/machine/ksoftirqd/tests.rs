//! The task that follows on a CPU when one leaves it, and when ksoftirqd does.

use super::super::change::Writer;
use super::super::task::{Program, Ready, Task};
use super::super::tasks::tests::machine;
use super::*;

const CPU: CpuId = CpuId(3);

fn with_task(runs: bool) -> (Cpus, Tasks) {
    let mut cpus = machine();
    let mut task = Task::asleep(Program::Writer(Writer::default()), vec![CPU]);
    task.cpu = CPU;
    if runs {
        cpus[CPU].current = Some(TaskId(0));
    }
    (cpus, Tasks::new(vec![task], 32))
}

/// Switches to tasks and to the idle task.
fn counted(cpus: &Cpus) -> (u64, u64) {
    let switches = &cpus[CPU].switches;
    (switches[SwitchTo::Task], switches[SwitchTo::Idle])
}

#[test]
fn a_task_that_leaves_is_followed_by_ksoftirqd_and_not_by_the_idle_task() {
    for (ksoftirqd, idle) in [
        (Ksoftirqd::Sleeps, 1),
        (Ksoftirqd::Woken, 0),
        (Ksoftirqd::Runs, 0),
    ] {
        let (mut cpus, _) = with_task(false);
        cpus[CPU].ksoftirqd = ksoftirqd;
        cpus.leave_to_idle(CPU);
        assert_eq!(counted(&cpus), (0, idle), "{ksoftirqd:?}");
    }
}

#[test]
fn ksoftirqd_gives_the_cpu_back_to_its_task_or_to_the_idle_task() {
    for (runs, switches) in [(true, (1, 0)), (false, (0, 1))] {
        let (mut cpus, mut tasks) = with_task(runs);
        cpus[CPU].ksoftirqd = Ksoftirqd::Runs;
        let current = cpus[CPU].current;
        goes_to_sleep(&mut cpus, &mut tasks, CPU, current);
        assert_eq!(cpus[CPU].ksoftirqd, Ksoftirqd::Sleeps);
        assert_eq!(counted(&cpus), switches);
        assert_eq!(tasks[TaskId(0)].usage.switches, switches.0);
    }
}

/// A worker that was woken meanwhile gets the CPU next, and no switch to the task is counted.
#[test]
fn a_worker_comes_before_the_task_that_ksoftirqd_took_the_cpu_from() {
    let (mut cpus, _) = with_task(true);
    let asleep = || Task::asleep(Program::Writer(Writer::default()), vec![CPU]);
    let mut worker = asleep();
    worker.worker = true;
    let mut tasks = Tasks::new(vec![asleep(), worker], 32);
    let at = cpus[CPU].at();
    cpus[CPU].runqueue.push_back(Ready {
        task: TaskId(1),
        at,
    });
    cpus[CPU].ksoftirqd = Ksoftirqd::Runs;
    goes_to_sleep(&mut cpus, &mut tasks, CPU, Some(TaskId(0)));
    assert_eq!((counted(&cpus), cpus[CPU].current), ((0, 0), None));
    let waiting: Vec<TaskId> = cpus[CPU].runqueue.iter().map(|ready| ready.task).collect();
    assert_eq!(waiting, [TaskId(1), TaskId(0)]);
    assert_eq!(tasks[TaskId(0)].usage.switches, 0);
}
