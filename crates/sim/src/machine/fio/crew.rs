//! I/Os that a thread draws and workers of its process submit and await (io_submit_mode=offload).
//!
//! A worker has one I/O at a time, and an engine of its own with an iodepth of 1. There are as many
//! as the thread has I/Os, so that one is idle whenever an I/O may begin: a worker is idle as soon
//! as its I/O is complete. After fio 3.33 rate-submit.c, workqueue.c, __get_io_u() in io_u.c.

use blkmq::request::Status;
use blkmq::time::SimTime;

use super::steps::On;
use super::{FioTask, Stage};
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::handed::Handed;
use crate::machine::task::{Program, TaskId, Turn, io_context_of};
use crate::plan::{ControlPlan, DiskPlan, Engine, Order, ThreadPlan, WritesPlan};
use crate::workload::NextIo;

/// The workers of a thread.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Crew {
    // Settings.
    first: TaskId,

    // State.
    /// When each became idle; `NEVER`: it has an I/O.
    idle_since: Vec<SimTime>,
    /// The search for an idle one begins here.
    next: usize,
    /// The thread sleeps until one is idle.
    waits: bool,
}

/// A worker of a thread.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Hired {
    // Settings.
    pub(super) by: TaskId,
    number: usize,
    /// It is glibc's: its thread has the I/O and its end.
    pub(super) helps: bool,

    // State.
    /// An I/O, and when it was handed over.
    given: Option<(SimTime, Given)>,
    /// Slots of I/Os that the thread queued for it, done one after another (posixaio).
    pub(super) asked: Handed<u32>,
    /// The slot in work.
    pub(super) helping: u32,
    /// An I/O is in work, or its end is not reported yet.
    works: bool,
}

#[derive(Clone, Copy, Debug)]
struct Given {
    io: NextIo,
    prepared: SimTime,
    count_from: SimTime,
    end_at: SimTime,
}

impl Crew {
    /// So many workers, which are tasks from `first` on.
    pub(in crate::machine) fn new(first: TaskId, count: u32) -> Crew {
        Crew {
            first,
            idle_since: vec![SimTime::ZERO; count as usize],
            next: 0,
            waits: false,
        }
    }

    /// get_submit_worker()
    fn idle(&self, now: SimTime) -> Option<usize> {
        let count = self.idle_since.len();
        let from_next = (0..count).map(|step| (self.next + step) % count);
        from_next
            .into_iter()
            .find(|&number| self.idle_since[number] <= now)
    }

    fn are_idle(&self, now: SimTime) -> bool {
        self.idle_since.iter().all(|&since| since <= now)
    }
}

impl FioTask {
    /// A worker of the thread with this number, whose lines are in this row.
    pub(in crate::machine) fn hired(
        (thread, plan, by): (usize, &ThreadPlan, TaskId),
        disks: &[DiskPlan],
        (task, number, row): (TaskId, usize, usize),
    ) -> FioTask {
        let helps = plan.engine == Engine::PosixAio;
        let asked = if helps { plan.iodepth as usize } else { 0 };
        let own = ThreadPlan {
            engine: if helps { Engine::Sync } else { plan.engine },
            iodepth: 1,
            iodepth_low: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            // Its I/Os are those of the thread's stream.
            order: Order::Sequential,
            keeps_map: false,
            writes: WritesPlan {
                end_fsync: false,
                verify: None,
                ..plan.writes
            },
            control: ControlPlan::default(),
            ..plan.clone()
        };
        FioTask {
            row,
            io_context: io_context_of(task),
            hired: Some(Box::new(Hired {
                by,
                number,
                helps,
                given: None,
                asked: Handed::with_capacity(asked),
                helping: 0,
                works: false,
            })),
            ..FioTask::new(thread, &own, disks)
        }
    }

