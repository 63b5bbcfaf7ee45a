//! Where a task that wakes up goes.

use blkmq::elevator::SchedulerKind;

use super::super::bench;
use super::super::change::Writer;
use super::*;

/// 16 cores of two threads: CPUs 0 to 7 and 8 to 15 are the first threads of two dies, 16 to 31
/// their siblings.
pub(in crate::machine) fn machine() -> Cpus {
    let plan = bench::plan((32, 1), bench::null_blk(), SchedulerKind::None, 0);
    Cpus::new(&plan, &bench::profile("ryzen-7950x"), 0).unwrap()
}

/// A task that was on CPU 3 and may use these; other tasks run on `busy`.
fn chosen(busy: &[u16], allowed: impl IntoIterator<Item = u16>, recent: u16) -> (u16, u16) {
    let mut cpus = machine();
    for &cpu in busy {
        cpus[CpuId(cpu)].current = Some(TaskId(1));
    }
    let allowed = allowed.into_iter().map(CpuId).collect();
    let mut task = Task::asleep(Program::Writer(Writer::default()), allowed);
    (task.cpu, task.recent) = (CpuId(3), CpuId(recent));
    let mut tasks = Tasks::new(vec![task], 32);
    for &cpu in busy {
        tasks.idle.set(CpuId(cpu), false);
    }
    let cpu = tasks.choose_cpu(&cpus, TaskId(0));
    (cpu.0, tasks[TaskId(0)].recent.0)
}

#[test]
fn an_idle_core_of_the_cache_goes_before_the_sibling() {
    assert_eq!(chosen(&[], 0..32, 3), (3, 3), "where it was");
    assert_eq!(chosen(&[3], 0..32, 3), (4, 3), "the next idle core");
    assert_eq!(chosen(&[3, 4, 21], 0..32, 3), (6, 3), "5 shares its core");
}

#[test]
fn without_an_idle_core_the_sibling_is_first() {
    // One thread of each core of the die runs. The next idle CPU after 3 is 16, its sibling 19.
    let busy: Vec<u16> = (0..8).collect();
    assert_eq!(chosen(&busy, 0..32, 3).0, 19);
    assert_eq!(chosen(&busy, [3, 18, 20], 3).0, 18, "it may not go there");
    let more = [&busy[..], &[19]].concat();
    assert_eq!(chosen(&more, 0..32, 3).0, 16, "it runs a task, too");
    // Core 7 is idle, though the task may not use it: the cache has an idle core, and is searched.
    assert_eq!(chosen(&busy, [3, 18, 19], 3).0, 19);
    assert_eq!(chosen(&busy[..7], [3, 18, 19], 3).0, 18);
}

#[test]
fn the_cpu_before_that_is_looked_at_first() {
    let busy: Vec<u16> = (0..8).collect();
    assert_eq!(
        chosen(&busy, 0..32, 17),
        (17, 3),
        "idle, and of the same cache"
    );
    assert_eq!(chosen(&busy, 0..32, 9), (19, 3), "of another cache");
    assert_eq!(chosen(&busy, 0..32, 5), (19, 3), "busy");
    assert_eq!(chosen(&busy, [3, 19], 17), (19, 3), "not allowed");
    assert_eq!(
        chosen(&[], 0..32, 17),
        (3, 17),
        "without an observer, nothing is kept"
    );
}

#[test]
fn a_full_cache_is_left_and_a_full_machine_is_not() {
    let die: Vec<u16> = (0..8).chain(16..24).collect();
    assert_eq!(chosen(&die, 0..32, 3).0, 8);
    let all: Vec<u16> = (0..32).collect();
    assert_eq!(chosen(&all, 0..32, 3).0, 3);
}
