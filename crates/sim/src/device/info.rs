//! What is known of a driver and its device whatever they do: names, numbers, prices.
//!
//! Each device has its own beside it (`null_blk/info.rs`); who reports, charges or writes traces
//! asks here and need not know which device it is. Read next: `make.rs`.

use crate::cost::Step;

/// Pairs of name and value.
pub type Parameters = Vec<(&'static str, String)>;

/// Facts of a driver and its device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverInfo {
    /// Name of the driver's module.
    pub driver: &'static str,
    /// Parameters that decide how fast the device is, as its driver or the scenario calls them.
    pub parameters: Parameters,
    /// Numbers of its disks as a Debian kernel gives them.
    pub numbers: DeviceNumbers,
    /// What the driver implements.
    pub ops: Ops,
    /// What the driver's work costs.
    pub charges: Charges,
}

/// dev_t of a driver's disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceNumbers {
    pub major: u32,
    /// From one disk to the next: more than one leaves room for partitions.
    pub minors: u32,
}

/// What a driver implements of struct blk_mq_ops, and how it ends requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ops {
    /// Has queue_rqs.
    pub queue_rqs: bool,
    /// Has commit_rqs.
    pub commit_rqs: bool,
    /// queue_rq may sleep (BLK_MQ_F_BLOCKING).
    pub blocking: bool,
    /// One interrupt vector for each hardware queue.
    pub vectors: bool,
    /// Interrupt handlers end what they find in batches (blk_mq_add_to_batch()).
    pub batches: bool,
    /// Ends go through blk_mq_complete_request(): they may be redirected to another CPU.
    pub redirects: bool,
}

impl Ops {
    /// Its ends may be redirected, and it has nothing else of these.
    pub const PLAIN: Ops = Ops {
        queue_rqs: false,
        commit_rqs: false,
        blocking: false,
        vectors: false,
        batches: false,
        redirects: true,
    };
}

/// Steps that the machine charges for a driver's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charges {
    /// queue_rq.
    pub queue_rq: Step,
    /// It calls blk_mq_start_request() before that work, not behind it.
    pub starts_first: bool,
    /// Then: starting a timer for each command.
    pub timer: Option<Step>,
    /// Then, with the last one: the doorbell.
    pub last: Option<Step>,
    /// commit_rqs.
    pub commit: Option<Step>,
    /// It maps the data of each bio for the device, so it reads the bios.
    pub maps_bios: bool,
    /// One completion that an interrupt handler or a poller finds.
    pub completion: Option<Step>,
    /// One look at a poll queue.
    pub poll: Option<Step>,
    /// Lines of memory that a pair of hardware queues consists of, and which CPUs take from each
    /// other.
    pub pair: Option<Pair>,
}

impl Charges {
    /// queue_rq costs this, before the request starts, and nothing else anything.
    pub const fn plain(queue_rq: Step) -> Charges {
        Charges {
            queue_rq,
            starts_first: false,
            timer: None,
            last: None,
            commit: None,
            maps_bios: false,
            completion: None,
            poll: None,
            pair: None,
        }
    }

    /// Below the SCSI mid-layer.
    pub const SCSI: Charges = Charges {
        maps_bios: true,
        completion: Some(Step::ScsiCompletion),
        ..Charges::plain(Step::ScsiQueueRq)
    };
}

/// Of SCSI disks, which have sixteen each for their partitions.
pub(super) const SCSI_NUMBERS: DeviceNumbers = DeviceNumbers {
    major: 8,
    minors: 16,
};

/// What waiting for the lines of a pair of queues counts for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// Those of the submission queue: its lock and its tail.
    pub submission: Step,
    /// That of the completion queue: its head.
    pub completion: Step,
}

/// A parameter with this value, unless it is the usual one.
pub(super) fn unless(usual: u64, name: &'static str, value: u64, list: &mut Parameters) {
    if value != usual {
        list.push((name, value.to_string()));
    }
}

/// A parameter that is on.
pub(super) fn switch(name: &'static str, on: bool, list: &mut Parameters) {
    unless(0, name, u64::from(on), list);
}
