//! A rotational SATA disk: one arm, a queue of commands that it serves in its own order, and
//! caches.
//!
//! * `geometry`: where sectors are, and when they pass under a head
//! * `segments`: what the drive has read, and reads ahead after a command until the arm is needed
//!   elsewhere
//! * `arm`: which command is served next, and how
//!
//! The driver is libata's under the SCSI mid-layer (`mid_layer.rs`): 32 tags, and as many commands
//! as device/queue_depth says. Not here: the low-level protocol, bad sectors, power saving. Kernel:
//! drivers/ata/libata-scsi.c, libahci.c, drivers/scsi/scsi_lib.c (6.1.192, 6.12.117).

use std::collections::VecDeque;

use super::Verdict;
use super::mid_layer::MidLayer;
use super::{Action, Actions, Command, Device, DeviceSetup, EndedBy, Found, Reply, TurnedDown};
use crate::plan::AhciPlan;
use blkmq::request::{CpuId, HctxId, Op, RequestId, Status};
use blkmq::time::{Duration, SimTime};

mod arm;
mod geometry;
mod info;
mod segments;

#[cfg(test)]
mod tests;

use arm::{Arm, Task, Waiting};
pub(super) use info::info;

/// Timer mark: the arm is free again. Other marks are commands that have ended.
const ARM: u64 = 1 << 32;

#[derive(Debug)]
pub(super) struct Ahci {
    // Settings.
    overhead: Duration,
    /// Of the link, bytes a second.
    link_bytes: u64,
    write_cache_sectors: u64,

    // State.
    mid_layer: MidLayer,
    arm: Arm,
    /// Sectors in the write cache that are not on the platters yet.
    dirty_sectors: u64,
    /// Flushes that wait until the write cache is clean.
    flushes: Vec<RequestId>,
    link_free: SimTime,
    /// Commands that have ended and that no interrupt handler has found yet.
    over: VecDeque<RequestId>,
    in_flight: u32,
}

impl Ahci {
    /// The disk of `setup`, idle, its arm at the outside. Panics if it has no command slot.
    pub(super) fn new(plan: &AhciPlan, setup: &DeviceSetup<'_>) -> Ahci {
        let slots = setup.requests as usize;
        Ahci {
            overhead: plan.overhead,
            link_bytes: plan.link_bytes,
            write_cache_sectors: plan.write_cache_sectors,
            mid_layer: MidLayer::new(setup.units, plan.queue_depth, setup.requests),
            arm: Arm::new(plan, slots),
            dirty_sectors: 0,
            flushes: Vec::with_capacity(slots),
            link_free: SimTime::ZERO,
            over: VecDeque::with_capacity(slots),
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

    /// The drive receives the command.
    fn take(&mut self, command: &Command, now: SimTime, out: &mut Actions) {
        let (rq, end) = (command.rq, command.sector.end(command.sectors));
        let ready = now + self.overhead;
        let sectors = u64::from(command.sectors.0);
        let write_back = self.dirty_sectors + sectors <= self.write_cache_sectors;
        match command.op {
            Op::Flush if self.dirty_sectors == 0 => ends_at(rq, ready, now, out),
            Op::Flush => self.flushes.push(rq),
            Op::Write if write_back && !command.flags.fua => {
                self.arm.forget(command.sector, end, now);
                self.arm.add_dirty(command.sector, end, now);
                self.dirty_sectors += sectors;
                let through = self.link(ready, sectors);
                ends_at(rq, through, now, out);
            }
            Op::Read | Op::Write => self.arm.add(Waiting {
                task: Task::of(command.op, rq),
                sector: command.sector,
                end,
                since: now,
                ready,
            }),
            Op::Discard | Op::WriteZeroes => {
                unreachable!("the disk's limits allow no {:?}", command.op)
            }
        }
        self.go_on(now, out);
    }

    /// The arm begins with the next command, if it is free; a command that hits the cache needs no
    /// arm.
    fn go_on(&mut self, now: SimTime, out: &mut Actions) {
        if self.arm.is_busy() {
            return;
        }
        while let Some(hit) = self.arm.take_hit(now) {
            let sectors = hit.end.0 - hit.sector.0;
            let through = self.link(now.max(hit.ready), sectors);
            let rq = hit.task.request().expect("commands hit the cache");
            ends_at(rq, through, now, out);
        }
        let flushing = !self.flushes.is_empty();
        if let Some(free) = self.arm.start(flushing, now) {
            let after = free.since(now);
            out.push(Action::Timer { after, mark: ARM });
        }
    }

    /// The arm has finished its current command.
    fn arm_done(&mut self, now: SimTime, out: &mut Actions) {
        let done = self.arm.finish(now);
        match done.task {
            Task::Read(rq) | Task::Write(rq) => self.is_over(rq, out),
            Task::Destage => {
                self.dirty_sectors -= done.end.0 - done.sector.0;
                if self.dirty_sectors == 0 {
                    for at in 0..self.flushes.len() {
                        self.is_over(self.flushes[at], out);
                    }
                    self.flushes.clear();
                }
            }
        }
        self.go_on(now, out);
    }

    /// When so many sectors are through the link, starting at `ready`.
    fn link(&mut self, ready: SimTime, sectors: u64) -> SimTime {
        let begin = ready.max(self.link_free);
        let takes = u128::from(sectors * 512) * 1_000_000_000 / u128::from(self.link_bytes);
        self.link_free = begin + Duration(takes as u64);
        self.link_free
    }

    /// The command has ended: the device interrupts the host.
    fn is_over(&mut self, rq: RequestId, out: &mut Actions) {
        self.over.push_back(rq);
        // One vector, whose CPU is the first as long as its affinity is not changed.
        out.push(Action::Interrupt {
            after: Duration::ZERO,
            cpu: CpuId(0),
            vector: 0,
        });
    }
}

fn ends_at(rq: RequestId, at: SimTime, now: SimTime, out: &mut Actions) {
    let (after, mark) = (at.since(now), u64::from(rq.0));
    out.push(Action::Timer { after, mark });
}

impl Device for Ahci {
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
        self.take(command, now, out);
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

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        match mark {
            ARM => self.arm_done(now, out),
            rq => self.is_over(RequestId(rq as u32), out),
        }
    }

    fn interrupt(&mut self, _vector: u32, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        let rq = self.over.pop_front()?;
        self.in_flight -= 1;
        Some(Found {
            rq,
            status: Status::Ok,
            by: EndedBy::Complete,
        })
    }

    /// Panics: the disk has no poll queue.
    fn poll(&mut self, hctx: HctxId, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        panic!("hctx {} is not polled", hctx.0);
    }

    fn ended(&mut self, rq: RequestId, _now: SimTime, out: &mut Actions) {
        self.mid_layer.ended(rq, out);
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        format!(
            "ahci: {} in flight, {}, {} sectors to be written, {} flushes wait; {}",
            self.in_flight,
            self.arm.describe(),
            self.dirty_sectors,
            self.flushes.len(),
            self.mid_layer.describe()
        )
    }
}
