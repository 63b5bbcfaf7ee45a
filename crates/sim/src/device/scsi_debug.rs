//! scsi_debug: answers each command after a delay, from a timer of the submitting CPU.
//!
//! One host with its logical units. Not here: budgets and restarts of the mid-layer
//! (`mid_layer.rs`), and the host-wide limit, which is the number of its tags. Kernel:
//! schedule_resp() in drivers/scsi/scsi_debug.c (6.1.192, 6.12.117).

use super::command_timers::CommandTimers;
use super::mid_layer::MidLayer;
use super::{Action, Actions, Command, Device, EndedBy, Found, Reply, TurnedDown, Verdict};
use super::{DeviceSetup, QueueLayout};
use crate::plan::ScsiDebugPlan;
use crate::rng::Rng;
use blkmq::request::{HctxId, Op, RequestId, Status};
use blkmq::time::{Duration, SimTime};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

mod info;

#[cfg(test)]
mod tests;

pub(super) use info::info;

#[derive(Debug)]
pub struct ScsiDebug {
    // Settings.
    delay: Duration,
    sync_delay: Duration,
    random: bool,
    host_max_queue: u32,
    layout: QueueLayout,

    // State.
    mid_layer: MidLayer,
    timers: CommandTimers,
    /// Commands of each POLL hctx by the time from which a poller finds them.
    polled: Vec<BinaryHeap<Reverse<(SimTime, RequestId)>>>,
    response: Rng,
    in_flight: u32,
    /// write_since_sync: the cache has to be synchronized.
    written: bool,
}

impl ScsiDebug {
    /// The device of `setup`, idle. Panics if a unit has no command slot.
    pub fn new(plan: &ScsiDebugPlan, setup: &DeviceSetup<'_>) -> ScsiDebug {
        let layout = QueueLayout::new(setup.plan);
        let slots = setup.requests as usize;
        let polled = (0..layout.polled_count()).map(|_| BinaryHeap::with_capacity(slots));
        ScsiDebug {
            delay: plan.delay,
            sync_delay: plan.sync_delay,
            random: plan.random,
            host_max_queue: plan.host_max_queue,
            layout,
            mid_layer: MidLayer::new(setup.units, plan.lun_depth, setup.requests),
            timers: CommandTimers::new(setup.requests),
            polled: polled.collect(),
            response: setup.random("scsi_debug/response"),
            in_flight: 0,
            written: false,
        }
    }

    /// scsi_queue_rq() up to the start of the request.
    fn ready(&mut self, command: &Command) -> Result<(), Reply> {
        let token = command.budget.expect("the mid-layer gave it a budget");
        if !self.mid_layer.admit(command.rq, token) {
            return Err(Reply {
                verdict: Verdict::Resource,
                started: false,
            });
        }
        let limit = self.host_max_queue;
        assert!(
            limit == 0 || self.mid_layer.host_busy() <= limit,
            "host-wide tags allow {limit} commands"
        );
        Ok(())
    }

    /// When it answers. A command takes effect when it is submitted (resp_sync_cache() and the
    /// like).
    fn delay_of(&mut self, op: Op) -> Duration {
        let delay = match op {
            Op::Flush if !core::mem::take(&mut self.written) => return Duration::ZERO,
            Op::Flush => self.sync_delay,
            Op::Write => {
                self.written = true;
                self.delay
            }
            Op::Read | Op::Discard | Op::WriteZeroes => self.delay,
        };
        match self.random && delay > Duration::ZERO {
            true => Duration(self.response.below(delay.0)),
            false => delay,
        }
    }
}

impl Device for ScsiDebug {
    fn get_budget(&mut self, unit: u16, _now: SimTime, out: &mut Actions) -> Option<u32> {
        self.mid_layer.get_budget(unit, out)
    }

    fn is_busy(&self, unit: u16) -> bool {
        self.mid_layer.is_busy(unit)
    }

    fn put_budget(&mut self, token: u32) {
        self.mid_layer.put_budget(token);
    }

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        if let Err(reply) = self.ready(command) {
            return reply;
        }
        let rq = command.rq;
        let after = self.delay_of(command.op);
        if after == Duration::ZERO {
            // The submitting thread completes it.
            let status = Status::Ok;
            out.push(Action::Complete { rq, status });
            return Reply::ACCEPTED;
        }
        self.in_flight += 1;
        if let Some(index) = self.layout.polled_index(command.hctx) {
            self.polled[index].push(Reverse((now + after, rq)));
            return Reply::ACCEPTED;
        }
        self.timers.arm(rq, now + after);
        out.push(Action::Interrupt {
            after,
            cpu: command.cpu,
            vector: rq.0,
        });
        Reply::ACCEPTED
    }

    fn admit(&mut self, command: &Command, _out: &mut Actions) -> Result<(), Reply> {
        self.ready(command)
    }

    fn turn_down(&mut self, command: &Command, why: TurnedDown) -> Reply {
        if let Err(reply) = self.ready(command) {
            return reply;
        }
        self.mid_layer.turn_down(command.rq, why)
    }

    fn interrupt(&mut self, vector: u32, now: SimTime, _out: &mut Actions) -> Option<Found> {
        let rq = RequestId(vector);
        if !self.timers.take(rq, now) {
            return None;
        }
        self.in_flight -= 1;
        Some(found(rq))
    }

    /// Deviation(D10): due commands are found in the order of their times, not of their tags.
    fn poll(&mut self, hctx: HctxId, now: SimTime, _out: &mut Actions) -> Option<Found> {
        let queue = &mut self.polled[self.layout.polled_index(hctx)?];
        let &Reverse((due, rq)) = queue.peek()?;
        if due > now {
            return None;
        }
        queue.pop();
        self.in_flight -= 1;
        Some(found(rq))
    }

    fn due_after(&self, now: SimTime) -> Option<SimTime> {
        let commands = self.polled.iter().flatten();
        let times = commands.map(|&Reverse((due, _))| due);
        times.filter(|&due| due > now).min()
    }

    fn ended(&mut self, rq: RequestId, _now: SimTime, out: &mut Actions) {
        self.mid_layer.ended(rq, out);
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        format!(
            "scsi_debug: {} in flight; {}",
            self.in_flight,
            self.mid_layer.describe()
        )
    }
}

fn found(rq: RequestId) -> Found {
    Found {
        rq,
        status: Status::Ok,
        by: EndedBy::Complete,
    }
}
