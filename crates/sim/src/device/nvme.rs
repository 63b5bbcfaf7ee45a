//! An NVMe drive below the PCI driver: rings and doorbells, service, interrupts.
//!
//! The driver half is the kernel's; the drive half is a model of no drive in particular: `channels`
//! servers that take commands from the queues round robin. Read next: `nvme/sq.rs`. Kernel:
//! drivers/nvme/host/pci.c (6.1.192, 6.12.117).

use super::{Action, Actions, Command, Device, EndedBy, Found, Reply, TurnedDown, Verdict};
use super::{DeviceSetup, QueueLayout};
use crate::plan::NvmePlan;
use blkmq::request::{CpuId, HctxId, Op, RequestId, Sectors, Status};
use blkmq::rules::PlugOrder;
use blkmq::time::{Duration, SimTime};
use std::collections::VecDeque;

mod cq;
mod info;
mod pace;
mod service;
mod sq;

#[cfg(test)]
mod tests;

use cq::CompletionQueue;
pub(super) use info::info;
pub(super) use pace::Pacer;
use service::Service;
use sq::SubmissionQueue;

#[derive(Debug)]
pub struct Nvme {
    // Settings.
    irq_delay: Duration,
    layout: QueueLayout,
    vector_cpus: Vec<CpuId>,
    /// nvme_queue_rqs() reverses the order of requests that it took off a stack.
    turns_round: bool,

    // State.
    /// Prepared by nvme_queue_rqs() and not in a submission queue yet, newest last.
    prepared: Vec<Prepared>,
    queues: Vec<QueuePair>,
    /// Queues with published commands, in the order of the round robin.
    ready: VecDeque<HctxId>,
    /// The drive's state of the command in each slot.
    entries: Vec<Entry>,
    channels_free: u32,
    iops: Pacer,
    bandwidth: Pacer,
    /// Limits of reads and of writes.
    directions: [Pacer; 2],
    /// A timer waits for the pacers.
    pace_timer: bool,
    service: Service,
    in_flight: u32,
}

/// A submission queue and its completion queue.
#[derive(Debug)]
struct QueuePair {
    sq: SubmissionQueue,
    cq: CompletionQueue,
    /// The queue is in the round robin.
    ready: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hctx: HctxId,
    op: Op,
    sectors: Sectors,
}

/// A command on its way from a plug to a submission queue.
#[derive(Clone, Copy, Debug)]
struct Prepared {
    rq: RequestId,
    cpu: CpuId,
    hctx: HctxId,
}

/// Data of so long pass ahead of a direction's limit: the drive's buffers (an assumption). It is
/// far more than small I/Os need, which the channels limit, and far less than large ones do.
const BUFFERED: Duration = Duration::from_micros(100);

/// Purpose of a timer of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Served(RequestId),
    /// The pacers let the next command pass.
    Pace,
    /// Coalesced completions of a queue have waited long enough.
    Coalesce(HctxId),
}

impl Mark {
    fn encode(self) -> u64 {
        match self {
            Mark::Served(rq) => u64::from(rq.0),
            Mark::Pace => 1 << 32,
            Mark::Coalesce(hctx) => 2 << 32 | u64::from(hctx.0),
        }
    }

    fn decode(mark: u64) -> Mark {
        match mark >> 32 {
            0 => Mark::Served(RequestId(mark as u32)),
            1 => Mark::Pace,
            _ => Mark::Coalesce(HctxId(mark as u16)),
        }
    }
}

