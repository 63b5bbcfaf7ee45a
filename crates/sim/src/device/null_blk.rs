//! null_blk in its multi-queue mode: accepts at once, completes at once or by a timer.
//!
//! It has no resources and no service time; only the bandwidth limit refuses requests. Data are
//! never kept: memory backing changes the machine's charges, not the completions here. Kernel:
//! drivers/block/null_blk/main.c (6.1.192, 6.12.117).

use super::command_timers::CommandTimers;
use super::{Action, Actions, Command, Device, EndedBy, Found, Reply, TurnedDown, Verdict};
use super::{DeviceSetup, QueueLayout, jittered};
use crate::plan::{IrqMode, NullBlkPlan};
use crate::rng::Rng;
use blkmq::request::{HctxId, RequestId, Status};
use blkmq::time::{Duration, SimTime};
use std::collections::VecDeque;

mod info;
mod throttle;

#[cfg(test)]
mod tests;

pub(super) use info::info;
pub use throttle::ThrottlePoint;
use throttle::{BANDWIDTH_TICK, Throttle};

#[derive(Debug)]
pub struct NullBlk {
    // Settings.
    irqmode: IrqMode,
    completion: Duration,
    jitter_percent: u64,
    throttle_point: ThrottlePoint,
    layout: QueueLayout,

    // State.
    timers: CommandTimers,
    /// Draws the time of each command, if it is random.
    service: Rng,
    poll_queues: Vec<PollQueue>,
    throttle: Option<Throttle>,
    in_flight: u32,
}

/// The answer of the bandwidth limit.
const REFUSED: Reply = Reply {
    verdict: Verdict::DevResource,
    started: false,
};

/// `poll_list` of a POLL hctx.
#[derive(Debug)]
struct PollQueue {
    /// Issued, not yet seen by a poller.
    issued: VecDeque<(SimTime, RequestId)>,
    /// The list that the current pass took when it began: later arrivals are left to the next pass.
    taken: VecDeque<RequestId>,
    in_pass: bool,
}

impl NullBlk {
    /// The device of `setup`, idle. Panics if the plan has no hardware queue.
    pub fn new(plan: &NullBlkPlan, setup: &DeviceSetup<'_>) -> NullBlk {
        let layout = QueueLayout::new(setup.plan);
        let slots = setup.requests as usize;
        let poll_queues = (0..layout.polled_count()).map(|_| PollQueue {
            issued: VecDeque::with_capacity(slots),
            taken: VecDeque::with_capacity(slots),
            in_pass: false,
        });
        NullBlk {
            irqmode: plan.irqmode,
            completion: plan.completion,
            jitter_percent: u64::from(plan.jitter_percent),
            throttle_point: ThrottlePoint::of(setup.rules),
            layout,
            timers: CommandTimers::new(setup.requests),
            service: setup.random("null_blk/service"),
            poll_queues: poll_queues.collect(),
            throttle: (plan.mbps > 0).then(|| Throttle::new(plan.mbps)),
            in_flight: 0,
        }
    }

    /// null_handle_throttled(): true if the command may go on.
    fn within_bandwidth(&mut self, command: &Command, out: &mut Actions) -> bool {
        match &mut self.throttle {
            Some(throttle) => throttle.admit(command.sectors, out),
            None => true,
        }
    }

    /// nullb_complete_cmd().
    fn complete(&mut self, command: &Command, now: SimTime, out: &mut Actions) {
        let (rq, status) = (command.rq, Status::Ok);
        match self.irqmode {
            IrqMode::None => out.push(Action::End { rq, status }),
            IrqMode::Softirq => out.push(Action::Complete { rq, status }),
            IrqMode::Timer => {
                let after = jittered(self.completion, self.jitter_percent, &mut self.service);
                self.timers.arm(rq, now + after);
                self.in_flight += 1;
                out.push(Action::Interrupt {
                    after,
                    cpu: command.cpu,
                    vector: rq.0,
                });
            }
        }
    }
}

impl Device for NullBlk {
    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        let polled = self.layout.polled_index(command.hctx);
        // v6.1 applies the limit inside the handling of a command, which polled commands reach only
        // when polled, and which comes after the start of the request.
        let (limited, started) = match self.throttle_point {
            ThrottlePoint::AfterStart => (polled.is_none(), true),
            ThrottlePoint::BeforeStart => (true, false),
        };
        if limited && !self.within_bandwidth(command, out) {
            return Reply { started, ..REFUSED };
        }
        match polled {
            Some(index) => {
                self.poll_queues[index].issued.push_back((now, command.rq));
                self.in_flight += 1;
            }
            None => self.complete(command, now, out),
        }
        Reply::ACCEPTED
    }

    /// The part before the start of the request: v6.1 applies the limit after it.
    fn admit(&mut self, command: &Command, out: &mut Actions) -> Result<(), Reply> {
        let limited = self.throttle_point == ThrottlePoint::BeforeStart;
        match limited && !self.within_bandwidth(command, out) {
            true => Err(REFUSED),
            false => Ok(()),
        }
    }

    fn turn_down(&mut self, _command: &Command, why: TurnedDown) -> Reply {
        Reply::turned_down(why, self.throttle_point == ThrottlePoint::AfterStart)
    }

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        assert_eq!(mark, BANDWIDTH_TICK, "null_blk has one timer of its own");
        let throttle = self.throttle.as_mut();
        throttle
            .expect("only a throttled device starts the tick")
            .tick(now, out);
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
            by: EndedBy::End,
        })
    }

    fn poll(&mut self, hctx: HctxId, now: SimTime, _out: &mut Actions) -> Option<Found> {
        let queue = &mut self.poll_queues[self.layout.polled_index(hctx)?];
        if !queue.in_pass {
            assert!(queue.taken.is_empty(), "a pass ends when nothing is left");
            // Not a command of a CPU that is ahead of this one.
            while let Some(&(at, rq)) = queue.issued.front()
                && at <= now
            {
                queue.taken.push_back(rq);
                queue.issued.pop_front();
            }
            queue.in_pass = true;
        }
        let Some(rq) = queue.taken.pop_front() else {
            queue.in_pass = false;
            return None;
        };
        self.in_flight -= 1;
        Some(Found {
            rq,
            status: Status::Ok,
            by: EndedBy::Batch,
        })
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        let polled: usize = self.poll_queues.iter().map(PollQueue::len).sum();
        let limit = match &self.throttle {
            Some(throttle) => format!(", {}", throttle.describe()),
            None => String::new(),
        };
        format!(
            "null_blk: {} in flight, {polled} of them for a poller{limit}",
            self.in_flight
        )
    }
}

impl PollQueue {
    fn len(&self) -> usize {
        self.issued.len() + self.taken.len()
    }
}
