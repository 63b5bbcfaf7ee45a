//! The device's part of a plan.

use std::ops::Range;

use blkmq::request::Op;
use blkmq::time::Duration;
use serde::Deserialize;

use super::{AhciPlan, MappedPlan};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DevicePlan {
    pub kind: DeviceKind,
    /// Name below /dev: `nullb0`, `nvme0n1`, `sda`.
    pub name: String,
    /// Size, 512-byte sectors.
    pub sectors: u64,
    /// Smallest I/O, sectors.
    pub block_sectors: u32,
    /// Hardware queues for all requests without a queue type of their own.
    pub default_queues: u16,
    /// Hardware queues for reads only; 0: reads use the default ones.
    pub read_queues: u16,
    /// Hardware queues for polled I/O; 0: polled I/O uses the default ones.
    pub poll_queues: u16,
    /// Driver tags of each hardware queue.
    pub queue_depth: u32,
    /// One map of tags for all hardware queues (TAG_HCTX_SHARED).
    pub hctx_shared: bool,
    /// Requests the device accepts before its get_budget fails; 0: the driver has no budget.
    pub budget: u32,
    /// Spinning disk, as queue/rotational says.
    pub rotational: bool,
    /// The same at the time when the scheduler was chosen.
    pub rotational_when_chosen: bool,
    /// Sectors of each arm (queue/independent_access_ranges); none: one for all.
    pub access_ranges: Vec<Range<u64>>,
    pub fault: FaultPlan,
    /// Where there are some, the drive's times are drawn from these.
    pub service_times: Vec<ServiceTime>,
}

/// D2C of a captured request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTime {
    pub kind: ServiceKind,
    pub sectors: u32,
    /// Requests with the drive when it came, itself included.
    pub depth: u32,
    pub ns: u64,
}

/// What a drive does for a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    Read,
    Write,
    Trim,
    Flush,
}

