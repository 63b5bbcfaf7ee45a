//! Each invariant against a state in which it is broken on purpose.

use blkmq::env::Cpu;
use blkmq::list::QueueList;
use blkmq::queue::{IrqClass, LockId};
use blkmq::request::{CpuId, QueueId};

use super::broken;
use crate::dispatch::world::deadline;
use crate::dispatch::world::{Action, At, Life, World};
use crate::dispatch::{Judged, Setting};
use crate::spec::{Runner, Specification};

fn setting() -> Setting {
    let text = "Cpus = 2\nPerCpu = 1\nInsertion = \"repaired\"\nGating = \"inside\"\n\
                SeesSide = FALSE\nReruns = FALSE\nDelayed = FALSE\n";
    Setting::of_configuration(text).expect("a right configuration")
}

/// Runs actions until a process is at `at`; if it must wait, the other process goes.
fn until(setting: &Setting, process: u8, at: At) -> World {
    let mut runner = Runner::new(false);
    let mut world = setting.first();
    // The other process has the lock and inserts, so that this one finds the lock taken.
    let other = 1 - process;
    while world.at(setting, other) != At::Insert {
        setting.take(&mut runner, &mut world, Action::Go(other));
    }
    while world.at(setting, process) != at {
        setting.take(&mut runner, &mut world, Action::Go(process));
        assert_eq!(broken(&world, setting), None);
    }
    world
}

#[test]
fn a_bucket_emptied_onto_the_floor_is_a_request_lost() {
    let setting = setting();
    let world = until(&setting, 0, At::Mark);
    assert_eq!(world.bucket(0), [0]);
    let mut cpu = Cpu::new(CpuId(0));
    let bucket = LockId::of_elevator(QueueId(0), 1, IrqClass::Plain, 0);
    world.mq.acquire(bucket, &mut cpu);
    let list = &deadline(world.mq.queue(QueueId(0))).series().buckets[0].list;
    *list.held(&mut cpu) = QueueList::new();
    list.release(&mut cpu);
    assert_eq!(broken(&world, &setting), Some("NothingLost"));
}

#[test]
fn a_request_that_is_done_and_still_in_a_bucket_is_in_two_places() {
    let setting = setting();
    let mut world = until(&setting, 0, At::Mark);
    world.side.requests[0].life = Life::Done;
    assert_eq!(broken(&world, &setting), Some("NothingLost"));
}

#[test]
fn a_section_without_its_owner_is_found() {
    let setting = setting();
    let mut world = until(&setting, 0, At::Busy);
    world.side.owner = None;
    assert_eq!(broken(&world, &setting), Some("LockExact"));
    world.side.owner = Some(0);
    assert_eq!(broken(&world, &setting), Some("LockExact"));
}

#[test]
fn a_request_that_waits_while_nothing_runs_is_a_stall() {
    let mut setting = setting();
    let mut world = setting.first();
    world.side.requests[0].life = Life::Live;
    world.side.submitted[0] = 1;
    assert_eq!(broken(&world, &setting), Some("NoStall"));
    // A later submission may still dispatch the request.
    setting.judged = Judged::Left;
    assert_eq!(broken(&world, &setting), Some("NothingLost"));
    world.side.requests[1].life = Life::Done;
    world.side.submitted[1] = 1;
    assert_eq!(broken(&world, &setting), Some("NoneLeft"));
    // A delayed run is armed, so a run will come.
    world.side.armed = true;
    assert_eq!(broken(&world, &setting), Some("NothingLost"));
}

#[test]
fn all_done_is_what_never_all_done_forbids() {
    let mut setting = setting();
    setting.judged = Judged::AllDone;
    let mut world = setting.first();
    for request in 0..2 {
        world.side.requests[request].life = Life::Done;
        world.side.submitted[request] = 1;
    }
    assert_eq!(broken(&world, &setting), Some("NeverAllDone"));
    world.side.armed = true;
    assert_eq!(broken(&world, &setting), None);
}
