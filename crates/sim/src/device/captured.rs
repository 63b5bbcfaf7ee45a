//! `--device captured`: accepts each request and completes it after the time that the captured
//! device took for that place.
//!
//! A captured D2C contains the time from the interrupt to its handler, so that costs nothing more
//! here. Requests are served in parallel up to the number of tags (and budget): the model knows how
//! long, not why, so a scheduler that orders requests better for the real device is not rewarded
//! here. Read next: `replay/services.rs`.

use blkmq::request::{RequestId, Status};
use blkmq::time::{Duration, SimTime};

use super::command_timers::CommandTimers;
use super::{Action, Actions, Command, Device, DeviceSetup, DriverInfo, EndedBy, Found, Reply};
use crate::replay::{Lookup, Services};

/// Service times by how they were found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CapturedCounts {
    /// The capture has that very request's place and turn, or the drive draws its times.
    pub exact: u64,
    /// A place requested more often than captured, or the middle of a captured I/O.
    pub near: u64,
    /// Not in the capture: the mean of the direction.
    pub mean: u64,
}

#[derive(Debug)]
pub struct CapturedDevice {
    // Settings.
    /// Most budget tokens in use; 0: the driver has no budget.
    budget: u32,
    /// How its driver ends a request.
    by: EndedBy,

    // State.
    services: Services,
    counts: CapturedCounts,
    timers: CommandTimers,
    /// Slots that hold a budget token.
    holds: Vec<bool>,
    tokens_out: u32,
    in_flight: u32,
}

impl CapturedDevice {
    /// A device with these times below the driver of `setup`, idle.
    pub fn new(services: Services, setup: &DeviceSetup<'_>) -> CapturedDevice {
        let slots = setup.requests as usize;
        CapturedDevice {
            budget: setup.plan.budget,
            by: match DriverInfo::of(&setup.plan.kind, setup.rules).ops.redirects {
                false => EndedBy::End,
                true => EndedBy::Complete,
            },
            services,
            counts: CapturedCounts::default(),
            timers: CommandTimers::new(setup.requests),
            holds: vec![false; slots],
            tokens_out: 0,
            in_flight: 0,
        }
    }

    pub fn counts(&self) -> CapturedCounts {
        self.counts
    }
}

impl Device for CapturedDevice {
    fn get_budget(&mut self, _unit: u16, _now: SimTime, _out: &mut Actions) -> Option<u32> {
        if self.tokens_out >= self.budget {
            return None;
        }
        self.tokens_out += 1;
        Some(0)
    }

    fn put_budget(&mut self, _token: u32) {
        self.tokens_out -= 1;
    }

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        let place = (command.sector, command.sectors.0);
        let taken = self.services.take(command.op, place, self.in_flight + 1);
        match taken {
            Lookup::Exact(_) => self.counts.exact += 1,
            Lookup::Near(_) => self.counts.near += 1,
            Lookup::Mean(_) => self.counts.mean += 1,
        }
        // The captured time counts from D, before the rest of queue_rq.
        let after = Duration(taken.time().0.saturating_sub(command.since_start.0));
        self.timers.arm(command.rq, now + after);
        self.holds[command.rq.0 as usize] = command.budget.is_some() && self.budget > 0;
        self.in_flight += 1;
        out.push(Action::Interrupt {
            after,
            cpu: command.cpu,
            vector: command.rq.0,
        });
        Reply::ACCEPTED
    }

    fn interrupt(&mut self, vector: u32, now: SimTime, _out: &mut Actions) -> Option<Found> {
        let rq = RequestId(vector);
        if !self.timers.take(rq, now) {
            return None;
        }
        self.in_flight -= 1;
        Some(Found {
            rq,
            status: Status::Ok,
            by: self.by,
        })
    }

    fn ended(&mut self, rq: RequestId, _now: SimTime, out: &mut Actions) {
        if core::mem::take(&mut self.holds[rq.0 as usize]) {
            let was_full = self.tokens_out >= self.budget;
            self.tokens_out -= 1;
            if was_full {
                // scsi_run_queue_async(): a request may have been refused.
                out.push(Action::RunQueues {
                    unit: None,
                    delay: Duration::ZERO,
                });
            }
        }
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        format!("captured device: {} in flight", self.in_flight)
    }
}

#[cfg(test)]
mod tests;
