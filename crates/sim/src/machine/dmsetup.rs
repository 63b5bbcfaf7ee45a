//! The process that suspends and resumes mapped devices, as `dmsetup suspend` and `dmsetup resume`
//! do.
//!
//! One command after another, in order of time. Not here: a suspension itself (`path/suspend.rs` of
//! blkmq), messages (`targets.rs`).

use blkmq::path::{Frame, SuspendPath, Suspends};
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};

use super::cpus::Cpus;
use super::numbers::Numbers;
use super::task::{Program, Task, Turn};
use super::tasks::Tasks;
use crate::plan::{DiskId, Plan, Suspension};
use crate::recorder::SuspensionTimes;

#[derive(Clone, Debug)]
pub(super) struct Dmsetup {
    /// Its suspensions, in order of time.
    all: Vec<(DiskId, Suspension)>,
    /// Commands that have ended: two for each suspension.
    done: usize,
    runs: bool,
}

impl Dmsetup {
    /// All suspensions of a plan; `None`: no process is needed.
    pub(super) fn of(plan: &Plan) -> Option<Dmsetup> {
        let all = plan.suspensions();
        (!all.is_empty()).then_some(Dmsetup {
            all,
            done: 0,
            runs: false,
        })
    }

    /// The next command, when it is due. `times` records when they began and ended.
    pub(super) fn turn(
        &mut self,
        cpus: &mut Cpus,
        numbers: &Numbers,
        times: &mut [SuspensionTimes],
        id: CpuId,
    ) -> Turn {
        let now = cpus.at(id);
        if core::mem::take(&mut self.runs) {
            let times = &mut times[self.done / 2];
            match self.resumes() {
                false => times.suspended = Some(now),
                true => times.resumed = Some(now),
            }
            self.done += 1;
        }
        let Some(&(disk, suspension)) = self.all.get(self.done / 2) else {
            return Turn::Exit;
        };
        let due = SimTime(self.due().0);
        if now < due {
            return Turn::Pause(due);
        }
        self.runs = true;
        let queue = numbers.queue_of(disk);
        let what = match self.resumes() {
            false => {
                times[self.done / 2].begun = Some(now);
                let noflush = suspension.noflush;
                Suspends::Begin { noflush }
            }
            true => Suspends::End,
        };
        cpus.push(id, Frame::Suspend(SuspendPath::new(queue, what)));
        Turn::Again
    }

    fn resumes(&self) -> bool {
        self.done % 2 == 1
    }

    /// When the next command is due. Panics if there is none.
    fn due(&self) -> Duration {
        let (_, suspension) = self.all[self.done / 2];
        match self.resumes() {
            false => suspension.at,
            true => suspension.resume,
        }
    }
}

pub(super) fn start(cpus: &mut Cpus, tasks: &Tasks) {
    let first = |task: &Task| match &task.program {
        Program::Dmsetup(dmsetup) => Some(dmsetup.due()),
        _ => None,
    };
    let found = tasks.iter().find_map(|(id, task)| Some((id, first(task)?)));
    if let Some((id, at)) = found {
        let at = SimTime(at.0).max(cpus.core.now);
        tasks.sleep_until(cpus, id, at);
    }
}
