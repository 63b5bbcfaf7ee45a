//! Events, and their order at one instant.
//!
//! Not here: the queue that holds them (`event_queue.rs`) and their handlers
//! ([`super::Simulator`]).

use blkmq::request::{CpuId, QueueId};

/// An event. A tag and one number, so that it is passed in two registers (docs/decisions/0002).
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A CPU goes on; void if its generation moved.
    Step(Of),
    /// The lock of this number is free for its first waiter.
    Grant(u64),
    /// A device's timer: its mark, and the device's number in bits that no mark uses.
    Timer(u64),
    /// A hard interrupt: device and CPU, and vector.
    Interrupt(Of),
    /// An interrupt from another CPU: softirq work or a task to run.
    Ipi(Of),
    /// The delay of the work item of a queue's hctx is over; void if its generation moved.
    Work(Of),
    /// A queue's timeout timer expires; void if its generation moved.
    Timeout(Of),
    /// A timer of a queue's scheduler expires; void if its generation moved.
    Elevator(Of),
    /// Something happens to a path or its target, by its number there.
    Happens(Of),
    /// The delay of requeue_work of a queue is over; void if its generation moved.
    Requeue(Of),
    /// A call comes to the server of this number, or its time is over.
    Call(Of),
    /// The ramp is over.
    Measure,
    /// A thread has ended that others wait for.
    Ended,
    /// A second is over, for jobs that end at a steady state.
    Second,
    /// The intervals of the run may be narrow enough.
    Look,
    /// A task's pause is over; void if its generation moved.
    Resume(Of),
}

/// The part of the machine that an event is for, and a generation or vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of(u64);

impl Of {
    pub(super) fn new(whom: u32, detail: u32) -> Of {
        Of(u64::from(whom) << 32 | u64::from(detail))
    }

    pub(super) fn cpu(cpu: CpuId, detail: u32) -> Of {
        Of::new(u32::from(cpu.0), detail)
    }

    /// A part of something by its number: a CPU that a device interrupts, an hctx of a queue.
    pub(super) fn part(of: u16, part: u16, detail: u32) -> Of {
        Of::new(u32::from(of) << 16 | u32::from(part), detail)
    }

    /// The number of the whole: see [`Of::part`].
    pub(super) fn part_of(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The same as a queue.
    pub(super) fn queue(self) -> QueueId {
        QueueId(self.part_of())
    }

    pub(super) fn whom(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn detail(self) -> u32 {
        self.0 as u32
    }

    pub(super) fn on(self) -> CpuId {
        CpuId(self.whom() as u16)
    }
}

/// Classes of events of one instant, earlier first.
pub(super) mod class {
    pub(in crate::machine) const GRANT: u8 = 0;
    pub(in crate::machine) const DEVICE: u8 = 1;
    pub(in crate::machine) const INTERRUPT: u8 = 2;
    pub(in crate::machine) const TIMER: u8 = 3;
    pub(in crate::machine) const CPU: u8 = 4;
}
