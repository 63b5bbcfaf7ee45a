//! A Fibre Channel host: a link, targets at its other end, and an adapter that interrupts.
//!
//! A model of no adapter in particular: a command waits for the link in the direction of its data,
//! and is answered after a time that is drawn. Units share the link and the host's tags. Not here:
//! budgets and restarts of the mid-layer (`mid_layer.rs`).

use std::collections::VecDeque;

use blkmq::request::{CpuId, HctxId, Op, RequestId, Status};
use blkmq::time::{Duration, SimTime};

use super::mid_layer::MidLayer;
use super::nvme::Pacer;
use super::{Action, Actions, Command, Device, EndedBy, Found, Reply, TurnedDown, Verdict};
use super::{DeviceSetup, jittered};
use crate::plan::{FcPlan, OpLatency};
use crate::rng::Rng;

mod info;

#[cfg(test)]
mod tests;

pub(super) use info::info;

#[derive(Debug)]
pub struct Fc {
    // Settings.
    latency: OpLatency,
    jitter_percent: u64,
    vector_cpus: Vec<CpuId>,

    // State.
    mid_layer: MidLayer,
    /// The link to the host and from it.
    link: [Pacer; 2],
    service: Rng,
    /// By slot: the hardware queue that gets the answer.
    hctx_of: Vec<HctxId>,
    answers: Vec<Answers>,
    in_flight: u32,
}

#[derive(Clone, Debug, Default)]
struct Answers {
    arrived: VecDeque<RequestId>,
    /// An interrupt is on its way, or its handler runs.
    reported: bool,
}

impl Fc {
    /// The host of `setup`, idle. Panics if a unit has no command slot, or if a queue has no
    /// vector.
    pub fn new(plan: &FcPlan, setup: &DeviceSetup<'_>) -> Fc {
        let queues = usize::from(setup.plan.default_queues);
        assert!(setup.vector_cpus.len() >= queues, "a CPU each vector");
        assert!(plan.jitter_percent <= 100, "a service time is not negative");
        let slots = setup.requests as usize;
        let answers = |_| Answers {
            arrived: VecDeque::with_capacity(slots),
            reported: false,
        };
        Fc {
            latency: plan.latency,
            jitter_percent: u64::from(plan.jitter_percent),
            vector_cpus: setup.vector_cpus.to_vec(),
            mid_layer: MidLayer::new(setup.units, plan.lun_depth, setup.requests),
            link: [plan.read_mbps, plan.write_mbps]
                .map(|mbps| Pacer::per_second(u64::from(mbps) << 11)),
            service: setup.random("fc/service"),
            hctx_of: vec![HctxId(0); slots],
            answers: (0..queues).map(answers).collect(),
            in_flight: 0,
        }
    }

    /// scsi_queue_rq() up to the start of the request.
    fn ready(&mut self, command: &Command) -> Result<(), Reply> {
        let token = command.budget.expect("the mid-layer gave it a budget");
        match self.mid_layer.admit(command.rq, token) {
            true => Ok(()),
            false => Err(Reply {
                verdict: Verdict::Resource,
                started: false,
            }),
        }
    }

    /// From now to the answer.
    fn time_of(&mut self, command: &Command, now: SimTime) -> Duration {
        let (mean, link) = match command.op {
            Op::Read => (self.latency.read, Some(0)),
            Op::Write => (self.latency.write, Some(1)),
            Op::Flush => (self.latency.flush, None),
            Op::Discard | Op::WriteZeroes => (self.latency.trim, None),
        };
        let waits = link.map_or(Duration::ZERO, |direction| {
            let link = &mut self.link[direction];
            link.charge(u64::from(command.sectors.0), now);
            link.open_at().max(now).since(now)
        });
        waits + jittered(mean, self.jitter_percent, &mut self.service)
    }
}

impl Device for Fc {
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
        self.in_flight += 1;
        self.hctx_of[command.rq.0 as usize] = command.hctx;
        out.push(Action::Timer {
            after: self.time_of(command, now),
            mark: u64::from(command.rq.0),
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

    /// An answer has arrived.
    fn timer(&mut self, mark: u64, _now: SimTime, out: &mut Actions) {
        let rq = RequestId(mark as u32);
        let hctx = self.hctx_of[rq.0 as usize];
        let answers = &mut self.answers[usize::from(hctx.0)];
        answers.arrived.push_back(rq);
        if !answers.reported {
            answers.reported = true;
            out.push(Action::Interrupt {
                after: Duration::ZERO,
                cpu: self.vector_cpus[usize::from(hctx.0)],
                vector: u32::from(hctx.0),
            });
        }
    }

    fn interrupt(&mut self, vector: u32, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        let answers = &mut self.answers[vector as usize];
        let Some(rq) = answers.arrived.pop_front() else {
            answers.reported = false;
            return None;
        };
        self.in_flight -= 1;
        Some(Found {
            rq,
            status: Status::Ok,
            by: EndedBy::Complete,
        })
    }

    fn ended(&mut self, rq: RequestId, _now: SimTime, out: &mut Actions) {
        self.mid_layer.ended(rq, out);
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        let arrived: usize = self.answers.iter().map(|of| of.arrived.len()).sum();
        format!(
            "fc: {} in flight, {arrived} of them answered; {}",
            self.in_flight,
            self.mid_layer.describe()
        )
    }
}
