//! Static properties of a driver and its device: names, numbers, prices.
//!
//! Each device has its own beside it (`null_blk/info.rs`); reports, charges and traces use these
//! and need not know which device it is. Read next: `make.rs`.

use crate::cost::Step;

/// Pairs of name and value.
pub type Parameters = Vec<(&'static str, String)>;

/// Names, numbers and prices of a driver and its device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverInfo {
    pub driver: &'static str,
    /// Parameters that decide how fast the device is, as its driver or the scenario calls them.
    pub parameters: Parameters,
    /// Numbers of its disks as a Debian kernel gives them.
    pub numbers: DeviceNumbers,
    pub ops: Ops,
    pub charges: Charges,
}

/// dev_t of a driver's disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceNumbers {
    pub major: u32,
    /// Minors of a disk: more than one leaves room for partitions.
    pub minors: u32,
}

/// Operations of struct blk_mq_ops that a driver has, and how it ends requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ops {
    pub queue_rqs: bool,
    pub commit_rqs: bool,
    /// queue_rq may sleep (BLK_MQ_F_BLOCKING).
    pub blocking: bool,
    /// One interrupt vector for each hardware queue.
    pub vectors: bool,
    /// Interrupt handlers end what they find in batches (blk_mq_add_to_batch()).
    pub batches: bool,
    /// Requests end through blk_mq_complete_request(): they may be redirected to another CPU.
    pub redirects: bool,
}

impl Ops {
    /// Completions may be redirected; the driver has none of the other features.
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
    pub queue_rq: Step,
    /// blk_mq_start_request() comes before that work, not after it.
    pub starts_first: bool,
    /// Then: starting a timer for each command.
    pub timer: Option<Step>,
    /// Then, with the last one: the doorbell.
    pub last: Option<Step>,
    pub commit: Option<Step>,
    /// The driver maps the data of each bio for the device, so it reads the bios.
    pub maps_bios: bool,
    /// One completion that an interrupt handler or a poller finds.
    pub completion: Option<Step>,
    /// One look at a poll queue.
    pub poll: Option<Step>,
    /// Memory that a pair of hardware queues consists of, whose cache lines CPUs take from each
    /// other.
    pub pair: Option<Pair>,
}

impl Charges {
    /// queue_rq costs this, before the request starts; all else is free.
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

    pub const SCSI: Charges = Charges {
        maps_bios: true,
        completion: Some(Step::ScsiCompletion),
        ..Charges::plain(Step::ScsiQueueRq)
    };
}

/// SCSI disks have sixteen minors each for their partitions.
pub(super) const SCSI_NUMBERS: DeviceNumbers = DeviceNumbers {
    major: 8,
    minors: 16,
};

/// Steps that waiting for the cache lines of a pair of queues is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The submission queue's lock and tail.
    pub submission: Step,
    /// The completion queue's head.
    pub completion: Step,
}

/// A parameter with this value, unless it is the default.
pub(super) fn unless(usual: u64, name: &'static str, value: u64, list: &mut Parameters) {
    if value != usual {
        list.push((name, value.to_string()));
    }
}

/// A parameter that is on.
pub(super) fn switch(name: &'static str, on: bool, list: &mut Parameters) {
    unless(0, name, u64::from(on), list);
}
