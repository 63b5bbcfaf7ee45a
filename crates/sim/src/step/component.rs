//! Components of CPU time, as the published profiles divide it.

use blkmq::path::Label;
use blkmq::path::label::{Complete, Plug, Run, SingleRun, SingleSubmit, Submit};

/// Components of CPU time, as the published profiles divide it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Component {
    /// fio in user space.
    User,
    /// Interrupts and softirqs: entry, exit, sending.
    Interrupt,
    /// System call entry and exit.
    Syscall,
    /// io_uring, AIO or the synchronous path above the block device.
    Engine,
    /// Taking locks and handing them over, without waiting.
    Locks,
    Driver,
    /// The scheduler and its hooks.
    Scheduler,
    Tags,
    /// blk-mq, bios, the block device.
    BlkMq,
    Clock,
    /// Preemption counts and RCU.
    Preempt,
    /// Task switches, wake-ups, workers and all the rest.
    Kernel,
}

impl Component {
    pub const ALL: [Component; 12] = [
        Component::User,
        Component::Interrupt,
        Component::Syscall,
        Component::Engine,
        Component::Locks,
        Component::Driver,
        Component::Scheduler,
        Component::Tags,
        Component::BlkMq,
        Component::Clock,
        Component::Preempt,
        Component::Kernel,
    ];

    /// Name in reports and measurement files.
    pub fn name(self) -> &'static str {
        match self {
            Component::User => "user",
            Component::Interrupt => "interrupt",
            Component::Syscall => "syscall",
            Component::Engine => "engine",
            Component::Locks => "locks",
            Component::Driver => "driver",
            Component::Scheduler => "scheduler",
            Component::Tags => "tags",
            Component::BlkMq => "blk-mq",
            Component::Clock => "clock",
            Component::Preempt => "preempt",
            Component::Kernel => "kernel",
        }
    }

    /// The component of a label, by the kernel functions that it models.
    pub fn of_label(label: Label) -> Component {
        let (path, at) = label.parts();
        let tag = at.contains("tag") || at.starts_with("wait-") || at.starts_with("put-");
        let hooks = [
            Submit::ElevatorMerge.label(),
            Submit::LimitDepth.label(),
            Plug::Elevator.label(),
            Complete::Finish.label(),
            Run::HasElevator.label(),
            Run::HasSide.label(),
            SingleSubmit::Queue.label(),
            SingleSubmit::Insert.label(),
            SingleRun::Peek.label(),
        ];
        match path {
            "elevator-merge" | "hook" => Component::Scheduler,
            "token" => Component::Tags,
            _ if label.is_of_scheduler() => Component::Scheduler,
            _ if hooks.contains(&label) => Component::Scheduler,
            "submit" | "pass" | "list" | "plug" | "complete" | "end-batch"
                if tag && at != "put-back" =>
            {
                Component::Tags
            }
            "pass" | "insert" => Component::Scheduler,
            _ => Component::BlkMq,
        }
    }
}