impl Nvme {
    /// The drive of `setup`, idle. Panics if it has no channel, or fewer vectors' CPUs than
    /// queues with an interrupt.
    pub fn new(plan: &NvmePlan, setup: &DeviceSetup<'_>) -> Nvme {
        assert!(
            plan.channels > 0,
            "a drive without channels serves no command"
        );
        let layout = QueueLayout::new(setup.plan);
        let with_vector = layout.count() - layout.polled_count();
        assert!(setup.vector_cpus.len() >= with_vector, "a CPU each vector");
        let depth = setup.plan.queue_depth;
        let pair = || QueuePair {
            sq: SubmissionQueue::new(depth),
            cq: CompletionQueue::new(depth, plan.coalesce_count, plan.coalesce_time),
            ready: false,
        };
        let idle = Entry {
            hctx: HctxId(0),
            op: Op::Read,
            sectors: Sectors(0),
        };
        Nvme {
            irq_delay: plan.irq_delay,
            layout,
            vector_cpus: setup.vector_cpus.to_vec(),
            turns_round: setup.rules.plug_order == PlugOrder::Lifo,
            prepared: Vec::with_capacity(setup.requests as usize),
            queues: (0..layout.count()).map(|_| pair()).collect(),
            ready: VecDeque::with_capacity(layout.count()),
            entries: vec![idle; setup.requests as usize],
            channels_free: plan.channels,
            iops: Pacer::per_second(u64::from(plan.iops_max)),
            bandwidth: Pacer::per_second(u64::from(plan.mbps) << 11),
            directions: [plan.read_mbps, plan.write_mbps]
                .map(|mbps| Pacer::with_slack(u64::from(mbps) << 11, BUFFERED)),
            pace_timer: false,
            service: Service::new(plan, setup.random("nvme/service")),
            in_flight: 0,
        }
    }

    /// The drive sees a doorbell.
    fn published(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) {
        let queue = &mut self.queues[usize::from(hctx.0)];
        if !queue.ready && queue.sq.published() > 0 {
            queue.ready = true;
            self.ready.push_back(hctx);
        }
        self.serve(now, out);
    }

    /// Starts what channels and pacers allow: one command a queue, then the next queue.
    fn serve(&mut self, now: SimTime, out: &mut Actions) {
        while self.channels_free > 0 {
            let Some(&hctx) = self.ready.front() else {
                return;
            };
            let [read, write] = &self.directions;
            let own = read.open_at().max(write.open_at());
            let open = self.iops.open_at().max(self.bandwidth.open_at()).max(own);
            if open > now {
                self.wait_for_pace(open.since(now), out);
                return;
            }
            self.ready.pop_front();
            let queue = &mut self.queues[usize::from(hctx.0)];
            let rq = queue.sq.fetch().expect("a ready queue has published some");
            queue.ready = queue.sq.published() > 0;
            if queue.ready {
                self.ready.push_back(hctx);
            }
            self.start(rq, now, out);
        }
    }

    fn wait_for_pace(&mut self, after: Duration, out: &mut Actions) {
        if !self.pace_timer {
            self.pace_timer = true;
            out.push(Action::Timer {
                after,
                mark: Mark::Pace.encode(),
            });
        }
    }

    /// A channel takes a command.
    fn start(&mut self, rq: RequestId, now: SimTime, out: &mut Actions) {
        let entry = self.entries[rq.0 as usize];
        self.iops.charge(1, now);
        let direction = match entry.op {
            Op::Read => Some(0),
            Op::Write => Some(1),
            Op::Flush | Op::Discard | Op::WriteZeroes => None,
        };
        if let Some(direction) = direction {
            let sectors = u64::from(entry.sectors.0);
            self.bandwidth.charge(sectors, now);
            self.directions[direction].charge(sectors, now);
        }
        self.channels_free -= 1;
        let after = self.service.time(entry.op, entry.sectors, now);
        out.push(Action::Timer {
            after,
            mark: Mark::Served(rq).encode(),
        });
    }

    /// A channel is done with a command: its completion entry is written.
    fn served(&mut self, rq: RequestId, now: SimTime, out: &mut Actions) {
        self.channels_free += 1;
        let hctx = self.entries[rq.0 as usize].hctx;
        let has_vector = self.layout.polled_index(hctx).is_none();
        let cq = &mut self.queues[usize::from(hctx.0)].cq;
        cq.push(rq);
        if has_vector {
            let step = cq.written(now);
            self.after_written(hctx, step, out);
        }
        self.serve(now, out);
    }