impl ServiceKind {
    pub fn of(op: Op) -> ServiceKind {
        match op {
            Op::Read => ServiceKind::Read,
            Op::Write | Op::WriteZeroes => ServiceKind::Write,
            Op::Discard => ServiceKind::Trim,
            Op::Flush => ServiceKind::Flush,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ServiceKind::Read => "read",
            ServiceKind::Write => "write",
            ServiceKind::Trim => "trim",
            ServiceKind::Flush => "flush",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// null_blk.
    NullBlk(NullBlkPlan),
    /// An NVMe drive below the PCI driver.
    Nvme(NvmePlan),
    /// scsi_debug below the SCSI mid-layer.
    ScsiDebug(ScsiDebugPlan),
    /// A rotational SATA disk below libata.
    Ahci(AhciPlan),
    /// A Fibre Channel host below the SCSI mid-layer.
    Fc(FcPlan),
    /// device-mapper: requests are mapped to other devices.
    Mapped(Box<MappedPlan>),
}

impl DeviceKind {
    /// Its driver is a SCSI driver.
    pub fn is_scsi(&self) -> bool {
        match self {
            DeviceKind::ScsiDebug(_) | DeviceKind::Ahci(_) | DeviceKind::Fc(_) => true,
            DeviceKind::NullBlk(_) | DeviceKind::Nvme(_) | DeviceKind::Mapped(_) => false,
        }
    }
}

/// null_blk's irqmode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IrqMode {
    /// 0: completes inside queue_rq.
    None,
    /// 1: blk_mq_complete_request() inside queue_rq.
    Softirq,
    /// 2: a timer of `completion` for each command.
    Timer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NullBlkPlan {
    pub irqmode: IrqMode,
    /// completion_nsec, of the timer mode.
    pub completion: Duration,
    /// A completion comes after completion * (100 - jitter) % to completion * (100 + jitter) %.
    pub jitter_percent: u8,
    /// queue_rq may sleep: runs happen in a worker.
    pub blocking: bool,
    /// Data are kept, under one lock of the device.
    pub memory_backed: bool,
    /// Bandwidth limit, MiB/s; 0: none.
    pub mbps: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpLatency {
    pub read: Duration,
    pub write: Duration,
    pub trim: Duration,
    pub flush: Duration,
}

/// Sectors that a read takes from one die at a time: a page of 16 KiB.
pub const DIE_SECTORS: u32 = 32;

/// How service times of a drive differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jitter {
    /// Drawn from latency * (100 - percent) % to latency * (100 + percent) %, for any size.
    Percent(u8),
    /// By the page and the size, as with flash.
    Flash,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NvmePlan {
    /// Time from the doorbell to the completion entry of one command on an idle drive, the mean of
    /// 4 KiB.
    pub latency: OpLatency,
    pub jitter: Jitter,
    /// Commands served side by side; further ones wait in the drive.
    pub channels: u32,
    /// Dies of the flash: a read keeps one busy for each [`DIE_SECTORS`] of it. 0: reads do not
    /// contend for dies.
    pub dies: u32,
    pub die_time: Duration,
    /// Most I/Os a second; 0: no limit beyond channels.
    pub iops_max: u32,
    /// Bandwidth limit of reads and writes together, MiB/s; 0: none.
    pub mbps: u32,
    /// Bandwidth limit of reads, MiB/s; 0: none.
    pub read_mbps: u32,
    /// Bandwidth limit of writes, MiB/s; 0: none.
    pub write_mbps: u32,
    /// Completions gathered before an interrupt (1: one each).
    pub coalesce_count: u32,
    /// Longest time that a completion is held back for others.
    pub coalesce_time: Duration,
    /// Time from the completion entry to the interrupt.
    pub irq_delay: Duration,
    /// Loses data without a flush: flushes are sent.
    pub volatile_cache: bool,
}

/// Parameters of scsi_debug and of the SCSI mid-layer over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScsiDebugPlan {
    /// Response delay of a command (ndelay, or delay in ticks); zero: completes in queuecommand.
    pub delay: Duration,
    /// The same for a SYNCHRONIZE CACHE after a write.
    pub sync_delay: Duration,
    /// Delays are drawn from zero up to these.
    pub random: bool,
    /// host_max_queue: commands of the whole host; 0: no limit beyond max_queue per queue.
    pub host_max_queue: u32,
    /// Commands of the logical unit (its queue depth).
    pub lun_depth: u32,
    /// max_queue: commands of each hardware queue, or of the host.
    pub max_queue: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FcPlan {
    /// Commands of the host.
    pub can_queue: u32,
    /// Commands of a logical unit.
    pub lun_depth: u32,
    /// Time from the end of the wait for the link to the answer.
    pub latency: OpLatency,
    /// It is drawn from latency * (100 - jitter) % to latency * (100 + jitter) %.
    pub jitter_percent: u8,
    /// Rate of the link to the host, MiB/s; 0: no limit.
    pub read_mbps: u32,
    /// Rate of the link from the host, MiB/s; 0: no limit.
    pub write_mbps: u32,
}

/// A probability as it was written: `1/1000`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Hits; 0: never.
    pub numerator: u32,
    /// Of so many, at least 1.
    pub denominator: u32,
}

impl FaultPlan {
    pub const NONE: FaultPlan = FaultPlan {
        busy: Ratio::NEVER,
        busy_kind: BusyKind::Resource,
        requeue: Ratio::NEVER,
        error: Ratio::NEVER,
        timeout: Ratio::NEVER,
        lost_completion: Ratio::NEVER,
        after_commands: 0,
        outages: false,
    };
}

impl Ratio {
    pub const NEVER: Ratio = Ratio {
        numerator: 0,
        denominator: 1,
    };
}

/// Status of queue_rq for an injected "busy".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusyKind {
    /// BLK_STS_RESOURCE: lacks something that becomes free without a completion; the core looks
    /// again.
    Resource,
    /// BLK_STS_DEV_RESOURCE: a completion will restart the queue. Used only with a command in
    /// flight, else `Resource`, as drivers must.
    DevResource,
}

/// Faults, each drawn for every command on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// queue_rq refuses for now.
    pub busy: Ratio,
    pub busy_kind: BusyKind,
    /// queue_rq starts the command, then calls blk_mq_requeue_request().
    pub requeue: Ratio,
    /// The command ends with BLK_STS_IOERR.
    pub error: Ratio,
    /// The command is accepted and not answered; the timeout ends it.
    pub timeout: Ratio,
    /// The completion is lost and the driver's timeout handler does not help: a stall.
    pub lost_completion: Ratio,
    /// Commands before the first fault.
    pub after_commands: u64,
    /// The device may go out of reach, by the plan of the device above.
    pub outages: bool,
}
