//! Steps outside the block layer's labels: the machine's work and its prices, one row each.
//!
//! A row names the step, its key in a profile's `[cycles]`, and the component that its time is
//! accounted to.

mod component;

use serde::{Deserialize, Serialize};

pub use component::Component;

macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident $key:ident $component:ident;)*) => {
        /// A step outside the block layer's labels.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Step {
            $($(#[$doc])* $step,)*
        }

        impl Step {
            /// All steps, in order.
            pub const ALL: &[Step] = &[$(Step::$step,)*];

            /// Its key in a profile's `[cycles]`.
            pub fn key(self) -> &'static str {
                match self {
                    $(Step::$step => stringify!($key),)*
                }
            }

            /// The component that its time is accounted to.
            pub fn component(self) -> Component {
                match self {
                    $(Step::$step => Component::$component,)*
                }
            }
        }

        impl Step {
            /// Time of the hardware, not of code: measurements of work do not contain it.
            pub fn is_delay(self) -> bool {
                matches!(self, Step::IpiLatency | Step::IdleExit)
            }
        }

        /// Costs of the hardware and of steps outside the block layer's labels, cycles.
        #[derive(Clone, Debug, Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        pub struct Cycles {
            /// An atomic read-modify-write on a line in the CPU's own cache.
            pub atomic: u64,
            /// A node of a tree, list or hash visited.
            pub container_op: u64,
            $($(#[$doc])* pub $key: u64,)*
        }

        impl Cycles {
            pub fn of(&self, step: Step) -> u64 {
                match step {
                    $(Step::$step => self.$key,)*
                }
            }

            /// Cycles of a step, to change them.
            pub fn of_mut(&mut self, step: Step) -> &mut u64 {
                match step {
                    $(Step::$step => &mut self.$key,)*
                }
            }
        }
    };
}

steps! {
    /// Taking a free lock.
    LockFree lock_free Locks;
    /// Handing a lock to a waiter, beyond the lines that move.
    LockHandoff lock_handoff Locks;
    /// PAUSE, between two polls of a spinning CPU.
    Pause pause Locks;
    /// fio prepares one I/O.
    FioPrepare fio_prepare User;
    /// fio handles one completion.
    FioComplete fio_complete User;
    /// fio's time stamps of one I/O, unless gtod_reduce.
    FioGettime fio_gettime User;
    /// t/io_uring draws a place and fills one submission entry.
    TPrepare t_prepare User;
    /// t/io_uring takes one completion entry.
    TReap t_reap User;
    /// System call entry and exit.
    Syscall syscall Syscall;
    /// io_uring issues one request.
    UringIssue uring_issue Engine;
    /// io_uring completes one request, on the completing CPU.
    UringComplete uring_complete Engine;
    /// io_uring posts one completion, on the task's CPU.
    UringPost uring_post Engine;
    /// io_uring checks whether it must wait.
    UringWait uring_wait Engine;
    /// io_submit(2) issues one request.
    AioIssue aio_issue Engine;
    /// AIO completes one request.
    AioComplete aio_complete Engine;
    /// read(2) or write(2) above the block layer.
    SyncIssue sync_issue Engine;
    /// Its completion.
    SyncComplete sync_complete Engine;
    /// Looking a page up in the page cache.
    PageFind page_find Kernel;
    /// A page is allocated and put into the page cache.
    PageAdd page_add Kernel;
    /// A page's read has ended: it is marked and unlocked.
    PageEnd page_end Kernel;
    /// A page is copied to its reader.
    PageCopy page_copy Kernel;
    /// Pinning the pages of a buffer that is not registered.
    PinPages pin_pages BlkMq;
    /// Looking up a file that is not registered.
    FileLookup file_lookup Engine;
    /// Setting up and freeing a bio, block device included.
    Bio bio BlkMq;
    /// Locks of engine and driver that one I/O takes without contention.
    IoLocks io_locks Locks;
    /// Reading the clock for one I/O, in the kernel.
    ClockRead clock_read Clock;
    /// Counting preemption and RCU sections of one I/O; much more in a kernel that checks them.
    PreemptRcu preempt_rcu Preempt;
    /// The rest of the kernel's work for one I/O.
    KernelRest kernel_rest Kernel;
    /// Handing work to another task on this CPU or another.
    Wake wake Kernel;
    /// From the interrupt that wakes an idle CPU to its first instruction.
    IdleExit idle_exit Kernel;
    /// Switching tasks.
    ContextSwitch context_switch Kernel;
    /// Sending an interrupt to another CPU, on the sender.
    IpiSend ipi_send Interrupt;
    /// From sending to arrival.
    IpiLatency ipi_latency Interrupt;
    /// Entry and exit of a hard interrupt.
    Irq irq Interrupt;
    /// Entry and exit of a softirq.
    Softirq softirq Interrupt;
    /// Queueing a work item.
    QueueWork queue_work Kernel;
    /// A worker takes a work item.
    Worker worker Kernel;
    /// queue_rq of null_blk.
    NullBlkQueueRq null_blk_queue_rq Driver;
    /// Starting the timer of a null_blk or scsi_debug command.
    HrtimerStart hrtimer_start Driver;
    /// queue_rq of NVMe, without doorbell.
    NvmeQueueRq nvme_queue_rq Driver;
    /// Writing a doorbell.
    NvmeDoorbell nvme_doorbell Driver;
    /// Handling one completion entry.
    NvmeCompletion nvme_completion Driver;
    /// One look at an empty completion queue.
    NvmePoll nvme_poll Driver;
    /// One look at a poll list of null_blk, whose lock it takes.
    NullBlkPoll null_blk_poll Driver;
    /// queue_rq of SCSI and queuecommand of scsi_debug.
    ScsiQueueRq scsi_queue_rq Driver;
    /// SCSI's completion of one command.
    ScsiCompletion scsi_completion Driver;
    /// One look at a poll queue of scsi_debug, whose lock it takes.
    ScsiPoll scsi_poll Driver;
}
