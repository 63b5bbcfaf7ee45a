//! Runs that end when their figures are known well enough: a look at the intervals now and then.
//!
//! Read first: `batch_means.rs`. Each look comes at a boundary between batches, a quarter later
//! than the one before at most, so that few of them happen by chance while an interval is too
//! short.

use blkmq::time::SimTime;

use super::Simulator;
use super::event::{Event, class};
use super::task::{Program, TaskId};
use crate::batch_means::TESTED_MIN;

impl Simulator {
    /// Measuring has begun.
    pub(super) fn start_looking(&mut self) {
        if !self.plan.precision.is_empty() {
            let first = self.recorder.boundary(2 * TESTED_MIN);
            self.look_at(first.max(self.plan.last_event()));
        }
    }

    fn look_at(&mut self, time: SimTime) {
        let events = &mut self.cpus.core.events;
        events.push(time, class::TIMER, Event::Look);
    }

    /// Ends the run if all figures are known as well as the plan wants.
    #[cold]
    pub(super) fn look_at_precision(&mut self) {
        let now = self.cpus.core.now;
        self.recorder.advance_all(now);
        let recorder = &self.recorder;
        let mut wanted = self.plan.precision.iter();
        let is_known = wanted.all(|wanted| recorder.is_known(*wanted, now));
        if !is_known {
            // None comes after a thread has ended: the figures of all are as they are.
            let next = recorder.next_boundary(TESTED_MIN);
            if next > now {
                self.look_at(next);
            }
            return;
        }
        self.plan.phases = self.phase + 1;
        for task in (0..self.tasks.count()).map(TaskId) {
            self.tasks.terminate_one(&mut self.cpus, now, task);
            if let Program::Fio(Some(fio)) = &mut self.tasks[task].program {
                fio.end_at = fio.end_at.min(now.max(fio.started));
            }
        }
    }
}