    fn after_written(&mut self, hctx: HctxId, step: cq::Step, out: &mut Actions) {
        match step {
            cq::Step::Nothing => {}
            cq::Step::Interrupt => out.push(Action::Interrupt {
                after: self.irq_delay,
                cpu: self.vector_cpus[usize::from(hctx.0)],
                vector: u32::from(hctx.0),
            }),
            cq::Step::Wait(after) => out.push(Action::Timer {
                after,
                mark: Mark::Coalesce(hctx).encode(),
            }),
        }
    }
}

impl Device for Nvme {
    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        let hctx = command.hctx;
        self.entries[command.rq.0 as usize] = Entry {
            hctx,
            op: command.op,
            sectors: command.sectors,
        };
        self.in_flight += 1;
        let stacked = command.of_plug && self.turns_round;
        if stacked {
            let (rq, cpu) = (command.rq, command.cpu);
            self.prepared.push(Prepared { rq, cpu, hctx });
            if !command.last {
                return Reply::ACCEPTED;
            }
            self.submit_cmds(hctx, cpu);
        }
        let sq = &mut self.queues[usize::from(hctx.0)].sq;
        if !stacked {
            sq.push(command.rq);
        }
        if command.last || sq.is_full() {
            sq.ring();
            self.published(hctx, now, out);
        }
        // nvme_queue_rq() of a ready controller starts the request and refuses nothing.
        Reply::ACCEPTED
    }

    /// The driver lacks resources while it prepares the command; a requeued command is started,
    /// with RQF_DONTPREP of nvme_setup_cmd().
    fn turn_down(&mut self, _command: &Command, why: TurnedDown) -> Reply {
        match why {
            TurnedDown::Busy(_) => Reply::turned_down(why, false),
            TurnedDown::GivenBack => Reply {
                verdict: Verdict::Requeued { dontprep: true },
                started: true,
            },
        }
    }

    fn commit_rqs(&mut self, hctx: HctxId, cpu: CpuId, now: SimTime, out: &mut Actions) {
        self.submit_cmds(hctx, cpu);
        let sq = &mut self.queues[usize::from(hctx.0)].sq;
        if sq.unpublished() > 0 {
            sq.ring();
            self.published(hctx, now, out);
        }
    }

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        match Mark::decode(mark) {
            Mark::Served(rq) => self.served(rq, now, out),
            Mark::Pace => {
                self.pace_timer = false;
                self.serve(now, out);
            }
            Mark::Coalesce(hctx) => {
                let step = self.queues[usize::from(hctx.0)].cq.waited(now);
                self.after_written(hctx, step, out);
            }
        }
    }

    fn interrupt(&mut self, vector: u32, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        self.found(vector as usize)
    }

    fn poll(&mut self, hctx: HctxId, _now: SimTime, _out: &mut Actions) -> Option<Found> {
        self.layout.polled_index(hctx)?;
        self.found(usize::from(hctx.0))
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn describe(&self) -> String {
        let sum = |count: fn(&QueuePair) -> u32| self.queues.iter().map(count).sum::<u32>();
        let unpublished = sum(|queue| queue.sq.unpublished()) + self.prepared.len() as u32;
        let published = sum(|queue| queue.sq.published());
        let completed = sum(|queue| queue.cq.len());
        let served = self.in_flight - unpublished - published - completed;
        format!(
            "nvme: {} in flight: {unpublished} without a doorbell, {published} waiting, \
             {served} served, {completed} in completion queues",
            self.in_flight
        )
    }
}

impl Nvme {
    /// nvme_submit_cmds() up to the doorbell: the commands that this CPU has prepared for one hctx,
    /// the newest first.
    fn submit_cmds(&mut self, hctx: HctxId, cpu: CpuId) {
        let own = |of: &Prepared| of.hctx == hctx && of.cpu == cpu;
        while let Some(newest) = self.prepared.iter().rposition(own) {
            let rq = self.prepared.remove(newest).rq;
            self.queues[usize::from(hctx.0)].sq.push(rq);
        }
    }

    /// nvme_handle_cqe() of the next valid entry.
    fn found(&mut self, queue: usize) -> Option<Found> {
        let rq = self.queues[queue].cq.take()?;
        self.in_flight -= 1;
        Some(Found {
            rq,
            status: Status::Ok,
            by: EndedBy::Batch,
        })
    }
}