    /// workqueue_enqueue(). The thread waits if all workers have an I/O.
    #[cold]
    pub(super) fn hand_out(&mut self, on: &mut On<'_>, io: NextIo) -> Turn {
        let id = on.id;
        let crew = self.crew.as_mut().expect("it has workers");
        let Some(number) = crew.idle(on.cpus.at(id)) else {
            self.held = Some(io);
            return self.await_crew(on);
        };
        crew.idle_since[number] = SimTime::NEVER;
        if number == crew.next {
            crew.next = (number + 1) % crew.idle_since.len();
        }
        let worker = TaskId(crew.first.0 + number as u32);
        self.charge_timed(on.cpus, id, Step::FioPrepare);
        let given = Given {
            io,
            prepared: on.cpus.at(id),
            count_from: self.count_from,
            end_at: self.end_at,
        };
        on.cpus.charge_as(id, Step::Syscall, Mode::System);
        on.cpus.charge_as(id, Step::Wake, Mode::System);
        let at = on.cpus.at(id);
        if let Program::Fio(Some(fio)) = &mut on.tasks[worker].program
            && let Some(hired) = &mut fio.hired
        {
            hired.given = Some((at, given));
        }
        on.tasks.wake(on.cpus, worker, id, SimTime::ZERO);
        Turn::Again
    }

    /// workqueue_flush(): `None` if all workers are idle, or there are none.
    pub(super) fn flush_crew(&mut self, on: &mut On<'_>) -> Option<Turn> {
        let idle = self.crew_is_idle(on.cpus.at(on.id));
        (!idle).then(|| self.await_crew(on))
    }

    pub(super) fn crew_is_idle(&self, now: SimTime) -> bool {
        self.crew.as_ref().is_none_or(|crew| crew.are_idle(now))
    }

    /// Sleeps until a worker becomes idle.
    #[cold]
    fn await_crew(&mut self, on: &mut On<'_>) -> Turn {
        let now = on.cpus.at(on.id);
        let crew = self.crew.as_mut().expect("it has workers");
        let soon = crew.idle_since.iter().filter(|&&since| since > now).min();
        match soon {
            Some(&at) if at < SimTime::NEVER => Turn::Pause(at),
            _ => {
                crew.waits = true;
                on.cpus.charge_as(on.id, Step::Syscall, Mode::System);
                Turn::Sleep
            }
        }
    }

    /// A worker between two I/Os.
    #[cold]
    pub(super) fn work(&mut self, on: &mut On<'_>) -> Turn {
        let hired = self.hired.as_mut().expect("it is a worker");
        if core::mem::take(&mut hired.works) {
            return self.report(on);
        }
        if hired.helps {
            return self.help(on);
        }
        let now = on.cpus.at(on.id);
        let Some((at, given)) = hired.given else {
            return Turn::Sleep;
        };
        if at > now {
            return Turn::Pause(at);
        }
        (hired.given, hired.works) = (None, true);
        (self.count_from, self.end_at) = (given.count_from, given.end_at);
        let slot = self.free.pop().expect("it has one I/O at a time");
        let of = &mut self.slots[slot as usize];
        (of.io, of.prepared) = (given.io, given.prepared);
        if self.is_call(given.io.op) {
            return self.begin_call(on, slot);
        }
        self.prepared.push_back(slot);
        self.stage = Stage::Enter;
        Turn::Again
    }

    /// The worker's I/O is complete: its thread counts it, and may go on.
    #[cold]
    fn report(&mut self, on: &mut On<'_>) -> Turn {
        let id = on.id;
        let hired = self.hired.as_ref().expect("it is a worker");
        let (by, number) = (hired.by, hired.number);
        let now = on.cpus.at(id);
        let io = self.slots[0];
        let Program::Fio(Some(thread)) = &mut on.tasks[by].program else {
            unreachable!("its thread does not take a turn now")
        };
        thread.stream.completed(&io.io);
        thread.failed |= io.status != Status::Ok && self.failed;
        let crew = thread.crew.as_mut().expect("it has workers");
        crew.idle_since[number] = now;
        if core::mem::take(&mut crew.waits) {
            on.cpus.charge_as(id, Step::Syscall, Mode::System);
            on.cpus.charge_as(id, Step::Wake, Mode::System);
            on.tasks.wake(on.cpus, by, id, SimTime::ZERO);
        }
        // It waits for the next one.
        on.cpus.charge_as(id, Step::Syscall, Mode::System);
        Turn::Again
    }
}
